//! The first pairs in an order other than that of their ids.
//!
//! In: all pairs, in any order. Out: the first `limit` of them by descending rank, then by (a, b), after a
//! given position. Memory follows the limit, not the number of pairs. There is no index by time or by
//! similarity: an index would add half of the memory of a pair for pages that a person opens now and then.
//! Finding a page reads all pairs, which `docs/page.md` has measured.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::KnownPair;
use super::pairs::PairDetails;
use dupflow_core::doc::DocId;

/// By what pairs are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RankedBy {
    /// The epoch that added the pair with its similarity, newest first.
    Time,
    /// The similarity, greatest first.
    Similarity,
}

impl RankedBy {
    /// The rank of a pair. A similarity is not negative, so its bits ascend with it.
    fn rank(self, held: &PairDetails) -> u64 {
        match self {
            Self::Time => held.since,
            Self::Similarity => held.similarity.get().to_bits(),
        }
    }
}

/// A position in the order: after this pair, whether it still exists or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RankPosition {
    rank: Reverse<u64>,
    pair: (DocId, DocId),
}

impl RankPosition {
    pub(crate) fn new(rank: u64, a: DocId, b: DocId) -> Self {
        Self { rank: Reverse(rank), pair: (a, b) }
    }

    /// The rank and the ids, as [`Self::new`] takes them.
    pub(crate) fn parts(&self) -> (u64, &DocId, &DocId) {
        (self.rank.0, &self.pair.0, &self.pair.1)
    }
}

/// Collects the first pairs of the order.
#[derive(Debug)]
pub(crate) struct Ranking {
    by: RankedBy,
    after: Option<RankPosition>,
    limit: usize,
    first: BTreeMap<RankPosition, PairDetails>,
    /// Whether there are more than `limit` pairs.
    is_cut: bool,
}

impl Ranking {
    /// The first `limit` pairs, 1 or more, after a position.
    pub(crate) fn new(by: RankedBy, after: Option<RankPosition>, limit: usize) -> Self {
        Self { by, after, limit, first: BTreeMap::new(), is_cut: false }
    }

    pub(crate) fn add(&mut self, (a, b): (&DocId, &DocId), held: &PairDetails) {
        let rank = Reverse(self.by.rank(held));
        // Most pairs are decided by their rank alone, without a copy of their ids.
        let is_before =
            |position: &RankPosition| (rank, a, b) <= (position.rank, &position.pair.0, &position.pair.1);
        if self.after.as_ref().is_some_and(is_before) {
            return;
        }
        let is_full = self.first.len() == self.limit;
        if is_full && !self.first.last_key_value().is_some_and(|(last, _)| is_before(last)) {
            self.is_cut = true;
            return;
        }
        self.first.insert(RankPosition { rank, pair: (a.clone(), b.clone()) }, *held);
        if is_full {
            self.first.pop_last();
            self.is_cut = true;
        }
    }

    /// The pairs in order, and the position of the last one if more follow.
    pub(crate) fn page(self) -> (Vec<KnownPair>, Option<RankPosition>) {
        let next = self.first.last_key_value().map(|(last, _)| last.clone()).filter(|_| self.is_cut);
        let pairs = self.first.into_iter();
        let pairs = pairs.map(|(RankPosition { pair: (a, b), .. }, held)| KnownPair { a, b, held });
        (pairs.collect(), next)
    }
}
