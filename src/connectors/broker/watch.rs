//! What a client says while it works: counted, and logged at most once a second for each kind.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::ProducerContext;

use super::{Failure, code_of};
use dupflow_core::time::{Clock, SystemClock};

/// The least time between two lines of one kind.
const APART: Duration = Duration::from_secs(1);

/// The context of a client.
#[derive(Debug)]
pub struct Watch {
    /// What the client is for, in messages.
    what: String,
    clock: SystemClock,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    /// Errors so far, by name.
    errors: BTreeMap<String, u64>,
    /// When a line of a kind was last logged, and how many have been left out since.
    lines: BTreeMap<String, (Duration, u64)>,
    /// The last error, with the client's own words.
    last: Option<(RDKafkaErrorCode, String)>,
    /// The first delivery that failed since it was last asked.
    undelivered: Option<Failure>,
}

impl Said {
    /// Whether a line of this kind is due, and how many before it were not.
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
    /// Watches a client that is for `what`.
    pub(super) fn new(what: &str) -> Self {
        Self { what: what.to_owned(), clock: SystemClock::start(), said: Mutex::default() }
    }

    /// Errors so far, by name.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        self.said.lock().errors.clone()
    }

    /// What the last error means, if there was one: the client goes on trying whatever it is.
    pub fn last(&self) -> Option<Failure> {
        let (code, words) = self.said.lock().last.clone()?;
        let of = Failure::of_code(code, &self.what);
        Some(match of {
            Failure::Retriable(line) => Failure::Retriable(format!("{line}: {words}")),
            Failure::Fatal(line) => Failure::Fatal(format!("{line}: {words}")),
            other => other,
        })
    }

    /// The first delivery that has failed since this was last called.
    pub fn undelivered(&self) -> Option<Failure> {
        self.said.lock().undelivered.take()
    }

    /// Notes that something is tried again, which is logged like an error.
    pub fn retries(&self, failure: &Failure) {
        self.note("retry", &failure.to_string());
    }

    fn note(&self, kind: &str, line: &str) {
        let now = self.clock.now();
        let due = {
            let mut said = self.said.lock();
            *said.errors.entry(kind.to_owned()).or_default() += 1;
            said.due(kind, now)
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
        let due = self.said.lock().due(&format!("log {facility}"), self.clock.now());
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
        // The end of a partition is no error.
        if code == RDKafkaErrorCode::PartitionEOF {
            return;
        }
        // That all brokers are away follows from what was said of each, and says less.
        if code != RDKafkaErrorCode::AllBrokersDown || self.last().is_none() {
            self.said.lock().last = Some((code, reason.to_owned()));
        }
        self.note(&format!("{code:?}"), &format!("{}: {reason}", self.what));
    }
}

impl ConsumerContext for Watch {}

impl ProducerContext for Watch {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, message)) = result {
            let failure = Failure::of(error, &format!("topic \"{}\"", message.topic()));
            self.said.lock().undelivered.get_or_insert(failure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_kind_are_a_second_apart() {
        let mut said = Said::default();
        let ms = Duration::from_millis;
        let due: Vec<_> = [0, 10, 999, 1000, 1500, 2000].map(|now| said.due("a", ms(now))).into();
        assert_eq!(due, [Some(0), None, None, Some(2), None, Some(1)]);
        assert_eq!(said.due("b", ms(2001)), Some(0));
    }

    #[test]
    fn errors_are_counted_and_the_last_one_is_told() {
        let watch = Watch::new("topic \"t\"");
        assert_eq!(watch.last(), None);
        watch.error(KafkaError::Global(RDKafkaErrorCode::PartitionEOF), "end");
        for _ in 0..3 {
            watch.error(KafkaError::Global(RDKafkaErrorCode::Authentication), "no such user");
        }
        watch.error(KafkaError::Global(RDKafkaErrorCode::AllBrokersDown), "1/1 brokers are down");
        let last = watch.last().unwrap();
        assert!(matches!(&last, Failure::Fatal(line) if line.ends_with("no such user")), "{last}");
        let errors = [("AllBrokersDown".to_owned(), 1), ("Authentication".to_owned(), 3)];
        assert_eq!(watch.errors(), BTreeMap::from(errors));
    }
}
