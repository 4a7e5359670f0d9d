//! Means over seeds with their intervals, by Student's t.
//!
//! A measured number is repeated with other seeds. Its mean over n seeds lies within
//! `t(n - 1) s / sqrt(n)` of the true mean with a stated probability, where s is the standard deviation of
//! the samples and t the quantile of Student's law with n - 1 degrees of freedom.
//!
//! The quantile is the root of the exact sums for whole degrees of freedom (Abramowitz & Stegun,
//! *Handbook of Mathematical Functions*, 26.7.3 and 26.7.4).

/// Probability that some interval of a claim misses its mean, where samples follow a normal law. A claim of
/// m numbers gives each of them an m-th of it.
pub const OUTSIDE: f64 = 0.01;

/// Most seeds that [`seeds_to_decide`] looks for.
const MOST_SEEDS: usize = 10_000;

/// From this number of degrees of freedom on the quantile is that of this number: by less than 0.5 % too
/// large.
const MOST_FREEDOM: usize = 300;

/// P[|t| > x] for `freedom` degrees of freedom, at least 1.
fn beyond(x: f64, freedom: usize) -> f64 {
    let angle = (x / (freedom as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    // 1, then each term the one before times cos² j / (j + 1): j even for odd degrees, odd for even ones.
    let (mut term, mut sum) = (if is_odd { cos } else { 1.0 }, 0.0);
    let mut step = if is_odd { 2 } else { 1 };
    while step < freedom {
        sum += term;
        term *= cos * cos * step as f64 / (step + 1) as f64;
        step += 2;
    }
    let inside = if is_odd { 2.0 / std::f64::consts::PI * (angle + sin * sum) } else { sin * sum };
    1.0 - inside
}

/// The x with P[|t| > x] = `outside`, for `freedom` degrees of freedom.
pub fn student(outside: f64, freedom: usize) -> f64 {
    let freedom = freedom.min(MOST_FREEDOM);
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if beyond(middle, freedom) > outside { low = middle } else { high = middle }
    }
    high
}

/// The mean of samples, at least one.
pub fn mean(samples: &[f64]) -> f64 {
    // About the first, so that the mean of equal samples is each of them.
    let apart: f64 = samples.iter().map(|sample| sample - samples[0]).sum();
    samples[0] + apart / samples.len() as f64
}

/// The standard deviation of samples about their mean, with n - 1; 0 for one sample.
pub fn deviation(samples: &[f64]) -> f64 {
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (squares / (samples.len().max(2) - 1) as f64).sqrt()
}

/// Half the width of the interval of a mean of `seeds` samples; 0 for one sample, which has no seed.
pub fn half_width(deviation: f64, seeds: usize, outside: f64) -> f64 {
    if seeds < 2 || deviation == 0.0 {
        return 0.0;
    }
    student(outside, seeds - 1) * deviation / (seeds as f64).sqrt()
}

/// Half the width of the interval that holds the value at one more seed, about the mean of two samples or
/// more, with a probability of 1 - `outside`.
pub fn half_width_of_next(samples: &[f64], outside: f64) -> f64 {
    let n = samples.len() as f64;
    student(outside, samples.len() - 1) * deviation(samples) * (1.0 + 1.0 / n).sqrt()
}

/// The least number of seeds whose interval is narrower than `distance` to each side; `None` if that is more
/// than ten thousand.
pub fn seeds_to_decide(deviation: f64, distance: f64, outside: f64) -> Option<usize> {
    let is_narrow = |seeds: usize| half_width(deviation, seeds, outside) < distance;
    // The width falls with each seed.
    let (mut few, mut enough) = (1, MOST_SEEDS);
    if !is_narrow(enough) {
        return None;
    }
    while few + 1 < enough {
        let middle = usize::midpoint(few, enough);
        if is_narrow(middle) { enough = middle } else { few = middle }
    }
    Some(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles from the tables of Student (two-sided).
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (outside, freedom, printed) in [
            (0.01, 1, 63.657),
            (0.01, 2, 9.925),
            (0.01, 4, 4.604),
            (0.01, 9, 3.250),
            (0.05, 4, 2.776),
            (0.001, 4, 8.610),
            (0.01, 120, 2.617),
        ] {
            let computed = student(outside, freedom);
            assert!((computed - printed).abs() < 6e-4, "t of {freedom} at {outside}: {computed}");
        }
    }

    /// By hand: the mean of 1, 2, 3, 4, 5 is 3, their standard deviation the root of 2.5.
    #[test]
    fn five_seeds_have_an_interval() {
        let samples = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert!((mean(&samples) - 3.0).abs() < 1e-12);
        assert!((deviation(&samples) - 2.5_f64.sqrt()).abs() < 1e-12);
        let half = half_width(deviation(&samples), 5, OUTSIDE);
        assert!((half - 4.6041 * (2.5_f64 / 5.0).sqrt()).abs() < 1e-3, "{half}");
        let next = half_width_of_next(&samples, OUTSIDE);
        assert!((next - 4.6041 * (2.5_f64 * 1.2).sqrt()).abs() < 1e-3, "{next}");
        // A distance as wide as the interval needs one seed more.
        assert_eq!(seeds_to_decide(deviation(&samples), 1.000_001 * half, OUTSIDE), Some(5));
        assert_eq!(seeds_to_decide(deviation(&samples), 0.999 * half, OUTSIDE), Some(6));
        assert_eq!(seeds_to_decide(1.0, 0.0, OUTSIDE), None);
    }
}
