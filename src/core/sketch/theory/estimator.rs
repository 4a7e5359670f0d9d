//! Estimators: two sketches to the estimated similarity of their texts.

use std::fmt;

use super::agreement::Shape;
use crate::sketch::kernel::Kernel;

/// Estimates the similarity from two sketches of one scheme.
///
/// Contract: a pure, symmetric function of the sketches' words; equal words give 1.
pub trait Estimator: Send + Sync + fmt::Debug {
    /// The estimate; not clamped, so it may be outside of 0 to 1.
    fn estimate(&self, a: &[u64], b: &[u64]) -> f64;

    /// The standard deviation of estimates at this similarity, by theory.
    fn standard_error(&self, similarity: f64) -> f64;

    /// By how much the similarity may be below 1 where the sketches agree: at such a similarity they agree
    /// with probability 0.05.
    fn unseen(&self) -> f64;

    /// The error that is stated beside an estimate. The [standard error](Self::standard_error) is 0 at 1,
    /// though different texts may have sketches that agree: there it is [what is not seen](Self::unseen).
    fn stated_error(&self, estimate: f64) -> f64 {
        if estimate < 1.0 { self.standard_error(estimate) } else { self.unseen() }
    }
}

/// The estimator for sketches that are compared place by place: it counts the places that agree.
#[derive(Clone, Copy, Debug)]
pub struct PlaceEstimator {
    shape: Shape,
    kernel: Kernel,
}

impl PlaceEstimator {
    /// For sketches of this shape.
    pub fn new(shape: Shape) -> Self {
        Self { shape, kernel: Kernel::new(shape.size, shape.bits) }
    }

    /// The number of places that agree.
    pub fn count(&self, a: &[u64], b: &[u64]) -> usize {
        self.shape.size - self.kernel.differing(a, b, 0, self.shape.size) as usize
    }
}

impl Estimator for PlaceEstimator {
    fn estimate(&self, a: &[u64], b: &[u64]) -> f64 {
        self.shape.agreement.similarity(self.count(a, b) as f64 / self.shape.size as f64)
    }

    fn standard_error(&self, similarity: f64) -> f64 {
        self.shape.agreement.standard_error(similarity, self.shape.size)
    }

    fn unseen(&self) -> f64 {
        self.shape.agreement.unseen(self.shape.size)
    }
}
