//! Every kind of filter compared with a reading component by component.

use super::super::{
    Agreeing, ExactFilter, FilterParams, PairFilter, RejectedBy, Rejection, Schedule, StagedFilter, Target,
    Verify, shared_features,
};
use super::pairs::{Numbers, count, each_case, equal, sketches};
use crate::pair::Similarity;
use crate::sketch::Sketch;
use crate::sketch::agreement::Agreement;
use crate::sketch::estimate::estimate;

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

#[test]
fn staged_is_what_its_schedule_says() {
    let (mut accepted, mut early) = (0, 0);
    each_case(|target, params, a, b| {
        let filter = StagedFilter::new(target, params).unwrap();
        let verdict = filter.decide(a.view(), b.view());
        assert_eq!(verdict, filter.decide(b.view(), a.view()));
        assert!(verdict.accepted.is_none() || filter.first_word(a.words[0], b.words[0]));
        let (look, components, rejected) = naive(filter.schedule(), a, b);
        assert_eq!(
            (usize::from(verdict.look), verdict.components as usize, verdict.accepted.is_none()),
            (look, components, rejected),
        );
        assert!((1..=filter.looks()).contains(&look));
        let (size, bits) = (target.size(), target.bits());
        let full = Similarity::clamped(estimate(count(&equal(a, b, size, bits, bits)), size, bits));
        assert_eq!(filter.similarity(a.view(), b.view()), full);
        let is_word = look == 1 && filter.schedule().first_word().is_some();
        let found = count(&equal(a, b, size, bits, if is_word { 1 } else { bits })[..components]);
        let Agreeing { found: agree, needed } = filter.agreeing(a.view(), b.view(), verdict.look).unwrap();
        assert_eq!((agree as usize, agree < needed), (found, rejected));
        assert_eq!(filter.rejected_by(verdict.look) == RejectedBy::FirstWord, is_word);
        if let Some(similarity) = verdict.accepted {
            assert_eq!(similarity, full);
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
        let Ok(filter) = ExactFilter::new(target, params) else { return };
        let verdict = filter.decide(a.view(), b.view());
        assert_eq!(verdict, filter.decide(b.view(), a.view()));
        assert!((1..=filter.looks()).contains(&usize::from(verdict.look)));
        let common = a.features.iter().filter(|x| b.features.contains(x)).count();
        let union = a.features.len() + b.features.len() - common;
        let (_, _, rejected) = naive(filter.schedule(), a, b);
        let similar = common * 10 >= union * 8;
        assert_eq!(verdict.accepted.is_some(), !rejected && similar, "{common} of {union}");
        let exact = Similarity::clamped(common as f64 / union as f64);
        let Rejection { by, agreeing, similarity: measured, .. } =
            Rejection::new(&filter, a.view(), b.view(), verdict);
        assert_eq!(measured, exact);
        if verdict.accepted.is_none() {
            let counts = matches!(by, RejectedBy::FirstWord | RejectedBy::Look);
            // The sizes are looked at first after the word, and may reject what a look rejects too.
            assert!(counts == rejected || by == RejectedBy::Sizes, "{by:?}");
            assert_eq!(agreeing.is_some_and(|agreeing| agreeing.found < agreeing.needed), counts, "{by:?}");
        }
        if let Some(similarity) = verdict.accepted {
            assert_eq!(similarity, exact);
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
        ExactFilter::new(target, &FilterParams { verify: Verify::Exact, ..FilterParams::default() }).unwrap();
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
        let full = StagedFilter::from_schedule(Schedule::full(target));
        let fast = StagedFilter::from_schedule(Schedule::within_radius(target));
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
