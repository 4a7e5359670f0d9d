//! Bounds on random deviations.

use dupflow::core::probability::Binomial;

/// Number of standard deviations that a sum of many independent terms exceeds with probability 7e-6 (both
/// sides of a normal distribution). The tests apply it a few hundred times.
pub(crate) const SIGMAS: f64 = 4.5;

/// The maximum distance from 1 of the mean of `trials` squares of standardised deviations. Such a mean has
/// the variance `(kurtosis - 1) / trials`. The kurtosis is 3 for a normal distribution and `3 + (1 - 6 p q) /
/// (n p q)` for a binomial one.
pub(crate) fn of_mean_square(trials: usize, kurtosis: f64) -> f64 {
    SIGMAS * ((kurtosis - 1.0) / trials as f64).sqrt()
}

/// The kurtosis of a binomial distribution.
pub(crate) fn kurtosis(n: usize, p: f64) -> f64 {
    let pq = p * (1.0 - p);
    3.0 + (1.0 - 6.0 * pq) / (n as f64 * pq)
}

/// The maximum number of misses in `trials` trials that each miss with probability at most `p`; more occur
/// with a probability of at most 1e-3. For 38 trials at 0.01 it is 3, since P[4 or more] = 0.0006.
pub(crate) fn of_misses(trials: usize, p: f64) -> usize {
    Binomial::new(trials, p).accept_from(1e-3) - 1
}

/// The maximum distance of the share of successes in `trials` independent trials from their probability `p`;
/// exceeded with a probability of at most 1e-6. This is Bernstein's inequality, `P[|share - p| >= t] <= 2
/// exp(-n t^2 / (2 (p q + t / 3)))`, solved for t. Unlike the normal approximation it holds for all n and p.
pub(crate) fn of_share(trials: usize, p: f64) -> f64 {
    let (n, log) = (trials as f64, (2.0 / 1e-6_f64).ln());
    (log / 3.0 + (log * log / 9.0 + 2.0 * n * log * p * (1.0 - p)).sqrt()) / n
}

#[test]
fn by_hand() {
    assert_eq!([0, 1, 38, 100].map(|trials| of_misses(trials, 0.01)), [0, 1, 3, 5]);
    assert!((of_share(1000, 0.0) - 2.0 / 3.0 * (2e6_f64).ln() / 1000.0).abs() < 1e-12);
    assert!((kurtosis(1, 0.5) - 1.0).abs() < 1e-12, "a coin is as far from its mean as can be, always");
}
