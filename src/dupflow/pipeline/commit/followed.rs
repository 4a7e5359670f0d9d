//! A sink that reports its commits to a [`Follower`], such as the monitor's view, once they are durable.

use std::collections::BTreeSet;
use std::io;

use dupflow_connectors::mark::{Mark, Standing, Topic};
use dupflow_connectors::sinks::side::SideDelta;
use dupflow_connectors::sinks::{OutputGuard, Sink};
use dupflow_core::doc::{DocChange, Letter, UpsertedDoc};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{Epoch, EpochTimes, Progress};

/// Receives what becomes durable in the output of a run, in order, on the committer's thread.
pub trait Follower: Send {
    /// The output was taken over; its last durable epoch is `epoch`.
    fn stands(&self, epoch: Epoch);

    /// The deltas of restored documents, which the output holds already.
    fn restored(&self, deltas: &[Delta]);

    /// The run is live: what the output held before is restored up to `past`.
    fn live(&self, past: Epoch);

    /// An epoch is durable. Corrections have no times.
    fn committed(&self, epoch: Epoch, times: EpochTimes, deltas: Vec<Delta>);
}

/// See the [module](self).
pub(in crate::pipeline) struct FollowedSink {
    sink: Box<dyn Sink + Send>,
    follower: Box<dyn Follower>,
    /// Epochs that are written and not durable yet.
    given: Vec<(Epoch, EpochTimes, Vec<Delta>)>,
    /// The times of the next epoch.
    times: EpochTimes,
}

impl FollowedSink {
    pub(in crate::pipeline) fn new(sink: Box<dyn Sink + Send>, follower: Box<dyn Follower>) -> Self {
        Self { sink, follower, given: Vec::new(), times: EpochTimes::default() }
    }
}

impl Sink for FollowedSink {
    fn inspect(&mut self) -> io::Result<Option<Standing>> {
        self.sink.inspect()
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        let standing = self.sink.take_over()?;
        if let Standing::At(mark) = &standing {
            self.follower.stands(mark.progress.epoch);
        }
        Ok(standing)
    }

    fn check_held(&mut self) -> io::Result<()> {
        self.sink.check_held()
    }

    fn check_unchanged(&mut self) -> io::Result<()> {
        self.sink.check_unchanged()
    }

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        self.sink.pairs()
    }

    fn topic(&self) -> Option<Topic> {
        self.sink.topic()
    }

    fn guard(&self) -> Option<OutputGuard> {
        self.sink.guard()
    }

    fn wants_documents(&self) -> bool {
        self.sink.wants_documents()
    }

    fn documents(&mut self, changes: &[DocChange], restored: bool) -> io::Result<()> {
        self.sink.documents(changes, restored)
    }

    fn wants_upserts(&self) -> bool {
        self.sink.wants_upserts()
    }

    fn upserts(&mut self, upserts: &[UpsertedDoc]) -> io::Result<()> {
        self.sink.upserts(upserts)
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.follower.restored(deltas);
        self.sink.restored(deltas);
    }

    fn live(&mut self, past: Epoch) {
        self.follower.live(past);
        self.sink.live(past);
    }

    fn times(&mut self, times: EpochTimes) {
        self.times = times;
        self.sink.times(times);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()> {
        self.sink.epoch(progress, deltas, letters)?;
        let times = std::mem::take(&mut self.times);
        match self.given.last_mut() {
            // Corrections are written in pieces of one epoch.
            Some((epoch, _, given)) if *epoch == progress.epoch => given.extend_from_slice(deltas),
            _ => self.given.push((progress.epoch, times, deltas.to_vec())),
        }
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.sink.commit(mark)?;
        // All pieces of the corrections form one epoch, which the view must get as a whole.
        if mark.in_correction {
            return Ok(());
        }
        for (epoch, times, deltas) in self.given.drain(..) {
            self.follower.committed(epoch, times, deltas);
        }
        Ok(())
    }

    fn side_rows(&mut self, name: &str, each: &mut dyn FnMut(SideDelta)) -> io::Result<()> {
        self.sink.side_rows(name, each)
    }

    fn side(&mut self, name: &str, epoch: Epoch, deltas: &[SideDelta]) -> io::Result<()> {
        self.sink.side(name, epoch, deltas)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.sink.finish()
    }
}

impl std::fmt::Debug for FollowedSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FollowedSink").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dupflow_connectors::sinks::MemorySink;
    use parking_lot::Mutex;

    use super::*;

    /// A sink whose commits fail.
    struct Fails;

    impl Sink for Fails {
        fn epoch(&mut self, _: &Progress, _: &[Delta], _: &[Letter]) -> io::Result<()> {
            Ok(())
        }

        fn commit(&mut self, _: &Mark) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn finish(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Records the epochs that are committed.
    #[derive(Clone, Default)]
    struct FollowedEpochs(Arc<Mutex<Vec<Epoch>>>);

    impl Follower for FollowedEpochs {
        fn stands(&self, _: Epoch) {}

        fn restored(&self, _: &[Delta]) {}

        fn live(&self, _: Epoch) {}

        fn committed(&self, epoch: Epoch, _: EpochTimes, _: Vec<Delta>) {
            self.0.lock().push(epoch);
        }
    }

    fn reported(sink: impl Sink + Send + 'static, commit: bool) -> Vec<Epoch> {
        let epochs = FollowedEpochs::default();
        let mut watched = FollowedSink::new(Box::new(sink), Box::new(epochs.clone()));
        for epoch in 1..=3 {
            watched.epoch(&Progress { epoch, ..Progress::default() }, &[], &[]).unwrap();
        }
        if commit {
            drop(watched.commit(&Mark::default()));
        }
        std::mem::take(&mut *epochs.0.lock())
    }

    #[test]
    fn corrections_are_reported_after_their_last_piece() {
        let epochs = FollowedEpochs::default();
        let mut watched = FollowedSink::new(Box::new(MemorySink::default()), Box::new(epochs.clone()));
        for (in_correction, reported) in [(true, vec![]), (true, vec![]), (false, vec![4])] {
            watched.epoch(&Progress { epoch: 4, ..Progress::default() }, &[], &[]).unwrap();
            watched.commit(&Mark { in_correction, ..Mark::default() }).unwrap();
            assert_eq!(*epochs.0.lock(), reported);
        }
    }

    #[test]
    fn only_durable_epochs_are_reported() {
        assert_eq!(reported(MemorySink::default(), true), [1, 2, 3]);
        assert!(reported(MemorySink::default(), false).is_empty());
        assert!(reported(Fails, true).is_empty());
    }
}
