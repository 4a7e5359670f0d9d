//! Reports: statements about clusters, which are added and retracted.

use crate::doc::DocId;

/// A statement about a cluster; `I` is a document id (inside this module, a vertex).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterReport<I = DocId> {
    /// A document is in a cluster.
    Member {
        /// The cluster's smallest member, or the star's centre.
        cluster: I,
        /// The member.
        document: I,
    },
    /// A component has more than `limit` members.
    Giant {
        /// Its smallest member.
        cluster: I,
        /// Number of documents.
        size: usize,
    },
}

impl ClusterReport {
    /// The document or giant of the report; there is at most one report of each at a time. Members sort
    /// first.
    pub fn subject(&self) -> (bool, &DocId) {
        match self {
            Self::Member { document, .. } => (false, document),
            Self::Giant { cluster, .. } => (true, cluster),
        }
    }
}
