//! The staged filter: decides whether a candidate pair is a pair, reading as little of the two sketches as it can.

use std::fmt;

use crate::pair::Similarity;
use crate::sketch::SketchRef;

/// The answer of a filter about two sketches; a pure function of the two, symmetric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The pair's similarity if it is accepted.
    pub accepted: Option<Similarity>,
    /// The look that decided, from 1.
    pub look: u16,
    /// Components read before the decision, the first word's test included.
    pub components: u32,
}

/// Decides candidate pairs.
///
/// Contract: pure and symmetric; `decide` implies `first_word`: a pair that `first_word` turns down is never accepted.
pub trait PairFilter: Send + Sync + fmt::Debug {
    /// Whether a pair survives a look at the first fingerprint words alone (bit 0 of components 0 to 63).
    fn first_word(&self, a: u64, b: u64) -> bool;

    /// The verdict on a pair, the first word's test included.
    fn decide(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict;

    /// Number of looks; a verdict's `look` is in `1..=looks()`.
    fn looks(&self) -> usize;
}
