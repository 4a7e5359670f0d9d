//! Posting lists: the members of each block.
//!
//! A table stores a block of one member as that member, other blocks as the number of their list.

use super::members::{BlockChange, MemberList, TableRule, visit_live};
use super::postings::SketchHead;
use super::realms;
use super::slots::{LocalSketches, SketchSlots};
use crate::block::{BlockKey, HotChange, HotPlace, HotRule, NearRule};
use crate::memory::Rows;

/// The members of blocks with two or more members. A table stores a block of one member as that member, other
/// blocks as the number of their list: see [`BlockValue`].
#[derive(Debug)]
pub(super) struct MemberLists {
    rules: Box<[TableRule]>,
    lists: Rows<MemberList>,
    free: Vec<u32>,
    /// Blocks that became hot, changed while hot, or are no longer hot, since the last drain.
    pub(super) changed: Vec<(HotPlace, HotChange)>,
}

/// A block in a table: its only member, or its list. The lowest bit says which, so that small numbers are
/// small values.
pub(super) type BlockValue = u32;

/// What a [`BlockValue`] stands for.
enum BlockMembers {
    Only(u32),
    List(u32),
}

impl MemberLists {
    /// No blocks yet. `rules` has the hot rule and the distance rule of each table, `scan_limit` is that of
    /// all.
    pub(super) fn new(
        rules: impl IntoIterator<Item = (HotRule, Option<NearRule>)>,
        scan_limit: usize,
    ) -> Self {
        let rules: Box<[_]> =
            rules.into_iter().map(|(hot, near)| TableRule { hot, near, scan_limit }).collect();
        for rule in &rules {
            assert!(rule.hot.cap > 0, "a block of one is never hot");
            let is_decided = rule.near.is_none() || !rule.hot.is_ever();
            assert!(is_decided, "near ones meet whatever the size of a block");
        }
        Self { rules, lists: Rows::new(1), free: Vec::new(), changed: Vec::new() }
    }

    /// The rule of a table.
    pub(super) fn rule(&self, table: u16) -> TableRule {
        self.rules[usize::from(table)]
    }

    /// Changes a block and returns its new value in the table, `None` if it is empty. Calls `meet` as
    /// [`MemberList::change`] does.
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
        let (mut list, place) = match block.map(members_of) {
            None => (MemberList::default(), None),
            Some(BlockMembers::Only(only)) => (MemberList::Live([only].into_iter().collect()), None),
            Some(BlockMembers::List(place)) => {
                (std::mem::take(&mut self.lists.row_mut(place as usize)[0]), Some(place))
            }
        };
        let rule = self.rule(key.table);
        if slots.have_realms() {
            let changed = &mut self.changed;
            realms::change(&mut list, rule, change, slots, meet, |realm, hot| {
                changed.push(((key, Some(realm)), hot));
            });
        } else {
            let hot = list.change(rule, change, slots, meet);
            self.changed.extend(hot.map(|hot| ((key, None), hot)));
        }
        self.put(list, place)
    }

    /// Calls `meet` for each member that a sketch would meet in a block if it were added, or meets if it is a
    /// member already. The block is not changed.
    pub(super) fn visit(
        &self,
        table: u16,
        block: BlockValue,
        head: SketchHead,
        slots: &SketchSlots<impl LocalSketches>,
        meet: impl FnMut(u32),
    ) {
        let rule = self.rule(table);
        let only;
        let members: &[u32] = match members_of(block) {
            BlockMembers::Only(slot) => {
                only = [slot];
                &only
            }
            BlockMembers::List(place) => match &self.lists.row(place as usize)[0] {
                MemberList::Live(members) => members,
                list => return list.visit(rule, head, slots, meet),
            },
        };
        if slots.have_realms() {
            realms::visit_few(members, rule, head, slots, meet);
        } else {
            visit_live(members, rule, head, slots, meet);
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

    /// The slot of a sketch in a block of a table; `None` if it is no member.
    pub(super) fn find(
        &self,
        table: u16,
        block: BlockValue,
        head: SketchHead,
        slots: &SketchSlots<impl LocalSketches>,
    ) -> Option<u32> {
        let rule = self.rule(table);
        match members_of(block) {
            BlockMembers::Only(slot) => {
                MemberList::Live([slot].into_iter().collect()).find(rule, head, slots)
            }
            BlockMembers::List(place) => self.lists.row(place as usize)[0].find(rule, head, slots),
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
