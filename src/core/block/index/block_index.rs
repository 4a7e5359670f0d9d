//! The index of one worker: applies the changes of an epoch and answers probes.

use std::hint::black_box;

use super::lists::{BlockChange, BlockValue, MemberLists};
use super::postings::{Posted, Postings};
use super::slots::{LocalSketches, NoSketches, SketchSlots, SketchSource};
use crate::block::blocking::SCAN_LIMIT;
use crate::block::{BlockKey, Blocking, HotChange, HotRule, NearRule};
use crate::hash::SketchId;
use crate::memory::PackedTables;
use crate::pair::Pair;

/// The blocks of one worker.
#[derive(Debug)]
pub struct BlockIndex<L = NoSketches> {
    pub(super) slots: SketchSlots<L>,
    /// For each table: block hash to members.
    tables: BlockTables,
    lists: MemberLists,
    /// The sketches that change, in rounds of at most [`ROUND`]: `is added << 31 | slot`.
    changes: Vec<u32>,
    /// For each table, what changes: `hash << 24 | number in changes`.
    batches: Vec<Vec<u64>>,
    /// Whether members do not meet, but sketches that are looked up.
    is_one_sided: bool,
    /// Whether a sketch was looked up: then none enters any more.
    is_settled: bool,
}

/// Bit of a change: the sketch is added.
const ADDED: u32 = 1 << 31;

/// Bits of a batch entry below the hash.
const NUMBER_BITS: u32 = u64::BITS - BlockKey::HASH_BITS;

/// Sketches whose changes are sorted and applied together. An epoch may have more; its rounds are applied one
/// after another, and their differences add up. Few in tests, so that these have several rounds.
const ROUND: usize = if cfg!(test) { 16 } else { 1 << NUMBER_BITS };

/// Capacity of a batch, in entries, above which it is freed at the end of an epoch.
const KEPT: usize = 1 << 14;

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
        Self::with(rules, scan_limit, SketchSource::Index, 0)
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
        let index = Self::with(rules.collect(), blocking.scan_limit(), source, common);
        Self { is_one_sided: blocking.is_one_sided(), ..index }
    }

    pub(super) fn with(
        rules: Vec<(HotRule, Option<NearRule>)>,
        scan_limit: usize,
        source: SketchSource<L>,
        common: u32,
    ) -> Self {
        let tables = rules.len();
        Self {
            slots: SketchSlots::new(source),
            tables: BlockTables::with_common(tables, common),
            lists: MemberLists::new(rules, scan_limit),
            changes: Vec::new(),
            batches: vec![Vec::new(); tables],
            is_one_sided: false,
            is_settled: false,
        }
    }

    /// Number of entries in the tables: blocks that are not empty.
    pub fn blocks(&self) -> usize {
        (0..self.batches.len()).map(|table| self.tables.len(table)).sum()
    }

    /// Drains the changes of hot blocks since the last call.
    pub fn hot_blocks(&mut self) -> impl Iterator<Item = (BlockKey, HotChange)> {
        self.lists.changed.drain(..)
    }

    /// Applies the changes of one epoch, in which a sketch changes at most once: it enters all its blocks or
    /// leaves them all. Calls `emit` for each pair whose number of meetings changes, with the difference.
    /// Two sketches whose first words `worth` rejects do not meet; the third argument of `worth` is the diff
    /// of the meeting (1 or -1). Sketches are looked up after all others have entered their blocks.
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
        let mut looked_up = Vec::new();
        for Postings { sketches, keys } in postings {
            if self.is_one_sided && sketches.iter().all(|posted| !posted.enters) {
                looked_up.push(Postings { sketches, keys });
                continue;
            }
            self.prefetch_leaving(&sketches, &keys);
            let mut start = 0;
            for &Posted { id, word, diff, end, enters, place } in &sketches {
                let its_keys = &keys[start as usize..end as usize];
                if !enters {
                    start = end;
                    continue;
                }
                assert!(!self.is_settled, "a reference is complete before the first sketch is looked up");
                let change = if diff > 0 {
                    ADDED | self.slots.add(id, word, place)
                } else {
                    let known = place.and_then(|place| self.slots.of_place(place));
                    let found = known.or_else(|| self.leaving(id, word, its_keys));
                    found.expect("a sketch leaves blocks that it is in")
                };
                let number = self.changes.len() as u64;
                self.changes.push(change);
                for key in its_keys {
                    self.batches[usize::from(key.table)].push(key.hash() << NUMBER_BITS | number);
                }
                start = end;
                if self.changes.len() == ROUND {
                    self.apply_round(&mut worth, &mut emit);
                }
            }
            if self.is_one_sided {
                looked_up.push(Postings { sketches, keys });
            }
        }
        self.apply_round(&mut worth, &mut emit);
        looked_up.iter().for_each(|parcel| self.look_up(parcel, &mut worth, &mut emit));
    }

    /// Looks up the sketches that do not enter their blocks: each meets all members of them.
    fn look_up(
        &mut self,
        Postings { sketches, keys }: &Postings,
        worth: &mut impl FnMut(u64, u64, i8) -> bool,
        emit: &mut impl FnMut(Pair<SketchId>, isize),
    ) {
        let mut met: Vec<u32> = Vec::new();
        let mut start = 0;
        for &Posted { id, word, diff, end, enters, .. } in sketches {
            let keys = &keys[std::mem::replace(&mut start, end as usize)..end as usize];
            if enters {
                continue;
            }
            self.is_settled = true;
            self.meet_members(keys, (id, word), |slot| met.push(slot));
            met.retain(|slot| worth(word, self.slots.word(*slot), diff));
            met.sort_unstable();
            for meetings in met.chunk_by(|a, b| a == b) {
                if let Some(pair) = Pair::new(id, self.slots.id(meetings[0])) {
                    emit(pair, meetings.len().cast_signed() * isize::from(diff));
                }
            }
            met.clear();
        }
    }

    /// Calls `meet` for each member of the blocks of these keys that a sketch would meet in them.
    fn meet_members(&self, keys: &[BlockKey], (id, word): (SketchId, u64), mut meet: impl FnMut(u32)) {
        // All places are prefetched before the first is read, so that their cache misses overlap.
        let places = keys.iter().map(|key| self.tables.touch(key.table.into(), key.hash()));
        black_box(places.fold(0, |all, place| all ^ place));
        for key in keys {
            if let Some(block) = self.tables.get(key.table.into(), key.hash()) {
                self.lists.visit(key.table, block, (id, word), &self.slots, &mut meet);
            }
        }
    }

    /// Applies the changes collected since the last round.
    fn apply_round(
        &mut self,
        worth: &mut impl FnMut(u64, u64, i8) -> bool,
        emit: &mut impl FnMut(Pair<SketchId>, isize),
    ) {
        let Self { slots, tables, lists, changes, batches, is_one_sided, .. } = self;

        // `x << 32 | y << 1 | begins`, x < y: in numeric order the meetings of a pair are adjacent.
        let mut candidates: Vec<u64> = Vec::new();
        for (number, batch) in (0..).zip(batches) {
            let near = lists.near(number);
            let meet = |x: u32, y: u32, diff: i8| {
                let (a, b) = (slots.word(x), slots.word(y));
                if worth(a, b, diff) && near.is_none_or(|near| near.meet(a, b)) {
                    let pair = u64::from(x.min(y)) << 32 | u64::from(x.max(y)) << 1;
                    candidates.push(pair | u64::from(diff > 0));
                }
            };
            batch.sort_unstable();
            if *is_one_sided {
                apply_batch(number, tables, batch, changes, lists, slots, |_, _, _| {});
            } else {
                apply_batch(number, tables, batch, changes, lists, slots, meet);
            }
            if batch.capacity() > KEPT {
                *batch = Vec::new();
            } else {
                batch.clear();
            }
        }

        candidates.sort_unstable();
        for meetings in candidates.chunk_by(|a, b| a >> 1 == b >> 1) {
            let begin = meetings.iter().filter(|m| **m & 1 == 1).count().cast_signed();
            let diff = 2 * begin - meetings.len().cast_signed();
            let [x, y] = [meetings[0] >> 32, meetings[0] >> 1 & u64::from(!ADDED)]
                .map(|slot| u32::try_from(slot).expect("a slot has 31 bits"));
            if diff != 0
                && let Some(pair) = Pair::new(slots.id(x), slots.id(y))
            {
                emit(pair, diff);
            }
        }
        changes.drain(..).filter(|change| change & ADDED == 0).for_each(|slot| slots.free(slot));
        if changes.capacity() > KEPT {
            *changes = Vec::new();
        }
    }

    /// Calls `found` once for each sketch that `id` would meet if it were added to the blocks of these keys,
    /// or meets if it is in them already. Two sketches whose first words `worth` rejects do not meet; its
    /// first argument is `word`. The index is not changed.
    pub fn visit(
        &self,
        keys: &[BlockKey],
        id: SketchId,
        word: u64,
        worth: impl Fn(u64, u64) -> bool,
        found: impl FnMut(SketchId),
    ) {
        let mut met: Vec<u32> = Vec::new();
        self.meet_members(keys, (id, word), |slot| met.push(slot));
        met.sort_unstable();
        met.dedup();
        met.retain(|slot| worth(word, self.slots.word(*slot)));
        met.into_iter().map(|slot| self.slots.id(slot)).for_each(found);
    }

    /// Prefetches the first block of each sketch that leaves.
    fn prefetch_leaving(&self, sketches: &[Posted], keys: &[BlockKey]) {
        let starts = std::iter::once(0).chain(sketches.iter().map(|posted| posted.end));
        let leaving = sketches.iter().zip(starts).filter(|(posted, _)| posted.diff < 0);
        let touched = leaving.map(|(_, start)| {
            let key = keys[start as usize];
            self.tables.touch(key.table.into(), key.hash())
        });
        black_box(touched.fold(0, |all, word| all ^ word));
    }

    /// The slot of a sketch without a place that leaves the blocks of these keys: there is no index of
    /// sketches by id, since the blocks have their members. Usually one of the first blocks has no other
    /// member; else the smallest is searched.
    fn leaving(&self, id: SketchId, word: u64, keys: &[BlockKey]) -> Option<u32> {
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
        self.lists.find(table, block, (id, word), &self.slots)
    }
}

/// The tables of an index: block hash to members.
type BlockTables = PackedTables<{ BlockKey::HASH_BITS }>;

/// Applies the sorted batch of a table. Calls `meet` for each meeting that begins (1) or ends (-1).
fn apply_batch(
    number: u16,
    tables: &mut BlockTables,
    batch: &[u64],
    changes: &[u32],
    lists: &mut MemberLists,
    slots: &SketchSlots<impl LocalSketches>,
    mut meet: impl FnMut(u32, u32, i8),
) {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let mut value_after = |hash: u64, block: &[u64], before: Option<BlockValue>| {
        removed.clear();
        added.clear();
        for change in block.iter().map(|entry| changes[change_number(*entry)]) {
            if change & ADDED == 0 { &mut removed } else { &mut added }.push(change & !ADDED);
        }
        removed.sort_unstable();
        added.sort_unstable();
        let change = BlockChange { removed: &removed, added: &added };
        lists.change(BlockKey::new(number, hash), before, change, slots, &mut meet)
    };
    let blocks = batch.chunk_by(|a, b| a >> NUMBER_BITS == b >> NUMBER_BITS);
    if tables.is_many(number.into(), batch.len()) {
        return tables.change_all(number.into(), blocks.map(|b| (b[0] >> NUMBER_BITS, b)), value_after);
    }
    let is_addition = |entry: &&u64| changes[change_number(**entry)] & ADDED != 0;
    tables.reserve(number.into(), batch.iter().filter(is_addition).map(|entry| entry >> NUMBER_BITS));
    let (mut done, mut fetched) = (0, 0);
    for block in blocks {
        if done >= fetched {
            fetched = batch.len().min(done + BlockTables::TOUCHED);
            let hashes = batch[done..fetched].iter().map(|entry| entry >> NUMBER_BITS);
            black_box(tables.touch_all(number.into(), hashes));
        }
        done += block.len();
        let hash = block[0] >> NUMBER_BITS;
        let found = tables.entry(number.into(), hash);
        let before = found.value();
        match value_after(hash, block, before) {
            Some(after) if before != Some(after) => found.set(after),
            Some(_) => {}
            None => found.remove(),
        }
    }
}

/// The number of the change of a batch entry.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
fn change_number(entry: u64) -> usize {
    entry as usize & ((1 << NUMBER_BITS) - 1)
}
