//! Matches the clusters before an epoch with those after it.
//!
//! The *flow* from a cluster before to a cluster after is the number of documents reported in both. Of a
//! giant only the smallest member, its name, is reported. The flows define:
//! - the *heir* of a cluster before: the cluster after with the greatest flow from it;
//! - the *origin* of a cluster after: the cluster before with the greatest flow to it. On ties, a flow to the
//!   same name wins, then the smaller name;
//! - a cluster *continues* as another if the two are each other's heir and origin. At most one cluster before
//!   continues as a given cluster after.
//!
//! A giant whose smallest member is in no report afterwards has no known flow. Such giants, largest first,
//! are matched with the largest clusters after that have no known flow either, one each, if these have at
//! least half of their size.
//!
//! The result is a function of the reports before and after the epoch, not of earlier history or of the order
//! of changes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::DocId;

/// Clusters by their names.
type ByName<'a, T> = BTreeMap<&'a DocId, T>;

/// The changes of members and giants in an epoch, by cluster name.
#[derive(Debug, Default)]
pub(super) struct TouchedClusters<'a> {
    /// Documents removed from a cluster, sorted.
    pub(super) leave: ByName<'a, Vec<&'a DocId>>,
    /// Documents added to a cluster, sorted.
    pub(super) join: ByName<'a, Vec<&'a DocId>>,
    /// Sizes of changed giants, before and after the epoch.
    pub(super) giants: [ByName<'a, usize>; 2],
    flows: BTreeMap<(&'a DocId, &'a DocId), usize>,
}

impl<'a> TouchedClusters<'a> {
    /// From changes as [`Clusters::advance`](super::dupflow_core::cluster::Clusters::advance) returns them.
    pub(super) fn from_reports(changes: &'a [(ClusterReport, isize)]) -> Self {
        let mut changed = Self::default();
        // For a document that names a giant: the clusters that reported it as a member, before and after.
        let reported = |name: &DocId| {
            let from = changes.partition_point(|(report, _)| report.subject() < (false, name));
            let own = changes[from..].iter().take_while(move |(report, _)| report.subject() == (false, name));
            own.fold([None, None], |ends, change| with(ends, change))
        };
        for same in changes.chunk_by(|(a, _), (b, _)| a.subject() == b.subject()) {
            match same[0].0 {
                ClusterReport::Member { ref document, .. } => {
                    let [from, to] = same.iter().fold([None, None], |ends, change| with(ends, change));
                    from.into_iter().for_each(|name| changed.leave.entry(name).or_default().push(document));
                    to.into_iter().for_each(|name| changed.join.entry(name).or_default().push(document));
                    if let Some(flow) = from.zip(to) {
                        *changed.flows.entry(flow).or_default() += 1;
                    }
                }
                ClusterReport::Giant { .. } => {
                    for (report, diff) in same {
                        if let ClusterReport::Giant { cluster, size } = report {
                            changed.giants[usize::from(*diff > 0)].insert(cluster, *size);
                        }
                    }
                }
            }
        }
        let [before, after] = &changed.giants;
        for &name in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
            let flow = match (before.contains_key(name), after.contains_key(name), reported(name)) {
                (true, true, _) => Some((name, name)),
                (true, false, [_, to]) => to.map(|to| (name, to)),
                (false, _, [from, _]) => from.map(|from| (from, name)),
            };
            flow.into_iter().for_each(|flow| *changed.flows.entry(flow).or_default() += 1);
        }
        changed
    }

    /// The names of all touched clusters.
    pub(super) fn names(&self) -> BTreeSet<&'a DocId> {
        let giants = self.giants.iter().flat_map(BTreeMap::keys);
        self.leave.keys().chain(self.join.keys()).chain(giants).copied().collect()
    }
}

/// Adds one change to the clusters that report a document, before and after.
fn with<'a>(
    ends: [Option<&'a DocId>; 2],
    (report, diff): &'a (ClusterReport, isize),
) -> [Option<&'a DocId>; 2] {
    match (report, *diff > 0, ends) {
        (ClusterReport::Member { cluster, .. }, false, [_, to]) => [Some(cluster), to],
        (ClusterReport::Member { cluster, .. }, true, [from, _]) => [from, Some(cluster)],
        (ClusterReport::Giant { .. }, ..) => ends,
    }
}

/// The heirs and origins of the touched clusters.
#[derive(Debug, Default)]
pub(super) struct Lineage<'a> {
    heirs: ByName<'a, &'a DocId>,
    origins: ByName<'a, &'a DocId>,
    merged: ByName<'a, Vec<(Reverse<usize>, &'a DocId)>>,
    parts: ByName<'a, Vec<(Reverse<usize>, &'a DocId)>>,
}

impl<'a> Lineage<'a> {
    /// From the sizes of touched clusters before and after, and the number of members that stay under each
    /// name.
    pub(super) fn new(
        changed: &TouchedClusters<'a>,
        before: &ByName<'a, usize>,
        after: &ByName<'a, usize>,
        stay: &ByName<'a, usize>,
    ) -> Self {
        let mut flows = changed.flows.clone();
        for (&name, &count) in stay.iter().filter(|(_, count)| **count > 0) {
            *flows.entry((name, name)).or_default() += count;
        }
        let largest_first = |names: Vec<(&'a DocId, usize)>| {
            let mut names = names;
            names.sort_unstable_by_key(|(name, size)| (Reverse(*size), *name));
            names
        };
        let sources: BTreeSet<_> = flows.keys().map(|(from, _)| *from).collect();
        let targets: BTreeSet<_> = flows.keys().map(|(_, to)| *to).collect();
        let is_left = |name: &&DocId| !sources.contains(*name);
        let giants = changed.giants[0].keys().copied().filter(is_left).map(|name| (name, before[name]));
        let left =
            after.iter().filter(|(name, _)| !targets.contains(*name)).map(|(name, size)| (*name, *size));
        let pairs = largest_first(giants.collect()).into_iter().zip(largest_first(left.collect()));
        for ((from, size), (to, now)) in pairs {
            if now * 2 >= size {
                flows.insert((from, to), 1);
            }
        }
        let mut lineage = Self {
            heirs: greatest(&flows, |(from, to)| (from, to)),
            origins: greatest(&flows, |(from, to)| (to, from)),
            ..Self::default()
        };
        for ((from, to), count) in flows {
            match (lineage.heir(from) == Some(to), lineage.origin(to) == Some(from)) {
                (true, false) => lineage.merged.entry(to).or_default().push((Reverse(count), from)),
                (false, true) => lineage.parts.entry(from).or_default().push((Reverse(count), to)),
                (true, true) | (false, false) => {}
            }
        }
        lineage.merged.values_mut().chain(lineage.parts.values_mut()).for_each(|ends| ends.sort_unstable());
        lineage
    }

    /// The heir of a cluster before.
    pub(super) fn heir(&self, before: &DocId) -> Option<&'a DocId> {
        self.heirs.get(before).copied()
    }

    /// The origin of a cluster after.
    pub(super) fn origin(&self, after: &DocId) -> Option<&'a DocId> {
        self.origins.get(after).copied()
    }

    /// The cluster before that continues as this one.
    pub(super) fn predecessor(&self, after: &DocId) -> Option<&'a DocId> {
        self.origin(after).filter(|origin| self.heir(origin) == Some(after))
    }

    /// Clusters of the previous epoch that were merged into `after`, largest first, then by name.
    pub(super) fn merged(&self, after: &DocId) -> &[(Reverse<usize>, &'a DocId)] {
        self.merged.get(after).map_or(&[], Vec::as_slice)
    }

    /// The clusters after whose origin is this one and as which it does not continue; greatest flow first,
    /// then by name.
    pub(super) fn parts(&self, before: &DocId) -> &[(Reverse<usize>, &'a DocId)] {
        self.parts.get(before).map_or(&[], Vec::as_slice)
    }
}

/// For each first end of a flow, the second end of its greatest flow.
fn greatest<'a>(
    flows: &BTreeMap<(&'a DocId, &'a DocId), usize>,
    ends: impl Fn((&'a DocId, &'a DocId)) -> (&'a DocId, &'a DocId),
) -> ByName<'a, &'a DocId> {
    let mut greatest: ByName<'a, (usize, bool, Reverse<&'a DocId>)> = BTreeMap::new();
    for (flow, count) in flows {
        let (one, other) = ends(*flow);
        let this = (*count, one == other, Reverse(other));
        greatest.entry(one).and_modify(|best| *best = this.max(*best)).or_insert(this);
    }
    greatest.into_iter().map(|(one, (_, _, Reverse(other)))| (one, other)).collect()
}
