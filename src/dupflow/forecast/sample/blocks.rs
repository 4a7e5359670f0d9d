//! The blocks of a sample, projected to the corpus that it is drawn from.

use std::collections::BTreeMap;

use dupflow_core::block::{BlockKey, Blocking, HotRule};
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::pair::Pair;
use dupflow_core::sketch::Sketch;

/// Members of a block from which on its size says how large it is in the corpus: the standard error is a
/// third of it, or less.
pub(super) const SEEN: usize = 10;

/// The documents that have a sketch.
pub(super) type Sketches = BTreeMap<DocId, (SketchId, Sketch)>;

/// The blocks of a sample. `times` is the number of documents in the corpus by that in the sample.
pub(super) struct Blocks<'b> {
    blocking: &'b dyn Blocking,
    pub(super) keys: BTreeMap<SketchId, Vec<BlockKey>>,
    sizes: BTreeMap<BlockKey, usize>,
}

impl<'b> Blocks<'b> {
    pub(super) fn new(sketches: &Sketches, blocking: &'b dyn Blocking) -> Self {
        let mut blocks = Self { blocking, keys: BTreeMap::new(), sizes: BTreeMap::new() };
        for (id, sketch) in sketches.values() {
            let mut keys = Vec::new();
            blocking.keys(sketch.view(), &mut keys);
            if !blocks.keys.contains_key(id) {
                keys.iter().for_each(|key| *blocks.sizes.entry(*key).or_default() += 1);
                blocks.keys.insert(*id, keys);
            }
        }
        blocks
    }

    /// Its rule, if a block is hot in the corpus.
    fn rule(&self, key: &BlockKey, size: usize, times: f64) -> Option<HotRule> {
        let rule = self.blocking.rule(key.table);
        let is_seen = size >= SEEN || times <= 1.0;
        (is_seen && size as f64 * times > rule.cap as f64).then_some(rule)
    }

    /// The number of hot blocks of the corpus.
    pub(super) fn hot(&self, times: f64) -> usize {
        self.sizes.iter().filter(|(key, size)| self.rule(key, **size, times).is_some()).count()
    }

    /// Sketches in the largest block of the corpus; 0 if the sample shows none.
    pub(super) fn largest(&self, times: f64) -> f64 {
        let largest = self.sizes.values().filter(|size| **size >= SEEN).max();
        largest.map_or(0.0, |size| *size as f64 * times)
    }

    /// Meetings of a sketch of the corpus, in blocks that it shares.
    pub(super) fn meetings(&self, times: f64) -> f64 {
        let in_block = |(key, size): (&BlockKey, &usize)| match self.rule(key, *size, times) {
            Some(rule) => *size as f64 * 2.0 * rule.leaders as f64,
            None => *size as f64 * (*size as f64 - 1.0) * times,
        };
        self.sizes.iter().map(in_block).sum::<f64>() / self.keys.len().max(1) as f64
    }

    /// Whether all blocks that both texts of a pair are in are hot in the corpus.
    pub(super) fn loses(&self, sketches: &Sketches, pair: &Pair<DocId>, times: f64) -> bool {
        let [a, b] = [pair.lo(), pair.hi()].map(|id| sketches[id].0);
        let (of_a, of_b) = (&self.keys[&a], &self.keys[&b]);
        let mut shared = of_a.iter().filter(|key| of_b.contains(key));
        // In the sample itself the pair was found, by a leader if need be.
        a != b && times > 1.0 && shared.all(|key| self.rule(key, self.sizes[key], times).is_some())
    }
}
