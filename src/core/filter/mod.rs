//! The pair filter: decides whether a candidate pair is accepted, reading as little of the two sketches as
//! possible.
//!
//! In: two sketches. Out: a [`Verdict`]. The filters:
//!
//! | filter | rejects by | accepts by |
//! |---|---|---|
//! | [`StagedFilter`] | parts of the sketches, in several looks | the same |
//! | [`ExactFilter`] | parts of the sketches | the features |
//! | [`WholeFilter`] | the estimate of the whole sketches | the same |
//! | [`ContainmentFilter`] | the numbers of words and of kept values | the values of scaled sketches |
//! | [`RuledFilter`] | a rule on the documents' fields, then another filter | the other filter |
//!
//! A [`Schedule`] has the looks and their bounds. They are derived from a [`Target`], a threshold for
//! sketches of one shape. The components read and the error probabilities are functions of the schedule:
//! [`Schedule::operation`] and [`Schedule::spent`].
//!
//! The sketches are compared from their first component on. The first word, one bit of each of 64 components,
//! is stored in the block index, so [`PairFilter::first_word`] rejects most candidates before a sketch is
//! fetched.

mod containment;
mod exact;
mod merge;
mod rejection;
mod ruled;
mod schedule;
mod sequential;
mod staged;
mod target;
mod weighted;
mod whole;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use containment::ContainmentFilter;
pub use exact::ExactFilter;
pub use merge::shared_features;
pub use rejection::{Agreeing, RejectedBy, Rejection};
pub use ruled::RuledFilter;
pub use schedule::{Look, Operation, Schedule, SpentError, Stop};
pub use staged::StagedFilter;
pub use target::Target;
pub use whole::WholeFilter;

use crate::pair::Similarity;
use crate::sketch::SketchRef;

/// The answer of a filter about two sketches; a pure function of the two, symmetric except that exchanging
/// them [flips](Similarity::flipped) the similarity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The pair's similarity if it is accepted.
    pub accepted: Option<Similarity>,
    /// Number of the look that decided, from 1; 0 if a rule rejected the pair before all looks.
    pub look: u16,
    /// Components read before the decision, the first word's test included. Components that are read
    /// afterwards for the estimate of an accepted pair do not count.
    pub components: u32,
}

impl Verdict {
    /// The verdict on a pair that a rule rejects.
    pub const RULED_OUT: Self = Self { accepted: None, look: 0, components: 0 };

    /// The verdict on a pair that the first word's test rejects.
    fn first_word_rejects() -> Self {
        Self { accepted: None, look: 1, components: 64 }
    }
}

/// Decides candidate pairs.
///
/// Contract: all methods are pure and symmetric in the two sketches, except that exchanging them
/// [flips](Similarity::flipped) similarities.
pub trait PairFilter: Send + Sync + fmt::Debug {
    /// Whether a pair survives a look at the first fingerprint words alone (bit 0 of components 0 to 63).
    fn first_word(&self, a: u64, b: u64) -> bool;

    /// The verdict on a pair that [`first_word`](Self::first_word) has let pass.
    fn decide_passed(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict;

    /// The verdict on a pair, the first word's test included.
    fn decide(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict {
        if self.first_word(a.words[0], b.words[0]) {
            self.decide_passed(a, b)
        } else {
            Verdict::first_word_rejects()
        }
    }

    /// Whether a text with this first word is so short that it is similar to none but its copies.
    fn is_too_short(&self, _word: u64) -> bool {
        false
    }

    /// Number of looks; a verdict's `look` is in `1..=looks()`, or 0 for [`Verdict::RULED_OUT`].
    fn looks(&self) -> usize;

    /// What rejects the pairs whose verdict has this look.
    fn rejected_by(&self, _look: u16) -> RejectedBy {
        RejectedBy::Look
    }

    /// The places that agree at this look; `None` if it counts none.
    fn agreeing(&self, _a: SketchRef<'_>, _b: SketchRef<'_>, _look: u16) -> Option<Agreeing> {
        None
    }

    /// The similarity of two sketches as the filter measures it, whatever its verdict.
    fn similarity(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Similarity;

    /// The same filter for a run that writes no similarity: it accepts the same pairs at the same looks, but
    /// the similarity is estimated only from the components read so far. `None` where this saves no work.
    fn for_membership(&self) -> Option<Arc<dyn PairFilter>> {
        None
    }

    /// Whether documents of one sketch are pairs.
    fn pairs_copies(&self) -> bool {
        true
    }
}

/// How early looks decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilterKind {
    /// Exact sequential bounds.
    #[default]
    Staged,
    /// Binomial bounds for each look separately (Yuan et al. 2019, corrected).
    Paper,
    /// No early stop.
    Full,
    /// No early stop; one-bit sketches within a Hamming radius.
    Hamming,
}

/// The final decision on pairs that no look rejects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// The estimate from the sketches.
    #[default]
    Sketch,
    /// The exact similarity of the features, which are stored with the sketches.
    Exact,
}

/// The table `[filter]` of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilterParams {
    /// How early looks decide; default `staged`.
    pub kind: FilterKind,
    /// Error probability of the early looks, from 1e-200 to 0.1: of all looks together for wrong accepts
    /// and for wrong rejects each (kind `staged`), or of each look (kind `paper`). Default 1e-5, and 1e-3
    /// with `verify = "exact"`, where an error can only reduce recall.
    pub error: Option<f64>,
    /// Components after which to look, ascending; default [`Target::default_looks`], and the paper's own for
    /// kind `paper`.
    pub looks: Option<Vec<usize>>,
    /// The final decision on the pairs that no look rejects; default `sketch`.
    pub verify: Verify,
}

/// The least error probability, inclusive: tails far below it have no double.
pub const LEAST_ERROR: f64 = 1e-200;

impl FilterParams {
    /// The error in force: as configured, or the default.
    ///
    /// # Errors
    /// If it is outside its range.
    pub fn error(&self) -> Result<f64, FilterError> {
        let default = match self.verify {
            Verify::Sketch => 1e-5,
            Verify::Exact => 1e-3,
        };
        let error = self.error.unwrap_or(default);
        if (LEAST_ERROR..=0.1).contains(&error) {
            Ok(error)
        } else {
            Err(FilterError::Error { found: error })
        }
    }
}

/// An error in a filter's parameters.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FilterError {
    /// Threshold outside its range.
    #[error("threshold {found} is outside its range: above 0 and at most 1")]
    Threshold {
        /// As configured.
        found: f64,
    },
    /// Error outside its range.
    #[error("filter error {found:?} is outside its range, from 1e-200 to 0.1")]
    Error {
        /// As configured.
        found: f64,
    },
    /// Looks that are not a valid schedule.
    #[error(
        "filter looks {found:?} must ascend, from {first} components on to at most {size}, the sketch's size"
    )]
    Looks {
        /// As configured.
        found: Vec<usize>,
        /// Least components of a look.
        first: usize,
        /// K.
        size: usize,
    },
    /// A kind that cannot be used with exact verification.
    #[error(
        "filter kind \"paper\" decides by the sketches alone; verify = \"exact\" goes with \"staged\" \
        or \"full\""
    )]
    PaperExact,
}
