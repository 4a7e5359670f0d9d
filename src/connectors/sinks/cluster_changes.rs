//! Changes of clusters for an output: derived from pair deltas.
//! **Correcting an output.** The output holds reports of clusters and no pairs. `pairs` therefore returns an
//! empty set, and the caller passes every pair of the corpus as a correction, in several commits. Until the
//! last of these commits only marks are written, with `in_correction` set. The last one writes the difference
//! between the reports in the output and those of all pairs, in one commit. A run that ends earlier has
//! written no report, and the next run repeats the correction.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::rows::cluster_json::ReportChange;
use crate::mark::Mark;
use dupflow_core::cluster::{ClusterReport, Clusters};
use dupflow_core::pair::Delta;
use dupflow_core::run::metrics::{Counter, Metrics};

/// Derives changes of clusters from pair deltas.
#[derive(Debug)]
pub(crate) struct ClusterChanges {
    clusters: Clusters,
    metrics: Arc<Metrics>,
    correcting: Option<Correction>,
}

/// State of a correction.
#[derive(Debug)]
struct Correction {
    /// Reports in the output.
    written: BTreeSet<ClusterReport>,
    /// Reports that follow from the pairs passed so far.
    expected: BTreeSet<ClusterReport>,
}

impl ClusterChanges {
    /// `clusters` must be empty.
    pub(crate) fn new(clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { clusters, metrics, correcting: None }
    }

    /// Begins a correction of an output that holds the reports `written`. [`Self::advance`] returns no
    /// changes until [`Self::corrections`] has returned them.
    pub(crate) fn correct(&mut self, written: BTreeSet<ClusterReport>) {
        self.correcting = Some(Correction { written, expected: BTreeSet::new() });
    }

    /// Applies the deltas of one epoch. Returns the changes to write, in order.
    pub(crate) fn advance(&mut self, deltas: &[Delta]) -> Vec<ReportChange> {
        let changes = self.clusters.advance(deltas);
        count(&changes, &self.metrics);
        let Some(Correction { expected, .. }) = &mut self.correcting else { return changes };
        for (report, diff) in changes {
            let follows = if diff > 0 { expected.insert(report) } else { expected.remove(&report) };
            debug_assert!(follows, "every report accumulates to 0 or 1");
        }
        Vec::new()
    }

    /// Further changes to write with this commit, in order: the correction of the output, once `mark` says
    /// that all pairs have been passed.
    pub(crate) fn corrections(&mut self, mark: &Mark) -> Vec<ReportChange> {
        if mark.in_correction {
            return Vec::new();
        }
        let Some(Correction { written, expected }) = self.correcting.take() else { return Vec::new() };
        let removed = written.difference(&expected).map(|report| (report.clone(), -1));
        let mut changes: Vec<_> =
            removed.chain(expected.difference(&written).map(|report| (report.clone(), 1))).collect();
        changes.sort_unstable_by(|(a, x), (b, y)| a.subject().cmp(&b.subject()).then(x.cmp(y)));
        changes
    }
}

/// Counts clusters formed and dissolved, by id. A cluster that only changes its size or members is not
/// counted.
pub(crate) fn count(changes: &[ReportChange], metrics: &Metrics) {
    // A cluster exists exactly while the document that names it is a member.
    let is_founder = |report: &ClusterReport| match report {
        ClusterReport::Member { cluster, document } => cluster == document,
        ClusterReport::Giant { .. } => false,
    };
    for (_, diff) in changes.iter().filter(|(report, _)| is_founder(report)) {
        metrics.add(if *diff > 0 { Counter::ClustersFormed } else { Counter::ClustersDissolved }, 1);
    }
    let is_same_giant = |a: &ClusterReport, b: &ClusterReport| match (a, b) {
        (ClusterReport::Giant { cluster: a, .. }, ClusterReport::Giant { cluster: b, .. }) => a == b,
        _ => false,
    };
    for same in changes.chunk_by(|(a, _), (b, _)| is_same_giant(a, b)) {
        match same {
            [(ClusterReport::Giant { .. }, 1..)] => metrics.add(Counter::GiantsFormed, 1),
            [(ClusterReport::Giant { .. }, _)] => metrics.add(Counter::GiantsDissolved, 1),
            _ => {}
        }
    }
}
