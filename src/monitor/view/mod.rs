//! The view: what the output holds, as whoever watches may ask for it: pairs, clusters, the last deltas.
//!
//! ```text
//!  committer ── tell ──▶ News ── thread "view" ──▶ Pairs, Ring ◀── page, since, walk ── readers
//!                                                  History    ◀── clusters ──
//! ```
//!
//! In: what each commit made durable, and before that what the output held already. Out: pages of it, each of
//! the end of one epoch. Until the run is live the view is not whole, and has no page.
//!
//! The committer waits for no reader: it hands over lists of deltas, and a thread of the view's own takes
//! them in, at most [`PIECE`] deltas under one lock. Only where more than [`WAITING`] deltas wait does the
//! committer wait, for that thread. A reader holds a lock for as long as it takes to copy a page. A page
//! waits for the end of the epoch that is being taken in, in turn with that thread ([`View::whole`]); nothing
//! else does.
//!
//! Invariants: the pairs and the clusters of a page are those that all epochs up to the one that it names
//! accumulate to. A pair's `since` and `cause` are those of the delta that brought it with its present
//! similarity; of a pair that the output held before the run, `since` is the epoch at which the output stood.
//!
//! Memory: see [`pairs`] and [`dupflow_core::cluster`]; 16 MiB of deltas.

mod feed;
pub(super) mod pairs;
pub(super) mod render;
pub(super) mod ring;
pub(super) mod walk;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, watch};
use tokio::time::timeout;

pub use feed::Feeder;
pub(super) use pairs::{Held, Pairs, RANGES};
pub(super) use ring::{Piece, Place, Ring};
pub(super) use walk::{Step, Walk};

use dupflow_core::cluster::Clusters;
use dupflow_core::cluster::history::History;
use dupflow_core::doc::DocId;
use dupflow_core::pair::Delta;
use dupflow_core::time::{Epoch, unix_seconds};
use feed::{Feed, News};

/// Deltas that are taken in under one lock, and pairs that are told under one, at most, inclusive: a
/// millisecond.
const PIECE: usize = 1000;

/// Deltas that may wait to be taken in, exclusive; then the committer waits. About 100 bytes each.
const WAITING: usize = 1 << 18;

/// How long a page waits for the end of an epoch that is being taken in: millions of deltas take seconds.
const WHOLE: Duration = Duration::from_secs(10);

/// Bytes of deltas, with their frames, that are held for readers who fall behind or come back.
const RING_BYTES: usize = 16 << 20;

/// What the output holds. Any thread may ask; how it is kept, the docs of `monitor::view` say.
#[derive(Debug)]
pub struct View {
    run: String,
    /// Without pairs it is a stream of deltas, and nothing is held but the last ones.
    keeps_pairs: bool,
    state: Mutex<State>,
    clusters: Mutex<History>,
    /// Held for writing while something is taken in, for reading while a page is read: in turn, so that
    /// neither starves the other.
    gate: Arc<RwLock<()>>,
    /// What there is, as the last epoch has left it.
    sums: Mutex<Sums>,
    feed: Feed,
    /// [`PIECE`], or less in tests.
    piece: usize,
    /// Pieces taken in so far, for whoever waits for the next one.
    taken: watch::Sender<u64>,
    /// Where the output stood when the run began.
    past: AtomicU64,
    /// All is here that the output held when the run became live.
    is_filled: AtomicBool,
    broken: AtomicBool,
}

/// How much of everything there is after an epoch.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub(super) epoch: Epoch,
    pub(super) pairs: usize,
    /// Pairs by their similarity.
    pub(super) by_similarity: [u64; RANGES],
    /// Clusters, giants included.
    pub(super) clusters: usize,
    pub(super) giants: usize,
}

impl Default for Sums {
    fn default() -> Self {
        Self { epoch: 0, pairs: 0, by_similarity: [0; RANGES], clusters: 0, giants: 0 }
    }
}

/// While it is held, what is read is of the end of one epoch.
#[derive(Debug)]
#[must_use = "what is read without it may be of the middle of an epoch"]
pub(super) struct Whole {
    _gate: OwnedRwLockReadGuard<()>,
}

#[derive(Debug, Default)]
struct State {
    /// The last epoch that is wholly taken in.
    epoch: Epoch,
    /// A part of the next epoch is taken in.
    is_within: bool,
    pairs: Pairs,
    ring: Ring,
}

/// Why a page cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unseen {
    /// The deployment does without.
    #[error("pairs are not kept in memory (monitor.pairs = false), so there are none to be told")]
    NotKept,
    /// The thread of the view has failed.
    #[error("the view has failed; the log says why")]
    Broken,
    /// Not all is here that the output holds.
    #[error("the run is not live yet: what its output holds is being gathered; /ready says how far it is")]
    NotFilled,
    /// An epoch is being taken in, and does not end.
    #[error("an epoch of many deltas is being taken in")]
    Busy,
}

impl View {
    /// Of a run of this name, with its thread; without pairs it holds the last deltas only. `clusters` begins
    /// empty.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(run: String, keeps_pairs: bool, clusters: Clusters) -> std::io::Result<Arc<Self>> {
        let view = Arc::new(Self::new(run, keeps_pairs, PIECE, RING_BYTES));
        let own = Arc::clone(&view);
        let work = move || own.take_all(clusters);
        std::thread::Builder::new().name("view".to_owned()).spawn(work)?;
        Ok(view)
    }

    pub(super) fn new(run: String, keeps_pairs: bool, piece: usize, ring_bytes: usize) -> Self {
        Self {
            run,
            keeps_pairs,
            state: Mutex::new(State { ring: Ring::new(ring_bytes), ..State::default() }),
            clusters: Mutex::default(),
            gate: Arc::default(),
            sums: Mutex::default(),
            feed: Feed::new(WAITING),
            piece,
            taken: watch::Sender::new(0),
            past: AtomicU64::new(0),
            is_filled: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        }
    }

    /// What tells it of commits. Its thread ends once that is dropped and all is taken in.
    pub fn feeder(self: &Arc<Self>) -> Feeder {
        Feeder::new(Arc::clone(self))
    }

    /// Waits until all that has been told is taken in, but no longer than that.
    pub fn wait_until_taken(&self, most: Duration) {
        self.feed.wait_until_done(most);
    }

    /// The run's name, which is part of the name of a place in its deltas.
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// Whether pairs are there to be asked for.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn sees(&self) -> Result<(), Unseen> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(Unseen::Broken);
        }
        if self.keeps_pairs { self.is_filled() } else { Err(Unseen::NotKept) }
    }

    /// Whether the run is live, and all is here that its output held then.
    ///
    /// # Errors
    /// If not.
    pub(super) fn is_filled(&self) -> Result<(), Unseen> {
        // One that has failed is never filled; other answers do without it.
        if self.is_filled.load(Ordering::Acquire) || self.broken.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(Unseen::NotFilled)
        }
    }

    /// Waits for the end of the epoch that is being taken in, and lets no other be taken in before it is
    /// dropped.
    ///
    /// # Errors
    /// If it takes too long.
    pub(super) async fn whole(&self) -> Result<Whole, Unseen> {
        let gate = timeout(WHOLE, Arc::clone(&self.gate).read_owned()).await;
        gate.map(|gate| Whole { _gate: gate }).map_err(|_| Unseen::Busy)
    }

    /// How much there is, as the last epoch has left it.
    pub(super) fn sums(&self) -> Sums {
        self.sums.lock().clone()
    }

    /// Changes with every piece that is taken in.
    pub(super) fn taken(&self) -> watch::Receiver<u64> {
        self.taken.subscribe()
    }

    /// The last epoch that is wholly taken in.
    pub(crate) fn epoch(&self) -> Epoch {
        self.state.lock().epoch
    }

    /// Reads pairs; `read` holds up the thread of the view while it lasts. Of the end of an epoch while a
    /// [`Whole`] is held.
    pub(super) fn pairs<T>(&self, read: impl FnOnce(Epoch, &Pairs) -> T) -> T {
        let state = self.state.lock();
        read(state.epoch, &state.pairs)
    }

    /// Reads clusters and what became of them, in the same way.
    pub(super) fn clusters<T>(&self, read: impl FnOnce(&History) -> T) -> T {
        read(&self.clusters.lock())
    }

    /// The place behind an epoch of this run, if all that came after it is held.
    pub(super) fn after(&self, epoch: Epoch) -> Option<Place> {
        let state = self.state.lock();
        let is_last = epoch == state.epoch && !state.is_within;
        if is_last { Some(state.ring.end()) } else { state.ring.after(epoch) }
    }

    /// Behind the last piece: where whoever wants no past begins.
    pub(super) fn end(&self) -> Place {
        self.state.lock().ring.end()
    }

    /// Pieces from a place on, about so many bytes of them.
    ///
    /// # Errors
    /// If the first of them is not held any more, the first place that is.
    pub(super) fn since(&self, from: Place, bytes: usize) -> Result<Vec<Arc<Piece>>, Place> {
        let state = self.state.lock();
        state.ring.since(from, bytes).ok_or(state.ring.begin())
    }

    /// A walk over all pairs, before its first step.
    pub(super) fn walk(&self) -> Walk {
        Walk::new(self.piece)
    }

    /// The next step of a walk over all pairs.
    pub(super) fn step(&self, walk: &mut Walk) -> Step {
        let state = self.state.lock();
        walk.step(state.epoch, state.is_within, &state.pairs, &state.ring)
    }

    /// Takes in what comes until no more does.
    fn take_all(&self, mut clusters: Clusters) {
        let work = std::panic::AssertUnwindSafe(|| {
            while let Some(news) = self.feed.next() {
                self.take(news, &mut clusters);
                self.feed.done();
            }
        });
        if std::panic::catch_unwind(work).is_err() {
            self.broken.store(true, Ordering::Relaxed);
            tracing::error!("the view has failed: pairs and clusters are not told any more; the run goes on");
            self.feed.give_up();
        }
    }

    /// Takes in what has been told.
    fn take(&self, news: News, clusters: &mut Clusters) {
        let gate = self.gate.blocking_write();
        match news {
            News::Stands { epoch } => self.take_standing(epoch),
            News::Restored(deltas) => {
                self.advance(self.past.load(Ordering::Relaxed), &deltas, clusters);
                self.take_restored(&deltas);
            }
            News::Committed { epoch, deltas } => {
                self.advance(epoch, &deltas, clusters);
                self.take_epoch(epoch, &deltas);
            }
            News::Live { epoch } => self.take_live(epoch),
        }
        self.add_up();
        drop(gate);
    }

    /// Notes how much there is.
    fn add_up(&self) {
        let (clusters, giants) = self.clusters(|history| (history.len(), history.giants()));
        let state = self.state.lock();
        let (epoch, pairs, by_similarity) = (state.epoch, state.pairs.len(), state.pairs.by_similarity());
        drop(state);
        *self.sums.lock() = Sums { epoch, pairs, by_similarity, clusters, giants };
    }

    /// Takes in where the output stands: what it holds there comes piece by piece.
    pub(super) fn take_standing(&self, epoch: Epoch) {
        self.past.store(epoch, Ordering::Relaxed);
        self.state.lock().epoch = epoch;
    }

    /// Takes in what the output holds already, before anything is read here.
    pub(super) fn take_restored(&self, deltas: &[Delta]) {
        let past = self.past.load(Ordering::Relaxed);
        for piece in deltas.chunks(self.piece).filter(|_| self.keeps_pairs) {
            let mut state = self.state.lock();
            piece.iter().for_each(|delta| state.pairs.apply(delta, past));
        }
    }

    /// The run is live, and the output holds nothing more of the epochs up to this one.
    pub(super) fn take_live(&self, epoch: Epoch) {
        let mut state = self.state.lock();
        state.epoch = state.epoch.max(epoch);
        drop(state);
        self.is_filled.store(true, Ordering::Release);
    }

    fn advance(&self, epoch: Epoch, deltas: &[Delta], clusters: &mut Clusters) {
        if self.keeps_pairs && !deltas.is_empty() {
            let reports = clusters.advance(deltas);
            self.clusters.lock().advance(epoch, &reports);
        }
    }

    /// Takes in an epoch, piece by piece, each with its frame.
    pub(super) fn take_epoch(&self, epoch: Epoch, deltas: &[Delta]) {
        let at = unix_seconds();
        let mut left = deltas.len();
        let mut pieces: Vec<&[Delta]> = deltas.chunks(self.piece).collect();
        if pieces.is_empty() {
            pieces.push(&[]);
        }
        for of_piece in pieces {
            left -= of_piece.len();
            let frame = render::epoch(&self.run, epoch, at, of_piece, left);
            let piece =
                Piece { epoch, is_last: left == 0, deltas: of_piece.to_vec(), frame: Bytes::from(frame) };
            let mut state = self.state.lock();
            if self.keeps_pairs {
                of_piece.iter().for_each(|delta| state.pairs.apply(delta, epoch));
            }
            state.is_within = left > 0;
            if left == 0 {
                state.epoch = epoch;
            }
            state.ring.push(piece);
            let end = state.ring.end();
            drop(state);
            self.taken.send_replace(end.piece);
        }
    }
}

/// A pair as it is told.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    pub(super) a: DocId,
    pub(super) b: DocId,
    pub(super) held: Held,
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
