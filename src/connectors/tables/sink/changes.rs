//! The rows that one commit writes: for each key, its last state.

use std::collections::BTreeMap;

use crate::sinks::rows::cluster_json::ReportChange;
use crate::sinks::side::SideDelta;
use crate::sinks::{Decision, StandardError};
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::{DocChange, DocId, Facts};
use dupflow_core::pair::{Delta, DocPair, Pair};
use dupflow_core::time::Epoch;

/// A row of the table of pairs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PairRow {
    pub(super) pair: DocPair,
    pub(super) epoch: Epoch,
    /// Present if evidence is written.
    pub(super) standard_error: Option<f64>,
}

/// A row of the table of decisions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DecisionRow {
    /// It has a position.
    pub(super) decision: Decision,
    pub(super) epoch: Epoch,
}

/// New and changed rows; `None` deletes the row.
#[derive(Debug, Default)]
pub(super) struct TableChanges {
    pub(super) pairs: BTreeMap<Pair<DocId>, Option<PairRow>>,
    pub(super) clusters: BTreeMap<DocId, Option<DocId>>,
    pub(super) documents: BTreeMap<DocId, Option<Facts>>,
    /// Whether the table of deltas is emptied first. If deltas are kept, it is then filled with the pairs in
    /// the table of pairs.
    pub(super) deltas_anew: bool,
    /// Every delta, in order.
    pub(super) deltas: Vec<(Epoch, Delta)>,
    /// Rows of side outputs, by table and row, each with its key and its epoch.
    pub(super) side: BTreeMap<String, BTreeMap<String, Option<(String, Epoch)>>>,
    /// Whether the table of decisions is emptied first.
    pub(super) decisions_anew: bool,
    pub(super) decisions: BTreeMap<DocId, Option<DecisionRow>>,
}

impl TableChanges {
    /// Adds the deltas of an epoch. They must be sorted: of a pair whose similarity changes, first -1, then
    /// +1.
    pub(super) fn pairs(
        &mut self,
        epoch: Epoch,
        deltas: &[Delta],
        evidence: Option<&StandardError>,
        keep: bool,
    ) {
        for delta in deltas {
            let row = (delta.diff > 0).then(|| PairRow {
                pair: delta.pair.clone(),
                epoch,
                standard_error: evidence.map(|standard_error| standard_error(&delta.pair)),
            });
            self.pairs.insert(delta.pair.pair.clone(), row);
        }
        if keep {
            self.deltas.extend(deltas.iter().map(|delta| (epoch, delta.clone())));
        }
    }

    /// Adds changes of memberships, sorted in the same way. There are no giants: the cluster limit is
    /// unbounded here.
    pub(super) fn clusters(&mut self, changes: &[ReportChange]) {
        for (report, diff) in changes {
            let ClusterReport::Member { cluster, document } = report else { continue };
            self.clusters.insert(document.clone(), (*diff > 0).then(|| cluster.clone()));
        }
    }

    pub(super) fn documents(&mut self, changes: &[DocChange]) {
        self.documents.extend(changes.iter().map(|DocChange { id, now, .. }| (id.clone(), *now)));
    }

    /// Adds changes of the rows of a side output.
    pub(super) fn side(&mut self, table: &str, epoch: Epoch, deltas: &[SideDelta]) {
        let rows = self.side.entry(table.to_owned()).or_default();
        for SideDelta { row, diff } in deltas {
            let value = (*diff > 0).then(|| (row.key.clone(), epoch));
            rows.insert(format!("{{{}}}", row.json), value);
        }
    }

    /// Adds decisions of an epoch. `drops_ended`: the table has no row of a document that is not alive.
    pub(super) fn decisions(&mut self, epoch: Epoch, decisions: Vec<Decision>, drops_ended: bool) {
        for decision in decisions {
            let has_ended = decision.repetition.is_none() && drops_ended;
            let id = decision.id.clone();
            let row = DecisionRow { decision, epoch };
            self.decisions.insert(id, Some(row).filter(|_| !has_ended));
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Splits rows into those to write and the keys of those to delete.
pub(super) fn split_rows<K, V>(rows: &BTreeMap<K, Option<V>>) -> (Vec<(&K, &V)>, Vec<&K>) {
    let upserts = rows.iter().filter_map(|(key, row)| Some((key, row.as_ref()?))).collect();
    let deletes = rows.iter().filter(|(_, row)| row.is_none()).map(|(key, _)| key).collect();
    (upserts, deletes)
}
