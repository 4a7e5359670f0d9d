//! The default looks, and what they save.

use super::super::{
    ExactFilter, FilterError, FilterKind, FilterParams, Operation, PairFilter, Schedule, StagedFilter,
    Target, Verify,
};
use super::pairs::{Numbers, count, each_case, equal, sketches};
use crate::pair::Similarity;
use crate::sketch::estimate::estimate;

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
fn of_candidates(filter: &StagedFilter) -> Operation {
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
            let staged = StagedFilter::new(target, &FilterParams::default()).unwrap();
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
            let staged = StagedFilter::new(target, &FilterParams::default()).unwrap();
            let full = StagedFilter::from_schedule(Schedule::full(target));
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
        let filter = StagedFilter::new(target, params).unwrap();
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
    assert!(matches!(
        ExactFilter::new(Target::new(0.8, 64, 1).unwrap(), &paper),
        Err(FilterError::PaperExact)
    ));
}
