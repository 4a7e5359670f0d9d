//! The committer: closed epochs to the sink, on a thread of its own.
//!
//! ```text
//!  worker 0 ── close ──▶ Commits ── next ──▶ committer ──▶ Sink
//!                           └── admits: which epochs the workers may begin
//! ```
//!
//! An epoch is *closed* when all workers have computed it, and *durable* when the sink has taken it. Worker 0 never waits for
//! the sink; instead the distance between the two is bounded by what may be begun: no worker takes events of an epoch more than
//! [`EPOCHS_AHEAD`] beyond the last durable one, and none takes any while [`DELTAS_AHEAD`] deltas or more wait.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{RunError, lock};
use crate::pair::DocPair;
use crate::sink::Sink;
use crate::source::BadRecords;
use crate::time::{Epoch, Progress};

/// How far beyond the last durable epoch, inclusive, workers may take events: so much of a sink's hesitation is not felt.
pub(super) const EPOCHS_AHEAD: Epoch = 64;

/// Deltas that wait for the sink from which on, inclusive, workers take no more events; about 100 bytes each.
const DELTAS_AHEAD: usize = 1 << 20;

/// A closed epoch.
pub(super) type Closed = (Progress, Vec<(DocPair, isize)>);

/// Closed epochs on their way to the sink.
pub(super) struct Commits {
    state: Mutex<State>,
    /// Signalled when the committer has something to do.
    arrived: Condvar,
}

struct State {
    waiting: VecDeque<Closed>,
    /// Deltas in `waiting` and with the committer.
    deltas: usize,
    durable: Epoch,
    end: End,
    /// The committer waits.
    is_idle: bool,
    /// A worker has been held back, and waits for the sink.
    is_holding_back: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// More epochs may come.
    No,
    /// All epochs have come.
    Ended,
    /// What waits is not to be written.
    Cancelled,
}

/// What the committer does next.
enum Next {
    Write(Closed),
    Finish,
    Leave,
}

impl Commits {
    /// Epoch `first` is the first that will be closed.
    pub(super) fn new(first: Epoch) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            deltas: 0,
            durable: first - 1,
            end: End::No,
            is_idle: false,
            is_holding_back: false,
        };
        Self { state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Worker 0: an epoch is closed. Never waits for the sink.
    pub(super) fn close(&self, progress: Progress, deltas: Vec<(DocPair, isize)>) {
        let mut state = lock(&self.state);
        state.deltas += deltas.len();
        state.waiting.push_back((progress, deltas));
        self.wake(state);
    }

    /// Worker 0: all epochs have been closed.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        if state.end == End::No {
            state.end = End::Ended;
        }
        self.wake(state);
    }

    /// Anyone: nothing more is to be written.
    pub(super) fn cancel(&self) {
        let mut state = lock(&self.state);
        state.end = End::Cancelled;
        self.wake(state);
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        if std::mem::take(&mut state.is_idle) {
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Worker: the last epoch, `wanted` or an earlier one, that may be begun now. Who gets an earlier one is woken when the sink has
    /// taken another epoch.
    pub(super) fn admits(&self, wanted: Epoch) -> Epoch {
        let mut state = lock(&self.state);
        let last = if state.deltas >= DELTAS_AHEAD { 0 } else { state.durable + EPOCHS_AHEAD };
        state.is_holding_back |= last < wanted;
        wanted.min(last)
    }

    fn next(&self) -> Next {
        let mut state = lock(&self.state);
        loop {
            match (state.end, state.waiting.pop_front()) {
                (End::Cancelled, _) => return Next::Leave,
                (_, Some(closed)) => return Next::Write(closed),
                (End::Ended, None) => return Next::Finish,
                (End::No, None) => {
                    state.is_idle = true;
                    state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// An epoch is durable, of so many deltas. Whether workers wait for it.
    fn written(&self, epoch: Epoch, deltas: usize) -> bool {
        let mut state = lock(&self.state);
        state.deltas -= deltas;
        state.durable = epoch;
        std::mem::take(&mut state.is_holding_back)
    }
}

/// Writes every epoch that is closed, and finishes the sink after the last one; ends early, without finishing, if the run is
/// cancelled. `durable` is told each epoch that has been written, and whether workers wait for it.
///
/// # Errors
/// Those of the sink, and of the dead letters, which are kept before the deltas of their epoch are written.
pub(super) fn run(
    commits: &Commits,
    sink: &mut dyn Sink,
    bad: &BadRecords,
    mut durable: impl FnMut(Epoch, bool),
) -> Result<(), RunError> {
    loop {
        match commits.next() {
            Next::Leave => return Ok(()),
            Next::Write((progress, deltas)) => {
                bad.flush()?;
                sink.epoch(&progress, &deltas).map_err(RunError::Sink)?;
                durable(progress.epoch, commits.written(progress.epoch, deltas.len()));
            }
            Next::Finish => {
                bad.flush()?;
                return sink.finish().map_err(RunError::Sink);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::thread;

    use super::*;
    use crate::doc::DocId;
    use crate::pair::{Evidence, Pair, Similarity};
    use crate::source::{DeadLetter, OnError};

    fn progress(epoch: Epoch) -> Progress {
        Progress { epoch, ..Progress::default() }
    }

    fn delta() -> (DocPair, isize) {
        let id = |id| DocId::new(id).unwrap();
        let pair = Pair::new(id("a"), id("b")).unwrap();
        (DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() }, 1)
    }

    /// Tells what it is given, and waits to be allowed to take it.
    struct Gate {
        told: Sender<Result<Epoch, ()>>,
        allowed: Receiver<io::Result<()>>,
    }

    impl Sink for Gate {
        fn epoch(&mut self, progress: &Progress, _: &[(DocPair, isize)]) -> io::Result<()> {
            self.told.send(Ok(progress.epoch)).unwrap();
            self.allowed.recv().unwrap()
        }

        fn finish(&mut self) -> io::Result<()> {
            self.told.send(Err(())).unwrap();
            Ok(())
        }
    }

    /// A sink with its gate.
    fn gate() -> (Gate, Receiver<Result<Epoch, ()>>, Sender<io::Result<()>>) {
        let ((told, seen), (allow, allowed)) = (channel(), channel());
        (Gate { told, allowed }, seen, allow)
    }

    #[test]
    fn every_epoch_is_written_in_order_and_the_sink_is_finished_after_the_last() {
        let (mut sink, seen, allow) = gate();
        let commits = Commits::new(5);
        (0..3).for_each(|_| allow.send(Ok(())).unwrap());
        thread::scope(|scope| {
            scope.spawn(|| {
                (5..8).for_each(|epoch| commits.close(progress(epoch), vec![delta()]));
                commits.end();
            });
            let mut durable = Vec::new();
            run(&commits, &mut sink, &BadRecords::default(), |epoch, _| durable.push(epoch)).unwrap();
            assert_eq!(durable, [5, 6, 7]);
        });
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [Ok(5), Ok(6), Ok(7), Err(())]);
    }

    #[test]
    fn what_waits_when_the_run_is_cancelled_is_not_written_and_the_sink_not_finished() {
        for ended in [false, true] {
            let (mut sink, seen, allow) = gate();
            let commits = Commits::new(1);
            (1..4).for_each(|epoch| commits.close(progress(epoch), vec![]));
            if ended {
                commits.end();
            }
            thread::scope(|scope| {
                let committer = scope.spawn(|| run(&commits, &mut sink, &BadRecords::default(), |_, _| ()));
                assert_eq!(seen.recv(), Ok(Ok(1)));
                commits.cancel();
                commits.end();
                allow.send(Ok(())).unwrap();
                committer.join().unwrap().unwrap();
            });
            assert!(seen.try_recv().is_err());
        }
    }

    #[test]
    fn after_an_error_of_the_sink_nothing_more_is_written() {
        let (mut sink, seen, allow) = gate();
        let commits = Commits::new(1);
        (1..4).for_each(|epoch| commits.close(progress(epoch), vec![]));
        commits.end();
        allow.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        let mut durable = 0;
        let error = run(&commits, &mut sink, &BadRecords::default(), |_, _| durable += 1).unwrap_err();
        assert!(matches!(error, RunError::Sink(error) if error.kind() == io::ErrorKind::StorageFull));
        assert_eq!((durable, seen.try_iter().count()), (0, 1));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_epoch_whose_bad_records_cannot_be_kept_is_not_written() {
        let (mut sink, seen, _allow) = gate();
        let bad = BadRecords::new(OnError::Count, Some(DeadLetter::create("/dev/full".into()).unwrap()));
        let at = crate::source::BadRecordAt {
            reason: crate::feed::BadRecord::NotJson,
            input: "x".into(),
            place: crate::source::Place::Line(1),
            cause: None,
        };
        // The record stays in the buffer, whether it fails now or later.
        drop(bad.report(at, b"kept nowhere", &mut io::empty()));
        let commits = Commits::new(1);
        commits.close(progress(1), vec![delta()]);
        commits.end();
        assert!(matches!(run(&commits, &mut sink, &bad, |_, _| ()), Err(RunError::Source(_))));
        assert!(seen.try_recv().is_err());
    }

    #[test]
    fn the_distance_between_closed_and_durable_is_bounded() {
        let (mut sink, seen, allow) = gate();
        let commits = Arc::new(Commits::new(11));
        assert_eq!(commits.admits(14), 14);
        assert_eq!(commits.admits(Epoch::MAX), 10 + EPOCHS_AHEAD, "10 counts as durable");
        commits.close(progress(11), vec![]);
        commits.close(progress(12), vec![]);
        assert_eq!(commits.admits(Epoch::MAX), 10 + EPOCHS_AHEAD, "closed is not durable");
        let awaited = Mutex::new(Vec::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                let durable = |epoch, waits| lock(&awaited).push((epoch, waits, commits.admits(Epoch::MAX)));
                run(&commits, &mut sink, &BadRecords::default(), durable).unwrap();
            });
            (11..13).for_each(|epoch| {
                assert_eq!(seen.recv(), Ok(Ok(epoch)));
                allow.send(Ok(())).unwrap();
            });
            commits.end();
        });
        let expected = [(11, true, 11 + EPOCHS_AHEAD), (12, true, 12 + EPOCHS_AHEAD)];
        assert_eq!(*lock(&awaited), expected, "who was held back is told");
    }

    #[test]
    fn many_deltas_that_wait_hold_all_back_and_few_do_not() {
        let commits = Commits::new(1);
        commits.close(progress(1), vec![delta(); DELTAS_AHEAD - 1]);
        assert_eq!(commits.admits(2), 2);
        commits.close(progress(2), vec![delta()]);
        assert_eq!(commits.admits(2), 0);
        let Next::Write((_, first)) = commits.next() else { panic!("an epoch waits") };
        assert_eq!(commits.admits(2), 0, "what the committer holds is not durable");
        assert!(commits.written(1, first.len()), "a worker was held back");
        assert_eq!(commits.admits(2), 2);
        assert!(!commits.written(2, 1));
    }
}
