//! The normal and the Poisson distribution.

/// Size up to which the Poisson probabilities are summed term by term; above, they are taken from a normal
/// distribution.
const SUMMED: usize = 4096;

/// The probability that a normal variable is at most `z` standard deviations above its mean, to 2e-4 (E.
/// Page, 1977).
pub fn normal(z: f64) -> f64 {
    1.0 / (1.0 + (-1.5976 * z - 0.070_56 * z.powi(3)).exp())
}

/// The probability that a Poisson variable of this mean is at most `most` (inclusive).
pub fn poisson_at_most(mean: f64, most: f64) -> f64 {
    if most < 0.0 {
        return 0.0;
    }
    if most > SUMMED as f64 {
        return normal((most + 0.5 - mean) / mean.max(1.0).sqrt());
    }
    let (mut log, mut all, mut count) = (-mean, 0.0, 0.0);
    while count <= most {
        let mass = f64::exp(log);
        all += mass;
        if count > mean && mass < 1e-18 {
            break;
        }
        count += 1.0;
        log += (mean / count).ln();
    }
    all.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_by_hand() {
        // 1, 2 and 2 times e^-2.
        assert!((poisson_at_most(2.0, 2.0) - 5.0 * (-2.0_f64).exp()).abs() < 1e-12);
        assert!(poisson_at_most(0.0, 0.0) >= 1.0 && poisson_at_most(3.0, -1.0) <= 0.0);
        // Summed term by term, and by the normal distribution.
        let (summed, normal) = (poisson_at_most(4000.0, 4096.0), normal(96.5 / 4000.0_f64.sqrt()));
        assert!((summed - normal).abs() < 2e-3, "{summed} {normal}");
        assert!((poisson_at_most(5000.0, 5000.0) - 0.5).abs() < 0.01);
    }
}
