//! What chance may do.

/// Standard deviations that a sum of many independent terms is within, but for a probability of 7e-6 (both sides of a
/// normal distribution). The tests ask about a few hundred times.
pub(crate) const SIGMAS: f64 = 4.5;

/// How far the mean of `trials` squares of standardised deviations is from 1, at most: such a mean has the variance `(kurtosis
/// - 1) / trials`. The kurtosis is 3 for a normal distribution and `3 + (1 - 6 p q) / (n p q)` for a binomial one.
pub(crate) fn of_mean_square(trials: usize, kurtosis: f64) -> f64 {
    SIGMAS * ((kurtosis - 1.0) / trials as f64).sqrt()
}

/// The kurtosis of a binomial distribution.
pub(crate) fn kurtosis(n: usize, p: f64) -> f64 {
    let pq = p * (1.0 - p);
    3.0 + (1.0 - 6.0 * pq) / (n as f64 * pq)
}

/// How far the share of successes in `trials` independent trials is from the probability `p` of one, at most, but for a
/// probability of 1e-6. This is Bernstein's inequality, `P[|share - p| >= t] <= 2 exp(-n t^2 / (2 (p q + t / 3)))`, solved
/// for t; unlike the normal approximation it holds for every n and p.
pub(crate) fn of_share(trials: usize, p: f64) -> f64 {
    let (n, log) = (trials as f64, (2.0 / 1e-6_f64).ln());
    (log / 3.0 + (log * log / 9.0 + 2.0 * n * log * p * (1.0 - p)).sqrt()) / n
}
