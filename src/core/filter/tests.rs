//! Compares the exact bounds with enumeration, and every kind of filter with a reading component by
//! component.

use super::sequential::{Bounds, FirstWord, Model};
use super::{
    Exact, FilterError, FilterKind, FilterParams, Operation, PairFilter, Schedule, Staged, Target, Verify,
    shared_features,
};
use crate::hash::mix;
use crate::pair::Similarity;
use crate::sketch::Sketch;
use crate::sketch::agreement::{Agreement, Shape};
use crate::sketch::estimate::estimate;

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

#[test]
fn true_mode_meets_the_vectors_that_also_have_accept_bounds() {
    let file: serde_json::Value =
        serde_json::from_str(include_str!("../../../tests/vectors/filter_schedules.json")).unwrap();
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

#[test]
fn looks_by_default_and_as_configured() {
    let default = |size, bits| Target::new(0.8, size, bits).unwrap().default_looks(1e-5);
    assert_eq!((default(16, 1), default(64, 1)), (vec![16], vec![64]));
    assert_eq!(default(448, 4), [128, 256, 384, 448]);
    assert_eq!(default(1024, 1), [320, 640, 1024]);
    assert_eq!(default(256, 8), [64, 128, 192, 256]);
    // Components of 64 bits: a look after each of them would pay off, so every possible look is taken.
    assert_eq!(default(1000, 64), [64, 128, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1000]);
    let paper = |size| Target::new(0.8, size, 64).unwrap().looks(None).unwrap();
    assert_eq!((paper(1000), paper(7)), (vec![100, 200, 400, 600, 800, 1000], vec![1, 2, 4, 5, 7]));
    let target = Target::new(0.8, 256, 1).unwrap();
    assert_eq!(target.looks(Some(&[16, 100])), Ok(vec![16, 100, 256]));
    assert_eq!(target.looks_after_first_word(Some(&[64, 128]), 1e-5), Ok(vec![128, 256]));
    let refused = |found: &[usize]| target.looks_after_first_word(Some(found), 1e-5).unwrap_err().to_string();
    let message = "must ascend, from 64 components on to at most 256, the sketch's size";
    for (looks, found) in
        [(&[16, 100][..], "[16, 100]"), (&[128, 128], "[128, 128]"), (&[64, 300], "[64, 300]")]
    {
        assert_eq!(refused(looks), format!("filter looks {found} {message}"));
    }
}

/// The least cost, by trying all subsets of looks.
#[test]
fn default_looks_are_the_cheapest_of_all() {
    for (size, bits, threshold) in [(448, 4, 0.8), (512, 64, 0.5), (300, 16, 0.9), (448, 1, 0.7)] {
        let target = Target::new(threshold, size, bits).unwrap();
        let all: Vec<usize> = (64..size).step_by(64).collect();
        let subset = |chosen: u32| {
            let taken = all.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1).map(|(_, k)| *k);
            taken.chain([size]).collect::<Vec<_>>()
        };
        let least =
            (0..1 << all.len()).map(|chosen| target.cost(&subset(chosen), 1e-5)).fold(f64::MAX, f64::min);
        let default = target.default_looks(1e-5);
        assert!((target.cost(&default, 1e-5) - least).abs() < 1e-9, "{default:?} of {size}, {bits} bits");
        assert!(target.cost(&[size], 1e-5) > least, "a second look is worth it here");
    }
}

/// The expected outcome of the filter for the candidates that banding yields, by the exact model and the
/// mixture that the looks are chosen by.
fn of_candidates(filter: &Staged) -> Operation {
    let schedule = filter.schedule();
    let mut all = Operation::default();
    for (similarity, share) in schedule.target().candidates() {
        let one = schedule.operation(similarity);
        all.components += share * one.components;
        all.rejected += share * one.rejected;
        all.accepted += share * one.accepted;
        all.rejected_early += share * one.rejected_early;
        all.accepted_early += share * one.accepted_early;
    }
    all
}

#[test]
fn default_schedules_end_most_candidates_before_the_end_on_either_side() {
    for (size, bits) in [(448, 4), (256, 8), (1024, 1), (1000, 64), (500, 2)] {
        for threshold in [0.5, 0.7, 0.8, 0.9, 0.95] {
            let target = Target::new(threshold, size, bits).unwrap();
            let staged = Staged::new(target, &FilterParams::default()).unwrap();
            let name = format!("{size} components of {bits} bits at {threshold}: {:?}", staged.schedule());
            let all = of_candidates(&staged);
            assert!((all.rejected + all.accepted - 1.0).abs() < 1e-9, "{name}");
            assert!(all.rejected_early > 0.6 * all.rejected, "{name} {all:?}");
            assert!(all.accepted_early > 0.3 * all.accepted, "{name} {all:?}");
            let early = staged.schedule().looks().split_last().unwrap().1;
            assert!(early.iter().any(|look| look.accept_from <= look.components), "accepts early: {name}");
            let spent = staged.schedule().spent();
            assert!(spent.reject <= 1e-5 && spent.accept <= 1e-5, "{name} {spent:?}");
        }
    }
}

/// Verdicts are those of the full comparison, except for the declared error: with 1e-5 and this seed, for all
/// pairs.
#[test]
fn default_schedules_answer_as_the_full_comparison_does() {
    let mut numbers = Numbers(17);
    let (mut accepted, mut early) = (0, 0);
    for (size, bits) in [(448, 4), (100, 8), (1024, 1), (130, 64), (300, 2)] {
        for threshold in [0.5, 0.8, 0.95] {
            let target = Target::new(threshold, size, bits).unwrap();
            let staged = Staged::new(target, &FilterParams::default()).unwrap();
            let full = Staged::from_schedule(Schedule::full(target));
            for _ in 0..20 {
                for (similarity, _) in target.candidates() {
                    let (a, b) = sketches(&mut numbers, size, bits, similarity);
                    let (quick, slow) = (staged.decide(a.view(), b.view()), full.decide(a.view(), b.view()));
                    assert_eq!(quick.accepted, slow.accepted, "{size} of {bits} bits at {threshold}");
                    accepted += usize::from(quick.accepted.is_some());
                    early += usize::from((quick.components as usize) < size);
                }
            }
        }
    }
    assert!(accepted > 800 && early > 2000, "{accepted} accepted, {early} early");
}

#[test]
fn for_membership_the_same_pairs_are_accepted_and_the_rest_is_not_read() {
    let (mut accepted, mut unread) = (0, 0);
    each_case(|target, params, a, b| {
        let filter = Staged::new(target, params).unwrap();
        let member = filter.for_membership().unwrap();
        let (verdict, other) = (filter.decide(a.view(), b.view()), member.decide(a.view(), b.view()));
        assert_eq!(
            (verdict.accepted.is_some(), verdict.look, verdict.components),
            (other.accepted.is_some(), other.look, other.components)
        );
        assert_eq!(other, member.decide(b.view(), a.view()));
        if let Some(similarity) = other.accepted {
            let (read, bits) = (other.components as usize, target.bits());
            let equal = count(&equal(a, b, target.size(), bits, bits)[..read]);
            assert_eq!(similarity, Similarity::clamped(estimate(equal, read, bits)));
            accepted += 1;
            unread += usize::from(read < target.size());
        }
    });
    assert!(accepted > 1000 && unread > 200, "{accepted} accepted, {unread} not read to the end");
}

#[test]
fn ranges_are_inclusive_or_exclusive_as_documented() {
    assert!(Target::new(1.0, 64, 1).is_ok());
    assert_eq!(Target::new(0.0, 64, 1), Err(FilterError::Threshold { found: 0.0 }));
    assert!(Target::new(1.0 + 1e-9, 64, 1).is_err() && Target::new(f64::NAN, 64, 1).is_err());
    let error = |error| FilterParams { error: Some(error), ..FilterParams::default() }.error();
    assert_eq!((error(0.1), error(0.0)), (Ok(0.1), Err(FilterError::Error { found: 0.0 })));
    assert!(error(0.11).is_err() && error(f64::NAN).is_err());
    let exact = FilterParams { verify: Verify::Exact, ..FilterParams::default() };
    assert_eq!((FilterParams::default().error(), exact.error()), (Ok(1e-5), Ok(1e-3)));
    let paper = FilterParams { kind: FilterKind::Paper, ..exact };
    assert!(matches!(Exact::new(Target::new(0.8, 64, 1).unwrap(), &paper), Err(FilterError::PaperExact)));
}

/// A pseudo-random sequence of numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        mix(self.0)
    }

    fn chance(&mut self, p: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= p
    }
}

/// Two sketches of which each component is equal with probability `similarity`, the rest random; and features
/// in proportion.
fn sketches(numbers: &mut Numbers, size: usize, bits: usize, similarity: f64) -> (Sketch, Sketch) {
    let shape = Shape::components(size, bits);
    let places: Vec<u64> = (0..size).map(|_| numbers.next()).collect();
    let near: Vec<u64> =
        places.iter().map(|x| if numbers.chance(similarity) { *x } else { numbers.next() }).collect();
    let [mut a, mut b] =
        [places, near].map(|all| Sketch { words: shape.pack(&all).into(), features: [].into() });
    let mut union: Vec<(u64, u64)> = (0..1 + numbers.next() % 80)
        .map(|_| (numbers.next(), if numbers.chance(similarity) { 0 } else { 1 + numbers.next() % 2 }))
        .collect();
    union.sort_unstable();
    let side = |other| union.iter().filter(|(_, side)| *side != other).map(|(x, _)| *x).collect();
    (a.features, b.features) = (side(1), side(2));
    (a, b)
}

/// Number of components that are equal in their lowest `low` bits, counted one by one.
fn equal(a: &Sketch, b: &Sketch, size: usize, bits: usize, low: usize) -> Vec<bool> {
    let shape = Shape::components(size, bits);
    let place = |sketch: &Sketch, j| shape.place(&sketch.words, j) & !0 >> (64 - low);
    (0..size).map(|j| place(a, j) == place(b, j)).collect()
}

fn count(bits: &[bool]) -> usize {
    bits.iter().filter(|&&bit| bit).count()
}

/// The outcome of a schedule, computed component by component: the look, the components read, and whether it
/// rejects.
fn naive(schedule: &Schedule, a: &Sketch, b: &Sketch) -> (usize, usize, bool) {
    let (size, bits) = (schedule.target().size(), schedule.target().bits());
    let mut look = 0;
    if let Some(below) = schedule.first_word() {
        look += 1;
        if count(&equal(a, b, size, bits, 1)[..64]) < below as usize {
            return (look, 64, true);
        }
    }
    let matches = equal(a, b, size, bits, bits);
    for at in schedule.looks() {
        look += 1;
        let k = at.components as usize;
        let x = count(&matches[..k]);
        if x < at.reject_below as usize {
            return (look, k, true);
        }
        if x >= at.accept_from as usize {
            return (look, k, false);
        }
    }
    (look, schedule.looks().last().map_or(0, |last| last.components as usize), false)
}

/// All kinds of filter on all shapes, with pairs of all similarities.
fn each_case(mut check: impl FnMut(Target, &FilterParams, &Sketch, &Sketch)) {
    let mut numbers = Numbers(7);
    for (size, bits) in [(16, 1), (16, 64), (64, 1), (64, 2), (100, 8), (256, 1), (256, 2), (1000, 4)] {
        for kind in [FilterKind::Staged, FilterKind::Paper, FilterKind::Full] {
            let target = Target::new(0.8, size, bits).unwrap();
            let params = FilterParams { kind, error: Some(0.01), ..FilterParams::default() };
            for similarity in [0.0, 0.3, 0.6, 0.75, 0.8, 0.85, 0.95, 1.0] {
                for _ in 0..25 {
                    let (a, b) = sketches(&mut numbers, size, bits, similarity);
                    check(target, &params, &a, &b);
                }
            }
        }
    }
}

#[test]
fn staged_is_what_its_schedule_says() {
    let (mut accepted, mut early) = (0, 0);
    each_case(|target, params, a, b| {
        let filter = Staged::new(target, params).unwrap();
        let verdict = filter.decide(a.view(), b.view());
        assert_eq!(verdict, filter.decide(b.view(), a.view()));
        assert!(verdict.accepted.is_none() || filter.first_word(a.words[0], b.words[0]));
        let (look, components, rejected) = naive(filter.schedule(), a, b);
        assert_eq!(
            (usize::from(verdict.look), verdict.components as usize, verdict.accepted.is_none()),
            (look, components, rejected),
        );
        assert!((1..=filter.looks()).contains(&look));
        if let Some(similarity) = verdict.accepted {
            let (size, bits) = (target.size(), target.bits());
            let full = estimate(count(&equal(a, b, size, bits, bits)), size, bits);
            assert_eq!(similarity, Similarity::clamped(full));
            accepted += 1;
        }
        early += usize::from(components < target.size());
    });
    assert!(accepted > 1000 && early > 500, "{accepted} accepted, {early} early");
}

#[test]
fn exact_is_its_schedule_and_then_the_features() {
    let (mut accepted, mut by_features) = (0, 0);
    each_case(|target, params, a, b| {
        let Ok(filter) = Exact::new(target, params) else { return };
        let verdict = filter.decide(a.view(), b.view());
        assert_eq!(verdict, filter.decide(b.view(), a.view()));
        assert!((1..=filter.looks()).contains(&usize::from(verdict.look)));
        let common = a.features.iter().filter(|x| b.features.contains(x)).count();
        let union = a.features.len() + b.features.len() - common;
        let (_, _, rejected) = naive(filter.schedule(), a, b);
        let similar = common * 10 >= union * 8;
        assert_eq!(verdict.accepted.is_some(), !rejected && similar, "{common} of {union}");
        if let Some(similarity) = verdict.accepted {
            assert_eq!(similarity, Similarity::clamped(common as f64 / union as f64));
            assert!(filter.first_word(a.words[0], b.words[0]));
            accepted += 1;
        }
        by_features += usize::from(!similar && usize::from(verdict.look) == filter.looks());
    });
    assert!(accepted > 300 && by_features > 100, "{accepted} accepted, {by_features} by features");
}

#[test]
fn exact_threshold_is_inclusive() {
    let target = Target::new(0.8, 64, 1).unwrap();
    let filter =
        Exact::new(target, &FilterParams { verify: Verify::Exact, ..FilterParams::default() }).unwrap();
    let sketch = |features: &[u64]| Sketch { words: [0].into(), features: features.into() };
    let decide = |a: &[u64], b: &[u64]| {
        let verdict = filter.decide(sketch(a).view(), sketch(b).view());
        (verdict.accepted.map(|similarity| similarity.get()), verdict.look)
    };
    // Looks: the first word, the sizes, all 64 components, the features.
    assert_eq!(filter.looks(), 4);
    assert_eq!(decide(&[1, 2, 3, 4, 5], &[1, 2, 3, 4]), (Some(0.8), 4));
    assert_eq!(decide(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[1, 2, 3, 4, 5, 6, 7, 8, 10]), (Some(0.8), 4));
    assert_eq!(decide(&[1, 2, 3, 4, 5, 6, 7, 8], &[1, 2, 3, 4, 5, 6, 7, 9]), (None, 4));
    assert_eq!(decide(&[1, 2, 3, 4, 5], &[1, 2, 3]), (None, 2));
    assert_eq!(decide(&[9], &[9]), (Some(1.0), 4));
}

#[test]
fn shared_features_are_those_of_the_sets() {
    let mut numbers = Numbers(11);
    for similarity in [0.0, 0.5, 0.9, 1.0] {
        for _ in 0..50 {
            let (a, b) = sketches(&mut numbers, 16, 1, similarity);
            let expected = a.features.iter().filter(|x| b.features.contains(x)).count();
            assert_eq!(shared_features(&a.features, &b.features, 0), Some(expected));
            assert_eq!(shared_features(&a.features, &b.features, expected), Some(expected));
            assert_eq!(shared_features(&a.features, &b.features, expected + 1), None);
        }
    }
    assert_eq!(shared_features(&[], &[], 0), Some(0));
}

/// The first word alone rejects only pairs that the full comparison rejects.
#[test]
fn within_a_radius_the_first_word_never_errs() {
    let mut numbers = Numbers(13);
    for (size, radius) in [(64, 3), (128, 3), (128, 40), (100, 80), (32, 3)] {
        // The full comparison accepts pairs with at least p K = size - radius matches.
        let threshold = Agreement::Bits(1).similarity((size - radius) as f64 / size as f64);
        let Ok(target) = Target::new(threshold, size, 1) else { continue };
        let full = Staged::from_schedule(Schedule::full(target));
        let fast = Staged::from_schedule(Schedule::within_radius(target));
        let (mut accepted, mut early) = (0, 0);
        for trial in 0..400 {
            let (a, b) = sketches(&mut numbers, size, 1, f64::from(trial % 20) / 20.0);
            let (slow, quick) = (full.decide(a.view(), b.view()), fast.decide(a.view(), b.view()));
            assert_eq!(slow.accepted, quick.accepted, "{size} bits, radius {radius}");
            accepted += usize::from(slow.accepted.is_some());
            early += usize::from(!fast.first_word(a.words[0], b.words[0]));
        }
        assert!(
            accepted > 0 && (early > 0 || size < 64 || radius >= 64),
            "{size} {radius}: {accepted} {early}"
        );
        let operation = fast.schedule().operation(0.0);
        assert!((operation.rejected + operation.accepted - 1.0).abs() < 1e-9);
    }
}
