//! Events of a cluster, and the ways it ends.

use serde::{Deserialize, Serialize};

use dupflow_core::doc::DocId;
use dupflow_core::time::{Epoch, EpochSeconds};

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClusterEventKind {
    /// The cluster is new.
    Born,
    /// The cluster has a new name: its smallest member, or its centre, has changed.
    Renamed,
    /// Other clusters have become a part of it.
    Merged,
    /// Parts of it are now separate clusters; together with `Born`: it was such a part.
    Split,
    /// It has more members.
    Grew,
    /// It has fewer members.
    Shrank,
}

impl ClusterEventKind {
    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Born => "born",
            Self::Renamed => "renamed",
            Self::Merged => "merged",
            Self::Split => "split",
            Self::Grew => "grew",
            Self::Shrank => "shrank",
        }
    }
}

/// A change of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterEvent {
    /// The epoch.
    pub epoch: Epoch,
    /// Its times.
    pub times: EpochSeconds,
    /// The kind of the change.
    pub kind: ClusterEventKind,
    /// Number of members after the epoch.
    pub size: usize,
    /// Other clusters involved, those with most documents first: at most [`OTHERS`](super::History::OTHERS).
    pub others: Box<[DocId]>,
    /// Number of further clusters involved.
    pub more: usize,
}

/// The end of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedCluster {
    /// The epoch in which it ended.
    pub epoch: Epoch,
    /// Its times.
    pub times: EpochSeconds,
    /// Number of members before the epoch.
    pub size: usize,
    /// The way it ended.
    pub how: ClusterEnd,
}

/// The way a cluster ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClusterEnd {
    /// It continues under this name.
    Renamed(DocId),
    /// Most of its documents are in this cluster.
    Merged(DocId),
    /// None of its documents is reported as a member any more: they are in no cluster, or in a giant.
    Dissolved,
}

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
