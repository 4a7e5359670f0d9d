//! Clusters by brute force.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{ClusterKind, ClusterReport};
use crate::doc::DocId;
use crate::pair::Pair;

/// The reports of the clusters of these pairs, by definition: each component is collected by a search from
/// its smallest document.
pub fn clusters<'a>(
    pairs: impl IntoIterator<Item = &'a Pair<DocId>>,
    kind: ClusterKind,
    limit: usize,
) -> BTreeSet<ClusterReport> {
    let mut neighbours: BTreeMap<&DocId, BTreeSet<&DocId>> = BTreeMap::new();
    for pair in pairs {
        neighbours.entry(pair.lo()).or_default().insert(pair.hi());
        neighbours.entry(pair.hi()).or_default().insert(pair.lo());
    }
    let mut reports = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for &smallest in neighbours.keys() {
        if !seen.insert(smallest) {
            continue;
        }
        let mut component = vec![smallest];
        let mut next = 0;
        while let Some(document) = component.get(next) {
            component.extend(neighbours[document].iter().filter(|neighbour| seen.insert(neighbour)));
            next += 1;
        }
        let size = component.len();
        let member = |document: &DocId, cluster: &DocId| ClusterReport::Member {
            cluster: cluster.clone(),
            document: document.clone(),
        };
        match kind {
            _ if size > limit => {
                reports.insert(ClusterReport::Giant { cluster: smallest.clone(), size });
            }
            ClusterKind::Components => {
                reports.extend(component.into_iter().map(|document| member(document, smallest)));
            }
            ClusterKind::Star => {
                component.sort_unstable_by_key(|document| (Reverse(neighbours[document].len()), *document));
                let mut free: BTreeSet<&DocId> = component.iter().copied().collect();
                for centre in component {
                    if !free.contains(centre) {
                        continue;
                    }
                    let star = &(&neighbours[centre] & &free) | &BTreeSet::from([centre]);
                    if star.len() > 1 {
                        reports.extend(star.iter().map(|document| member(document, centre)));
                    }
                    free = &free - &star;
                }
            }
        }
    }
    reports
}
