//! The block index: who is in which block, and who meets whom when that changes.
//!
//! Members of a live block meet: every two of them are a candidate pair, once for each live block that they share. A
//! block of more than `cap` members is *dead* and nobody meets in it. Both are functions of the block's members alone, so
//! what has been emitted accumulates, after each [`BlockIndex::apply`], to exactly the meetings of the live blocks.
//!
//! A sketch is held once, as a slot of 32 bytes, however many blocks it is in; a block of one member, the usual case, is
//! 8 bytes in its table.

use std::collections::BTreeSet;

use hashbrown::HashTable;
use serde::{Deserialize, Serialize};

use super::BlockKey;
use super::table::Table;
use crate::doc::DocId;
use crate::hash::SketchId;
use crate::pair::Pair;

/// A sketch comes into a block (`diff` 1) or leaves it (`diff` -1).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Posting {
    /// The block.
    pub key: BlockKey,
    /// Who.
    pub id: SketchId,
    /// Its first fingerprint word.
    pub word: u64,
    /// 1 or -1.
    pub diff: i8,
}

/// A block above the cap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadBlock {
    /// Its sketches.
    pub sketches: usize,
    /// One of them.
    pub example: SketchId,
    /// A document with that sketch, once somebody who knows its members has said so: the index does not.
    pub document: Option<DocId>,
}

/// The blocks of one worker.
#[derive(Debug)]
pub struct BlockIndex {
    cap: usize,
    slots: Slots,
    /// For each table, block hash to who is in the block.
    tables: Vec<Table>,
    crowds: Vec<Crowd>,
    free_crowds: Vec<u32>,
    /// Blocks that died, revived, or changed while dead, since they were last taken.
    deaths: Vec<(BlockKey, Option<DeadBlock>)>,
}

impl BlockIndex {
    /// No blocks yet; `cap` as in [`Blocking::cap`](super::Blocking::cap).
    pub fn new(tables: usize, cap: usize) -> Self {
        Self {
            cap,
            slots: Slots::default(),
            tables: (0..tables).map(|_| Table::default()).collect(),
            crowds: Vec::new(),
            free_crowds: Vec::new(),
            deaths: Vec::new(),
        }
    }

    /// What has become of dead blocks since the last call: `Some` for a block that is dead now, `None` for one that was.
    pub fn deaths(&mut self) -> impl Iterator<Item = (BlockKey, Option<DeadBlock>)> {
        self.deaths.drain(..)
    }

    /// Applies the changes of one epoch, at most one for each block and sketch, and tells `emit` who meets (1) or no
    /// longer meets (-1). Two sketches whose first words fail `worth` do not meet; it is told which of the two it is about.
    ///
    /// # Panics
    /// If a sketch leaves a block that it is not in: a broken promise upstream.
    pub fn apply(
        &mut self,
        changes: &mut [Posting],
        mut worth: impl FnMut(u64, u64, i8) -> bool,
        mut emit: impl FnMut(Pair<SketchId>, i8),
    ) {
        // By block, who leaves before who comes, in one number: comparing the fields one by one takes longer.
        let rank =
            |p: &Posting| u64::from(p.key.table) << 33 | u64::from(p.key.hash) << 1 | u64::from(p.diff > 0);
        changes.sort_unstable_by_key(rank);
        for block in changes.chunk_by(|p, q| p.key == q.key) {
            let (gone, come) = block.split_at(block.partition_point(|p| p.diff < 0));
            self.change(block[0].key, gone, come, |x: &Slot, y: &Slot, diff| {
                if worth(x.word, y.word, diff)
                    && let Some(pair) = Pair::new(x.id, y.id)
                {
                    emit(pair, diff);
                }
            });
        }
    }

    /// Changes one block.
    fn change(
        &mut self,
        key: BlockKey,
        gone: &[Posting],
        come: &[Posting],
        mut meet: impl FnMut(&Slot, &Slot, i8),
    ) {
        let mut crowd = self.take(key);
        let before = crowd.len();
        let after = before + come.len() - gone.len();
        // Who stays, comes or goes meets the others only if the block lives before and after; a block that dies or
        // revives takes all its meetings with it or brings them all.
        let (was_live, is_live) = (before <= self.cap, after <= self.cap);
        if was_live && !is_live {
            crowd.each_pair(|x, y| meet(&self.slots.entries[x], &self.slots.entries[y], -1));
        }
        for posting in gone {
            let slot = self.slots.release(posting.id);
            crowd.remove(slot);
            if was_live && is_live {
                let leaving = Slot { id: posting.id, word: posting.word, users: 0 };
                crowd.each(|other| meet(&self.slots.entries[other], &leaving, -1));
            }
        }
        for posting in come {
            let slot = self.slots.hold(posting.id, posting.word);
            if was_live && is_live {
                crowd.each(|other| meet(&self.slots.entries[other], &self.slots.entries[slot as usize], 1));
            }
            crowd.insert(slot);
        }
        if !was_live && is_live {
            crowd.each_pair(|x, y| meet(&self.slots.entries[x], &self.slots.entries[y], 1));
        }
        match crowd.first() {
            Some(slot) if !is_live => {
                let example = self.slots.entries[slot as usize].id;
                self.deaths.push((key, Some(DeadBlock { sketches: after, example, document: None })));
            }
            _ if !was_live => self.deaths.push((key, None)),
            _ => {}
        }
        self.put(key, crowd);
    }

    /// Takes the members out of a block; what its table says is stale until they are [put back](Self::put).
    fn take(&mut self, key: BlockKey) -> Crowd {
        match self.tables[usize::from(key.table)].get(key.hash).map(|holder| Holder(holder).open()) {
            None => Crowd::Few(Vec::new()),
            Some(Ok(slot)) => Crowd::Few(vec![slot]),
            Some(Err(crowd)) => {
                self.free_crowds.push(crowd);
                std::mem::take(&mut self.crowds[crowd as usize])
            }
        }
    }

    fn put(&mut self, key: BlockKey, crowd: Crowd) {
        let table = &mut self.tables[usize::from(key.table)];
        let holder = match &crowd {
            Crowd::Few(slots) if slots.is_empty() => return table.remove(key.hash),
            Crowd::Few(slots) if slots.len() == 1 => Holder::one(slots[0]),
            _ => {
                let place = self.free_crowds.pop().unwrap_or_else(|| {
                    self.crowds.push(Crowd::default());
                    index(self.crowds.len() - 1)
                });
                self.crowds[place as usize] = crowd.fitting(self.cap);
                Holder::crowd(place)
            }
        };
        table.insert(key.hash, holder.0);
    }
}

/// Who is in a block: one slot or a crowd, told apart by the highest bit.
#[derive(Clone, Copy, Debug)]
struct Holder(u32);

impl Holder {
    const CROWD: u32 = 1 << 31;

    fn one(slot: u32) -> Self {
        Self(slot)
    }

    fn crowd(place: u32) -> Self {
        Self(place | Self::CROWD)
    }

    /// The slot, or the place of the crowd.
    fn open(self) -> Result<u32, u32> {
        if self.0 & Self::CROWD == 0 { Ok(self.0) } else { Err(self.0 & !Self::CROWD) }
    }
}

/// The slots of a block.
#[derive(Debug)]
enum Crowd {
    /// Of a live block: walked at every change.
    Few(Vec<u32>),
    /// Of a dead block: only found and counted, so that a change costs O(log n).
    Many(BTreeSet<u32>),
}

impl Default for Crowd {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Crowd {
    fn len(&self) -> usize {
        match self {
            Self::Few(slots) => slots.len(),
            Self::Many(slots) => slots.len(),
        }
    }

    fn first(&self) -> Option<u32> {
        match self {
            Self::Few(slots) => slots.first().copied(),
            Self::Many(slots) => slots.first().copied(),
        }
    }

    fn insert(&mut self, slot: u32) {
        match self {
            Self::Few(slots) => slots.push(slot),
            Self::Many(slots) => {
                slots.insert(slot);
            }
        }
    }

    fn remove(&mut self, slot: u32) {
        match self {
            Self::Few(slots) => {
                let at =
                    slots.iter().position(|s| *s == slot).expect("a sketch leaves a block that it is in");
                slots.swap_remove(at);
            }
            Self::Many(slots) => assert!(slots.remove(&slot), "a sketch leaves a block that it is in"),
        }
    }

    fn each(&self, mut visit: impl FnMut(usize)) {
        match self {
            Self::Few(slots) => slots.iter().for_each(|s| visit(*s as usize)),
            Self::Many(slots) => slots.iter().for_each(|s| visit(*s as usize)),
        }
    }

    fn each_pair(&self, mut visit: impl FnMut(usize, usize)) {
        let mut seen = Vec::with_capacity(self.len());
        self.each(|y| {
            seen.iter().for_each(|x| visit(*x, y));
            seen.push(y);
        });
    }

    /// The form for a block of this size.
    fn fitting(self, cap: usize) -> Self {
        match self {
            Self::Few(slots) if slots.len() > cap => Self::Many(slots.into_iter().collect()),
            Self::Many(slots) if slots.len() <= cap => Self::Few(slots.into_iter().collect()),
            same => same,
        }
    }
}

/// The sketches that are in any block, each once, counted by the blocks that hold it.
#[derive(Debug, Default)]
struct Slots {
    entries: Vec<Slot>,
    free: Vec<u32>,
    by_id: HashTable<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    id: SketchId,
    word: u64,
    users: u32,
}

impl Slots {
    /// One more block holds the sketch.
    fn hold(&mut self, id: SketchId, word: u64) -> u32 {
        if let Some(&slot) = self.by_id.find(id.low(), |s| self.entries[*s as usize].id == id) {
            self.entries[slot as usize].users += 1;
            return slot;
        }
        let entry = Slot { id, word, users: 1 };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                index(self.entries.len() - 1)
            }
        };
        self.by_id.insert_unique(id.low(), slot, |s| self.entries[*s as usize].id.low());
        slot
    }

    /// One block fewer holds the sketch; its slot is free after the last.
    fn release(&mut self, id: SketchId) -> u32 {
        let found = self.by_id.find_entry(id.low(), |s| self.entries[*s as usize].id == id);
        let found = found.expect("a sketch leaves a block that it is in");
        let slot = *found.get();
        let entry = &mut self.entries[slot as usize];
        entry.users -= 1;
        if entry.users == 0 {
            found.remove();
            self.free.push(slot);
        }
        slot
    }
}

/// A place in a vector of less than 2^31 entries, about a hundred times what fits in memory.
fn index(place: usize) -> u32 {
    u32::try_from(place)
        .ok()
        .filter(|p| p & Holder::CROWD == 0)
        .expect("fewer than 2^31 sketches on a worker")
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "small numbers")]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::hash::mix;

    fn id(n: u64) -> SketchId {
        SketchId::of(0, &[n])
    }

    fn posting(block: u32, n: u64, diff: i8) -> Posting {
        Posting { key: BlockKey { table: (block % 3) as u16, hash: block / 3 }, id: id(n), word: n, diff }
    }

    /// Random changes in few, small blocks: what was emitted accumulates to the pairs of the live blocks.
    #[test]
    fn meetings_accumulate_to_the_pairs_of_the_live_blocks() {
        for cap in [0, 1, 2, 4, 100] {
            let mut index = BlockIndex::new(3, cap);
            let mut truth: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
            let mut met: BTreeMap<Pair<SketchId>, i64> = BTreeMap::new();
            let mut dead: BTreeMap<BlockKey, DeadBlock> = BTreeMap::new();
            let mut random = 0;
            let mut next = |n: u64| {
                random += 1;
                mix(random ^ cap as u64) % n
            };
            for _ in 0..400 {
                let mut changes: BTreeMap<(u32, u64), i8> = BTreeMap::new();
                for _ in 0..next(12) {
                    let (block, n) = (next(5) as u32, next(9));
                    let members = truth.entry(block).or_default();
                    if let std::collections::btree_map::Entry::Vacant(change) = changes.entry((block, n)) {
                        change.insert(if members.remove(&n) {
                            -1
                        } else {
                            members.insert(n);
                            1
                        });
                    }
                }
                let mut postings: Vec<_> = changes.iter().map(|(&(b, n), &d)| posting(b, n, d)).collect();
                // Words that differ in parity are not worth a meeting.
                index.apply(
                    &mut postings,
                    |a, b, _| a % 2 == b % 2,
                    |pair, diff| {
                        *met.entry(pair).or_default() += i64::from(diff);
                    },
                );
                met.retain(|_, count| *count != 0);
                let mut expected: BTreeMap<Pair<SketchId>, i64> = BTreeMap::new();
                for members in truth.values().filter(|m| m.len() <= cap) {
                    for x in members {
                        for y in members.range(x + 1..).filter(|y| *y % 2 == x % 2) {
                            *expected.entry(Pair::new(id(*x), id(*y)).unwrap()).or_default() += 1;
                        }
                    }
                }
                assert_eq!(met, expected, "cap {cap}");
                for (key, death) in index.deaths() {
                    match death {
                        Some(block) => dead.insert(key, block),
                        None => dead.remove(&key),
                    };
                }
                let sizes: Vec<_> = truth.values().map(BTreeSet::len).filter(|n| *n > cap).collect();
                assert_eq!(dead.len(), sizes.len());
                assert_eq!(dead.values().map(|d| d.sketches).sum::<usize>(), sizes.iter().sum::<usize>());
            }
            let live: BTreeSet<u64> = truth.values().flatten().copied().collect();
            assert_eq!(index.slots.by_id.len(), live.len());
            assert_eq!(index.slots.entries.len() - index.slots.free.len(), live.len());
        }
    }
}
