use std::collections::{BTreeMap, BTreeSet};

use super::bucket::WORK;
use super::*;
use crate::hash::mix;

type Table = PackedTable<40>;

fn spread(n: u64) -> u64 {
    mix(n) >> 24
}

/// Entries ascend, each bucket has the hashes that belong to it, and all are counted.
fn check<const BITS: u32>(table: &PackedTable<BITS>) {
    let buckets: Vec<_> = table.chunks.iter().flatten().collect();
    assert_eq!(buckets.len(), table.count);
    assert_eq!(buckets.iter().map(|bucket| bucket.len()).sum::<usize>(), table.len);
    for (number, bucket) in buckets.into_iter().enumerate() {
        let bits = BITS - table.depth(number);
        assert!(bucket.entries(bits).is_sorted_by_key(|(remainder, _)| remainder));
        assert!(bucket.entries(bits).all(|(remainder, _)| remainder >> bits == 0));
    }
    assert!(table.iter().all(|(hash, value)| table.values(hash).any(|found| found == value)));
}

/// Compared with a map: random inserts and removals, hashes uniform or crowded, announced or not, values of
/// few bits and of many.
#[test]
fn a_table_is_a_map() {
    let top = (1 << 40) - 1;
    let hashes: [fn(u64) -> u64; 4] =
        [spread, |n| n % 1000, |n| (1 << 40) - 1 - n % 1000, |n| 3 << 38 | spread(n) >> 20];
    for hash in hashes {
        let (mut table, mut map) = (Table::default(), BTreeMap::new());
        assert_eq!((table.get(0), table.touch(top), table.entry(0).value()), (None, 0, None));
        for step in 0..40_000_u32 {
            let random = mix(u64::from(step));
            let n = random % 6000;
            let value = u32::try_from(random >> 32).unwrap() >> (step % 32);
            // First the table grows, then it shrinks, then it grows again.
            if mix(u64::from(step) ^ 77) % 5 < [4, 1, 3][step as usize / 14_000] {
                if step % 3 == 0 {
                    table.reserve(std::iter::once(hash(n)));
                }
                table.entry(hash(n)).set(value);
                map.insert(hash(n), value);
            } else {
                table.entry(hash(n)).remove();
                map.remove(&hash(n));
            }
            assert_eq!(table.get(hash(n)), map.get(&hash(n)).copied());
            assert_eq!((table.len(), table.is_empty()), (map.len(), map.is_empty()));
        }
        check(&table);
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_unstable();
        assert_eq!(entries, map.into_iter().collect::<Vec<_>>());
    }
}

/// Compared with a map of sets: hashes with many values, as an index of equal hashes has.
#[test]
fn a_table_is_a_multimap() {
    let hashes: [fn(u64) -> u64; 4] =
        [|n| mix(n) >> 32, |n| n % 7, |n| n % 300, |n| u64::from(u32::MAX) - n % 300];
    for hash in hashes {
        let mut table = PackedTable::<32>::default();
        let mut map: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        for step in 0..20_000_u32 {
            let n = hash(mix(u64::from(step)) % 2000);
            let of_hash = map.entry(n).or_default();
            if mix(u64::from(step) ^ 77) % 5 < [4, 1, 3][step as usize / 7000] {
                table.insert(n, step);
                of_hash.insert(step);
            } else if let Some(value) = of_hash.pop_first() {
                assert!(table.remove(n, value) && !table.remove(n, value));
            }
            assert_eq!(table.values(n).collect::<BTreeSet<_>>(), *of_hash);
        }
        check(&table);
        assert!(map.iter().all(|(known, of)| table.values(*known).collect::<BTreeSet<_>>() == *of));
    }
}

/// A million entries in sorted batches of any size.
#[test]
fn work_is_linear_for_any_cut() {
    for cut in [1_000_000, 50_000, 1000, 10] {
        let entries = if cut == 10 { 100_000 } else { 1_000_000 };
        let mut table = Table::default();
        WORK.set(0);
        for start in (0..entries).step_by(usize::try_from(cut).unwrap()) {
            let mut batch: Vec<u64> = (start..start + cut).map(spread).collect();
            batch.sort_unstable();
            table.reserve(batch.iter().copied());
            batch.iter().for_each(|hash| table.entry(*hash).set(1));
        }
        let each = WORK.get() as f64 / entries as f64;
        assert!(each < 64.0, "{each} entries moved or passed for each, in batches of {cut}");
    }
}

/// No insert and no removal moves more than a few buckets, and the bytes follow the number of entries, up and
/// down. Values count the entries, as places do.
#[test]
fn bytes_follow_the_entries() {
    let mut table = Table::default();
    let (mut most, mut least_bytes, mut most_bytes) = (0, f64::MAX, 0.0_f64);
    for n in 0..1_000_000_u32 {
        WORK.set(0);
        // The lowest bit is a flag of the value.
        table.entry(spread(n.into())).set(n << 1);
        most = most.max(WORK.get());
        if n > 50_000 && n % 5000 == 0 {
            let each = table.bytes() as f64 / table.len() as f64;
            (least_bytes, most_bytes) = (least_bytes.min(each), most_bytes.max(each));
        }
    }
    assert!(least_bytes > 6.5 && most_bytes < 7.3, "{least_bytes} to {most_bytes} bytes an entry");
    for n in (0..1_000_000_u32).rev() {
        WORK.set(0);
        table.entry(spread(n.into())).remove();
        most = most.max(WORK.get());
        if n > 2000 && n % 5000 == 0 {
            let each = table.bytes() as f64 / f64::from(n);
            assert!(each < 12.0, "{each} bytes an entry when {n} are left");
        }
    }
    assert!(most < 16 * MEAN, "a change moved or passed {most} entries");
    assert!(table.is_empty() && table.bytes() < CHUNK * 32, "{}", table.bytes());
}

/// An index of places needs five bytes for 32 bits of hash.
#[test]
fn an_index_of_places_is_small() {
    let mut table = PackedTable::<32>::default();
    for n in 0..500_000_u32 {
        table.insert(mix(n.into()) >> 32, n);
        if n > 50_000 && n % 5000 == 0 {
            let each = table.bytes() as f64 / table.len() as f64;
            assert!(each > 5.4 && each < 6.2, "{each} bytes an entry");
        }
    }
}

/// Hashes that differ only in their last bits are slow, but take no more memory.
#[test]
fn crowded_hashes_take_no_more_memory() {
    let mut table = Table::default();
    let batch = 7 << 18..(7 << 18) + 20_000;
    table.reserve(batch.clone());
    batch.clone().for_each(|hash| table.entry(hash).set(1));
    assert_eq!(table.len(), 20_000);
    assert!(table.bytes() < 9 * 20_000, "{}", table.bytes());
}
