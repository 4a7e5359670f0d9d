use std::collections::{BTreeMap, BTreeSet};

use super::*;
use dupflow_core::hash::mix;

fn id(n: u64) -> DocId {
    DocId::new(&format!("{n:02}")).unwrap()
}

/// The visible members of a group, by definition.
fn visible(group: &BTreeSet<u64>, limit: usize) -> BTreeSet<u64> {
    group.iter().copied().take(if group.len() <= limit { usize::MAX } else { 1 }).collect()
}

/// The pairs of a group, by definition.
fn copies(group: &BTreeSet<u64>, limit: usize) -> BTreeSet<(u64, u64)> {
    let pairs = group.iter().flat_map(|a| group.range(a + 1..).map(move |b| (*a, *b)));
    pairs.filter(|(a, _)| group.len() <= limit || Some(a) == group.first()).collect()
}

/// Random changes, across the limit in both directions and with every change of centre: the emitted changes
/// accumulate to the visible members and the pairs of the present group.
#[test]
fn changes_accumulate_to_the_group_that_there_is() {
    for limit in [0, 1, 2, 3, 5, 100] {
        let mut members = SketchMembers::Empty(0);
        let mut group = BTreeSet::new();
        let (mut seen, mut paired) = (BTreeMap::<DocId, isize>::new(), BTreeMap::<Pair<DocId>, isize>::new());
        let mut crossings = [0; 2];
        for epoch in 1..3000_u64 {
            let random = |salt: u64, n: u64| mix(epoch ^ salt << 32 ^ limit as u64) % n;
            let before = group.clone();
            let size = random(1, 4);
            let picked: BTreeSet<u64> = (0..size).map(|i| random(2 + i, 9)).collect();
            let (leave, join): (Vec<u64>, Vec<u64>) = picked.into_iter().partition(|n| group.contains(n));
            for n in &leave {
                group.remove(n);
            }
            group.extend(&join);
            let ids = |numbers: &[u64]| numbers.iter().map(|n| id(*n)).collect::<Vec<_>>();
            members.change(
                ids(&leave).iter(),
                ids(&join).iter(),
                epoch,
                limit,
                |document, diff| *seen.entry(document.clone()).or_default() += isize::from(diff),
                Some(|pair, diff| *paired.entry(pair).or_default() += diff),
            );
            seen.retain(|_, count| *count != 0);
            paired.retain(|_, count| *count != 0);

            assert_eq!(members.len(), group.len());
            assert_eq!(members.first().cloned(), group.first().map(|n| id(*n)));
            let expected: BTreeMap<_, _> = visible(&group, limit).into_iter().map(|n| (id(n), 1)).collect();
            assert_eq!(seen, expected, "limit {limit}, epoch {epoch}");
            assert!(members.visible(limit).eq(seen.keys()));
            let pair = |(a, b)| (Pair::new(id(a), id(b)).unwrap(), 1);
            let pairs: BTreeMap<_, _> = copies(&group, limit).into_iter().map(pair).collect();
            assert_eq!(paired, pairs, "limit {limit}, epoch {epoch}");
            if !before.is_empty() && group.is_empty() {
                assert!(matches!(members, SketchMembers::Empty(since) if since == epoch));
            }
            crossings[0] += u32::from(before.len() <= limit && group.len() > limit);
            crossings[1] += u32::from(before.len() > limit && group.len() <= limit);
        }
        assert!(limit > 5 || crossings.iter().all(|c| *c > 3), "limit {limit}: {crossings:?}");
    }
}

/// Changes the group as one epoch does.
fn change(members: &mut SketchMembers, leave: &[u64], join: &[u64]) {
    let ids = |numbers: &[u64]| numbers.iter().map(|n| id(*n)).collect::<Vec<_>>();
    members.change(ids(leave).iter(), ids(join).iter(), 1, 9, |_, _| {}, Some(|_, _| {}));
}

#[test]
#[should_panic(expected = "leaves a sketch that it is not a member of")]
fn a_stranger_cannot_leave_a_group() {
    let mut members = SketchMembers::Empty(0);
    change(&mut members, &[], &[1, 2, 3]);
    change(&mut members, &[4], &[]);
}

#[test]
#[should_panic(expected = "leaves a sketch that it is not a member of")]
fn a_stranger_cannot_leave_a_single_member() {
    let mut members = SketchMembers::Empty(0);
    change(&mut members, &[], &[1]);
    change(&mut members, &[2], &[]);
}
