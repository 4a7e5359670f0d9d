//! What a commit writes: of each row the last thing that is known.

use std::collections::BTreeMap;

use crate::sink::StandardError;
use crate::sink::cluster_changes::Change;
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::{DocChange, DocId, Facts};
use dupflow_core::pair::{Delta, DocPair, Pair};
use dupflow_core::time::Epoch;

/// A pair as a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PairRow {
    pub(super) pair: DocPair,
    pub(super) epoch: Epoch,
    /// There if evidence is asked for.
    pub(super) standard_error: Option<f64>,
}

/// Rows that come or change, and, with `None`, rows that go.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) pairs: BTreeMap<Pair<DocId>, Option<PairRow>>,
    pub(super) clusters: BTreeMap<DocId, Option<DocId>>,
    pub(super) documents: BTreeMap<DocId, Option<Facts>>,
    /// Whether the table of deltas begins anew, before all else: with the pairs that are there, if deltas are
    /// kept, else with nothing.
    pub(super) deltas_anew: bool,
    /// Every change of a pair, in order.
    pub(super) deltas: Vec<(Epoch, Delta)>,
}

impl Changes {
    /// The changes of an epoch, sorted: of a pair whose similarity changes comes what goes, and then what
    /// comes.
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

    /// Changes of memberships, sorted likewise. There are no giants.
    pub(super) fn clusters(&mut self, changes: &[Change]) {
        for (report, diff) in changes {
            let ClusterReport::Member { cluster, document } = report else { continue };
            self.clusters.insert(document.clone(), (*diff > 0).then(|| cluster.clone()));
        }
    }

    pub(super) fn documents(&mut self, changes: &[DocChange]) {
        self.documents.extend(changes.iter().map(|DocChange { id, now }| (id.clone(), *now)));
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Rows that come, and the keys of those that go.
pub(super) fn parted<K, V>(rows: &BTreeMap<K, Option<V>>) -> (Vec<(&K, &V)>, Vec<&K>) {
    let come = rows.iter().filter_map(|(key, row)| Some((key, row.as_ref()?))).collect();
    let go = rows.iter().filter(|(_, row)| row.is_none()).map(|(key, _)| key).collect();
    (come, go)
}
