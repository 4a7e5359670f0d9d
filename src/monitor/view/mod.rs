//! The view: a copy in memory of what the output holds, for the monitor: pairs, clusters, and the last
//! deltas.
//!
//! ```text
//!  committer ── send ──▶ ChangeQueue ── thread "view" ──▶ Pairs, Ring ◀── page, since, walk ── readers
//!                                                         History    ◀── clusters ──
//! ```
//!
//! Input: the deltas that the output held before the run, then those of each commit. Output: pages of pairs
//! and clusters, each of the end of one epoch. There are no pages until the run is live.
//!
//! The committer waits for no reader. It queues lists of deltas; the view's thread applies them, at most
//! [`PIECE`] deltas under one lock. The committer waits for this thread only while [`WAITING`] or more deltas
//! are queued. A reader holds a lock while it copies a page. Before that, it waits for the end of the epoch
//! that the thread is applying ([`View::end_of_epoch`]).
//!
//! Invariants: the pairs and clusters of a page are what all epochs up to its epoch accumulate to. The
//! `since` and `cause` of a pair are of the delta that added it with its present similarity. For a pair that
//! the output held before the run they are read from the stored history ([`history`]); without one `since` is
//! the output's last epoch at that time.
//!
//! Memory: see [`pairs`] and [`dupflow_core::cluster`]; 16 MiB of deltas.

mod apply;
mod feed;
pub(super) mod history;
pub(super) mod pairs;
pub(super) mod ranking;
pub(super) mod render;
pub(super) mod ring;
pub(super) mod walk;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, watch};
use tokio::time::timeout;

pub use feed::Feeder;
pub use history::{EachRecord, HistoryStore, KeptHistory};
pub(super) use pairs::{PairDetails, PairMap, RANGES};
pub(super) use ring::{DeltaPiece, Ring, StreamPosition};
pub(super) use walk::{Walk, WalkStep};

use crate::cluster_history::History;
use dupflow_core::cluster::Clusters;
use dupflow_core::doc::DocId;
use dupflow_core::pair::Pair;
use dupflow_core::time::Epoch;
use feed::ChangeQueue;
use history::{EndedPair, EndedPairs, HistoryInfo, ViewWork};
use pairs::PairQuery;
use ranking::Ranking;
use render::{Dropped, FrameRules};

/// Deltas applied under one lock, and pairs copied under one lock, at most, inclusive: about a millisecond.
const PIECE: usize = 1000;

/// Pairs ranked under one lock, at most, inclusive: about a millisecond.
const RANKED: usize = 10_000;

/// Queued deltas from which on the committer waits. About 100 bytes each.
const WAITING: usize = 1 << 18;

/// How long a page waits for the end of an epoch that is being applied. Millions of deltas take seconds.
const WHOLE: Duration = Duration::from_secs(10);

/// Bytes of deltas and their frames that are kept for readers that are slow or reconnect.
const RING_BYTES: usize = 16 << 20;

/// What a view holds of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewContents {
    /// Pairs, clusters and the last deltas.
    Pairs,
    /// The last deltas.
    Deltas,
    /// The last deltas, of documents of two sides.
    DeltasWithReference,
}

impl ViewContents {
    fn are_pairs(self) -> bool {
        self == Self::Pairs
    }
}

/// The contents of the output in memory. Any thread may read it. `src/monitor/view` describes how it works.
#[derive(Debug)]
pub struct View {
    run: Arc<str>,
    contents: ViewContents,
    state: Mutex<ViewState>,
    clusters: Mutex<History>,
    /// Write-locked while a change is applied, read-locked while a page is copied. The lock is fair, so
    /// neither side starves the other.
    gate: Arc<RwLock<()>>,
    /// Totals at the end of the last epoch.
    sums: Mutex<ViewTotals>,
    history: Mutex<HistoryInfo>,
    feed: ChangeQueue,
    /// [`PIECE`]; smaller in tests.
    piece: usize,
    /// The number of pieces applied so far; readers of the stream wait for it to change.
    applied: watch::Sender<u64>,
    /// The last epoch of the output when the run began.
    past: AtomicU64,
    /// Whether the view holds everything that the output held when the run became live.
    is_filled: AtomicBool,
    broken: AtomicBool,
}

/// Totals at the end of an epoch.
#[derive(Clone, Debug)]
pub(super) struct ViewTotals {
    pub(super) epoch: Epoch,
    pub(super) pairs: usize,
    /// Pairs by range of similarity.
    pub(super) by_similarity: [u64; RANGES],
    /// Clusters, giants included.
    pub(super) clusters: usize,
    pub(super) giants: usize,
}

impl Default for ViewTotals {
    fn default() -> Self {
        Self { epoch: 0, pairs: 0, by_similarity: [0; RANGES], clusters: 0, giants: 0 }
    }
}

/// While it exists, everything that is read is of the end of one epoch.
#[derive(Debug)]
#[must_use = "what is read without it may be of the middle of an epoch"]
pub(super) struct EpochGuard {
    _gate: OwnedRwLockReadGuard<()>,
}

#[derive(Debug, Default)]
struct ViewState {
    /// The last epoch that is applied completely.
    epoch: Epoch,
    /// Whether a part of the next epoch is applied.
    is_within: bool,
    pairs: PairMap,
    ended: EndedPairs,
    ring: Ring,
}

/// Why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewUnavailable {
    /// The deployment keeps no pairs in memory.
    #[error("this run keeps no pairs in memory (monitor.pairs = false, or there is a reference)")]
    NotKept,
    /// The thread of the view has failed.
    #[error("the view has failed; the log says why")]
    Broken,
    /// The view does not yet hold what the output holds.
    #[error("the run is not live yet: what its output holds is being gathered; /ready says how far it is")]
    NotFilled,
    /// The epoch that is being applied takes longer than the limit.
    #[error("an epoch of many deltas is being taken in")]
    Busy,
}

impl View {
    /// Starts the view of run `run`, with a thread of its own. `clusters` must be empty. The history is read
    /// from `kept` and stored there, if it is given and pairs are kept.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        run: String,
        contents: ViewContents,
        clusters: Clusters,
        kept: Option<KeptHistory>,
    ) -> std::io::Result<Arc<Self>> {
        let view = Arc::new(Self::new(run, contents, PIECE, RING_BYTES));
        view.history.lock().age = kept.as_ref().map(|kept| kept.age);
        let own = Arc::clone(&view);
        let work = ViewWork::new(clusters, kept.filter(|_| contents.are_pairs()));
        let work = move || own.apply_all(work);
        std::thread::Builder::new().name("view".to_owned()).spawn(work)?;
        Ok(view)
    }

    pub(super) fn new(run: String, contents: ViewContents, piece: usize, ring_bytes: usize) -> Self {
        Self {
            run: run.into(),
            contents,
            state: Mutex::new(ViewState { ring: Ring::new(ring_bytes), ..ViewState::default() }),
            clusters: Mutex::default(),
            gate: Arc::default(),
            sums: Mutex::default(),
            history: Mutex::default(),
            feed: ChangeQueue::new(WAITING),
            piece,
            applied: watch::Sender::new(0),
            past: AtomicU64::new(0),
            is_filled: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        }
    }

    /// The sender of its changes. The view's thread ends when it is dropped and the queue is empty.
    pub fn feeder(self: &Arc<Self>) -> Feeder {
        Feeder::new(Arc::clone(self))
    }

    /// Waits until all queued changes are applied, at most for this time.
    pub fn wait_until_applied(&self, most: Duration) {
        self.feed.wait_until_done(most);
    }

    /// The name of the run, which is part of every event id.
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// What its frames depend on.
    fn frame_rules(&self) -> FrameRules<'_> {
        let has_reference = self.contents == ViewContents::DeltasWithReference;
        FrameRules { run: &self.run, has_reference }
    }

    /// Whether pairs can be read.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn check_pairs(&self) -> Result<(), ViewUnavailable> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(ViewUnavailable::Broken);
        }
        if self.contents.are_pairs() { self.check_filled() } else { Err(ViewUnavailable::NotKept) }
    }

    /// Whether the run is live and the view holds what the output held then.
    ///
    /// # Errors
    /// If not.
    pub(super) fn check_filled(&self) -> Result<(), ViewUnavailable> {
        // A view that has failed is never filled. Requests that need no pairs are answered without it.
        if self.is_filled.load(Ordering::Acquire) || self.broken.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(ViewUnavailable::NotFilled)
        }
    }

    /// Waits for the end of the epoch that is being applied. No other is applied until the result is dropped.
    ///
    /// # Errors
    /// If it takes too long.
    pub(super) async fn end_of_epoch(&self) -> Result<EpochGuard, ViewUnavailable> {
        let gate = timeout(WHOLE, Arc::clone(&self.gate).read_owned()).await;
        gate.map(|gate| EpochGuard { _gate: gate }).map_err(|_| ViewUnavailable::Busy)
    }

    /// Totals at the end of the last epoch.
    pub(super) fn sums(&self) -> ViewTotals {
        self.sums.lock().clone()
    }

    /// Changes with every piece that is applied.
    pub(super) fn applied(&self) -> watch::Receiver<u64> {
        self.applied.subscribe()
    }

    /// The last epoch that is applied completely.
    pub(crate) fn epoch(&self) -> Epoch {
        self.state.lock().epoch
    }

    /// Reads the pairs under their lock, which blocks the view's thread. While an [`EpochGuard`] exists, the
    /// pairs are those at the end of an epoch.
    pub(super) fn pairs<T>(&self, read: impl FnOnce(Epoch, &PairMap) -> T) -> T {
        let state = self.state.lock();
        read(state.epoch, &state.pairs)
    }

    /// Adds all wanted pairs to a ranking, at most [`RANKED`] under one lock. The caller holds an
    /// [`EpochGuard`], so that the pairs do not change in between.
    pub(super) fn rank(&self, mut wanted: PairQuery, mut ranking: Ranking) -> Ranking {
        let mut step = |rest: &PairQuery| {
            self.pairs(|_, pairs| pairs.visit(rest, RANKED, |key, held| ranking.add(key, held)))
        };
        while let Some(last) = step(&wanted) {
            wanted.after = Some(last);
        }
        ranking
    }

    /// The present data of a pair, and how it ended if it has; with the epoch of both.
    pub(super) fn pair(&self, pair: &Pair<DocId>) -> (Epoch, Option<PairDetails>, Option<EndedPair>) {
        let state = self.state.lock();
        (state.epoch, state.pairs.get(pair.lo(), pair.hi()), state.ended.get(pair).copied())
    }

    /// Reads the clusters and their history in the same way.
    pub(super) fn clusters<T>(&self, read: impl FnOnce(&History) -> T) -> T {
        read(&self.clusters.lock())
    }

    /// The position after an epoch, named by this run or by the run that made it durable, if all later deltas
    /// are still held.
    pub(super) fn after(&self, run: &str, epoch: Epoch) -> Option<StreamPosition> {
        if !self.is_known(run) {
            return None;
        }
        let state = self.state.lock();
        let is_last = epoch == state.epoch && !state.is_within;
        if is_last { Some(state.ring.end()) } else { state.ring.after(epoch) }
    }

    /// The position from which on at most this many deltas are held, and the last epoch that is complete
    /// before it.
    pub(super) fn last(&self, deltas: u64) -> (StreamPosition, Epoch) {
        let state = self.state.lock();
        let place = state.ring.last(deltas);
        let first = state.ring.since(place, 1).and_then(|pieces| pieces.first().map(|piece| piece.epoch));
        (place, first.map_or(state.epoch, |epoch| epoch - 1))
    }

    /// Whether the epochs of this run lead to the present one.
    fn is_known(&self, run: &str) -> bool {
        *run == *self.run || self.history.lock().meta.runs.iter().any(|known| known == run)
    }

    /// What a reader misses after an event of this epoch.
    pub(super) fn missed(&self, run: &str, epoch: Epoch) -> Dropped {
        let is_known = self.is_known(run);
        let state = self.state.lock();
        let after = Some(epoch).filter(|epoch| is_known && *epoch <= state.epoch);
        Dropped { epochs: None, deltas: None, after, through: Some(state.epoch) }
    }

    /// What is known of the history: where it begins, and what is missing in it.
    pub(super) fn history(&self) -> HistoryInfo {
        self.history.lock().clone()
    }

    /// Pieces from a position on, of about `bytes` bytes in total. From a position within a piece, the
    /// rest of it is the first.
    ///
    /// # Errors
    /// If the first of them is no longer held: the first position that is, and the epoch before it.
    pub(super) fn since(
        &self,
        from: StreamPosition,
        bytes: usize,
    ) -> Result<Vec<Arc<DeltaPiece>>, (StreamPosition, Option<Epoch>)> {
        let state = self.state.lock();
        let pieces = state.ring.since(from, bytes);
        let mut pieces = pieces.ok_or_else(|| (state.ring.begin(), state.ring.begins_after))?;
        drop(state);
        if let Some(first) = pieces.first_mut().filter(|_| from.taken > 0) {
            *first = Arc::new(first.without_first(self.frame_rules(), from.taken));
        }
        Ok(pieces)
    }

    /// All deltas that are held.
    pub(super) fn held_deltas(&self) -> Vec<Arc<DeltaPiece>> {
        let state = self.state.lock();
        state.ring.since(state.ring.begin(), usize::MAX).unwrap_or_default()
    }

    /// A walk over all pairs, before its first step.
    pub(super) fn walk(&self) -> Walk {
        Walk::new(self.piece)
    }

    /// The next step of a walk over all pairs.
    pub(super) fn step(&self, walk: &mut Walk) -> WalkStep {
        let state = self.state.lock();
        walk.step(state.epoch, state.is_within, &state.pairs, &state.ring)
    }
}

/// A pair of documents with what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KnownPair {
    pub(super) a: DocId,
    pub(super) b: DocId,
    pub(super) held: PairDetails,
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
