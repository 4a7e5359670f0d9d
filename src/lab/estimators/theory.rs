//! Theoretical bias and mean square error of an estimate, and the intervals for measured ones.

use dupflow_core::probability::Binomial;
use dupflow_core::sketch::SketchParams;
use dupflow_core::sketch::agreement::{Agreement, Shape};

/// Standard deviations of an interval: 99.9 % of a normal distribution.
pub(super) const SIGMAS: f64 = 3.29;

/// The theory of an estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theory {
    /// Expected value minus the estimated quantity.
    pub(super) bias: f64,
    /// Mean square error.
    pub(super) error: f64,
    kurtosis: f64,
}

impl Theory {
    /// The theory of sketches with these parameters, for `union` features; `None` if nothing is known.
    pub(super) fn for_sketch(params: &SketchParams, similarity: f64, union: usize) -> Option<Self> {
        let shape = params.shape();
        let law = shape.map_or(Agreement::Bits(64), |shape| shape.agreement);
        let (bias, error) = match shape {
            Some(shape @ Shape { agreement: Agreement::Run { .. } | Agreement::Angle, .. }) => {
                independent(shape, similarity)
            }
            _ => (0.0, params.variance(similarity, union)?),
        };
        // The number of independent places that has this variance.
        let p = law.probability(similarity);
        let pq = p * (1.0 - p);
        let slope = (p - law.probability(similarity - 1e-6)) / 1e-6;
        let kurtosis = 3.0 + (1.0 - 6.0 * pq) * error * slope * slope / (pq * pq);
        Some(Self { bias, error, kurtosis })
    }

    /// The greatest expected deviation of the mean error from the bias, for `trials` trials.
    pub(super) fn bias_slack(&self, trials: usize) -> f64 {
        SIGMAS * (self.error / trials as f64).sqrt()
    }

    /// The greatest expected deviation of the mean square error from theory, as a ratio to it.
    pub(super) fn ratio_slack(&self, trials: usize) -> f64 {
        SIGMAS * ((self.kurtosis - 1.0) / trials as f64).sqrt()
    }
}

/// Bias and mean square error if places are independent and the estimate is not linear in the number of
/// agreeing ones: the sum over all numbers.
fn independent(shape: Shape, similarity: f64) -> (f64, f64) {
    let counts = Binomial::new(shape.size, shape.agreement.probability(similarity));
    (0..=shape.size).fold((0.0, 0.0), |(bias, square), matches| {
        let error = shape.agreement.similarity(matches as f64 / shape.size as f64) - similarity;
        let mass = counts.mass(matches);
        (bias + mass * error, square + mass * error * error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two places that agree with probability 1/4 if J = 0 and each is a run of two one-bit components; the
    /// estimates are -1, 2 sqrt(1/2) - 1 and 1.
    #[test]
    fn independent_by_hand() {
        let shape = Shape { size: 2, bits: 2, agreement: Agreement::Run { bits: 1, length: 2 } };
        let (bias, square) = independent(shape, 0.0);
        let middle = 2.0_f64.sqrt() - 1.0;
        assert!((bias - (6.0 * middle - 9.0 + 1.0) / 16.0).abs() < 1e-12, "{bias}");
        assert!((square - (6.0 * middle * middle + 9.0 + 1.0) / 16.0).abs() < 1e-12, "{square}");
    }

    /// Where the estimate is linear, the sum over all numbers is the variance of independent components.
    #[test]
    fn the_sum_agrees_with_the_formula() {
        let (bias, square) = independent(Shape::components(64, 1), 0.8);
        assert!(bias.abs() < 1e-12 && (square - 0.2 * 1.8 / 64.0).abs() < 1e-12, "{bias} {square}");
    }
}
