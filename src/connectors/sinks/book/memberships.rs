//! The cluster of each document, and the oldest document of each cluster, from changes of clusters.

use std::collections::{BTreeMap, BTreeSet};

use crate::sinks::rows::cluster_json::ReportChange;
use dupflow_core::cluster::{Age, ClusterReport};
use dupflow_core::doc::DocId;

/// The documents in clusters that are not giants. Memory: about 150 bytes for each.
#[derive(Debug, Default)]
pub(super) struct Memberships {
    /// The cluster of each document, and the age under which it is in `by_age`.
    of_document: BTreeMap<DocId, (DocId, Age)>,
    /// The members of each cluster, the oldest first.
    by_age: BTreeMap<DocId, BTreeSet<(Age, DocId)>>,
    /// The clusters that have changed in the open epoch, each with its oldest document before.
    before: BTreeMap<DocId, Option<DocId>>,
}

impl Memberships {
    /// The name of a document's cluster, and the oldest document there.
    pub(super) fn cluster(&self, document: &DocId) -> Option<(&DocId, &DocId)> {
        let (cluster, _) = self.of_document.get(document)?;
        let (_, oldest) = self.by_age.get(cluster)?.first()?;
        Some((cluster, oldest))
    }

    /// Applies changes of clusters; of a document that moves, first -1, then +1. `age` returns the age of a
    /// document.
    pub(super) fn apply(&mut self, changes: &[ReportChange], age: impl Fn(&DocId) -> Age) {
        for (report, diff) in changes {
            let ClusterReport::Member { cluster, document } = report else { continue };
            if *diff > 0 {
                self.insert(document, cluster, age(document));
            } else {
                self.remove(document);
            }
        }
    }

    /// Sets the age of a document. Returns whether it is in a cluster.
    pub(super) fn set_age(&mut self, document: &DocId, age: Age) -> bool {
        let Some((cluster, known)) = self.of_document.get(document) else { return false };
        if *known != age {
            let cluster = cluster.clone();
            self.remove(document);
            self.insert(document, &cluster, age);
        }
        true
    }

    /// Ends the changes of an epoch.
    pub(super) fn settle(&mut self) {
        self.before.clear();
    }

    /// The members of clusters with another oldest document than before the changes of the epoch.
    pub(super) fn changed(&self) -> BTreeSet<DocId> {
        let mut changed = BTreeSet::new();
        for (cluster, before) in &self.before {
            let Some(members) = self.by_age.get(cluster) else { continue };
            if members.first().map(|(_, oldest)| oldest) != before.as_ref() {
                changed.extend(members.iter().map(|(_, document)| document.clone()));
            }
        }
        changed
    }

    fn insert(&mut self, document: &DocId, cluster: &DocId, age: Age) {
        self.touch(cluster);
        self.of_document.insert(document.clone(), (cluster.clone(), age));
        self.by_age.entry(cluster.clone()).or_default().insert((age, document.clone()));
    }

    fn remove(&mut self, document: &DocId) {
        let Some((cluster, age)) = self.of_document.remove(document) else { return };
        self.touch(&cluster);
        if let Some(members) = self.by_age.get_mut(&cluster) {
            members.remove(&(age, document.clone()));
            if members.is_empty() {
                self.by_age.remove(&cluster);
            }
        }
    }

    /// Keeps the oldest document of a cluster before its first change.
    fn touch(&mut self, cluster: &DocId) {
        if !self.before.contains_key(cluster) {
            let oldest = self.by_age.get(cluster).and_then(|members| members.first());
            self.before.insert(cluster.clone(), oldest.map(|(_, oldest)| oldest.clone()));
        }
    }
}
