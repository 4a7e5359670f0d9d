//! Reads ids and words of the sketches of a worker on another thread: in memory, or ids in rows of a file.

use crate::dataflow::shared::words::{SketchWordsReader, stored_id};
use dupflow_core::hash::SketchId;
use dupflow_core::memory::{SharedRowsReader, SpilledRowsReader};

/// Reads the sketches of a worker. A place is read from when its sketch is posted until it leaves its blocks.
#[derive(Clone, Debug)]
pub(in crate::dataflow) enum SketchReader {
    Memory(SketchWordsReader),
    /// Rows that begin with the id, and first words in memory.
    Spilled(SpilledRowsReader, SharedRowsReader),
}

impl SketchReader {
    /// The id of the sketch at a place.
    pub(in crate::dataflow) fn id(&self, place: u32) -> SketchId {
        match self {
            Self::Memory(words) => words.id(place),
            Self::Spilled(rows, _) => rows.with(place, stored_id),
        }
    }

    /// The first word of the sketch at a place.
    #[inline]
    pub(in crate::dataflow) fn first(&self, place: u32) -> u64 {
        match self {
            Self::Memory(words) => words.first(place),
            Self::Spilled(_, first) => first.first(place),
        }
    }

    /// Passes the words of the sketch at a place to `read`; `None` if they are in a file.
    #[inline]
    pub(in crate::dataflow) fn words_in_memory<R>(
        &self,
        place: u32,
        read: impl FnOnce(&[u64]) -> R,
    ) -> Option<R> {
        match self {
            Self::Memory(words) => Some(words.with(place, read)),
            Self::Spilled(..) => None,
        }
    }
}
