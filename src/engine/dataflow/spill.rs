//! Spill: under a memory budget, the rows of sketches and documents are in temporary files.
//!
//! What is found by hash is in memory: the indexes, and the blocks. A sketch with its id and its member, and
//! a document, are one row each, read by place through a [`SpilledSlab`](dupflow_core::memory::SpilledSlab).
//! Each operator fetches the rows of a batch before it looks them up. Its results are the same.
//!
//! In memory stay: documents under retention, whose orders compare them all the time; fields, features and
//! terms; members of a sketch with several of them; ids longer than
//! [`DocId::INLINE_BYTES`](dupflow_core::doc::DocId::INLINE_BYTES).

use std::sync::Arc;

use super::stages::{Spill, Stages};
use dupflow_core::memory::{RowValue, SpillCounts, SpilledSlab};
use dupflow_run::metrics::{Counter, Metrics};

/// Words of a document's row.
pub(super) const DOCUMENT_WORDS: usize = 7;
/// Words of a sketch's row, without the sketch: its id, and its member.
pub(super) const SKETCH_ENTRY_WORDS: usize = 5;

impl Stages {
    /// Whether documents are spilled too: the orders of retention compare documents that no event names.
    pub fn spills_documents(&self) -> bool {
        self.spill.is_some() && self.retention.max_age.is_none() && self.retention.max_documents.is_none()
    }

    /// A spilled slab for sketches, if there is a budget. The caches are shared in proportion to the rows.
    pub(super) fn spilled_sketches<T: RowValue>(&self) -> Option<(SpilledSlab<T>, SpillMeter)> {
        let width = SKETCH_ENTRY_WORDS + self.scheme.words();
        self.spilled(width, if self.spills_documents() { DOCUMENT_WORDS } else { 0 })
    }

    /// A spilled slab for documents, if they are spilled.
    pub(super) fn spilled_documents<T: RowValue>(&self) -> Option<(SpilledSlab<T>, SpillMeter)> {
        let others = SKETCH_ENTRY_WORDS + self.scheme.words();
        if self.spills_documents() { self.spilled(DOCUMENT_WORDS, others) } else { None }
    }

    fn spilled<T: RowValue>(&self, width: usize, others: usize) -> Option<(SpilledSlab<T>, SpillMeter)> {
        let Spill { place, page_bytes, cache_bytes, .. } = self.spill.as_ref()?;
        let share = cache_bytes / (width + others) * width;
        let meter = SpillMeter::new(&self.observers.metrics);
        Some((SpilledSlab::create(&**place, width, *page_bytes, share), meter))
    }
}

/// Adds the counts of a file to the counters of the process.
#[derive(Debug)]
pub(super) struct SpillMeter(Arc<Metrics>);

impl SpillMeter {
    /// Adds to these counters.
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        Self(Arc::clone(metrics))
    }

    /// Adds counts.
    pub(super) fn add(&self, counts: SpillCounts) {
        let SpillCounts { rows, reads, writes, bytes, cached } = counts;
        for (counter, n) in [
            (Counter::SpillRows, rows),
            (Counter::SpillReads, reads),
            (Counter::SpillWrites, writes),
            (Counter::SpillBytes, bytes),
            (Counter::SpillPages, cached),
        ] {
            self.0.add(counter, n);
        }
    }
}
