//! The queue of closed epochs between worker 0 and the committer.
//!
//! ```text
//!  worker 0 ── close ──▶ Commits ── next ──▶ committer ──▶ Sink
//!                           └── admits: which epochs the workers may begin
//! ```
//!
//! An epoch is *closed* when all workers have computed it, and *durable* when the sink has committed it.
//! Worker 0 never waits for the sink. The distance between the two is bounded instead: no worker takes events
//! of an epoch more than [`EPOCHS_AHEAD`] beyond the last durable one, and no worker takes any events while
//! at least [`DELTAS_AHEAD`] deltas wait.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex, MutexGuard};

use dupflow_core::time::Epoch;
use dupflow_engine::dataflow::ClosedEpoch;

/// How many epochs beyond the last durable one, inclusive, workers may take events of. A sink that pauses for
/// less than that does not delay them.
pub(in crate::pipeline) const EPOCHS_AHEAD: Epoch = 64;

/// Number of waiting deltas from which on, inclusive, workers take no more events; a delta has about 100
/// bytes.
const DELTAS_AHEAD: usize = 1 << 18;

/// See the [module](self).
pub(in crate::pipeline) struct Commits {
    state: Mutex<CommitsState>,
    /// Signalled when `next` has something to return.
    arrived: Condvar,
}

struct CommitsState {
    waiting: VecDeque<ClosedEpoch>,
    /// Deltas in `waiting` and in the committer.
    deltas: usize,
    durable: Epoch,
    end: CommitsEnd,
    /// Whether an output is to be looked at.
    is_to_look: bool,
    /// Whether the committer waits in `next`.
    is_idle: bool,
    /// Whether a worker was refused an epoch and waits for the sink.
    is_holding_back: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CommitsEnd {
    /// More epochs may be closed.
    No,
    /// All epochs have been closed.
    Ended,
    /// The run has failed; waiting epochs are discarded.
    Cancelled,
}

/// The next task of the committer.
pub(in crate::pipeline) enum CommitterTask {
    /// Write these epochs: all that wait, at least one.
    Write(VecDeque<ClosedEpoch>),
    /// Look at outputs that were left behind.
    Look,
    Finish,
    Leave,
}

impl Commits {
    /// An empty queue; `first` is the first epoch that will be closed.
    pub(in crate::pipeline) fn new(first: Epoch) -> Self {
        let state = CommitsState {
            waiting: VecDeque::new(),
            deltas: 0,
            durable: first - 1,
            end: CommitsEnd::No,
            is_to_look: false,
            is_idle: false,
            is_holding_back: false,
        };
        Self { state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Called by worker 0: adds a closed epoch. Never waits for the sink.
    pub(in crate::pipeline) fn close(&self, epoch: ClosedEpoch) {
        let mut state = self.state.lock();
        state.deltas += epoch.deltas.len();
        state.waiting.push_back(epoch);
        self.wake(state);
    }

    /// Called by worker 0: all epochs have been closed.
    pub(in crate::pipeline) fn end(&self) {
        let mut state = self.state.lock();
        if state.end == CommitsEnd::No {
            state.end = CommitsEnd::Ended;
        }
        self.wake(state);
    }

    /// Called by any thread: nothing more may be written.
    pub(in crate::pipeline) fn cancel(&self) {
        let mut state = self.state.lock();
        state.end = CommitsEnd::Cancelled;
        self.wake(state);
    }

    /// Called by any thread: something has happened to an output that was left behind.
    pub(in crate::pipeline) fn look(&self) {
        let mut state = self.state.lock();
        state.is_to_look = true;
        self.wake(state);
    }

    fn wake(&self, mut state: MutexGuard<'_, CommitsState>) {
        if std::mem::take(&mut state.is_idle) {
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Called by a worker: the last epoch that may begin now, at most `wanted`. A worker that gets an earlier
    /// epoch is woken after the next commit.
    pub(in crate::pipeline) fn admits(&self, wanted: Epoch) -> Epoch {
        let mut state = self.state.lock();
        let last = if state.deltas >= DELTAS_AHEAD { 0 } else { state.durable + EPOCHS_AHEAD };
        state.is_holding_back |= last < wanted;
        wanted.min(last)
    }

    /// Number of deltas that are closed and not durable.
    pub(in crate::pipeline) fn deltas(&self) -> usize {
        self.state.lock().deltas
    }

    /// Called by the committer: waits for the next task.
    pub(in crate::pipeline) fn next(&self) -> CommitterTask {
        let mut state = self.state.lock();
        loop {
            match state.end {
                CommitsEnd::Cancelled => return CommitterTask::Leave,
                _ if !state.waiting.is_empty() => {
                    return CommitterTask::Write(std::mem::take(&mut state.waiting));
                }
                _ if state.is_to_look => {
                    state.is_to_look = false;
                    return CommitterTask::Look;
                }
                CommitsEnd::Ended => return CommitterTask::Finish,
                CommitsEnd::No => {
                    state.is_idle = true;
                    self.arrived.wait(&mut state);
                }
            }
        }
    }

    /// Called by the committer: epochs up to `epoch` are durable, with `deltas` deltas. Returns whether a
    /// worker waits for this.
    pub(in crate::pipeline) fn written(&self, epoch: Epoch, deltas: usize) -> bool {
        let mut state = self.state.lock();
        state.deltas -= deltas;
        state.durable = epoch;
        std::mem::take(&mut state.is_holding_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::doc::DocId;
    use dupflow_core::pair::{Delta, DocPair, Evidence, Pair, Similarity};
    use dupflow_core::time::Progress;

    fn closed(epoch: Epoch, deltas: usize) -> ClosedEpoch {
        let id = |id| DocId::new(id).unwrap();
        let pair = Pair::new(id("a"), id("b")).unwrap();
        let similar = DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() };
        let delta = Delta::by_block(similar, 1);
        let progress = Progress { epoch, ..Progress::default() };
        ClosedEpoch { progress, deltas: vec![delta; deltas], ..ClosedEpoch::default() }
    }

    #[test]
    fn the_distance_between_closed_and_durable_is_bounded() {
        let commits = Commits::new(11);
        assert_eq!(commits.admits(14), 14);
        assert_eq!(commits.admits(Epoch::MAX), 10 + EPOCHS_AHEAD, "10 counts as durable");
        commits.close(closed(11, 0));
        commits.close(closed(12, 0));
        assert_eq!(commits.admits(Epoch::MAX), 10 + EPOCHS_AHEAD, "closed is not durable");
        let CommitterTask::Write(group) = commits.next() else { panic!("epochs wait") };
        assert_eq!(group.iter().map(|epoch| epoch.progress.epoch).collect::<Vec<_>>(), [11, 12]);
        assert!(commits.written(12, 0), "a worker was held back");
        assert_eq!(commits.admits(Epoch::MAX), 12 + EPOCHS_AHEAD);
        assert!(commits.written(12, 0));
        assert!(!commits.written(12, 0));
    }

    #[test]
    fn many_waiting_deltas_hold_workers_back() {
        let commits = Commits::new(1);
        commits.close(closed(1, DELTAS_AHEAD - 1));
        assert_eq!(commits.admits(2), 2);
        commits.close(closed(2, 1));
        assert_eq!(commits.admits(2), 0);
        let CommitterTask::Write(group) = commits.next() else { panic!("epochs wait") };
        assert_eq!(group.len(), 2);
        assert_eq!(commits.admits(2), 0, "what the committer holds is not durable");
        assert!(commits.written(1, DELTAS_AHEAD - 1), "a worker was held back");
        assert_eq!(commits.admits(2), 2);
        assert!(!commits.written(2, 1));
    }

    #[test]
    fn waiting_epochs_are_written_at_the_end_and_not_after_cancel() {
        let commits = Commits::new(1);
        commits.close(closed(1, 0));
        commits.end();
        assert!(matches!(commits.next(), CommitterTask::Write(group) if group.len() == 1));
        assert!(matches!(commits.next(), CommitterTask::Finish));
        commits.close(closed(2, 0));
        commits.cancel();
        commits.end();
        assert!(matches!(commits.next(), CommitterTask::Leave));
    }
}
