//! Stored sketches by place, found by their ids: in memory, or in rows of a file.

use crate::dataflow::Stages;
use crate::dataflow::sketches::members::SketchMembers;
use crate::dataflow::spill::{SKETCH_ENTRY_WORDS, SpillMeter};
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::memory::{RowValue, Rows, Slab, SpilledSlab};

/// A sketch with its members.
#[derive(Debug)]
pub(super) struct SketchEntry {
    pub(super) id: SketchId,
    pub(super) members: SketchMembers,
}

/// All sketches of a worker.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a worker has one")]
pub(super) enum StoredSketches {
    /// The words of each entry by its place in `entries`.
    Memory {
        entries: Slab<SketchEntry>,
        words: Rows<u64>,
    },
    Spilled(Box<SpilledSlab<SpilledSketch>>, SpillMeter),
}

/// A sketch that can be a row: its id, its member, its words.
#[derive(Debug)]
pub(super) struct SpilledSketch {
    entry: SketchEntry,
    words: Box<[u64]>,
}

impl RowValue for SpilledSketch {
    /// Members that do not fit into a row: several, or one with a long id.
    type Rest = SketchMembers;

    /// A sketch without members is read when its epoch is released, and not again before.
    fn stays(&self) -> bool {
        self.entry.members.len() == 0
    }

    fn store(self, row: &mut [u64]) -> Option<SketchMembers> {
        let SketchEntry { id, members } = self.entry;
        row[..2].copy_from_slice(&id.to_words());
        row[SKETCH_ENTRY_WORDS..].copy_from_slice(&self.words);
        let inline = if let SketchMembers::One(document) = &members { document.to_words() } else { None };
        row[2..SKETCH_ENTRY_WORDS].copy_from_slice(&inline.unwrap_or_default());
        inline.is_none().then_some(members)
    }

    fn load(row: &[u64], rest: Option<SketchMembers>) -> Self {
        let (entry, words) = row.split_at(SKETCH_ENTRY_WORDS);
        let one = || SketchMembers::One(DocId::from_words([entry[2], entry[3], entry[4]]));
        let id = SketchId::from_words([entry[0], entry[1]]);
        Self { entry: SketchEntry { id, members: rest.unwrap_or_else(one) }, words: words.into() }
    }
}

impl StoredSketches {
    /// No sketches, which will have `words` words, in memory.
    pub(super) fn in_memory(words: usize) -> Self {
        Self::Memory { entries: Slab::default(), words: Rows::new(words) }
    }

    /// No sketches; in memory, unless there is a budget.
    pub(super) fn for_run(stages: &Stages) -> Self {
        let in_memory = || Self::in_memory(stages.scheme.words());
        stages.spilled_sketches().map_or_else(in_memory, |(rows, meter)| Self::Spilled(rows.into(), meter))
    }

    /// Brings the sketches of these ids into memory, until the next call.
    pub(super) fn fetch(&mut self, ids: impl Iterator<Item = SketchId>) {
        if let Self::Spilled(rows, meter) = self {
            rows.fetch(ids.map(SketchId::low));
            meter.add(rows.take_counts());
        }
    }

    #[inline]
    pub(super) fn find(&self, id: SketchId) -> Option<u32> {
        match self {
            Self::Memory { entries, .. } => entries.find(id.low(), |entry| entry.id == id),
            Self::Spilled(rows, _) => rows.find(id.low(), |sketch| sketch.entry.id == id),
        }
    }

    /// The entry at a place, if there is one. A spilled one is in memory if it was fetched, or has no
    /// members.
    #[inline]
    pub(super) fn entry(&self, place: u32) -> Option<&SketchEntry> {
        match self {
            Self::Memory { entries, .. } => entries.get(place),
            Self::Spilled(rows, _) => rows.get(place).map(|sketch| &sketch.entry),
        }
    }

    /// The words of the sketch at a place that [`find`](Self::find) returned.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(super) fn words(&self, place: u32) -> &[u64] {
        match self {
            Self::Memory { words, .. } => words.row(place as usize),
            Self::Spilled(rows, _) => &rows.get(place).expect("what was found is in memory").words,
        }
    }

    /// The members of the sketch at a place, to be changed, and its words.
    pub(super) fn entry_mut(&mut self, place: u32) -> Option<(&mut SketchMembers, &[u64])> {
        match self {
            Self::Memory { entries, words } => {
                entries.get_mut(place).map(|entry| (&mut entry.members, words.row(place as usize)))
            }
            Self::Spilled(rows, _) => {
                rows.get_mut(place).map(|sketch| (&mut sketch.entry.members, &*sketch.words))
            }
        }
    }

    /// Adds a sketch without members; returns its place.
    pub(super) fn insert(&mut self, id: SketchId, body: &mut Box<[u64]>) -> u32 {
        let entry = SketchEntry { id, members: SketchMembers::Empty(0) };
        match self {
            Self::Memory { entries, words } => {
                let place = entries.insert(id.low(), entry);
                words.set(place as usize, body.iter().copied());
                place
            }
            Self::Spilled(rows, _) => {
                rows.insert(id.low(), SpilledSketch { entry, words: std::mem::take(body) })
            }
        }
    }

    /// Removes the sketch at a place.
    pub(super) fn remove(&mut self, id: SketchId, place: u32) {
        match self {
            Self::Memory { entries, words } => {
                entries.remove(id.low(), place);
                words.free(place as usize);
            }
            Self::Spilled(rows, _) => drop(rows.remove(id.low(), place)),
        }
    }

    /// Calls `each` with all sketches: place, entry and words.
    pub(super) fn for_each(&mut self, mut each: impl FnMut(u32, &SketchEntry, &[u64])) {
        match self {
            Self::Memory { entries, words } => {
                entries.iter().for_each(|(place, entry)| each(place, entry, words.row(place as usize)));
            }
            Self::Spilled(rows, meter) => {
                rows.for_each(|place, sketch| each(place, &sketch.entry, &sketch.words));
                meter.add(rows.take_counts());
            }
        }
    }
}
