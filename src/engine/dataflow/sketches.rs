//! The distinct sketches of one worker, each held once, with the documents that are its members.
//!
//! Four operators of the worker share them, partitioned by sketch id. `collapse` is the only one that writes:
//! when an epoch closes, all its changes at once. `verify` reads sketches, in "Visit" that of x and in
//! "Compare" that of y, and `pairs` reads members; both work on an epoch later than `collapse`, which may by
//! then have gone on to epochs after it. So does a visitor of an epoch, which comes to "Compare" at the time
//! of the next one, for both. Three rules make that right.
//!
//! 1. *A sketch is what its id says.* It never changes while it is held, so it does not matter when it is
//!    read.
//! 2. *A sketch is held as long as anybody may read it.* Candidates of an epoch name sketches that have a
//!    member before the epoch or after it. So a sketch that lost its last member in epoch e is in no
//!    candidate of a later epoch, unless it comes back, and then its new member brings it along. "Compare"
//!    stands behind "Visit": once no record of an epoch before `open` can reach it, nobody reads for these
//!    epochs any more, on this worker, and [`release`](Sketches::release) frees what has been without members
//!    since one of them.
//! 3. *Members are read as of an epoch.* The changes of each epoch are kept until `pairs` is done with it
//!    ([`forget`](Sketches::forget)); [`visible_at`](Sketches::visible_at) takes those of later epochs back.
//!    At most the epochs in flight are kept.

use std::collections::{BTreeMap, BTreeSet};

use super::members::Members;
use dupflow_core::block::HotBlocks;
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::memory::{Rows, Slab};
use dupflow_core::sketch::{Sketch, SketchRef};
use dupflow_core::time::Epoch;

/// Sketches by id, with their members.
#[derive(Debug)]
pub(super) struct Sketches {
    entries: Slab<Entry>,
    /// The words of each entry, by its place.
    words: Rows<u64>,
    /// The features of each entry, by its place, if the scheme keeps them.
    features: Option<Rows<Box<[u64]>>>,
    /// See [`Members::visible`].
    expand_limit: usize,
    /// What lost its last member in which epoch.
    dying: BTreeMap<Epoch, Vec<SketchId>>,
    /// What changed of the members in each epoch that `pairs` has not done.
    changes: BTreeMap<Epoch, Changed>,
}

/// What an epoch changed of the members.
#[derive(Debug)]
struct Changed {
    /// Of the visible ones; ascending by sketch.
    visible: Vec<MemberChange>,
    /// Of each sketch that had too many members for all to be visible, before or after the epoch; ascending.
    stars: Vec<StarChange>,
}

/// What an epoch changed of a sketch with too many members for all to be visible.
#[derive(Clone, Debug)]
pub(super) struct StarChange {
    pub(super) sketch: SketchId,
    /// Members before the epoch.
    pub(super) before: usize,
    pub(super) left: Vec<DocId>,
    pub(super) joined: Vec<DocId>,
}

#[derive(Debug)]
struct Entry {
    id: SketchId,
    members: Members,
}

/// A document comes to stand for a sketch (`diff` 1), or no longer does (-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberChange {
    pub(super) sketch: SketchId,
    pub(super) document: DocId,
    pub(super) diff: i8,
}

impl Sketches {
    /// None yet; `words` to a sketch, features kept or not.
    pub(super) fn new(words: usize, keeps_features: bool, expand_limit: usize) -> Self {
        Self {
            entries: Slab::default(),
            words: Rows::new(words),
            features: keeps_features.then(|| Rows::new(1)),
            expand_limit,
            dying: BTreeMap::new(),
            changes: BTreeMap::new(),
        }
    }

    #[inline]
    fn find(&self, id: SketchId) -> Option<u32> {
        self.entries.find(id.low(), |entry| entry.id == id)
    }

    fn members_of(&self, id: SketchId) -> Option<&Members> {
        self.entries.get(self.find(id)?).map(|entry| &entry.members)
    }

    /// A sketch that is held.
    ///
    /// # Panics
    /// If it is not: a candidate outlived its sketch, a broken promise.
    pub(super) fn get(&self, id: SketchId) -> SketchRef<'_> {
        let place = self.find(id).expect("a candidate's sketches are held until its epoch is released");
        read(&self.words, self.features.as_ref(), place)
    }

    /// The members of a sketch, to be changed, and the sketch; a new one is taken from `body`.
    ///
    /// # Panics
    /// If the sketch is neither held nor given.
    pub(super) fn members(
        &mut self,
        id: SketchId,
        body: Option<&mut Sketch>,
    ) -> (&mut Members, SketchRef<'_>) {
        let place = match self.find(id) {
            Some(place) => place,
            None => self.add(id, body.expect("the first member of a sketch brings it")),
        };
        let entry = self.entries.get_mut(place).expect("what was found or added is there");
        (&mut entry.members, read(&self.words, self.features.as_ref(), place))
    }

    fn add(&mut self, id: SketchId, body: &mut Sketch) -> u32 {
        let place = self.entries.insert(id.low(), Entry { id, members: Members::Nobody(0) });
        let row = place as usize;
        if row < self.words.len() {
            self.words.row_mut(row).copy_from_slice(&body.words);
        } else {
            self.words.push(body.words.iter().copied());
        }
        if let Some(all) = &mut self.features {
            let features = std::mem::take(&mut body.features);
            if row < all.len() {
                all.row_mut(row)[0] = features;
            } else {
                all.push(std::iter::once(features));
            }
        }
        place
    }

    /// Keeps what changed of the visible members in an epoch until it is [forgotten](Self::forget), and all
    /// changes of each sketch that more than `expand_limit` documents stood for before the epoch or stand for
    /// after it. Both ascending by sketch.
    pub(super) fn keep_changes(&mut self, epoch: Epoch, visible: Vec<MemberChange>, stars: Vec<StarChange>) {
        debug_assert!(visible.is_sorted_by_key(|change| change.sketch));
        debug_assert!(stars.is_sorted_by_key(|change| change.sketch));
        self.changes.insert(epoch, Changed { visible, stars });
    }

    /// What changed of the visible members in an epoch.
    pub(super) fn changes(&self, epoch: Epoch) -> &[MemberChange] {
        self.changes.get(&epoch).map_or(&[], |changed| &changed.visible)
    }

    /// Nobody asks for the changes of this epoch any more, or for members as of an earlier one.
    pub(super) fn forget(&mut self, epoch: Epoch) {
        self.changes.remove(&epoch);
    }

    /// The documents that stand for a sketch after an epoch, in any order. The changes of all later epochs
    /// have to be kept.
    ///
    /// # Panics
    /// If the changes kept are not those that were made.
    pub(super) fn visible_at<'a>(&'a self, id: SketchId, epoch: Epoch, documents: &mut Vec<&'a DocId>) {
        documents.clear();
        if let Some(members) = self.members_of(id) {
            documents.extend(members.visible(self.expand_limit));
        }
        for (_, changed) in self.changes.range(epoch + 1..).rev() {
            for change in changed.of(id).iter().rev() {
                if change.diff > 0 {
                    let at = documents.iter().position(|document| **document == change.document);
                    documents.swap_remove(at.expect("who came is there"));
                } else {
                    documents.push(&change.document);
                }
            }
        }
    }

    /// Whether more documents stood for a sketch after an epoch than are all visible. The changes of all
    /// later epochs have to be kept.
    pub(super) fn is_star_at(&self, id: SketchId, epoch: Epoch) -> bool {
        for (_, changed) in self.changes.range(epoch + 1..) {
            if let Some(star) = changed.star(id) {
                return star.before > self.expand_limit;
            }
            if !changed.of(id).is_empty() {
                return false;
            }
        }
        self.members_of(id).is_some_and(|members| members.len() > self.expand_limit)
    }

    /// All documents that stood for a sketch after an epoch, visible or not. The changes of all later epochs
    /// have to be kept.
    pub(super) fn members_at(&self, id: SketchId, epoch: Epoch) -> BTreeSet<&DocId> {
        let mut all: BTreeSet<&DocId> = self.members_of(id).into_iter().flat_map(Members::iter).collect();
        for (_, changed) in self.changes.range(epoch + 1..).rev() {
            if let Some(StarChange { left, joined, .. }) = changed.star(id) {
                all.retain(|document| !joined.contains(document));
                all.extend(left);
            } else {
                for change in changed.of(id).iter().rev() {
                    let _ = if change.diff > 0 {
                        all.remove(&change.document)
                    } else {
                        all.insert(&change.document)
                    };
                }
            }
        }
        all
    }

    /// Names documents of each hot block whose sketches are held here; of all blocks, or of those without a
    /// name.
    pub(super) fn name_examples(&self, blocks: &mut HotBlocks, all: bool) {
        blocks.name(all, |sketch| self.members_of(sketch).map(|members| members.first().cloned()));
    }

    /// A sketch lost its last member in this epoch.
    pub(super) fn dies(&mut self, id: SketchId, epoch: Epoch) {
        self.dying.entry(epoch).or_default().push(id);
    }

    /// No candidate of an epoch before `open` can arrive any more: frees what died before and did not come
    /// back.
    pub(super) fn release(&mut self, open: Epoch) {
        while let Some(first) = self.dying.first_entry().filter(|e| *e.key() < open) {
            let (epoch, ids) = first.remove_entry();
            for id in ids {
                let Some(place) = self.find(id) else { continue };
                let members = self.entries.get(place).map(|entry| &entry.members);
                if matches!(members, Some(Members::Nobody(since)) if *since == epoch) {
                    self.entries.remove(id.low(), place);
                    if let Some(features) = &mut self.features {
                        features.row_mut(place as usize)[0] = Box::default();
                    }
                }
            }
        }
    }
}

impl Changed {
    /// What changed of the visible members of a sketch.
    fn of(&self, id: SketchId) -> &[MemberChange] {
        let start = self.visible.partition_point(|change| change.sketch < id);
        let count = self.visible[start..].iter().take_while(|change| change.sketch == id).count();
        &self.visible[start..start + count]
    }

    /// What changed of a sketch, if it had too many members.
    fn star(&self, id: SketchId) -> Option<&StarChange> {
        let at = self.stars.binary_search_by_key(&id, |star| star.sketch).ok()?;
        Some(&self.stars[at])
    }
}

fn read<'a>(words: &'a Rows<u64>, features: Option<&'a Rows<Box<[u64]>>>, place: u32) -> SketchRef<'a> {
    SketchRef {
        words: words.row(place as usize),
        features: features.map_or(&[], |features| &features.row(place as usize)[0]),
    }
}

#[cfg(test)]
#[path = "sketches_tests.rs"]
mod tests;
