//! Pairs that ended, the last ones of them.

use crate::cluster_history::EndedMap;
use crate::view::pairs::{PairDetails, Since};
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Pair};

/// The end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedPair {
    /// The pair as it was.
    pub(crate) was: PairDetails,
    /// The epoch that removed it. If it is not exact, the pair had ended by this epoch and these times.
    pub(crate) ended: Since,
    /// The cause of that delta.
    pub(crate) cause: Cause,
}

/// The ends of the last 10,000 ended pairs.
pub(crate) type EndedPairs = EndedMap<Pair<DocId>, EndedPair, 10_000>;
