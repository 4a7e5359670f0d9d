//! Clusters of the views: the connected components of the pairs, on one worker.

use std::cmp::{Ordering, Reverse};

use differential_dataflow::consolidation::consolidate;
use differential_dataflow::operators::{CountTotal, ThresholdTotal};
use differential_dataflow::{AsCollection, VecCollection};
use timely::dataflow::channels::pact::Exchange;

use super::collections::{Documents, Ends, Ranked, ViewGroup, concatenated};
use super::grouping::Grouping;
use crate::dataflow::operator::epochs::by_epoch;
use dupflow_core::cluster::Components;
use dupflow_core::doc::DocId;
use dupflow_core::pair::Pair;
use dupflow_core::time::Epoch;
use dupflow_core::views::{Group, size_class};

/// Clusters in their groups.
pub(super) struct ClusterGroups<'scope> {
    pub(super) counted: Option<VecCollection<'scope, Epoch, ViewGroup, isize>>,
    pub(super) ranked: Option<VecCollection<'scope, Epoch, (ViewGroup, Ranked), isize>>,
}

/// Two documents that are a pair.
type PairEnds = (DocId, DocId);

/// A group of a view with a cluster in it, and the number of the cluster's documents.
type ClusterInGroup = (ViewGroup, (u64, DocId));

/// The clusters in the groups of these views: those that count, and those that rank.
pub(super) fn groups<'scope>(
    pairs: &Ends<'scope>,
    documents: Option<&Documents<'scope>>,
    count: Vec<Grouping>,
    rank: Vec<Grouping>,
) -> ClusterGroups<'scope> {
    let labels = components(pairs);
    let sizes = labels.clone().map(|(_, cluster)| cluster).arrange_by_self_named("Members of clusters");
    let sizes = sizes.count_total_core::<isize>().map(|(cluster, n)| (cluster, n.unsigned_abs() as u64));
    let sized = |views: Vec<Grouping>| {
        let (grouped, all): (Vec<_>, Vec<_>) = views.into_iter().partition(Grouping::reads_fields);
        let whole = (!all.is_empty()).then(|| {
            sizes.clone().flat_map(move |(cluster, size)| {
                let sized = |view: &Grouping| {
                    ((view.view, with_size(view, &Group::default(), size)), (size, cluster.clone()))
                };
                all.iter().map(sized).collect::<Vec<_>>()
            })
        });
        let by_fields = (documents.filter(|_| !grouped.is_empty()))
            .map(|documents| by_fields(&labels, &sizes, documents, grouped));
        concatenated(whole.into_iter().chain(by_fields).collect())
    };
    ClusterGroups {
        counted: sized(count).map(|sized| sized.map(|(group, _)| group)),
        ranked: sized(rank).map(|sized| sized.map(|(group, (size, id))| (group, (Reverse(size), id)))),
    }
}

/// The documents that are in a pair, each with the smallest id of its component.
fn components<'scope>(pairs: &Ends<'scope>) -> VecCollection<'scope, Epoch, (DocId, DocId), isize> {
    let mut components = Components::default();
    let to_one = Exchange::new(|_: &(PairEnds, Epoch, isize)| 0);
    let labels = by_epoch(pairs.inner.clone(), to_one, "Components", move |epoch, changes, emit| {
        let mut changes: Vec<(PairEnds, isize)> =
            changes.into_iter().map(|(pair, _, diff)| (pair, diff)).collect();
        consolidate(&mut changes);
        let changes =
            changes.into_iter().map(|((a, b), diff)| (Pair::new(a, b).expect("two documents"), diff));
        components.advance(changes).into_iter().for_each(|(label, diff)| emit((label, epoch, diff)));
    });
    labels.as_collection()
}

/// The clusters in the groups of their members, in each group once.
fn by_fields<'scope>(
    labels: &VecCollection<'scope, Epoch, (DocId, DocId), isize>,
    sizes: &VecCollection<'scope, Epoch, (DocId, u64), isize>,
    documents: &Documents<'scope>,
    views: Vec<Grouping>,
) -> VecCollection<'scope, Epoch, ClusterInGroup, isize> {
    let with_views = views.clone();
    (labels.clone().arrange_by_key_named("Clusters of documents"))
        .join_core(documents.clone(), move |_, cluster, values| {
            let group = |(at, view): (usize, &Grouping)| (cluster.clone(), (at, view.group(values).1));
            with_views.iter().enumerate().map(group).collect::<Vec<_>>()
        })
        .arrange_by_self_named("Groups of members")
        .threshold_total(|_, members| isize::from(*members > 0))
        .arrange_by_key_named("Groups of clusters")
        .join_core(
            sizes.clone().arrange_by_key_named("Sizes of clusters"),
            move |cluster, (at, group), size| {
                let view = &views[*at];
                Some(((view.view, with_size(view, group, *size)), (*size, cluster.clone())))
            },
        )
}

/// The group, with the class of the cluster's size where the view has it. `values`: those of its fields.
fn with_size(view: &Grouping, values: &Group, size: u64) -> Group {
    let Some(at) = view.size_at else { return values.clone() };
    let class = size_class(size);
    let value = |place: usize| match place.cmp(&at) {
        Ordering::Less => values.get(place),
        Ordering::Equal => &*class,
        Ordering::Greater => values.get(place - 1),
    };
    Group::new((0..=view.fields()).map(value))
}
