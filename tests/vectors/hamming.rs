//! Golden vectors of blocking by Hamming distance: thresholds, designs, their choice, and searches. Each file
//! states its content. Counts are exact, expectations within 1e-12.

use std::collections::{BTreeMap, BTreeSet};

use dupflow::core::block::hamming::optimiser::{Costs, Workload};
use dupflow::core::block::hamming::{Design, DesignKind, DesignUse, HammingTables, binomial, radius, widths};
use dupflow::core::block::{BlockKey, Blocking, HotRule};
use dupflow::core::sketch::SketchRef;
use dupflow::lab::search::indexes::{Fingerprints, batch, index};
use serde_json::Value;

use crate::read::{cases, count, counts};

fn decimal(value: &Value) -> f64 {
    value.as_str().unwrap().parse().unwrap()
}

#[track_caller]
fn close(found: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found:e}, expected {expected:e}");
}

#[test]
fn hamming_threshold() {
    for case in cases("hamming_threshold") {
        assert_eq!(radius(count(&case["k"]), decimal(&case["r"])), count(&case["r_h"]), "{case}");
    }
}

fn design(case: &Value) -> Design {
    let kind = match case["kind"].as_str().unwrap() {
        "one_level" => DesignKind::OneLevel { blocks: count(&case["blocks"]) },
        "two_level" => DesignKind::TwoLevel { sub_blocks: count(&case["sub_blocks"]) },
        "multi_index_hashing" => DesignKind::MultiIndex { blocks: count(&case["tables"]) },
        other => panic!("{other}"),
    };
    Design::new(count(&case["f"]), count(&case["k"]), kind).unwrap()
}

#[test]
fn manku_designs() {
    for case in cases("manku_designs") {
        let design = design(&case);
        let blocks: Vec<usize> = design.blocks().iter().map(ExactSizeIterator::len).collect();
        assert_eq!(blocks, counts(&case["widths"]), "{case}");
        assert_eq!(design.tables(), case["tables"].as_u64().unwrap(), "{case}");
        if let Some(histogram) = case["prefix_histogram"].as_object() {
            let expected: BTreeMap<usize, u64> =
                histogram.iter().map(|(bits, n)| (bits.parse().unwrap(), n.as_u64().unwrap())).collect();
            assert_eq!(design.prefixes(), expected, "{case}");
            let ends = (count(&case["p_min"]), count(&case["p_max"]));
            assert_eq!((*expected.first_key_value().unwrap().0, *expected.last_key_value().unwrap().0), ends);
        } else {
            let radii: Vec<usize> = (0..blocks.len()).map(|block| design.block_radius(block)).collect();
            assert_eq!(radii, counts(&case["radius"]), "{case}");
            let one = design.estimate(1, DesignUse::Index);
            close(one.probes, &case["probes"]);
            close(one.candidates, &case["candidates_per_n"]);
        }
        for (d, expected) in case["expected_candidates_all_tables"].as_object().unwrap() {
            let n = 1 << d.parse::<u32>().unwrap();
            close(design.estimate(n, DesignUse::Index).candidates, expected);
        }
    }
}

#[test]
fn manku_optimizer() {
    for case in cases("manku_optimizer") {
        let workload = Workload {
            bits: count(&case["f"]),
            radius: count(&case["k"]),
            documents: case["n"].as_u64().unwrap(),
            budget_bytes: case["memory_budget_bytes"].as_u64().unwrap(),
            form: DesignUse::Index,
            costs: Costs { probe: 1.0, entry: 0.05 },
        };
        let choice = &case["choice"];
        let Some(best) = workload.best() else {
            assert!(choice.is_null(), "{case}");
            continue;
        };
        let mut expected = choice.clone();
        (expected["f"], expected["k"]) = (case["f"].clone(), case["k"].clone());
        assert_eq!(best.design, design(&expected), "{case}");
        assert_eq!(best.design.tables(), choice["tables"].as_u64().unwrap());
        assert_eq!(*best.design.prefixes().first_key_value().unwrap().0, count(&choice["p_min"]), "{case}");
        close(best.estimate.candidates, &choice["expected_candidates"]);
        close(best.estimate.bytes, &choice["bytes"]);
        close(best.cost, &choice["cost"]);
    }
}

#[test]
fn alg_g_h() {
    for case in cases("alg_g_h") {
        assert_eq!(case["valid"], true);
        let (bits, n) = (count(&case["k"]), case["n"].as_u64().unwrap());
        let (r_h, surplus) = (radius(bits, decimal(&case["r"])), count(&case["c"]));
        assert_eq!(r_h, count(&case["r_h"]), "{case}");
        let lists = Design::new(bits, r_h, DesignKind::Groups { surplus }).unwrap();
        let groups: Vec<usize> = lists.blocks().iter().map(ExactSizeIterator::len).collect();
        assert_eq!(groups, widths(bits, count(&case["m"])));
        if !case["group_widths"].is_null() {
            assert_eq!(groups, counts(&case["group_widths"]), "{case}");
        }
        let narrow = *groups.last().unwrap();
        assert_eq!(narrow, count(&case["narrow_width"]));
        assert_eq!(groups.iter().filter(|width| **width > narrow).count(), count(&case["wide_groups"]));
        assert_eq!(lists.surplus(), count(&case["algH_min_count"]));
        let estimate = lists.estimate(n, DesignUse::Index);
        close(estimate.entries, &case["algH_posting_entries_read_expected"]);
        close(estimate.entries / groups.len() as f64, &case["n_g_mean_integer_widths"]);
        close(estimate.candidates, &case["expected_random_candidates_algH"]);
        let choices = Design::new(bits, r_h, DesignKind::Conjunctions { surplus }).unwrap();
        let combinations: u64 = case["algG_combinations_C_m_rh"].as_str().unwrap().parse().unwrap();
        assert_eq!(choices.keys(), combinations, "{case}");
        assert_eq!(binomial(groups.len(), r_h), combinations, "{case}");
        assert_eq!(choices.surplus(), count(&case["algG_lookups_per_combination"]));
    }
}

/// Hexadecimal, up to 128 bits, as words.
fn words(value: &Value, bits: usize) -> Vec<u64> {
    let number = u128::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    let low = u64::try_from(number & u128::from(u64::MAX)).unwrap();
    let high = u64::try_from(number >> 64).unwrap();
    [low, high][..bits.div_ceil(64)].into()
}

/// Every design for these fingerprints that has a reasonable size.
fn designs(bits: usize, radius: usize) -> Vec<Design> {
    let kinds = (1..=bits).flat_map(|n| {
        [
            DesignKind::OneLevel { blocks: n },
            DesignKind::TwoLevel { sub_blocks: n },
            DesignKind::MultiIndex { blocks: n },
            DesignKind::Groups { surplus: n },
            DesignKind::Conjunctions { surplus: n },
        ]
    });
    let found: Vec<Design> = kinds
        .chain([DesignKind::Scan])
        .filter_map(|kind| Design::new(bits, radius, kind).ok())
        .filter(|design| design.keys() <= 1500 && design.estimate(100, DesignUse::Index).probes < 50_000.0)
        .collect();
    assert!(found.len() > 5);
    found
}

#[test]
fn hamming_search() {
    for case in cases("hamming_search") {
        let (bits, radius) = (count(&case["f_bits"]), count(&case["radius"]));
        let mut corpus = Fingerprints::new(bits);
        for fingerprint in case["fingerprints"].as_array().unwrap() {
            corpus.push(&words(fingerprint, bits));
        }
        let queries: Vec<(Vec<u64>, Vec<usize>)> = case["queries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|q| (words(&q["query"], bits), counts(&q["ids_within_k"])))
            .collect();
        let expected: BTreeSet<(u32, u32, usize)> = case["all_pairs_i_j_distance"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let row = counts(row);
                (u32::try_from(row[0]).unwrap(), u32::try_from(row[1]).unwrap(), row[2])
            })
            .collect();
        for design in designs(bits, radius) {
            let mut index = index(&design, &corpus).unwrap();
            let mut found = Vec::new();
            for (query, ids) in &queries {
                index.within(query, &mut found);
                assert!(found.iter().map(|id| *id as usize).eq(ids.iter().copied()), "{design}: {found:?}");
            }
            let mut pairs = Vec::new();
            batch::pairs(&design, &corpus, |near| pairs.push((near.a, near.b, near.distance))).unwrap();
            assert_eq!(pairs.len(), expected.len(), "{design}");
            assert_eq!(BTreeSet::from_iter(pairs), expected, "{design}");
            pairs_share_blocks(&design, &corpus, &expected);
        }
    }
}

/// All pairs within the radius share a block, so the stream compares them.
fn pairs_share_blocks(design: &Design, corpus: &Fingerprints, expected: &BTreeSet<(u32, u32, usize)>) {
    let tables = HammingTables::new(design, HotRule::NEVER).unwrap();
    let keys: Vec<BTreeSet<BlockKey>> = corpus
        .iter()
        .map(|(_, words)| {
            let mut keys = Vec::new();
            tables.keys(SketchRef { words, features: &[] }, &mut keys);
            keys.into_iter().collect()
        })
        .collect();
    for (a, b, _) in expected {
        assert!(!keys[*a as usize].is_disjoint(&keys[*b as usize]), "{design}: {a} {b}");
    }
}
