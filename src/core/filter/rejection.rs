//! What a filter has found of a pair that it rejects.

use serde::{Deserialize, Serialize};

use super::{PairFilter, Verdict};
use crate::pair::Similarity;
use crate::sketch::SketchRef;

/// What rejects a pair, in the order in which it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RejectedBy {
    /// The rule on the documents' fields.
    #[serde(rename = "pairs.where")]
    Where,
    /// A text with too few words to be compared (`filter.least_words`), or too few values to estimate from.
    #[serde(rename = "too-short")]
    TooShort,
    /// The test of the first words.
    #[serde(rename = "first-word")]
    FirstWord,
    /// The numbers of features, or their weights, which rule the threshold out.
    #[serde(rename = "sizes")]
    Sizes,
    /// A look at some or at all components.
    #[serde(rename = "look")]
    Look,
    /// The exact similarity of the features.
    #[serde(rename = "features")]
    Features,
}

impl RejectedBy {
    /// The name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Where => "pairs.where",
            Self::TooShort => "too-short",
            Self::FirstWord => "first-word",
            Self::Sizes => "sizes",
            Self::Look => "look",
            Self::Features => "features",
        }
    }
}

/// Places that agree among those that a look reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreeing {
    /// How many agree: components, or bits in the test of the first words.
    pub found: u32,
    /// The look rejects a pair with fewer than this.
    pub needed: u32,
}

/// Why a pair is rejected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rejection {
    /// What rejects it.
    pub by: RejectedBy,
    /// As in its [`Verdict`].
    pub look: u16,
    /// As in its [`Verdict`].
    pub components: u32,
    /// What the look has found, if it counts places.
    pub agreeing: Option<Agreeing>,
    /// The similarity as the filter measures it: exact where features are kept, else estimated from all
    /// components.
    pub similarity: Similarity,
}

impl Rejection {
    /// Why `filter` rejects a pair with this verdict.
    pub fn new(filter: &dyn PairFilter, a: SketchRef<'_>, b: SketchRef<'_>, verdict: Verdict) -> Self {
        let Verdict { look, components, .. } = verdict;
        Self {
            by: filter.rejected_by(look),
            look,
            components,
            agreeing: filter.agreeing(a, b, look),
            similarity: filter.similarity(a, b),
        }
    }
}
