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

/// What becomes of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowChange<R> {
    /// Whether the last commit left such a row.
    pub(super) was: bool,
    /// `None` deletes the row.
    pub(super) now: Option<R>,
}

/// Changes of rows by their key. The first change of a row, a delta of 1 or -1, says whether the last commit
/// left it.
pub(super) type RowChanges<K, R> = BTreeMap<K, RowChange<R>>;

fn change<K: Ord, R>(changes: &mut RowChanges<K, R>, key: K, now: Option<R>) {
    let was = now.is_none();
    changes.entry(key).or_insert(RowChange { was, now: None }).now = now;
}

/// New and changed rows; `None` deletes the row.
#[derive(Debug, Default)]
pub(super) struct TableChanges {
    pub(super) pairs: RowChanges<Pair<DocId>, PairRow>,
    pub(super) clusters: RowChanges<DocId, DocId>,
    pub(super) documents: BTreeMap<DocId, Option<Facts>>,
    /// Whether the table of deltas is emptied first. If deltas are kept, it is then filled with the pairs in
    /// the table of pairs.
    pub(super) deltas_anew: bool,
    /// Every delta, in order.
    pub(super) deltas: Vec<(Epoch, Delta)>,
    /// Rows of side outputs, by table and row, each with its key and its epoch.
    pub(super) side: BTreeMap<String, RowChanges<String, (String, Epoch)>>,
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
            change(&mut self.pairs, delta.pair.pair.clone(), row);
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
            change(&mut self.clusters, document.clone(), (*diff > 0).then(|| cluster.clone()));
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
            change(rows, format!("{{{}}}", row.json), value);
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

/// Changes of rows as statements need them.
pub(super) struct SplitChanges<'r, K, R> {
    /// Rows to write.
    pub(super) upserts: Vec<(&'r K, &'r R)>,
    /// How many of them the last commit did not leave.
    pub(super) new: usize,
    /// Keys of rows to delete, which the last commit left.
    pub(super) deletes: Vec<&'r K>,
}

/// Splits changes into rows to write and to delete. A row that has begun and ended since the last commit is
/// neither.
pub(super) fn split_changes<K, R>(changes: &RowChanges<K, R>) -> SplitChanges<'_, K, R> {
    let upserts: Vec<_> = changes.iter().filter_map(|(key, row)| Some((key, row.now.as_ref()?))).collect();
    let deletes = changes.iter().filter(|(_, row)| row.was && row.now.is_none()).map(|(key, _)| key);
    let kept = changes.values().filter(|row| row.was && row.now.is_some()).count();
    SplitChanges { new: upserts.len() - kept, deletes: deletes.collect(), upserts }
}

/// Splits rows into those to write and the keys of those to delete.
pub(super) fn split_rows<K, V>(rows: &BTreeMap<K, Option<V>>) -> (Vec<(&K, &V)>, Vec<&K>) {
    let upserts = rows.iter().filter_map(|(key, row)| Some((key, row.as_ref()?))).collect();
    let deletes = rows.iter().filter(|(_, row)| row.is_none()).map(|(key, _)| key).collect();
    (upserts, deletes)
}
