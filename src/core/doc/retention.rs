//! Retention: the rule by which documents of an unbounded input expire.
//!
//! In: events and a [`Retention`]. Out: the live documents. Ages are in seconds of event time (`ts`).
//!
//! Rule: a document is alive after an epoch if its last event (by position) is an upsert, and
//!
//! - by age: it has no `ts`, or `ts >= clock - max_age`. Times are decimals, of the fewest digits that have
//!   the same double, so that this is exact to the microsecond. The clock is the greatest `ts` of all events,
//!   deletes included, of the epochs up to this one; or, by the wall clock, the time at which the epoch was
//!   read;
//! - by number: fewer than `max_documents` ids have a greater *key*. The key of an id is the greatest (`ts`,
//!   position) of all its events, deletes included; an event without `ts` is less than all others. For a
//!   topic the time of the record is used in place of `ts`. That time also decides the partition in which an
//!   id lives, so the key and the partition are forgotten together.
//!
//! **Both rules are functions of the events, for any cut into epochs.** The clock is a maximum over all
//! events, and it is compared with the last event of a document; neither depends on the epochs. A key is a
//! maximum too: it never decreases, and the number of ids never decreases. So an id with `max_documents`
//! greater keys has them forever, unless a new event raises its own key, and that event replaces the
//! document. Therefore documents expired by number can be forgotten.
//!
//! A deleted id must be stored while its key is among the greatest: it keeps its *slot*, without a sketch,
//! until newer ids have taken all slots. (If its slot were freed, a document that had expired would have to
//! be alive again.) So after each epoch the slots are the `max_documents` ids with the greatest keys. They
//! are computed from the slots before and the ids of the epoch; any other id already had `max_documents`
//! greater keys.
//!
//! If both rules are set, a document that has expired by age keeps its slot like a deleted one, since a
//! document without `ts`, which never expires by age, may have a smaller key.
//!
//! Not done: counting bytes; restoring documents that a run with another retention has forgotten.

use std::time::Duration;

use crate::time::{RetentionTime, UnixTime};

/// The rule by which documents expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Greatest difference of the clock and `ts`, inclusive; `None` = any age.
    pub max_age: Option<Duration>,
    /// Number of ids that have slots, 1 or more; `None` = any number.
    pub max_documents: Option<u64>,
    /// The clock that age is measured by.
    pub clock: RetentionClock,
}

/// The clock that the age of a document is measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetentionClock {
    /// The greatest `ts` so far. It does not advance without events.
    #[default]
    Event,
    /// The time of day.
    Wall,
}

impl RetentionClock {
    /// All clocks.
    pub const ALL: [Self; 2] = [Self::Event, Self::Wall];

    /// The name in configuration.
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
    pub fn read(self, time: RetentionTime) -> Option<UnixTime> {
        match (self, time) {
            (Self::Event, RetentionTime::Event(time)) | (Self::Wall, RetentionTime::Wall(time)) => Some(time),
            _ => None,
        }
    }
}

impl Retention {
    /// The least `ts`, inclusive, of a document that has not expired at this time of the clock; `None` if
    /// documents do not expire by age.
    pub fn oldest(&self, clock: Option<UnixTime>) -> Option<f64> {
        let (clock, age) = (clock?.seconds(), self.max_age?);
        // A clock of more digits is next to 0, where doubles are exact enough.
        Some(before(clock, age).unwrap_or(clock - age.as_secs_f64()))
    }

    /// Whether expiry depends on the times of documents.
    pub fn needs_time(&self) -> bool {
        self.max_age.is_some() || self.max_documents.is_some()
    }

    /// Whether documents expire by this clock.
    pub fn follows(&self, clock: RetentionClock) -> bool {
        self.max_age.is_some() && self.clock == clock
    }
}

/// The decimal of a double minus an age, rounded once: 30.1 - 30 s is 0.1. `None` if it has too many digits.
fn before(seconds: f64, age: Duration) -> Option<f64> {
    const OF_AGE: usize = 9;
    let typed = seconds.to_string();
    let (whole, decimals) = typed.split_once('.').unwrap_or((&typed, ""));
    let scale = decimals.len().max(OF_AGE);
    let scaled = |digits: i128, places: usize| {
        digits.checked_mul(10_i128.checked_pow(u32::try_from(scale - places).ok()?)?)
    };
    let at = scaled(format!("{whole}{decimals}").parse().ok()?, decimals.len())?;
    let age = scaled(i128::try_from(age.as_nanos()).ok()?, OF_AGE)?;
    format!("{}e-{scale}", at.checked_sub(age)?).parse().ok()
}

/// Parses an age: a whole number of days, hours, minutes or seconds, 1 or more, as in `30d`, `12h`, `5m` or
/// `90s`. `None` if the text is not an age, or above 100 years.
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
    use crate::hash::mix;

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

    /// Times of up to six decimals, in whole numbers of their unit: those at the age are alive, and no other.
    #[test]
    fn ages_of_fractions_are_exact() {
        for seed in 0..20_000_u64 {
            let number = |salt: u64, most: u64| mix(seed ^ salt << 40) % most;
            let pick = |salt, of: &[u64]| of[usize::try_from(number(salt, of.len() as u64)).unwrap()];
            let decimals = usize::try_from(number(1, 7)).unwrap();
            let unit = pick(1, &[1, 10, 100, 1000, 10_000, 100_000, 1_000_000]);
            let age = pick(2, &[1, 30, 86_400, 2_592_000]);
            let first = number(3, pick(4, &[100, 1_800_000_000, 4_000_000_000]));
            let second = first * unit + number(5, unit);
            let time = |units: u64| -> f64 {
                format!("{}.{:0decimals$}", units / unit, units % unit).trim_end_matches('.').parse().unwrap()
            };
            let retention = Retention { max_age: Some(Duration::from_secs(age)), ..Retention::default() };
            let oldest = retention.oldest(UnixTime::new(time(second + age * unit))).unwrap();
            for ts in [second.saturating_sub(1), second, second + 1] {
                assert_eq!(time(ts) >= oldest, ts >= second, "{} {oldest}, age {age}", time(ts));
            }
        }
    }

    #[test]
    fn ages_are_taken_from_every_clock() {
        let retention = Retention { max_age: Some(Duration::from_nanos(1)), ..Retention::default() };
        let oldest = |seconds| retention.oldest(UnixTime::new(seconds)).unwrap();
        assert_eq!([0.0, 1e-9, 1.0].map(|at| Some(oldest(at))), [-1e-9, 0.0, 0.999_999_999].map(Some));
        for clock in [f64::MIN_POSITIVE, 1e-300, UnixTime::END.next_down()] {
            assert!((oldest(clock) - clock).abs() < 1e-6, "{clock}");
        }
    }

    #[test]
    fn a_clock_reads_its_own_times_only() {
        let time = UnixTime::new(7.0).unwrap();
        for clock in RetentionClock::ALL {
            for other in RetentionClock::ALL {
                assert_eq!(other.read(clock.at(time)), Some(time).filter(|_| clock == other));
            }
        }
    }
}
