//! A sink that keeps everything in memory, for tests and examples.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::contract::Sink;
use crate::mark::{Mark, Standing, Topic};
use dupflow_core::doc::{DocChange, DocId, Facts, Letter, UpsertedDoc};
use dupflow_core::pair::{Delta, DocPair, Pair, Similarity};
use dupflow_core::time::{Epoch, Progress};

/// Collects everything that it is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemorySink {
    /// Every delta with its epoch.
    pub deltas: Vec<(Epoch, DocPair, isize)>,
    /// The progress of every epoch.
    pub progress: Vec<Progress>,
    /// Live documents, from the changes passed to [`Sink::documents`]; empty in a run that passes none. This
    /// sink does not request them.
    pub documents: BTreeMap<DocId, Facts>,
    /// Records that are not valid events.
    pub letters: Vec<Letter>,
    /// The last mark.
    pub mark: Option<Mark>,
    /// Number of committed deltas and letters.
    durable: (usize, usize),
    /// Whether [`Sink::finish`] was called.
    pub finished: bool,
}

impl MemorySink {
    /// The pairs and similarities that the deltas up to `epoch`, inclusive, accumulate to, each with its
    /// count. All counts are 1 if the law holds.
    pub fn accumulated(&self, epoch: Epoch) -> BTreeMap<(Pair<DocId>, Similarity), isize> {
        let mut counts = BTreeMap::new();
        for (_, pair, diff) in self.deltas.iter().filter(|delta| delta.0 <= epoch) {
            *counts.entry((pair.pair.clone(), pair.similarity)).or_default() += diff;
        }
        counts.retain(|_, &mut count| count != 0);
        counts
    }
}

impl Sink for MemorySink {
    /// Drops everything after the last commit.
    fn take_over(&mut self) -> io::Result<Standing> {
        let last = self.mark.as_ref().map_or(0, |mark| mark.progress.epoch);
        self.deltas.truncate(self.durable.0);
        self.letters.truncate(self.durable.1);
        // The next run passes all documents again.
        self.documents.clear();
        self.progress.retain(|progress| progress.epoch <= last);
        Ok(self.mark.clone().map_or(Standing::New, |mark| Standing::At(Box::new(mark))))
    }

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        let mut pairs = BTreeSet::new();
        for (_, pair, diff) in &self.deltas {
            let follows = if *diff > 0 { pairs.insert(pair.clone()) } else { pairs.remove(pair) };
            debug_assert!(follows, "every pair accumulates to 0 or 1");
        }
        Ok(pairs)
    }

    fn documents(&mut self, changes: &[DocChange], _: bool) -> io::Result<()> {
        debug_assert!(changes.is_sorted_by(|a, b| a.id < b.id), "one change of a document, by id");
        for DocChange { id, now, .. } in changes {
            let was = match now {
                Some(facts) => self.documents.insert(id.clone(), *facts),
                None => self.documents.remove(id),
            };
            debug_assert!(was.is_some() || now.is_some(), "only a live document can be deleted");
        }
        Ok(())
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()> {
        self.progress.push(progress.clone());
        self.deltas.extend(deltas.iter().map(|d| (progress.epoch, d.pair.clone(), d.diff)));
        self.letters.extend_from_slice(letters);
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.mark = Some(mark.clone());
        self.durable = (self.deltas.len(), self.letters.len());
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.finished = true;
        Ok(())
    }
}

/// A sink that a test can inspect while a run uses it.
impl<S: Sink> Sink for Arc<Mutex<S>> {
    fn inspect(&mut self) -> io::Result<Option<Standing>> {
        self.lock().inspect()
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        self.lock().take_over()
    }

    fn check_held(&mut self) -> io::Result<()> {
        self.lock().check_held()
    }

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        self.lock().pairs()
    }

    fn topic(&self) -> Option<Topic> {
        self.lock().topic()
    }

    fn wants_documents(&self) -> bool {
        self.lock().wants_documents()
    }

    fn documents(&mut self, changes: &[DocChange], restored: bool) -> io::Result<()> {
        self.lock().documents(changes, restored)
    }

    fn wants_upserts(&self) -> bool {
        self.lock().wants_upserts()
    }

    fn upserts(&mut self, upserts: &[UpsertedDoc]) -> io::Result<()> {
        self.lock().upserts(upserts)
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.lock().restored(deltas);
    }

    fn live(&mut self, past: Epoch) {
        self.lock().live(past);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()> {
        self.lock().epoch(progress, deltas, letters)
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.lock().commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.lock().finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a topic, and records the epoch passed to `live`.
    #[derive(Default)]
    struct LiveEpoch(Option<Epoch>);

    impl Sink for LiveEpoch {
        fn topic(&self) -> Option<Topic> {
            Some(Topic { name: "pairs".to_owned(), id: None })
        }

        fn live(&mut self, past: Epoch) {
            self.0 = Some(past);
        }

        fn epoch(&mut self, _: &Progress, _: &[Delta], _: &[Letter]) -> io::Result<()> {
            Ok(())
        }

        fn commit(&mut self, _: &Mark) -> io::Result<()> {
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_shared_sink_forwards_calls() {
        let mut shared = Arc::new(Mutex::new(LiveEpoch::default()));
        assert_eq!(Sink::topic(&shared), shared.lock().topic());
        Sink::live(&mut shared, 7);
        assert_eq!(shared.lock().0, Some(7));
    }
}
