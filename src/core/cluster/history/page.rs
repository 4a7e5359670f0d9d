//! Lists of clusters, page by page.

use std::fmt;
use std::str::FromStr;

use crate::doc::DocId;

/// In which order clusters are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The largest first; of equal ones, the smallest name.
    Size,
    /// The one that changed last first; of one epoch, the smallest name.
    Recent,
}

/// Where a page of a list ends: the size or the epoch of the last cluster on it, and its name. Written as
/// `SIZE-NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub(super) key: u64,
    pub(super) cluster: DocId,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.key, self.cluster)
    }
}

impl FromStr for Cursor {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let parts = written.split_once('-');
        let parts = parts.and_then(|(key, cluster)| Some((key.parse().ok()?, DocId::new(cluster)?)));
        let (key, cluster) = parts.ok_or_else(|| "expected NUMBER-CLUSTER, as a page gives it".to_owned())?;
        Ok(Self { key, cluster })
    }
}
