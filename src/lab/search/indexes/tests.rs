//! Every index compared with brute force: exactly the ids within the radius, each once.

use std::collections::BTreeSet;

use super::super::measured::{neighbour, random};
use super::batch::{matches, pairs};
use super::live::LiveGroups;
use super::*;
use dupflow_core::block::hamming::Selection;
use dupflow_core::hash::mix;

/// Random fingerprints. Every other one is a neighbour of an earlier one, at a distance of up to twice the
/// radius; some are equal.
fn corpus(bits: usize, radius: usize, n: usize, seed: u64) -> Fingerprints {
    let fresh = random(bits, n, seed);
    let mut corpus = Fingerprints::new(bits);
    for (id, words) in fresh.iter() {
        if id % 2 == 0 {
            corpus.push(words);
            continue;
        }
        let r = mix(seed ^ u64::from(id) << 32);
        let origin = u32::try_from(r % u64::from(id)).unwrap();
        let flips = (r >> 32) as usize % (2 * radius + 2);
        let near = neighbour(corpus.get(origin), bits, flips.min(bits), r);
        corpus.push(&near);
    }
    corpus
}

fn brute_force(corpus: &Fingerprints, query: &[u64], radius: usize) -> Vec<u32> {
    let near = |(_, words): &(u32, &[u64])| {
        query.iter().zip(*words).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>() as usize <= radius
    };
    corpus.iter().filter(near).map(|(id, _)| id).collect()
}

/// Designs of every kind, small and large.
fn designs(bits: usize, radius: usize) -> Vec<Design> {
    let kinds = [1, 2, radius, radius + 1, radius + 2, radius + 3, radius + 5].into_iter().flat_map(|n| {
        [
            Kind::OneLevel { blocks: n },
            Kind::TwoLevel { sub_blocks: n },
            Kind::MultiIndex { blocks: n },
            Kind::Groups { surplus: n },
            Kind::Conjunctions { surplus: n },
        ]
    });
    kinds
        .chain([Kind::Scan])
        .filter_map(|kind| Design::new(bits, radius, kind).ok())
        // Excludes designs that would take long.
        .filter(|design| design.estimate(1000, dupflow_core::block::hamming::Form::Index).probes < 3000.0)
        .collect()
}

const CASES: [(usize, usize, usize); 12] = [
    (1, 0, 10),
    (7, 2, 60),
    (16, 2, 200),
    (32, 1, 500),
    (64, 0, 300),
    (64, 3, 1000),
    (64, 9, 300),
    (100, 10, 200),
    (128, 5, 500),
    (129, 1, 200),
    (400, 20, 300),
    (64, 3, 0),
];

#[test]
fn every_index_finds_what_brute_force_finds() {
    for (bits, radius, n) in CASES {
        let corpus = corpus(bits, radius, n, 11);
        let strangers = random(bits, 20, 12);
        for design in designs(bits, radius) {
            let mut index = index(&design, &corpus).unwrap();
            let mut found = vec![99];
            for (_, query) in corpus.iter().take(60).chain(strangers.iter()) {
                let work = index.within(query, &mut found);
                assert_eq!(
                    found,
                    brute_force(&corpus, query, radius),
                    "{bits} bits, radius {radius}: {design}"
                );
                assert!(work.verified <= work.entries && found.len() as u64 <= work.verified);
            }
        }
    }
}

#[test]
fn batches_find_every_pair_once() {
    for (bits, radius, n) in CASES {
        let (corpus, queries) = (corpus(bits, radius, n, 21), corpus(bits, radius, n / 2, 21));
        let mut within = BTreeSet::new();
        let mut between = BTreeSet::new();
        for (a, words) in corpus.iter() {
            within.extend(brute_force(&corpus, words, radius).into_iter().filter(|b| a < *b).map(|b| (a, b)));
        }
        for (a, words) in queries.iter() {
            between.extend(brute_force(&corpus, words, radius).into_iter().map(|b| (a, b)));
        }
        for design in designs(bits, radius).iter().filter(|design| design.keys() < 500) {
            let mut found = Vec::new();
            pairs(design, &corpus, |near| found.push((near.a.min(near.b), near.a.max(near.b)))).unwrap();
            assert_eq!(found.len(), within.len(), "{design}");
            assert_eq!(BTreeSet::from_iter(found), within, "{bits} bits, radius {radius}: {design}");
            let mut matched = Vec::new();
            matches(design, &queries, &corpus, |near| matched.push((near.a, near.b))).unwrap();
            assert_eq!(matched.len(), between.len(), "{design}");
            assert_eq!(BTreeSet::from_iter(matched), between, "{bits} bits, radius {radius}: {design}");
        }
    }
}

#[test]
fn a_pair_has_its_smaller_id_first_and_its_distance() {
    let corpus = corpus(64, 3, 500, 5);
    let design = Design::new(64, 3, Kind::OneLevel { blocks: 5 }).unwrap();
    let mut some = false;
    pairs(&design, &corpus, |near| {
        some = true;
        assert!(near.a < near.b);
        assert_eq!(near.distance, (corpus.get(near.a)[0] ^ corpus.get(near.b)[0]).count_ones() as usize);
    })
    .unwrap();
    assert!(some);
}

/// Ranges of equal keys that are longer than a piece of the directory, as with texts from one template.
#[test]
fn crowded_prefixes_are_found() {
    let mut crowded = Fingerprints::new(64);
    for i in 0..2000u64 {
        crowded.push(&[mix(i) & 0x0000_0f00_0000_00ff | 0xabcd << 48]);
    }
    for design in designs(64, 3) {
        let mut index = index(&design, &crowded).unwrap();
        let mut found = Vec::new();
        for (_, query) in crowded.iter().take(20) {
            index.within(query, &mut found);
            assert_eq!(found, brute_force(&crowded, query, 3), "{design}");
        }
    }
}

/// Groups are added at the end and dropped anywhere. After each change the ids found equal those of a new
/// index of the present groups, of a static index of the joined fingerprints, and of brute force.
#[test]
fn groups_come_and_go() {
    let (widths, n) = ([7, 11, 1, 64, 6, 9, 13, 5, 8], 300);
    // Copies with some flipped bits in all groups.
    let whole = corpus(widths.iter().sum(), 6, n, 41);
    let columns: Vec<(usize, Vec<u64>)> = widths
        .into_iter()
        .scan(0, |start, width| {
            *start += width;
            let bits = Selection::from(*start - width..*start);
            Some((width, whole.iter().map(|(_, words)| bits.key(words)).collect()))
        })
        .collect();
    let mut live = LiveGroups::new(n);
    let mut present: Vec<usize> = Vec::new();
    let mut near = 0;
    for step in 0..24 {
        let absent = (0..columns.len()).find(|group| !present.contains(group));
        match absent.filter(|_| step % 3 != 2 || present.is_empty()) {
            Some(group) => {
                let (width, values) = columns[group].clone();
                live.add(width, values);
                present.push(group);
            }
            None => {
                let at = usize::try_from(mix(step) % present.len() as u64).unwrap();
                live.drop_group(at);
                present.remove(at);
            }
        }
        if present.is_empty() {
            continue;
        }
        let mut anew = LiveGroups::new(n);
        present.iter().for_each(|group| anew.add(columns[*group].0, columns[*group].1.clone()));
        let bits = anew.bits();
        assert_eq!((live.bits(), live.groups()), (bits, present.len()));
        let mut joined = Fingerprints::new(bits);
        for id in 0..n {
            joined.push(&join(present.iter().map(|group| (columns[*group].0, columns[*group].1[id])), bits));
        }
        for radius in [0, 1, 3, 8] {
            if radius >= bits {
                continue;
            }
            let surplus = present.len().saturating_sub(radius);
            let fixed = Design::new(bits, radius, Kind::Groups { surplus });
            let mut fixed = fixed.ok().map(|design| index(&design, &joined).unwrap());
            let (mut found, mut others) = (Vec::new(), Vec::new());
            for id in (0..n).step_by(17) {
                let query: Vec<u64> = present.iter().map(|group| columns[*group].1[id]).collect();
                let words = joined.get(u32::try_from(id).unwrap());
                let work = live.within(&query, radius, &mut found);
                assert_eq!(found, brute_force(&joined, words, radius), "step {step}, radius {radius}");
                assert_eq!(work, anew.within(&query, radius, &mut others));
                assert_eq!(found, others);
                if let Some(fixed) = &mut fixed {
                    fixed.within(words, &mut others);
                    assert_eq!(found, others);
                }
                near += found.len() - 1;
            }
        }
    }
    assert!(near > 1000, "{near} neighbours were there to be found");
}

/// Concatenates values, the first one lowest.
fn join(values: impl Iterator<Item = (usize, u64)>, bits: usize) -> Vec<u64> {
    let mut words = vec![0; bits.div_ceil(64)];
    let mut at = 0;
    for (width, value) in values {
        for bit in 0..width {
            words[at / 64] |= (value >> bit & 1) << (at % 64);
            at += 1;
        }
    }
    words
}

/// Entries read on uniform fingerprints: the estimate, within five standard deviations of a Poisson count.
#[test]
fn entries_are_as_many_as_estimated() {
    let corpus = random(64, 20_000, 31);
    let queries = random(64, 200, 32);
    for kind in [
        Kind::OneLevel { blocks: 4 },
        Kind::OneLevel { blocks: 5 },
        Kind::MultiIndex { blocks: 3 },
        Kind::Groups { surplus: 3 },
        Kind::Groups { surplus: 2 },
    ] {
        let design = Design::new(64, 3, kind).unwrap();
        let mut index = index(&design, &corpus).unwrap();
        let mut total = SearchWork::default();
        for (_, query) in queries.iter() {
            total += index.within(query, &mut Vec::new());
        }
        let expected = design.estimate(20_000, dupflow_core::block::hamming::Form::Index);
        let count = expected.entries * 200.0;
        assert!(
            (total.entries as f64 - count).abs() < 5.0 * count.sqrt() + 1.0,
            "{design}: {total:?} {count}"
        );
        assert!((total.probes as f64 - expected.probes * 200.0).abs() < 0.5, "{design}");
    }
}
