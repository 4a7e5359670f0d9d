//! Candidates that the filter rejects: how many a corpus has, and a sample of them.
//!
//! In: the distinct sketches of a corpus. Out: the number of candidates and of those that are rejected, by
//! what rejects them, and the rejected pairs with the least hash.
//!
//! A candidate is a pair of distinct sketches that meet in a [block](crate::block) (in as many as
//! [`Blocking::least`]). A pair's hash is one of the ids of its two sketches, so the pairs with the least
//! hash are a sample that does not depend on similarity. Invariant: all results are functions of the set of
//! sketches with their documents. The history of the corpus and the parts into which the work is cut have no
//! influence.
//!
//! Copies of one sketch are no candidates: they are not compared.
//!
//! Costs: the block index of all sketches, and one comparison for each candidate.

use std::collections::{BTreeMap, BinaryHeap};

use serde::Serialize;

use crate::block::index::{BlockIndex, Postings, SketchHead};
use crate::block::{BlockKey, Blocking};
use crate::doc::DocId;
use crate::filter::{PairFilter, RejectedBy, Rejection};
use crate::hash::{self, SketchId};
use crate::pair::Pair;
use crate::sketch::{Sketch, SketchRef};

/// Seed of the hashes of pairs.
const SEED: u64 = hash::PI[6];

/// Most keys of postings that are passed to the index together.
const POSTED: usize = 1 << 16;

/// A sketch of a corpus, with its documents.
#[derive(Clone, Debug)]
pub struct LiveSketch {
    /// Its id.
    pub id: SketchId,
    /// The sketch.
    pub sketch: Sketch,
    /// The smallest id of its documents.
    pub document: DocId,
    /// The number of its documents, at least 1.
    pub documents: u64,
}

/// A candidate that is rejected.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectedPair {
    /// The documents with the smallest ids of the two sketches, in the order of their ids.
    pub pair: Pair<DocId>,
    /// Pairs of documents that have these two sketches.
    pub pairs: u64,
    /// Block keys that the two sketches have in common.
    pub blocks: u16,
    /// Why it is rejected.
    pub rejection: Rejection,
}

/// Numbers of candidates: pairs of distinct sketches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RejectedCounts {
    /// All candidates.
    pub candidates: u64,
    /// Those that are rejected.
    pub rejected: u64,
    /// Those that are rejected, by what rejects them.
    pub by: BTreeMap<RejectedBy, u64>,
}

/// The candidates of a part of a corpus: their numbers, and the rejected ones with the least hash.
#[derive(Clone, Debug)]
pub struct RejectedSample {
    most: usize,
    counts: RejectedCounts,
    /// By hash, then by the places of the two sketches; the greatest first.
    least: BinaryHeap<(u64, usize, usize)>,
}

/// The candidates of a corpus.
#[derive(Debug)]
pub struct CandidateSurvey<'s> {
    /// Ascending by id.
    sketches: &'s [LiveSketch],
    blocking: &'s dyn Blocking,
    filter: &'s dyn PairFilter,
    index: BlockIndex,
}

impl<'s> CandidateSurvey<'s> {
    /// The survey of these sketches, which must be distinct; sorts them by their ids.
    pub fn new(
        sketches: &'s mut [LiveSketch],
        blocking: &'s dyn Blocking,
        filter: &'s dyn PairFilter,
    ) -> Self {
        sketches.sort_unstable_by_key(|live| live.id);
        debug_assert!(sketches.is_sorted_by(|a, b| a.id < b.id), "sketches are distinct");
        let mut index = BlockIndex::for_blocking(blocking);
        let mut posted = vec![Postings::default()];
        let mut keys = Vec::new();
        for LiveSketch { id, sketch, .. } in &*sketches {
            if posted.last().is_none_or(|last| last.len() >= POSTED) {
                posted.push(Postings::default());
            }
            let Some(last) = posted.last_mut() else { continue };
            blocking.keys(sketch.view(), &mut keys);
            keys.drain(..).for_each(|key| last.key(key));
            last.sketch_at(None, head(blocking, *id, sketch), 1, true);
        }
        // All in one change, without a meeting: they are visited afterwards, one sketch at a time.
        index.apply(posted, |_, _, _| false, |_, _| {});
        Self { sketches, blocking, filter, index }
    }

    /// The candidates of every `parts`-th sketch from `part` on, each with the sketches after it, and at most
    /// `most` rejected ones. All parts [together](RejectedSample::merge) have each candidate once.
    pub fn sample(&self, part: usize, parts: usize, most: usize) -> RejectedSample {
        let mut sample = RejectedSample::new(most);
        let (mut keys, mut shared) = (Vec::new(), Vec::new());
        for x in (part..self.sketches.len()).step_by(parts) {
            let LiveSketch { id, sketch, .. } = &self.sketches[x];
            keys.clear();
            self.blocking.keys(sketch.view(), &mut keys);
            keys.sort_unstable();
            self.index.visit(
                &keys,
                head(self.blocking, *id, sketch),
                |_, _| true,
                |other| {
                    if other > *id {
                        self.compare(x, other, &keys, &mut shared, &mut sample);
                    }
                },
            );
        }
        sample
    }

    /// Compares the sketch at `x`, which has these block keys, ascending, with a sketch that it meets.
    fn compare(
        &self,
        x: usize,
        other: SketchId,
        keys: &[BlockKey],
        shared: &mut Vec<BlockKey>,
        sample: &mut RejectedSample,
    ) {
        let found = self.sketches.binary_search_by_key(&other, |live| live.id);
        let y = found.expect("the index has these sketches only");
        let [a, b] = [x, y].map(|at| self.sketches[at].sketch.view());
        let least = self.blocking.least();
        if least > 1 && shared_blocks(self.blocking, keys, b, shared) < least {
            return;
        }
        sample.counts.candidates += 1;
        let verdict = self.filter.decide(a, b);
        if verdict.accepted.is_none() {
            sample.add(self.filter.rejected_by(verdict.look), (pair_hash(self.sketches[x].id, other), x, y));
        }
    }

    /// The pairs of a sample of this survey, sorted by their documents.
    ///
    /// # Panics
    /// If two sketches have a document in common.
    pub fn pairs(&self, sample: &RejectedSample) -> Vec<RejectedPair> {
        let (mut keys, mut shared) = (Vec::new(), Vec::new());
        let described = |(_, x, y): &(u64, usize, usize)| {
            let [of_x, of_y] = [x, y].map(|at| &self.sketches[*at]);
            let (a, b) = (of_x.sketch.view(), of_y.sketch.view());
            keys.clear();
            self.blocking.keys(a, &mut keys);
            keys.sort_unstable();
            let blocks = shared_blocks(self.blocking, &keys, b, &mut shared);
            let mut rejection = Rejection::new(self.filter, a, b, self.filter.decide(a, b));
            if of_x.document > of_y.document {
                rejection.similarity = rejection.similarity.flipped();
            }
            RejectedPair {
                pair: Pair::new(of_x.document.clone(), of_y.document.clone())
                    .expect("a document has one sketch"),
                pairs: of_x.documents * of_y.documents,
                blocks: u16::try_from(blocks).unwrap_or(u16::MAX),
                rejection,
            }
        };
        let mut pairs: Vec<_> = sample.least.iter().map(described).collect();
        pairs.sort_unstable_by(|p, q| p.pair.cmp(&q.pair));
        pairs
    }
}

impl RejectedSample {
    /// Without candidates; for at most `most` pairs.
    pub fn new(most: usize) -> Self {
        Self { most, counts: RejectedCounts::default(), least: BinaryHeap::new() }
    }

    /// Adds the sample of another part of the same survey.
    pub fn merge(&mut self, other: Self) {
        self.counts.candidates += other.counts.candidates;
        self.counts.rejected += other.counts.rejected;
        for (by, n) in other.counts.by {
            *self.counts.by.entry(by).or_default() += n;
        }
        other.least.into_iter().for_each(|ranked| self.rank(ranked));
    }

    /// The numbers of candidates.
    pub fn counts(&self) -> &RejectedCounts {
        &self.counts
    }

    fn add(&mut self, by: RejectedBy, ranked: (u64, usize, usize)) {
        self.counts.rejected += 1;
        *self.counts.by.entry(by).or_default() += 1;
        self.rank(ranked);
    }

    fn rank(&mut self, ranked: (u64, usize, usize)) {
        if self.least.len() < self.most {
            self.least.push(ranked);
        } else if let Some(mut greatest) = self.least.peek_mut().filter(|greatest| ranked < **greatest) {
            *greatest = ranked;
        }
    }
}

/// What the index has of a sketch.
fn head(blocking: &dyn Blocking, id: SketchId, sketch: &Sketch) -> SketchHead {
    SketchHead { id, word: sketch.words[0], realm: blocking.realm(sketch.view()) }
}

/// The hash by which pairs are chosen: of the two ids in ascending order, each as its high and its low half.
fn pair_hash(x: SketchId, y: SketchId) -> u64 {
    let halves = [x.high(), x.low(), y.high(), y.low()].map(u64::to_le_bytes);
    hash::bytes(SEED, halves.as_flattened())
}

/// The number of block keys of `other` that are among `keys`, which ascend.
fn shared_blocks(
    blocking: &dyn Blocking,
    keys: &[BlockKey],
    other: SketchRef<'_>,
    buffer: &mut Vec<BlockKey>,
) -> usize {
    buffer.clear();
    blocking.keys(other, buffer);
    buffer.iter().filter(|key| keys.binary_search(key).is_ok()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of one corpus must stay the same in later versions.
    #[test]
    fn golden_hash_of_a_pair() {
        let id = |n: u64| SketchId::new(0, &[n]);
        assert_eq!(pair_hash(id(1), id(2)), 0x7640_4ec7_6435_70f7);
        assert_ne!(pair_hash(id(1), id(2)), pair_hash(id(2), id(1)));
    }
}
