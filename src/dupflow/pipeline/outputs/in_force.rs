//! What is in force, for an output that comes back: the pairs, and the facts of the documents.

use std::collections::{BTreeMap, BTreeSet};

use dupflow_core::doc::fields::FieldRow;
use dupflow_core::doc::{DocChange, DocId, Facts};
use dupflow_core::pair::DocPair;
use dupflow_engine::dataflow::ClosedEpoch;

/// Documents that are passed to an output at once.
const DOCUMENTS: usize = 20_000;

/// What the epochs so far accumulate to. Memory: the pairs, and the documents where an output wants them.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct InForce {
    pairs: BTreeSet<DocPair>,
    /// Live documents, if they are held.
    documents: BTreeMap<DocId, Facts>,
    holds_documents: bool,
}

impl InForce {
    /// Nothing yet; with or without documents.
    pub(in crate::pipeline) fn new(holds_documents: bool) -> Self {
        Self { holds_documents, ..Self::default() }
    }

    /// Applies an epoch, in order.
    pub(in crate::pipeline) fn apply(&mut self, epoch: &ClosedEpoch) {
        for delta in &epoch.deltas {
            if delta.diff > 0 {
                self.pairs.insert(delta.pair.clone());
            } else {
                self.pairs.remove(&delta.pair);
            }
        }
        for DocChange { id, now, .. } in epoch.documents.iter().filter(|_| self.holds_documents) {
            match now {
                Some(facts) => drop(self.documents.insert(id.clone(), *facts)),
                None => drop(self.documents.remove(id)),
            }
        }
    }

    /// The pairs, in order.
    pub(super) fn pairs(&self) -> impl Iterator<Item = &DocPair> {
        self.pairs.iter()
    }

    /// The documents as changes that begin them, in order and in pieces.
    pub(super) fn documents(&self) -> impl Iterator<Item = Vec<DocChange>> {
        let mut documents = self.documents.iter().map(|(id, facts)| DocChange {
            id: id.clone(),
            now: Some(*facts),
            fields: FieldRow::default(),
            word: None,
            unit: None,
        });
        std::iter::from_fn(move || {
            let piece: Vec<_> = documents.by_ref().take(DOCUMENTS).collect();
            Some(piece).filter(|piece| !piece.is_empty())
        })
    }
}
