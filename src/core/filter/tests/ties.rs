//! Pairs exactly at the threshold, of every measure and weighting, against whole numbers.

use std::collections::BTreeSet;

use crate::filter::{ContainmentFilter, ExactFilter, FilterKind, FilterParams, PairFilter, Target, Verify};
use crate::hash::mix;
use crate::sketch::Sketch;
use crate::sketch::scaled::{Scaled, packed};
use crate::text::measures::Measure;
use crate::text::{Idf, IdfForm, IdfTable, TermsRef, Weigher, Weights};

/// Counts by feature; 0 where a text does not have it.
type Text = Vec<u64>;

/// A text of up to 12 features, and an edit of it.
fn texts(seed: u64) -> [Text; 2] {
    let number = |salt: u64, most: u64| mix(seed ^ salt << 32) % most;
    let size = 2 + seed % 11;
    let first: Text = (0..size).map(|i| number(i + 1, 4)).chain([1]).collect();
    let edit = |(i, count): (u64, &u64)| if number(i + 100, 3) == 0 { number(i + 200, 4) } else { *count };
    let second = (0..).zip(&first).map(edit).chain([number(300, 3)]).collect();
    [first.into_iter().chain([0]).collect(), second]
}

/// A similarity as a fraction; that of the cosine is squared.
#[derive(Clone, Copy, Debug)]
struct Exact {
    part: u128,
    whole: u128,
}

/// The similarity by definition, in whole numbers.
fn exact(measure: Measure, weights: &Weights, [a, b]: [&Text; 2]) -> Exact {
    let total = |of: &Text| of.iter().map(|count| u128::from(*count)).sum::<u128>();
    let (of_a, of_b) = if *weights == Weights::Count { (1, 1) } else { (total(a), total(b)) };
    let sum = |term: fn(u128, u128) -> u128, by_share: bool| -> u128 {
        let (x, y) = if by_share { (of_b, of_a) } else { (1, 1) };
        a.iter().zip(b).map(|(c, d)| term(u128::from(*c) * x, u128::from(*d) * y)).sum()
    };
    let has = |count: u128| u128::from(count > 0);
    match measure {
        Measure::WeightedJaccard => Exact { part: sum(u128::min, true), whole: sum(u128::max, true) },
        Measure::Cosine => Exact {
            part: sum(|c, d| c * d, false).pow(2),
            whole: sum(|c, _| c * c, false) * sum(|_, d| d * d, false),
        },
        Measure::Jaccard => Exact {
            part: sum(|c, d| u128::from(c > 0 && d > 0), false),
            whole: sum(|c, d| u128::from(c > 0 || d > 0), false),
        },
        _ => {
            let [x, y] = [a, b].map(|of| of.iter().map(|count| has(u128::from(*count))).sum::<u128>());
            Exact { part: sum(|c, d| u128::from(c > 0 && d > 0), false), whole: x.min(y) }
        }
    }
}

/// The greatest common divisor.
fn divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// A text as its features are stored: with their weights for measures that have them.
fn sketch(measure: Measure, weights: &Weights, text: &Text) -> Sketch {
    let (ids, counts): (Vec<u64>, Vec<u64>) = (0..).zip(text).filter(|(_, count)| **count > 0).unzip();
    let words = if measure == Measure::Containment { packed(99, ids.len()) } else { 0 };
    if !measure.is_weighted() {
        return Sketch { words: [words].into(), features: ids.into() };
    }
    let mut weigher = Weigher::new();
    let features = weigher.weigh(TermsRef { ids: &ids, counts: &counts }, weights);
    let bits = features.weights.iter().map(|weight| weight.to_bits());
    Sketch { words: [words].into(), features: ids.iter().copied().chain(bits).collect() }
}

/// Every filter by features of a measure.
fn filters(measure: Measure, threshold: f64) -> Vec<Box<dyn PairFilter>> {
    if measure == Measure::Containment {
        let filter = ContainmentFilter::new(threshold, Scaled::new(1, 4, 0), true, 1).unwrap();
        return vec![Box::new(filter)];
    }
    // All components are in one word, and equal.
    let by = |kind| {
        let params = FilterParams { kind, verify: Verify::Exact, ..FilterParams::default() };
        ExactFilter::new(Target::new(threshold, 64, 1).unwrap(), &params).unwrap().by(measure)
    };
    let features_only = ExactFilter::features_only(threshold).unwrap().by(measure);
    vec![Box::new(by(FilterKind::Full)), Box::new(by(FilterKind::Staged)), Box::new(features_only)]
}

/// Document frequencies of one document, of all that have every feature, and of one of many that has it: each
/// IDF is the same, 1 or another number.
fn tables() -> [Weights; 3] {
    [(1, 1), (7, 7), (7, 1)].map(|(documents, holders)| {
        let table = IdfTable::new(documents, (0..20).map(|feature| (feature, holders)));
        Weights::TfIdf(Idf::Frozen(table.into()), IdfForm::Smooth)
    })
}

#[test]
fn ties_are_pairs_and_what_is_below_is_none() {
    let weightings = || [Weights::Count, Weights::Tf].into_iter().chain(tables());
    let cases = [
        (Measure::Jaccard, vec![Weights::Unit]),
        (Measure::Containment, vec![Weights::Unit]),
        (Measure::WeightedJaccard, weightings().collect()),
        (Measure::Cosine, weightings().collect()),
    ];
    for (measure, weights) in cases.iter().flat_map(|(of, all)| all.iter().map(move |one| (*of, one))) {
        let mut ties = 0;
        for seed in 0..1500 {
            let [a, b] = &texts(seed);
            let [x, y] = [a, b].map(|text| sketch(measure, weights, text));
            let Exact { part, whole } = exact(measure, weights, [a, b]);
            // A threshold at the pair, if that is a fraction, and thresholds as decimals.
            let root = |n: u128| Some(n.isqrt()).filter(|root| root * root == n);
            let squared = measure == Measure::Cosine;
            let common = divisor(part, whole);
            let (part, whole) = (part / common, whole / common);
            let at = if squared { root(part).zip(root(whole)) } else { Some((part, whole)) };
            let decimals = [(1, 2), (4, 5), (2, 3), (35, 100), (9, 10)];
            for (p, q) in at.into_iter().filter(|(p, _)| *p > 0).chain(decimals) {
                let power = if squared { 2 } else { 1 };
                let reaches = part * q.pow(power) >= p.pow(power) * whole;
                ties += usize::from(part * q.pow(power) == p.pow(power) * whole);
                for filter in filters(measure, p as f64 / q as f64) {
                    let verdict = filter.decide(x.view(), y.view());
                    let case = format!("{measure:?} {weights:?} {a:?} {b:?} {p}/{q}: {verdict:?}");
                    assert_eq!(verdict.accepted.is_some(), reaches, "{case}");
                    assert_eq!(filter.decide(y.view(), x.view()).accepted.is_some(), reaches, "{case}");
                    // What is reported is at least T; shares of containment have nine decimals.
                    let least =
                        p as f64 / q as f64 - if measure == Measure::Containment { 1e-9 } else { 0.0 };
                    assert!(verdict.accepted.is_none_or(|found| found.get() >= least), "{case}");
                }
            }
        }
        assert!(ties > 100, "{measure:?} {weights:?}: {ties} ties");
    }
}

/// The next double above a similarity is another threshold, where counts decide.
#[test]
fn counts_are_as_near_as_doubles() {
    for (measure, weights) in [
        (Measure::Jaccard, Weights::Unit),
        (Measure::WeightedJaccard, Weights::Count),
        (Measure::WeightedJaccard, Weights::Tf),
    ] {
        let mut values = BTreeSet::new();
        for seed in 0..400 {
            let [a, b] = &texts(seed);
            let [x, y] = [a, b].map(|text| sketch(measure, &weights, text));
            let Exact { part, whole } = exact(measure, &weights, [a, b]);
            if part == 0 || part == whole {
                continue;
            }
            let value = part as f64 / whole as f64;
            values.insert(value.to_bits());
            for (threshold, reaches) in [(value.next_up(), false), (value, true), (value.next_down(), true)] {
                for filter in filters(measure, threshold) {
                    let verdict = filter.decide(x.view(), y.view());
                    assert_eq!(verdict.accepted.is_some(), reaches, "{measure:?} {a:?} {b:?} {threshold}");
                }
            }
        }
        assert!(values.len() > 25, "{}", values.len());
    }
}

/// The overlap of two texts whose common features are great in one and 1 in the other, and far apart: what is
/// left of a mass after its great weight is not lost to rounding.
#[test]
fn small_weights_behind_great_ones_count() {
    let great = u64::from(u32::MAX);
    let a: Text = [great].into_iter().chain([1; 100]).collect();
    let b: Text = [1].into_iter().chain([0; 99]).chain([great]).collect();
    let [x, y] = [&a, &b].map(|text| sketch(Measure::Cosine, &Weights::Count, text));
    // Of the squares, 2^32 - 1 and 1 twice, the root is 2 (2^32 - 1) / ((2^32 - 1)^2 + 100), nearly.
    for (threshold, reaches) in [(1.9 / great as f64, true), (2.1 / great as f64, false)] {
        for filter in filters(Measure::Cosine, threshold) {
            let verdict = filter.decide(x.view(), y.view());
            assert_eq!(verdict.accepted.is_some(), reaches, "{threshold} {verdict:?}");
        }
    }
}
