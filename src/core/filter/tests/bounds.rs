//! The bounds compared with enumeration and with vectors.

use super::super::sequential::{Bounds, FirstWord, Model};
use super::super::{LEAST_ERROR, Schedule, Target};

/// The probability that these bounds reject a pair whose components match where `pattern` has a one.
fn rejected(pattern: u32, word: Option<FirstWord>, looks: &[usize], bounds: &Bounds) -> f64 {
    let matches = |k: usize| (pattern & ((1 << k) - 1)).count_ones() as usize;
    if looks.iter().zip(&bounds.below).any(|(&k, &below)| matches(k) < below) {
        return 1.0;
    }
    word.map_or(0.0, |FirstWord { components, agree }| {
        let x = matches(components);
        // Each differing component may agree in its low bit, independently.
        (0..1_u32 << (components - x))
            .map(|lucky| (lucky.count_ones() as usize, components - x - lucky.count_ones() as usize))
            .filter(|(lucky, _)| x + lucky < bounds.first_word)
            .map(|(lucky, not)| {
                (0..lucky).map(|_| agree).chain((0..not).map(|_| 1.0 - agree)).product::<f64>()
            })
            .sum()
    })
}

const WORDS: [Option<FirstWord>; 3] = [
    None,
    Some(FirstWord { components: 4, agree: 0.0 }),
    Some(FirstWord { components: 4, agree: 1.0 / 3.0 }),
];

#[test]
fn sketch_mode_errs_within_delta_whatever_the_full_count_is() {
    let (size, looks) = (10, [4, 6, 7, 9]);
    let mut rejecting = 0;
    for (word, least, delta) in
        WORDS.into_iter().flat_map(|w| (1..=10).flat_map(move |m| [0.01, 0.1].map(|d| (w, m, d))))
    {
        let bounds = Bounds::new(Model::sketch(size, least), word, &looks, delta);
        assert!(bounds.spent <= delta);
        let mut worst = 1.0;
        for total in least..=size {
            let patterns: Vec<u32> =
                (0..1 << size).filter(|p: &u32| p.count_ones() as usize == total).collect();
            let sum: f64 = patterns.iter().map(|&pattern| rejected(pattern, word, &looks, &bounds)).sum();
            let error = sum / patterns.len() as f64;
            assert!(error <= worst + 1e-12, "the error falls with the count");
            worst = error;
            if total == least {
                assert!((error - bounds.spent).abs() < 1e-12, "{error} is not the declared {}", bounds.spent);
            }
        }
        rejecting += usize::from(bounds.spent > 0.0);
    }
    assert!(rejecting > 20, "only {rejecting} bounds reject at all");
}

#[test]
fn true_mode_errs_within_delta_at_and_above_its_probability() {
    let (size, looks) = (10, [4, 6, 8, 10]);
    for (word, p) in WORDS.into_iter().flat_map(|w| [0.5, 0.8, 0.95].map(|p| (w, p))) {
        let bounds = Bounds::new(Model::truth(size, p), word, &looks, 0.1);
        let error = |q: f64| -> f64 {
            let chance = |pattern: u32| {
                (0..size).map(|j| if pattern >> j & 1 == 1 { q } else { 1.0 - q }).product::<f64>()
            };
            (0..1 << size).map(|pattern| chance(pattern) * rejected(pattern, word, &looks, &bounds)).sum()
        };
        assert!((error(p) - bounds.spent).abs() < 1e-12 && bounds.spent <= 0.1 && bounds.spent > 0.0);
        assert!(error(p + 0.02) < error(p));
    }
}

/// What the looks reject is at least the tail at one of them, of components that match with 13/16. The tail
/// is summed by logarithms, for errors down to the least.
#[test]
fn the_tails_of_small_errors_are_not_dropped() {
    let logarithm: Vec<f64> = (0..=512).map(|n| (1..=n).map(|i: u32| f64::from(i).log10()).sum()).collect();
    let term = |k: usize, x: usize| {
        let ways = logarithm[k] - logarithm[x] - logarithm[k - x];
        ways + x as f64 * 13_f64.log10() + (k - x) as f64 * 3_f64.log10() - k as f64 * 16_f64.log10()
    };
    let target = Target::new(0.8, 512, 4).unwrap();
    for error in [1e-30, 1e-55, 1e-70, 1e-100, 1e-150, LEAST_ERROR] {
        for schedule in [
            Schedule::verify(target, &[128, 256, 512], false, error),
            Schedule::per_look(target, &[128, 256, 512], error),
        ] {
            let early =
                schedule.looks().iter().filter(|look| look.components < 512 || look.accept_from > 512);
            let mut rejects = 0;
            for look in early {
                let k = look.components as usize;
                let tail: f64 =
                    (0..look.reject_below as usize).map(|x| 10_f64.powf(term(k, x) - error.log10())).sum();
                assert!(tail < 1.0 + 1e-9, "{error:e}, {look:?}: {tail} times the error");
                assert!(tail * error <= schedule.spent().reject * (1.0 + 1e-9), "{error:e} {look:?}");
                rejects += look.reject_below;
            }
            assert!(rejects > 0 || error < 1e-60, "{error:e} {schedule:?}");
        }
    }
}

#[test]
fn true_mode_meets_the_vectors_that_also_have_accept_bounds() {
    let file: serde_json::Value =
        serde_json::from_str(include_str!("../../../../tests/vectors/filter_schedules.json")).unwrap();
    let cases: Vec<_> =
        file["cases"].as_array().unwrap().iter().filter(|case| case["rule"] == "true").collect();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let numbers = |key: &str| -> Vec<i64> {
            case[key].as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect()
        };
        let fraction = |key: &str| {
            let (p, q) = case[key].as_str().unwrap().split_once('/').unwrap();
            p.parse::<f64>().unwrap() / q.parse::<f64>().unwrap()
        };
        let mut looks: Vec<usize> = numbers("looks").iter().map(|&k| usize::try_from(k).unwrap()).collect();
        let size = looks.pop().unwrap();
        let bounds = Bounds::new(Model::truth(size, fraction("T_b")), None, &looks, fraction("delta"));
        let expected = &numbers("reject_if_le")[..looks.len()];
        let found: Vec<i64> = bounds.below.iter().map(|&b| i64::try_from(b).unwrap() - 1).collect();
        assert_eq!(found, expected, "{}", case["name"]);
    }
}

#[test]
fn with_one_bit_the_first_word_is_the_look_at_64() {
    for (threshold, below) in [(0.8, 44), (0.7, 39)] {
        let target = Target::new(threshold, 1024, 1).unwrap();
        let words: Vec<usize> = (1..=16).map(|word| word * 64).collect();
        let plain = Schedule::sequential(target, &words, false, 1e-5);
        let tested = Schedule::sequential(target, &words[1..], true, 1e-5);
        assert_eq!((tested.first_word(), plain.looks()[0].reject_below), (Some(below), below));
        assert!(plain.looks()[1..].iter().zip(tested.looks()).all(|(a, b)| a.reject_below == b.reject_below));
        assert_eq!((tested.count(), tested.spent().reject), (16, plain.spent().reject));
    }
}

#[test]
fn the_papers_looks_add_up() {
    let target = Target::new(0.8, 1000, 64).unwrap();
    let spent = Schedule::per_look(target, &[100, 200, 400, 600, 800, 1000], 1e-5).spent();
    assert!((spent.reject - 3.4e-5).abs() < 5e-7 && (spent.accept - 3.2e-5).abs() < 5e-7, "{spent:?}");
}

#[test]
fn operation_at_the_threshold_is_the_declared_error() {
    for bits in [1, 2, 8] {
        let target = Target::new(0.8, 512, bits).unwrap();
        let schedule = Schedule::verify(
            target,
            &target.looks_after_first_word(Some(&[64, 128, 256, 512]), 1e-3).unwrap(),
            true,
            1e-3,
        );
        let operation = schedule.operation(0.8);
        assert!((operation.rejected - schedule.spent().reject).abs() < 1e-12);
        assert!((operation.rejected + operation.accepted - 1.0).abs() < 1e-9);
        assert!(operation.components > 500.0 && operation.components <= 512.0);
        let far = schedule.operation(0.02);
        assert!((far.components - 64.0).abs() < 0.1 && far.accepted < 1e-20, "{far:?}");
    }
}
