//! Stored sketches by place, found by their ids: in memory, or in rows of a file.

use crate::dataflow::shared::reader::SketchReader;
use crate::dataflow::shared::words::{SketchIds, SketchWords, stored_id};
use crate::dataflow::sketches::members::SketchMembers;
use crate::dataflow::spill::{SKETCH_ENTRY_WORDS, SpillMeter};
use crate::dataflow::stages::Stages;
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::memory::{RowValue, SharedRows, Slab, SpilledSlab};

/// All sketches of a worker.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a worker has one")]
pub(super) enum StoredSketches {
    /// Id and words of a sketch are at the place of its members.
    Memory { sketches: SketchWords, members: Slab<SketchMembers> },
    /// First words are in memory too: most candidates of large blocks end there.
    Spilled { rows: Box<SpilledSlab<SpilledSketch>>, first: SharedRows, meter: SpillMeter },
}

/// A sketch that can be a row: its id, its member, its words.
#[derive(Debug)]
pub(super) struct SpilledSketch {
    id: SketchId,
    members: SketchMembers,
    words: Box<[u64]>,
}

impl RowValue for SpilledSketch {
    /// Members that do not fit into a row: several, or one with a long id.
    type Rest = SketchMembers;

    /// A sketch without members is read when its epoch is released, and not again before.
    fn stays(&self) -> bool {
        self.members.len() == 0
    }

    fn store(&self, row: &mut [u64]) {
        let Self { id, members, words } = self;
        row[..2].copy_from_slice(&id.to_words());
        row[2..SKETCH_ENTRY_WORDS].copy_from_slice(&inline(members).unwrap_or_default());
        row[SKETCH_ENTRY_WORDS..].copy_from_slice(words);
    }

    fn rest(self) -> Option<SketchMembers> {
        inline(&self.members).is_none().then_some(self.members)
    }

    fn load(row: &[u64], rest: Option<SketchMembers>) -> Self {
        let (entry, words) = row.split_at(SKETCH_ENTRY_WORDS);
        let one = || SketchMembers::One(DocId::from_words([entry[2], entry[3], entry[4]]));
        let id = SketchId::from_words([entry[0], entry[1]]);
        Self { id, members: rest.unwrap_or_else(one), words: words.into() }
    }
}

/// Members as words of a row, if they fit.
fn inline(members: &SketchMembers) -> Option<[u64; SKETCH_ENTRY_WORDS - 2]> {
    if let SketchMembers::One(document) = members { document.to_words() } else { None }
}

impl StoredSketches {
    /// No sketches, in memory.
    pub(super) fn in_memory(sketches: SketchWords) -> Self {
        Self::Memory { sketches, members: Slab::default() }
    }

    /// No sketches, in rows of a file.
    pub(super) fn spilled(rows: SpilledSlab<SpilledSketch>, meter: SpillMeter) -> Self {
        Self::Spilled { rows: rows.into(), first: SharedRows::new(1), meter }
    }

    /// No sketches; in memory, unless there is a budget. In memory they may be shared with other workers.
    pub(super) fn for_run(stages: &Stages, are_shared: bool) -> Self {
        let ids = SketchIds::for_scheme(&stages.scheme);
        let in_memory = || Self::in_memory(SketchWords::new(ids, stages.scheme.words(), are_shared));
        stages.spilled_sketches().map_or_else(in_memory, |(rows, meter)| Self::spilled(rows, meter))
    }

    /// A reader for other workers, if the sketches are shared.
    pub(super) fn reader(&self) -> Option<SketchReader> {
        match self {
            Self::Memory { sketches, .. } => sketches.reader().map(SketchReader::Memory),
            Self::Spilled { rows, first, .. } => Some(SketchReader::Spilled(rows.reader(), first.reader())),
        }
    }

    /// Brings the sketches whose ids have these low halves into memory, until the next call.
    pub(super) fn fetch(&mut self, lows: impl Iterator<Item = u64>) {
        if let Self::Spilled { rows, meter, .. } = self {
            rows.fetch(lows);
            meter.add(rows.take_counts());
        }
    }

    /// Prefetch for sketches of these low halves that are found or inserted next.
    pub(super) fn prefetch(&self, lows: impl Iterator<Item = u64>) {
        if let Self::Memory { members, .. } = self {
            members.prefetch(lows);
        }
    }

    /// The places of the sketches whose ids have this low half, and possibly of a few others.
    pub(super) fn places(&self, low: u64) -> impl Iterator<Item = u32> {
        let (memory, spilled) = match self {
            Self::Memory { members, .. } => (Some(members.places(low)), None),
            Self::Spilled { rows, .. } => (None, Some(rows.places(low))),
        };
        memory.into_iter().flatten().chain(spilled.into_iter().flatten())
    }

    #[inline]
    pub(super) fn find(&self, id: SketchId) -> Option<u32> {
        match self {
            Self::Memory { sketches, members } => {
                members.find_place(id.low(), |place| sketches.id(place) == id)
            }
            Self::Spilled { rows, .. } => rows.find(id.low(), |sketch| sketch.id == id),
        }
    }

    /// The members of the sketch at a place, if there is one. Those of a spilled one are in memory if it was
    /// fetched, or has no members.
    #[inline]
    pub(super) fn members(&self, place: u32) -> Option<&SketchMembers> {
        match self {
            Self::Memory { members, .. } => members.get(place),
            Self::Spilled { rows, .. } => rows.get(place).map(|sketch| &sketch.members),
        }
    }

    /// Whether the sketch at a place has this id. False for a spilled one that is not in memory.
    pub(super) fn is_at(&self, id: SketchId, place: u32) -> bool {
        match self {
            Self::Memory { sketches, members } => members.get(place).is_some() && sketches.id(place) == id,
            Self::Spilled { rows, .. } => rows.get(place).is_some_and(|sketch| sketch.id == id),
        }
    }

    /// The id of the sketch at a place that [`find`](Self::find) returned.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn id(&self, place: u32) -> SketchId {
        match self {
            Self::Memory { sketches, .. } => sketches.id(place),
            Self::Spilled { rows, .. } => rows.get(place).expect("what was found is in memory").id,
        }
    }

    /// The id of the sketch at a place; it is read where it is not in memory.
    pub(super) fn read_id(&self, place: u32) -> SketchId {
        match self {
            Self::Memory { sketches, .. } => sketches.id(place),
            Self::Spilled { rows, .. } => rows.reader().with(place, stored_id),
        }
    }

    /// The first word of the sketch at a place.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(super) fn first_word(&self, place: u32) -> u64 {
        match self {
            Self::Memory { sketches, .. } => sketches.first(place),
            Self::Spilled { first, .. } => first.first(place),
        }
    }

    /// Passes the words of the sketch at a place to `read`; `None` if they may be in a file.
    #[inline]
    pub(super) fn words_in_memory<R>(&self, place: u32, read: impl FnOnce(&[u64]) -> R) -> Option<R> {
        match self {
            Self::Memory { sketches, .. } => Some(sketches.with(place, read)),
            Self::Spilled { .. } => None,
        }
    }

    /// The words of the sketch at a place that [`find`](Self::find) returned, where they are or copied.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(super) fn words<'a>(&'a self, place: u32, copy: &'a mut Vec<u64>) -> &'a [u64] {
        match self {
            Self::Memory { sketches, .. } => sketches.read(place, copy),
            Self::Spilled { rows, .. } => &rows.get(place).expect("what was found is in memory").words,
        }
    }

    /// The members of the sketch at a place, to be changed, and its words, where they are or copied.
    pub(super) fn members_mut<'a>(
        &'a mut self,
        place: u32,
        copy: &'a mut Vec<u64>,
    ) -> Option<(&'a mut SketchMembers, &'a [u64])> {
        match self {
            Self::Memory { sketches, members } => {
                members.get_mut(place).map(|of_place| (of_place, sketches.read(place, copy)))
            }
            Self::Spilled { rows, .. } => {
                rows.get_mut(place).map(|sketch| (&mut sketch.members, &*sketch.words))
            }
        }
    }

    /// Adds a sketch without members; returns its place.
    pub(super) fn insert(&mut self, id: SketchId, body: &mut Box<[u64]>) -> u32 {
        let empty = SketchMembers::Empty(0);
        match self {
            Self::Memory { sketches, members } => {
                let place = members.insert(id.low(), empty);
                sketches.set(place, id, body);
                place
            }
            Self::Spilled { rows, first, .. } => {
                let word = body[0];
                let sketch = SpilledSketch { id, members: empty, words: std::mem::take(body) };
                let place = rows.insert(id.low(), sketch);
                first.set(place, std::iter::once(word));
                place
            }
        }
    }

    /// Removes the sketch at a place.
    pub(super) fn remove(&mut self, id: SketchId, place: u32) {
        match self {
            Self::Memory { sketches, members } => {
                members.remove(id.low(), place);
                sketches.free(place);
            }
            Self::Spilled { rows, first, .. } => {
                rows.remove(id.low(), place);
                first.free(place);
            }
        }
    }

    /// Calls `each` with all sketches: place, id, members and words.
    pub(super) fn for_each(&mut self, mut each: impl FnMut(u32, SketchId, &SketchMembers, &[u64])) {
        match self {
            Self::Memory { sketches, members } => {
                let mut copy = Vec::new();
                members.iter().for_each(|(place, of_place)| {
                    each(place, sketches.id(place), of_place, sketches.read(place, &mut copy));
                });
            }
            Self::Spilled { rows, meter, .. } => {
                rows.for_each(|place, sketch| each(place, sketch.id, &sketch.members, &sketch.words));
                meter.add(rows.take_counts());
            }
        }
    }
}
