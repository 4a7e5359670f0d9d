//! Claims of a transactional id: only the run with the last claim may write.
//!
//! A run first writes a claim to the topic of marks, and then initializes its producer with the id. The order
//! of the claims in that topic is the order of the runs. A run whose producer is fenced reads the claims. If
//! a later claim exists, it ends and does not take the id back. So a process that was suspended and resumes
//! ends by itself and its successor continues, however often they fence each other.
//!
//! Key of a claim: the transactional id, a zero byte, `claim`. Value: the name of the run. The claim is
//! written outside of any transaction, since the run does not have the id yet.

use std::io;
use std::time::Duration;

use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseRecord, Producer as _};
use serde::{Deserialize, Serialize};

use super::output::KafkaOutput;
use super::read;
use crate::kafka::broker::{KafkaFailure, Producer, close_in_background};
use dupflow_core::time::{Clock, SystemClock};

/// Time without an acknowledgement after which the log says that the claim is waiting.
const CALL: Duration = Duration::from_secs(5);

/// How long one poll of the producer lasts.
const STEP: Duration = Duration::from_millis(20);

/// Suffix of the key of a claim.
const KIND: &[u8] = b"\0claim";

/// Value of a claim, as JSON.
#[derive(Serialize, Deserialize)]
struct ClaimValue {
    run: String,
}

/// The claim of this run.
#[derive(Debug)]
pub(super) struct Claim {
    key: Vec<u8>,
    /// No later claim exists before this offset of the topic of marks.
    from: u64,
}

impl Claim {
    /// Writes a claim after all existing ones.
    pub(super) fn write_new(output: &KafkaOutput) -> Result<Self, KafkaFailure> {
        let KafkaOutput { connection, progress_topic, transactional_id, run, .. } = output;
        let from = read::end(connection, progress_topic).map_err(|error| fatal(&error))?;
        let key = [transactional_id.as_bytes(), KIND].concat();
        let value = serde_json::to_vec(&ClaimValue { run: run.clone() });
        let value = value.map_err(|error| KafkaFailure::Fatal(format!("the claim: {error}")))?;
        let producer = connection.producer(&format!("topic \"{progress_topic}\""), &[("linger.ms", "0")])?;
        let written = write(&producer, progress_topic, &key, &value);
        close_in_background(producer);
        written.map(|()| Self { key, from })
    }

    /// Checks that no later run has claimed the id.
    ///
    /// # Errors
    /// [`KafkaFailure::Fenced`] if one has.
    pub(super) fn check_latest(&mut self, output: &KafkaOutput) -> Result<(), KafkaFailure> {
        let KafkaOutput { connection, progress_topic, transactional_id, run, .. } = output;
        let mut last = None;
        let end = read::since(connection, progress_topic, self.from, |key, value| {
            if key == Some(&*self.key) {
                let claim = serde_json::from_slice::<ClaimValue>(value.unwrap_or_default());
                last = Some(claim.map_err(|error| {
                    let what =
                        format!("topic \"{progress_topic}\" holds a claim that cannot be read: {error}");
                    io::Error::new(io::ErrorKind::InvalidData, what)
                })?);
            }
            Ok(())
        });
        let end = end.map_err(|error| fatal(&error))?;
        match last {
            Some(last) if last.run != *run => Err(KafkaFailure::Fenced(format!(
                "another run has taken over the transactional id \"{transactional_id}\": the last claim in \
                 topic \"{progress_topic}\" is that of \
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

/// Writes a claim and waits until the broker has stored it.
fn write(producer: &Producer, topic: &str, key: &[u8], value: &[u8]) -> Result<(), KafkaFailure> {
    let what = format!("topic \"{topic}\"");
    loop {
        let sent = producer.send(BaseRecord::to(topic).key(key).payload(value));
        sent.map_err(|(error, _): (KafkaError, _)| KafkaFailure::from_error(&error, &what))?;
        let clock = SystemClock::start();
        let mut due = CALL;
        while producer.in_flight_count() > 0 {
            producer.poll(STEP);
            if let Some(fatal @ KafkaFailure::Fatal(_)) = producer.context().last() {
                return Err(fatal);
            }
            if clock.now() >= due {
                due = clock.now() + CALL;
                producer
                    .context()
                    .retries(&KafkaFailure::Retriable(format!("{what}: no answer to a claim yet")));
            }
        }
        match producer.context().undelivered() {
            None => return Ok(()),
            Some(failure) if failure.is_retriable() => producer.context().retries(&failure),
            Some(failure) => return Err(failure),
        }
    }
}

fn fatal(error: &io::Error) -> KafkaFailure {
    KafkaFailure::Fatal(error.to_string())
}
