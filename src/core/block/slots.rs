//! The sketches that are in any block, each once.

use crate::hash::SketchId;
use crate::hash_index::HashIndex;
use crate::slab::Rows;

/// Sketches by number and by id. A number is below 2^31, and free for another sketch after it was
/// [freed](Self::free).
///
/// First words stand in a column of their own: a test reads 8 bytes, and most end there.
#[derive(Debug)]
pub(super) struct Slots {
    ids: Rows<SketchId>,
    words: Rows<u64>,
    free: Vec<u32>,
    by_id: HashIndex,
}

impl Default for Slots {
    fn default() -> Self {
        Self { ids: Rows::new(1), words: Rows::new(1), free: Vec::new(), by_id: HashIndex::default() }
    }
}

impl Slots {
    /// A number for a sketch that has none.
    ///
    /// # Panics
    /// For the 2^31st sketch: they would take a hundred times the memory that there is.
    pub(super) fn add(&mut self, id: SketchId, word: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            let next = u32::try_from(self.ids.len()).ok().filter(|next| *next < 1 << 31);
            self.ids.push(std::iter::once(id));
            self.words.push(std::iter::once(word));
            next.expect("fewer than 2^31 sketches on a worker")
        });
        self.ids.row_mut(slot as usize)[0] = id;
        self.words.row_mut(slot as usize)[0] = word;
        self.by_id.insert(id.low(), slot);
        slot
    }

    /// The number of a sketch that is not found by its id any more, but read until it is [freed](Self::free).
    ///
    /// # Panics
    /// If it has none: a broken promise upstream.
    pub(super) fn remove(&mut self, id: SketchId) -> u32 {
        let slot = self.find(id).expect("a sketch leaves blocks that it is in");
        self.by_id.remove(id.low(), slot);
        slot
    }

    /// The number of a sketch, if it has one.
    pub(super) fn find(&self, id: SketchId) -> Option<u32> {
        self.by_id.places(id.low()).find(|slot| self.id(*slot) == id)
    }

    pub(super) fn free(&mut self, slot: u32) {
        self.free.push(slot);
    }

    #[inline]
    pub(super) fn id(&self, slot: u32) -> SketchId {
        self.ids.row(slot as usize)[0]
    }

    /// The first fingerprint word.
    #[inline]
    pub(super) fn word(&self, slot: u32) -> u64 {
        self.words.row(slot as usize)[0]
    }

    /// Sketches with a number, and the most that there were at a time.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        (self.ids.len() - self.free.len(), self.ids.len())
    }
}
