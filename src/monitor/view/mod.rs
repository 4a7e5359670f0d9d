//! The view: what the output holds, as whoever watches may ask for it: pairs, clusters, the last deltas.
//!
//! ```text
//!  committer ── tell ──▶ News ── thread "view" ──▶ Pairs, Ring ◀── page, since, walk ── readers
//!                                                  History    ◀── clusters ──
//! ```
//!
//! In: what each commit made durable, and before that what the output held already. Out: pages of it, each of one moment.
//!
//! The committer waits for no reader: it hands over lists of deltas, and a thread of the view's own takes them in, at most [`PIECE`] deltas
//! under one lock. Only where more than [`WAITING`] deltas wait does the committer wait, for that thread. A reader holds a lock for as
//! long as it takes to copy a page.
//!
//! Invariants: the pairs are those that the epochs taken in accumulate to. An epoch of up to [`PIECE`] deltas is taken in at once; of a larger
//! one a page may hold a part, and names the epoch before it. A pair's `since` and `cause` are those of the delta that brought it with its present similarity;
//! of a pair that the output held before the run, `since` is the epoch at which the output stood.
//!
//! Memory: see [`pairs`] and [`crate::cluster`]; 16 MiB of deltas.

mod feed;
pub(super) mod pairs;
pub(super) mod render;
pub(super) mod ring;
pub(super) mod walk;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::watch;

pub use feed::Feeder;
pub(super) use pairs::{Held, Pairs};
pub(super) use ring::{Piece, Place, Ring};
pub(super) use walk::{Step, Walk};

use crate::cluster::Clusters;
use crate::cluster::history::History;
use crate::doc::DocId;
use crate::pair::Delta;
use crate::time::{Epoch, unix_seconds};
use feed::{Feed, News};

/// Deltas that are taken in under one lock, and pairs that are told under one, at most, inclusive: a millisecond.
const PIECE: usize = 1000;

/// Deltas that may wait to be taken in, exclusive; then the committer waits. About 100 bytes each.
const WAITING: usize = 1 << 18;

/// Bytes of deltas, with their frames, that are held for readers who fall behind or come back.
const RING_BYTES: usize = 16 << 20;

/// What the output holds. Any thread may ask; how it is kept, the docs of `monitor::view` say.
#[derive(Debug)]
pub struct View {
    run: String,
    /// Without pairs it is a stream of deltas, and nothing is held but the last ones.
    keeps_pairs: bool,
    state: Mutex<State>,
    /// Up to an epoch.
    clusters: Mutex<(Epoch, History)>,
    feed: Feed,
    /// [`PIECE`], or less in tests.
    piece: usize,
    /// Pieces taken in so far, for whoever waits for the next one.
    taken: watch::Sender<u64>,
    /// Where the output stood when the run began.
    past: AtomicU64,
    broken: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// The last epoch that is wholly taken in.
    epoch: Epoch,
    /// A part of the next epoch is taken in, or not all of what the output held before may be.
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
}

impl View {
    /// Of a run of this name, with its thread; without pairs it holds the last deltas only. `clusters` begins empty.
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
            feed: Feed::new(WAITING),
            piece,
            taken: watch::Sender::new(0),
            past: AtomicU64::new(0),
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
        if self.keeps_pairs { Ok(()) } else { Err(Unseen::NotKept) }
    }

    /// Changes with every piece that is taken in.
    pub(super) fn taken(&self) -> watch::Receiver<u64> {
        self.taken.subscribe()
    }

    /// The last epoch that is wholly taken in.
    #[cfg(test)]
    pub(crate) fn epoch(&self) -> Epoch {
        lock(&self.state).epoch
    }

    /// Reads pairs; `read` holds up the thread of the view while it lasts.
    pub(super) fn pairs<T>(&self, read: impl FnOnce(Epoch, &Pairs) -> T) -> T {
        let state = lock(&self.state);
        read(state.epoch, &state.pairs)
    }

    /// Reads clusters and what became of them, in the same way.
    pub(super) fn clusters<T>(&self, read: impl FnOnce(Epoch, &History) -> T) -> T {
        let clusters = lock(&self.clusters);
        read(clusters.0, &clusters.1)
    }

    /// The place behind an epoch of this run, if all that came after it is held.
    pub(super) fn after(&self, epoch: Epoch) -> Option<Place> {
        let state = lock(&self.state);
        let is_last = epoch == state.epoch && !state.is_within;
        if is_last { Some(state.ring.end()) } else { state.ring.after(epoch) }
    }

    /// Behind the last piece: where whoever wants no past begins.
    pub(super) fn end(&self) -> Place {
        lock(&self.state).ring.end()
    }

    /// Pieces from a place on, about so many bytes of them.
    ///
    /// # Errors
    /// If the first of them is not held any more, the first place that is.
    pub(super) fn since(&self, from: Place, bytes: usize) -> Result<Vec<Arc<Piece>>, Place> {
        let state = lock(&self.state);
        state.ring.since(from, bytes).ok_or(state.ring.begin())
    }

    /// A walk over all pairs, before its first step.
    pub(super) fn walk(&self) -> Walk {
        Walk::new(self.piece)
    }

    /// The next step of a walk over all pairs.
    pub(super) fn step(&self, walk: &mut Walk) -> Step {
        let state = lock(&self.state);
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
        }
    }

    /// Takes in where the output stands: what it holds there comes piece by piece.
    pub(super) fn take_standing(&self, epoch: Epoch) {
        self.past.store(epoch, Ordering::Relaxed);
        let mut state = lock(&self.state);
        state.epoch = epoch;
        state.is_within = true;
    }

    /// Takes in what the output holds already. Readers who are there before all of it is are told the rest as it comes, with nothing to
    /// go on from until the first epoch of this run.
    pub(super) fn take_restored(&self, deltas: &[Delta]) {
        let past = self.past.load(Ordering::Relaxed);
        for piece in deltas.chunks(self.piece).filter(|_| self.keeps_pairs) {
            let frame = Bytes::from(render::within(past, piece.iter()));
            let told =
                Piece { epoch: past, is_last: false, is_restored: true, deltas: piece.to_vec(), frame };
            let mut state = lock(&self.state);
            piece.iter().for_each(|delta| state.pairs.apply(delta, past));
            state.is_within = true;
            state.ring.push(told);
            let end = state.ring.end();
            drop(state);
            self.taken.send_replace(end.piece);
        }
    }

    fn advance(&self, epoch: Epoch, deltas: &[Delta], clusters: &mut Clusters) {
        if self.keeps_pairs && !deltas.is_empty() {
            let reports = clusters.advance(deltas);
            let mut kept = lock(&self.clusters);
            kept.0 = epoch;
            kept.1.advance(epoch, &reports);
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
            let piece = Piece {
                epoch,
                is_last: left == 0,
                is_restored: false,
                deltas: of_piece.to_vec(),
                frame: Bytes::from(frame),
            };
            let mut state = lock(&self.state);
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

/// A lock on what stays whole if its holder panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
