//! The distinct sketches of one worker, each stored once, with the documents that are its members.
//!
//! Five operators of the worker share them, partitioned by sketch id. Only `collapse` writes: all changes of
//! an epoch when it closes. `blocks`, of all workers of the [process](super::by_place), read ids and first
//! words by place; `verify` reads sketches, that of x in "Visit" and that of y in "Compare"; `pairs` reads
//! members. The readers may be some epochs behind `collapse`. So may a query: its comparisons for an epoch
//! arrive in "Compare" at the time of the next epoch, and read both sketches and members. Three rules make
//! these reads correct.
//!
//! 1. *A sketch is named by its content.* It never changes while it is stored, so it does not matter when it
//!    is read.
//! 2. *A sketch is stored, at one place, as long as an operator may read it.* Blocks and candidates of an
//!    epoch name sketches that have a member before the epoch or after it. So a sketch that lost its last
//!    member in epoch e is in no candidate of a later epoch, unless a new member joins and brings the sketch
//!    along. "Compare" is downstream of "Visit", and of "Blocks" of all workers: once no record of an epoch
//!    before `open` can reach it, no operator of this worker and no blocks of another read for these epochs
//!    any more, and [`release`](Sketches::release) frees the sketches that lost their last member in one of
//!    them.
//! 3. *Members are read as of an epoch.* The changes of each epoch are kept until `pairs` has processed
//!    it ([`forget`](Sketches::forget)); [`visible_at`](Sketches::visible_at) undoes those of later epochs.
//!    At most the changes of the epochs in flight are kept.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::dataflow::sketches::members::SketchMembers;
use crate::dataflow::sketches::stored::StoredSketches;
use crate::dataflow::stages::Stages;
use dupflow_core::block::HotBlocks;
use dupflow_core::detect::LiveSketch;
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::memory::Rows;
use dupflow_core::sketch::{Sketch, SketchRef};
use dupflow_core::time::Epoch;

/// Sketches by id, with their members.
#[derive(Debug)]
pub(in crate::dataflow) struct Sketches {
    sketches: StoredSketches,
    /// The features of each sketch, by its place, if the scheme keeps them.
    features: Option<Rows<Box<[u64]>>>,
    /// See [`SketchMembers::visible`].
    expand_limit: usize,
    /// By epoch, the sketches that lost their last member in it, with their places.
    dying: BTreeMap<Epoch, Vec<(SketchId, u32)>>,
    /// By epoch that `pairs` has not processed, the changes of members.
    changes: BTreeMap<Epoch, ChangedMembers>,
}

/// Changes of members in an epoch.
#[derive(Debug)]
struct ChangedMembers {
    /// Changes of visible members; ascending by sketch.
    visible: Vec<MemberChange>,
    /// Changes of each sketch that had too many members for all to be visible, before or after the epoch;
    /// ascending.
    stars: Vec<StarChange>,
}

/// The changes in an epoch of a sketch with too many members for all to be visible.
#[derive(Clone, Debug)]
pub(in crate::dataflow) struct StarChange {
    pub(in crate::dataflow) sketch: SketchId,
    /// Number of members before the epoch.
    pub(in crate::dataflow) before: usize,
    pub(in crate::dataflow) left: Vec<DocId>,
    pub(in crate::dataflow) joined: Vec<DocId>,
}

/// A document begins (`diff` 1) or stops (-1) to represent a sketch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::dataflow) struct MemberChange {
    pub(in crate::dataflow) sketch: SketchId,
    pub(in crate::dataflow) document: DocId,
    pub(in crate::dataflow) diff: i8,
}

impl Sketches {
    /// The empty store of a worker of a run: in memory, or spilled. In memory the other workers of the
    /// process can read ids and first words from now on.
    pub(in crate::dataflow) fn for_run(stages: &Stages, worker: usize, peers: usize) -> Self {
        let process = &stages.observers.sketches;
        let are_shared = process.workers(worker, peers).count() > 1;
        let sketches = StoredSketches::for_run(stages, are_shared);
        sketches.reader().into_iter().for_each(|reader| process.publish(worker, reader));
        Self::with(sketches, stages.scheme.keeps_features(), stages.expand_limit)
    }

    fn with(sketches: StoredSketches, keeps_features: bool, expand_limit: usize) -> Self {
        Self {
            sketches,
            features: keeps_features.then(|| Rows::new(1)),
            expand_limit,
            dying: BTreeMap::new(),
            changes: BTreeMap::new(),
        }
    }

    /// Prepares look-ups of these sketches, until the next call. Every sketch whose words or members are read
    /// or changed was named in the last call. It need not be stored.
    pub(in crate::dataflow) fn fetch(&mut self, ids: impl Iterator<Item = SketchId>) {
        self.fetch_halves(ids.map(SketchId::low));
    }

    /// [`fetch`](Self::fetch) by the low halves of ids.
    pub(in crate::dataflow) fn fetch_halves(&mut self, lows: impl Iterator<Item = u64>) {
        self.sketches.fetch(lows);
    }

    /// Prefetch for sketches of these low halves whose members are read or changed next.
    pub(in crate::dataflow) fn prefetch(&self, lows: impl Iterator<Item = u64>) {
        self.sketches.prefetch(lows);
    }

    #[inline]
    fn find(&self, id: SketchId) -> Option<u32> {
        self.sketches.find(id)
    }

    /// The sketch of which a document is a member now, by the low half of its id.
    ///
    /// # Panics
    /// If the document is a member of no such sketch: a broken promise upstream.
    pub(in crate::dataflow) fn with_member(&self, low: u64, document: &DocId) -> SketchId {
        let is_member =
            |place: &u32| self.sketches.members(*place).is_some_and(|members| members.contains(document));
        let place = self.sketches.places(low).find(is_member);
        self.sketches
            .id(place.unwrap_or_else(|| panic!("{document:?} leaves a sketch that it is not a member of")))
    }

    /// The sketch of which a document was a member after an epoch, by the low half of its id; `None` if there
    /// is none. Requires the changes of all later epochs, if two sketches have this half.
    pub(in crate::dataflow) fn of_document(
        &self,
        low: u64,
        document: &DocId,
        epoch: Epoch,
    ) -> Option<SketchId> {
        let places = self.sketches.places(low).filter(|place| self.sketches.members(*place).is_some());
        let mut ids: Vec<SketchId> = places.map(|place| self.sketches.id(place)).collect();
        ids.retain(|id| id.low() == low);
        if ids.len() > 1 {
            ids.retain(|id| self.members_at(*id, epoch).contains(document));
        }
        ids.first().copied()
    }

    fn members_of(&self, id: SketchId) -> Option<&SketchMembers> {
        self.sketches.members(self.find(id)?)
    }

    /// The place of a stored sketch.
    ///
    /// # Panics
    /// If the sketch is not stored: a candidate outlived its sketch, a broken promise.
    pub(in crate::dataflow) fn place(&self, id: SketchId) -> u32 {
        self.find(id).expect("a candidate's sketches are held until its epoch is released")
    }

    /// The sketch at a place, where it is or its words in `copy`.
    pub(in crate::dataflow) fn at<'a>(&'a self, place: u32, copy: &'a mut Vec<u64>) -> SketchRef<'a> {
        let features = features_at(self.features.as_ref(), place);
        SketchRef { words: self.sketches.words(place, copy), features }
    }

    /// The first word of the sketch at a place.
    #[inline]
    pub(in crate::dataflow) fn first_word(&self, place: u32) -> u64 {
        self.sketches.first_word(place)
    }

    /// Passes the words of the sketch at a place to `read`; `None` if they may be in a file.
    #[inline]
    pub(super) fn words_in_memory<R>(&self, place: u32, read: impl FnOnce(&[u64]) -> R) -> Option<R> {
        self.sketches.words_in_memory(place, read)
    }

    /// The id of the sketch at a place, in memory or not.
    pub(super) fn id_at(&self, place: u32) -> SketchId {
        self.sketches.read_id(place)
    }

    /// A stored sketch, copied.
    ///
    /// # Panics
    /// As [`place`](Self::place).
    pub(in crate::dataflow) fn copied(&self, id: SketchId) -> Sketch {
        self.at(self.place(id), &mut Vec::new()).to_owned()
    }

    /// The place of a sketch, its members, to be changed, and the sketch, where it is or its words in `copy`.
    /// A new sketch is taken from `body`.
    ///
    /// # Panics
    /// If the sketch is neither stored nor given.
    pub(in crate::dataflow) fn members<'a>(
        &'a mut self,
        id: SketchId,
        body: Option<&mut Sketch>,
        copy: &'a mut Vec<u64>,
    ) -> (u32, &'a mut SketchMembers, SketchRef<'a>) {
        let place = match self.find(id) {
            Some(place) => place,
            None => self.add(id, body.expect("the first member of a sketch brings it")),
        };
        let stored = self.sketches.members_mut(place, copy);
        let (members, words) = stored.expect("what was found or added is there");
        (place, members, SketchRef { words, features: features_at(self.features.as_ref(), place) })
    }

    fn add(&mut self, id: SketchId, body: &mut Sketch) -> u32 {
        let place = self.sketches.insert(id, &mut body.words);
        if let Some(all) = &mut self.features {
            all.set(place as usize, std::iter::once(std::mem::take(&mut body.features)));
        }
        place
    }

    /// Keeps the changes of visible members in an epoch until it is [forgotten](Self::forget), and all
    /// changes of each sketch that had more than `expand_limit` members before or after the epoch. Both
    /// ascending by sketch.
    pub(in crate::dataflow) fn keep_changes(
        &mut self,
        epoch: Epoch,
        visible: Vec<MemberChange>,
        stars: Vec<StarChange>,
    ) {
        debug_assert!(visible.is_sorted_by_key(|change| change.sketch));
        debug_assert!(stars.is_sorted_by_key(|change| change.sketch));
        self.changes.insert(epoch, ChangedMembers { visible, stars });
    }

    /// The changes of visible members in an epoch.
    pub(in crate::dataflow) fn changes(&self, epoch: Epoch) -> &[MemberChange] {
        self.changes.get(&epoch).map_or(&[], |changed| &changed.visible)
    }

    /// Drops the changes of this epoch. Members as of earlier epochs can then no longer be read.
    pub(in crate::dataflow) fn forget(&mut self, epoch: Epoch) {
        self.changes.remove(&epoch);
    }

    /// The documents that represent a sketch after an epoch, in any order. Requires the changes of all later
    /// epochs.
    ///
    /// # Panics
    /// If the changes kept are not those that were made.
    pub(in crate::dataflow) fn visible_at<'a>(
        &'a self,
        id: SketchId,
        epoch: Epoch,
        documents: &mut Vec<&'a DocId>,
    ) {
        documents.clear();
        if let Some(members) = self.members_of(id) {
            documents.extend(members.visible(self.expand_limit));
        }
        for (_, changed) in self.changes.range(epoch + 1..).rev() {
            for change in changed.changes(id).iter().rev() {
                if change.diff > 0 {
                    let at = documents.iter().position(|document| **document == change.document);
                    documents.swap_remove(at.expect("a document that joined is a member"));
                } else {
                    documents.push(&change.document);
                }
            }
        }
    }

    /// Whether a sketch had too many members after an epoch for all to be visible. Requires the changes of
    /// all later epochs.
    pub(in crate::dataflow) fn is_star_at(&self, id: SketchId, epoch: Epoch) -> bool {
        for (_, changed) in self.changes.range(epoch + 1..) {
            if let Some(star) = changed.star(id) {
                return star.before > self.expand_limit;
            }
            if !changed.changes(id).is_empty() {
                return false;
            }
        }
        self.members_of(id).is_some_and(|members| members.len() > self.expand_limit)
    }

    /// All members of a sketch after an epoch, visible or not. Requires the changes of all later epochs.
    pub(in crate::dataflow) fn members_at(&self, id: SketchId, epoch: Epoch) -> BTreeSet<&DocId> {
        let mut all: BTreeSet<&DocId> =
            self.members_of(id).into_iter().flat_map(SketchMembers::iter).collect();
        for (_, changed) in self.changes.range(epoch + 1..).rev() {
            if let Some(StarChange { left, joined, .. }) = changed.star(id) {
                all.retain(|document| !joined.contains(document));
                all.extend(left);
            } else {
                for change in changed.changes(id).iter().rev() {
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

    /// All members of a sketch now, visible or not.
    pub(in crate::dataflow) fn all_members(&self, id: SketchId) -> impl Iterator<Item = &DocId> {
        self.members_of(id).into_iter().flat_map(SketchMembers::iter)
    }

    /// Calls `each` with every sketch that has a member now, and these members.
    pub(in crate::dataflow) fn each_with_members(
        &mut self,
        mut each: impl FnMut(SketchId, SketchRef<'_>, &SketchMembers),
    ) {
        let features = self.features.as_ref();
        self.sketches.for_each(|place, id, members, words| {
            if members.len() > 0 {
                each(id, SketchRef { words, features: features_at(features, place) }, members);
            }
        });
    }

    /// Adds every sketch that has a member now.
    pub(in crate::dataflow) fn add_live(&mut self, live: &mut Vec<LiveSketch>) {
        self.each_with_members(|id, sketch, members| {
            let (sketch, documents) = (sketch.to_owned(), members.len() as u64);
            live.extend(members.first().map(|document| LiveSketch {
                id,
                sketch,
                document: document.clone(),
                documents,
            }));
        });
    }

    /// Sets the example documents of `most` hot blocks, as far as their sketches are stored here: see
    /// [`HotBlocks::name`].
    pub(in crate::dataflow) fn name_examples(&mut self, blocks: &mut HotBlocks, most: usize) {
        let store = RefCell::new(self);
        blocks.name(most, |sketch| {
            let mut store = store.borrow_mut();
            store.fetch(std::iter::once(sketch));
            store.members_of(sketch).map(|members| members.first().cloned())
        });
    }

    /// The sketch at a place lost its last member in this epoch.
    pub(in crate::dataflow) fn dies(&mut self, id: SketchId, place: u32, epoch: Epoch) {
        self.dying.entry(epoch).or_default().push((id, place));
    }

    /// Frees the sketches that lost their last member before `open` and have none now. No candidate of an
    /// epoch before `open` can arrive any more.
    pub(in crate::dataflow) fn release(&mut self, open: Epoch) {
        while let Some(first) = self.dying.first_entry().filter(|e| *e.key() < open) {
            let (epoch, dead) = first.remove_entry();
            for (id, place) in dead {
                // One that has members again may be spilled, or its place another's.
                let members = self.sketches.members(place);
                if matches!(members, Some(SketchMembers::Empty(since)) if *since == epoch)
                    && self.sketches.is_at(id, place)
                {
                    self.sketches.remove(id, place);
                    if let Some(features) = &mut self.features {
                        features.row_mut(place as usize)[0] = Box::default();
                        features.free(place as usize);
                    }
                }
            }
        }
    }
}

impl ChangedMembers {
    /// The changes of visible members of a sketch.
    fn changes(&self, id: SketchId) -> &[MemberChange] {
        let start = self.visible.partition_point(|change| change.sketch < id);
        let count = self.visible[start..].iter().take_while(|change| change.sketch == id).count();
        &self.visible[start..start + count]
    }

    /// The change of a sketch, if it had too many members.
    fn star(&self, id: SketchId) -> Option<&StarChange> {
        let at = self.stars.binary_search_by_key(&id, |star| star.sketch).ok()?;
        Some(&self.stars[at])
    }
}

fn features_at(features: Option<&Rows<Box<[u64]>>>, place: u32) -> &[u64] {
    features.map_or(&[], |features| &features.row(place as usize)[0])
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
