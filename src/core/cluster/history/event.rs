//! What happens to a cluster, and how it ends.

use crate::doc::DocId;
use crate::time::Epoch;

/// How a cluster changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// It came to be.
    Born,
    /// It has another name: its smallest member, or its centre, is another one.
    Renamed,
    /// Others have become a part of it.
    Merged,
    /// Parts of it are clusters of their own; or, with its birth, it was such a part.
    Split,
    /// It has more members.
    Grew,
    /// It has fewer members.
    Shrank,
}

impl EventKind {
    /// As it is written.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The epoch.
    pub epoch: Epoch,
    /// What happened.
    pub kind: EventKind,
    /// How many members it has after the epoch.
    pub size: usize,
    /// Other clusters in it, those with most documents first: at most [`OTHERS`](super::History::OTHERS).
    pub others: Box<[DocId]>,
    /// Further ones.
    pub more: usize,
}

/// What became of a cluster that is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The epoch in which it ended.
    pub epoch: Epoch,
    /// How many members it had.
    pub size: usize,
    /// How it ended.
    pub how: End,
}

/// How a cluster ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It goes on under this name.
    Renamed(DocId),
    /// Most of its documents are in this cluster.
    Merged(DocId),
    /// None of its documents is told of any more: they are in no cluster, or in a giant.
    Dissolved,
}
