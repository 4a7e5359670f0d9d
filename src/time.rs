//! Logical and wall-clock time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The number of an epoch, from 1: a cut of the input; the unit of output, commit and replay.
pub type Epoch = u64;

/// Of each partition, an offset: mostly that of the next record, before which all has been read.
pub type Offsets = BTreeMap<u32, u64>;

/// What a closed epoch stands for: how far each partition had been read when it ended.
///
/// Gathered by the dataflow where the deltas are gathered, so that it covers all workers and processes. Whoever stores it
/// beside the deltas can go on from there: what came before `next` is in the deltas up to this epoch, the rest is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The epoch.
    pub epoch: Epoch,
    /// Of every partition that was read since the run began, up to this epoch: the offset after its last record, bad records
    /// and gaps included. Never goes back from one epoch to the next.
    pub next: Offsets,
    /// Under live weights, the table of document frequencies in force after the epoch; `None` before the first one.
    pub table: Option<TableInForce>,
}

/// A table of document frequencies in force, as it is remembered: with the same one, a restart weighs as the run before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableInForce {
    /// From 1, in the order in which tables are made.
    pub number: u64,
    /// N, documents with a token, as it was made.
    pub documents: u64,
    /// Hash of its contents.
    pub fingerprint: u64,
}

/// From which epoch on a run is live. Before, it repeats what was read by an earlier run, and its deltas are in the output already.
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
}
