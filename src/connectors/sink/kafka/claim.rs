//! Which run writes under a transactional id: the one that claimed it last.
//!
//! A run claims the id by a record in the topic of marks, and then takes it at the broker. The order of the
//! claims in that topic is the order of the runs. A run whose producer has lost the id reads the claims:
//! behind a later one it ends, and never takes the id back. So a process that was stopped for a while and
//! goes on ends by itself, and its successor stays, however often the two meet.
//!
//! A claim has a key of its own: the transactional id, a zero byte, `claim`. Its value names the run. It is
//! written outside of any transaction, since the run does not have the id yet.

use std::io;
use std::time::Duration;

use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseRecord, Producer as _};
use serde::{Deserialize, Serialize};

use super::{KafkaOutput, read};
use crate::broker::{Failure, Producer, let_go};
use dupflow_core::time::{Clock, SystemClock};

/// How long a claim may be on its way before the log says that it waits.
const CALL: Duration = Duration::from_secs(5);

/// How long is waited for an answer of the broker before it is looked for again.
const STEP: Duration = Duration::from_millis(20);

/// What the key of a claim ends with.
const KIND: &[u8] = b"\0claim";

/// The value of a claim.
#[derive(Serialize, Deserialize)]
struct Value {
    run: String,
}

/// The claim of this run.
#[derive(Debug)]
pub(super) struct Claim {
    key: Vec<u8>,
    /// Before this offset of the topic of marks there is no later claim.
    from: u64,
}

impl Claim {
    /// Claims the id, behind all claims that are there.
    pub(super) fn make(output: &KafkaOutput) -> Result<Self, Failure> {
        let KafkaOutput { connection, progress_topic, transactional_id, run, .. } = output;
        let from = read::end(connection, progress_topic).map_err(|error| told(&error))?;
        let key = [transactional_id.as_bytes(), KIND].concat();
        let value = serde_json::to_vec(&Value { run: run.clone() });
        let value = value.map_err(|error| Failure::Fatal(format!("the claim: {error}")))?;
        let producer = connection.producer(&format!("topic \"{progress_topic}\""), &[("linger.ms", "0")])?;
        let written = write(&producer, progress_topic, &key, &value);
        let_go(producer);
        written.map(|()| Self { key, from })
    }

    /// Whether this run is still the last one that has claimed the id.
    ///
    /// # Errors
    /// [`Failure::Fenced`] if it is not.
    pub(super) fn judge(&mut self, output: &KafkaOutput) -> Result<(), Failure> {
        let KafkaOutput { connection, progress_topic, transactional_id, run, .. } = output;
        let mut last = None;
        let end = read::since(connection, progress_topic, self.from, |key, value| {
            if key == Some(&*self.key) {
                let claim = serde_json::from_slice::<Value>(value.unwrap_or_default());
                last = Some(claim.map_err(|error| {
                    let what =
                        format!("topic \"{progress_topic}\" holds a claim that cannot be read: {error}");
                    io::Error::new(io::ErrorKind::InvalidData, what)
                })?);
            }
            Ok(())
        });
        let end = end.map_err(|error| told(&error))?;
        match last {
            Some(last) if last.run != *run => Err(Failure::Fenced(format!(
                "another run has taken over the transactional id \"{transactional_id}\": the last claim in topic \"{progress_topic}\" is that of \
                 run {}, which is later than this one",
                last.run
            ))),
            _ => {
                self.from = end;
                Ok(())
            }
        }
    }
}

/// Writes a claim; waits until it is stored.
fn write(producer: &Producer, topic: &str, key: &[u8], value: &[u8]) -> Result<(), Failure> {
    let what = format!("topic \"{topic}\"");
    loop {
        let sent = producer.send(BaseRecord::to(topic).key(key).payload(value));
        sent.map_err(|(error, _): (KafkaError, _)| Failure::of(&error, &what))?;
        let clock = SystemClock::start();
        let mut due = CALL;
        while producer.in_flight_count() > 0 {
            producer.poll(STEP);
            if let Some(fatal @ Failure::Fatal(_)) = producer.context().last() {
                return Err(fatal);
            }
            if clock.now() >= due {
                due = clock.now() + CALL;
                producer.context().retries(&Failure::Retriable(format!("{what}: no answer to a claim yet")));
            }
        }
        match producer.context().undelivered() {
            None => return Ok(()),
            Some(failure) if failure.is_retriable() => producer.context().retries(&failure),
            Some(failure) => return Err(failure),
        }
    }
}

fn told(error: &io::Error) -> Failure {
    Failure::Fatal(error.to_string())
}
