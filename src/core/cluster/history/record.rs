//! Records of clusters for a later run, which has the same clusters and does not know since when they are.

use serde::{Deserialize, Serialize};

use super::{ClusterEvent, EndedCluster, History};
use crate::doc::DocId;
use crate::time::{Epoch, EpochSeconds};

/// Since when a live cluster is, and its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// The epoch in which it was born, and its times.
    pub born: (Epoch, EpochSeconds),
    /// The epoch in which it last changed, and its times.
    pub changed: (Epoch, EpochSeconds),
    /// Its events, its birth first.
    pub events: Vec<ClusterEvent>,
}

impl History {
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
        self.ended.clear();
        self.ends.clear();
        for (name, end) in ended.into_iter().filter(|(name, _)| !self.clusters.contains_key(name)) {
            self.ends.push_back((name.clone(), end.epoch));
            self.ended.insert(name, end);
        }
    }

    /// Removes the ends before this time of their commits, in unix seconds. Returns their names, and those of
    /// the ends beyond [`Self::ENDED`] that were removed since the last call.
    pub fn drop_ended(&mut self, before: u64) -> Vec<DocId> {
        let mut dropped = std::mem::take(&mut self.beyond);
        while let Some((name, epoch)) = self.ends.front() {
            match self.ended.get(name).filter(|ended| ended.epoch == *epoch) {
                Some(ended) if ended.times.committed().is_none_or(|at| at >= before) => break,
                Some(_) => {
                    self.ended.remove(name);
                    dropped.push(name.clone());
                }
                None => {}
            }
            self.ends.pop_front();
        }
        dropped
    }
}
