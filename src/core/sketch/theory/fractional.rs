//! Components of two widths, for sizes between two numbers of bits (P. Yuan et al., *f-fractional bit minwise
//! hashing*, 2012).
//!
//! Of K components k1 have b1 bits and k2 have b2 bits; the average is `f = (k1 b1 + k2 b2) / K`. With the
//! mean probability of accidental agreement `C = (k1 2^-b1 + k2 2^-b2) / K`, the share E of all matches
//! estimates `J = (E - C) / (1 - C)`, the *pooled* estimate of the paper. The *combined* estimate is more
//! precise: the mean of the estimates from each width, weighted by the inverse variances at the pooled
//! estimate. The weights depend on the data, so it has a bias of O(1 / K), far below its standard deviation.
//!
//! Layout: the b planes of all K components, then planes b to 2b of the first `wide` ones, a multiple of 64;
//! each in groups of 64 components. Components of different widths are not exchangeable, so such sketches are
//! compared as a whole. The first b planes are a plain b-bit sketch, from which bands are cut.

use super::estimator::Estimator;
use super::{estimate, variance};

/// The components of one width.
#[derive(Clone, Copy, Debug)]
pub struct WidthGroup {
    /// Number of components.
    pub size: usize,
    /// b.
    pub bits: usize,
}

/// Components of two widths.
#[derive(Clone, Copy, Debug)]
pub struct TwoWidths(pub [WidthGroup; 2]);

impl TwoWidths {
    /// Bits of a component, on average.
    pub fn bits(&self) -> f64 {
        self.mean(|part| part.bits as f64)
    }

    /// The mean of a property over all components.
    fn mean(&self, of: impl Fn(&WidthGroup) -> f64) -> f64 {
        let [narrow, wide] = &self.0;
        let sizes = (narrow.size as f64, wide.size as f64);
        (sizes.0 * of(narrow) + sizes.1 * of(wide)) / (sizes.0 + sizes.1)
    }

    /// The estimate from all matches together; not clamped.
    pub fn pooled(&self, matches: [usize; 2]) -> f64 {
        let size: usize = self.0.iter().map(|part| part.size).sum();
        let accident = self.mean(|part| estimate::accident(part.bits));
        let equal = matches.iter().sum::<usize>() as f64 / size as f64;
        (equal - accident) / (1.0 - accident)
    }

    /// The mean of the estimates from each width, weighted by their inverse variances; not clamped.
    pub fn combined(&self, matches: [usize; 2]) -> f64 {
        let pooled = self.pooled(matches);
        if pooled >= 1.0 {
            return 1.0;
        }
        let weights = self.variances(pooled.max(0.0)).map(f64::recip);
        let [narrow, wide] = [0, 1].map(|i| {
            let WidthGroup { size, bits } = self.0[i];
            weights[i] * estimate::estimate(matches[i], size, bits)
        });
        (narrow + wide) / (weights[0] + weights[1])
    }

    /// The variance of [`combined`](Self::combined) with the weights of the true similarity, for independent
    /// components.
    pub fn combined_variance(&self, similarity: f64) -> f64 {
        if similarity >= 1.0 {
            return 0.0;
        }
        self.variances(similarity).map(f64::recip).iter().sum::<f64>().recip()
    }

    fn variances(&self, similarity: f64) -> [f64; 2] {
        self.0.map(|WidthGroup { size, bits }| variance::of_bits(1.0, similarity, size, bits))
    }

    /// The matches of each width, narrow and wide. The first components of a sketch are the wide ones, with
    /// twice the bits.
    fn count(&self, a: &[u64], b: &[u64]) -> [usize; 2] {
        let [narrow, wide] = self.0;
        let (groups, wide_groups) = ((narrow.size + wide.size).div_ceil(64), wide.size / 64);
        let (low, high) = (narrow.bits * groups, wide.bits - narrow.bits);
        let mut differing = [0, 0];
        for g in 0..groups {
            let differ = (0..narrow.bits).map(|p| g * narrow.bits + p);
            let more = (0..high).map(|p| low + g * high + p).filter(|_| g < wide_groups);
            let or = differ.chain(more).fold(0, |or, at| or | (a[at] ^ b[at]));
            differing[usize::from(g < wide_groups)] += or.count_ones() as usize;
        }
        [narrow.size - differing[0], wide.size - differing[1]]
    }
}

impl Estimator for TwoWidths {
    fn estimate(&self, a: &[u64], b: &[u64]) -> f64 {
        self.combined(self.count(a, b))
    }

    fn standard_error(&self, similarity: f64) -> f64 {
        self.combined_variance(similarity).sqrt()
    }

    /// The rule of three, with an accidental agreement at the mean probability.
    fn unseen(&self) -> f64 {
        let size: usize = self.0.iter().map(|part| part.size).sum();
        let accident = self.mean(|part| estimate::accident(part.bits));
        (3.0 / size as f64 / (1.0 - accident)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_WIDTHS: TwoWidths =
        TwoWidths([WidthGroup { size: 66, bits: 1 }, WidthGroup { size: 64, bits: 2 }]);

    /// The variance of [`TwoWidths::pooled`], for independent components.
    fn pooled_variance(similarity: f64) -> f64 {
        let accident = TWO_WIDTHS.mean(|part| estimate::accident(part.bits));
        let spread = TWO_WIDTHS.mean(|part| {
            let p = estimate::match_probability(similarity, part.bits);
            p * (1.0 - p)
        });
        spread / (130.0 * (1.0 - accident).powi(2))
    }

    #[test]
    fn matches_by_width() {
        // One plane of 130 components, and the second plane of the first 64.
        let mut other = [0; 4];
        assert_eq!(TWO_WIDTHS.count(&[0; 4], &other), [66, 64]);
        (other[0], other[1], other[2], other[3]) = (0b11, 0b1, 0b10, 0b110);
        // Components 0, 1 and 2 of the wide ones differ, and 64 and 129 of the others.
        assert_eq!(TWO_WIDTHS.count(&[0; 4], &other), [64, 61]);
    }

    #[test]
    fn combined_estimate_at_the_ends() {
        assert!((TWO_WIDTHS.combined([66, 64]) - 1.0).abs() < 1e-15);
        assert!((TWO_WIDTHS.bits() - 194.0 / 130.0).abs() < 1e-12);
        for j in [0.0, 0.2, 0.5, 0.9] {
            assert!(TWO_WIDTHS.combined_variance(j) <= pooled_variance(j), "{j}");
        }
        assert!(TWO_WIDTHS.combined_variance(1.0).abs() < 1e-15 && pooled_variance(1.0).abs() < 1e-15);
    }
}
