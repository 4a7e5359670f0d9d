use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::hash::mix;

fn places(index: &HashIndex, hash: u64) -> BTreeSet<u32> {
    index.places(hash).collect()
}

impl HashIndex {
    /// The share of the homes that hold an entry.
    fn load(&self) -> f64 {
        let sum = |each: fn(&IndexPart) -> u64| self.parts.iter().map(each).sum::<u64>() as f64;
        sum(|part| part.len) / sum(|part| part.homes)
    }

    /// Entries ascend, each is at or after its home, and the last place is a gap.
    fn check(&self) {
        for part in &self.parts {
            let entries: Vec<_> = part.entries.iter().filter(|e| **e != GAP).map(|e| e >> 32).collect();
            assert!(entries.is_sorted());
            assert_eq!(entries.len() as u64, part.len);
            assert!(part.entries.iter().enumerate().all(|(at, e)| *e == GAP || part.home(*e) <= at));
            assert!(part.entries.last().is_none_or(|last| *last == GAP));
        }
    }
}

/// Compared with a map of sets: random inserts and removals, with hashes that are uniform, ascending, few
/// (many places for each), or crowded into one part at either end.
#[test]
fn an_index_is_a_multimap() {
    // The inverse of the multiplication: hashes whose keys are crowded.
    let inverse = (0..6).fold(crate::hash::PI[0], |i, _| {
        i.wrapping_mul(2_u64.wrapping_sub(crate::hash::PI[0].wrapping_mul(i)))
    });
    assert_eq!(inverse.wrapping_mul(crate::hash::PI[0]), 1);
    let hashes: [fn(u64) -> u64; 5] =
        [mix, |n| n << 40, |n| n % 7, |n| (n % 300) << 32, |n| !((n % 300) << 32)];
    for (kind, of) in hashes.into_iter().enumerate() {
        let hash = |n| if kind < 3 { of(n) } else { of(n).wrapping_mul(inverse) };
        let mut index = HashIndex::default();
        let mut map: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        assert_eq!(places(&index, hash(0)), BTreeSet::new());
        for step in 0..20_000_u32 {
            let n = mix(u64::from(step)) % 2000;
            let of_hash = map.entry(hash(n)).or_default();
            // First the index grows, then it shrinks, then it grows again.
            if mix(u64::from(step) ^ 77) % 5 < [4, 1, 3][step as usize / 7000] {
                index.insert(hash(n), step);
                of_hash.insert(step);
            } else if let Some(place) = of_hash.pop_first() {
                index.remove(hash(n), place);
            }
            assert_eq!(places(&index, hash(n)), *of_hash, "hashes {kind}");
        }
        index.check();
        assert!(map.iter().all(|(known, of_hash)| places(&index, *known) == *of_hash));
    }
}

#[test]
#[should_panic(expected = "a place is removed that the hash has")]
fn what_is_not_there_is_not_removed() {
    let mut index = HashIndex::default();
    index.insert(1, 1);
    index.remove(1, 2);
}

/// At any number of entries the index is as full as the rule says, and no insert copies more than about 1 /
/// 64 of it.
#[test]
fn an_index_grows_a_part_at_a_time() {
    let mut index = HashIndex::default();
    let mut homes: Vec<u64> = vec![0; PARTS];
    for n in 0..200_000_u32 {
        index.insert(mix(u64::from(n)), n);
        if n % 97 == 0 && n > 20_000 {
            assert!((0.72..0.80).contains(&index.load()), "{} of {n}", index.load());
        }
        if n % 50 == 0 && n > 20_000 {
            let now: Vec<u64> = index.parts.iter().map(|part| part.homes).collect();
            let grown = now.iter().zip(&homes).filter(|(now, before)| now != before).count();
            assert!(grown <= 6 || homes[0] == 0 || n <= 20_050, "{grown} parts grew in 50 inserts at {n}");
            homes = now;
        }
    }
    index.check();
}
