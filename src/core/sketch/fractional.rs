//! Components of different widths: between two numbers of bits there is a choice of memory (P. Yuan et al.,
//! *f-fractional bit minwise hashing*, 2012).
//!
//! Of K components k1 have b1 bits and k2 have b2, `f = (k1 b1 + k2 b2) / K` on average. With `C` the mean
//! chance of an accident, `(k1 2^-b1 + k2 2^-b2) / K`, all matches together say `J = (E - C) / (1 - C)`, the
//! *pooled* estimate of the paper. Better is to estimate from either width and to take the mean with the
//! inverse variances as weights, at the pooled estimate. The weights depend on the data, so that mean has a
//! bias of O(1 / K), far below its deviation.
//!
//! Layout: the b planes of all K components, then planes b to 2b of the first `wide` ones, a multiple of 64;
//! each in groups of 64 components. Where a component is wide, more of it is compared, so components are not
//! exchangeable and such sketches are compared as a whole; but the first b planes are a plain b-bit sketch,
//! which bands are cut from.

use super::{Estimator, estimate, variance};

/// Components of one width.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// How many.
    pub size: usize,
    /// b.
    pub bits: usize,
}

/// Components of two widths.
#[derive(Clone, Copy, Debug)]
pub struct Mixed(pub [Part; 2]);

impl Mixed {
    /// Bits of a component, on average.
    pub fn bits(&self) -> f64 {
        self.mean(|part| part.bits as f64)
    }

    /// The mean of a property over all components.
    fn mean(&self, of: impl Fn(&Part) -> f64) -> f64 {
        let [narrow, wide] = &self.0;
        let sizes = (narrow.size as f64, wide.size as f64);
        (sizes.0 * of(narrow) + sizes.1 * of(wide)) / (sizes.0 + sizes.1)
    }

    /// The estimate from all matches together; raw.
    pub fn pooled(&self, matches: [usize; 2]) -> f64 {
        let size: usize = self.0.iter().map(|part| part.size).sum();
        let accident = self.mean(|part| estimate::accident(part.bits));
        let equal = matches.iter().sum::<usize>() as f64 / size as f64;
        (equal - accident) / (1.0 - accident)
    }

    /// The variance of [`pooled`](Self::pooled), for independent components.
    pub fn pooled_variance(&self, similarity: f64) -> f64 {
        let accident = self.mean(|part| estimate::accident(part.bits));
        let spread = self.mean(|part| {
            let p = estimate::match_probability(similarity, part.bits);
            p * (1.0 - p)
        });
        let size: usize = self.0.iter().map(|part| part.size).sum();
        spread / (size as f64 * (1.0 - accident).powi(2))
    }

    /// The mean of the estimates from either width, weighted by their inverse variances; raw.
    pub fn combined(&self, matches: [usize; 2]) -> f64 {
        let pooled = self.pooled(matches);
        if pooled >= 1.0 {
            return 1.0;
        }
        let weights = self.variances(pooled.max(0.0)).map(f64::recip);
        let [narrow, wide] = [0, 1].map(|i| {
            let Part { size, bits } = self.0[i];
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
        self.0.map(|Part { size, bits }| variance::of_bits(1.0, similarity, size, bits))
    }

    /// How many of each width match, in sketches whose first components are the wide ones, of twice the bits.
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

impl Estimator for Mixed {
    fn estimate(&self, a: &[u64], b: &[u64]) -> f64 {
        self.combined(self.count(a, b))
    }

    fn standard_error(&self, similarity: f64) -> f64 {
        self.combined_variance(similarity).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: Mixed = Mixed([Part { size: 66, bits: 1 }, Part { size: 64, bits: 2 }]);

    #[test]
    fn matches_by_width() {
        // One plane of 130 components, and the second one of the first 64.
        let mut other = [0; 4];
        assert_eq!(MIXED.count(&[0; 4], &other), [66, 64]);
        (other[0], other[1], other[2], other[3]) = (0b11, 0b1, 0b10, 0b110);
        // Of the wide ones 0, 1 and 2 differ, of the others 64 and 129.
        assert_eq!(MIXED.count(&[0; 4], &other), [64, 61]);
    }

    #[test]
    fn ends_and_the_better_of_the_two() {
        assert!((MIXED.combined([66, 64]) - 1.0).abs() < 1e-15);
        assert!((MIXED.bits() - 194.0 / 130.0).abs() < 1e-12);
        for j in [0.0, 0.2, 0.5, 0.9] {
            assert!(MIXED.combined_variance(j) <= MIXED.pooled_variance(j), "{j}");
        }
        assert!(MIXED.combined_variance(1.0).abs() < 1e-15 && MIXED.pooled_variance(1.0).abs() < 1e-15);
    }
}
