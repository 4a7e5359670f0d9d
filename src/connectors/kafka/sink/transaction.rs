//! One transaction at a time, and the recovery of one that fails.

use std::io;
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaError};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _};
use rdkafka::types::RDKafkaErrorCode;

use super::claim::Claim;
use super::outgoing::{LETTER_BYTES, LETTER_KEY_BYTES, Outgoing};
use super::output::KafkaOutput;
use super::owned::{OwnedTopics, TopicRole};
use super::read;
use crate::failpoint;
use crate::kafka::broker::{KafkaFailure, Producer, close_in_background};
use crate::mark::Mark;
use dupflow_core::time::{Clock, SystemClock};

/// Longest duration of one call of the library. A call that takes longer is repeated, and logged.
const CALL: Duration = Duration::from_secs(5);

/// Answers usually arrive within this time; until then the producer is polled in steps of `STEP`.
const SOON: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(1);

/// Pause before another attempt.
const APART: Duration = Duration::from_millis(200);

/// A transactional producer, replaced after failures.
pub(super) struct Transactions {
    output: KafkaOutput,
    /// Every loop that waits for a broker ends once one of these is lost.
    owned: OwnedTopics,
    /// `None` before the output is taken over.
    claim: Option<Claim>,
    /// `None` before the first producer, and between two.
    producer: Option<Producer>,
}

/// What is known of a transaction that failed.
enum TransactionFailure {
    /// It was aborted, or never begun.
    Aborted(KafkaFailure),
    /// It may have been committed or not. Its producer can no longer be used.
    Unknown(KafkaFailure),
    /// As `Unknown`, and another producer may have taken the id.
    Fenced(KafkaFailure),
}

impl Transactions {
    pub(super) fn new(output: &KafkaOutput, owned: &OwnedTopics) -> Self {
        Self { output: output.clone(), owned: owned.clone(), claim: None, producer: None }
    }

    /// Claims the id and takes it from every earlier run. Returns the last mark in the topic.
    pub(super) fn take_over(&mut self) -> Result<Option<Mark>, KafkaFailure> {
        self.claim = Some(Claim::write_new(&self.output)?);
        self.renew()?;
        self.last_mark()
    }

    /// The last mark in the topic. Claims nothing. Waits for open transactions no longer than `bound`.
    ///
    /// # Errors
    /// Any error of the broker; [`io::ErrorKind::WouldBlock`] if a transaction is still open.
    pub(super) fn inspect(&self, bound: Duration) -> io::Result<Option<Mark>> {
        let KafkaOutput { connection, progress_topic, transactional_id, .. } = &self.output;
        let found = read::last_within(connection, progress_topic, Some(bound), transactional_id.as_bytes())?;
        self.mark(found).map_err(io::Error::other)
    }

    /// Writes the records and the mark exactly once. `known` is the last mark in the topic.
    pub(super) fn write(
        &mut self,
        outgoing: &Outgoing,
        known: Option<&Mark>,
        mark: &Mark,
    ) -> Result<(), KafkaFailure> {
        let encoded =
            serde_json::to_vec(mark).map_err(|error| KafkaFailure::Fatal(format!("the mark: {error}")))?;
        loop {
            let outcome = self.attempt(outgoing, &encoded);
            if outcome.is_err() {
                self.owned.check()?;
            }
            let failure = match outcome {
                Ok(()) => return Ok(()),
                Err(TransactionFailure::Aborted(failure)) => {
                    if matches!(failure, KafkaFailure::Fatal(_) | KafkaFailure::Absent(_)) {
                        return Err(failure);
                    }
                    self.wait(&failure);
                    continue;
                }
                Err(TransactionFailure::Fenced(failure)) => {
                    // If a later run has already written, end here instead of fencing it.
                    self.is_committed(known, mark)?;
                    failure
                }
                Err(TransactionFailure::Unknown(failure)) => failure,
            };
            tracing::warn!("kafka: a commit has ended without an answer, and is looked for: {failure}");
            self.renew()?;
            if self.is_committed(known, mark)? {
                return Ok(());
            }
        }
    }

    /// Whether the last mark in the topic is `writing`; `false` if it is `known`. Fails on any other mark.
    fn is_committed(&self, known: Option<&Mark>, writing: &Mark) -> Result<bool, KafkaFailure> {
        let last = self.last_mark()?;
        if last.as_ref() == Some(writing) {
            return Ok(true);
        }
        if last.as_ref() == known {
            return Ok(false);
        }
        let KafkaOutput { progress_topic, transactional_id, .. } = &self.output;
        let Some(last) = last else {
            return Err(KafkaFailure::Fatal(format!(
                "topic \"{progress_topic}\" no longer holds the mark of this run: it was deleted, or created \
                 again; {}",
                TopicRole::Marks.remedy()
            )));
        };
        Err(KafkaFailure::Fenced(format!(
            "another run has taken over the transactional id \"{transactional_id}\": the last mark in topic \
             \"{progress_topic}\" is that of run {}, not one of this run",
            last.run
        )))
    }

    /// Checks that no later run has claimed the id.
    pub(super) fn check_claims(&mut self) -> Result<(), KafkaFailure> {
        self.claim.as_mut().map_or(Ok(()), |claim| claim.check_latest(&self.output))
    }

    /// Creates a new producer and takes the id. Waits for an unreachable broker without limit, but fails if
    /// the broker refuses. Checks the claims before and after: if there is a later one, this run ends.
    fn renew(&mut self) -> Result<(), KafkaFailure> {
        if let Some(old) = self.producer.take() {
            close_in_background(old);
        }
        let what = format!("transactional id \"{}\"", self.output.transactional_id);
        let timeout = self.output.timeout.as_millis().to_string();
        let mut own =
            vec![("transactional.id", &*self.output.transactional_id), ("transaction.timeout.ms", &*timeout)];
        // A commit sends all its records at once: waiting for more has no use.
        if !self.output.connection.settings.contains_key("linger.ms") {
            own.push(("linger.ms", "0"));
        }
        loop {
            self.claim.as_mut().map_or(Ok(()), |claim| claim.check_latest(&self.output))?;
            let producer = self.output.connection.producer(&what, &own)?;
            loop {
                let Err(error) = producer.init_transactions(CALL) else {
                    self.producer = Some(producer);
                    return self.check_claims();
                };
                let failure = KafkaFailure::from_error(&error, &what);
                self.owned.check()?;
                // Polls the client, so that it reports its errors, for the length of a pause.
                producer.poll(APART);
                if let Some(fatal @ KafkaFailure::Fatal(_)) = producer.context().last() {
                    return Err(fatal);
                }
                match failure {
                    KafkaFailure::Retriable(_) => producer.context().retries(&failure),
                    // Another producer took the id during this call.
                    KafkaFailure::Fenced(_) => break,
                    other => return Err(other),
                }
            }
            close_in_background(producer);
        }
    }

    /// The last mark under this transactional id.
    fn last_mark(&self) -> Result<Option<Mark>, KafkaFailure> {
        let KafkaOutput { connection, progress_topic, transactional_id, .. } = &self.output;
        let found = read::last(connection, progress_topic, transactional_id.as_bytes());
        self.mark(found.map_err(|error| KafkaFailure::Fatal(error.to_string()))?)
    }

    /// Parses a mark; `None` for a tombstone.
    fn mark(&self, found: Option<Vec<u8>>) -> Result<Option<Mark>, KafkaFailure> {
        let progress_topic = &self.output.progress_topic;
        let mark = found.filter(|value| !value.is_empty()).map(|value| serde_json::from_slice(&value));
        mark.transpose().map_err(|error| {
            KafkaFailure::Fatal(format!(
                "topic \"{progress_topic}\" holds a mark that cannot be read: {error}"
            ))
        })
    }

    /// Runs one transaction from its beginning to its commit or abort.
    fn attempt(&self, outgoing: &Outgoing, mark: &[u8]) -> Result<(), TransactionFailure> {
        let Some(producer) = &self.producer else {
            return Err(TransactionFailure::Unknown(KafkaFailure::Retriable("no producer".to_owned())));
        };
        // Drop a failed delivery of an earlier transaction.
        drop(producer.context().undelivered());
        let what = format!("topic \"{}\"", self.output.topic);
        producer
            .begin_transaction()
            .map_err(|error| TransactionFailure::Unknown(KafkaFailure::from_error(&error, &what)))?;
        let sent = self.send_all(producer, outgoing, mark);
        failpoint::reach("transaction-sent");
        let ended = sent.and_then(|()| self.commit(producer, &what));
        failpoint::reach("transaction-committed");
        match ended {
            Ok(()) => Ok(()),
            Err(StepFailure::Abort(failure)) => {
                let cause = producer.context().undelivered().filter(|cause| !cause.is_retriable());
                self.abort(producer, &what)?;
                Err(TransactionFailure::Aborted(cause.unwrap_or(failure)))
            }
            Err(StepFailure::Unknown(failure @ KafkaFailure::Fenced(_))) => {
                Err(TransactionFailure::Fenced(failure))
            }
            Err(StepFailure::Unknown(failure)) => Err(TransactionFailure::Unknown(failure)),
        }
    }

    fn send_all(&self, producer: &Producer, outgoing: &Outgoing, mark: &[u8]) -> Result<(), StepFailure> {
        let KafkaOutput { topic, progress_topic, transactional_id, dead_letter, .. } = &self.output;
        for (key, value) in outgoing.records() {
            let mut record = BaseRecord::to(topic).key(key);
            record.payload = value;
            send(producer, &self.owned, record)?;
        }
        for (of_rows, key, value) in outgoing.side_records() {
            send(
                producer,
                &self.owned,
                BaseRecord::to(of_rows).key(key.as_bytes()).payload(value.as_bytes()),
            )?;
        }
        for letter in dead_letter.iter().flat_map(|_| outgoing.kept_letters()) {
            let (raw, bytes) = cut(letter.raw.as_deref(), LETTER_BYTES);
            let (key, key_bytes) = cut(letter.key.as_deref(), LETTER_KEY_BYTES);
            let position = letter.position;
            let numbers = [
                ("partition", Some(u64::from(position.partition))),
                ("offset", Some(position.offset)),
                ("bytes", bytes),
                ("key_bytes", key_bytes),
            ];
            let numbers = numbers.into_iter().filter_map(|(name, n)| Some((name, n?.to_string())));
            let mut headers = OwnedHeaders::new()
                .insert(Header { key: "reason", value: Some(&*letter.reason) })
                .insert(Header { key: "input", value: Some(&*letter.input) });
            for (name, value) in numbers {
                headers = headers.insert(Header { key: name, value: Some(&value) });
            }
            let mut record: BaseRecord<'_, [u8], [u8]> =
                BaseRecord::to(dead_letter.as_deref().unwrap_or_default()).headers(headers);
            record.key = key;
            record.payload = raw;
            send(producer, &self.owned, record)?;
        }
        send(
            producer,
            &self.owned,
            BaseRecord::to(progress_topic).key(transactional_id.as_bytes()).payload(mark),
        )
    }

    /// Commits; repeats the call until the broker answers.
    fn commit(&self, producer: &Producer, what: &str) -> Result<(), StepFailure> {
        loop {
            let Err(error) = drain(producer).and_then(|()| producer.commit_transaction(CALL)) else {
                return Ok(());
            };
            let failure = KafkaFailure::from_error(&error, what);
            self.owned.check().map_err(StepFailure::Unknown)?;
            match &error {
                // Records are still in flight. The library fails them once the transaction has timed out.
                KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut) => {
                    producer.context().retries(&failure);
                }
                KafkaError::Transaction(error) => match next_step(error) {
                    NextStep::Retry => {
                        producer.context().retries(&failure);
                        producer.poll(APART);
                    }
                    NextStep::Abort => return Err(StepFailure::Abort(failure)),
                    NextStep::Unknown => return Err(StepFailure::Unknown(failure)),
                },
                _ => return Err(StepFailure::Unknown(failure)),
            }
        }
    }

    /// Aborts; repeats the call until the broker answers.
    fn abort(&self, producer: &Producer, what: &str) -> Result<(), TransactionFailure> {
        loop {
            // The abort only ends once the outcome of every record sent has been polled.
            let Err(error) = producer.abort_transaction(APART) else { return Ok(()) };
            producer.poll(APART);
            let failure = KafkaFailure::from_error(&error, what);
            self.owned.check().map_err(TransactionFailure::Unknown)?;
            match &error {
                KafkaError::Transaction(error) if matches!(next_step(error), NextStep::Retry) => {
                    producer.context().retries(&failure);
                }
                _ if matches!(failure, KafkaFailure::Fenced(_)) => {
                    return Err(TransactionFailure::Fenced(failure));
                }
                _ => return Err(TransactionFailure::Unknown(failure)),
            }
        }
    }

    /// Logs the failure and pauses before another attempt.
    fn wait(&self, failure: &KafkaFailure) {
        if let Some(producer) = &self.producer {
            producer.context().retries(failure);
            producer.poll(APART);
        }
    }
}

/// Waits until the broker has acknowledged every record. The client's own `flush` polls in steps of 100 ms,
/// which would be the least duration of a commit: 102 ms with 10 deltas, against 10 ms this way (November
/// 2026).
fn drain(producer: &Producer) -> Result<(), KafkaError> {
    let clock = SystemClock::start();
    loop {
        match producer.flush(Duration::ZERO) {
            Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut)) if clock.now() < CALL => {}
            ended => return ended,
        }
        // An answer takes some milliseconds. Later on, poll less often.
        producer.poll(if clock.now() < SOON { STEP } else { APART });
    }
}

/// How a failed transaction ends.
enum StepFailure {
    /// With an abort.
    Abort(KafkaFailure),
    /// With an unknown outcome.
    Unknown(KafkaFailure),
}

/// What to do after a failed call of the library.
enum NextStep {
    Retry,
    Abort,
    Unknown,
}

fn next_step(error: &RDKafkaError) -> NextStep {
    if error.is_fatal() {
        NextStep::Unknown
    } else if error.txn_requires_abort() {
        NextStep::Abort
    } else if error.is_retriable() {
        NextStep::Retry
    } else {
        NextStep::Unknown
    }
}

/// The first bytes, and the length if that is not all of them.
fn cut(whole: Option<&[u8]>, most: usize) -> (Option<&[u8]>, Option<u64>) {
    let length = whole.filter(|whole| whole.len() > most).map(|whole| whole.len() as u64);
    (whole.map(|whole| &whole[..whole.len().min(most)]), length)
}

/// Passes a record to the client; waits while its queue is full.
fn send(
    producer: &Producer,
    owned: &OwnedTopics,
    mut record: BaseRecord<'_, [u8], [u8]>,
) -> Result<(), StepFailure> {
    loop {
        match producer.send(record) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), refused)) => {
                owned.check().map_err(StepFailure::Unknown)?;
                record = refused;
                producer.poll(STEP);
            }
            Err((error, refused)) => {
                let failure = KafkaFailure::from_error(&error, &format!("topic \"{}\"", refused.topic));
                return Err(match failure {
                    fenced @ KafkaFailure::Fenced(_) => StepFailure::Unknown(fenced),
                    other => StepFailure::Abort(other),
                });
            }
        }
    }
}
