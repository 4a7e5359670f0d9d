//! Every kind of sketch against its own theory: no bias, the stated variance, exchangeable places.
//!
//! The bounds: a mean of n estimates is within `SIGMAS` times `sqrt(variance / n)` of the truth, a mean
//! square error within [`bounds::of_mean_square`] of the variance.

use dupflow::core::sketch::kernel::Kernel;
use dupflow::core::sketch::{SectionBase, SectionMode, SketchKind, SketchParams};

use crate::bounds::{self, SIGMAS};
use crate::synthetic::{sketches_by, sketches_of};

/// Union sizes and similarities of the texts, and the number of trials.
struct Grid<'a> {
    unions: &'a [usize],
    similarities: &'a [f64],
    trials: usize,
}

const SHORT_AND_LONG: Grid<'static> =
    Grid { unions: &[20, 60, 300, 1000], similarities: &[0.2, 0.5, 0.8, 0.95], trials: 400 };

fn params(kind: SketchKind, size: usize, bits: usize) -> SketchParams {
    SketchParams { kind, size, bits, wide: 0, seed: 0 }
}

/// Asserts the mean and the mean square error of estimates around `expected`, up to a bias that theory
/// allows.
fn judge(what: &str, estimates: &[f64], expected: f64, variance: f64, size: usize, bias: f64) {
    let n = estimates.len();
    let errors = estimates.iter().map(|estimate| estimate - expected);
    let mean = errors.clone().sum::<f64>() / n as f64;
    let square = errors.map(|error| error * error).sum::<f64>() / n as f64;
    println!("{what}: bias {mean:.5}, mean square error {:.3} of theory", square / variance);
    if variance <= 0.0 {
        assert!(mean.abs() < 1e-12 && square < 1e-24, "{what} is exact");
        return;
    }
    assert!(mean.abs() <= bias + SIGMAS * (variance / n as f64).sqrt(), "{what}: bias {mean}");
    // With the kurtosis of a binomial count with this mean.
    let slack = bounds::of_mean_square(n, bounds::kurtosis(size, expected.clamp(0.05, 0.95)));
    let ratio = square / variance;
    assert!((ratio - 1.0).abs() <= slack + bias * bias / variance, "{what}: mean square error {ratio}");
}

/// Measures estimates on a grid. `bias` is the bias that theory allows.
fn check(params: SketchParams, grid: &Grid<'_>, variance: impl Fn(f64, usize) -> f64, bias: f64) {
    for union in grid.unions {
        for similarity in grid.similarities {
            let estimator = params.estimator();
            let estimates: Vec<f64> = (0..grid.trials as u64)
                .map(|trial| {
                    let params = SketchParams { seed: trial, ..params };
                    let (a, b) = sketches_by(params, *union, *similarity, trial);
                    estimator.estimate(&a.words, &b.words)
                })
                .collect();
            let what = format!("{params:?}, {union} features, J = {similarity}");
            judge(&what, &estimates, *similarity, variance(*similarity, *union), params.size, bias);
        }
    }
}

/// Compares with the variance that the sketch parameters state.
fn check_stated(params: SketchParams, grid: &Grid<'_>, bias: f64) {
    check(params, grid, |similarity, union| params.variance(similarity, union).unwrap(), bias);
}

#[test]
fn one_permutation_with_copies() {
    check_stated(params(SketchKind::Oph, 64, 64), &SHORT_AND_LONG, 0.0);
    check_stated(params(SketchKind::Oph, 64, 1), &SHORT_AND_LONG, 0.0);
}

#[test]
fn one_permutation_with_empty_bins() {
    check_stated(params(SketchKind::OphOriginal, 64, 64), &SHORT_AND_LONG, 0.0);
    check_stated(params(SketchKind::OphOriginal, 64, 2), &SHORT_AND_LONG, 0.0);
}

#[test]
fn superminhash() {
    check_stated(params(SketchKind::SuperMinHash, 64, 64), &SHORT_AND_LONG, 0.0);
    check_stated(params(SketchKind::SuperMinHash, 64, 1), &SHORT_AND_LONG, 0.0);
}

#[test]
fn bottom_k() {
    check_stated(params(SketchKind::BottomK, 64, 64), &SHORT_AND_LONG, 0.0);
}

#[test]
fn min_max() {
    check_stated(params(SketchKind::MinMax, 64, 64), &SHORT_AND_LONG, 0.0);
}

/// The odd estimate is a logarithm of a count, precise if few components differ.
#[test]
fn odd_sketches_of_near_copies() {
    let grid = Grid { unions: &[60, 300, 1000], similarities: &[0.9, 0.95], trials: 400 };
    check_stated(params(SketchKind::Odd, 256, 4), &grid, 0.0);
}

/// The connected estimate is the root of a share; its curvature adds a bias of at most 1 / K where p(J) is
/// 1/2 or more.
#[test]
fn connected_bits() {
    let grid = Grid { unions: &[60, 300], similarities: &[0.2, 0.5, 0.8, 0.95], trials: 400 };
    check_stated(params(SketchKind::Connected { run: 2 }, 256, 1), &grid, 1.0 / 256.0);
}

/// The weights of the two widths depend on the data: a bias of O(1 / K).
#[test]
fn bits_between_one_and_two() {
    let mixed = SketchParams { wide: 64, ..params(SketchKind::MinHash, 160, 1) };
    let grid = Grid { unions: &[60, 300], similarities: &[0.2, 0.5, 0.8, 0.95], trials: 400 };
    check_stated(mixed, &grid, 1.0 / 160.0);
}

/// Two texts of 270 words each, 240 of them in common, J = 0.8. `moved` of the common words are in the other
/// half of the second text.
fn moved(moved: usize) -> [Vec<usize>; 2] {
    let a: Vec<usize> = (0..270).collect();
    let mut b: Vec<usize> = (0..240).chain(300..330).collect();
    (0..moved / 2).for_each(|i| b.swap(i, 135 + i));
    [a, b]
}

/// Sectional sketches estimate `q J` and `q J / (1 + J - q J)`, for any number of sections.
#[test]
fn sections() {
    const TRIALS: usize = 400;
    let modes = [SectionMode::Attach, SectionMode::Pair];
    let bases = [SectionBase::Fss, SectionBase::MinHash];
    for (mode, base) in modes.into_iter().flat_map(|mode| bases.map(|base| (mode, base))) {
        let params = params(SketchKind::Sectional { sections: 2, mode, base }, 64, 64);
        for count in [0, 12, 48, 120] {
            let q = 1.0 - count as f64 / 240.0;
            let [a, b] = moved(count);
            let estimates: Vec<f64> = (0..TRIALS as u64)
                .map(|trial| {
                    let params = SketchParams { seed: trial, ..params };
                    let (x, y) = sketches_of(params, [&a, &b], trial);
                    params.estimator().estimate(&x.words, &y.words)
                })
                .collect();
            let expected = mode.expectation(0.8, q);
            let union = match mode {
                SectionMode::Attach => 300,
                SectionMode::Pair => 300 + count,
            };
            let variance = params.variance(expected, union).unwrap();
            judge(&format!("{mode:?} over {base:?}, q = {q}"), &estimates, expected, variance, 64, 0.0);
        }
    }
}

/// The filter assumes: given all n places that agree, those of the first k are hypergeometric.
#[test]
fn places_are_exchangeable() {
    const TRIALS: usize = 400;
    let all = [
        params(SketchKind::Oph, 100, 64),
        params(SketchKind::SuperMinHash, 100, 64),
        params(SketchKind::MinMax, 100, 64),
        params(SketchKind::Odd, 100, 2),
        params(SketchKind::Connected { run: 2 }, 200, 2),
        params(
            SketchKind::Sectional { sections: 2, mode: SectionMode::Attach, base: SectionBase::Fss },
            100,
            64,
        ),
        params(
            SketchKind::Sectional { sections: 2, mode: SectionMode::Pair, base: SectionBase::Fss },
            100,
            64,
        ),
    ];
    for params in all {
        let shape = params.shape().unwrap();
        let kernel = Kernel::new(shape.size, shape.bits);
        let (n, k) = (shape.size as f64, shape.size / 3);
        for (union, similarity) in [(20, 0.5), (60, 0.8), (300, 0.8)] {
            let (mut squares, mut expected) = (0.0, 0.0);
            for trial in 0..TRIALS as u64 {
                let (a, b) = sketches_by(SketchParams { seed: trial, ..params }, union, similarity, trial);
                let differing = |to| f64::from(kernel.differing(&a.words, &b.words, 0, to));
                let share = differing(shape.size) / n;
                squares += (differing(k) - k as f64 * share).powi(2);
                expected += k as f64 * share * (1.0 - share) * (n - k as f64) / (n - 1.0);
            }
            let slack = bounds::of_mean_square(TRIALS, bounds::kurtosis(k, similarity));
            let ratio = squares / expected;
            assert!((ratio - 1.0).abs() <= slack, "{params:?}, {union} features, J = {similarity}: {ratio}");
        }
    }
}
