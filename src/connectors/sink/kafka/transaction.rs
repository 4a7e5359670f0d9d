//! One transaction at a time, and what becomes of one that does not simply succeed.

use std::io;
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaError};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _};
use rdkafka::types::RDKafkaErrorCode;

use super::claim::Claim;
use super::outgoing::{LETTER_BYTES, Outgoing};
use super::{KafkaOutput, read};
use crate::broker::{Failure, Producer, let_go};
use crate::failpoint;
use crate::mark::Mark;
use dupflow_core::time::{Clock, SystemClock};

/// How long one call of the library may take before it is repeated, so that the log tells of it.
const CALL: Duration = Duration::from_secs(5);

/// How long an answer takes where all is well, and how often it is looked for meanwhile.
const SOON: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(1);

/// How long is waited before something is tried again.
const APART: Duration = Duration::from_millis(200);

/// The producer, and how it is replaced.
pub(super) struct Transactions {
    output: KafkaOutput,
    /// None before the output is taken over.
    claim: Option<Claim>,
    /// None before the first one, and between two.
    producer: Option<Producer>,
}

/// What is known of a transaction that did not simply succeed.
enum Outcome {
    /// It was aborted, or never begun.
    Aborted(Failure),
    /// It may have been committed or not; its producer is of no use any more.
    Unknown(Failure),
    /// The same, and another producer may have the id.
    Fenced(Failure),
}

impl Transactions {
    pub(super) fn new(output: &KafkaOutput) -> Self {
        Self { output: output.clone(), claim: None, producer: None }
    }

    /// Claims the id, takes it from every earlier run; then the last mark in the topic.
    pub(super) fn take_over(&mut self) -> Result<Option<Mark>, Failure> {
        self.claim = Some(Claim::make(&self.output)?);
        self.renew()?;
        self.last_mark()
    }

    /// The last mark in the topic, where nothing is claimed; open transactions are waited for no longer than
    /// this.
    ///
    /// # Errors
    /// Those of the broker; [`io::ErrorKind::WouldBlock`] if a transaction is still open.
    pub(super) fn look(&self, bound: Duration) -> io::Result<Option<Mark>> {
        let KafkaOutput { connection, progress_topic, transactional_id, .. } = &self.output;
        let found = read::last_within(connection, progress_topic, Some(bound), transactional_id.as_bytes())?;
        self.mark(found).map_err(io::Error::other)
    }

    /// Writes all of it and the mark, once, where `known` is the last mark.
    pub(super) fn write(
        &mut self,
        outgoing: &Outgoing,
        known: Option<&Mark>,
        mark: &Mark,
    ) -> Result<(), Failure> {
        let encoded =
            serde_json::to_vec(mark).map_err(|error| Failure::Fatal(format!("the mark: {error}")))?;
        loop {
            let outcome = self.attempt(outgoing, &encoded);
            let failure = match outcome {
                Ok(()) => return Ok(()),
                Err(Outcome::Aborted(failure)) => {
                    if matches!(failure, Failure::Fatal(_) | Failure::Absent(_)) {
                        return Err(failure);
                    }
                    self.wait(&failure);
                    continue;
                }
                Err(Outcome::Fenced(failure)) => {
                    // A later run has perhaps written already: then it is left alone.
                    self.judge(known, mark)?;
                    failure
                }
                Err(Outcome::Unknown(failure)) => failure,
            };
            tracing::warn!("kafka: a commit has ended without an answer, and is looked for: {failure}");
            self.renew()?;
            if self.judge(known, mark)? {
                return Ok(());
            }
        }
    }

    /// Whether the last mark in the topic is the one that was being written, and not the one before.
    fn judge(&self, known: Option<&Mark>, writing: &Mark) -> Result<bool, Failure> {
        let last = self.last_mark()?;
        if last.as_ref() == Some(writing) {
            return Ok(true);
        }
        if last.as_ref() == known {
            return Ok(false);
        }
        let whose = last.map_or_else(|| "none".to_owned(), |last| format!("that of run {}", last.run));
        Err(Failure::Fenced(format!(
            "another run has taken over the transactional id \"{}\": the last mark in topic \"{}\" is {whose}, not one of this run",
            self.output.transactional_id, self.output.progress_topic
        )))
    }

    /// Whether no later run has claimed the id.
    fn examine_claims(&mut self) -> Result<(), Failure> {
        self.claim.as_mut().map_or(Ok(()), |claim| claim.judge(&self.output))
    }

    /// A new producer, which takes the id. Waits for the broker without end, but not if it refuses. Behind
    /// a later claim it takes nothing; a claim that is written while it takes the id is found behind that.
    fn renew(&mut self) -> Result<(), Failure> {
        if let Some(old) = self.producer.take() {
            let_go(old);
        }
        let what = format!("transactional id \"{}\"", self.output.transactional_id);
        let timeout = self.output.timeout.as_millis().to_string();
        let mut own =
            vec![("transactional.id", &*self.output.transactional_id), ("transaction.timeout.ms", &*timeout)];
        // A commit sends all that it has at once: there is nothing to wait for.
        if !self.output.connection.settings.contains_key("linger.ms") {
            own.push(("linger.ms", "0"));
        }
        loop {
            self.claim.as_mut().map_or(Ok(()), |claim| claim.judge(&self.output))?;
            let producer = self.output.connection.producer(&what, &own)?;
            loop {
                let Err(error) = producer.init_transactions(CALL) else {
                    self.producer = Some(producer);
                    return self.examine_claims();
                };
                let failure = Failure::of(&error, &what);
                // Serves the client, which tells of its errors here; and lets a moment pass.
                producer.poll(APART);
                if let Some(fatal @ Failure::Fatal(_)) = producer.context().last() {
                    return Err(fatal);
                }
                match failure {
                    Failure::Retriable(_) => producer.context().retries(&failure),
                    // Another producer took the id while this one did.
                    Failure::Fenced(_) => break,
                    other => return Err(other),
                }
            }
            let_go(producer);
        }
    }

    /// The last mark under this id.
    fn last_mark(&self) -> Result<Option<Mark>, Failure> {
        let KafkaOutput { connection, progress_topic, transactional_id, .. } = &self.output;
        let found = read::last(connection, progress_topic, transactional_id.as_bytes());
        self.mark(found.map_err(|error| Failure::Fatal(error.to_string()))?)
    }

    /// The mark of a value, if it is one.
    fn mark(&self, found: Option<Vec<u8>>) -> Result<Option<Mark>, Failure> {
        let progress_topic = &self.output.progress_topic;
        let mark = found.filter(|value| !value.is_empty()).map(|value| serde_json::from_slice(&value));
        mark.transpose().map_err(|error| {
            Failure::Fatal(format!("topic \"{progress_topic}\" holds a mark that cannot be read: {error}"))
        })
    }

    /// One transaction, from its beginning to its commit or its abort.
    fn attempt(&self, outgoing: &Outgoing, mark: &[u8]) -> Result<(), Outcome> {
        let Some(producer) = &self.producer else {
            return Err(Outcome::Unknown(Failure::Retriable("no producer".to_owned())));
        };
        // Of an earlier transaction.
        drop(producer.context().undelivered());
        let what = format!("topic \"{}\"", self.output.topic);
        producer.begin_transaction().map_err(|error| Outcome::Unknown(Failure::of(&error, &what)))?;
        let sent = self.send_all(producer, outgoing, mark);
        failpoint::reach("transaction-sent");
        let ended = sent.and_then(|()| self.commit(producer, &what));
        failpoint::reach("transaction-committed");
        match ended {
            Ok(()) => Ok(()),
            Err(Ended::Abort(failure)) => {
                let cause = producer.context().undelivered().filter(|cause| !cause.is_retriable());
                self.abort(producer, &what)?;
                Err(Outcome::Aborted(cause.unwrap_or(failure)))
            }
            Err(Ended::Lost(failure @ Failure::Fenced(_))) => Err(Outcome::Fenced(failure)),
            Err(Ended::Lost(failure)) => Err(Outcome::Unknown(failure)),
        }
    }

    fn send_all(&self, producer: &Producer, outgoing: &Outgoing, mark: &[u8]) -> Result<(), Ended> {
        let KafkaOutput { topic, progress_topic, transactional_id, dead_letter, .. } = &self.output;
        for (key, value) in outgoing.records() {
            let mut record = BaseRecord::to(topic).key(key);
            record.payload = value;
            send(producer, record)?;
        }
        for letter in dead_letter.iter().flat_map(|_| outgoing.kept_letters()) {
            let whole = letter.raw.as_deref();
            let raw = whole.map(|raw| &raw[..raw.len().min(LETTER_BYTES)]);
            let position = letter.position;
            let numbers = [("partition", u64::from(position.partition)), ("offset", position.offset)]
                .map(|(name, n)| (name, n.to_string()));
            let mut headers = OwnedHeaders::new()
                .insert(Header { key: "reason", value: Some(&*letter.reason) })
                .insert(Header { key: "input", value: Some(&*letter.input) });
            for (key, value) in &numbers {
                headers = headers.insert(Header { key, value: Some(value) });
            }
            if let Some(cut) = whole.filter(|whole| whole.len() > LETTER_BYTES) {
                headers = headers.insert(Header { key: "bytes", value: Some(&cut.len().to_string()) });
            }
            let mut record: BaseRecord<'_, [u8], [u8]> =
                BaseRecord::to(dead_letter.as_deref().unwrap_or_default()).headers(headers);
            record.key = letter.key.as_deref();
            record.payload = raw;
            send(producer, record)?;
        }
        send(producer, BaseRecord::to(progress_topic).key(transactional_id.as_bytes()).payload(mark))
    }

    /// Asks for the commit until there is an answer.
    fn commit(&self, producer: &Producer, what: &str) -> Result<(), Ended> {
        loop {
            let Err(error) = drain(producer).and_then(|()| producer.commit_transaction(CALL)) else {
                return Ok(());
            };
            let failure = Failure::of(&error, what);
            match &error {
                // Records are still on their way; the library fails them once the transaction's time is over.
                KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut) => {
                    producer.context().retries(&failure);
                }
                KafkaError::Transaction(told) => match call(told) {
                    Call::Again => {
                        producer.context().retries(&failure);
                        producer.poll(APART);
                    }
                    Call::Abort => return Err(Ended::Abort(failure)),
                    Call::Lost => return Err(Ended::Lost(failure)),
                },
                _ => return Err(Ended::Lost(failure)),
            }
        }
    }

    /// Aborts until there is an answer.
    fn abort(&self, producer: &Producer, what: &str) -> Result<(), Outcome> {
        loop {
            // What is sent must be told of before the abort ends.
            let Err(error) = producer.abort_transaction(APART) else { return Ok(()) };
            producer.poll(APART);
            let failure = Failure::of(&error, what);
            match &error {
                KafkaError::Transaction(told) if matches!(call(told), Call::Again) => {
                    producer.context().retries(&failure);
                }
                _ if matches!(failure, Failure::Fenced(_)) => return Err(Outcome::Fenced(failure)),
                _ => return Err(Outcome::Unknown(failure)),
            }
        }
    }

    /// Lets a moment pass before another try.
    fn wait(&self, failure: &Failure) {
        if let Some(producer) = &self.producer {
            producer.context().retries(failure);
            producer.poll(APART);
        }
    }
}

/// Waits until the broker has answered for every record. The client's own way polls in steps of 100 ms, each
/// to its end: that would be the least time of a commit (102 ms with 10 deltas, and 10 ms this way; November
/// 2026).
fn drain(producer: &Producer) -> Result<(), KafkaError> {
    let clock = SystemClock::start();
    loop {
        match producer.flush(Duration::ZERO) {
            Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut)) if clock.now() < CALL => {}
            ended => return ended,
        }
        // An answer takes some milliseconds; where none comes, there is no hurry.
        producer.poll(if clock.now() < SOON { STEP } else { APART });
    }
}

/// How a transaction has to end.
enum Ended {
    /// By an abort.
    Abort(Failure),
    /// Nobody knows.
    Lost(Failure),
}

/// What is to be done after a call of the library that failed.
enum Call {
    Again,
    Abort,
    Lost,
}

fn call(told: &RDKafkaError) -> Call {
    if told.is_fatal() {
        Call::Lost
    } else if told.txn_requires_abort() {
        Call::Abort
    } else if told.is_retriable() {
        Call::Again
    } else {
        Call::Lost
    }
}

/// Gives a record to the client; while its queue is full, waits for it.
fn send(producer: &Producer, mut record: BaseRecord<'_, [u8], [u8]>) -> Result<(), Ended> {
    loop {
        match producer.send(record) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), refused)) => {
                record = refused;
                producer.poll(STEP);
            }
            Err((error, refused)) => {
                let failure = Failure::of(&error, &format!("topic \"{}\"", refused.topic));
                return Err(match failure {
                    fenced @ Failure::Fenced(_) => Ended::Lost(fenced),
                    other => Ended::Abort(other),
                });
            }
        }
    }
}
