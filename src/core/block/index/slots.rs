//! The sketches that are in at least one block, each stored once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::hash::SketchId;
use crate::memory::Rows;

/// Sketches by slot number. A slot number is below 2^31 and is used again after [`free`](Self::free), the
/// least first. No index by id is needed: the blocks of a sketch have its slot.
///
/// First fingerprint words are stored in a separate column: most comparisons end after these 8 bytes.
#[derive(Debug)]
pub(super) struct SketchSlots {
    ids: Rows<SketchId>,
    words: Rows<u64>,
    free: BinaryHeap<Reverse<u32>>,
}

impl Default for SketchSlots {
    fn default() -> Self {
        Self { ids: Rows::new(1), words: Rows::new(1), free: BinaryHeap::new() }
    }
}

impl SketchSlots {
    /// Assigns a slot to a sketch that has none.
    ///
    /// # Panics
    /// For the 2^31st sketch of a worker; so many do not fit into memory with their blocks.
    pub(super) fn add(&mut self, id: SketchId, word: u64) -> u32 {
        let next = || u32::try_from(self.ids.len()).ok().filter(|next| next >> 31 == 0);
        let free = self.free.pop().map(|Reverse(slot)| slot);
        let slot = free.or_else(next).expect("fewer than 2^31 sketches on a worker");
        self.ids.set(slot as usize, std::iter::once(id));
        self.words.set(slot as usize, std::iter::once(word));
        slot
    }

    /// Frees the slot of a sketch that has left its blocks.
    pub(super) fn free(&mut self, slot: u32) {
        self.free.push(Reverse(slot));
        self.ids.free(slot as usize);
        self.words.free(slot as usize);
    }

    #[inline]
    pub(super) fn id(&self, slot: u32) -> SketchId {
        self.ids.row(slot as usize)[0]
    }

    /// The first fingerprint word of the sketch in a slot.
    #[inline]
    pub(super) fn word(&self, slot: u32) -> u64 {
        self.words.row(slot as usize)[0]
    }

    /// Number of sketches, and its maximum so far.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        (self.ids.len() - self.free.len(), self.ids.len())
    }
}
