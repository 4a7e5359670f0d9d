//! Stored sketches by place, found by their ids: in memory, or in rows of a file.

use crate::dataflow::Stages;
use crate::dataflow::sketches::members::SketchMembers;
use crate::dataflow::spill::{SKETCH_ENTRY_WORDS, SpillMeter};
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::memory::{RowValue, Rows, Slab, SpilledSlab};
use dupflow_core::sketch::Scheme;

/// All sketches of a worker.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a worker has one")]
pub(super) enum StoredSketches {
    /// The id and the words of a sketch by the place of its members.
    Memory {
        ids: StoredIds,
        members: Slab<SketchMembers>,
        words: Rows<u64>,
    },
    Spilled(Box<SpilledSlab<SpilledSketch>>, SpillMeter),
}

/// The ids of sketches in memory.
#[derive(Debug)]
pub(super) enum StoredIds {
    /// Each is computed from the words when it is needed, a few times an event, under this fingerprint of the
    /// scheme.
    Computed(u64),
    /// By place.
    Stored(Rows<SketchId>),
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

    fn store(self, row: &mut [u64]) -> Option<SketchMembers> {
        let Self { id, members, words } = self;
        row[..2].copy_from_slice(&id.to_words());
        row[SKETCH_ENTRY_WORDS..].copy_from_slice(&words);
        let inline = if let SketchMembers::One(document) = &members { document.to_words() } else { None };
        row[2..SKETCH_ENTRY_WORDS].copy_from_slice(&inline.unwrap_or_default());
        inline.is_none().then_some(members)
    }

    fn load(row: &[u64], rest: Option<SketchMembers>) -> Self {
        let (entry, words) = row.split_at(SKETCH_ENTRY_WORDS);
        let one = || SketchMembers::One(DocId::from_words([entry[2], entry[3], entry[4]]));
        let id = SketchId::from_words([entry[0], entry[1]]);
        Self { id, members: rest.unwrap_or_else(one), words: words.into() }
    }
}

impl StoredIds {
    /// For the sketches of a run.
    fn for_scheme(scheme: &Scheme) -> Self {
        if scheme.names_words() { Self::Computed(scheme.fingerprint()) } else { Self::Stored(Rows::new(1)) }
    }

    /// The id of the sketch at a place, which has these words.
    #[inline]
    fn id(&self, place: u32, words: &[u64]) -> SketchId {
        match self {
            Self::Computed(fingerprint) => SketchId::new(*fingerprint, words),
            Self::Stored(ids) => ids.row(place as usize)[0],
        }
    }
}

impl StoredSketches {
    /// No sketches, which will have `words` words, in memory.
    pub(super) fn in_memory(ids: StoredIds, words: usize) -> Self {
        Self::Memory { ids, members: Slab::default(), words: Rows::new(words) }
    }

    /// No sketches; in memory, unless there is a budget.
    pub(super) fn for_run(stages: &Stages) -> Self {
        let in_memory = || Self::in_memory(StoredIds::for_scheme(&stages.scheme), stages.scheme.words());
        stages.spilled_sketches().map_or_else(in_memory, |(rows, meter)| Self::Spilled(rows.into(), meter))
    }

    /// Brings the sketches whose ids have these low halves into memory, until the next call.
    pub(super) fn fetch(&mut self, lows: impl Iterator<Item = u64>) {
        if let Self::Spilled(rows, meter) = self {
            rows.fetch(lows);
            meter.add(rows.take_counts());
        }
    }

    /// The places of the sketches whose ids have this low half, and possibly of a few others.
    pub(super) fn places(&self, low: u64) -> impl Iterator<Item = u32> {
        let (memory, spilled) = match self {
            Self::Memory { members, .. } => (Some(members.places(low)), None),
            Self::Spilled(rows, _) => (None, Some(rows.places(low))),
        };
        memory.into_iter().flatten().chain(spilled.into_iter().flatten())
    }

    #[inline]
    pub(super) fn find(&self, id: SketchId) -> Option<u32> {
        match self {
            Self::Memory { ids, members, words } => {
                members.find_place(id.low(), |place| ids.id(place, words.row(place as usize)) == id)
            }
            Self::Spilled(rows, _) => rows.find(id.low(), |sketch| sketch.id == id),
        }
    }

    /// The members of the sketch at a place, if there is one. Those of a spilled one are in memory if it was
    /// fetched, or has no members.
    #[inline]
    pub(super) fn members(&self, place: u32) -> Option<&SketchMembers> {
        match self {
            Self::Memory { members, .. } => members.get(place),
            Self::Spilled(rows, _) => rows.get(place).map(|sketch| &sketch.members),
        }
    }

    /// Whether the sketch at a place has this id. False for a spilled one that is not in memory.
    pub(super) fn is_at(&self, id: SketchId, place: u32) -> bool {
        match self {
            Self::Memory { ids, members, words } => {
                members.get(place).is_some() && ids.id(place, words.row(place as usize)) == id
            }
            Self::Spilled(rows, _) => rows.get(place).is_some_and(|sketch| sketch.id == id),
        }
    }

    /// Whether no sketch is in a file.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self, Self::Memory { .. })
    }

    /// The id of the sketch at a place that [`find`](Self::find) returned.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn id(&self, place: u32) -> SketchId {
        match self {
            Self::Memory { ids, words, .. } => ids.id(place, words.row(place as usize)),
            Self::Spilled(rows, _) => rows.get(place).expect("what was found is in memory").id,
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
    pub(super) fn members_mut(&mut self, place: u32) -> Option<(&mut SketchMembers, &[u64])> {
        match self {
            Self::Memory { members, words, .. } => {
                members.get_mut(place).map(|of_place| (of_place, words.row(place as usize)))
            }
            Self::Spilled(rows, _) => rows.get_mut(place).map(|sketch| (&mut sketch.members, &*sketch.words)),
        }
    }

    /// Adds a sketch without members; returns its place.
    pub(super) fn insert(&mut self, id: SketchId, body: &mut Box<[u64]>) -> u32 {
        let empty = SketchMembers::Empty(0);
        match self {
            Self::Memory { ids, members, words } => {
                let place = members.insert(id.low(), empty);
                words.set(place as usize, body.iter().copied());
                if let StoredIds::Stored(rows) = ids {
                    rows.set(place as usize, std::iter::once(id));
                }
                debug_assert_eq!(ids.id(place, body), id, "an id is that of the words");
                place
            }
            Self::Spilled(rows, _) => {
                rows.insert(id.low(), SpilledSketch { id, members: empty, words: std::mem::take(body) })
            }
        }
    }

    /// Removes the sketch at a place.
    pub(super) fn remove(&mut self, id: SketchId, place: u32) {
        match self {
            Self::Memory { ids, members, words } => {
                members.remove(id.low(), place);
                words.free(place as usize);
                if let StoredIds::Stored(rows) = ids {
                    rows.free(place as usize);
                }
            }
            Self::Spilled(rows, _) => drop(rows.remove(id.low(), place)),
        }
    }

    /// Calls `each` with all sketches: place, id, members and words.
    pub(super) fn for_each(&mut self, mut each: impl FnMut(u32, SketchId, &SketchMembers, &[u64])) {
        match self {
            Self::Memory { ids, members, words } => members.iter().for_each(|(place, of_place)| {
                let row = words.row(place as usize);
                each(place, ids.id(place, row), of_place, row);
            }),
            Self::Spilled(rows, meter) => {
                rows.for_each(|place, sketch| each(place, sketch.id, &sketch.members, &sketch.words));
                meter.add(rows.take_counts());
            }
        }
    }
}
