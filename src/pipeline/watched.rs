//! A sink that feeds the view of the monitor with each commit after it is durable.

use std::collections::BTreeSet;
use std::io;

use crate::doc::{DocChange, Letter};
use crate::mark::{Mark, Standing, Topic};
use crate::monitor::Feeder;
use crate::pair::{Delta, DocPair};
use crate::sink::Sink;
use crate::time::{Epoch, Progress};

/// See the [module](self).
pub(super) struct Watched {
    sink: Box<dyn Sink + Send>,
    feeder: Feeder,
    /// Epochs that are written and not durable yet.
    given: Vec<(Epoch, Vec<Delta>)>,
}

impl Watched {
    pub(super) fn new(sink: Box<dyn Sink + Send>, feeder: Feeder) -> Self {
        Self { sink, feeder, given: Vec::new() }
    }
}

impl Sink for Watched {
    fn look(&mut self) -> io::Result<Option<Standing>> {
        self.sink.look()
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        let standing = self.sink.take_over()?;
        if let Standing::At(mark) = &standing {
            self.feeder.stands(mark.progress.epoch);
        }
        Ok(standing)
    }

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        self.sink.pairs()
    }

    fn topic(&self) -> Option<Topic> {
        self.sink.topic()
    }

    fn wants_documents(&self) -> bool {
        self.sink.wants_documents()
    }

    fn documents(&mut self, changes: &[DocChange], restored: bool) -> io::Result<()> {
        self.sink.documents(changes, restored)
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.feeder.restored(deltas);
        self.sink.restored(deltas);
    }

    fn live(&mut self, past: Epoch) {
        self.feeder.live(past);
        self.sink.live(past);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()> {
        self.sink.epoch(progress, deltas, letters)?;
        match self.given.last_mut() {
            // Corrections are written in pieces of one epoch.
            Some((epoch, given)) if *epoch == progress.epoch => given.extend_from_slice(deltas),
            _ => self.given.push((progress.epoch, deltas.to_vec())),
        }
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.sink.commit(mark)?;
        // All pieces of the corrections form one epoch, which the view must get as a whole.
        if mark.in_correction {
            return Ok(());
        }
        for (epoch, deltas) in self.given.drain(..) {
            self.feeder.committed(epoch, deltas);
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.sink.finish()
    }
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cluster::{ClusterKind, Clusters};
    use crate::monitor::View;
    use crate::sink::Memory;

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

    fn seen(sink: impl Sink + Send + 'static, commit: bool) -> Epoch {
        let view = View::start("r".to_owned(), true, Clusters::new(ClusterKind::Components, 9)).unwrap();
        let mut watched = Watched::new(Box::new(sink), view.feeder());
        for epoch in 1..=3 {
            watched.epoch(&Progress { epoch, ..Progress::default() }, &[], &[]).unwrap();
        }
        if commit {
            drop(watched.commit(&Mark::default()));
        }
        drop(watched);
        view.wait_until_taken(Duration::MAX);
        view.epoch()
    }

    #[test]
    fn corrections_are_told_when_the_last_of_them_is_durable() {
        let view = View::start("r".to_owned(), true, Clusters::new(ClusterKind::Components, 9)).unwrap();
        let mut watched = Watched::new(Box::new(Memory::default()), view.feeder());
        let mut seen = Vec::new();
        for in_correction in [true, true, false] {
            watched.epoch(&Progress { epoch: 4, ..Progress::default() }, &[], &[]).unwrap();
            watched.commit(&Mark { in_correction, ..Mark::default() }).unwrap();
            view.wait_until_taken(Duration::MAX);
            seen.push(view.epoch());
        }
        assert_eq!(seen, [0, 0, 4]);
    }

    #[test]
    fn only_what_is_durable_is_told() {
        assert_eq!(seen(Memory::default(), true), 3);
        assert_eq!(seen(Memory::default(), false), 0);
        assert_eq!(seen(Fails, true), 0);
    }
}
