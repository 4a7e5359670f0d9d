//! Reads the sketches of a worker on another thread: in memory, or in rows of a file.

use crate::dataflow::shared::words::{SketchWordsReader, stored_id};
use dupflow_core::hash::SketchId;
use dupflow_core::memory::SpilledRowsReader;

/// Reads the sketches of a worker. A place is read from when its sketch is posted until it leaves its blocks.
#[derive(Clone, Debug)]
pub(in crate::dataflow) enum SketchReader {
    Memory(SketchWordsReader),
    /// Rows that begin with the id.
    Spilled(SpilledRowsReader),
}

impl SketchReader {
    /// The id of the sketch at a place.
    pub(in crate::dataflow) fn id(&self, place: u32) -> SketchId {
        match self {
            Self::Memory(words) => words.id(place),
            Self::Spilled(rows) => rows.with(place, stored_id),
        }
    }

    /// The first word of the sketch at a place, if it is in memory.
    #[inline]
    pub(in crate::dataflow) fn first(&self, place: u32) -> Option<u64> {
        if let Self::Memory(words) = self { Some(words.first(place)) } else { None }
    }
}
