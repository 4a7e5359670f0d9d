//! Ids and words of sketches in memory, by place. Where a process has several workers, all of them can read
//! those of each other.

use dupflow_core::hash::SketchId;
use dupflow_core::memory::{Rows, SharedRows, SharedRowsReader};
use dupflow_core::sketch::Scheme;

/// The sketches of a worker.
#[derive(Debug)]
pub(in crate::dataflow) struct SketchWords {
    words: WordRows,
    ids: SketchIds<WordRows>,
}

/// Reads the sketches of a worker on another thread.
#[derive(Clone, Debug)]
pub(in crate::dataflow) struct SketchWordsReader {
    words: SharedRowsReader,
    ids: SketchIds<SharedRowsReader>,
}

/// The ids of sketches.
#[derive(Clone, Copy, Debug)]
pub(in crate::dataflow) enum SketchIds<R> {
    /// Each is computed from the words when it is needed, a few times an event, under this fingerprint of the
    /// scheme.
    Computed(u64),
    /// By place, as two words.
    Stored(R),
}

#[derive(Debug)]
enum WordRows {
    Own(Rows<u64>),
    Shared(SharedRows),
}

impl SketchIds<()> {
    /// For the sketches of a run.
    pub(in crate::dataflow) fn for_scheme(scheme: &Scheme) -> Self {
        if scheme.names_words() { Self::Computed(scheme.fingerprint()) } else { Self::Stored(()) }
    }
}

impl SketchWords {
    /// No sketches, which will have `width` words.
    pub(in crate::dataflow) fn new(ids: SketchIds<()>, width: usize, is_shared: bool) -> Self {
        let ids = match ids {
            SketchIds::Computed(fingerprint) => SketchIds::Computed(fingerprint),
            SketchIds::Stored(()) => SketchIds::Stored(WordRows::new(2, is_shared)),
        };
        Self { words: WordRows::new(width, is_shared), ids }
    }

    /// A reader for other threads, if the sketches are shared.
    pub(in crate::dataflow) fn reader(&self) -> Option<SketchWordsReader> {
        let ids = match &self.ids {
            SketchIds::Computed(fingerprint) => SketchIds::Computed(*fingerprint),
            SketchIds::Stored(ids) => SketchIds::Stored(ids.reader()?),
        };
        Some(SketchWordsReader { words: self.words.reader()?, ids })
    }

    /// The id of the sketch at a place.
    #[inline]
    pub(in crate::dataflow) fn id(&self, place: u32) -> SketchId {
        match &self.ids {
            SketchIds::Computed(fingerprint) => {
                self.words.with(place, |words| SketchId::new(*fingerprint, words))
            }
            SketchIds::Stored(ids) => ids.with(place, stored_id),
        }
    }

    /// The first word of the sketch at a place.
    #[inline]
    pub(in crate::dataflow) fn first(&self, place: u32) -> u64 {
        match &self.words {
            WordRows::Own(rows) => rows.row(place as usize)[0],
            WordRows::Shared(rows) => rows.first(place),
        }
    }

    /// The words of the sketch at a place, where they are or copied.
    #[inline]
    pub(in crate::dataflow) fn read<'a>(&'a self, place: u32, copy: &'a mut Vec<u64>) -> &'a [u64] {
        match &self.words {
            WordRows::Own(rows) => rows.row(place as usize),
            WordRows::Shared(rows) => rows.read(place, copy),
        }
    }

    /// Passes the words of the sketch at a place to `read`.
    #[inline]
    pub(in crate::dataflow) fn with<R>(&self, place: u32, read: impl FnOnce(&[u64]) -> R) -> R {
        self.words.with(place, read)
    }

    /// Sets the sketch at a place that is free, or after the last one.
    ///
    /// # Panics
    /// In debug builds, if ids are computed and this one is not that of the words.
    pub(in crate::dataflow) fn set(&mut self, place: u32, id: SketchId, words: &[u64]) {
        self.words.set(place, words.iter().copied());
        if let SketchIds::Stored(ids) = &mut self.ids {
            ids.set(place, id.to_words().into_iter());
        }
        debug_assert_eq!(self.id(place), id, "an id is that of the words");
    }

    /// Frees a place.
    pub(in crate::dataflow) fn free(&mut self, place: u32) {
        self.words.free(place);
        if let SketchIds::Stored(ids) = &mut self.ids {
            ids.free(place);
        }
    }
}

impl SketchWordsReader {
    /// The id of the sketch at a place.
    pub(in crate::dataflow) fn id(&self, place: u32) -> SketchId {
        match &self.ids {
            SketchIds::Computed(fingerprint) => {
                self.words.with(place, |words| SketchId::new(*fingerprint, words))
            }
            SketchIds::Stored(ids) => ids.with(place, stored_id),
        }
    }

    /// The first word of the sketch at a place.
    #[inline]
    pub(in crate::dataflow) fn first(&self, place: u32) -> u64 {
        self.words.first(place)
    }

    /// Passes the words of the sketch at a place to `read`.
    #[inline]
    pub(in crate::dataflow) fn with<R>(&self, place: u32, read: impl FnOnce(&[u64]) -> R) -> R {
        self.words.with(place, read)
    }
}

impl WordRows {
    fn new(width: usize, is_shared: bool) -> Self {
        if is_shared { Self::Shared(SharedRows::new(width)) } else { Self::Own(Rows::new(width)) }
    }

    fn reader(&self) -> Option<SharedRowsReader> {
        if let Self::Shared(rows) = self { Some(rows.reader()) } else { None }
    }

    #[inline]
    fn with<R>(&self, place: u32, read: impl FnOnce(&[u64]) -> R) -> R {
        match self {
            Self::Own(rows) => read(rows.row(place as usize)),
            Self::Shared(rows) => rows.with(place, read),
        }
    }

    fn set(&mut self, place: u32, row: impl ExactSizeIterator<Item = u64>) {
        match self {
            Self::Own(rows) => rows.set(place as usize, row),
            Self::Shared(rows) => rows.set(place, row),
        }
    }

    fn free(&mut self, place: u32) {
        match self {
            Self::Own(rows) => rows.free(place as usize),
            Self::Shared(rows) => rows.free(place),
        }
    }
}

/// The id that a row begins with.
pub(in crate::dataflow) fn stored_id(words: &[u64]) -> SketchId {
    SketchId::from_words([words[0], words[1]])
}
