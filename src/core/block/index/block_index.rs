//! The index of one worker: applies the changes of an epoch and answers probes.

use std::hint::black_box;

use super::batch::{ADDED, Batch, NUMBER_BITS, low_number};
use super::lists::{BlockValue, MemberLists};
use super::postings::{Postings, SketchHead};
use super::slots::{LocalSketches, NoSketches, SketchSlots, SketchSource};
use crate::block::blocking::SCAN_LIMIT;
use crate::block::{BlockKey, Blocking, HotChange, HotPlace, HotRule, NearRule};
use crate::hash::SketchId;
use crate::memory::PackedTables;
use crate::pair::Pair;

/// The blocks of one worker.
#[derive(Debug)]
pub struct BlockIndex<L = NoSketches> {
    pub(super) slots: SketchSlots<L>,
    /// For each table: block hash to members.
    pub(super) tables: BlockTables,
    pub(super) lists: MemberLists,
    /// The sketches that change, in rounds of at most [`ROUND`]: `is added << 31 | slot`.
    pub(super) changes: Vec<u32>,
    /// For each table, what changes: `hash << 24 | number in changes`, or the slot of a gathered sketch.
    pub(super) batches: Vec<Batch>,
    /// Number of sketches that are gathered in the batches. With others these are not mixed.
    gathered: usize,
    /// Whether members do not meet, but sketches that are looked up.
    pub(super) is_one_sided: bool,
    /// Whether a sketch was looked up: then none enters any more.
    is_settled: bool,
    /// Gathered postings that are not in the batches yet.
    waiting: Vec<Postings>,
    /// See [`Self::take_ended_by_words`].
    pub(super) ended_by_words: u64,
}

/// Sketches whose changes are sorted and applied together. An epoch may have more; its rounds are applied one
/// after another, and their differences add up. Few in tests, so that these have several rounds.
const ROUND: usize = if cfg!(test) { 16 } else { 1 << NUMBER_BITS };

impl BlockIndex {
    /// An empty index with one rule for all tables.
    ///
    /// # Panics
    /// If blocks of one are hot.
    pub fn new(tables: usize, rule: HotRule) -> Self {
        Self::with_rules(vec![(rule, None); tables], SCAN_LIMIT)
    }

    /// An empty index with the tables and rules of a blocking.
    ///
    /// # Panics
    /// If blocks of one are hot.
    pub fn for_blocking(blocking: &dyn Blocking) -> Self {
        Self::beside(blocking, SketchSource::Index, 0)
    }

    pub(super) fn with_rules(rules: Vec<(HotRule, Option<NearRule>)>, scan_limit: usize) -> Self {
        Self::with(rules, scan_limit, SketchSource::Index, 0, false)
    }
}

impl<L: LocalSketches> BlockIndex<L> {
    /// An empty index with the tables and rules of a blocking, whose sketches are stored by this source. The
    /// hashes of its keys agree, in each table, in their `common` lowest bits, as where these bits say which
    /// index has a block.
    ///
    /// # Panics
    /// If blocks of one are hot.
    pub fn beside(blocking: &dyn Blocking, source: SketchSource<L>, common: u32) -> Self {
        let rules = (0..=u16::MAX).take(blocking.tables());
        let rules = rules.map(|table| (blocking.rule(table), blocking.near(table)));
        let have_realms = blocking.has_realms();
        let index = Self::with(rules.collect(), blocking.scan_limit(), source, common, have_realms);
        Self { is_one_sided: blocking.is_one_sided(), ..index }
    }

    pub(super) fn with(
        rules: Vec<(HotRule, Option<NearRule>)>,
        scan_limit: usize,
        source: SketchSource<L>,
        common: u32,
        have_realms: bool,
    ) -> Self {
        let tables = rules.len();
        Self {
            slots: SketchSlots::new(source, have_realms),
            tables: BlockTables::with_common(tables, common),
            lists: MemberLists::new(rules, scan_limit),
            changes: Vec::new(),
            batches: vec![Batch::default(); tables],
            gathered: 0,
            is_one_sided: false,
            is_settled: false,
            waiting: Vec::new(),
            ended_by_words: 0,
        }
    }

    /// Number of entries in the tables: blocks that are not empty.
    pub fn blocks(&self) -> usize {
        (0..self.batches.len()).map(|table| self.tables.len(table)).sum()
    }

    /// Drains the changes of hot blocks since the last call.
    pub fn hot_blocks(&mut self) -> impl Iterator<Item = (HotPlace, HotChange)> {
        self.lists.changed.drain(..)
    }

    /// The number of meetings in tables by distance that began since the last call and were not emitted,
    /// although `worth` did not reject them: all words of the two sketches did.
    pub fn take_ended_by_words(&mut self) -> u64 {
        std::mem::take(&mut self.ended_by_words)
    }

    /// Keeps postings of sketches that begin until the next [`apply`](Self::apply), which applies all of
    /// them together, before others: tables change faster by a large batch. Until then nothing else sees
    /// them. They take 8 bytes for each key; those of a one-sided index, and of sketches beyond 2^24, wait as
    /// they were sent.
    pub fn gather(&mut self, postings: Postings) {
        debug_assert!(postings.only_begin());
        let sketches = &postings.sketches;
        let is_many = self.gathered + sketches.len() > ROUND;
        if self.is_one_sided || is_many || !self.slots.are_below(1 << NUMBER_BITS, sketches) {
            return self.waiting.push(postings);
        }
        self.gathered += sketches.len();
        for (posted, head, keys) in postings.each() {
            let slot = self.slots.add(head, posted.place);
            for key in keys {
                self.batches[usize::from(key.table)].push(key.hash() << NUMBER_BITS | u64::from(slot));
            }
        }
    }

    /// Applies the changes of one epoch, in which a sketch changes at most once: it enters all its blocks or
    /// leaves them all. Calls `emit` for each pair whose number of meetings changes, with the difference;
    /// where there are many, with differences that add up to it. Two sketches whose first words `worth`
    /// rejects do not meet; the third argument of `worth` is the diff of the meeting (1 or -1). Sketches are
    /// looked up after all others have entered their blocks.
    ///
    /// # Panics
    /// If a sketch leaves that is not present, or enters after one was looked up in an earlier epoch: an
    /// upstream operator broke its contract.
    pub fn apply(
        &mut self,
        postings: impl IntoIterator<Item = Postings>,
        mut worth: impl FnMut(u64, u64, i8) -> bool,
        mut emit: impl FnMut(Pair<SketchId>, isize),
    ) {
        if std::mem::take(&mut self.gathered) > 0 {
            self.apply_round(|entry| ADDED | low_number(entry), &mut worth, &mut emit);
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.apply_together(waiting, &mut worth, &mut emit);
        self.apply_together(postings, &mut worth, &mut emit);
    }

    fn apply_together(
        &mut self,
        postings: impl IntoIterator<Item = Postings>,
        worth: &mut impl FnMut(u64, u64, i8) -> bool,
        emit: &mut impl FnMut(Pair<SketchId>, isize),
    ) {
        let mut looked_up = Vec::new();
        for of_batch in postings {
            if self.is_one_sided && of_batch.sketches.iter().all(|posted| !posted.enters) {
                looked_up.push(of_batch);
                continue;
            }
            self.prefetch_leaving(&of_batch);
            for (posted, head, keys) in of_batch.each().filter(|(posted, ..)| posted.enters) {
                assert!(!self.is_settled, "a reference is complete before the first sketch is looked up");
                let change = if posted.diff > 0 {
                    ADDED | self.slots.add(head, posted.place)
                } else {
                    let known = posted.place.and_then(|place| self.slots.of_place(place));
                    let found = known.or_else(|| self.leaving(head, keys));
                    found.expect("a sketch leaves blocks that it is in")
                };
                let number = self.changes.len() as u64;
                self.changes.push(change);
                for key in keys {
                    self.batches[usize::from(key.table)].push(key.hash() << NUMBER_BITS | number);
                }
                if self.changes.len() == ROUND {
                    self.apply_changes(worth, emit);
                }
            }
            if self.is_one_sided {
                looked_up.push(of_batch);
            }
        }
        self.apply_changes(worth, emit);
        looked_up.iter().for_each(|parcel| self.look_up(parcel, worth, emit));
    }

    /// Looks up the sketches that do not enter their blocks: each meets all members of them.
    fn look_up(
        &mut self,
        postings: &Postings,
        worth: &mut impl FnMut(u64, u64, i8) -> bool,
        emit: &mut impl FnMut(Pair<SketchId>, isize),
    ) {
        let mut met: Vec<u32> = Vec::new();
        for (posted, head, keys) in postings.each().filter(|(posted, ..)| !posted.enters) {
            self.is_settled = true;
            self.meet_members(keys, head, |slot| met.push(slot));
            met.retain(|slot| worth(head.word, self.slots.word(*slot), posted.diff));
            met.sort_unstable();
            for meetings in met.chunk_by(|a, b| a == b) {
                if let Some(pair) = Pair::new(head.id, self.slots.id(meetings[0])) {
                    emit(pair, meetings.len().cast_signed() * isize::from(posted.diff));
                }
            }
            met.clear();
        }
    }

    /// Calls `meet` for each member of the blocks of these keys that a sketch would meet in them.
    fn meet_members(&self, keys: &[BlockKey], head: SketchHead, mut meet: impl FnMut(u32)) {
        // All places are prefetched before the first is read, so that their cache misses overlap.
        let places = keys.iter().map(|key| self.tables.touch(key.table.into(), key.hash()));
        black_box(places.fold(0, |all, place| all ^ place));
        for key in keys {
            if let Some(block) = self.tables.get(key.table.into(), key.hash()) {
                self.lists.visit(key.table, block, head, &self.slots, &mut meet);
            }
        }
    }

    /// Calls `found` once for each sketch that this one would meet if it were added to the blocks of these
    /// keys, or meets if it is in them already. Without a realm it meets sketches of all realms, of each as
    /// if it were of that one. Two sketches whose first words `worth` rejects do not meet; its first
    /// argument is the word of this one. The index is not changed.
    pub fn visit(
        &self,
        keys: &[BlockKey],
        head: SketchHead,
        worth: impl Fn(u64, u64) -> bool,
        found: impl FnMut(SketchId),
    ) {
        let mut met: Vec<u32> = Vec::new();
        self.meet_members(keys, head, |slot| met.push(slot));
        met.sort_unstable();
        met.dedup();
        met.retain(|slot| worth(head.word, self.slots.word(*slot)));
        met.into_iter().map(|slot| self.slots.id(slot)).for_each(found);
    }

    /// Prefetches the first block of each sketch that leaves.
    fn prefetch_leaving(&self, postings: &Postings) {
        let leaving = postings.each().filter(|(posted, ..)| posted.diff < 0);
        let touched = leaving.map(|(.., keys)| self.tables.touch(keys[0].table.into(), keys[0].hash()));
        black_box(touched.fold(0, |all, word| all ^ word));
    }

    /// The slot of a sketch without a place that leaves the blocks of these keys: there is no index of
    /// sketches by id, since the blocks have their members. Usually one of the first blocks has no other
    /// member; else the smallest is searched.
    fn leaving(&self, head: SketchHead, keys: &[BlockKey]) -> Option<u32> {
        let mut smallest: Option<(usize, u16, BlockValue)> = None;
        for key in keys {
            let block = self.tables.get(key.table.into(), key.hash())?;
            let size = self.lists.len(block);
            if smallest.is_none_or(|(least, ..)| size < least) {
                smallest = Some((size, key.table, block));
            }
            if size == 1 {
                break;
            }
        }
        let (_, table, block) = smallest?;
        self.lists.find(table, block, head, &self.slots)
    }
}

/// The tables of an index: block hash to members.
pub(super) type BlockTables = PackedTables<{ BlockKey::HASH_BITS }>;
