//! What has become of clusters over time: when each was born, when it changed, and how.
//!
//! The changes of reports that [`Clusters::advance`](super::Clusters::advance) returns come in, epoch by
//! epoch; kept are the clusters alive with their members, and of each its latest [`Event`]s. What an event is
//! follows from the reports before and after the epoch and nothing else. A cluster goes on as the one that
//! most of its documents are in, if most of the documents there come from it (`lineage` has the rule for
//! ties, and for giants, of which only the smallest member is known). So, of a cluster after the epoch:
//!
//! | event | when | others |
//! |---|---|---|
//! | born | no cluster goes on as it | none |
//! | renamed | one goes on as it that had another name | that name |
//! | merged | most of the documents of others have come to it, and they do not go on as it | they, by their names before |
//! | split | of the cluster that goes on as it, parts are clusters of their own now | they, by their names after |
//! | split, with born | it is such a part | the cluster that it was a part of, by its name before |
//! | grew, shrank | its size is another one, and it neither merged nor split | none |
//!
//! In an epoch a cluster has them in this order. One whose size stays, while a document comes for another
//! one, has changed without an event.
//!
//! Of a cluster that ends, what became of it is remembered: the last [`History::ENDED`] of them.
//!
//! Costs of an epoch: O(m log m) for the m documents whose reports change, and O(n) for the n members of the
//! clusters that they leave or join, about 1.5 times what `advance` takes. Memory: in clusters of five about
//! 210 bytes a document, half of what the graph takes; at most [`History::EVENTS`] events a cluster, each
//! with [`History::OTHERS`] names at most. (Of 100,000 pairs and of 1,000,000, November 2026.)
//!
//! What it does not do: outlive the run. A run that restores an earlier one's documents has all clusters born
//! in the epoch that restores them.

mod event;
mod lineage;
mod page;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use event::{End, Ended, Event, EventKind};
use lineage::{Changed, Lineage};
pub use page::{Cursor, Order};

use super::Report;
use crate::doc::DocId;
use crate::time::Epoch;

/// A cluster alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alive<'h> {
    /// Its name.
    pub cluster: &'h DocId,
    /// How many members it has.
    pub size: usize,
    /// Whether it is told by its size only.
    pub giant: bool,
    /// The epoch in which it was born.
    pub born: Epoch,
    /// The epoch in which it last changed.
    pub changed: Epoch,
}

#[derive(Debug)]
struct Cluster {
    /// In order; none of a giant.
    members: Vec<DocId>,
    size: usize,
    giant: bool,
    born: Epoch,
    changed: Epoch,
    events: Vec<Event>,
}

/// Clusters alive, and what has become of them.
#[derive(Debug, Default)]
pub struct History {
    clusters: BTreeMap<DocId, Cluster>,
    /// The cluster of each document that is told of.
    documents: BTreeMap<DocId, DocId>,
    by_size: BTreeSet<(Reverse<u64>, DocId)>,
    by_change: BTreeSet<(Reverse<u64>, DocId)>,
    giants: usize,
    ended: BTreeMap<DocId, Ended>,
    /// In the order in which they ended, each with its epoch; one that has been reborn, or has ended again
    /// since, is not in `ended` so.
    ends: VecDeque<(DocId, Epoch)>,
}

impl History {
    /// The most events that are kept of a cluster; beyond, the oldest but its birth is dropped.
    pub const EVENTS: usize = 32;

    /// The most names in an event.
    pub const OTHERS: usize = 16;

    /// How many clusters that have ended are remembered.
    pub const ENDED: usize = 10_000;

    /// Takes the changes of an epoch, as [`Clusters::advance`](super::Clusters::advance) returns them. Epochs
    /// do not descend.
    pub fn advance(&mut self, epoch: Epoch, changes: &[(Report, isize)]) {
        let changed = Changed::of(changes);
        let names = changed.names();
        let mut before: BTreeMap<&DocId, Cluster> =
            names.iter().filter_map(|name| Some((*name, self.take(name)?))).collect();
        let sizes = before.iter().map(|(name, cluster)| (*name, cluster.size)).collect();
        let (mut members, mut stay) = (BTreeMap::new(), BTreeMap::new());
        for &name in &names {
            let mut told = before.get_mut(name).map(|cluster| std::mem::take(&mut cluster.members));
            if let Some((told, leave)) = told.as_mut().zip(changed.leave.get(name)) {
                told.retain(|document| leave.binary_search(&document).is_err());
            }
            stay.insert(name, told.as_ref().map_or(0, Vec::len));
            let mut told = told.unwrap_or_default();
            if let Some(join) = changed.join.get(name) {
                told.reserve_exact(join.len());
                told.extend(join.iter().map(|document| (*document).clone()));
                told.sort();
            }
            members.insert(name, told);
        }
        let size_of = |name: &&DocId| match changed.giants[1].get(*name) {
            Some(size) => *size,
            None => members[*name].len(),
        };
        let after = names.iter().map(|name| (*name, size_of(name))).filter(|(_, size)| *size > 0).collect();
        let lineage = Lineage::of(&changed, &sizes, &after, &stay);

        for (name, cluster) in &before {
            if lineage.heir(name) != Some(*name) || lineage.goes_on(name) != Some(*name) {
                self.ends(name, cluster.size, epoch, &lineage);
            }
        }
        for (&name, &size) in &after {
            let origin = lineage.goes_on(name).and_then(|from| before.remove(from).map(|was| (from, was)));
            let news = news(name, size, origin.as_ref().map(|(from, was)| (*from, was.size)), &lineage);
            let (born, mut events) = origin.map_or((epoch, Vec::new()), |(_, was)| (was.born, was.events));
            events.reserve_exact(news.len());
            events.extend(news.into_iter().map(|(kind, others)| Event {
                epoch,
                kind,
                size,
                more: others.len().saturating_sub(Self::OTHERS),
                others: others.into_iter().take(Self::OTHERS).cloned().collect(),
            }));
            let over = events.len().saturating_sub(Self::EVENTS);
            // The first one is the birth.
            events.drain(1..=over);
            let cluster = Cluster {
                members: members.remove(name).unwrap_or_default(),
                size,
                giant: changed.giants[1].contains_key(name),
                born,
                changed: epoch,
                events,
            };
            self.put(name, cluster);
        }
        self.documents(changes);
    }

    /// Notes where documents are told of now.
    fn documents(&mut self, changes: &[(Report, isize)]) {
        // Of one document the retraction comes first.
        for (report, diff) in changes {
            if let Report::Member { cluster, document } = report {
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

    /// Remembers what became of a cluster.
    fn ends(&mut self, name: &DocId, size: usize, epoch: Epoch, lineage: &Lineage<'_>) {
        let how = match lineage.heir(name) {
            None => End::Dissolved,
            Some(heir) if lineage.goes_on(heir) == Some(name) => End::Renamed(heir.clone()),
            Some(heir) => End::Merged(heir.clone()),
        };
        self.ended.insert(name.clone(), Ended { epoch, size, how });
        self.ends.push_back((name.clone(), epoch));
        while self.ends.len() > Self::ENDED {
            let Some((oldest, ended_at)) = self.ends.pop_front() else { break };
            if self.ended.get(&oldest).is_some_and(|ended| ended.epoch == ended_at) {
                self.ended.remove(&oldest);
            }
        }
    }

    /// How many clusters are alive, giants included.
    pub fn len(&self) -> usize {
        self.clusters.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }

    /// How many of them are giants.
    pub fn giants(&self) -> usize {
        self.giants
    }

    /// The cluster that tells of a document. A giant tells of none.
    pub fn cluster_of(&self, document: &DocId) -> Option<&DocId> {
        self.documents.get(document)
    }

    /// A cluster alive.
    pub fn cluster(&self, name: &DocId) -> Option<Alive<'_>> {
        self.clusters.get_key_value(name).map(|(name, cluster)| alive(name, cluster))
    }

    /// What has happened to a cluster alive, its birth first; between that and the next some may have been
    /// dropped.
    pub fn events(&self, name: &DocId) -> &[Event] {
        self.clusters.get(name).map_or(&[], |cluster| &cluster.events)
    }

    /// Members of a cluster alive in order, after one and at most so many; none of a giant. And whether there
    /// are more.
    pub fn members(&self, name: &DocId, after: Option<&DocId>, limit: usize) -> (&[DocId], bool) {
        let all = self.clusters.get(name).map_or(&[][..], |cluster| &cluster.members);
        let rest = &all[after.map_or(0, |after| all.partition_point(|member| member <= after))..];
        let page = &rest[..limit.min(rest.len())];
        (page, page.len() < rest.len())
    }

    /// What became of a cluster that is not alive, if it is remembered.
    pub fn ended(&self, name: &DocId) -> Option<&Ended> {
        self.ended.get(name)
    }

    /// Clusters alive in an order, after a cursor and at most so many; and the cursor for those that follow,
    /// if there are more. A cluster that changes between two pages may be on both or on none.
    pub fn page(
        &self,
        order: Order,
        after: Option<&Cursor>,
        limit: usize,
    ) -> (Vec<Alive<'_>>, Option<Cursor>) {
        let list = match order {
            Order::Size => &self.by_size,
            Order::Recent => &self.by_change,
        };
        let from = match after {
            Some(Cursor { key, cluster }) => std::ops::Bound::Excluded((Reverse(*key), cluster.clone())),
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
        let next = next.map(|(Reverse(key), cluster)| Cursor { key: *key, cluster: cluster.clone() });
        (page, next)
    }
}

fn alive<'h>(cluster: &'h DocId, of: &Cluster) -> Alive<'h> {
    Alive { cluster, size: of.size, giant: of.giant, born: of.born, changed: of.changed }
}

/// What happens to a cluster in an epoch, where `origin` goes on as it.
fn news<'a>(
    name: &DocId,
    size: usize,
    origin: Option<(&'a DocId, usize)>,
    lineage: &Lineage<'a>,
) -> Vec<(EventKind, Vec<&'a DocId>)> {
    let names =
        |ends: &[(Reverse<usize>, &'a DocId)]| ends.iter().map(|(_, other)| *other).collect::<Vec<_>>();
    let mut news = Vec::new();
    match origin {
        None => news.push((EventKind::Born, Vec::new())),
        Some((before, _)) if before != name => news.push((EventKind::Renamed, vec![before])),
        Some(_) => {}
    }
    let merged = names(lineage.merged(name));
    let split = match origin {
        Some((before, _)) => names(lineage.parts(before)),
        None => lineage.origin(name).into_iter().collect(),
    };
    let is_whole = merged.is_empty() && split.is_empty();
    for (kind, others) in [(EventKind::Merged, merged), (EventKind::Split, split)] {
        if !others.is_empty() {
            news.push((kind, others));
        }
    }
    match origin {
        Some((_, was)) if is_whole && was < size => news.push((EventKind::Grew, Vec::new())),
        Some((_, was)) if is_whole && was > size => news.push((EventKind::Shrank, Vec::new())),
        _ => {}
    }
    news
}
