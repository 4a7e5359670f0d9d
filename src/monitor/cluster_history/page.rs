//! Lists of clusters, page by page.

use std::fmt;
use std::str::FromStr;

use dupflow_core::doc::DocId;

/// The order of a list of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterOrder {
    /// Largest first; on ties, the smallest name.
    Size,
    /// Most recently changed first; within an epoch, the smallest name.
    Recent,
}

/// The end of a page of a list: the size or the epoch of its last cluster, and the cluster's name. Written as
/// `NUMBER-NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterCursor {
    pub(super) key: u64,
    pub(super) cluster: DocId,
}

impl fmt::Display for ClusterCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.key, self.cluster)
    }
}

impl FromStr for ClusterCursor {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let parts = written.split_once('-');
        let parts = parts.and_then(|(key, cluster)| Some((key.parse().ok()?, DocId::new(cluster)?)));
        let (key, cluster) = parts.ok_or_else(|| "expected NUMBER-CLUSTER, as a page gives it".to_owned())?;
        Ok(Self { key, cluster })
    }
}
