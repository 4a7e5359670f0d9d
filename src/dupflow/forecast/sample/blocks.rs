//! The blocks of a sample, projected to the corpus that it is drawn from.
//!
//! In a random sample of n of N documents a sketch of one document stands for N / n others of its blocks; of
//! one that several documents of the sample have, there are hardly others like it. A block is taken for hot
//! if it has more members than the cap there, and if a block at the cap would show so many by chance with a
//! probability below [`CHANCE`]: so smaller blocks than [`shown_from`] do not show.

use std::collections::BTreeMap;

use dupflow_core::block::{BlockKey, Blocking, HotRule};
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::pair::Pair;
use dupflow_core::probability::poisson_at_most;
use dupflow_core::sketch::Sketch;

/// The sketch of each text, by the id of its first document.
pub(super) type Sketches = BTreeMap<DocId, (SketchId, Sketch)>;

/// Members of a block from which on its size is shown: the standard error is a third of it, or less.
pub(super) const SEEN: usize = 10;

/// Probability with which a block that is not hot in the corpus has so many members in the sample that it is
/// taken for one. There are some ten thousand blocks.
const CHANCE: f64 = 1e-6;

/// Distinct sketches, of a block or of the sample.
#[derive(Clone, Copy, Default)]
struct Members {
    /// Of one document in the sample: there are others like them in the corpus, which the sample has not.
    once: usize,
    /// Of several documents: the sample is likely to have all of these.
    more: usize,
}

impl Members {
    fn all(self) -> usize {
        self.once + self.more
    }

    /// Counts a sketch of so many documents.
    fn add(&mut self, documents: usize) {
        *if documents == 1 { &mut self.once } else { &mut self.more } += 1;
    }

    /// How many are in a corpus of `times` as many documents: those that have others like them there, and
    /// those that have not.
    fn parts(self, times: f64) -> (f64, f64) {
        if times <= 1.0 {
            (self.all() as f64 * times, 0.0)
        } else {
            (self.once as f64 * times, self.more as f64)
        }
    }

    /// Their number in the corpus.
    fn there(self, times: f64) -> f64 {
        let (once, more) = self.parts(times);
        once + more
    }

    /// The meetings of all with all in the corpus, those of each counted. One that the sample has once is not
    /// of the others that it stands for.
    fn meetings(self, times: f64) -> f64 {
        let (once, more) = self.parts(times);
        once * (once + more - times.max(1.0)).max(0.0) + more * (once + more - 1.0).max(0.0)
    }

    fn is_hot(self, rule: HotRule, times: f64) -> bool {
        self.there(times) > rule.cap as f64
            && (times <= 1.0 || self.more > rule.cap || by_chance(self.once, rule, times) < CHANCE)
    }
}

/// The probability with which a block at the cap has so many members or more in the sample.
fn by_chance(members: usize, rule: HotRule, times: f64) -> f64 {
    1.0 - poisson_at_most(rule.cap as f64 / times, members as f64 - 1.0)
}

/// The least number of sketches in the corpus with which a hot block shows; 0 if none is ever hot.
pub(super) fn shown_from(rule: HotRule, times: f64) -> f64 {
    let above = rule.cap.saturating_add(1);
    match rule.is_ever() {
        false => 0.0,
        true if times <= 1.0 => above as f64,
        true => {
            let least = (1..=above).find(|members| by_chance(*members, rule, times) < CHANCE);
            (least.unwrap_or(above) as f64 * times).max(above as f64)
        }
    }
}

/// The blocks of a sample. `times` is the number of documents in the corpus by that in the sample.
pub(super) struct Blocks<'b> {
    blocking: &'b dyn Blocking,
    sketches: Members,
    keys: BTreeMap<SketchId, Vec<BlockKey>>,
    members: BTreeMap<BlockKey, Members>,
}

impl<'b> Blocks<'b> {
    /// `copies` has the number of documents of each text.
    pub(super) fn new(
        sketches: &Sketches,
        copies: &BTreeMap<DocId, usize>,
        blocking: &'b dyn Blocking,
    ) -> Self {
        let mut documents: BTreeMap<SketchId, usize> = BTreeMap::new();
        for (document, (id, _)) in sketches {
            *documents.entry(*id).or_default() += copies[document];
        }
        let (mut members, mut keys): (BTreeMap<BlockKey, Members>, BTreeMap<_, _>) = Default::default();
        for (id, sketch) in sketches.values() {
            keys.entry(*id).or_insert_with(|| {
                let mut of_sketch = Vec::new();
                blocking.keys(sketch.view(), &mut of_sketch);
                of_sketch.iter().for_each(|key| members.entry(*key).or_default().add(documents[id]));
                of_sketch
            });
        }
        let mut all = Members::default();
        documents.values().for_each(|documents| all.add(*documents));
        Self { blocking, sketches: all, keys, members }
    }

    /// Number of distinct sketches.
    pub(super) fn sketches(&self) -> usize {
        self.sketches.all()
    }

    fn is_hot(&self, key: &BlockKey, times: f64) -> bool {
        self.members[key].is_hot(self.blocking.rule(key.table), times)
    }

    /// The number of hot blocks of the corpus.
    pub(super) fn hot(&self, times: f64) -> usize {
        self.members.keys().filter(|key| self.is_hot(key, times)).count()
    }

    /// Sketches in the largest block of the corpus; 0 if the sample shows none.
    pub(super) fn largest(&self, times: f64) -> f64 {
        let shown = self.members.iter().filter(|(key, of)| of.all() >= SEEN || self.is_hot(key, times));
        shown.map(|(_, of)| of.there(times)).fold(0.0, f64::max)
    }

    /// Mean number of meetings of a sketch of the corpus in its blocks, or if no block were hot; `None` if
    /// distances decide which members of a block meet.
    pub(super) fn meetings(&self, times: f64, is_capped: bool) -> Option<f64> {
        let in_block = |(key, of): (&BlockKey, &Members)| {
            let rule = self.blocking.rule(key.table);
            let each = match of.is_hot(rule, times) {
                _ if !is_capped => f64::INFINITY,
                true => 2.0 * rule.leaders as f64,
                false => rule.cap.saturating_sub(1) as f64,
            };
            let met = of.meetings(times).min(of.there(times) * each);
            self.blocking.near(key.table).is_none().then_some(met)
        };
        let all: f64 = self.members.iter().map(in_block).sum::<Option<f64>>()?;
        Some(all / self.sketches.there(times))
    }

    /// Whether all blocks that both texts of a pair are in are hot in the corpus.
    pub(super) fn loses(&self, sketches: &Sketches, pair: &Pair<DocId>, times: f64) -> bool {
        let [a, b] = [pair.lo(), pair.hi()].map(|id| sketches[id].0);
        let (of_a, of_b) = (&self.keys[&a], &self.keys[&b]);
        let mut shared = of_a.iter().filter(|key| of_b.contains(key));
        // In the sample itself the pair was found, by a leader if need be.
        a != b && times > 1.0 && shared.all(|key| self.is_hot(key, times))
    }
}
