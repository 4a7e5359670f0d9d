//! The distributions of J over simulated pairs.
//!
//! | name | J is drawn from | stands for |
//! |---|---|---|
//! | UNIFORM | U(0, 1) | synthetic pairs, as in the paper |
//! | GAUSSIAN | N(0.5, 0.15²) within [0, 1] | synthetic pairs, as in the paper |
//! | FUNDS-like | 0.93 Beta(1, 6) + 0.05 U(0, 1) + 0.02 Beta(20, 1.5) | reports of funds: boilerplate |
//! | WEB-like | 0.999 Beta(0.8, 30) + 0.001 U(0, 1) | random pairs of a corpus |
//!
//! References: Yuan et al., the staged CWS filter (2019), section 6, for the first three; its FUNDS data are
//! not public, and the model is fitted to what it says about them (more than 90 % of the pairs end at the
//! first look at T = 0.8). G. Marsaglia and W. W. Tsang, *A simple method for generating gamma variables*
//! (TOMS 2000), section 2, for Beta, as `X / (X + Y)` of two gammas.

use rand::Rng;

/// A distribution of similarities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// U(0, 1).
    Uniform,
    /// N(0.5, 0.15²), drawn again outside of [0, 1].
    Gaussian,
    /// A model of reports of funds.
    Funds,
    /// A model of random pairs of documents.
    Web,
}

impl Distribution {
    /// All distributions.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Gaussian, Self::Funds, Self::Web];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "UNIFORM",
            Self::Gaussian => "GAUSSIAN",
            Self::Funds => "FUNDS-like",
            Self::Web => "WEB-like",
        }
    }

    /// A similarity, in 0.0..=1.0.
    pub fn sample(self, rng: &mut impl Rng) -> f64 {
        match self {
            Self::Uniform => rng.random(),
            Self::Gaussian => loop {
                let similarity = 0.5 + 0.15 * normal(rng);
                if (0.0..=1.0).contains(&similarity) {
                    return similarity;
                }
            },
            Self::Funds => match rng.random() {
                0.0..0.93 => beta(rng, 1.0, 6.0),
                0.93..0.98 => rng.random(),
                _ => beta(rng, 20.0, 1.5),
            },
            Self::Web => {
                if rng.random_bool(0.999) {
                    beta(rng, 0.8, 30.0)
                } else {
                    rng.random()
                }
            }
        }
    }

    /// The density at a similarity `s`, with 0 < s < 1.
    pub fn density(self, s: f64) -> f64 {
        match self {
            Self::Uniform => 1.0,
            Self::Gaussian => {
                let (mean, sd) = (0.5, 0.15);
                // The probability of [0, 1] before truncation.
                let inside = libm::erf(mean / sd / 2.0_f64.sqrt());
                let x = (s - mean) / sd;
                (-0.5 * x * x).exp() / (sd * (2.0 * std::f64::consts::PI).sqrt() * inside)
            }
            Self::Funds => 0.93 * beta_density(1.0, 6.0, s) + 0.05 + 0.02 * beta_density(20.0, 1.5, s),
            Self::Web => 0.999 * beta_density(0.8, 30.0, s) + 0.001,
        }
    }

    /// The expectation of a function of the similarity.
    pub fn expectation(self, of: impl Fn(f64) -> f64) -> f64 {
        self.integral(1.0, of)
    }

    /// The probability of a similarity below `threshold`, which is in 0.0..=1.0.
    pub fn share_below(self, threshold: f64) -> f64 {
        self.integral(threshold, |_| 1.0)
    }

    /// The integral from 0 to `end` by the midpoint rule, with [`STEPS`] steps that are finer near 0.
    fn integral(self, end: f64, of: impl Fn(f64) -> f64) -> f64 {
        let step = |i: usize| {
            let root = (i as f64 + 0.5) / STEPS as f64;
            let s = end * root * root;
            of(s) * self.density(s) * end * 2.0 * root / STEPS as f64
        };
        (0..STEPS).map(step).sum()
    }
}

/// Steps of an integral over [0, 1]: accurate to about 1e-5.
const STEPS: usize = 2000;

/// The density of Beta(a, b).
fn beta_density(a: f64, b: f64, x: f64) -> f64 {
    let scale = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    (scale + (a - 1.0) * x.ln() + (b - 1.0) * (1.0 - x).ln()).exp()
}

/// N(0, 1), by the polar method.
fn normal(rng: &mut impl Rng) -> f64 {
    loop {
        let (x, y): (f64, f64) = (rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0));
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * square.ln() / square).sqrt();
        }
    }
}

/// Gamma(shape, 1).
fn gamma(rng: &mut impl Rng, shape: f64) -> f64 {
    if shape < 1.0 {
        let boost: f64 = rng.random();
        return gamma(rng, shape + 1.0) * boost.powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        let u: f64 = rng.random();
        if v > 0.0 && u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// Beta(a, b), with `a` and `b` above 0.
pub(crate) fn beta(rng: &mut impl Rng, a: f64, b: f64) -> f64 {
    let (x, y) = (gamma(rng, a), gamma(rng, b));
    x / (x + y)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const DRAWS: usize = 100_000;

    /// Mean and variance of many draws.
    fn moments(mut draw: impl FnMut(&mut ChaCha8Rng) -> f64) -> (f64, f64) {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let x = draw(&mut rng);
            sum += x;
            squares += x * x;
        }
        let mean = sum / DRAWS as f64;
        (mean, squares / DRAWS as f64 - mean * mean)
    }

    /// Beta(a, b) has the mean `a / (a + b)` and the variance `a b / ((a + b)^2 (a + b + 1))`. A mean of n
    /// draws is within 4.5 standard deviations; a variance within 6 %, more than 4.5 times `sqrt((kurtosis -
    /// 1) / n)` for a kurtosis of up to 18.
    #[test]
    fn moments_of_beta() {
        for (a, b) in [(1.0_f64, 6.0_f64), (20.0, 1.5), (0.8, 30.0), (0.5, 0.5)] {
            let (mean, variance) = moments(|rng| beta(rng, a, b));
            let expected = (a / (a + b), a * b / ((a + b).powi(2) * (a + b + 1.0)));
            assert!((mean - expected.0).abs() < 4.5 * (expected.1 / DRAWS as f64).sqrt(), "{a} {b}: {mean}");
            assert!((variance / expected.1 - 1.0).abs() < 0.06, "{a} {b}: {variance}");
        }
    }

    /// By hand: 0.93 / 7 + 0.05 / 2 + 0.02 * 20 / 21.5 and 0.999 * 0.8 / 30.8 + 0.0005.
    #[test]
    fn means_of_all() {
        let means = [0.5, 0.5, 0.176_462, 0.026_448];
        for (distribution, expected) in Distribution::ALL.into_iter().zip(means) {
            let (mean, variance) = moments(|rng| distribution.sample(rng));
            assert!(
                (mean - expected).abs() < 4.5 * (variance / DRAWS as f64).sqrt(),
                "{distribution:?}: {mean}"
            );
            let (all, integral) = (distribution.expectation(|_| 1.0), distribution.expectation(|s| s));
            assert!(
                (all - 1.0).abs() < 1e-4 && (integral - expected).abs() < 1e-4,
                "{distribution:?}: {all} {integral}"
            );
        }
    }

    #[test]
    fn the_normal_distribution_is_cut() {
        let (_, variance) = moments(|rng| Distribution::Gaussian.sample(rng));
        // 0.0225 without the truncation at 3.33 standard deviations, which takes away 1 %.
        assert!((0.0218..0.0227).contains(&variance), "{variance}");
    }
}
