//! Postings: changes of sketches with their block keys, as they are sent to the index.

use serde::{Deserialize, Serialize};

use crate::block::BlockKey;
use crate::hash::SketchId;
use crate::pair_rule::Realm;

/// What an index has of a sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SketchHead {
    /// Its id.
    pub id: SketchId,
    /// Its first fingerprint word.
    pub word: u64,
    /// Its [realm](crate::block::Blocking::realm).
    pub realm: Option<Realm>,
}

/// Sketches that are added to blocks or removed from them, with the keys of those blocks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Postings {
    pub(super) sketches: Vec<Posted>,
    pub(super) keys: Vec<BlockKey>,
    /// The realms of the sketches, if they have any; else empty.
    realms: Vec<Realm>,
}

/// A sketch in [`Postings`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Posted {
    pub(super) id: SketchId,
    /// Its first fingerprint word.
    pub(super) word: u64,
    /// 1 or -1.
    pub(super) diff: i8,
    /// End of its keys, exclusive; they begin at the end of the previous sketch.
    pub(super) end: u32,
    /// Whether it enters or leaves its blocks; else it is looked up in them.
    pub(super) enters: bool,
    /// Its place with the owner of the index that receives it, if that stores it.
    pub(super) place: Option<u32>,
}

impl Postings {
    /// Adds a key of the sketch that the next call of [`sketch`](Self::sketch) adds.
    pub fn key(&mut self, key: BlockKey) {
        self.keys.push(key);
    }

    /// Adds a sketch without a realm that enters (`diff` 1) or leaves (-1) the blocks whose keys were added
    /// since the last sketch. A sketch without keys is ignored.
    ///
    /// # Panics
    /// If there are 2^32 keys or more.
    pub fn sketch(&mut self, id: SketchId, word: u64, diff: i8) {
        self.sketch_at(None, SketchHead { id, word, realm: None }, diff, true);
    }

    /// [`sketch`](Self::sketch) for one that the owner of the receiving index stores at a place. One that
    /// does not [enter](crate::block::Blocking::enters) its blocks is looked up when it begins or ends.
    ///
    /// # Panics
    /// If there are 2^32 keys or more.
    pub fn sketch_at(&mut self, place: Option<u32>, head: SketchHead, diff: i8, enters: bool) {
        let SketchHead { id, word, realm } = head;
        let end = u32::try_from(self.keys.len()).expect("postings are sent before they are so many");
        if self.sketches.last().map_or(0, |last| last.end) < end {
            self.sketches.push(Posted { id, word, diff, end, enters, place });
            self.realms.extend(realm);
        }
    }

    /// The sketches, with their realms and their keys.
    pub(super) fn each(&self) -> impl Iterator<Item = (&Posted, SketchHead, &[BlockKey])> {
        let mut start = 0;
        self.sketches.iter().enumerate().map(move |(n, posted)| {
            let Posted { id, word, end, .. } = *posted;
            let keys = &self.keys[std::mem::replace(&mut start, end as usize)..end as usize];
            (posted, SketchHead { id, word, realm: self.realms.get(n).copied() }, keys)
        })
    }

    /// Whether each sketch is added or, if it is looked up, begins.
    pub fn only_begin(&self) -> bool {
        self.sketches.iter().all(|posted| posted.diff > 0)
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = BlockKey> {
        self.keys.iter().copied()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
