//! Every index against brute force: the ids within the radius, no more, no fewer, none twice.

use std::collections::BTreeSet;

use super::super::measured::{neighbour, random};
use super::batch::{matches, pairs};
use super::*;
use crate::hash::mix;

/// Random fingerprints, every other one a neighbour of an earlier one at a distance of up to twice the radius; some equal.
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

/// Every kind, small and large.
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
        // What takes long rather than what is refused.
        .filter(|design| design.estimate(1000, crate::block::hamming::Form::Index).probes < 3000.0)
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

/// Ranges of equal keys that are longer than a piece of a directory, as texts of one origin make them.
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
        let mut total = Work::default();
        for (_, query) in queries.iter() {
            total += index.within(query, &mut Vec::new());
        }
        let expected = design.estimate(20_000, crate::block::hamming::Form::Index);
        let count = expected.entries * 200.0;
        assert!(
            (total.entries as f64 - count).abs() < 5.0 * count.sqrt() + 1.0,
            "{design}: {total:?} {count}"
        );
        assert!((total.probes as f64 - expected.probes * 200.0).abs() < 0.5, "{design}");
    }
}
