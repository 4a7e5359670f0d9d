//! The oracle of true similarities against its definition, pair by pair.

use std::collections::BTreeSet;

use dupflow::core::doc::DocId;
use dupflow::core::oracle::pairs;
use dupflow::core::pair::Pair;
use proptest::collection::vec;
use proptest::prelude::any;

use crate::history::check;

fn id(n: usize) -> DocId {
    DocId::new(&format!("{n:03}")).unwrap()
}

fn brute_force(sets: &[Vec<u64>], floor: f64) -> Vec<(Pair<DocId>, f64)> {
    let sets: Vec<BTreeSet<u64>> = sets.iter().map(|set| set.iter().copied().collect()).collect();
    let mut found = Vec::new();
    for (i, x) in sets.iter().enumerate() {
        for (j, y) in sets.iter().enumerate().skip(i + 1) {
            let similarity = x.intersection(y).count() as f64 / x.union(y).count().max(1) as f64;
            if similarity >= floor && !x.is_empty() {
                found.push((Pair::new(id(i), id(j)).unwrap(), similarity));
            }
        }
    }
    found
}

/// Compares both; returns the number of pairs.
fn agree(sets: &[Vec<u64>], floor: f64) -> usize {
    let documents = sets.iter().enumerate().map(|(n, set)| (id(n), set.clone()));
    let found = pairs(documents, floor);
    assert_eq!(found, brute_force(sets, floor), "floor {floor}");
    found.len()
}

#[test]
fn the_floor_is_inclusive() {
    let sets = [vec![1, 2, 3, 4], vec![3, 4, 1, 2, 2], vec![1, 2], vec![2, 3, 4, 5], vec![]];
    assert_eq!(agree(&sets, 0.5), 5, "2 of 4 is exactly 0.5");
    assert_eq!(agree(&sets, 0.6), 3, "3 of 5 is exactly 0.6");
    assert_eq!(agree(&sets, 1.0), 1);
    assert_eq!(agree(&[vec![], vec![]], 0.1), 0);
}

#[test]
fn overlaps_that_rounding_could_miss() {
    // All of n features and one more: J = n / (n + 1), against floors equal to it.
    for n in 1..200_u64 {
        let sets = [(0..n).collect::<Vec<_>>(), (0..=n).collect()];
        assert_eq!(agree(&sets, n as f64 / (n + 1) as f64), 1);
    }
}

/// Edits toggle features of a base, so that all similarities occur.
#[test]
fn equals_brute_force() {
    let bases = vec(vec(0..60_u64, 0..25), 1..6);
    let edits = vec((any::<usize>(), vec(0..80_u64, 0..8)), 0..30);
    check(300, (bases, edits, 1..=20_u32), |(bases, edits, floor)| {
        let mut sets = bases.clone();
        for (base, toggled) in edits {
            let mut set: BTreeSet<u64> = bases[base % bases.len()].iter().copied().collect();
            for feature in toggled {
                if !set.remove(&feature) {
                    set.insert(feature);
                }
            }
            sets.push(set.into_iter().collect());
        }
        agree(&sets, f64::from(floor) / 20.0);
    });
}
