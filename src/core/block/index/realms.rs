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
use crate::pair_rule::{ByRealm, Realm};

/// Most members of several realms in one list, inclusive, if not even a hot block has so few. Few in tests,
/// so that blocks have lists of realms. Any number gives the same meetings.
const MIXED: usize = if cfg!(test) { 3 } else { 16 };

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
        let lists = by_realm(members, slots).into_iter();
        let lists = lists.map(|(realm, of_realm)| (realm, MemberList::Live(of_realm.into_iter().collect())));
        *list = MemberList::Realms(Box::new(ByRealm::new(members.len(), lists)));
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
        let of_realm = BlockChange { removed: &removed, added: &added };
        realms.change(realm, |members| {
            members.change(rule, of_realm, slots, meet).into_iter().for_each(|hot| told(realm, hot));
            members.len() > 0
        });
    }
    realms.set_len(after);
    // At half the limit, so that a block near the limit is not rebuilt repeatedly.
    if after <= mixed / 2 {
        *list = MemberList::Live(realms.lists(None).flat_map(MemberList::slots).collect());
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
    for (realm, of_realm) in by_realm(members, slots) {
        if head.realm.is_none_or(|of| of == realm) {
            visit_live(&of_realm, rule, head, slots, &mut meet);
        }
    }
}

/// Slots by realm, each in the order in which it was given.
fn by_realm(members: &[u32], slots: &SketchSlots<impl LocalSketches>) -> BTreeMap<Realm, Vec<u32>> {
    let mut by_realm: BTreeMap<Realm, Vec<u32>> = BTreeMap::new();
    members.iter().for_each(|slot| by_realm.entry(slots.realm(*slot)).or_default().push(*slot));
    by_realm
}
