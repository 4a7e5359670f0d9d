use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::dataflow::shared::words::{SketchIds, SketchWords};
use crate::dataflow::spill::{SKETCH_ENTRY_WORDS, SpillMeter};
use dupflow_core::block::{BlockKey, HotBlock};
use dupflow_core::hash::mix;
use dupflow_core::memory::{PlaceInMemory, SpilledSlab};
use dupflow_run::metrics::Metrics;

const WORDS: usize = 3;

const FINGERPRINT: u64 = 1;

fn sketch_id(n: u64) -> SketchId {
    SketchId::new(FINGERPRINT, &body(n).words)
}

/// Ids that fit into a row, and longer ones, in the order of their numbers.
fn document(n: u64) -> DocId {
    let rest = if n.is_multiple_of(2) { "" } else { " with a long name" };
    DocId::new(&format!("document {n:03}{rest}")).unwrap()
}

/// The stored sketch with the id of `n`.
fn body(n: u64) -> Sketch {
    Sketch { words: [n, n + 1, n + 2].into(), features: (0..n % 4 + 1).map(|i| n ^ i).collect() }
}

/// Empty stores: in memory with computed ids, alone and shared, and with stored ids; and spilled with a cache
/// of one page of one row.
fn stores(expand_limit: usize) -> [Sketches; 4] {
    let rows = SpilledSlab::create(&PlaceInMemory::default(), SKETCH_ENTRY_WORDS + WORDS, 0, 0);
    let spilled = StoredSketches::spilled(rows, SpillMeter::new(&Metrics::new(0).into()));
    let computed = SketchIds::Computed(FINGERPRINT);
    let [alone, shared, stored] = [(computed, false), (computed, true), (SketchIds::Stored(()), true)]
        .map(|(ids, is_shared)| StoredSketches::in_memory(SketchWords::new(ids, WORDS, is_shared)));
    [alone, shared, stored, spilled].map(|sketches| Sketches::with(sketches, true, expand_limit))
}

/// Number of stored sketches.
fn stored(sketches: &mut Sketches) -> usize {
    let mut count = 0;
    sketches.sketches.for_each(|_, _, _, _| count += 1);
    count
}

/// Lets documents leave and join sketch `n`, as `collapse` does.
fn change(sketches: &mut Sketches, n: u64, epoch: Epoch, leave: &[u64], join: &[u64]) -> Vec<MemberChange> {
    let limit = sketches.expand_limit;
    let (mut body, mut copy) = ((!join.is_empty()).then(|| body(n)), Vec::new());
    sketches.fetch(std::iter::once(sketch_id(n)));
    let (place, members, _) = sketches.members(sketch_id(n), body.as_mut(), &mut copy);
    let ids = |numbers: &[u64]| numbers.iter().map(|number| document(*number)).collect::<Vec<_>>();
    let mut changes = Vec::new();
    members.change(
        ids(leave).iter(),
        ids(join).iter(),
        epoch,
        limit,
        |d, diff| changes.push(MemberChange { sketch: sketch_id(n), document: d.clone(), diff }),
        Some(|_, _| {}),
    );
    if !leave.is_empty() && members.len() == 0 {
        sketches.dies(sketch_id(n), place, epoch);
    }
    changes
}

fn is_held(sketches: &mut Sketches, n: u64) -> bool {
    sketches.fetch(std::iter::once(sketch_id(n)));
    let held = sketches.find(sketch_id(n)).is_some();
    if held {
        let sketch = sketches.copied(sketch_id(n));
        assert_eq!((sketch.words, sketch.features), (body(n).words, body(n).features));
        if let Some(reader) = sketches.sketches.reader() {
            let place = sketches.place(sketch_id(n));
            assert_eq!((reader.id(place), reader.first(place)), (sketch_id(n), n));
            assert_eq!((sketches.id_at(place), sketches.first_word(place)), (sketch_id(n), n));
        }
    }
    held
}

#[test]
fn a_sketch_without_members_is_held_until_its_epoch_is_released_and_no_longer() {
    for mut sketches in stores(10) {
        change(&mut sketches, 1, 1, &[], &[1]);
        change(&mut sketches, 2, 1, &[], &[2]);
        change(&mut sketches, 1, 3, &[1], &[]);
        for open in [1, 2, 3] {
            sketches.release(open);
            assert!(is_held(&mut sketches, 1), "an epoch up to 3 may still name it: {open} is open");
        }
        sketches.release(4);
        assert!(!is_held(&mut sketches, 1) && is_held(&mut sketches, 2));
        assert_eq!(stored(&mut sketches), 1);
        assert!(sketches.dying.is_empty());

        // The place is reused by a sketch with other words and features.
        change(&mut sketches, 3, 5, &[], &[3]);
        assert!(is_held(&mut sketches, 3) && is_held(&mut sketches, 2) && !is_held(&mut sketches, 1));
        assert_eq!(sketches.features.as_ref().map(Rows::len), Some(2));
    }
}

/// Two sketches whose ids have the same low half are told apart by their members, now and as of an epoch.
#[test]
fn half_an_id_and_a_member_name_a_sketch() {
    let [.., stored, spilled] = stores(10);
    for mut sketches in [stored, spilled] {
        let [a, b] = [1, 2].map(|high| SketchId::from_words([high, 7]));
        let join = |store: &mut Sketches, id, n, epoch| {
            let (mut body, mut copy) = (body(n), Vec::new());
            let (_, members, _) = store.members(id, Some(&mut body), &mut copy);
            members.change([].iter(), [document(n)].iter(), epoch, 10, |_, _| {}, Some(|_, _| {}));
            let change = MemberChange { sketch: id, document: document(n), diff: 1 };
            store.keep_changes(epoch, vec![change], Vec::new());
        };
        join(&mut sketches, a, 1, 1);
        assert_eq!(sketches.with_member(7, &document(1)), a);
        sketches.fetch_halves([7].into_iter());
        join(&mut sketches, b, 2, 2);
        sketches.fetch_halves([7].into_iter());
        let found = [1, 2].map(|n| sketches.with_member(7, &document(n)));
        assert_eq!(found, [a, b]);
        let as_of =
            [(1, 1), (2, 1), (1, 2), (2, 2)].map(|(n, epoch)| sketches.of_document(7, &document(n), epoch));
        assert_eq!(as_of, [Some(a), None, Some(a), Some(b)]);
        sketches.fetch_halves([8].into_iter());
        assert_eq!(sketches.of_document(8, &document(1), 2), None);
    }
}

#[test]
fn a_sketch_that_comes_back_is_not_freed_for_its_first_death() {
    for mut sketches in stores(10) {
        change(&mut sketches, 1, 1, &[], &[1]);
        change(&mut sketches, 1, 2, &[1], &[]);
        change(&mut sketches, 1, 3, &[], &[2]);
        sketches.release(3);
        assert!(is_held(&mut sketches, 1), "it has a member");
        change(&mut sketches, 1, 4, &[2], &[]);
        // Lost its last member in 2 and in 4: only the last time counts.
        change(&mut sketches, 1, 5, &[], &[3]);
        change(&mut sketches, 1, 6, &[3], &[]);
        for open in [5, 6] {
            sketches.release(open);
            assert!(is_held(&mut sketches, 1), "epoch 6 may still name it: {open} is open");
        }
        sketches.release(7);
        assert!(!is_held(&mut sketches, 1));
        // Added again, with its body.
        change(&mut sketches, 1, 8, &[], &[4]);
        assert!(is_held(&mut sketches, 1));
    }
}

#[test]
#[should_panic(expected = "the first member of a sketch brings it")]
fn a_sketch_that_was_freed_needs_its_body_again() {
    let [.., mut sketches] = stores(10);
    change(&mut sketches, 1, 1, &[], &[1]);
    change(&mut sketches, 1, 2, &[1], &[]);
    sketches.release(3);
    sketches.members(sketch_id(1), None, &mut Vec::new());
}

/// A random history in which documents change their sketches, while readers are up to five epochs behind.
/// Members as of each epoch that is not forgotten are those of that epoch. The stored sketches are
/// those that have a member or lost it in an epoch that is open.
#[test]
fn members_are_read_as_of_any_epoch_that_is_kept() {
    for expand_limit in [0, 1, 3, 100] {
        for mut sketches in stores(expand_limit) {
            // Sketch to members, after each epoch.
            let mut history: Vec<BTreeMap<u64, BTreeSet<u64>>> = vec![BTreeMap::new()];
            let mut now: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            let mut last_death: BTreeMap<u64, Epoch> = BTreeMap::new();
            let (mut forgotten, mut open, mut freed) = (0, 1, 0);
            for epoch in 1..600_u64 {
                let random = |salt: u64, n: u64| mix(epoch ^ salt << 32 ^ (expand_limit as u64) << 50) % n;
                // (leave, join) by sketch.
                let mut moves: BTreeMap<SketchId, (u64, Vec<u64>, Vec<u64>)> = BTreeMap::new();
                let moved: BTreeSet<u64> = (0..random(0, 6)).map(|i| random(1 + i, 12)).collect();
                for n in moved {
                    let from =
                        now.iter().find(|(_, members)| members.contains(&n)).map(|(sketch, _)| *sketch);
                    let to = Some(random(20 + n, 6)).filter(|to| *to < 5);
                    if from == to {
                        continue;
                    }
                    if let Some(from) = from {
                        now.get_mut(&from).unwrap().remove(&n);
                        moves.entry(sketch_id(from)).or_insert((from, vec![], vec![])).1.push(n);
                    }
                    if let Some(to) = to {
                        now.entry(to).or_default().insert(n);
                        moves.entry(sketch_id(to)).or_insert((to, vec![], vec![])).2.push(n);
                    }
                }
                let (mut changes, mut stars) = (Vec::new(), Vec::new());
                for (sketch, leave, join) in moves.values() {
                    changes.extend(change(&mut sketches, *sketch, epoch, leave, join));
                    let before =
                        history.last().and_then(|before| before.get(sketch)).map_or(0, BTreeSet::len);
                    if before.max(now[sketch].len()) > expand_limit {
                        let ids = |numbers: &[u64]| numbers.iter().map(|number| document(*number)).collect();
                        let (sketch, left, joined) = (sketch_id(*sketch), ids(leave), ids(join));
                        stars.push(StarChange { sketch, before, left, joined });
                    }
                    if now[sketch].is_empty() {
                        last_death.insert(*sketch, epoch);
                    }
                }
                sketches.keep_changes(epoch, changes, stars);
                history.push(now.clone());

                // The readers advance by none or a few epochs.
                let done = (forgotten + random(90, 4)).min(epoch).max(epoch.saturating_sub(5));
                (forgotten + 1..=done).for_each(|past| sketches.forget(past));
                forgotten = done;
                // "Compare" may be ahead of `pairs`, as far as `collapse`.
                open = open.max(forgotten + 1 + random(91, 4)).min(epoch + 1);
                sketches.release(open);

                sketches.fetch((0..5).map(sketch_id));
                for at in forgotten..=epoch {
                    for sketch in 0..5 {
                        let mut found = Vec::new();
                        sketches.visible_at(sketch_id(sketch), at, &mut found);
                        found.sort_unstable();
                        let members = history[usize::try_from(at).unwrap()].get(&sketch);
                        let members: Vec<DocId> =
                            members.into_iter().flatten().map(|n| document(*n)).collect();
                        let visible = if members.len() <= expand_limit { members.len() } else { 1 };
                        assert!(found.into_iter().eq(&members[..visible]), "{sketch} as of {at} in {epoch}");
                        let all = sketches.members_at(sketch_id(sketch), at);
                        assert!(all.into_iter().eq(&members), "{sketch} as of {at} in {epoch}");
                        let is_star = sketches.is_star_at(sketch_id(sketch), at);
                        assert_eq!(is_star, members.len() > expand_limit, "{sketch} as of {at} in {epoch}");
                    }
                }
                for sketch in 0..5 {
                    let has_members = now.get(&sketch).is_some_and(|members| !members.is_empty());
                    let died = last_death.get(&sketch).copied();
                    assert_eq!(
                        is_held(&mut sketches, sketch),
                        has_members || died.is_some_and(|e| e >= open)
                    );
                    freed += usize::from(!has_members && died.is_some_and(|e| e < open));
                }
            }
            assert!(freed > 20, "{freed} times a sketch was freed");
        }
    }
}

#[test]
fn a_dead_block_is_named_after_the_first_member_of_its_example() {
    for mut sketches in stores(10) {
        change(&mut sketches, 1, 1, &[], &[7, 5]);
        change(&mut sketches, 3, 1, &[], &[9, 8]);
        let of = |n, other: Option<u64>, size| HotBlock {
            sketches: size,
            example: sketch_id(n),
            other: other.map(sketch_id),
            document: None,
            beside: None,
        };
        let key = |hash| (BlockKey::new(0, hash), None);
        let mut blocks = HotBlocks::default();
        assert!(blocks.put(key(1), of(1, Some(3), 98)) && blocks.put(key(2), of(2, Some(3), 99)));
        sketches.name_examples(&mut blocks, 1);
        assert_eq!(blocks[&key(1)].beside, None, "the largest one");
        blocks.resize(&key(1), 100);
        sketches.name_examples(&mut blocks, 1);
        assert_eq!(blocks[&key(1)].document, Some(document(5)));
        assert_eq!(blocks[&key(2)].document, None);
        assert_eq!(blocks[&key(2)].beside, Some(document(8)));
        let looked = |found: &mut HotBlocks, most| {
            let seen = std::cell::RefCell::new(Vec::new());
            found.name(most, |sketch| {
                seen.borrow_mut().push(sketch);
                None
            });
            seen.into_inner()
        };
        let ids = |numbers: &[u64]| numbers.iter().map(|n| sketch_id(*n)).collect::<Vec<_>>();
        assert_eq!(looked(&mut blocks, 1), ids(&[1, 3]));
        assert_eq!(looked(&mut blocks, usize::MAX), ids(&[1, 3, 2, 3]));
        assert!(!blocks.put(key(2), of(3, None, 101)), "it was hot before");
        assert_eq!(looked(&mut blocks, 9), ids(&[3, 1, 3]));
        assert!(blocks.remove(&key(2)) && !blocks.remove(&key(2)));
        assert_eq!(looked(&mut blocks, 9), ids(&[1, 3]));
        // A changed block keeps the examples of the sketches that it still has.
        let renamed = of(1, Some(2), 9).named_as(&blocks[&key(1)]);
        assert_eq!((renamed.document, renamed.beside), (Some(document(5)), None));
    }
}
