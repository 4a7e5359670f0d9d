//! Time: epochs and the progress of a run (logical time), and clocks (wall-clock time).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The number of an epoch, from 1. An epoch is a piece of the input between two cuts: the unit of output,
/// commit and replay.
pub type Epoch = u64;

/// An offset for each partition: usually that of the next record to read.
pub type Offsets = BTreeMap<u32, u64>;

/// The progress of a closed epoch: how far each partition had been read when it ended.
///
/// The dataflow collects it together with the deltas, so it covers all workers and processes. A destination
/// that stores it with the deltas allows a restart: the records before `next` are in the deltas up to this
/// epoch, later records are not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The epoch.
    pub epoch: Epoch,
    /// For every partition read since the run began: the offset after its last record up to this epoch,
    /// invalid records and gaps included. Never decreases from one epoch to the next.
    pub next: Offsets,
    /// Under live weights, the table of document frequencies in force after the epoch; `None` before the
    /// first one.
    pub table: Option<TableInForce>,
    /// If documents expire by age, the clock of [retention](crate::doc::retention) after the epoch; `None`
    /// before the first event with a time. Never decreases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<RetentionTime>,
    /// If the input is a topic, the last record read of each partition, if one has been read. Progress of
    /// earlier versions does not have it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub last: BTreeMap<u32, LastRecord>,
}

/// A record of a topic that was read, as far as it is needed to recognise it: a topic that was restored from
/// a copy may hold another record at the same offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LastRecord {
    /// Its offset.
    pub offset: u64,
    /// A hash of its key, its value and its time.
    pub digest: u64,
}

/// A time in unix seconds: 0 or more, before the year 2100.
///
/// Ordered by time. Serialized as text, so that it is read back exactly.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct UnixTime(f64);

impl UnixTime {
    /// The first second of the year 2100, exclusive. A greater number is usually a time in milliseconds.
    pub const END: f64 = 4_102_444_800.0;

    /// A time of these unix seconds; `None` if they are outside the range.
    pub fn new(seconds: f64) -> Option<Self> {
        // The sum makes a negative zero positive, so that equal times have equal bits.
        (0.0..Self::END).contains(&seconds).then_some(Self(seconds + 0.0))
    }

    /// Unix seconds.
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

/// A time of a retention clock, with the kind of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionTime {
    /// The greatest `ts` of the events.
    Event(UnixTime),
    /// The time of day.
    Wall(UnixTime),
}

/// When an epoch was: in the time of its events, and in that of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EpochTimes {
    /// The greatest time of its events; `None` if none of them has a time.
    pub event: Option<UnixTime>,
    /// When its commit began, in unix seconds.
    pub committed: f64,
}

/// The identity of the table of document frequencies in force. A restart with the same table computes the
/// same weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableInForce {
    /// Number of the table, from 1, in the order of creation.
    pub number: u64,
    /// N, the number of documents with a token when the table was created.
    pub documents: u64,
    /// Hash of the table's contents.
    pub fingerprint: u64,
}

/// The times of an epoch in whole unix seconds, rounded down: eight bytes, for everything that is stored by
/// the million. Both may be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochSeconds {
    committed: u32,
    event: u32,
}

impl EpochSeconds {
    const UNKNOWN: u32 = u32::MAX;

    /// Of an epoch whose times are not known.
    pub const NONE: Self = Self { committed: Self::UNKNOWN, event: Self::UNKNOWN };

    /// The time of the commit.
    pub fn committed(self) -> Option<u64> {
        Some(self.committed).filter(|time| *time != Self::UNKNOWN).map(u64::from)
    }

    /// The greatest time of the events.
    pub fn event(self) -> Option<u64> {
        Some(self.event).filter(|time| *time != Self::UNKNOWN).map(u64::from)
    }

    /// As stored.
    pub fn to_bytes(self) -> [u8; 8] {
        (u64::from(self.committed) | u64::from(self.event) << 32).to_le_bytes()
    }

    /// As [`Self::to_bytes`] wrote them.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        let [committed, event] = bytes.as_chunks::<4>().0 else { unreachable!("eight bytes") };
        Self { committed: u32::from_le_bytes(*committed), event: u32::from_le_bytes(*event) }
    }
}

impl From<EpochTimes> for EpochSeconds {
    fn from(times: EpochTimes) -> Self {
        let seconds = |time: UnixTime| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "before 2100")]
            let seconds = time.seconds() as u32;
            seconds
        };
        Self {
            committed: UnixTime::new(times.committed).map_or(Self::UNKNOWN, seconds),
            event: times.event.map_or(Self::UNKNOWN, seconds),
        }
    }
}

/// The first live epoch of a run. In earlier epochs the run repeats input that an earlier run has read, whose
/// deltas are in the output already.
///
/// Set once, before the first live epoch can close.
#[derive(Debug, Default)]
pub struct LiveFrom(AtomicU64);

impl LiveFrom {
    /// Live from the beginning.
    pub fn beginning() -> Self {
        Self(AtomicU64::new(1))
    }

    /// Sets the first live epoch, 1 or more.
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

/// A source of wall-clock time. The rest of the program reads time only through this trait.
pub trait Clock: Send + Sync {
    /// Time since the clock was created; never decreases.
    fn now(&self) -> Duration;

    /// The time of day, in unix seconds. It may decrease.
    fn unix(&self) -> f64;
}

/// The machine's time of day in unix seconds, for display and logs. It may decrease, so no decision may
/// depend on it.
#[expect(clippy::disallowed_methods, reason = "the one place where the time of day is read")]
pub fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The machine's time of day in milliseconds. It may decrease; decisions that depend on it must be safe then.
#[expect(clippy::disallowed_methods, reason = "the one place where the time of day is read")]
pub fn unix_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// A clock that starts at zero now.
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

    /// The progress in a mark of an older version.
    #[test]
    fn progress_without_a_clock_has_none() {
        let progress: Progress =
            serde_json::from_str("{\"epoch\":3,\"next\":{\"0\":5},\"table\":null}").unwrap();
        assert_eq!(progress, Progress { epoch: 3, next: [(0, 5)].into(), ..Progress::default() });
        let written = serde_json::to_string(&progress).unwrap();
        assert!(!written.contains("clock") && !written.contains("last"), "{written}");
    }
}
