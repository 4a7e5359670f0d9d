use std::collections::{BTreeMap, BTreeSet};

use super::bucket::WORK;
use super::store::RUN;
use super::*;
use crate::hash::mix;

type Table = PackedTables<40>;

fn spread(n: u64) -> u64 {
    mix(n) >> 24
}

/// Entries ascend, each bucket has the hashes that belong to it, and all are counted. Every cell has an
/// owner.
fn check<const BITS: u32>(table: &PackedTables<BITS>) {
    let mut cells = BTreeSet::new();
    for shape in &table.tables {
        assert_eq!(shape.runs.len(), shape.count.div_ceil(RUN));
        let mut len = 0;
        for number in 0..shape.count {
            let bits = table.bits() - shape.depth(number);
            let bucket = table.store.bucket(shape.in_store(number), bits);
            assert!(bucket.entries().is_sorted_by_key(|(remainder, _)| remainder));
            assert!(bucket.entries().all(|(remainder, _)| remainder >> bits == 0));
            len += bucket.len();
            cells.extend(table.store.cell_of(shape.in_store(number)));
        }
        assert_eq!(len, shape.len);
    }
    table.store.check_cells(&cells);
    for number in 0..table.tables.len() {
        assert!(
            table.iter(number).all(|(hash, value)| table.values(number, hash).any(|found| found == value))
        );
    }
}

/// Compared with a map: random inserts and removals, hashes uniform or crowded, announced or not, values of
/// few bits and of many.
#[test]
fn a_table_is_a_map() {
    let top = (1 << 40) - 1;
    let hashes: [fn(u64) -> u64; 4] =
        [spread, |n| n % 1000, |n| (1 << 40) - 1 - n % 1000, |n| 3 << 38 | spread(n) >> 20];
    for hash in hashes {
        let (mut table, mut map) = (Table::new(1), BTreeMap::new());
        assert_eq!((table.get(0, 0), table.touch(0, top), table.entry(0, 0).value()), (None, 0, None));
        for step in 0..40_000_u32 {
            let random = mix(u64::from(step));
            let n = random % 6000;
            let value = u32::try_from(random >> 32).unwrap() >> (step % 32);
            // First the table grows, then it shrinks, then it grows again.
            if mix(u64::from(step) ^ 77) % 5 < [4, 1, 3][step as usize / 14_000] {
                if step % 3 == 0 {
                    table.reserve(0, std::iter::once(hash(n)));
                }
                table.entry(0, hash(n)).set(value);
                map.insert(hash(n), value);
            } else {
                table.entry(0, hash(n)).remove();
                map.remove(&hash(n));
            }
            assert_eq!(table.get(0, hash(n)), map.get(&hash(n)).copied());
            assert_eq!((table.len(0), table.is_empty()), (map.len(), map.is_empty()));
        }
        check(&table);
        let mut entries: Vec<_> = table.iter(0).collect();
        entries.sort_unstable();
        assert_eq!(entries, map.into_iter().collect::<Vec<_>>());
    }
}

/// Compared with a map: batches of any size beside each other in tables that grow, shrink and grow again.
#[test]
fn many_hashes_change_together() {
    let hashes: [fn(u64) -> u64; 3] = [spread, |n| n, |n| 3 << 38 | spread(n) >> 20];
    for (spreading, common) in hashes.into_iter().flat_map(|spreading| [(spreading, 0), (spreading, 3)]) {
        let mut tables = Table::with_common(2, common);
        let mut maps: [BTreeMap<u64, u32>; 2] = Default::default();
        for round in 0..120_u64 {
            let table = usize::try_from(round % 2).unwrap();
            let map = &mut maps[table];
            let size = [1, 40, 700, 9000][usize::try_from(mix(round) % 4).unwrap()];
            let batch: BTreeMap<u64, u64> = (0..size)
                .map(|n| mix(n << 8 ^ round))
                .map(|random| (spreading(random % 20_000) << common & ((1 << 40) - 1), random))
                .collect();
            let removes = [1, 9, 3][usize::try_from(round).unwrap() / 40];
            let mut met = Vec::new();
            tables.change_all(
                table,
                batch.iter().map(|(hash, random)| (*hash, *random)),
                |hash, random, value| {
                    assert_eq!(value, map.get(&hash).copied());
                    met.push(hash);
                    if mix(random) % 10 < removes {
                        None
                    } else {
                        Some(u32::try_from(random >> 32).unwrap() >> (random % 32))
                    }
                },
            );
            assert!(met.iter().eq(batch.keys()));
            for (hash, random) in batch {
                if mix(random) % 10 < removes {
                    map.remove(&hash);
                } else {
                    map.insert(hash, u32::try_from(random >> 32).unwrap() >> (random % 32));
                }
            }
            if round % 8 < 2 {
                check(&tables);
            }
            let mut entries: Vec<_> = tables.iter(table).collect();
            entries.sort_unstable();
            assert!(entries.into_iter().eq(map.iter().map(|(hash, value)| (*hash, *value))));
        }
        assert!(maps.iter().all(|map| map.len() > 3000));
        for (table, map) in maps.iter().enumerate() {
            tables.change_all(table, map.keys().map(|hash| (*hash, ())), |_, (), _| None);
        }
        check(&tables);
        assert!(tables.is_empty() && tables.bytes() < 1 << 15, "{}", tables.bytes());
    }
}

/// Compared with a map of sets: hashes with many values, as an index of equal hashes has.
#[test]
fn a_table_is_a_multimap() {
    let hashes: [fn(u64) -> u64; 4] =
        [|n| mix(n) >> 32, |n| n % 7, |n| n % 300, |n| u64::from(u32::MAX) - n % 300];
    for hash in hashes {
        let mut table = PackedTables::<32>::new(1);
        let mut map: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        for step in 0..20_000_u32 {
            let n = hash(mix(u64::from(step)) % 2000);
            let of_hash = map.entry(n).or_default();
            if mix(u64::from(step) ^ 77) % 5 < [4, 1, 3][step as usize / 7000] {
                table.insert(0, n, step);
                of_hash.insert(step);
            } else if let Some(value) = of_hash.pop_first() {
                assert!(table.remove(0, n, value) && !table.remove(0, n, value));
            }
            assert_eq!(table.values(0, n).collect::<BTreeSet<_>>(), *of_hash);
        }
        check(&table);
        assert!(map.iter().all(|(known, of)| table.values(0, *known).collect::<BTreeSet<_>>() == *of));
    }
}

/// Bits in which all hashes of a table agree are not stored.
#[test]
fn common_bits_take_no_memory() {
    let bytes = [0, 1, 3, 8].map(|common| {
        let mut table = Table::with_common(2, common);
        let hash = |n: u64| (spread(n) & !0xff) | 0x5b;
        for n in 0..50_000_u32 {
            table.entry(1, hash(n.into())).set(n);
            assert_eq!(table.get(1, hash(n.into())), Some(n));
        }
        check(&table);
        (0..50_000).for_each(|n| assert_eq!(table.get(1, hash(n)), u32::try_from(n).ok()));
        assert!(table.iter(1).all(|(stored, n)| stored >> common == hash(n.into()) >> common));
        let bytes = table.bytes();
        (0..50_000).for_each(|n| table.entry(1, hash(n)).remove());
        assert!(table.is_empty());
        check(&table);
        bytes
    });
    assert!(bytes[3] + 35_000 < bytes[0], "{bytes:?}");
}

/// A million entries in sorted batches of any size.
#[test]
fn work_is_linear_for_any_cut() {
    for cut in [1_000_000, 50_000, 1000, 10] {
        let entries = if cut == 10 { 100_000 } else { 1_000_000 };
        let mut table = Table::new(1);
        WORK.set(0);
        for start in (0..entries).step_by(usize::try_from(cut).unwrap()) {
            let mut batch: Vec<u64> = (start..start + cut).map(spread).collect();
            batch.sort_unstable();
            if table.is_many(0, batch.len()) {
                table.change_all(0, batch.iter().map(|hash| (*hash, ())), |_, (), _| Some(1));
            } else {
                table.reserve(0, batch.iter().copied());
                batch.iter().for_each(|hash| table.entry(0, *hash).set(1));
            }
        }
        let each = WORK.get() as f64 / entries as f64;
        assert!(each < MEAN as f64, "{each} entries moved or passed for each, in batches of {cut}");
    }
}

/// No insert and no removal moves more than a few buckets and a page of cells, and the bytes follow the
/// number of entries, up and down. Values count the entries, as places do.
#[test]
fn bytes_follow_the_entries() {
    let mut table = Table::new(1);
    let (mut most, mut least_bytes, mut most_bytes) = (0, f64::MAX, 0.0_f64);
    for n in 0..1_000_000_u32 {
        WORK.set(0);
        // The lowest bit is a flag of the value.
        table.entry(0, spread(n.into())).set(n << 1);
        most = most.max(WORK.get());
        if n > 400_000 && n % 5000 == 0 {
            let each = table.bytes() as f64 / table.len(0) as f64;
            (least_bytes, most_bytes) = (least_bytes.min(each), most_bytes.max(each));
        }
    }
    assert!(least_bytes > 5.8 && most_bytes < 6.6, "{least_bytes} to {most_bytes} bytes an entry");
    for n in (0..1_000_000_u32).rev() {
        WORK.set(0);
        table.entry(0, spread(n.into())).remove();
        most = most.max(WORK.get());
        if n > 2000 && n % 5000 == 0 {
            // A page of each class may be used in part.
            let bytes = table.bytes();
            assert!(bytes < 10 * n as usize + (1 << 18), "{bytes} bytes when {n} are left");
        }
    }
    // A page of cells among them.
    assert!(most < 64 * MEAN, "a change moved or passed {most} entries");
    assert!(table.is_empty() && table.bytes() < 1 << 14, "{}", table.bytes());
}

/// An index of places needs less than five bytes for 32 bits of hash, and some pages.
#[test]
fn an_index_of_places_is_small() {
    let mut table = PackedTables::<32>::new(1);
    for n in 0..500_000_u32 {
        table.insert(0, mix(n.into()) >> 32, n);
        if n > 200_000 && n % 5000 == 0 {
            let each = table.bytes() as f64 / table.len(0) as f64;
            assert!(each > 4.7 && each < 6.0, "{each} bytes an entry");
        }
    }
}

/// Hashes that differ only in their last bits are slow, but take no more memory.
#[test]
fn crowded_hashes_take_no_more_memory() {
    let mut table = Table::new(1);
    let batch = 7 << 18..(7 << 18) + 20_000;
    table.reserve(0, batch.clone());
    batch.clone().for_each(|hash| table.entry(0, hash).set(1));
    assert_eq!(table.len(0), 20_000);
    assert!(table.bytes() < 9 * 20_000, "{}", table.bytes());
}

/// Tables that grow and shrink beside each other, in the same cells: no bucket loses or gains an entry, and
/// the bytes are given back while other tables stay.
#[test]
fn tables_share_their_cells() {
    let mut tables = Table::new(3);
    let mut maps: [BTreeMap<u64, u32>; 3] = Default::default();
    for step in 0..60_000_u32 {
        let random = mix(step.into());
        let table = usize::try_from(random % 3).unwrap();
        let hash = spread(random >> 8 & 0xfff) ^ table as u64;
        // Each table grows, and shrinks at another time.
        if mix(u64::from(step) ^ 5) % 5 < [4, 1, 3][(step as usize / 12_000 + table) % 3] {
            tables.entry(table, hash).set(step >> (step % 20));
            maps[table].insert(hash, step >> (step % 20));
        } else {
            tables.entry(table, hash).remove();
            maps[table].remove(&hash);
        }
        if step % 10_000 == 0 {
            check(&tables);
        }
    }
    check(&tables);
    for (table, map) in maps.iter().enumerate() {
        let mut entries: Vec<_> = tables.iter(table).collect();
        entries.sort_unstable();
        assert!(entries.into_iter().eq(map.iter().map(|(hash, value)| (*hash, *value))));
    }
    let before = tables.bytes();
    (0..200_000).for_each(|n| tables.insert(1, spread(n), 7));
    (0..200_000).for_each(|n| assert!(tables.remove(1, spread(n), 7)));
    check(&tables);
    assert!(tables.bytes() < before + (1 << 18), "{} after {before}", tables.bytes());
}
