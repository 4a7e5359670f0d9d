//! The sketches that are in at least one block, each stored once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;

use super::postings::{Posted, SketchHead};
use crate::hash::SketchId;
use crate::memory::Rows;
use crate::pair_rule::Realm;

/// Sketches that are stored by the owner of an index, or by what it shares them with, by place. A sketch
/// stays at its place from the epoch in which it enters its blocks until the index has applied the epoch in
/// which it leaves them.
pub trait LocalSketches: Debug {
    /// The sketch at a place enters its blocks. Of a sketch that left the place before, nothing is asked any
    /// more.
    fn enters(&self, place: u32, id: SketchId);

    /// The id of the sketch at a place.
    fn id(&self, place: u32) -> SketchId;

    /// Its first fingerprint word.
    fn word(&self, place: u32) -> u64;

    /// Whether the sketches at two places may be a pair, by all of their words: false only if a comparison
    /// would reject them. True where this is not known.
    fn may_pair(&self, _a: u32, _b: u32) -> bool {
        true
    }
}

/// No sketches: an index stores all that are in its blocks.
#[derive(Clone, Copy, Debug)]
pub enum NoSketches {}

impl LocalSketches for NoSketches {
    fn enters(&self, _: u32, _: SketchId) {
        match *self {}
    }

    fn id(&self, _: u32) -> SketchId {
        match *self {}
    }

    fn word(&self, _: u32) -> u64 {
        match *self {}
    }
}

/// Where the sketches of an index are stored.
#[derive(Debug)]
pub enum SketchSource<L> {
    /// In the index.
    Index,
    /// All by its owner.
    Owner(L),
    /// Some by its owner, those whose place is posted, and others in the index.
    Both(L),
}

/// Sketches by slot number. A slot number is below 2^31; without places it is used again after
/// [`free`](Self::free), the least first. No index by id is needed: the blocks of a sketch have its slot.
///
/// First fingerprint words are stored in a separate column: most comparisons end after these 8 bytes.
#[derive(Debug)]
pub(super) struct SketchSlots<L> {
    source: SketchSource<L>,
    ids: Rows<SketchId>,
    words: Rows<u64>,
    free: BinaryHeap<Reverse<u32>>,
    /// By slot, whoever stores the sketch; `None` if sketches have no realms. Under a budget the owner has
    /// their words in a file.
    realms: Option<Rows<Realm>>,
}

/// Where a sketch is stored.
enum Stored<'a, L> {
    Index(usize),
    Owner(&'a L, u32),
}

impl<L: LocalSketches> SketchSlots<L> {
    pub(super) fn new(source: SketchSource<L>, have_realms: bool) -> Self {
        let realms = have_realms.then(|| Rows::new(1));
        Self { source, ids: Rows::new(1), words: Rows::new(1), free: BinaryHeap::new(), realms }
    }

    /// Assigns a slot to a sketch that has none.
    ///
    /// # Panics
    /// If it has no realm where others have one. For the 2^31st sketch of the index or of its owner, and the
    /// 2^30th of either if both store some; so many do not fit into memory with their blocks.
    pub(super) fn add(&mut self, head: SketchHead, place: Option<u32>) -> u32 {
        let slot = self.add_at(head, place);
        if let Some(realms) = &mut self.realms {
            let at = slot as usize;
            while realms.len() <= at {
                realms.push(std::iter::once(0));
            }
            realms.row_mut(at)[0] = head.realm.expect(HAS_REALM);
        }
        slot
    }

    fn add_at(&mut self, SketchHead { id, word, .. }: SketchHead, place: Option<u32>) -> u32 {
        if let Some((place, slot)) = place.and_then(|place| Some((place, self.of_place(place)?))) {
            if let SketchSource::Owner(sketches) | SketchSource::Both(sketches) = &self.source {
                sketches.enters(place, id);
            }
            return slot;
        }
        let next = || u32::try_from(self.ids.len()).ok();
        let free = self.free.pop().map(|Reverse(slot)| slot);
        let row = free.or_else(next).expect(FEWER);
        self.ids.set(row as usize, std::iter::once(id));
        self.words.set(row as usize, std::iter::once(word));
        match self.source {
            SketchSource::Both(_) => numbered(row, 1),
            _ => numbered(row, 0),
        }
    }

    /// Whether the slots that sketches will be assigned are below a number.
    pub(super) fn are_below(&self, limit: u64, sketches: &[Posted]) -> bool {
        let row = (self.ids.len() + sketches.len()) as u64;
        let place = sketches.iter().filter_map(|posted| posted.place).max().unwrap_or(0);
        let flags = u32::from(matches!(self.source, SketchSource::Both(_)));
        row.max(u64::from(place) + 1) << flags <= limit
    }

    /// The slot of a sketch whose place is known; `None` if the index stores it.
    pub(super) fn of_place(&self, place: u32) -> Option<u32> {
        match self.source {
            SketchSource::Index => None,
            SketchSource::Owner(_) => Some(numbered(place, 0)),
            SketchSource::Both(_) => Some(numbered(place, 1) & !1),
        }
    }

    /// Frees the slot of a sketch that has left its blocks.
    pub(super) fn free(&mut self, slot: u32) {
        if let Stored::Index(row) = self.stored(slot) {
            self.ids.free(row);
            self.words.free(row);
            self.free.extend(u32::try_from(row).ok().map(Reverse));
        }
    }

    #[inline]
    pub(super) fn id(&self, slot: u32) -> SketchId {
        match self.stored(slot) {
            Stored::Index(row) => self.ids.row(row)[0],
            Stored::Owner(sketches, place) => sketches.id(place),
        }
    }

    /// The first fingerprint word of the sketch in a slot.
    #[inline]
    pub(super) fn word(&self, slot: u32) -> u64 {
        match self.stored(slot) {
            Stored::Index(row) => self.words.row(row)[0],
            Stored::Owner(sketches, place) => sketches.word(place),
        }
    }

    /// Whether the sketches in two slots may be a pair, as far as their owner knows.
    pub(super) fn may_pair(&self, x: u32, y: u32) -> bool {
        match [self.stored(x), self.stored(y)] {
            [Stored::Owner(sketches, a), Stored::Owner(_, b)] => sketches.may_pair(a, b),
            _ => true,
        }
    }

    /// Whether sketches have realms.
    #[inline]
    pub(super) fn have_realms(&self) -> bool {
        self.realms.is_some()
    }

    /// The realm of the sketch in a slot; 0 if sketches have none.
    #[inline]
    pub(super) fn realm(&self, slot: u32) -> Realm {
        self.realms.as_ref().map_or(0, |realms| realms.row(slot as usize)[0])
    }

    #[inline]
    fn stored(&self, slot: u32) -> Stored<'_, L> {
        match &self.source {
            SketchSource::Index => Stored::Index(slot as usize),
            SketchSource::Owner(sketches) => Stored::Owner(sketches, slot),
            SketchSource::Both(sketches) if slot & 1 == 0 => Stored::Owner(sketches, slot >> 1),
            SketchSource::Both(_) => Stored::Index((slot >> 1) as usize),
        }
    }

    /// Number of sketches, and its maximum so far.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        (self.ids.len() - self.free.len(), self.ids.len())
    }
}

const FEWER: &str = "fewer than 2^31 sketches";
const HAS_REALM: &str = "a sketch in blocks has a realm, where there are any";

/// The slot of a row or place: its number, and with `flags` 1 a low bit that is set.
fn numbered(row: u32, flags: u32) -> u32 {
    let slot = u64::from(row) << flags | u64::from(flags);
    u32::try_from(slot).ok().filter(|slot| slot >> 31 == 0).expect(FEWER)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No sketch is asked for.
    #[derive(Debug)]
    struct Unread;

    impl LocalSketches for Unread {
        fn enters(&self, _: u32, _: SketchId) {}

        fn id(&self, _: u32) -> SketchId {
            unreachable!("places are enough")
        }

        fn word(&self, _: u32) -> u64 {
            unreachable!("places are enough")
        }
    }

    /// The bound of slots holds for those that are assigned, with and without places.
    #[test]
    fn slots_are_below_their_bound() {
        for source in [|| SketchSource::Index, || SketchSource::Owner(Unread), || SketchSource::Both(Unread)]
        {
            for places in [vec![Some(6), Some(2)], vec![None, None, None], vec![Some(4), None]] {
                let mut slots = SketchSlots::new(source(), false);
                let id = SketchId::default();
                let head = SketchHead { id, word: 0, realm: None };
                slots.add(head, None);
                let posted = |place: &Option<u32>| Posted {
                    id,
                    word: 0,
                    diff: 1,
                    end: 1,
                    enters: true,
                    place: *place,
                };
                let sketches: Vec<Posted> = places.iter().map(posted).collect();
                let fits: Vec<u64> = (0..20).filter(|limit| slots.are_below(*limit, &sketches)).collect();
                let most = places.iter().map(|place| slots.add(head, *place)).max();
                assert!(u64::from(most.unwrap()) < fits[0], "{places:?} {fits:?}");
            }
        }
    }
}
