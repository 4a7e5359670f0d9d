//! The index of watches by block, and the comparison of a sketch with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dupflow_core::block::index::{BlockIndex, Postings, SketchHead};
use dupflow_core::block::{BlockKey, Blocking, HotRule, NearRule};
use dupflow_core::filter::PairFilter;
use dupflow_core::hash::SketchId;
use dupflow_core::pair::Similarity;
use dupflow_core::sketch::{Sketch, SketchRef};

/// A blocking whose blocks are never hot: watches of a block are all compared. Watches have no fields, so
/// there are no realms.
#[derive(Debug)]
struct Uncapped<'a>(&'a dyn Blocking);

impl Blocking for Uncapped<'_> {
    fn keys(&self, sketch: SketchRef<'_>, out: &mut Vec<BlockKey>) {
        self.0.keys(sketch, out);
    }

    fn tables(&self) -> usize {
        self.0.tables()
    }

    fn rule(&self, _table: u16) -> HotRule {
        HotRule::NEVER
    }

    fn near(&self, table: u16) -> Option<NearRule> {
        self.0.near(table)
    }

    fn scan_limit(&self) -> usize {
        self.0.scan_limit()
    }
}

/// The distinct sketches of watches, by block.
#[derive(Debug)]
pub(super) struct WatchIndex {
    blocking: Arc<dyn Blocking>,
    filter: Arc<dyn PairFilter>,
    blocks: BlockIndex,
    sketches: BTreeMap<SketchId, Sketch>,
    /// Buffers for keys.
    own: Vec<BlockKey>,
    shared: Vec<BlockKey>,
}

/// Watched sketches up to which the first words of all are looked at before the blocks of a sketch are
/// computed, inclusive. Chosen: 64 looks cost about as much as computing the keys once.
const FIRST_WORDS: usize = 64;

impl WatchIndex {
    pub(super) fn new(blocking: &Arc<dyn Blocking>, filter: &Arc<dyn PairFilter>) -> Self {
        Self {
            blocking: Arc::clone(blocking),
            filter: Arc::clone(filter),
            blocks: BlockIndex::for_blocking(&Uncapped(&**blocking)),
            sketches: BTreeMap::new(),
            own: Vec::new(),
            shared: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sketches.is_empty()
    }

    /// Adds sketches that are not in the index.
    pub(super) fn add(&mut self, sketches: impl IntoIterator<Item = (SketchId, Sketch)>) {
        let mut postings = Postings::default();
        for (id, sketch) in sketches {
            self.post(&mut postings, id, &sketch, 1);
            self.sketches.insert(id, sketch);
        }
        self.apply(postings);
    }

    /// Removes a sketch of the index.
    pub(super) fn remove(&mut self, id: SketchId) {
        if let Some(sketch) = self.sketches.remove(&id) {
            let mut postings = Postings::default();
            self.post(&mut postings, id, &sketch, -1);
            self.apply(postings);
        }
    }

    fn post(&mut self, postings: &mut Postings, id: SketchId, sketch: &Sketch, diff: i8) {
        self.blocking.keys(sketch.view(), &mut self.own);
        self.own.drain(..).for_each(|key| postings.key(key));
        postings.sketch(id, sketch.words[0], diff);
    }

    /// Watches do not meet each other.
    fn apply(&mut self, postings: Postings) {
        self.blocks.apply([postings], |_, _, _| false, |_, _| {});
    }

    /// Whether a sketch with this first word may be similar to one of the index; true is not exact.
    pub(super) fn may_be_similar(&self, id: SketchId, word: u64) -> bool {
        self.sketches.len() > FIRST_WORDS
            || self
                .sketches
                .iter()
                .any(|(watched, sketch)| *watched == id || self.filter.first_word(word, sketch.words[0]))
    }

    /// Calls `found` with each watched sketch that is similar to this one, and the similarity of it and this
    /// one. `keys` are the
    /// block keys of the sketch.
    pub(super) fn similar(
        &mut self,
        id: SketchId,
        sketch: SketchRef<'_>,
        keys: &[BlockKey],
        mut found: impl FnMut(SketchId, Similarity),
    ) {
        if self.sketches.contains_key(&id) {
            // As copies are: equal in everything that is compared.
            found(id, Similarity::ONE);
        }
        let Self { blocking, filter, blocks, sketches, shared, .. } = self;
        let least = blocking.least();
        blocks.visit(
            keys,
            SketchHead { id, word: sketch.words[0], realm: None },
            |a, b| filter.first_word(a, b),
            |watched| {
                let other = sketches[&watched].view();
                if least > 1 && shared_blocks(&**blocking, keys, other, shared) < least {
                    return;
                }
                // As a pair of sketches is compared, in ascending order of ids.
                let (lo, hi) = if id < watched { (sketch, other) } else { (other, sketch) };
                if let Some(similarity) = filter.decide_passed(lo, hi).accepted {
                    found(watched, if id < watched { similarity.flipped() } else { similarity });
                }
            },
        );
    }
}

/// The number of block keys of `other` that are among `keys`.
fn shared_blocks(
    blocking: &dyn Blocking,
    keys: &[BlockKey],
    other: SketchRef<'_>,
    buffer: &mut Vec<BlockKey>,
) -> usize {
    buffer.clear();
    blocking.keys(other, buffer);
    buffer.iter().filter(|key| keys.contains(key)).count()
}
