//! Pairs: accepted pairs of sketches become pairs of documents.

use differential_dataflow::AsCollection;
use differential_dataflow::operators::ThresholdTotal;

use super::{Accepted, Deltas};
use crate::doc::DocId;
use crate::hash::SketchId;
use crate::pair::{DocPair, Pair};

/// Joins accepted pairs with the members of both sketches.
///
/// A pair is accepted once for every live block that its sketches share and that survives, so it is thresholded first.
/// The members of all sketches are arranged once and serve both joins.
pub(super) fn expand<'scope>(
    accepted: Deltas<'scope, (Pair<SketchId>, Accepted)>,
    members: Deltas<'scope, (SketchId, DocId)>,
) -> Deltas<'scope, DocPair> {
    let members = members.as_collection().arrange_by_key_named("Members");
    accepted
        .as_collection()
        .arrange_by_self_named("Accepted")
        // Not `distinct_total`: in differential 0.25.1 it takes a count of zero for one, and retracts nothing.
        .threshold_total(|_, blocks| isize::from(*blocks > 0))
        .map(|(pair, accepted)| (*pair.lo(), (*pair.hi(), accepted)))
        .arrange_by_key_named("Pairs by x")
        .join_core(members.clone(), |_x, (y, accepted), a: &DocId| Some((*y, (a.clone(), *accepted))))
        .arrange_by_key_named("Pairs by y")
        .join_core(members, |_y, (a, accepted): &(DocId, Accepted), b: &DocId| {
            // A document has one sketch at a time, so it never meets itself in what is accumulated; changes of one
            // epoch in which it goes from y to x cancel, and may be left out.
            let pair = Pair::new(a.clone(), b.clone())?;
            Some(DocPair { pair, similarity: accepted.similarity, evidence: accepted.evidence })
        })
        .inner
}
