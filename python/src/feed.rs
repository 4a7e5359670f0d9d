//! Events to batches for the reader.

use std::sync::Arc;

use dupflow::connectors::intake::{Batch, EpochRule, EventBuffer, Payload};
use dupflow::core::doc::DocId;
use dupflow::core::doc::fields::EventFields;

/// Bytes of a batch from which on it is complete.
const BYTES: usize = 256 << 10;

/// Records of an epoch, inclusive: as many as `dupflow replay` has by default.
pub(crate) fn epoch_records() -> u64 {
    match EpochRule::default() {
        EpochRule::Events(records) => records.get(),
        _ => 1000,
    }
}

/// Collects events until they are a batch. No batch crosses an end of an epoch.
#[derive(Debug)]
pub(crate) struct Feed {
    events: EventBuffer,
    /// The offset of the first event that is not in a batch.
    first: u64,
    /// Events since the last cut.
    in_epoch: u64,
    input: Arc<str>,
}

impl Feed {
    pub(crate) fn new(first: u64) -> Self {
        Self { events: EventBuffer::default(), first, in_epoch: 0, input: "python".into() }
    }

    /// Adds an upsert. Returns a batch if that completes one.
    pub(crate) fn upsert<'t>(
        &mut self,
        id: DocId,
        ts: Option<f64>,
        fields: EventFields,
        pieces: impl IntoIterator<Item = &'t str>,
    ) -> Option<Batch> {
        self.events.upsert(id, ts, fields, pieces);
        self.complete()
    }

    /// Adds a delete. Returns a batch if that completes one.
    pub(crate) fn delete(&mut self, id: DocId) -> Option<Batch> {
        self.events.delete(id, None);
        self.complete()
    }

    fn complete(&mut self) -> Option<Batch> {
        self.in_epoch += 1;
        let ends = self.in_epoch == epoch_records();
        if ends {
            self.in_epoch = 0;
        }
        if ends || self.events.bytes() >= BYTES { self.take() } else { None }
    }

    /// The epoch was cut.
    pub(crate) fn cut(&mut self) {
        self.in_epoch = 0;
    }

    /// The offset of the first event that is in no batch.
    pub(crate) fn position(&self) -> u64 {
        self.first
    }

    /// The events that are not in a batch yet; `None` if there are none.
    pub(crate) fn take(&mut self) -> Option<Batch> {
        if self.events.is_empty() {
            return None;
        }
        let records = self.events.len() as u64;
        let first = self.first;
        self.first += records;
        Some(Batch {
            input: Arc::clone(&self.input),
            partition: 0,
            records,
            next: self.first,
            payload: Payload::Events { events: std::mem::take(&mut self.events), first },
            letters: Vec::new(),
            seen: None,
        })
    }
}
