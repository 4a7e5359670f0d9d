//! The pairs in force, and what each answer makes of an epoch.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cluster_changes::ClusterChanges;
use super::decisions::Decisions;
use super::record::{Decision, DecisionMode, LastDecisions};
use crate::mark::Mark;
use crate::sinks::rows::cluster_json::ReportChange;
use dupflow_core::cluster::{ClusterReport, Clusters};
use dupflow_core::doc::{DocChange, DocId, Facts, UpsertedDoc};
use dupflow_core::pair::Delta;
use dupflow_run::metrics::Metrics;

/// See the [module](super). The calls are those of [`Sink`](crate::sinks::Sink), in its order.
#[derive(Debug)]
pub(crate) struct Book {
    pairs: Clusters,
    clusters: Option<ClusterChanges>,
    decisions: Option<Decisions>,
}

/// What is to be written, in order.
#[derive(Debug, Default)]
pub(crate) struct BookChanges {
    pub(crate) clusters: Vec<ReportChange>,
    /// By id.
    pub(crate) decisions: Vec<Decision>,
}

/// Where a book counts.
#[derive(Clone, Debug)]
pub struct BookMetrics {
    /// Changes of clusters.
    pub clusters: Arc<Metrics>,
    /// Decisions.
    pub decisions: Arc<Metrics>,
}

impl BookMetrics {
    /// Counts both here.
    pub fn new(metrics: &Arc<Metrics>) -> Self {
        Self { clusters: Arc::clone(metrics), decisions: Arc::clone(metrics) }
    }
}

impl Book {
    /// Without an answer. `pairs` must be empty.
    pub(crate) fn new(pairs: Clusters) -> Self {
        Self { pairs, clusters: None, decisions: None }
    }

    /// With changes of clusters.
    pub(crate) fn with_clusters(self, metrics: Arc<Metrics>) -> Self {
        Self { clusters: Some(ClusterChanges::new(metrics)), ..self }
    }

    /// With decisions.
    pub(crate) fn with_decisions(self, mode: DecisionMode, metrics: Arc<Metrics>) -> Self {
        let decisions = Some(Decisions::new(mode, metrics));
        Self { pairs: self.pairs.with_similarities(), decisions, ..self }
    }

    /// When decisions are written; `None` if they are not.
    pub(crate) fn decides(&self) -> Option<DecisionMode> {
        self.decisions.as_ref().map(Decisions::mode)
    }

    /// Begins a correction of an output that holds these reports of clusters. There are no changes until
    /// [`Self::corrections`] has returned them.
    pub(crate) fn correct_clusters(&mut self, written: BTreeSet<ClusterReport>) {
        if let Some(clusters) = &mut self.clusters {
            clusters.correct(written);
        }
    }

    /// As [`Self::correct_clusters`], of an output that holds these records.
    pub(crate) fn correct_decisions(&mut self, written: LastDecisions) {
        if let Some(decisions) = &mut self.decisions {
            decisions.correct(written);
        }
    }

    /// Applies an epoch's changes of documents.
    pub(crate) fn documents(&mut self, changes: &[DocChange]) {
        if let Some(decisions) = &mut self.decisions {
            decisions.documents(changes);
        }
    }

    /// Receives the upserts of an epoch.
    pub(crate) fn upserts(&mut self, upserts: &[UpsertedDoc]) {
        if let Some(decisions) = &mut self.decisions {
            decisions.upserts(upserts);
        }
    }

    /// Applies deltas that the output already holds.
    pub(crate) fn restored(&mut self, deltas: &[Delta]) {
        let reports = self.pairs.advance(deltas);
        if let Some(decisions) = &mut self.decisions {
            decisions.restored(&reports);
        }
        if let Some(clusters) = &mut self.clusters {
            clusters.advance(reports);
        }
    }

    /// The run is live: the output holds, or has just been corrected to, what the corpus gives.
    pub(crate) fn live(&mut self) {
        if let Some(decisions) = &mut self.decisions {
            decisions.live(&mut self.pairs);
        }
    }

    /// Applies the deltas of one epoch.
    pub(crate) fn advance(&mut self, deltas: &[Delta]) -> BookChanges {
        let Self { pairs, clusters, decisions } = self;
        let reports = pairs.advance(deltas);
        let decisions = decisions
            .as_mut()
            .map(|decisions| decisions.advance(pairs, &reports, deltas))
            .unwrap_or_default();
        let clusters = clusters.as_mut().map(|clusters| clusters.advance(reports)).unwrap_or_default();
        BookChanges { clusters, decisions }
    }

    /// The decision of a document now; `None` if it is not alive, or decisions are not asked for.
    pub(crate) fn decision(&mut self, id: &DocId) -> Option<Decision> {
        let Self { pairs, decisions, .. } = self;
        decisions.as_ref()?.present(id, pairs)
    }

    /// The facts of a document, where decisions are kept; `None` if it is not live.
    pub(crate) fn facts(&self, id: &DocId) -> Option<Facts> {
        self.decisions.as_ref()?.facts(id)
    }

    /// What else this commit has to write: the correction of the output, once `mark` says that all pairs have
    /// been passed.
    pub(crate) fn corrections(&mut self, mark: &Mark) -> BookChanges {
        if mark.in_correction {
            return BookChanges::default();
        }
        let Self { pairs, clusters, decisions } = self;
        BookChanges {
            clusters: clusters.as_mut().map(ClusterChanges::corrections).unwrap_or_default(),
            decisions: decisions.as_mut().map(|decisions| decisions.corrections(pairs)).unwrap_or_default(),
        }
    }
}
