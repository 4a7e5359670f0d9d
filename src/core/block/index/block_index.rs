//! The index of one worker: applies the changes of an epoch and answers probes.

use std::hint::black_box;

use super::lists::{BlockChange, MemberLists};
use super::postings::{Posted, Postings};
use super::slots::SketchSlots;
use super::table::BlockTable;
use crate::block::blocking::SCAN_LIMIT;
use crate::block::{BlockKey, Blocking, HotBlock, HotRule, NearRule};
use crate::hash::SketchId;
use crate::pair::Pair;

/// The blocks of one worker.
#[derive(Debug)]
pub struct BlockIndex {
    pub(super) slots: SketchSlots,
    /// For each table: block hash to members.
    tables: Vec<BlockTable>,
    lists: MemberLists,
    /// For each table, the changes of an epoch: `hash << 32 | is added << 31 | slot`.
    batches: Vec<Vec<u64>>,
}

/// Bit of a batch entry: the sketch is added.
const ADDED: u64 = 1 << 31;

/// Number of batch entries whose table places are prefetched together.
const FETCHED: usize = 64;

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
        let rules = (0..=u16::MAX).take(blocking.tables());
        let rules = rules.map(|table| (blocking.rule(table), blocking.near(table)));
        Self::with_rules(rules.collect(), blocking.scan_limit())
    }

    pub(super) fn with_rules(rules: Vec<(HotRule, Option<NearRule>)>, scan_limit: usize) -> Self {
        let tables = rules.len();
        Self {
            slots: SketchSlots::default(),
            tables: (0..tables).map(|_| BlockTable::default()).collect(),
            lists: MemberLists::new(rules, scan_limit),
            batches: vec![Vec::new(); tables],
        }
    }

    /// Drains the changes of hot blocks since the last call: `Some` for a block that is hot now, `None` for a
    /// block that is no longer hot.
    pub fn hot_blocks(&mut self) -> impl Iterator<Item = (BlockKey, Option<HotBlock>)> {
        self.lists.changed.drain(..)
    }

    /// Applies the changes of one epoch, in which a sketch changes at most once: it enters all its blocks or
    /// leaves them all. Calls `emit` for each pair whose number of meetings changes, with the difference.
    /// Two sketches whose first words `worth` rejects do not meet; the third argument of `worth` is the diff
    /// of the meeting (1 or -1).
    ///
    /// # Panics
    /// If a sketch leaves that is not present: an upstream operator broke its contract.
    pub fn apply(
        &mut self,
        postings: impl IntoIterator<Item = Postings>,
        mut worth: impl FnMut(u64, u64, i8) -> bool,
        mut emit: impl FnMut(Pair<SketchId>, isize),
    ) {
        let removed_slots = self.sort(postings);
        let Self { slots, tables, lists, batches } = self;

        // `x << 32 | y << 1 | begins`, x < y: in numeric order the meetings of a pair are adjacent.
        let mut candidates: Vec<u64> = Vec::new();
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        for ((number, table), batch) in (0..).zip(tables).zip(batches) {
            let near = lists.near(number);
            let mut meet = |x: u32, y: u32, diff: i8| {
                let (a, b) = (slots.word(x), slots.word(y));
                if worth(a, b, diff) && near.is_none_or(|near| near.meet(a, b)) {
                    let pair = u64::from(x.min(y)) << 32 | u64::from(x.max(y)) << 1;
                    candidates.push(pair | u64::from(diff > 0));
                }
            };
            let additions = batch.iter().filter(|e| **e & ADDED != 0);
            table.reserve(additions.map(|e| hash(*e)));
            let (mut done, mut fetched) = (0, 0);
            for block in batch.chunk_by(|a, b| hash(*a) == hash(*b)) {
                if done >= fetched {
                    fetched = batch.len().min(done + FETCHED);
                    black_box(batch[done..fetched].iter().fold(0, |all, e| all ^ table.touch(hash(*e))));
                }
                done += block.len();
                let key = BlockKey { table: number, hash: hash(block[0]) };
                let entry = table.entry(key.hash);
                let before = entry.value();
                removed.clear();
                added.clear();
                let (removals, joins) = block.split_at(block.partition_point(|e| e & ADDED == 0));
                removed.extend(removals.iter().map(|e| slot(*e)));
                added.extend(joins.iter().map(|e| slot(*e)));
                let change = BlockChange { removed: &removed, added: &added };
                match lists.change(key, before, change, slots, &mut meet) {
                    Some(after) if before != Some(after) => entry.set(after),
                    Some(_) => {}
                    None => entry.remove(),
                }
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
            let (x, y) = (hash(meetings[0]), slot(meetings[0] >> 1));
            if diff != 0
                && let Some(pair) = Pair::new(slots.id(x), slots.id(y))
            {
                emit(pair, diff);
            }
        }
        removed_slots.into_iter().for_each(|slot| slots.free(slot));
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
        // All places are prefetched before the first is read, so that their cache misses overlap.
        let places = keys.iter().map(|key| self.tables[usize::from(key.table)].touch(key.hash));
        black_box(places.fold(0, |all, place| all ^ place));
        let mut met: Vec<u32> = Vec::new();
        for key in keys {
            if let Some(block) = self.tables[usize::from(key.table)].get(key.hash) {
                self.lists.visit(key.table, block, (id, word), &self.slots, |slot| met.push(slot));
            }
        }
        met.sort_unstable();
        met.dedup();
        met.retain(|slot| worth(word, self.slots.word(*slot)));
        met.into_iter().map(|slot| self.slots.id(slot)).for_each(found);
    }

    /// Sorts an epoch's changes into the batches of the tables. Returns the slots of removed sketches; they
    /// are freed at the end of the epoch.
    fn sort(&mut self, postings: impl IntoIterator<Item = Postings>) -> Vec<u32> {
        let mut removed_slots = Vec::new();
        for Postings { sketches, keys } in postings {
            let mut keys = keys.iter();
            let mut start = 0;
            for Posted { id, word, diff, end } in sketches {
                let slot = if diff > 0 {
                    self.slots.add(id, word)
                } else {
                    let slot = self.slots.remove(id);
                    removed_slots.push(slot);
                    slot
                };
                let change = if diff > 0 { ADDED } else { 0 } | u64::from(slot);
                for key in keys.by_ref().take((end - start) as usize) {
                    self.batches[usize::from(key.table)].push(u64::from(key.hash) << 32 | change);
                }
                start = end;
            }
        }
        self.batches.iter_mut().for_each(|batch| batch.sort_unstable());
        removed_slots
    }
}

/// The upper 32 bits of an entry.
fn hash(entry: u64) -> u32 {
    u32::try_from(entry >> 32).expect("32 bits are left")
}

/// The lowest 31 bits of an entry.
#[expect(clippy::cast_possible_truncation, reason = "that half is meant")]
fn slot(entry: u64) -> u32 {
    entry as u32 & !(1 << 31)
}
