//! Stored documents by place, found by the hash of their ids: in memory, or in rows of a file.

use crate::dataflow::spill::SpillMeter;
use crate::dataflow::stages::Stages;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::memory::{RowValue, Slab, SpilledSlab};
use dupflow_core::time::Epoch;

/// What the store holds of a live document: a `Copy` value of few bytes, with one value that means "not
/// alive".
pub(in crate::dataflow) trait InForce: Copy + PartialEq + 'static {
    /// The value of a document that is not alive.
    const ENDED: Self;

    /// The value as a word, that of [`from_word`](Self::from_word).
    fn to_word(self) -> u64;

    /// The value of a [word](Self::to_word).
    fn from_word(word: u64) -> Self;
}

/// A document, alive or ended.
#[derive(Debug)]
pub(in crate::dataflow) struct StoredDocument<V> {
    pub(in crate::dataflow) id: DocId,
    // The fields of a position, and a time with NaN for none: side by side they take 24 bytes, as types of
    // their own 36. Where ids move, the partition and time of an ended document are those of its greatest
    // key.
    pub(super) partition: u32,
    /// The epoch of the last event; 0 if unknown, and `u32::MAX` stands for all epochs from there on.
    pub(super) changed: u32,
    pub(super) offset: u64,
    pub(super) ts: f64,
    /// The value in force.
    pub(in crate::dataflow) value: V,
}

/// All documents of a worker.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a worker has one")]
pub(super) enum StoredDocuments<V: InForce> {
    Memory(Slab<StoredDocument<V>>),
    Spilled(Box<SpilledSlab<StoredDocument<V>>>, SpillMeter),
}

impl<V: InForce> StoredDocument<V> {
    /// The position of its last event.
    pub(in crate::dataflow) fn position(&self) -> Position {
        Position { partition: self.partition, offset: self.offset }
    }

    /// The time of its last event in unix seconds, if the source gives one.
    pub(in crate::dataflow) fn ts(&self) -> Option<f64> {
        Some(self.ts).filter(|ts| !ts.is_nan())
    }

    /// The epoch of its last event in this run; `None` if it was restored and has had no event since. From
    /// epoch 2^32 - 1 on, 2^32 - 1.
    pub(in crate::dataflow) fn changed(&self) -> Option<Epoch> {
        Some(Epoch::from(self.changed)).filter(|epoch| *epoch > 0)
    }

    pub(in crate::dataflow) fn is_alive(&self) -> bool {
        self.value != V::ENDED
    }
}

impl<V: InForce> RowValue for StoredDocument<V> {
    /// An id that is too long for a row.
    type Rest = DocId;

    fn stays(&self) -> bool {
        false
    }

    fn store(&self, row: &mut [u64]) {
        let Self { id, partition, changed, offset, ts, value } = self;
        let moved = u64::from(*partition) << 32 | u64::from(*changed);
        row[..3].copy_from_slice(&id.to_words().unwrap_or_default());
        row[3..].copy_from_slice(&[moved, *offset, ts.to_bits(), value.to_word()]);
    }

    fn rest(self) -> Option<DocId> {
        self.id.to_words().is_none().then_some(self.id)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
    fn load(row: &[u64], rest: Option<DocId>) -> Self {
        Self {
            id: rest.unwrap_or_else(|| DocId::from_words([row[0], row[1], row[2]])),
            partition: (row[3] >> 32) as u32,
            changed: row[3] as u32,
            offset: row[4],
            ts: f64::from_bits(row[5]),
            value: V::from_word(row[6]),
        }
    }
}

impl<V: InForce> Default for StoredDocuments<V> {
    fn default() -> Self {
        Self::Memory(Slab::default())
    }
}

impl<V: InForce> StoredDocuments<V> {
    /// No documents.
    pub(super) fn new(stages: &Stages) -> Self {
        stages
            .spilled_documents()
            .map_or_else(Self::default, |(rows, meter)| Self::Spilled(rows.into(), meter))
    }

    /// Brings the documents of these hashes into memory, until the next call.
    pub(super) fn fetch(&mut self, hashes: impl Iterator<Item = u64>) {
        if let Self::Spilled(rows, meter) = self {
            rows.fetch(hashes);
            meter.add(rows.take_counts());
        }
    }

    /// Prefetch for documents of these hashes that are found or inserted next.
    pub(super) fn prefetch(&self, hashes: impl Iterator<Item = u64>) {
        if let Self::Memory(rows) = self {
            rows.prefetch(hashes);
        }
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, id: &DocId) -> Option<u32> {
        let is = |document: &StoredDocument<V>| document.id == *id;
        match self {
            Self::Memory(rows) => rows.find(hash, is),
            Self::Spilled(rows, _) => rows.find(hash, is),
        }
    }

    #[inline]
    pub(super) fn get(&self, place: u32) -> Option<&StoredDocument<V>> {
        match self {
            Self::Memory(rows) => rows.get(place),
            Self::Spilled(rows, _) => rows.get(place),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut StoredDocument<V>> {
        match self {
            Self::Memory(rows) => rows.get_mut(place),
            Self::Spilled(rows, _) => rows.get_mut(place),
        }
    }

    pub(super) fn insert(&mut self, hash: u64, document: StoredDocument<V>) -> u32 {
        match self {
            Self::Memory(rows) => rows.insert(hash, document),
            Self::Spilled(rows, _) => rows.insert(hash, document),
        }
    }

    pub(super) fn remove(&mut self, hash: u64, place: u32) -> StoredDocument<V> {
        match self {
            Self::Memory(rows) => rows.remove(hash, place),
            Self::Spilled(rows, _) => rows.remove(hash, place),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Memory(rows) => rows.len(),
            Self::Spilled(rows, _) => rows.len(),
        }
    }
}
