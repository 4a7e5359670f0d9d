//! The distinct sketches of one worker, each held once, with the documents that are its members.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashTable;

use crate::block::{BlockKey, HotBlock};
use crate::doc::DocId;
use crate::hash::SketchId;
use crate::pair::Pair;
use crate::sketch::{Sketch, SketchRef};
use crate::time::Epoch;

/// Sketches by id. A sketch without members stays readable until its epoch is [released](Self::release), since
/// candidates that name it may still be on their way.
#[derive(Debug)]
pub(super) struct Sketches {
    entries: Vec<Entry>,
    /// `stride` words for each entry.
    words: Vec<u64>,
    stride: usize,
    /// For each entry, if the scheme keeps features; otherwise empty.
    features: Vec<Box<[u64]>>,
    free: Vec<usize>,
    by_id: HashTable<u32>,
    dying: BTreeMap<Epoch, Vec<SketchId>>,
}

#[derive(Debug)]
struct Entry {
    id: SketchId,
    members: Members,
}

/// The documents of one sketch.
#[derive(Debug)]
pub(super) enum Members {
    /// None since this epoch.
    Nobody(Epoch),
    One(DocId),
    #[expect(clippy::box_collection, reason = "makes every entry 8 bytes smaller, and groups are few")]
    Many(Box<BTreeSet<DocId>>),
}

impl Sketches {
    /// None yet; `stride` words to a sketch, features kept or not.
    pub(super) fn new(stride: usize) -> Self {
        Self {
            entries: Vec::new(),
            words: Vec::new(),
            stride,
            features: Vec::new(),
            free: Vec::new(),
            by_id: HashTable::new(),
            dying: BTreeMap::new(),
        }
    }

    fn find(&self, id: SketchId) -> Option<usize> {
        self.by_id.find(table_hash(id), |e| self.entries[*e as usize].id == id).map(|e| *e as usize)
    }

    /// A sketch that is held.
    ///
    /// # Panics
    /// If it is not: a candidate outlived its sketch, a broken promise.
    pub(super) fn get(&self, id: SketchId) -> SketchRef<'_> {
        let entry = self.find(id).expect("a candidate's sketches are held until its epoch is released");
        self.read(entry)
    }

    fn read(&self, entry: usize) -> SketchRef<'_> {
        SketchRef {
            words: &self.words[entry * self.stride..][..self.stride],
            features: self.features.get(entry).map_or(&[], |f| f),
        }
    }

    /// The members of a sketch, and the sketch; a new one is taken from `body`.
    ///
    /// # Panics
    /// If the sketch is neither held nor given.
    pub(super) fn members(
        &mut self,
        id: SketchId,
        body: Option<&mut Sketch>,
    ) -> (&mut Members, SketchRef<'_>) {
        let entry = match self.find(id) {
            Some(entry) => entry,
            None => self.add(id, body.expect("the first member of a sketch brings it")),
        };
        // Spelled out, since `read` would borrow the entries too.
        let sketch = SketchRef {
            words: &self.words[entry * self.stride..][..self.stride],
            features: self.features.get(entry).map_or(&[], |f| f),
        };
        (&mut self.entries[entry].members, sketch)
    }

    #[expect(clippy::cast_possible_truncation, reason = "2^32 sketches would take a terabyte")]
    fn add(&mut self, id: SketchId, body: &mut Sketch) -> usize {
        let entry = Entry { id, members: Members::Nobody(0) };
        let features = std::mem::take(&mut body.features);
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place] = entry;
                self.words[place * self.stride..][..self.stride].copy_from_slice(&body.words);
                place
            }
            None => {
                self.entries.push(entry);
                self.words.extend_from_slice(&body.words);
                self.entries.len() - 1
            }
        };
        if !features.is_empty() {
            self.features.resize_with(self.features.len().max(place + 1), Box::default);
            self.features[place] = features;
        }
        self.by_id.insert_unique(table_hash(id), place as u32, |e| table_hash(self.entries[*e as usize].id));
        place
    }

    /// Names a document of each hot block whose example is held here.
    pub(super) fn name_examples(&self, blocks: &mut BTreeMap<BlockKey, HotBlock>) {
        for block in blocks.values_mut() {
            if let Some(entry) = self.find(block.example) {
                block.document = self.entries[entry].members.first().cloned();
            }
        }
    }

    /// A sketch lost its last member in this epoch.
    pub(super) fn dies(&mut self, id: SketchId, epoch: Epoch) {
        self.dying.entry(epoch).or_default().push(id);
    }

    /// No candidate of an epoch before `open` can arrive any more: frees what died before and did not come back.
    pub(super) fn release(&mut self, open: Epoch) {
        while let Some(first) = self.dying.first_entry().filter(|e| *e.key() < open) {
            let (epoch, ids) = first.remove_entry();
            for id in ids {
                let found = self.by_id.find_entry(table_hash(id), |e| self.entries[*e as usize].id == id);
                let Ok(found) = found else { continue };
                let place = *found.get() as usize;
                if matches!(self.entries[place].members, Members::Nobody(since) if since == epoch) {
                    found.remove();
                    self.free.push(place);
                    if let Some(features) = self.features.get_mut(place) {
                        *features = Box::default();
                    }
                }
            }
        }
    }
}

/// The exchange reads the low bits of an id, so the table reads others first.
fn table_hash(id: SketchId) -> u64 {
    id.low().rotate_right(20)
}

impl Members {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Nobody(_) => 0,
            Self::One(_) => 1,
            Self::Many(documents) => documents.len(),
        }
    }

    pub(super) fn first(&self) -> Option<&DocId> {
        match self {
            Self::Nobody(_) => None,
            Self::One(document) => Some(document),
            Self::Many(documents) => documents.first(),
        }
    }

    fn iter(&self) -> Box<dyn Iterator<Item = &DocId> + '_> {
        match self {
            Self::Nobody(_) => Box::new(std::iter::empty()),
            Self::One(document) => Box::new(std::iter::once(document)),
            Self::Many(documents) => Box::new(documents.iter()),
        }
    }

    pub(super) fn insert(&mut self, document: DocId) {
        *self = match std::mem::replace(self, Self::Nobody(0)) {
            Self::Nobody(_) => Self::One(document),
            Self::One(other) => Self::Many(Box::new(BTreeSet::from([other, document]))),
            Self::Many(mut documents) => {
                documents.insert(document);
                Self::Many(documents)
            }
        };
    }

    /// Removes a member, in this epoch.
    ///
    /// # Panics
    /// If it is none: a broken promise upstream.
    pub(super) fn remove(&mut self, document: &DocId, epoch: Epoch) {
        match self {
            Self::One(only) if only == document => *self = Self::Nobody(epoch),
            Self::Many(documents) if documents.contains(document) => {
                documents.remove(document);
                if documents.len() == 1
                    && let Some(last) = documents.pop_first()
                {
                    *self = Self::One(last);
                }
            }
            _ => panic!("{document:?} leaves a sketch that it is not a member of"),
        }
    }

    /// The members that stand for the sketch in pairs with other sketches: all of them or, of more than `limit`, the
    /// smallest.
    pub(super) fn visible(&self, limit: usize) -> impl Iterator<Item = &DocId> {
        self.iter().take(if self.len() <= limit { usize::MAX } else { 1 })
    }

    /// The pairs of copies: all of them or, of more than `limit` members, those with the smallest.
    pub(super) fn copies(&self, limit: usize, mut emit: impl FnMut(Pair<DocId>)) {
        for (i, a) in self.visible(limit).enumerate() {
            for b in self.iter().skip(i + 1) {
                emit(pair_of(a, b));
            }
        }
    }

    /// The pairs that one more member makes, or one fewer ends, in a group that is all visible.
    pub(super) fn copies_with(&self, document: &DocId, mut emit: impl FnMut(Pair<DocId>)) {
        for other in self.iter() {
            emit(pair_of(other, document));
        }
    }
}

/// Two documents as a pair.
///
/// # Panics
/// If they are the same: a document is a member of a sketch once.
pub(super) fn pair_of(a: &DocId, b: &DocId) -> Pair<DocId> {
    Pair::new(a.clone(), b.clone()).expect("two different documents")
}
