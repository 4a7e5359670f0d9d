//! The members of a block whose sketches have [realms](crate::block::Blocking::realm): those of one realm are
//! as a block of their own.
//!
//! A small block is one list of members of all realms, and is scanned: it is never hot. A larger one has a
//! list for each realm, so that a change costs what it costs in a block of the members of its realm.

use std::collections::BTreeMap;

use super::members::{BlockChange, MemberList, TableRule, visit_live};
use super::postings::SketchHead;
use super::slots::{LocalSketches, SketchSlots};
use crate::block::{HotChange, HotRule};
use crate::pair_rule::Realm;

/// Most members of several realms in one list, inclusive, if not even a hot block has so few. Few in tests,
/// so that blocks have lists of realms. Any number gives the same meetings.
const MIXED: usize = if cfg!(test) { 3 } else { 16 };

/// The lists of a block, by realm.
#[derive(Debug, Default)]
pub(super) struct RealmLists {
    /// None is empty.
    lists: BTreeMap<Realm, MemberList>,
    len: usize,
}

impl RealmLists {
    /// The number of members.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The slots of all members.
    pub(super) fn slots(&self) -> Vec<u32> {
        self.lists.values().flat_map(MemberList::slots).collect()
    }

    /// The members of a realm.
    pub(super) fn list(&self, realm: Realm) -> Option<&MemberList> {
        self.lists.get(&realm)
    }

    /// Calls `meet` for each member that a sketch would meet, or meets: of its realm, or of each.
    pub(super) fn visit(
        &self,
        rule: TableRule,
        head: SketchHead,
        slots: &SketchSlots<impl LocalSketches>,
        mut meet: impl FnMut(u32),
    ) {
        let of_one = head.realm.map(|realm| self.list(realm));
        let of_all = of_one.is_none().then(|| self.lists.values());
        let lists = of_one.flatten().into_iter().chain(of_all.into_iter().flatten());
        // Behind a pointer, since a list may, to a compiler, have lists of realms again.
        let meet: &mut dyn FnMut(u32) = &mut meet;
        lists.for_each(|list| list.visit(rule, head, slots, &mut *meet));
    }
}

/// Changes a block of any realms. Calls `meet` for each meeting that begins (1) or ends (-1), and `told` with
/// what changes of a hot block.
pub(super) fn change(
    list: &mut MemberList,
    rule: TableRule,
    change: BlockChange<'_>,
    slots: &SketchSlots<impl LocalSketches>,
    meet: &mut impl FnMut(u32, u32, i8),
    mut told: impl FnMut(Realm, HotChange),
) {
    let after = list.len() + change.added.len() - change.removed.len();
    // None of them is a hot block, then.
    let mixed = MIXED.min(rule.hot.cap);
    if let MemberList::Live(members) = &*list
        && after > mixed
    {
        let mut realms = RealmLists { len: members.len(), ..RealmLists::default() };
        for (realm, slots) in by_realm(members, slots) {
            realms.lists.insert(realm, MemberList::Live(slots.into_iter().collect()));
        }
        *list = MemberList::Realms(Box::new(realms));
    }
    let MemberList::Realms(realms) = list else {
        let scanned = TableRule { hot: HotRule::NEVER, scan_limit: usize::MAX, ..rule };
        list.change(scanned, change, slots, &mut |x, y, diff| {
            if slots.realm(x) == slots.realm(y) {
                meet(x, y, diff);
            }
        });
        return;
    };
    let mut changes: BTreeMap<Realm, [Vec<u32>; 2]> = by_realm(change.removed, slots)
        .into_iter()
        .map(|(realm, removed)| (realm, [removed, Vec::new()]))
        .collect();
    for (realm, added) in by_realm(change.added, slots) {
        changes.entry(realm).or_default()[1] = added;
    }
    for (realm, [removed, added]) in changes {
        let members = realms.lists.entry(realm).or_default();
        let of_realm = BlockChange { removed: &removed, added: &added };
        members.change(rule, of_realm, slots, meet).into_iter().for_each(|hot| told(realm, hot));
        if members.len() == 0 {
            realms.lists.remove(&realm);
        }
    }
    realms.len = after;
    // At half the limit, so that a block near the limit is not rebuilt repeatedly.
    if after <= mixed / 2 {
        *list = MemberList::Live(realms.slots().into_iter().collect());
    }
}

/// Calls `meet` for each of these members, of any realms, that a sketch would meet, or meets.
pub(super) fn visit_few(
    members: &[u32],
    rule: TableRule,
    head: SketchHead,
    slots: &SketchSlots<impl LocalSketches>,
    mut meet: impl FnMut(u32),
) {
    for (realm, members) in by_realm(members, slots) {
        if head.realm.is_none_or(|of| of == realm) {
            visit_live(&members, rule, head, slots, &mut meet);
        }
    }
}

/// Slots by realm, each in the order in which it was given.
fn by_realm(members: &[u32], slots: &SketchSlots<impl LocalSketches>) -> BTreeMap<Realm, Vec<u32>> {
    let mut by_realm: BTreeMap<Realm, Vec<u32>> = BTreeMap::new();
    members.iter().for_each(|slot| by_realm.entry(slots.realm(*slot)).or_default().push(*slot));
    by_realm
}
