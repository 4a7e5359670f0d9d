//! Posting lists: the members of each block, and the meetings that begin or end when they change.
//!
//! In a block of at most `cap` members all pairs meet. In a larger, *hot* block members meet only its
//! *leaders*, the first members in the order of the [rule](HotRule::rank). Both rules are functions of the
//! present members. So a change of a block is reported as the exact difference of two sets of meetings, also
//! if the block becomes hot, is no longer hot, or has another leader.
//!
//! A change of a hot block of n members costs O(leaders + log n). A change of a leader costs O(n); ids are
//! hashes, so this is one of n / leaders changes. By size it is as many if sizes come in no order; where each
//! text is larger than all before, it is every change that begins a class of sizes.
//!
//! A block of a table by distance is never hot: two of its members meet if they are near ([`NearRule`]), in a
//! block of any size. A small block is scanned, a large one is searched.

use std::collections::BTreeSet;

use super::few::FewMembers;
use super::large::LargeBlock;
use super::slots::{LocalSketches, SketchSlots};
use crate::block::{BlockKey, HotBlock, HotChange, HotRule, NearRule};
use crate::hash::SketchId;
use crate::memory::Rows;

/// The members of blocks with two or more members. A table stores a block of one member as that member, other
/// blocks as the number of their list: see [`BlockValue`].
#[derive(Debug)]
pub(super) struct MemberLists {
    /// Hot rule and distance rule of each table.
    rules: Box<[(HotRule, Option<NearRule>)]>,
    scan_limit: usize,
    lists: Rows<MemberList>,
    free: Vec<u32>,
    /// Blocks that became hot, changed while hot, or are no longer hot, since the last drain.
    pub(super) changed: Vec<(BlockKey, HotChange)>,
}

/// A block in a table: its only member, or its list. The lowest bit says which, so that small numbers are
/// small values.
pub(super) type BlockValue = u32;

/// What a [`BlockValue`] stands for.
enum BlockMembers {
    Only(u32),
    List(u32),
}

/// 16 bytes, since most lists have two or three members.
#[derive(Debug)]
enum MemberList {
    /// All pairs meet, or those that are near. Scanned at every change.
    Live(FewMembers),
    /// `leading part of the rank << 32 | slot`: in the order of ranks, except among those with an equal
    /// leading part.
    // A set takes 24 bytes.
    #[expect(clippy::box_collection, reason = "most lists have two or three members")]
    Hot(Box<BTreeSet<u64>>),
    /// A large block by distance. Searched at every change.
    Large(Box<LargeBlock>),
}

/// A change of a block: removed and added slots, each in ascending order, no slot in both.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockChange<'a> {
    pub(super) removed: &'a [u32],
    pub(super) added: &'a [u32],
}

impl BlockChange<'_> {
    fn is_removed(self, slot: u32) -> bool {
        self.removed.binary_search(&slot).is_ok()
    }

    fn is_added(self, slot: u32) -> bool {
        self.added.binary_search(&slot).is_ok()
    }
}

impl MemberLists {
    /// No blocks yet. `rules` has the hot rule and the distance rule of each table. Blocks by distance with
    /// more than `scan_limit` members are searched where that is possible; this affects time only.
    pub(super) fn new(
        rules: impl IntoIterator<Item = (HotRule, Option<NearRule>)>,
        scan_limit: usize,
    ) -> Self {
        let rules: Box<[_]> = rules.into_iter().collect();
        for (rule, near) in &rules {
            assert!(rule.cap > 0, "a block of one is never hot");
            assert!(near.is_none() || !rule.is_ever(), "near ones meet whatever the size of a block");
        }
        Self { rules, scan_limit, lists: Rows::new(1), free: Vec::new(), changed: Vec::new() }
    }

    /// The distance rule of a table; `None` if members meet at any distance.
    pub(super) fn near(&self, table: u16) -> Option<NearRule> {
        self.rules[usize::from(table)].1
    }

    /// Changes a block and returns its new value in the table, `None` if it is empty. Calls `meet` for each
    /// meeting that begins (1) or ends (-1). In a table with a [distance rule](Self::near) these include
    /// pairs that are not near; the caller filters them.
    ///
    /// # Panics
    /// If a removed sketch is not in the block: an upstream operator broke its contract.
    pub(super) fn change(
        &mut self,
        key: BlockKey,
        block: Option<BlockValue>,
        change: BlockChange<'_>,
        slots: &SketchSlots<impl LocalSketches>,
        meet: &mut impl FnMut(u32, u32, i8),
    ) -> Option<BlockValue> {
        if let (None, [], [only]) = (block, change.removed, change.added) {
            return Some(only_member(*only));
        }
        let (mut list, place) = match block {
            None => (MemberList::default(), None),
            Some(block) => match members_of(block) {
                BlockMembers::Only(only) => (MemberList::Live(FewMembers::from_iter([only])), None),
                BlockMembers::List(place) => {
                    let list = &mut self.lists.row_mut(place as usize)[0];
                    (std::mem::take(list), Some(place))
                }
            },
        };
        let before = list.len();
        let after = before + change.added.len() - change.removed.len();
        let (rule, near) = self.rules[usize::from(key.table)];
        let (was_hot, is_hot) = (before > rule.cap, after > rule.cap);
        let examples = |lists: &Self, of: &MemberList| match of {
            MemberList::Hot(hot) => lists.first(rule, hot, 2, slots),
            MemberList::Live(_) | MemberList::Large(_) => Vec::new(),
        };
        let named = examples(self, &list);
        if let (MemberList::Live(members), Some(near)) = (&list, near)
            && after > self.scan_limit
            && let Some(mut large) = LargeBlock::new(near)
        {
            members.iter().for_each(|slot| large.insert(slots.word(*slot), *slot));
            list = MemberList::Large(Box::new(large));
        }
        match &mut list {
            MemberList::Large(members) => {
                for slot in change.removed {
                    let word = slots.word(*slot);
                    assert!(members.remove(word, *slot), "a sketch leaves a block that it is in");
                    members.search(word, |other| meet(other, *slot, -1));
                }
                for slot in change.added {
                    let word = slots.word(*slot);
                    members.search(word, |other| meet(other, *slot, 1));
                    members.insert(word, *slot);
                }
                // At half the limit, so that a block near the limit is not rebuilt repeatedly.
                if after <= self.scan_limit / 2 {
                    list = MemberList::Live(members.slots().collect());
                }
            }
            MemberList::Live(members) if is_hot => {
                each_pair(members, |x, y| meet(x, y, -1));
                members.retain(|slot| !change.is_removed(*slot));
                let hot = members.iter().chain(change.added).map(|slot| entry(rule, *slot, slots)).collect();
                self.meet_leaders(rule, &hot, slots, |x, y| meet(x, y, 1));
                list = MemberList::Hot(Box::new(hot));
            }
            MemberList::Live(members) => {
                for slot in change.removed {
                    assert!(members.remove(*slot), "a sketch leaves a block that it is in");
                    members.iter().for_each(|other| meet(*other, *slot, -1));
                }
                for slot in change.added {
                    members.iter().for_each(|other| meet(*other, *slot, 1));
                    members.push(*slot);
                }
            }
            MemberList::Hot(hot) if is_hot => self.change_hot(rule, hot, change, slots, meet),
            MemberList::Hot(hot) => {
                self.meet_leaders(rule, hot, slots, |x, y| meet(x, y, -1));
                let stay = hot.iter().map(|r| slot(*r)).filter(|slot| !change.is_removed(*slot));
                let members: FewMembers = stay.chain(change.added.iter().copied()).collect();
                each_pair(&members, |x, y| meet(x, y, 1));
                list = MemberList::Live(members);
            }
        }
        assert_eq!(list.len(), after, "a sketch leaves a block that it is in");
        match &list {
            MemberList::Hot(_) => {
                let first = examples(self, &list);
                // Ids are read only where they have changed: under a budget they may be in a file.
                let told = if first == named {
                    HotChange::Size(after)
                } else {
                    HotChange::Hot(HotBlock {
                        sketches: after,
                        example: slots.id(first[0]),
                        other: first.get(1).map(|slot| slots.id(*slot)),
                        document: None,
                        beside: None,
                    })
                };
                self.changed.push((key, told));
            }
            MemberList::Live(_) if was_hot => self.changed.push((key, HotChange::Cooled)),
            MemberList::Live(_) | MemberList::Large(_) => {}
        }
        self.put(list, place)
    }

    /// Calls `meet` for each member that a sketch would meet in a block if it were added, or meets if it is a
    /// member already. The block is not changed.
    pub(super) fn visit(
        &self,
        table: u16,
        block: BlockValue,
        (id, word): (SketchId, u64),
        slots: &SketchSlots<impl LocalSketches>,
        mut meet: impl FnMut(u32),
    ) {
        // Words of equal ids are equal, and an id may have to be computed.
        let is_other = |slot: u32| slots.word(slot) != word || slots.id(slot) != id;
        let (rule, near) = self.rules[usize::from(table)];
        let only;
        let (members, hot): (&[u32], _) = match members_of(block) {
            BlockMembers::Only(slot) => {
                only = [slot];
                (&only, None)
            }
            BlockMembers::List(place) => match &self.lists.row(place as usize)[0] {
                MemberList::Live(members) => (members, None),
                MemberList::Hot(hot) => (&[], Some(hot)),
                MemberList::Large(large) => {
                    return large.search(word, |slot| {
                        let is_near = near.is_none_or(|near| near.meet(word, slots.word(slot)));
                        if is_near && is_other(slot) {
                            meet(slot);
                        }
                    });
                }
            },
        };
        let others = || members.iter().copied().filter(|slot| is_other(*slot));
        if let Some(near) = near {
            return others().filter(|slot| near.meet(word, slots.word(*slot))).for_each(meet);
        }
        let leaders = match hot {
            // With the queried sketch the block has at most `cap` members, so it is not hot.
            None if others().count() < rule.cap => return others().for_each(meet),
            None => {
                let mut least: Vec<u32> = others().collect();
                least.sort_unstable_by_key(|slot| ranked(rule, *slot, slots));
                least.truncate(rule.leaders);
                least
            }
            Some(hot) => {
                let mut least = self.first(rule, hot, rule.leaders.saturating_add(1), slots);
                least.retain(|slot| is_other(*slot));
                least.truncate(rule.leaders);
                least
            }
        };
        let own = rule.rank(id, word);
        let before = leaders.iter().filter(|slot| ranked(rule, **slot, slots) < own).count();
        if before == rule.leaders {
            leaders.into_iter().for_each(meet);
        } else if let Some(hot) = hot {
            hot.iter().map(|r| slot(*r)).filter(|slot| is_other(*slot)).for_each(meet);
        } else {
            others().for_each(meet);
        }
    }

    /// Stores a list and returns its block. A list of fewer than two members is not stored, its place is
    /// freed.
    fn put(&mut self, list: MemberList, place: Option<u32>) -> Option<BlockValue> {
        let only = match &list {
            MemberList::Live(members) if members.len() < 2 => Some(members.first().copied()),
            _ => None,
        };
        if let Some(only) = only {
            self.free.extend(place);
            return only.map(only_member);
        }
        let place = match place.or_else(|| self.free.pop()) {
            Some(free) => {
                self.lists.row_mut(free as usize)[0] = list;
                free
            }
            None => {
                self.lists.push(std::iter::once(list));
                u32::try_from(self.lists.len() - 1)
                    .ok()
                    .filter(|next| next >> 31 == 0)
                    .expect("fewer than 2^31 blocks of several sketches")
            }
        };
        Some(place << 1 | 1)
    }

    /// The number of members of a block.
    pub(super) fn len(&self, block: BlockValue) -> usize {
        match members_of(block) {
            BlockMembers::Only(_) => 1,
            BlockMembers::List(place) => self.lists.row(place as usize)[0].len(),
        }
    }

    /// The slot of a sketch, given its id and first word, in a block of a table; `None` if it is no member.
    pub(super) fn find(
        &self,
        table: u16,
        block: BlockValue,
        (id, word): (SketchId, u64),
        slots: &SketchSlots<impl LocalSketches>,
    ) -> Option<u32> {
        let is_it = |slot: &u32| slots.word(*slot) == word && slots.id(*slot) == id;
        match members_of(block) {
            BlockMembers::Only(slot) => Some(slot).filter(is_it),
            BlockMembers::List(place) => match &self.lists.row(place as usize)[0] {
                MemberList::Live(members) => members.iter().copied().find(is_it),
                MemberList::Hot(hot) => {
                    let (rule, _) = self.rules[usize::from(table)];
                    let first = u64::from(rule.leading(id, word)) << 32;
                    hot.range(first..=first | u64::from(u32::MAX)).map(|rank| slot(*rank)).find(is_it)
                }
                MemberList::Large(members) => members.with_word(word).find(is_it),
            },
        }
    }

    /// Changes a block that is hot before and after the change.
    fn change_hot(
        &self,
        rule: HotRule,
        hot: &mut BTreeSet<u64>,
        change: BlockChange<'_>,
        slots: &SketchSlots<impl LocalSketches>,
        meet: &mut impl FnMut(u32, u32, i8),
    ) {
        let before = self.first(rule, hot, rule.leaders, slots);
        for slot in change.removed {
            assert!(hot.remove(&entry(rule, *slot, slots)), "a sketch leaves a block that it is in");
        }
        hot.extend(change.added.iter().map(|slot| entry(rule, *slot, slots)));
        let after = self.first(rule, hot, rule.leaders, slots);

        // A pair that meets before and after stays in the block, and has a leader of both times, or one
        // leader of each time.
        let old: Vec<u32> = before.iter().filter(|x| !after.contains(x)).copied().collect();
        let new: Vec<u32> = after.iter().filter(|x| !before.contains(x)).copied().collect();
        let same = || before.iter().filter(|x| after.contains(x));
        for (i, x) in old.iter().enumerate() {
            let others = hot.iter().map(|r| slot(*r)).filter(|y| !change.is_added(*y));
            for y in others.chain(change.removed.iter().copied()).filter(|y| y != x && !old[..i].contains(y))
            {
                let still = after.contains(&y) && !change.is_removed(*x);
                if !still {
                    meet(*x, y, -1);
                }
            }
        }
        for x in same() {
            change.removed.iter().filter(|y| !old.contains(y)).for_each(|y| meet(*x, *y, -1));
        }
        for (i, x) in new.iter().enumerate() {
            for y in hot.iter().map(|r| slot(*r)).filter(|y| y != x && !new[..i].contains(y)) {
                let already = before.contains(&y) && !change.is_added(*x);
                if !already {
                    meet(*x, y, 1);
                }
            }
        }
        for x in same() {
            change.added.iter().filter(|y| !new.contains(y)).for_each(|y| meet(*x, *y, 1));
        }
    }

    /// Calls `meet` for all meetings of a hot block.
    fn meet_leaders(
        &self,
        rule: HotRule,
        hot: &BTreeSet<u64>,
        slots: &SketchSlots<impl LocalSketches>,
        mut meet: impl FnMut(u32, u32),
    ) {
        let leaders = self.first(rule, hot, rule.leaders, slots);
        for (i, x) in leaders.iter().enumerate() {
            hot.iter().map(|r| slot(*r)).filter(|y| !leaders[..=i].contains(y)).for_each(|y| meet(*x, y));
        }
    }

    /// The first `count` members in the order of the rule.
    fn first(
        &self,
        rule: HotRule,
        hot: &BTreeSet<u64>,
        count: usize,
        slots: &SketchSlots<impl LocalSketches>,
    ) -> Vec<u32> {
        let Some(last) = hot.iter().take(count).reduce(|_, r| r).map(|r| r >> 32) else { return Vec::new() };
        let ranks: Vec<u64> = hot.iter().copied().take_while(|r| r >> 32 <= last).collect();
        let mut first: Vec<u32> = ranks.iter().map(|r| slot(*r)).collect();
        // Ranks with an equal leading part are in the order of their slots.
        if ranks.windows(2).any(|two| two[0] >> 32 == two[1] >> 32) {
            first.sort_unstable_by_key(|slot| ranked(rule, *slot, slots));
        }
        first.truncate(count);
        first
    }
}

impl Default for MemberList {
    fn default() -> Self {
        Self::Live(FewMembers::default())
    }
}

impl MemberList {
    fn len(&self) -> usize {
        match self {
            Self::Live(members) => members.len(),
            Self::Hot(members) => members.len(),
            Self::Large(members) => members.len(),
        }
    }
}

fn members_of(block: BlockValue) -> BlockMembers {
    if block & 1 == 0 { BlockMembers::Only(block >> 1) } else { BlockMembers::List(block >> 1) }
}

/// The block of one member.
fn only_member(slot: u32) -> BlockValue {
    slot << 1
}

/// The entry of a member of a hot block.
fn entry(rule: HotRule, slot: u32, slots: &SketchSlots<impl LocalSketches>) -> u64 {
    u64::from(rule.leading(slots.id(slot), slots.word(slot))) << 32 | u64::from(slot)
}

/// The rank of a member.
fn ranked(rule: HotRule, slot: u32, slots: &SketchSlots<impl LocalSketches>) -> (u32, SketchId) {
    rule.rank(slots.id(slot), slots.word(slot))
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn slot(entry: u64) -> u32 {
    entry as u32
}

fn each_pair(members: &[u32], mut visit: impl FnMut(u32, u32)) {
    for (i, y) in members.iter().enumerate() {
        members[..i].iter().for_each(|x| visit(*x, *y));
    }
}
