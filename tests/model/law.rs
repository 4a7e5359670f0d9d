//! Corpora, accumulated deltas, and the comparison of both with the oracle.

use std::collections::{BTreeMap, BTreeSet};

use dupflow::core::doc::DocId;
use dupflow::core::hash::SketchId;
use dupflow::core::oracle;
use dupflow::core::pair::{DocPair, Pair};
use dupflow::core::sketch::{Sketch, SketchMaker};
use dupflow::core::time::Epoch;
use dupflow::engine::dataflow::Stages;

use crate::data::Event;
use crate::script::{self, Delta, Run};

/// The live documents that have a token, with their sketches.
pub(crate) struct Corpus {
    maker: SketchMaker,
    pub(crate) alive: BTreeMap<DocId, (SketchId, Sketch)>,
}

impl Corpus {
    pub(crate) fn new(stages: &Stages) -> Self {
        Self { maker: SketchMaker::new(&stages.scheme), alive: BTreeMap::new() }
    }

    pub(crate) fn apply(&mut self, events: &[Event]) {
        for (id, text) in events {
            match text.as_ref().and_then(|text| self.maker.sketch(text)) {
                Some(sketched) => self.alive.insert(id.clone(), sketched),
                None => self.alive.remove(id),
            };
        }
    }

    /// D(C).
    pub(crate) fn pairs(&self, stages: &Stages) -> BTreeSet<DocPair> {
        oracle::exact(&self.alive, &*stages.blocking, &*stages.filter, stages.expand_limit)
    }
}

/// What deltas have accumulated to, epoch by epoch.
pub(crate) struct Accumulated {
    deltas: std::iter::Peekable<std::vec::IntoIter<Delta>>,
    pub(crate) pairs: BTreeSet<DocPair>,
}

impl Accumulated {
    pub(crate) fn new(deltas: Vec<Delta>) -> Self {
        Self { deltas: deltas.into_iter().peekable(), pairs: BTreeSet::new() }
    }

    /// Adds the deltas of one epoch, which must be sorted and keep every pair at 0 or 1.
    pub(crate) fn advance(&mut self, epoch: Epoch) {
        let mut last: Option<(Pair<DocId>, isize)> = None;
        // Retractions sort before additions of the same pair, so after each line a pair is present once or
        // not at all.
        while let Some((_, pair, diff)) = self.deltas.next_if(|(e, ..)| *e == epoch) {
            assert!(diff == 1 || diff == -1, "{pair:?} changes by {diff}");
            assert!(last < Some((pair.pair.clone(), diff)), "epoch {epoch} is not sorted");
            last = Some((pair.pair.clone(), diff));
            let changed = if diff > 0 { self.pairs.insert(pair) } else { self.pairs.remove(&pair) };
            assert!(changed, "epoch {epoch}: {last:?} is there twice, or less than never");
        }
    }

    /// Asserts that no pair is left.
    pub(crate) fn end(mut self) -> BTreeSet<DocPair> {
        assert_eq!(self.deltas.next(), None, "deltas of an epoch that was not, or out of order");
        self.pairs
    }
}

/// Asserts that the accumulated pairs are the expected ones.
pub(crate) fn assert_same(found: &BTreeSet<DocPair>, expected: &BTreeSet<DocPair>, epoch: Epoch, run: Run) {
    let wrong: Vec<_> = found.symmetric_difference(expected).take(5).collect();
    assert!(wrong.is_empty(), "after epoch {epoch}, {run:?}: {wrong:?} …");
}

/// Runs a history and compares with the oracle after every epoch.
pub(crate) fn assert_law(stages: &Stages, epochs: &[Vec<Event>], run: Run) {
    let mut accumulated = Accumulated::new(script::deltas(stages, epochs, run));
    let mut corpus = Corpus::new(stages);
    for (epoch, events) in (1..).zip(epochs) {
        corpus.apply(events);
        accumulated.advance(epoch);
        assert_same(&accumulated.pairs, &corpus.pairs(stages), epoch, run);
    }
    accumulated.end();
}

/// The pairs at the end of a history.
pub(crate) fn at_the_end(stages: &Stages, epochs: &[Vec<Event>], run: Run) -> BTreeSet<DocPair> {
    let mut accumulated = Accumulated::new(script::deltas(stages, epochs, run));
    (1..).zip(epochs).for_each(|(epoch, _)| accumulated.advance(epoch));
    accumulated.end()
}
