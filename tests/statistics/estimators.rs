//! Estimators against theory: no bias, at most the stated variance, and exchangeable components.

use dupflow::core::sketch::SketchKind;
use dupflow::core::sketch::estimate::{estimate, match_probability, standard_error};
use dupflow::core::sketch::kernel::Kernel;
use dupflow::core::sketch::variance;

use crate::bounds::{self, SIGMAS};
use crate::synthetic::{narrow, sketches};

const UNIONS: [usize; 4] = [20, 60, 300, 2000];
const SIMILARITIES: [f64; 4] = [0.2, 0.5, 0.8, 0.95];

/// Statistics of the estimates for one kind of pair.
struct Measured {
    bias: f64,
    /// Mean square error, in units of the stated variance of independent components.
    ratio: f64,
}

/// Estimates for each number of bits.
fn measure(kind: SketchKind, size: usize, union: usize, similarity: f64, trials: usize) -> [Measured; 3] {
    let widths = [1, 4, 64].map(|bits| (bits, Kernel::new(size, bits)));
    let mut sums = [(0.0, 0.0); 3];
    for trial in 0..trials as u64 {
        let (a, b) = sketches(kind, size, union, similarity, trial);
        for ((bits, kernel), (errors, squares)) in widths.iter().zip(&mut sums) {
            let [x, y] = [&a, &b].map(|sketch| narrow(sketch, size, *bits));
            let matches = size - kernel.differing(&x, &y, 0, size) as usize;
            let error = estimate(matches, size, *bits) - similarity;
            *errors += error;
            *squares += error * error;
        }
    }
    let mut measured = widths.iter().zip(sums).map(|((bits, _), (errors, squares))| {
        let variance = standard_error(similarity, size, *bits).powi(2);
        let n = trials as f64;
        Measured { bias: errors / n, ratio: squares / n / variance }
    });
    std::array::from_fn(|_| measured.next().unwrap())
}

/// Asserts the theory: no bias, and the variance `(alpha J (1 - J) + (1 - J) / (2^b - 1)) / K`. `alpha` is 1
/// for independent components and less for components that partition the features. Prints the ratios.
fn check(kind: SketchKind, size: usize, trials: usize, alpha: impl Fn(usize) -> f64) {
    println!("{kind:?}, K = {size}: mean square error / variance of independent components, b = 1, 4, 64");
    for union in UNIONS {
        for similarity in SIMILARITIES {
            let measured = measure(kind, size, union, similarity, trials);
            let ratios: Vec<_> = measured.iter().map(|m| format!("{:.3}", m.ratio)).collect();
            println!("  {union:5} features, J = {similarity:4}: {}", ratios.join(" "));
            for (bits, Measured { bias, ratio }) in [1, 4, 64].into_iter().zip(measured) {
                let accident = match_probability(0.0, bits) / (1.0 - match_probability(0.0, bits));
                let expected = (alpha(union) * similarity + accident) / (similarity + accident);
                let what = format!(
                    "{kind:?} union {union} J {similarity} b {bits}: bias {bias}, ratio {ratio} \
                     for {expected}"
                );
                // The mean of n estimates has the standard deviation of one estimate, divided by sqrt(n).
                let deviation = standard_error(similarity, size, bits) * (expected / trials as f64).sqrt();
                assert!(bias.abs() <= SIGMAS * deviation, "{what}");
                let kurtosis = bounds::kurtosis(size, match_probability(similarity, bits));
                let slack = bounds::of_mean_square(trials, kurtosis);
                assert!((ratio / expected - 1.0).abs() <= slack, "{what}");
            }
        }
    }
}

#[test]
fn minhash_has_no_bias_and_the_variance_of_independent_components() {
    check(SketchKind::MinHash, 64, 1000, |_| 1.0);
}

/// For texts of 20 or more features, fast similarity sketching has the variance of SuperMinHash (O. Ertl,
/// *SuperMinHash*, 2017, theorem 1): half of MinHash's if there are fewer features than components, and never
/// more than MinHash's.
#[test]
fn fss_has_no_bias_and_less_variance_than_minhash() {
    const SIZE: usize = 448;
    let alpha = |union| variance::alpha(SIZE, union);
    // Evaluated with exact integers: 0.4879 for 20 features, 0.7815 for 2000.
    assert!((alpha(20) - 0.4879).abs() < 1e-4 && (alpha(2000) - 0.7815).abs() < 1e-4);
    check(SketchKind::Fss, SIZE, 1000, alpha);
}

/// The staged filter assumes: given the matches of all K components, those of the first k are hypergeometric,
/// with variance `k M/K (1 - M/K) (K - k) / (K - 1)` about `k M / K`. This holds for any k components.
#[test]
fn components_are_exchangeable() {
    const SIZE: usize = 448;
    const TRIALS: usize = 1000;
    const PARTS: [(usize, usize); 3] = [(0, 64), (0, 192), (SIZE - 126, SIZE)];
    let kernel = Kernel::new(SIZE, 64);
    for union in UNIONS {
        for similarity in SIMILARITIES {
            let mut sums = [(0.0, 0.0); PARTS.len()];
            for trial in 0..TRIALS as u64 {
                let (a, b) = sketches(SketchKind::Fss, SIZE, union, similarity, trial);
                let share = f64::from(kernel.differing(&a.words, &b.words, 0, SIZE)) / SIZE as f64;
                for ((squares, expected), (from, to)) in sums.iter_mut().zip(PARTS) {
                    let part = (to - from) as f64;
                    let deviation = f64::from(kernel.differing(&a.words, &b.words, from, to)) - part * share;
                    *squares += deviation * deviation;
                    *expected += part * share * (1.0 - share) * (SIZE as f64 - part) / (SIZE - 1) as f64;
                }
            }
            for ((squares, expected), (from, to)) in sums.into_iter().zip(PARTS) {
                // A hypergeometric count has a lighter tail than a binomial one.
                let slack = bounds::of_mean_square(TRIALS, bounds::kurtosis(to - from, similarity));
                let ratio = squares / expected;
                assert!((ratio - 1.0).abs() <= slack, "{from}..{to} union {union} J {similarity}: {ratio}");
            }
        }
    }
}
