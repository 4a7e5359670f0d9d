//! Top: the K first of each group, by a hierarchy of reductions.
//!
//! A reduction looks at all rows of a key whenever one of them changes. So a group is cut into buckets by a
//! hash of the id: the K first of each of 4,096 buckets, of these the K first of each of 64, of these the K
//! first. A change looks at the rows of one bucket and at 64 K rows twice, whatever the size of the group up
//! to 64 x 4,096 K.

use differential_dataflow::VecCollection;

use super::collections::{Ranked, ViewGroup};
use dupflow_core::doc::DocId;
use dupflow_core::hash;
use dupflow_core::time::Epoch;
use dupflow_core::views::{ViewMeasure, ViewPlan, ViewRow};

/// Buckets of a group at each level. Each number divides the one before, so that the rows of a bucket are in
/// one bucket of the next level.
const BUCKETS: [u64; 3] = [4096, 64, 1];

/// The bucket of a row at a level of `buckets`.
fn bucket(id: &DocId, buckets: u64) -> u16 {
    u16::try_from(hash::bytes(0, id.as_bytes()) % buckets).expect("there are fewer buckets")
}

/// The first rows of each group, as many as the plan of its view says.
pub(super) fn top<'scope>(
    mut ranked: VecCollection<'scope, Epoch, (ViewGroup, Ranked), isize>,
    plans: &[ViewPlan],
) -> VecCollection<'scope, Epoch, ViewRow, isize> {
    let most = plans.iter().map(|plan| match plan.measure {
        ViewMeasure::Top(most) => most,
        ViewMeasure::Count => 0,
    });
    let most: Vec<usize> = most.collect();
    for buckets in BUCKETS {
        let most = most.clone();
        ranked = ranked
            .map(move |(group, row)| {
                let bucket = bucket(&row.1, buckets);
                ((group, bucket), row)
            })
            .reduce_named("Top", move |((view, _), _), rows, top| {
                // Rows are in order, each there once.
                let first = rows.iter().take(most[usize::from(*view)]);
                top.extend(first.map(|(row, _)| ((*row).clone(), 1)));
            })
            .map(|((group, _), row)| (group, row));
    }
    ranked.map(|((view, group), (value, id))| ViewRow { view, group, id: Some(id), value: value.0 })
}
