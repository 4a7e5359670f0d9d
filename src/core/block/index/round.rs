//! A round: batches of changes are sorted and applied to the tables, and the meetings that begin or end are
//! filtered and emitted.

use std::hint::black_box;

use super::batch::{ADDED, NUMBER_BITS, low_number};
use super::block_index::{BlockIndex, BlockTables};
use super::lists::{BlockValue, MemberLists};
use super::members::BlockChange;
use super::slots::{LocalSketches, SketchSlots};
use crate::block::BlockKey;
use crate::hash::SketchId;
use crate::pair::Pair;

/// Meetings of a round that are sorted and emitted together, 8 bytes each. With more, those of a pair in
/// several tables are emitted apart; a large block never has all of its meetings in memory.
const CANDIDATES: usize = if cfg!(test) { 64 } else { 1 << 22 };

/// Meetings whose words are read together.
const MET: usize = 64;

/// Capacity, in changes, above which they are freed at the end of a round.
const KEPT: usize = 1 << 14;

impl<L: LocalSketches> BlockIndex<L> {
    /// Applies the changes collected since the last round.
    pub(super) fn apply_changes(
        &mut self,
        worth: &mut impl FnMut(u64, u64, i8) -> bool,
        emit: &mut impl FnMut(Pair<SketchId>, isize),
    ) {
        let mut changes = std::mem::take(&mut self.changes);
        self.apply_round(|entry| changes[low_number(entry) as usize], worth, emit);
        changes.drain(..).filter(|change| change & ADDED == 0).for_each(|slot| self.slots.free(slot));
        if changes.capacity() <= KEPT {
            self.changes = changes;
        }
    }

    /// Applies the batches; `change` is that of an entry.
    pub(super) fn apply_round(
        &mut self,
        change: impl Fn(u64) -> u32,
        worth: &mut impl FnMut(u64, u64, i8) -> bool,
        emit: &mut impl FnMut(Pair<SketchId>, isize),
    ) {
        let Self { slots, tables, lists, batches, is_one_sided, ended_by_words, .. } = self;
        // `x << 32 | y << 1 | begins`, x < y: in numeric order the meetings of a pair are adjacent.
        let mut candidates: Vec<u64> = Vec::new();
        let mut met: Vec<(u32, u32, i8)> = Vec::with_capacity(MET);
        for (number, batch) in (0..).zip(batches) {
            let near = lists.rule(number).near;
            let mut filter = |meetings: &mut Vec<(u32, u32, i8)>| {
                // All words are read before the first is compared, so that their cache misses overlap.
                let mut words = [(0, 0); MET];
                for (both, (x, y, _)) in words.iter_mut().zip(&*meetings) {
                    *both = (slots.word(*x), slots.word(*y));
                }
                for ((a, b), (x, y, diff)) in words.into_iter().zip(meetings.drain(..)) {
                    if !worth(a, b, diff) {
                        continue;
                    }
                    // By distance a block of any size has all meetings of its members: those that a
                    // comparison would reject end here, before they take memory.
                    if near.is_some_and(|near| !near.meet(a, b) || !slots.may_pair(x, y)) {
                        *ended_by_words += u64::from(diff > 0);
                    } else {
                        let pair = u64::from(x.min(y)) << 32 | u64::from(x.max(y)) << 1;
                        candidates.push(pair | u64::from(diff > 0));
                    }
                }
                if candidates.len() >= CANDIDATES {
                    emit_meetings(&mut candidates, slots, emit);
                }
            };
            let meet = |x: u32, y: u32, diff: i8| {
                met.push((x, y, diff));
                if met.len() == MET {
                    filter(&mut met);
                }
            };
            batch.apply(|batch| {
                if *is_one_sided {
                    apply_batch(number, tables, batch, &change, lists, slots, |_, _, _| {});
                } else {
                    apply_batch(number, tables, batch, &change, lists, slots, meet);
                }
            });
            filter(&mut met);
        }
        emit_meetings(&mut candidates, slots, emit);
    }
}

/// Emits the differences of the meetings of pairs, `x << 32 | y << 1 | begins`, and removes them.
fn emit_meetings(
    candidates: &mut Vec<u64>,
    slots: &SketchSlots<impl LocalSketches>,
    emit: &mut impl FnMut(Pair<SketchId>, isize),
) {
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
    candidates.clear();
}

/// Applies the sorted batch of a table. Calls `meet` for each meeting that begins (1) or ends (-1).
fn apply_batch(
    number: u16,
    tables: &mut BlockTables,
    batch: &[u64],
    change_of: impl Fn(u64) -> u32,
    lists: &mut MemberLists,
    slots: &SketchSlots<impl LocalSketches>,
    mut meet: impl FnMut(u32, u32, i8),
) {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let mut value_after = |hash: u64, block: &[u64], before: Option<BlockValue>| {
        removed.clear();
        added.clear();
        for change in block.iter().map(|entry| change_of(*entry)) {
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
    let is_addition = |entry: &&u64| change_of(**entry) & ADDED != 0;
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
