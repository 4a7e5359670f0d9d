//! The effect of a retention: the rule as text, and the number of live documents at a rate of events.
//!
//! Live documents = rate × maximum age, limited by the maximum number. This assumes that every event inserts
//! a new document, and that events arrive as fast as their times say. Bytes of state are counted for what is
//! [kept](dupflow_engine::dataflow) of a document, before compression.

use std::fmt::{self, Display, Formatter};

use indicatif::{BinaryBytes, HumanCount};
use serde::Serialize;

use super::memory::{ASSUMED_FEATURES, stored_features};
use crate::config::Plan;
use crate::plural::count;
use dupflow_core::doc::retention::{Retention, RetentionClock};

/// Bytes stored per document besides its content: lengths, and the position, time and kind of its event.
const KEPT_BYTES: u64 = 27;
/// Bytes stored per term with its count.
const KEPT_TERM_BYTES: usize = 12;

/// How long documents stay, and how many that leaves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RetentionReport {
    pub(super) max_age_seconds: Option<u64>,
    pub(super) max_documents: Option<u64>,
    pub(super) clock: &'static str,
    /// Events per second, if given.
    pub(super) rate: Option<f64>,
    /// Live documents at that rate.
    pub(super) documents: Option<u64>,
    /// Bytes of state for them, without their ids.
    pub(super) state_bytes: Option<u64>,
    #[serde(skip)]
    retention: Retention,
}

impl RetentionReport {
    /// Live documents at the rate of events, if one was given.
    pub fn documents(&self) -> Option<u64> {
        self.documents
    }

    /// The report for a plan at this many events per second, above 0; `None` if nothing expires.
    pub fn for_plan(plan: &Plan, rate: Option<f64>) -> Option<Self> {
        let Retention { max_age, max_documents, clock } = plan.retention;
        if max_age.is_none() && max_documents.is_none() {
            return None;
        }
        let documents = alive(&plan.retention, rate);
        Some(Self {
            max_age_seconds: max_age.map(|age| age.as_secs()),
            max_documents,
            clock: clock.name(),
            rate,
            documents,
            state_bytes: documents.map(|documents| documents.saturating_mul(kept_bytes(plan))),
            retention: plan.retention,
        })
    }
}

/// Live documents at a rate, limited by the maximum number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of documents is positive, and one that is too great becomes the greatest"
)]
fn alive(retention: &Retention, rate: Option<f64>) -> Option<u64> {
    let by_age = rate.zip(retention.max_age).map(|(rate, age)| (rate * age.as_secs_f64()).ceil() as u64);
    by_age.into_iter().chain(retention.max_documents).min()
}

/// Bytes stored per document.
fn kept_bytes(plan: &Plan) -> u64 {
    let content = match plan.scheme.live() {
        Some(_) => ASSUMED_FEATURES * KEPT_TERM_BYTES,
        None => 8 * (plan.scheme.words() + stored_features(plan)),
    };
    KEPT_BYTES + content as u64
}

impl Display for RetentionReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut line = "retention ";
        if let Some(age) = self.max_age_seconds {
            let clock = match self.retention.clock {
                RetentionClock::Event => "the greatest ts so far; without events nothing expires",
                RetentionClock::Wall => {
                    "the time of day at which an epoch is read; a replay expires what is old today"
                }
            };
            let age = match age {
                days if days > 0 && days % 86_400 == 0 => count(days / 86_400, "day"),
                seconds => count(seconds, "second"),
            };
            writeln!(f, "{line}a document expires when its ts is more than {age} before the clock")?;
            line = "          ";
            writeln!(f, "{line}the clock: {clock}")?;
        }
        if let Some(most) = self.max_documents {
            writeln!(f, "{line}the ids with the {} newest events stay, deleted ones too", HumanCount(most))?;
        }
        let Some(documents) = self.documents else {
            return writeln!(f, "          how many documents that is depends on how many come: see --rate");
        };
        let rate = self.rate.map_or(String::new(), |rate| format!(" at {rate} events a second"));
        let (documents, state) =
            (count(documents, "document"), BinaryBytes(self.state_bytes.unwrap_or_default()));
        writeln!(f, "          {documents} alive at most{rate}; {state} of state, before compression")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retained(settings: &[&str], rate: Option<f64>) -> Option<RetentionReport> {
        let settings: Vec<_> = settings.iter().map(|&typed| typed.to_owned()).collect();
        RetentionReport::for_plan(&Plan::load("minhash", &settings).unwrap(), rate)
    }

    #[test]
    fn documents_alive_are_the_rate_times_the_age_or_the_limit() {
        assert_eq!(retained(&[], Some(5.0)), None);
        for (settings, rate, documents) in [
            (&["retention.max_age=1h"][..], Some(2.5), Some(9000)),
            (&["retention.max_age=1h"], None, None),
            (&["retention.max_age=1h", "retention.max_documents=100"], Some(2.5), Some(100)),
            (&["retention.max_age=1h", "retention.max_documents=10000"], Some(2.5), Some(9000)),
            (&["retention.max_documents=100"], None, Some(100)),
            (&["retention.max_age=36500d"], Some(1e300), Some(u64::MAX)),
        ] {
            let report = retained(settings, rate).unwrap();
            assert_eq!(report.documents, documents, "{settings:?}");
            assert_eq!(report.to_string().contains("--rate"), documents.is_none(), "{report}");
        }
    }

    #[test]
    fn the_rule_as_text() {
        let report = retained(&["retention.max_age=30d", "retention.clock=wall"], Some(10.0)).unwrap();
        assert_eq!(
            report.to_string(),
            "\
retention a document expires when its ts is more than 30 days before the clock
          the clock: the time of day at which an epoch is read; a replay expires what is old today
          25,920,000 documents alive at most at 10 events a second; 6.06 GiB of state, before compression
"
        );
    }
}
