//! Retention: which documents of a corpus that grows for ever are alive.
//!
//! Events and a rule -> the documents alive. Ages are in seconds of event time (`ts`), numbers in documents.
//!
//! The rule: a document is alive after an epoch if its last event (by position) is an upsert, and
//!
//! - by age: it has no `ts`, or `ts >= clock - max_age`, where the clock is the greatest `ts` of all events,
//!   deletes too, of the epochs up to this one; or, by the wall clock, the time at which the epoch was read;
//! - by number: fewer than `max_documents` ids have a greater *key*. The key of an id is the greatest (`ts`,
//!   position) of all its events, deletes too; no `ts` is before any. Of a topic it is the time of the record
//!   in place of `ts`, which decides there in which partition an id lives, so that both are forgotten
//!   together.
//!
//! **Both are functions of the events, whatever the cut.** The clock is a maximum, and what is compared with
//! it is the last event: neither knows how events came together in epochs. A key is a maximum too. It never
//! falls, and there are never fewer ids; so an id that has `max_documents` greater keys has them for ever,
//! unless an event lifts its own key, and then what it was before has no part in it. That is why what has
//! gone by number can be forgotten. What must not be forgotten is a deleted id while its key is among the
//! greatest: it keeps its *slot*, without a sketch, until newer ids have taken all slots. (If it gave its
//! slot back, a document that had gone would have to come back.) So the slots are the `max_documents` ids
//! with the greatest keys, after each epoch: the greatest of (the slots before and the ids of the epoch) are
//! the greatest of all, since what is not among them had greater ones before.
//!
//! Where both rules are set, what has expired by age keeps its slot like what was deleted: a document without
//! `ts`, which no clock expires, may stand behind it.
//!
//! What it does not do: count bytes; know of documents that another retention has forgotten.

use std::time::Duration;

use crate::time::{RetentionTime, UnixTime};

/// The rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// How far `ts` may lie behind the clock, inclusive; `None` = any age.
    pub max_age: Option<Duration>,
    /// How many ids have slots, 1 or more; `None` = any number.
    pub max_documents: Option<u64>,
    /// What age is measured by.
    pub clock: RetentionClock,
}

/// What the age of a document is measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetentionClock {
    /// The greatest `ts` so far. It stands still while no events come.
    #[default]
    Event,
    /// The time of day.
    Wall,
}

impl RetentionClock {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Event, Self::Wall];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Wall => "wall",
        }
    }

    /// This clock at a time.
    pub fn at(self, time: UnixTime) -> RetentionTime {
        match self {
            Self::Event => RetentionTime::Event(time),
            Self::Wall => RetentionTime::Wall(time),
        }
    }

    /// The time, if it is this clock's.
    pub fn of(self, time: RetentionTime) -> Option<UnixTime> {
        match (self, time) {
            (Self::Event, RetentionTime::Event(time)) | (Self::Wall, RetentionTime::Wall(time)) => Some(time),
            _ => None,
        }
    }
}

impl Retention {
    /// The `ts` before which, exclusive, documents are too old when the clock stands there; `None` if none
    /// is.
    pub fn oldest(&self, clock: Option<UnixTime>) -> Option<f64> {
        Some(clock?.seconds() - self.max_age?.as_secs_f64())
    }

    /// Whether the times of documents decide which of them leave.
    pub fn needs_time(&self) -> bool {
        self.max_age.is_some() || self.max_documents.is_some()
    }

    /// Whether documents leave by this clock.
    pub fn follows(&self, clock: RetentionClock) -> bool {
        self.max_age.is_some() && self.clock == clock
    }
}

/// An age as it is written: a whole number of days, hours, minutes or seconds, 1 or more, as in `30d`, `12h`,
/// `5m` or `90s`.
pub fn age(written: &str) -> Option<Duration> {
    let unit = match written.chars().next_back()? {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return None,
    };
    let number = written.get(..written.len() - 1)?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(unit)?;
    Some(Duration::from_secs(seconds)).filter(|age| (1..=MOST_AGE).contains(&age.as_secs()))
}

/// The greatest age, in seconds, inclusive: a hundred years of 365 days.
const MOST_AGE: u64 = 100 * 365 * 24 * 60 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_whole_numbers_of_a_unit() {
        for (written, seconds) in
            [("90s", 90), ("5m", 300), ("12h", 43_200), ("30d", 2_592_000), ("36500d", MOST_AGE)]
        {
            assert_eq!(age(written), Some(Duration::from_secs(seconds)), "{written}");
        }
        for written in
            ["", "d", "0d", "1", "1.5d", "-1d", "+1d", "1w", "36501d", "99999999999999999999d", "1日", "日"]
        {
            assert_eq!(age(written), None, "{written}");
        }
    }

    #[test]
    fn the_oldest_is_inclusive() {
        let at = |seconds| UnixTime::new(seconds);
        let retention = Retention { max_age: Some(Duration::from_secs(10)), ..Retention::default() };
        assert_eq!(retention.oldest(at(25.5)), Some(15.5));
        assert_eq!(retention.oldest(None), None);
        assert_eq!(Retention::default().oldest(at(25.5)), None);
    }

    #[test]
    fn a_clock_reads_its_own_times_only() {
        let time = UnixTime::new(7.0).unwrap();
        for clock in RetentionClock::ALL {
            for other in RetentionClock::ALL {
                assert_eq!(other.of(clock.at(time)), Some(time).filter(|_| clock == other));
            }
        }
    }
}
