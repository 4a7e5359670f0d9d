//! The members of a block, and the meetings that begin or end when they change.
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
use super::postings::SketchHead;
use super::slots::{LocalSketches, SketchSlots};
use crate::block::{HotBlock, HotChange, HotRule, NearRule};
use crate::hash::SketchId;
use crate::pair_rule::ByRealm;

/// What decides which members of the blocks of a table meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableRule {
    pub(super) hot: HotRule,
    /// `None` if members meet at any distance.
    pub(super) near: Option<NearRule>,
    /// Blocks by distance with more members are searched where that is possible; this affects time only.
    pub(super) scan_limit: usize,
}

/// The members of a block of several. 16 bytes, since most lists have two or three members.
#[derive(Debug)]
pub(super) enum MemberList {
    /// All pairs meet, or those that are near; of several realms, those of one realm. Scanned at every
    /// change.
    Live(FewMembers),
    /// `leading part of the rank << 32 | slot`: in the order of ranks, except among those with an equal
    /// leading part.
    // A set takes 24 bytes.
    #[expect(clippy::box_collection, reason = "most lists have two or three members")]
    Hot(Box<BTreeSet<u64>>),
    /// A large block by distance. Searched at every change.
    Large(Box<LargeBlock>),
    /// A larger block of several realms.
    Realms(Box<ByRealm<Self>>),
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

impl MemberList {
    /// Changes the members, which are of one realm; returns what changes of a hot block. Calls `meet` for
    /// each meeting that begins (1) or ends (-1). With a [distance rule](TableRule::near) these include pairs
    /// that are not near; the caller filters them.
    ///
    /// # Panics
    /// If a removed sketch is no member: an upstream operator broke its contract.
    pub(super) fn change(
        &mut self,
        rule: TableRule,
        change: BlockChange<'_>,
        slots: &SketchSlots<impl LocalSketches>,
        meet: &mut impl FnMut(u32, u32, i8),
    ) -> Option<HotChange> {
        let before = self.len();
        let after = before + change.added.len() - change.removed.len();
        let TableRule { hot: rule, near, scan_limit } = rule;
        let (was_hot, is_hot) = (before > rule.cap, after > rule.cap);
        let named = self.examples(rule, slots);
        if let (Self::Live(members), Some(near)) = (&*self, near)
            && after > scan_limit
            && let Some(mut large) = LargeBlock::new(near)
        {
            members.iter().for_each(|slot| large.insert(slots.word(*slot), *slot));
            *self = Self::Large(Box::new(large));
        }
        match self {
            Self::Large(members) => {
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
                if after <= scan_limit / 2 {
                    *self = Self::Live(members.slots().collect());
                }
            }
            Self::Live(members) if is_hot => {
                each_pair(members, |x, y| meet(x, y, -1));
                members.retain(|slot| !change.is_removed(*slot));
                let hot = members.iter().chain(change.added).map(|slot| entry(rule, *slot, slots)).collect();
                meet_leaders(rule, &hot, slots, |x, y| meet(x, y, 1));
                *self = Self::Hot(Box::new(hot));
            }
            Self::Live(members) => {
                for slot in change.removed {
                    assert!(members.remove(*slot), "a sketch leaves a block that it is in");
                    members.iter().for_each(|other| meet(*other, *slot, -1));
                }
                for slot in change.added {
                    members.iter().for_each(|other| meet(*other, *slot, 1));
                    members.push(*slot);
                }
            }
            Self::Hot(hot) if is_hot => change_hot(rule, hot, change, slots, meet),
            Self::Hot(hot) => {
                meet_leaders(rule, hot, slots, |x, y| meet(x, y, -1));
                let stay = hot.iter().map(|r| slot(*r)).filter(|slot| !change.is_removed(*slot));
                let members: FewMembers = stay.chain(change.added.iter().copied()).collect();
                each_pair(&members, |x, y| meet(x, y, 1));
                *self = Self::Live(members);
            }
            Self::Realms(_) => unreachable!("the lists of realms are changed one by one"),
        }
        assert_eq!(self.len(), after, "a sketch leaves a block that it is in");
        if !is_hot {
            return was_hot.then_some(HotChange::Cooled);
        }
        let first = self.examples(rule, slots);
        // Ids are read only where they have changed: under a budget they may be in a file.
        Some(if first == named {
            HotChange::Size(after)
        } else {
            HotChange::Hot(HotBlock {
                sketches: after,
                example: slots.id(first[0]),
                other: first.get(1).map(|slot| slots.id(*slot)),
                document: None,
                beside: None,
            })
        })
    }

    /// The first two members of a hot block.
    fn examples(&self, rule: HotRule, slots: &SketchSlots<impl LocalSketches>) -> Vec<u32> {
        if let Self::Hot(hot) = self { first(rule, hot, 2, slots) } else { Vec::new() }
    }

    /// Calls `meet` for each member, of one realm, that a sketch would meet if it were added, or meets if it
    /// is a member already.
    pub(super) fn visit(
        &self,
        rule: TableRule,
        head: SketchHead,
        slots: &SketchSlots<impl LocalSketches>,
        mut meet: impl FnMut(u32),
    ) {
        match self {
            Self::Live(members) => visit_live(members, rule, head, slots, meet),
            Self::Hot(hot) => {
                let rule = rule.hot;
                let mut leaders = first(rule, hot, rule.leaders.saturating_add(1), slots);
                leaders.retain(|slot| is_other(*slot, head, slots));
                leaders.truncate(rule.leaders);
                if is_led(rule, head, &leaders, slots) {
                    leaders.into_iter().for_each(meet);
                } else {
                    let all = hot.iter().map(|r| slot(*r));
                    all.filter(|slot| is_other(*slot, head, slots)).for_each(meet);
                }
            }
            Self::Large(large) => large.search(head.word, |slot| {
                let is_near = rule.near.is_none_or(|near| near.meet(head.word, slots.word(slot)));
                if is_near && is_other(slot, head, slots) {
                    meet(slot);
                }
            }),
            Self::Realms(realms) => {
                // Behind a pointer, since a list may, to a compiler, have lists of realms again.
                let meet: &mut dyn FnMut(u32) = &mut meet;
                realms.lists(head.realm).for_each(|list| list.visit(rule, head, slots, &mut *meet));
            }
        }
    }

    /// The slot of a member, given its sketch; `None` if it is no member.
    pub(super) fn find(
        &self,
        rule: TableRule,
        head: SketchHead,
        slots: &SketchSlots<impl LocalSketches>,
    ) -> Option<u32> {
        let is_it = |slot: &u32| !is_other(*slot, head, slots);
        match self {
            Self::Live(members) => members.iter().copied().find(is_it),
            Self::Hot(hot) => {
                let first = u64::from(rule.hot.leading(head.id, head.word)) << 32;
                hot.range(first..=first | u64::from(u32::MAX)).map(|rank| slot(*rank)).find(is_it)
            }
            Self::Large(members) => members.with_word(head.word).find(is_it),
            Self::Realms(realms) => realms.list(head.realm?)?.find(rule, head, slots),
        }
    }

    /// The number of members.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Live(members) => members.len(),
            Self::Hot(members) => members.len(),
            Self::Large(members) => members.len(),
            Self::Realms(realms) => realms.len(),
        }
    }

    /// The slots of all members.
    pub(super) fn slots(&self) -> Vec<u32> {
        match self {
            Self::Live(members) => members.to_vec(),
            Self::Hot(members) => members.iter().map(|entry| slot(*entry)).collect(),
            Self::Large(members) => members.slots().collect(),
            Self::Realms(realms) => realms.lists(None).flat_map(Self::slots).collect(),
        }
    }
}

impl Default for MemberList {
    fn default() -> Self {
        Self::Live(FewMembers::default())
    }
}

/// [`MemberList::visit`] for the members of a block that is not hot.
pub(super) fn visit_live(
    members: &[u32],
    TableRule { hot: rule, near, .. }: TableRule,
    head: SketchHead,
    slots: &SketchSlots<impl LocalSketches>,
    meet: impl FnMut(u32),
) {
    let others = || members.iter().copied().filter(|slot| is_other(*slot, head, slots));
    if let Some(near) = near {
        return others().filter(|slot| near.meet(head.word, slots.word(*slot))).for_each(meet);
    }
    // With the sketch that is asked for the block has at most `cap` members, so it is not hot.
    if others().count() < rule.cap {
        return others().for_each(meet);
    }
    let mut leaders: Vec<u32> = others().collect();
    leaders.sort_unstable_by_key(|slot| ranked(rule, *slot, slots));
    leaders.truncate(rule.leaders);
    if is_led(rule, head, &leaders, slots) {
        leaders.into_iter().for_each(meet);
    } else {
        others().for_each(meet);
    }
}

/// Whether the sketch in a slot is another one. Words of equal ids are equal, and an id may have to be
/// computed.
fn is_other(slot: u32, head: SketchHead, slots: &SketchSlots<impl LocalSketches>) -> bool {
    slots.word(slot) != head.word || slots.id(slot) != head.id
}

/// Whether a sketch is no leader beside the other members of a hot block, of which `leaders` are the first.
fn is_led(rule: HotRule, head: SketchHead, leaders: &[u32], slots: &SketchSlots<impl LocalSketches>) -> bool {
    let own = rule.rank(head.id, head.word);
    leaders.iter().filter(|slot| ranked(rule, **slot, slots) < own).count() == rule.leaders
}

/// Changes a block that is hot before and after the change.
fn change_hot(
    rule: HotRule,
    hot: &mut BTreeSet<u64>,
    change: BlockChange<'_>,
    slots: &SketchSlots<impl LocalSketches>,
    meet: &mut impl FnMut(u32, u32, i8),
) {
    let before = first(rule, hot, rule.leaders, slots);
    for slot in change.removed {
        assert!(hot.remove(&entry(rule, *slot, slots)), "a sketch leaves a block that it is in");
    }
    hot.extend(change.added.iter().map(|slot| entry(rule, *slot, slots)));
    let after = first(rule, hot, rule.leaders, slots);

    // A pair that meets before and after stays in the block, and has a leader of both times, or one
    // leader of each time.
    let old: Vec<u32> = before.iter().filter(|x| !after.contains(x)).copied().collect();
    let new: Vec<u32> = after.iter().filter(|x| !before.contains(x)).copied().collect();
    let same = || before.iter().filter(|x| after.contains(x));
    for (i, x) in old.iter().enumerate() {
        let others = hot.iter().map(|r| slot(*r)).filter(|y| !change.is_added(*y));
        for y in others.chain(change.removed.iter().copied()).filter(|y| y != x && !old[..i].contains(y)) {
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
    rule: HotRule,
    hot: &BTreeSet<u64>,
    slots: &SketchSlots<impl LocalSketches>,
    mut meet: impl FnMut(u32, u32),
) {
    let leaders = first(rule, hot, rule.leaders, slots);
    for (i, x) in leaders.iter().enumerate() {
        hot.iter().map(|r| slot(*r)).filter(|y| !leaders[..=i].contains(y)).for_each(|y| meet(*x, y));
    }
}

/// The first `count` members in the order of the rule.
fn first(
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
