//! Pairs of documents, their similarity, and the deltas of the output.

mod similarity;
mod threshold;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

pub use similarity::{Overlap, SharesBeside, Similarity};
pub use threshold::Threshold;

use crate::doc::DocId;

/// Two different values in order: `lo < hi`, by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pair<T> {
    lo: T,
    hi: T,
}

impl<T: Ord> Pair<T> {
    /// Orders two values; `None` if they are equal.
    pub fn new(a: T, b: T) -> Option<Self> {
        match a.cmp(&b) {
            Ordering::Less => Some(Self { lo: a, hi: b }),
            Ordering::Equal => None,
            Ordering::Greater => Some(Self { lo: b, hi: a }),
        }
    }

    /// The smaller one.
    pub fn lo(&self) -> &T {
        &self.lo
    }

    /// The greater one.
    pub fn hi(&self) -> &T {
        &self.hi
    }
}

/// Why a pair was accepted: a pure function of the two sketches, so that a retraction carries the same
/// values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// Block keys that the two sketches have in common, hot blocks included; 0 for copies of one sketch.
    pub blocks: u16,
    /// The look that decided, from 1; 0 for copies, which are not compared.
    pub look: u16,
    /// Components that the filter read before it decided.
    pub components: u32,
}

/// An accepted pair of documents with its similarity and its evidence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DocPair {
    /// The two documents, `lo < hi` by bytes.
    pub pair: Pair<DocId>,
    /// Their similarity as the pipeline measures it, of `lo` and `hi` in this order.
    pub similarity: Similarity,
    /// Why they were accepted.
    pub evidence: Evidence,
}

impl DocPair {
    /// The pair of two documents with the similarity of a and b in this order; `None` for a document and
    /// itself.
    pub fn new(a: DocId, b: DocId, similarity: Similarity, evidence: Evidence) -> Option<Self> {
        let similarity = if a <= b { similarity } else { similarity.flipped() };
        Some(Self { pair: Pair::new(a, b)?, similarity, evidence })
    }
}

/// The cause of a delta: the change of the pair's documents in its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A document was inserted.
    Insert,
    /// A document has a new text.
    Update,
    /// A document was deleted.
    Delete,
    /// A document has expired.
    Expire,
    /// A document is weighted by another table of document frequencies.
    #[serde(rename = "re-weighed")]
    Reweighed,
    /// Neither document has changed: one of them is in a group of copies that has crossed its limit or has a
    /// new smallest id, so the group's visible members have changed.
    #[serde(rename = "re-grouped")]
    Regrouped,
    /// Neither document has changed: a block in which they met has become hot or has another leader.
    BlockDied,
    /// Neither document has changed: a block in which they meet is no longer hot or has another leader.
    BlockRevived,
    /// A run that reconciles the output has corrected it.
    Correction,
}

impl Cause {
    /// All causes, in order.
    pub const ALL: [Self; 9] = [
        Self::Insert,
        Self::Update,
        Self::Delete,
        Self::Expire,
        Self::Reweighed,
        Self::Regrouped,
        Self::BlockDied,
        Self::BlockRevived,
        Self::Correction,
    ];

    /// The name in output and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Expire => "expire",
            Self::Reweighed => "re-weighed",
            Self::Regrouped => "re-grouped",
            Self::BlockDied => "block-died",
            Self::BlockRevived => "block-revived",
            Self::Correction => "correction",
        }
    }
}

/// A change of the set of pairs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Delta {
    /// The pair.
    pub pair: DocPair,
    /// 1 if the pair is added, -1 if it is removed.
    pub diff: isize,
    /// The cause of the change.
    pub cause: Cause,
}

impl Delta {
    /// The delta of a pair whose documents have not changed, caused by a change of its blocks.
    pub fn by_block(pair: DocPair, diff: isize) -> Self {
        let cause = if diff > 0 { Cause::BlockRevived } else { Cause::BlockDied };
        Self { pair, diff, cause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_order_of_ids() {
        let id = |name| DocId::new(name).unwrap();
        let similarity = Similarity::of_shares([0.9, 0.25]);
        let pair = |a, b, of_both| DocPair::new(id(a), id(b), of_both, Evidence::default());
        assert_eq!(pair("x", "a", similarity), pair("a", "x", similarity.flipped()));
        assert_eq!(pair("a", "x", similarity).unwrap().similarity, similarity);
        assert_eq!(pair("a", "a", similarity), None);
    }
}
