//! Acceptance: the outcome of an accepted comparison.

use serde::{Deserialize, Serialize};

use dupflow_core::hash::SketchId;
use dupflow_core::pair::{Evidence, Pair, Similarity};

/// The similarity and the evidence of an accepted pair of sketches: pure functions of the two, in ascending
/// order of ids; in the answer to a query, of the query and the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Accepted {
    pub(super) similarity: Similarity,
    pub(super) evidence: Evidence,
}

/// The number of live blocks that an accepted pair of sketches shares changes by `diff`. At most one for each
/// pair and epoch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Acceptance {
    pub(super) pair: Pair<SketchId>,
    pub(super) accepted: Accepted,
    pub(super) diff: isize,
}
