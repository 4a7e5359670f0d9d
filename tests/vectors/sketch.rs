//! Golden vectors of the sketches: estimators, sections and their expectations, the Cantor pairing. Each file
//! states its content and its tolerance.

use std::collections::BTreeSet;

use dupflow::core::sketch::agreement::Agreement;
use dupflow::core::sketch::bottom_k::BottomKEstimator;
use dupflow::core::sketch::estimate::{estimate, match_probability, similarity, standard_error};
use dupflow::core::sketch::fractional::{TwoWidths, WidthGroup};
use dupflow::core::sketch::oph::original_estimate;
use dupflow::core::sketch::sectional::{cantor, section};
use dupflow::core::sketch::variance;
use dupflow::core::sketch::{MinHash, SectionMode};
use dupflow::core::text::Features;
use dupflow::core::text::measures::jaccard;
use serde_json::Value;

use crate::read::{absolute, cases, count, counts, number, relative};

/// A decimal string.
fn whole(value: &Value) -> u128 {
    value.as_str().unwrap().parse().unwrap()
}

/// Two bottom-k sketches with `sample` values in their common sample, `both` of which are in both.
fn samples(size: usize, sample: usize, both: usize) -> [Vec<u64>; 2] {
    let fill = |own: u64| {
        let values = (0..sample as u64).map(|i| 2 * i).filter(|i| *i < 2 * both as u64);
        let more = (both as u64..sample as u64).filter(|i| i % 2 == own).map(|i| 2 * i);
        let mut words: Vec<u64> = values.chain(more).collect();
        words.resize(size, u64::MAX);
        words
    };
    [fill(0), fill(1)]
}

/// MinHash by explicit permutations: the image of x is entry x, from 1.
#[test]
fn minhash_permutations() {
    for case in cases("minhash_permutations") {
        let ids = |list: &Value| -> Vec<u64> { counts(list).into_iter().map(|x| x as u64).collect() };
        let sets: Vec<Vec<u64>> = case["sets"].as_array().unwrap().iter().map(ids).collect();
        let permutations: Vec<Vec<usize>> =
            case["permutations_1_based"].as_array().unwrap().iter().map(counts).collect();
        let signature = |set: &Vec<u64>| -> Vec<u64> {
            let image = |to: &Vec<usize>, x: u64| to[usize::try_from(x).unwrap() - 1] as u64;
            permutations.iter().map(|to| MinHash::component(set, |x| image(to, x))).collect()
        };
        let signatures: Vec<_> = sets.iter().map(signature).collect();
        for (made, expected) in signatures.iter().zip(case["signatures"].as_array().unwrap()) {
            assert_eq!(made, &ids(expected), "{case}");
        }
        let matches = signatures[0].iter().zip(&signatures[1]).filter(|(a, b)| a == b).count();
        assert_eq!(matches, count(&case["matches"]), "{case}");
        absolute(estimate(matches, permutations.len(), 64), &case["estimate"], 1e-12);
        absolute(jaccard(Features::set(&sets[0]), Features::set(&sets[1])), &case["jaccard"], 1e-12);
    }
}

#[test]
fn estimators() {
    let mut kinds = BTreeSet::new();
    for case in cases("estimators") {
        let (size, n) = (count(&case["K"]), |key: &str| count(&case[key]));
        kinds.insert(case["kind"].as_str().unwrap().to_owned());
        match case["kind"].as_str().unwrap() {
            "minhash" => {
                let j = estimate(n("matches"), size, 64);
                absolute(j, &case["J"], 1e-12);
                absolute(standard_error(j.clamp(0.0, 1.0), size, 64).powi(2), &case["var"], 1e-18);
            }
            "bbit" => {
                let (bits, clamped) = (n("b"), number(&case["R_clamped"]));
                absolute(estimate(n("matches"), size, bits), &case["R"], 1e-12);
                relative(standard_error(clamped, size, bits).powi(2), &case["var_at_R_clamped"], 1e-9);
            }
            "onebit" => {
                let r = estimate(size - n("hamming"), size, 1);
                absolute(r, &case["R"], 1e-12);
                absolute(match_probability(r, 1), &case["E_b"], 1e-12);
                absolute(similarity(number(&case["E_b"]), 1), &case["R"], 1e-12);
                absolute(standard_error(r, size, 1).powi(2), &case["var_at_R"], 1e-12);
            }
            "f_fractional" => {
                let part = |k, b| WidthGroup { size: n(k), bits: n(b) };
                let mixed = TwoWidths([part("k1", "b1"), part("k2", "b2")]);
                let matches = [n("matches1"), n("matches2")];
                absolute(mixed.bits(), &case["f_bits"], 1e-12);
                absolute(mixed.pooled(matches), &case["R_pooled"], 1e-12);
                absolute(estimate(matches[0], n("k1"), n("b1")), &case["R1"], 1e-12);
                absolute(estimate(matches[1], n("k2"), n("b2")), &case["R2"], 1e-12);
                let (one, two) = (number(&case["R1"]), number(&case["R2"]));
                let combined = mixed.combined(matches);
                assert!(combined >= one.min(two) - 1e-12 && combined <= one.max(two) + 1e-12, "{combined}");
            }
            "connected_bit" => {
                let run = Agreement::Run { bits: n("b"), length: n("n") };
                let r = run.similarity(n("group_matches") as f64 / n("groups") as f64);
                absolute(r, &case["R"], 1e-12);
                let variance = run.standard_error(r, n("groups")).powi(2);
                let expected = number(&case["var_delta_method"]);
                assert!((variance - expected).abs() <= 1e-9 * expected, "{variance} {expected}");
            }
            "odd_sketch" => {
                let (bits, z) = (n("n_bits"), n("hamming"));
                let j = Agreement::Odd(bits / size).similarity(1.0 - z as f64 / bits as f64);
                if case["J"].is_null() {
                    assert!(j.is_infinite() && j < 0.0, "{j}");
                } else {
                    absolute(j, &case["J"], 1e-12);
                }
            }
            "one_permutation_nonempty" => {
                let j = original_estimate(n("matches") as f64, size, n("jointly_empty"));
                assert_eq!(j.is_none(), case["J"].is_null());
                if let Some(j) = j {
                    absolute(j, &case["J"], 1e-12);
                }
            }
            "min_max" => {
                let j = estimate(n("matches"), size, 64);
                absolute(j, &case["J"], 1e-12);
                let (at, of) = (&case["var_at_a_u"], |key: &str| count(&case["var_at_a_u"][key]));
                let alpha = variance::min_max_alpha(of("u"), size);
                let truth = of("a") as f64 / of("u") as f64;
                relative(variance::of_bits(alpha, truth, size, 64), &at["var"], 1e-9);
            }
            "bottom_k" => {
                let (sample, both) = (n("sample_size"), n("in_both"));
                let [a, b] = samples(size, sample, both);
                assert_eq!(BottomKEstimator { size }.count(&a, &b), (both, sample));
                let at = &case["var_hypergeometric"];
                let j = both as f64 / sample as f64;
                absolute(j, &case["J"], 1e-12);
                absolute(variance::bottom_k(j, count(&at["u"]), size), &at["var"], 1e-12);
            }
            "superminhash" => {
                absolute(estimate(n("matches"), size, 64), &case["J"], 1e-12);
                let at = &case["alpha_m_u"];
                relative(variance::alpha(count(&at["m"]), count(&at["u"])), &at["alpha"], 1e-9);
            }
            kind => panic!("an estimator of kind {kind}"),
        }
    }
    assert_eq!(kinds.len(), 10);
}

#[test]
fn sections() {
    for case in cases("sections") {
        let (n, s) = (count(&case["n_attributes"]), count(&case["s"]));
        let expected: Vec<usize> = case["section_ids"].as_array().unwrap().iter().map(count).collect();
        assert_eq!((0..n).map(|i| section(i, n, s)).collect::<Vec<_>>(), expected, "{case}");
    }
}

#[test]
fn sectional_expectations() {
    for case in cases("sectional_expectation") {
        let (j, q) = (number(&case["J"]), number(&case["q_same_section_fraction"]));
        absolute(SectionMode::Attach.expectation(j, q), &case["E_attach_after_sampling"], 1e-12);
        absolute(SectionMode::Pair.expectation(j, q), &case["E_hash_token_and_section_equal_sizes"], 1e-12);
    }
}

#[test]
fn cantor_pairing() {
    for case in cases("cantor_pairing") {
        let [a, b] = ["a", "b"].map(|key| u64::try_from(whole(&case[key])).unwrap());
        let pair = cantor(a, b).unwrap();
        assert_eq!(pair, whole(&case["pair"]), "{case}");
        assert_eq!(u64::try_from(pair).is_ok(), case["fits_u64"].as_bool().unwrap(), "{case}");
        // The inverse, if it does not overflow.
        if let Some(eight) = pair.checked_mul(8) {
            let sum = ((eight + 1).isqrt() - 1) / 2;
            assert_eq!(pair - sum * (sum + 1) / 2, u128::from(b), "{case}");
        }
    }
    assert_eq!(cantor(u64::MAX, u64::MAX), None);
}
