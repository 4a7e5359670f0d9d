//! The index compared with the definition of meetings, and its costs.

use std::collections::{BTreeMap, BTreeSet};

use super::block_index::BlockIndex;
use super::postings::{Postings, SketchHead};
use super::slots::{LocalSketches, NoSketches, SketchSource};
use crate::block::blocking::SCAN_LIMIT;
use crate::block::{BlockKey, Blocking, HotBlock, HotChange, HotPlace, HotRule, LeadersBy, NearRule};
use crate::hash::SketchId;
use crate::hash::mix;
use crate::pair::Pair;
use crate::pair_rule::Realm;
use crate::sketch::SketchRef;

fn id(n: u64) -> SketchId {
    SketchId::new(0, &[n])
}

/// The members of a block in the order of the rule; the first word of a sketch is its number.
fn ranked(members: &BTreeSet<SketchId>, rule: HotRule) -> Vec<SketchId> {
    let numbers: BTreeMap<SketchId, u64> = (0..100).map(|n| (id(n), n)).collect();
    let mut ranked: Vec<SketchId> = members.iter().copied().collect();
    ranked.sort_unstable_by_key(|member| rule.rank(*member, numbers[member]));
    ranked
}

/// Sketches with the first word `n` and the id of `n`, at the place `n`.
#[derive(Debug)]
struct ByNumber;

impl LocalSketches for ByNumber {
    fn enters(&self, place: u32, sketch: SketchId) {
        assert_eq!(sketch, id(place.into()));
    }

    fn id(&self, place: u32) -> SketchId {
        id(place.into())
    }

    fn word(&self, place: u32) -> u64 {
        place.into()
    }
}

/// The pairs that meet in a block, by definition.
fn meetings(members: &BTreeSet<SketchId>, rule: HotRule) -> Vec<Pair<SketchId>> {
    let leaders = if members.len() <= rule.cap { members.len() } else { rule.leaders };
    let ranked = ranked(members, rule);
    let pairs = ranked.iter().enumerate().flat_map(|(i, x)| {
        ranked.iter().enumerate().filter(move |(j, _)| i < *j && i < leaders).map(|(_, y)| (*x, *y))
    });
    pairs.filter_map(|(x, y)| Pair::new(x, y)).collect()
}

/// Random changes of few sketches in few blocks: the emitted changes accumulate to the definition, in hot
/// blocks with changing leaders too. So they do if the owner of the index stores the sketches, or some, and
/// for each realm in a block, if there are realms.
#[test]
fn meetings_accumulate_to_the_definition() {
    use LeadersBy::{Id, Size};
    let by_id = [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 2), (3, 4), (8, 1), (8, 4), (100, 2)];
    let by_size = [(2, 1), (3, 2), (8, 4)].map(|(cap, leaders)| (0, (cap, leaders, Size)));
    let by_id = by_id.map(|(cap, leaders)| (0, (cap, leaders, Id)));
    let stored_by_owner = [(1, (2, 1, Id)), (1, (8, 4, Size)), (2, (3, 2, Size)), (2, (8, 1, Id))];
    let one = by_id.into_iter().chain(by_size).chain(stored_by_owner).map(|case| (0, case));
    // Of many realms a block has few members each.
    let several = [(2, 1), (3, 2), (4, 4)].into_iter().flat_map(|(realms, leaders)| {
        [(0, 2, Id), (1, 3, Id), (2, 1, Id), (0, 5, Size)]
            .map(|(case, cap, by)| (realms, (case, (cap, leaders, by))))
    });
    for (realms, (case, (cap, leaders, by))) in one.chain(several) {
        let realm_of = |n: u64| (realms > 0).then(|| Realm::try_from(mix(n ^ 77) % realms).unwrap());
        let rule = HotRule { cap, leaders, by };
        let (source, own): (_, fn(&u64) -> bool) = match case {
            0 => (SketchSource::Index, |_| true),
            1 => (SketchSource::Owner(ByNumber), |_| false),
            _ => (SketchSource::Both(ByNumber), |n| n % 2 == 1),
        };
        let mut index = BlockIndex::with(vec![(rule, None); 3], SCAN_LIMIT, source, 0, realms > 0);
        let mut alive: BTreeSet<u64> = BTreeSet::new();
        let mut met: BTreeMap<Pair<SketchId>, isize> = BTreeMap::new();
        let mut hot: BTreeMap<HotPlace, HotBlock> = BTreeMap::new();
        let mut random = 0;
        let mut next = |n: u64| {
            random += 1;
            mix(random ^ (cap << 20 ^ leaders << 10) as u64) % n
        };
        // A sketch is in one or two blocks of each table.
        let keys = |n: u64| {
            let key = |table: u16, hash: u64| BlockKey::new(table, hash);
            [key(0, n % 2), key(1, mix(n) % 3), key(2, 0), key(2, 1 + n % 5)]
        };
        let head = |n: u64| SketchHead { id: id(n), word: n, realm: realm_of(n) };
        let (mut got_hot, mut cooled, mut led, mut visited) = (0, 0, 0, [0; 2]);
        for step in 0..600 {
            let mut changes: BTreeMap<u64, i8> = BTreeMap::new();
            // Mostly few changes, sometimes many; first more additions, then more removals.
            let many = if next(10) == 0 { 30 } else { 3 };
            for _ in 0..next(many) {
                let n = next(40);
                let grows = step % 200 < 120;
                if changes.contains_key(&n) || (alive.contains(&n) == grows && next(4) > 0) {
                    continue;
                }
                changes.insert(n, if alive.remove(&n) { -1 } else { 1 });
                if changes[&n] > 0 {
                    alive.insert(n);
                }
            }
            let mut postings = [Postings::default(), Postings::default()];
            // What begins may be gathered, and is applied before the rest.
            let gathers = next(3) == 0;
            for (n, diff) in &changes {
                let part = &mut postings[usize::from(if gathers { *diff > 0 } else { n % 3 == 0 })];
                keys(*n).into_iter().for_each(|key| part.key(key));
                let place = (!own(n)).then_some(u32::try_from(*n).unwrap());
                part.sketch_at(place, head(*n), *diff, true);
            }
            let [rest, begins] = &mut postings;
            if gathers {
                index.gather(std::mem::take(begins));
            }
            // Words of different parity are rejected.
            index.apply(
                [std::mem::take(rest), std::mem::take(begins)],
                |a, b, _| a % 2 == b % 2,
                |pair, diff| {
                    assert!(diff != 0);
                    *met.entry(pair).or_default() += diff;
                },
            );
            met.retain(|_, count| *count != 0);

            let mut blocks: BTreeMap<HotPlace, BTreeSet<SketchId>> = BTreeMap::new();
            alive.iter().for_each(|n| {
                keys(*n).into_iter().for_each(|key| {
                    blocks.entry((key, realm_of(*n))).or_default().insert(id(*n));
                });
            });
            let names: BTreeMap<SketchId, u64> = alive.iter().map(|n| (id(*n), *n)).collect();
            let mut expected: BTreeMap<Pair<SketchId>, isize> = BTreeMap::new();
            for pair in blocks.values().flat_map(|members| meetings(members, rule)) {
                if names[pair.lo()] % 2 == names[pair.hi()] % 2 {
                    *expected.entry(pair).or_default() += 1;
                }
            }
            assert_eq!(met, expected, "{rule:?}, step {step}");

            // A query meets exactly the sketches that it would meet if it were added; without a realm, to
            // each.
            for n in (0..40).filter(|n| n % 7 == step % 7) {
                let is_in_all = n % 2 == 0;
                let of = if is_in_all { None } else { realm_of(n) };
                let with_it = |key: BlockKey| {
                    let in_all = (0..realms).map(|realm| Some(Realm::try_from(realm).unwrap()));
                    let places =
                        in_all.filter(move |_| is_in_all).chain([of]).map(move |in_realm| (key, in_realm));
                    places.flat_map(|place| {
                        let mut members = blocks.get(&place).cloned().unwrap_or_default();
                        members.insert(id(n));
                        meetings(&members, rule)
                    })
                };
                let its = keys(n).into_iter().flat_map(with_it).collect::<BTreeSet<_>>();
                let other = |pair: Pair<SketchId>| match (*pair.lo() == id(n), *pair.hi() == id(n)) {
                    (true, _) => Some(*pair.hi()),
                    (_, true) => Some(*pair.lo()),
                    _ => None,
                };
                let worth = |with: &SketchId| names[with] % 2 == n % 2;
                let would: BTreeSet<_> = its.into_iter().filter_map(other).filter(worth).collect();
                let mut found = Vec::new();
                let asked = SketchHead { realm: of, ..head(n) };
                index.visit(&keys(n), asked, |a, b| a % 2 == b % 2, |with| found.push(with));
                visited[usize::from(alive.contains(&n))] += found.len();
                found.sort_unstable();
                assert_eq!(found, would.into_iter().collect::<Vec<_>>(), "{rule:?}, step {step}");
            }

            let before = hot.clone();
            for (place, block) in index.hot_blocks() {
                match block {
                    HotChange::Hot(block) => drop(hot.insert(place, block)),
                    HotChange::Size(sketches) => hot.get_mut(&place).unwrap().sketches = sketches,
                    HotChange::Cooled => drop(hot.remove(&place)),
                }
            }
            let named: BTreeMap<HotPlace, HotBlock> = (blocks.iter())
                .filter(|(_, members)| members.len() > cap)
                .map(|(place, members)| {
                    let mut first = ranked(members, rule).into_iter();
                    let (example, other) = (first.next().unwrap(), first.next());
                    let sketches = members.len();
                    (*place, HotBlock { sketches, example, other, document: None, beside: None })
                })
                .collect();
            assert_eq!(hot, named);
            got_hot += hot.keys().filter(|place| !before.contains_key(*place)).count();
            cooled += before.keys().filter(|place| !hot.contains_key(*place)).count();
            let changed = |(place, block): &(&HotPlace, &HotBlock)| {
                before.get(*place).is_some_and(|b| b.example != block.example)
            };
            led += hot.iter().filter(changed).count();
        }
        assert!(cap > 8 || (got_hot > 5 && cooled > 5 && led > 20), "{rule:?}: {got_hot} {cooled} {led}");
        let may_meet = cap > 1 || leaders > 0;
        assert!(visited.iter().all(|times| (*times > 10) == may_meet), "{rule:?}: {visited:?} were met");
        assert_eq!(index.slots.len().0, alive.iter().filter(|n| own(n)).count());
        assert!(index.slots.len().1 <= 80, "slots are used again");
    }
}

/// By distance, near sketches of a realm meet in blocks of any size, scanned or searched: changes accumulate
/// to the definition, and a query without a realm meets those of all realms.
#[test]
fn near_ones_meet_however_large_a_block_is() {
    for (scan_limit, realms) in [(0, 1), (1, 1), (6, 1), (20, 1), (1000, 1), (0, 3), (8, 2), (1000, 4)] {
        let near = |common| Some(NearRule { distance: 3, common });
        let rules = vec![
            (HotRule::NEVER, near(0)),
            (HotRule::NEVER, near(0xffff)),
            (HotRule { cap: 4, leaders: 1, ..HotRule::NEVER }, None),
        ];
        let source = SketchSource::<NoSketches>::Index;
        let mut index = BlockIndex::with(rules.clone(), scan_limit, source, 0, realms > 1);
        let realm_of = |n: u64| (realms > 1).then_some(Realm::try_from(n % realms).unwrap());
        let word =
            |n: u64| 0x1234 | (mix(n % 5) ^ 1 << (16 + mix(n) % 48) ^ 1 << (16 + mix(n ^ 99) % 48)) << 16;
        let keys = |n: u64| {
            let key = |table: u16, hash: u64| BlockKey::new(table, hash);
            [key(0, n % 3), key(1, 7), key(2, n % 4)]
        };
        let mut alive: BTreeSet<u64> = BTreeSet::new();
        let mut met: BTreeMap<Pair<SketchId>, isize> = BTreeMap::new();
        let (mut most, mut visited) = (0, 0);
        for step in 0..400_u64 {
            let mut postings = Postings::default();
            let mut changed = BTreeSet::new();
            for turn in 0..mix(step) % 12 {
                let n = mix(step << 8 | turn) % 60;
                // Grows, shrinks and grows again.
                let comes = mix(n ^ step) % 4 < [3, 1, 3, 0][(step / 100) as usize];
                if comes == alive.contains(&n) || !changed.insert(n) {
                    continue;
                }
                keys(n).into_iter().for_each(|key| postings.key(key));
                let head = SketchHead { id: id(n), word: word(n), realm: realm_of(n) };
                postings.sketch_at(None, head, if comes { 1 } else { -1 }, true);
                if comes {
                    alive.insert(n)
                } else {
                    alive.remove(&n)
                };
            }
            index.apply([postings], |_, _, _| true, |pair, diff| *met.entry(pair).or_default() += diff);
            met.retain(|_, count| *count != 0);
            most = most.max(alive.len());

            let mut blocks: BTreeMap<HotPlace, BTreeSet<SketchId>> = BTreeMap::new();
            let names: BTreeMap<SketchId, u64> = alive.iter().map(|n| (id(*n), *n)).collect();
            for n in &alive {
                for key in keys(*n) {
                    blocks.entry((key, realm_of(*n))).or_default().insert(id(*n));
                }
            }
            let mut expected: BTreeMap<Pair<SketchId>, isize> = BTreeMap::new();
            for ((key, _), members) in &blocks {
                let (rule, its_near) = rules[usize::from(key.table)];
                let meets = |pair: &Pair<SketchId>| {
                    its_near.is_none_or(|n| n.meet(word(names[pair.lo()]), word(names[pair.hi()])))
                };
                for pair in meetings(members, rule).into_iter().filter(meets) {
                    *expected.entry(pair).or_default() += 1;
                }
            }
            assert_eq!(met, expected, "{scan_limit}, step {step}");

            let n = 60 + step % 9;
            let mut found = Vec::new();
            let head = SketchHead { id: id(n), word: word(n), realm: None };
            index.visit(&keys(n)[..2], head, |_, _| true, |with| found.push(with));
            found.sort_unstable();
            let all = names.iter().filter(|(_, other)| (word(**other) ^ word(n)).count_ones() <= 3);
            assert_eq!(found, all.map(|(id, _)| *id).collect::<Vec<_>>(), "{scan_limit}, step {step}");
            visited += found.len();
        }
        assert!(most > 40 && alive.is_empty() && visited > 100, "{most} {visited}");
    }
}

/// A block of 5,000 fingerprints with 26 bits in common: a search reads few of them, and all meetings are
/// retracted after all have left.
#[test]
fn a_large_block_by_distance_is_cheap() {
    let near = NearRule { distance: 3, common: 0x3ff_ffff };
    let mut index = BlockIndex::with_rules(vec![(HotRule::NEVER, Some(near))], SCAN_LIMIT);
    let (mut read, mut sum) = (0_u64, 0);
    for (numbers, diff) in [(0..5000, 1), (0..5000, -1)] {
        for n in numbers {
            let mut postings = Postings::default();
            postings.key(BlockKey::new(0, 7));
            postings.sketch(id(n), mix(n) & !near.common, diff);
            let worth = |_, _, _| {
                read += 1;
                true
            };
            index.apply([postings], worth, |_, meetings| sum += meetings);
        }
    }
    assert_eq!(sum, 0);
    // Scans would read 25 million, in both directions together.
    assert!(read < 2_000_000, "{read} were read");
}

/// A block of 20,000: few meetings for each change, with changes of leaders included, and all of them are
/// retracted in the end.
#[test]
fn a_large_family_is_cheap_in_any_order() {
    let rule = HotRule { cap: 64, leaders: 4, ..HotRule::NEVER };
    let mut index = BlockIndex::new(1, rule);
    let (mut told, mut sum) = (0_usize, 0);
    let mut apply = |numbers: &[u64], change| {
        for few in numbers.chunks(50) {
            let mut postings = Postings::default();
            for n in few {
                postings.key(BlockKey::new(0, 7));
                postings.sketch(id(*n), 0, change);
            }
            index.apply(
                [postings],
                |_, _, _| true,
                |_, diff| {
                    told += 1;
                    sum += diff;
                },
            );
        }
    };
    let n = 20_000;
    let all: Vec<u64> = (0..n).collect();
    apply(&all, 1);
    let mut random = all;
    random.sort_unstable_by_key(|number| mix(*number));
    apply(&random, -1);
    // Expected: four for each addition or removal, and as many again for changes of leaders (n pairs
    // each, at leaders / n of the changes, in both directions).
    assert_eq!(sum, 0);
    assert!(told < 2 * 20_000 * 4 * 5, "{told} candidates came or went");
}

/// A table whose members do not meet.
#[derive(Debug)]
struct OneSided;

impl Blocking for OneSided {
    fn keys(&self, _: SketchRef<'_>, _: &mut Vec<BlockKey>) {
        unreachable!("the test has the keys")
    }

    fn tables(&self) -> usize {
        1
    }

    fn rule(&self, _: u16) -> HotRule {
        HotRule::NEVER
    }

    fn is_one_sided(&self) -> bool {
        true
    }
}

/// Members do not meet each other; a sketch that is looked up meets each member once for each shared block,
/// wherever it is in an epoch, and with the opposite sign when it ends.
#[test]
fn sketches_are_looked_up_among_members_that_do_not_meet() {
    let mut index = BlockIndex::for_blocking(&OneSided);
    let mut apply = |sketches: &[(u64, &[u64], i8, bool)]| {
        let mut postings = Postings::default();
        for (n, keys, diff, enters) in sketches {
            keys.iter().for_each(|key| postings.key(BlockKey::new(0, *key)));
            let head = SketchHead { id: id(*n), word: *n, realm: None };
            postings.sketch_at(None, head, *diff, *enters);
        }
        let mut met = BTreeMap::new();
        index.apply([postings], |_, _, _| true, |pair, diff| *met.entry(pair).or_default() += diff);
        met
    };
    let pair = |a, b| Pair::new(id(a), id(b)).unwrap();
    let begun = apply(&[
        (9, &[1, 2, 3, 7], 1, false),
        (1, &[1, 2], 1, true),
        (2, &[1, 4], 1, true),
        (8, &[4, 7], 1, false),
        (3, &[5], 1, true),
    ]);
    let expected = [(pair(9, 1), 2), (pair(9, 2), 1), (pair(8, 2), 1)];
    assert_eq!(begun, BTreeMap::from(expected));
    assert_eq!(apply(&[(9, &[1, 2, 3, 7], -1, false)]), [(pair(9, 1), -2), (pair(9, 2), -1)].into());
    assert_eq!(apply(&[(7, &[5, 6], 1, false)]), [(pair(7, 3), 1)].into());
}
