//! Views: the aggregates of [`dupflow_core::views`], by differential dataflow over the changes of pairs and
//! of live documents. Components are those of [`dupflow_core::cluster`], on one worker.
//!
//! ```text
//! documents ─ arranged by id ─┬──────────────────────────────────────────┬─ count ─┐
//!                             ├─ join (a) ─ join (b) ─ groups of pairs ──┤         ├─ rows
//! pairs ──────────────────────┤                                          │         │
//!          pairs of each id ──┼─ join ─ groups of documents ─────────────│─ top ───┤
//!          components ────────┴─ join ─ groups of clusters ──────────────┴─ top ───┘
//! ```
//!
//! All views share the arrangements: the fields of a document are joined once for each end of a pair, and
//! each view takes from them the values of its group. All counts are one arrangement of (view, group), all
//! tops one hierarchy of reductions ([`top`]). What no view needs is not built; without views nothing is.
//!
//! Times are epochs, as everywhere in the dataflow, and [`output`](super::output) waits for the rows: an
//! epoch is closed with the rows that follow from it.
//!
//! Memory: for a pair an entry in an arrangement by each end, if a view of pairs has a group; for a document
//! its id and a reference to its fields. `docs/views.md` has the measurement.

mod clusters;
mod collections;
mod documents;
mod grouping;
mod top;

use std::cmp::Reverse;

use differential_dataflow::operators::CountTotal;
use differential_dataflow::{AsCollection, VecCollection};
use timely::dataflow::Stream;

use self::collections::{Documents, Ends, Ranked, ViewGroup, concatenated};
use self::grouping::Grouping;
use super::operator::Deltas;
use super::output::EpochReport;
use super::stages::Stages;
use dupflow_core::pair::DocPair;
use dupflow_core::time::Epoch;
use dupflow_core::views::{ViewKind, ViewMeasure, ViewPlan, ViewRow};

/// The changes of the rows of all views, and the reports without those that only the views need. No rows if
/// there is no view.
pub(super) fn views<'scope>(
    pairs: &Deltas<'scope, DocPair>,
    reports: Stream<'scope, Epoch, Vec<EpochReport>>,
    stages: &Stages,
) -> (Stream<'scope, Epoch, Vec<EpochReport>>, Option<Deltas<'scope, ViewRow>>) {
    let plans = &*stages.views;
    if plans.is_empty() {
        return (reports, None);
    }
    let (reports, documents) = if plans.iter().any(ViewPlan::needs_documents) {
        let (reports, changes) = documents::changes(reports, stages.emits_documents);
        (reports, Some(documents::arrange(changes)))
    } else {
        (reports, None)
    };
    let pairs = pairs.clone().as_collection();
    let pairs = pairs.map(|DocPair { pair, .. }| (pair.lo().clone(), pair.hi().clone()));
    let is_top = |measure| matches!(measure, ViewMeasure::Top(_));
    let chosen = |kind, top| Grouping::choose(plans, |plan| plan.kind == kind && is_top(plan.measure) == top);

    let mut counted = Vec::new();
    let mut ranked = Vec::new();
    if let Some(documents) = &documents {
        counted.extend(count_documents(documents, chosen(ViewKind::Documents, false)));
    }
    counted.extend(count_pairs(&pairs, documents.as_ref(), chosen(ViewKind::Pairs, false)));
    ranked.extend(rank_documents(&pairs, documents.as_ref(), chosen(ViewKind::Documents, true)));
    let (counting, ranking) = (chosen(ViewKind::Clusters, false), chosen(ViewKind::Clusters, true));
    if !counting.is_empty() || !ranking.is_empty() {
        let groups = clusters::groups(&pairs, documents.as_ref(), counting, ranking);
        counted.extend(groups.counted);
        ranked.extend(groups.ranked);
    }

    let counts = concatenated(counted).map(count);
    let tops = concatenated(ranked).map(|ranked| top::top(ranked, plans));
    let rows = concatenated([counts, tops].into_iter().flatten().collect());
    (reports, rows.map(|rows| rows.inner))
}

/// The rows of all counts.
fn count<'scope>(
    groups: VecCollection<'scope, Epoch, ViewGroup, isize>,
) -> VecCollection<'scope, Epoch, ViewRow, isize> {
    let counted = groups.arrange_by_self_named("Groups of views").count_total_core::<isize>();
    counted.map(|((view, group), n)| ViewRow { view, group, id: None, value: n.unsigned_abs() as u64 })
}

/// Each live document in its groups.
fn count_documents<'scope>(
    documents: &Documents<'scope>,
    views: Vec<Grouping>,
) -> Option<VecCollection<'scope, Epoch, ViewGroup, isize>> {
    let documents = (!views.is_empty()).then(|| documents.clone())?;
    Some(
        documents
            .flat_map_ref(move |_, values| views.iter().map(|view| view.group(values)).collect::<Vec<_>>()),
    )
}

/// Each pair in its groups.
fn count_pairs<'scope>(
    pairs: &Ends<'scope>,
    documents: Option<&Documents<'scope>>,
    views: Vec<Grouping>,
) -> Vec<VecCollection<'scope, Epoch, ViewGroup, isize>> {
    let (grouped, all): (Vec<_>, Vec<_>) = views.into_iter().partition(Grouping::reads_fields);
    let mut counted = Vec::new();
    if !all.is_empty() {
        counted.push(pairs.clone().flat_map(move |_| Grouping::whole(&all)));
    }
    if let Some(documents) = documents.filter(|_| !grouped.is_empty()) {
        let groups = (pairs.clone().arrange_by_key_named("Pairs of views by a"))
            .join_core(documents.clone(), |_, b, of_a| Some((b.clone(), of_a.clone())))
            .arrange_by_key_named("Pairs of views by b")
            .join_core(documents.clone(), move |_, of_a, of_b| {
                grouped.iter().map(|view| view.group_of_pair(of_a, of_b)).collect::<Vec<_>>()
            });
        counted.push(groups);
    }
    counted
}

/// Each document that is in a pair, with the number of its pairs, in its groups.
fn rank_documents<'scope>(
    pairs: &Ends<'scope>,
    documents: Option<&Documents<'scope>>,
    views: Vec<Grouping>,
) -> Vec<VecCollection<'scope, Epoch, (ViewGroup, Ranked), isize>> {
    if views.is_empty() {
        return Vec::new();
    }
    let (grouped, all): (Vec<_>, Vec<_>) = views.into_iter().partition(Grouping::reads_fields);
    let ends = pairs.clone().flat_map(|(a, b)| [a, b]).arrange_by_self_named("Ends of pairs");
    let degrees = ends.count_total_core::<isize>();
    let mut ranked = Vec::new();
    if !all.is_empty() {
        ranked.push(degrees.clone().flat_map(move |(id, n)| {
            let rank = (Reverse(n.unsigned_abs() as u64), id);
            Grouping::whole(&all).into_iter().map(move |group| (group, rank.clone()))
        }));
    }
    if let Some(documents) = documents.filter(|_| !grouped.is_empty()) {
        let groups = (degrees.arrange_by_key_named("Numbers of pairs")).join_core(
            documents.clone(),
            move |id, n, values| {
                let rank = (Reverse(n.unsigned_abs() as u64), id.clone());
                grouped.iter().map(|view| (view.group(values), rank.clone())).collect::<Vec<_>>()
            },
        );
        ranked.push(groups);
    }
    ranked
}
