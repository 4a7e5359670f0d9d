//! What a report shows of the pairs.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::found::{FoundCluster, FoundPairs, Member, SimilarMembers};

/// Most clusters that are shown with their documents.
pub(super) const CLUSTERS: usize = 10;

/// Sizes of clusters that are counted together, by the greatest of each, inclusive.
pub(super) const SIZES: [usize; 6] = [2, 3, 5, 10, 100, 1000];

/// What is shown of the pairs.
pub(super) struct Shown {
    pub(super) clusters: usize,
    pub(super) surplus: usize,
    /// For each of [`SIZES`], and for greater ones: clusters, and their documents.
    pub(super) sizes: [(usize, usize); SIZES.len() + 1],
    pub(super) largest: Vec<FoundCluster>,
    pub(super) at_threshold: Vec<SimilarMembers>,
}

impl Shown {
    pub(super) fn new(found: &FoundPairs) -> Self {
        let mut largest = found.clusters();
        let mut sizes = [(0, 0); SIZES.len() + 1];
        for cluster in &largest {
            let documents = cluster.members.len();
            let of_size = &mut sizes[SIZES.partition_point(|most| *most < documents)];
            *of_size = (of_size.0 + 1, of_size.1 + documents);
        }
        let (clusters, surplus) = (largest.len(), largest.iter().map(FoundCluster::surplus).sum());
        largest.truncate(CLUSTERS);
        Self { clusters, surplus, sizes, largest, at_threshold: found.at_threshold() }
    }

    /// The documents whose texts are shown.
    pub(super) fn members(&self) -> BTreeSet<Member> {
        let of_clusters = self.largest.iter().map(|cluster| &cluster.weakest);
        of_clusters.chain(&self.at_threshold).flat_map(|pair| pair.members.iter().map(Arc::clone)).collect()
    }
}
