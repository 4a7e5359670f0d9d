//! Pairs of documents, their similarity, and the deltas of the output.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::doc::DocId;

/// A similarity in `0.0..=1.0`, with the total order and the identity that a dataflow record needs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Similarity(f64);

impl Similarity {
    /// The similarity of a text to its copy.
    pub const ONE: Self = Self(1.0);

    /// Clamps an estimate to `0.0..=1.0`; a NaN becomes 0.
    pub fn clamped(estimate: f64) -> Self {
        // `max` first: it turns a NaN and a negative zero into 0.
        Self(if estimate > 0.0 { estimate.min(1.0) } else { 0.0 })
    }

    /// The value, in `0.0..=1.0`.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Ord for Similarity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Similarity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Similarity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Similarity {}

impl Hash for Similarity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

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
    /// Their similarity as the pipeline measures it.
    pub similarity: Similarity,
    /// Why they were accepted.
    pub evidence: Evidence,
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
