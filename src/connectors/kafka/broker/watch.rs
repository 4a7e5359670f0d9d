//! Errors and log lines of a client: counted, and logged at most once a second for each kind.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::ProducerContext;

use super::failure::{KafkaFailure, code_of};
use dupflow_core::time::{Clock, SystemClock};

/// Least time between two log lines of the same kind.
const APART: Duration = Duration::from_secs(1);

/// The context of a client.
#[derive(Debug)]
pub struct Watch {
    /// Name of the client's task, in messages.
    what: String,
    clock: SystemClock,
    errors_seen: Mutex<ErrorLog>,
}

#[derive(Debug, Default)]
struct ErrorLog {
    /// Number of errors by name.
    errors: BTreeMap<String, u64>,
    /// By kind: when a line was last logged, and how many have been left out since.
    lines: BTreeMap<String, (Duration, u64)>,
    /// The last error, with the client's own message.
    last: Option<(RDKafkaErrorCode, String)>,
    /// The first failed delivery since the last [`Watch::undelivered`].
    undelivered: Option<KafkaFailure>,
}

impl ErrorLog {
    /// If a line of this kind may be logged, how many have been left out before it.
    fn due(&mut self, kind: &str, now: Duration) -> Option<u64> {
        match self.lines.get_mut(kind) {
            Some((last, left_out)) if now < *last + APART => {
                *left_out += 1;
                None
            }
            Some((last, left_out)) => {
                *last = now;
                Some(std::mem::take(left_out))
            }
            None => {
                self.lines.insert(kind.to_owned(), (now, 0));
                Some(0)
            }
        }
    }
}

impl Watch {
    /// Context of a client for `what`.
    pub(super) fn new(what: &str) -> Self {
        Self { what: what.to_owned(), clock: SystemClock::start(), errors_seen: Mutex::default() }
    }

    /// Number of errors by name.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        self.errors_seen.lock().errors.clone()
    }

    /// The class of the last error, if there was one. The client itself retries after every error.
    pub fn last(&self) -> Option<KafkaFailure> {
        let (code, words) = self.errors_seen.lock().last.clone()?;
        let of = KafkaFailure::from_code(code, &self.what);
        Some(match of {
            KafkaFailure::Retriable(line) => KafkaFailure::Retriable(format!("{line}: {words}")),
            KafkaFailure::Fatal(line) => KafkaFailure::Fatal(format!("{line}: {words}")),
            other => other,
        })
    }

    /// Takes the first failed delivery since the last call.
    pub fn undelivered(&self) -> Option<KafkaFailure> {
        self.errors_seen.lock().undelivered.take()
    }

    /// Counts and logs a retry like an error.
    pub fn retries(&self, failure: &KafkaFailure) {
        self.note("retry", &failure.to_string());
    }

    fn note(&self, kind: &str, line: &str) {
        let now = self.clock.now();
        let due = {
            let mut errors_seen = self.errors_seen.lock();
            *errors_seen.errors.entry(kind.to_owned()).or_default() += 1;
            errors_seen.due(kind, now)
        };
        match due {
            Some(0) => tracing::warn!("kafka: {line}"),
            Some(left_out) => tracing::warn!(left_out, "kafka: {line}"),
            None => {}
        }
    }
}

impl ClientContext for Watch {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        let due = self.errors_seen.lock().due(&format!("log {facility}"), self.clock.now());
        let Some(left_out) = due else { return };
        match level {
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error
            | RDKafkaLogLevel::Warning => {
                tracing::warn!(facility, left_out, "kafka: {}: {message}", self.what);
            }
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
                tracing::info!(facility, left_out, "kafka: {}: {message}", self.what);
            }
            RDKafkaLogLevel::Debug => tracing::debug!(facility, "kafka: {}: {message}", self.what),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let Some(code) = code_of(&error) else { return };
        // The end of a partition is not an error.
        if code == RDKafkaErrorCode::PartitionEOF {
            return;
        }
        // `AllBrokersDown` follows the errors of each broker, and has less information.
        if code != RDKafkaErrorCode::AllBrokersDown || self.last().is_none() {
            self.errors_seen.lock().last = Some((code, reason.to_owned()));
        }
        self.note(&format!("{code:?}"), &format!("{}: {reason}", self.what));
    }
}

impl ConsumerContext for Watch {}

impl ProducerContext for Watch {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, message)) = result {
            let failure = KafkaFailure::from_error(error, &format!("topic \"{}\"", message.topic()));
            self.errors_seen.lock().undelivered.get_or_insert(failure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_kind_are_a_second_apart() {
        let mut errors_seen = ErrorLog::default();
        let ms = Duration::from_millis;
        let due: Vec<_> = [0, 10, 999, 1000, 1500, 2000].map(|now| errors_seen.due("a", ms(now))).into();
        assert_eq!(due, [Some(0), None, None, Some(2), None, Some(1)]);
        assert_eq!(errors_seen.due("b", ms(2001)), Some(0));
    }

    #[test]
    fn errors_are_counted_and_the_last_one_is_kept() {
        let watch = Watch::new("topic \"t\"");
        assert_eq!(watch.last(), None);
        watch.error(KafkaError::Global(RDKafkaErrorCode::PartitionEOF), "end");
        for _ in 0..3 {
            watch.error(KafkaError::Global(RDKafkaErrorCode::Authentication), "no such user");
        }
        watch.error(KafkaError::Global(RDKafkaErrorCode::AllBrokersDown), "1/1 brokers are down");
        let last = watch.last().unwrap();
        assert!(matches!(&last, KafkaFailure::Fatal(line) if line.ends_with("no such user")), "{last}");
        let errors = [("AllBrokersDown".to_owned(), 1), ("Authentication".to_owned(), 3)];
        assert_eq!(watch.errors(), BTreeMap::from(errors));
    }
}
