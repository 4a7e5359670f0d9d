//! Logical and wall-clock time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The number of an epoch, from 1: a cut of the input; the unit of output, commit and replay.
pub type Epoch = u64;

/// Of each partition, an offset: mostly that of the next record, before which all has been read.
pub type Offsets = BTreeMap<u32, u64>;

/// What a closed epoch stands for: how far each partition had been read when it ended.
///
/// Gathered by the dataflow where the deltas are gathered, so that it covers all workers and processes.
/// Whoever stores it beside the deltas can go on from there: what came before `next` is in the deltas up to
/// this epoch, the rest is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The epoch.
    pub epoch: Epoch,
    /// Of every partition that was read since the run began, up to this epoch: the offset after its last
    /// record, bad records and gaps included. Never goes back from one epoch to the next.
    pub next: Offsets,
    /// Under live weights, the table of document frequencies in force after the epoch; `None` before the
    /// first one.
    pub table: Option<TableInForce>,
    /// Where documents expire by age, the clock of [retention](crate::retention) after the epoch; `None`
    /// before the first time. Never goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<RetentionTime>,
}

/// A time in unix seconds: 0 or more, before the year 2100.
///
/// Ordered by time. Written as text, so that it is read as it was.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct UnixTime(f64);

impl UnixTime {
    /// The first second of the year 2100, exclusive. What claims to be later is mostly a time in
    /// milliseconds.
    pub const END: f64 = 4_102_444_800.0;

    /// Takes a time; `None` if it is none.
    pub fn new(seconds: f64) -> Option<Self> {
        // The sum makes a negative zero positive, so that equal times have equal bits.
        (0.0..Self::END).contains(&seconds).then_some(Self(seconds + 0.0))
    }

    /// In seconds.
    pub fn seconds(self) -> f64 {
        self.0
    }
}

impl Eq for UnixTime {}

#[expect(clippy::derive_ord_xor_partial_ord, reason = "no time is a NaN")]
impl Ord for UnixTime {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl From<UnixTime> for String {
    fn from(time: UnixTime) -> Self {
        time.0.to_string()
    }
}

impl TryFrom<String> for UnixTime {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        let time = written.parse().ok().and_then(Self::new);
        time.ok_or_else(|| format!("expected unix seconds from 0 to before {}, got {written:?}", Self::END))
    }
}

/// The time of a clock of retention, and which clock that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionTime {
    /// The greatest `ts`.
    Event(UnixTime),
    /// The time of day.
    Wall(UnixTime),
}

/// A table of document frequencies in force, as it is remembered: with the same one, a restart weighs as the
/// run before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableInForce {
    /// From 1, in the order in which tables are made.
    pub number: u64,
    /// N, documents with a token, as it was made.
    pub documents: u64,
    /// Hash of its contents.
    pub fingerprint: u64,
}

/// From which epoch on a run is live. Before, it repeats what was read by an earlier run, and its deltas are
/// in the output already.
///
/// Set once, before any epoch from there on can close.
#[derive(Debug, Default)]
pub struct LiveFrom(AtomicU64);

impl LiveFrom {
    /// Live from the beginning.
    pub fn beginning() -> Self {
        Self(AtomicU64::new(1))
    }

    /// It is live from this epoch on, 1 or more.
    pub fn set(&self, epoch: Epoch) {
        self.0.store(epoch, Ordering::SeqCst);
    }

    /// The first live epoch, once it is known.
    pub fn get(&self) -> Option<Epoch> {
        Some(self.0.load(Ordering::SeqCst)).filter(|epoch| *epoch > 0)
    }

    /// Whether an epoch that closes is live.
    pub fn holds(&self, epoch: Epoch) -> bool {
        self.get().is_some_and(|live| live <= epoch)
    }
}

/// Where wall-clock time comes from; the one place that the rest of the program takes it from.
pub trait Clock: Send + Sync {
    /// Time since the clock was made; never goes back.
    fn now(&self) -> Duration;

    /// The time of day, in unix seconds. It may go back.
    fn unix(&self) -> f64;
}

/// The time of day in unix seconds, as the machine has it: for whoever reads it. Nothing is decided by it,
/// since it may go back.
#[expect(clippy::disallowed_methods, reason = "the one place where the time of day is read")]
pub fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The same in milliseconds. What is decided by it is on the safe side if it has gone back.
#[expect(clippy::disallowed_methods, reason = "the one place where the time of day is read")]
pub fn unix_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// Starts at zero now.
    #[expect(clippy::disallowed_methods, reason = "the one place where time is read")]
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn unix(&self) -> f64 {
        unix_seconds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_were_written_and_ordered() {
        let times = [0.0, 0.1 + 0.2, 1_700_000_000.123_456_7, 4_102_444_799.999_999_5];
        for pair in times.windows(2) {
            assert!(UnixTime::new(pair[0]) < UnixTime::new(pair[1]));
        }
        for seconds in times {
            let time = RetentionTime::Event(UnixTime::new(seconds).unwrap());
            let json = serde_json::to_string(&time).unwrap();
            assert_eq!(serde_json::from_str::<RetentionTime>(&json).unwrap(), time, "{json}");
        }
        assert_eq!(UnixTime::new(-0.0).unwrap().seconds().to_bits(), 0);
        for none in [f64::NAN, f64::INFINITY, -0.5, UnixTime::END, 1_700_000_000_000.0] {
            assert_eq!(UnixTime::new(none), None, "{none}");
        }
        assert!(serde_json::from_str::<UnixTime>("\"1e99\"").is_err());
    }

    /// A mark that an older version wrote.
    #[test]
    fn progress_without_a_clock_has_none() {
        let progress: Progress =
            serde_json::from_str("{\"epoch\":3,\"next\":{\"0\":5},\"table\":null}").unwrap();
        assert_eq!(progress, Progress { epoch: 3, next: [(0, 5)].into(), ..Progress::default() });
        assert!(!serde_json::to_string(&progress).unwrap().contains("clock"));
    }
}
