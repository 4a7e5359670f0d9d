//! The S-curve of banding: the probability that a pair shares a block, by similarity, bands and rows.

use crate::sketch::agreement::Agreement;

/// The probability that a pair is a candidate, by its similarity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// Bands, at least 1.
    pub bands: usize,
    /// Rows of a band, at least 1.
    pub rows: usize,
    /// How often components agree.
    pub agreement: Agreement,
}

impl Curve {
    /// `1 - (1 - p(s)^rows)^bands`.
    pub fn probability(&self, similarity: f64) -> f64 {
        self.found(similarity, 1.0)
    }

    /// The probability that a pair meets in at least one block, if a pair that agrees in a band meets there
    /// with probability `meets`.
    pub fn found(&self, similarity: f64, meets: f64) -> f64 {
        let band = meets * self.agreement.probability(similarity).powf(self.rows as f64);
        // exp(n ln(1 - x)) - 1 without the loss of digits at small x.
        -(self.bands as f64 * (-band).ln_1p()).exp_m1()
    }

    /// The similarity at which half of the pairs meet, if a pair that agrees in a band meets there with
    /// probability `meets`; 0 if more than half meet at every similarity, above 1 if fewer.
    pub fn half_point(&self, meets: f64) -> f64 {
        let band = -(-std::f64::consts::LN_2 / self.bands as f64).exp_m1() / meets;
        self.agreement.similarity(band.powf(1.0 / self.rows as f64)).max(0.0)
    }
}
