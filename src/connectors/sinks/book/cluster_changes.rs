//! Changes of clusters for an output.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::sinks::rows::cluster_json::ReportChange;
use dupflow_core::cluster::ClusterReport;
use dupflow_core::reconcile::Reconcile;
use dupflow_run::metrics::{Counter, Metrics};

/// The changes of clusters that an output lacks.
#[derive(Debug)]
pub(super) struct ClusterChanges {
    metrics: Arc<Metrics>,
    /// The reports that follow from the pairs passed so far, less those in the output.
    correcting: Option<Reconcile<ClusterReport>>,
}

impl ClusterChanges {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, correcting: None }
    }

    /// Begins a correction of an output that holds the reports `written`. [`Self::advance`] returns no
    /// changes until [`Self::corrections`] has returned them.
    pub(super) fn correct(&mut self, written: BTreeSet<ClusterReport>) {
        let reports = self.correcting.insert(Reconcile::default());
        written.into_iter().for_each(|report| reports.held(report, 1));
    }

    /// Takes the changes of one epoch. Returns those to write, in order.
    pub(super) fn advance(&mut self, changes: Vec<ReportChange>) -> Vec<ReportChange> {
        count(&changes, &self.metrics);
        let Some(reports) = &mut self.correcting else { return changes };
        changes.into_iter().for_each(|(report, diff)| reports.given(report, diff));
        Vec::new()
    }

    /// The correction of the output, in order; all pairs have been passed.
    pub(super) fn corrections(&mut self) -> Vec<ReportChange> {
        let reports = self.correcting.take().unwrap_or_default();
        reports.changes(|a, b| a.subject().cmp(&b.subject()))
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
