//! The history of clusters: when each was born, and its later changes.
//!
//! In: the changes of reports that [`Clusters`](dupflow_core::cluster::Clusters) return, epoch by epoch.
//! Stored: the live clusters with their members and latest [`ClusterEvent`]s. The events of an epoch are a
//! function of the reports before and after it. A cluster continues as the cluster that has most of its
//! documents, if most of the documents there were in it. `lineage` has the rule for ties, and for *giants*:
//! clusters beyond the limit, of which only the size and the name are known. Events of a cluster after the
//! epoch:
//!
//! | event | when | `others` |
//! |---|---|---|
//! | born | no cluster continues as this one | none |
//! | renamed | a cluster with another name continues as this one | that name |
//! | merged | most documents of other clusters are now in this one, which they do not continue as | their names before |
//! | split | parts of the cluster that continues as this one are now separate clusters | their names after |
//! | split, with born | this is such a part | the name before of the cluster that it was a part of |
//! | grew, shrank | its size has changed, and it neither merged nor split | none |
//!
//! Within an epoch the events are in this order. A cluster that loses as many documents as it gets, and
//! neither merges nor splits, has a new `changed` epoch and no event.
//!
//! Of ended clusters the last [`History::ENDED`] are stored, each with its [`ClusterEnd`].
//!
//! Costs of an epoch: O(m log m) for the m documents whose reports change, and O(n) for the n members of the
//! clusters that they leave or join, about 1.5 times the time of `advance`. Memory: in clusters of five about
//! 210 bytes a document, half of the graph's memory; at most [`History::EVENTS`] events a cluster, each with
//! at most [`History::OTHERS`] names. (Measured with 100,000 and 1,000,000 pairs, November 2026.)
//!
//! A run that restores the documents of an earlier run has all clusters born in the epoch that restores them,
//! until the records of the earlier run replace that ([`ClusterRecord`]).

mod ended_map;
mod event;
mod lineage;
mod page;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use ended_map::EndedMap;
pub use event::{ClusterEnd, ClusterEvent, ClusterEventKind, ClusterRecord, EndedCluster};
use lineage::{Lineage, TouchedClusters};
pub use page::{ClusterCursor, ClusterOrder};

use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::DocId;
use dupflow_core::time::{Epoch, EpochSeconds};

/// A live cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveCluster<'h> {
    /// Its name: its smallest member, or the centre of a star.
    pub cluster: &'h DocId,
    /// Number of members.
    pub size: usize,
    /// Whether only its size is reported.
    pub giant: bool,
    /// The epoch in which it was born.
    pub born: Epoch,
    /// The times of that epoch.
    pub born_at: EpochSeconds,
    /// The epoch in which it last changed.
    pub changed: Epoch,
    /// The times of that epoch.
    pub changed_at: EpochSeconds,
}

#[derive(Debug)]
struct Cluster {
    /// Sorted; empty for a giant.
    members: Vec<DocId>,
    size: usize,
    giant: bool,
    born: Epoch,
    born_at: EpochSeconds,
    changed: Epoch,
    changed_at: EpochSeconds,
    events: Vec<ClusterEvent>,
}

/// The live clusters with their events, and how the last ended clusters ended. Maps are by cluster name.
#[derive(Debug, Default)]
pub struct History {
    clusters: BTreeMap<DocId, Cluster>,
    /// For each document that is reported as a member: the name of its cluster.
    documents: BTreeMap<DocId, DocId>,
    /// Size and name of each live cluster, the largest first.
    by_size: BTreeSet<(Reverse<u64>, DocId)>,
    /// Epoch of the last change and name of each live cluster, the latest first.
    by_change: BTreeSet<(Reverse<u64>, DocId)>,
    giants: usize,
    ended: EndedMap<DocId, EndedCluster, { History::ENDED }>,
    /// Ends that were removed because there are more than [`Self::ENDED`].
    beyond: Vec<DocId>,
}

impl History {
    /// The most events stored for a cluster; above it the oldest one after its birth is dropped.
    pub const EVENTS: usize = 32;

    /// The most names in an event.
    pub const OTHERS: usize = 16;

    /// The number of ended clusters whose ends are stored.
    pub const ENDED: usize = 10_000;

    /// Applies the changes of an epoch, as [`Clusters`](dupflow_core::cluster::Clusters) return them. Epochs
    /// must not descend.
    pub fn advance(&mut self, epoch: Epoch, times: EpochSeconds, changes: &[(ClusterReport, isize)]) {
        let changed = TouchedClusters::from_reports(changes);
        let names = changed.names();
        let mut before: BTreeMap<&DocId, Cluster> =
            names.iter().filter_map(|name| Some((*name, self.take(name)?))).collect();
        let sizes = before.iter().map(|(name, cluster)| (*name, cluster.size)).collect();
        let (mut members, mut stay) = (BTreeMap::new(), BTreeMap::new());
        for &name in &names {
            let mut current = before.get_mut(name).map(|cluster| std::mem::take(&mut cluster.members));
            if let Some((current, leave)) = current.as_mut().zip(changed.leave.get(name)) {
                current.retain(|document| leave.binary_search(&document).is_err());
            }
            stay.insert(name, current.as_ref().map_or(0, Vec::len));
            let mut current = current.unwrap_or_default();
            if let Some(join) = changed.join.get(name) {
                current.reserve_exact(join.len());
                current.extend(join.iter().map(|document| (*document).clone()));
                current.sort();
            }
            members.insert(name, current);
        }
        let size_of = |name: &&DocId| match changed.giants[1].get(*name) {
            Some(size) => *size,
            None => members[*name].len(),
        };
        let after = names.iter().map(|name| (*name, size_of(name))).filter(|(_, size)| *size > 0).collect();
        let lineage = Lineage::new(&changed, &sizes, &after, &stay);

        for (name, cluster) in &before {
            if lineage.heir(name) != Some(*name) || lineage.predecessor(name) != Some(*name) {
                self.ends(name, cluster.size, epoch, times, &lineage);
            }
        }
        for (&name, &size) in &after {
            let origin =
                lineage.predecessor(name).and_then(|from| before.remove(from).map(|was| (from, was)));
            let news = news(name, size, origin.as_ref().map(|(from, was)| (*from, was.size)), &lineage);
            let new = (epoch, times, Vec::new());
            let (born, born_at, mut events) =
                origin.map_or(new, |(_, was)| (was.born, was.born_at, was.events));
            events.reserve_exact(news.len());
            events.extend(news.into_iter().map(|(kind, others)| ClusterEvent {
                epoch,
                times,
                kind,
                size,
                more: others.len().saturating_sub(Self::OTHERS),
                others: others.into_iter().take(Self::OTHERS).cloned().collect(),
            }));
            let over = events.len().saturating_sub(Self::EVENTS);
            // The first event is the birth, which is not dropped.
            events.drain(1..=over);
            let cluster = Cluster {
                members: members.remove(name).unwrap_or_default(),
                size,
                giant: changed.giants[1].contains_key(name),
                born,
                born_at,
                changed: epoch,
                changed_at: times,
                events,
            };
            self.put(name, cluster);
        }
        self.documents(changes);
    }

    /// Updates the clusters of the documents.
    fn documents(&mut self, changes: &[(ClusterReport, isize)]) {
        // The retraction of a document's report is before its new report.
        for (report, diff) in changes {
            if let ClusterReport::Member { cluster, document } = report {
                if *diff > 0 {
                    self.documents.insert(document.clone(), cluster.clone());
                } else {
                    self.documents.remove(document);
                }
            }
        }
    }

    fn take(&mut self, name: &DocId) -> Option<Cluster> {
        let cluster = self.clusters.remove(name)?;
        self.by_size.remove(&(Reverse(cluster.size as u64), name.clone()));
        self.by_change.remove(&(Reverse(cluster.changed), name.clone()));
        self.giants -= usize::from(cluster.giant);
        Some(cluster)
    }

    fn put(&mut self, name: &DocId, cluster: Cluster) {
        self.ended.remove(name);
        self.by_size.insert((Reverse(cluster.size as u64), name.clone()));
        self.by_change.insert((Reverse(cluster.changed), name.clone()));
        self.giants += usize::from(cluster.giant);
        self.clusters.insert(name.clone(), cluster);
    }

    /// Stores the end of a cluster.
    fn ends(&mut self, name: &DocId, size: usize, epoch: Epoch, times: EpochSeconds, lineage: &Lineage<'_>) {
        let how = match lineage.heir(name) {
            None => ClusterEnd::Dissolved,
            Some(heir) if lineage.predecessor(heir) == Some(name) => ClusterEnd::Renamed(heir.clone()),
            Some(heir) => ClusterEnd::Merged(heir.clone()),
        };
        self.beyond.extend(self.ended.put(name.clone(), EndedCluster { epoch, times, size, how }));
    }

    /// The record of a live cluster.
    pub fn record(&self, name: &DocId) -> Option<ClusterRecord> {
        let cluster = self.clusters.get(name)?;
        Some(ClusterRecord {
            born: (cluster.born, cluster.born_at),
            changed: (cluster.changed, cluster.changed_at),
            events: cluster.events.clone(),
        })
    }

    /// The names of all live clusters.
    pub fn names(&self) -> impl Iterator<Item = &DocId> {
        self.clusters.keys()
    }

    /// Replaces since when a live cluster is, and its events. Returns whether there is such a cluster.
    pub fn restore(&mut self, name: &DocId, record: ClusterRecord) -> bool {
        let Some(mut cluster) = self.take(name) else { return false };
        (cluster.born, cluster.born_at) = record.born;
        (cluster.changed, cluster.changed_at) = record.changed;
        cluster.events = record.events;
        self.put(name, cluster);
        true
    }

    /// Replaces the stored ends.
    pub fn restore_ended(&mut self, mut ended: Vec<(DocId, EndedCluster)>) {
        ended.sort_unstable_by(|(a, x), (b, y)| (x.epoch, a).cmp(&(y.epoch, b)));
        self.ended = EndedMap::default();
        for (name, end) in ended.into_iter().filter(|(name, _)| !self.clusters.contains_key(name)) {
            self.beyond.extend(self.ended.put(name, end));
        }
    }

    /// Sets the times of the ends of an epoch for which [`Self::advance`] got none: the clusters had ended by
    /// then.
    pub fn date_ended(&mut self, epoch: Epoch, times: EpochSeconds) {
        let undated = |ended: &&mut EndedCluster| ended.epoch == epoch && ended.times == EpochSeconds::NONE;
        self.ended.values_mut().filter(undated).for_each(|ended| ended.times = times);
    }

    /// Removes the ends before this time of their commits, in unix seconds. Returns their names, and those of
    /// the ends beyond [`Self::ENDED`] that were removed since the last call.
    pub fn drop_ended(&mut self, before: u64) -> Vec<DocId> {
        let mut dropped = std::mem::take(&mut self.beyond);
        dropped.extend(self.ended.drop_before(before, |ended| ended.times));
        dropped
    }

    /// Number of live clusters, giants included.
    pub fn len(&self) -> usize {
        self.clusters.len()
    }

    /// Whether there are no live clusters.
    pub fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }

    /// Number of live giants.
    pub fn giants(&self) -> usize {
        self.giants
    }

    /// The cluster of which a document is reported as a member; `None` for the members of a giant.
    pub fn cluster_of(&self, document: &DocId) -> Option<&DocId> {
        self.documents.get(document)
    }

    /// A live cluster by its name.
    pub fn cluster(&self, name: &DocId) -> Option<LiveCluster<'_>> {
        self.clusters.get_key_value(name).map(|(name, cluster)| alive(name, cluster))
    }

    /// Events of a live cluster, its birth first; events right after its birth may have been dropped.
    pub fn events(&self, name: &DocId) -> &[ClusterEvent] {
        self.clusters.get(name).map_or(&[], |cluster| &cluster.events)
    }

    /// At most `limit` members of a live cluster, sorted, after the member `after`; none for a giant. And
    /// whether there are more.
    pub fn members(&self, name: &DocId, after: Option<&DocId>, limit: usize) -> (&[DocId], bool) {
        let all = self.clusters.get(name).map_or(&[][..], |cluster| &cluster.members);
        let rest = &all[after.map_or(0, |after| all.partition_point(|member| member <= after))..];
        let page = &rest[..limit.min(rest.len())];
        (page, page.len() < rest.len())
    }

    /// The end of a cluster that is not live, if it is stored.
    pub fn ended(&self, name: &DocId) -> Option<&EndedCluster> {
        self.ended.get(name)
    }

    /// At most `limit` live clusters in an order, after a cursor; and the cursor of the next page, if there
    /// are more. A cluster that changes between two requests may be on both pages or on none.
    pub fn page(
        &self,
        order: ClusterOrder,
        after: Option<&ClusterCursor>,
        limit: usize,
    ) -> (Vec<LiveCluster<'_>>, Option<ClusterCursor>) {
        let list = match order {
            ClusterOrder::Size => &self.by_size,
            ClusterOrder::Recent => &self.by_change,
        };
        let from = match after {
            Some(ClusterCursor { key, cluster }) => {
                std::ops::Bound::Excluded((Reverse(*key), cluster.clone()))
            }
            None => std::ops::Bound::Unbounded,
        };
        let mut rest = list.range((from, std::ops::Bound::Unbounded)).peekable();
        let mut page = Vec::new();
        let mut last = None;
        while page.len() < limit
            && let Some(entry) = rest.next()
        {
            page.extend(self.cluster(&entry.1));
            last = Some(entry);
        }
        let next = last.filter(|_| rest.peek().is_some());
        let next = next.map(|(Reverse(key), cluster)| ClusterCursor { key: *key, cluster: cluster.clone() });
        (page, next)
    }
}

fn alive<'h>(cluster: &'h DocId, of: &Cluster) -> LiveCluster<'h> {
    let Cluster { size, giant, born, born_at, changed, changed_at, .. } = *of;
    LiveCluster { cluster, size, giant, born, born_at, changed, changed_at }
}

/// The events of a cluster in an epoch. `origin` is the cluster that continues as it, with its size before.
fn news<'a>(
    name: &DocId,
    size: usize,
    origin: Option<(&'a DocId, usize)>,
    lineage: &Lineage<'a>,
) -> Vec<(ClusterEventKind, Vec<&'a DocId>)> {
    let names =
        |ends: &[(Reverse<usize>, &'a DocId)]| ends.iter().map(|(_, other)| *other).collect::<Vec<_>>();
    let mut news = Vec::new();
    match origin {
        None => news.push((ClusterEventKind::Born, Vec::new())),
        Some((before, _)) if before != name => news.push((ClusterEventKind::Renamed, vec![before])),
        Some(_) => {}
    }
    let merged = names(lineage.merged(name));
    let split = match origin {
        Some((before, _)) => names(lineage.parts(before)),
        None => lineage.origin(name).into_iter().collect(),
    };
    let is_whole = merged.is_empty() && split.is_empty();
    for (kind, others) in [(ClusterEventKind::Merged, merged), (ClusterEventKind::Split, split)] {
        if !others.is_empty() {
            news.push((kind, others));
        }
    }
    match origin {
        Some((_, was)) if is_whole && was < size => news.push((ClusterEventKind::Grew, Vec::new())),
        Some((_, was)) if is_whole && was > size => news.push((ClusterEventKind::Shrank, Vec::new())),
        _ => {}
    }
    news
}
