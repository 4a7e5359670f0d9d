//! One permutation hashing: one hash throws each feature into one of K bins, and a bin keeps its least value.
//!
//! Its cost, O(n + K), is the least of all sketches, but bins stay empty unless n is far above K. There are
//! two ways to handle empty bins:
//!
//! - [`Oph`] fills an empty bin with a copy of another bin, found by the empty bin's own random walk
//!   (*optimal densification*, Shrivastava 2017). Every component is equal with probability J, and components
//!   are exchangeable. Copies are not independent: texts of fewer features than K have 1.2 to 1.5 times the
//!   variance of MinHash.
//! - [`OphOriginal`] keeps the empty bins and estimates `matches / (K - bins empty in both)` (Li, Owen and
//!   Zhang 2012), with the least variance of all. An empty bin carries no information by itself, so such
//!   sketches are compared as a whole only.
//!
//! The bins are those of the first round of `fss`. The walk of bin j tries `TRIES` bins chosen at random, and
//! then all bins in random order; the first bin that was filled *by features* is copied. Both depend only on
//! j, so the walk is the same in all texts, and each filled bin of A ∪ B is equally likely to be the first.
//! (The paper tries without end, which takes K tries for a text of one feature.) A copy is hashed with its
//! bin's number and marked in its highest bit. So it never equals a value thrown into the bin, and stored
//! bits of different copies agree by accident independently.
//!
//! References: P. Li, A. B. Owen and C.-H. Zhang, *One permutation hashing* (NIPS 2012); A. Shrivastava,
//! *Optimal densification for fast and accurate minwise hashing* (ICML 2017).

use super::fss;
use crate::hash::mix;
use crate::sketch::bits::Packer;
use crate::sketch::kernel;
use crate::sketch::kernel::bins::{EMPTY, FillFn};
use crate::sketch::sampler::{Sampler, Sketcher};
use crate::sketch::theory::agreement::Agreement;
use crate::sketch::theory::{Estimator, estimate, variance};
use crate::text::Features;

/// Number of bins tried at random before all bins are tried in order.
const TRIES: u64 = 32;

/// Marks a copy.
const COPY: u64 = 1 << 63;

/// One round of throws.
#[derive(Clone, Debug)]
struct Throw {
    salts: Vec<u64>,
    fill: FillFn,
}

impl Throw {
    fn new(seed: u64) -> Self {
        Self { salts: fss::salts(seed, 1), fill: kernel::fill() }
    }

    fn bins(&self, features: Features<'_>, bins: &mut [u64]) {
        (self.fill)(&self.salts, features.ids, bins);
    }
}

/// One permutation hashing with optimal densification.
#[derive(Clone, Debug)]
pub struct Oph {
    throw: Throw,
    salt: u64,
    /// The bins filled by features.
    filled: Vec<usize>,
}

impl Oph {
    /// Hash functions derived from `seed`; for at most 32768 components.
    pub fn new(seed: u64) -> Self {
        Self { throw: Throw::new(seed), salt: mix(!seed), filled: Vec::new() }
    }

    /// The first filled bin on the walk of bin `j`.
    fn origin(&self, bins: &[u64], j: u64) -> usize {
        let step = |t: u64| mix(self.salt ^ (j << 32 | t));
        (0..TRIES)
            .map(|t| (((step(t) >> 32) * bins.len() as u64) >> 32) as usize)
            .find(|bin| bins[*bin] < COPY)
            .or_else(|| self.filled.iter().copied().min_by_key(|bin| step(TRIES + *bin as u64)))
            .expect("a text has a feature, which fills a bin")
    }
}

impl Sampler for Oph {
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        self.throw.bins(features, out);
        self.filled.clear();
        self.filled.extend((0..out.len()).filter(|bin| out[*bin] != EMPTY));
        if self.filled.len() == out.len() {
            return;
        }
        for j in 0..out.len() {
            if out[j] == EMPTY {
                let value = out[self.origin(out, j as u64)];
                out[j] = mix(value | (j as u64) << 48) | COPY;
            }
        }
    }
}

/// One permutation hashing with its empty bins: bit planes, and a plane of the bins that are filled.
#[derive(Clone, Debug)]
pub struct OphOriginal {
    throw: Throw,
    bins: Vec<u64>,
    bits: usize,
    packer: Packer,
}

impl OphOriginal {
    /// A sketcher of `size` bins, of which `bits` bits each are stored.
    pub fn new(size: usize, bits: usize, seed: u64) -> Self {
        Self { throw: Throw::new(seed), bins: vec![0; size], bits, packer: Packer::new() }
    }
}

impl Sketcher for OphOriginal {
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>) {
        self.throw.bins(features, &mut self.bins);
        self.packer.pack(&self.bins, 0..self.bits, words);
        let filled =
            |bins: &[u64]| bins.iter().rev().fold(0, |word, bin| word << 1 | u64::from(*bin != EMPTY));
        words.extend(self.bins.chunks(64).map(filled));
    }
}

/// The original estimate: the share of equal bins among those that are not empty in both; `None` if all are.
pub fn original_estimate(matches: f64, size: usize, jointly_empty: usize) -> Option<f64> {
    (jointly_empty < size).then(|| matches / (size - jointly_empty) as f64)
}

/// The original estimator.
#[derive(Clone, Copy, Debug)]
pub struct OphOriginalEstimator {
    /// K.
    pub size: usize,
    /// b.
    pub bits: usize,
}

impl Estimator for OphOriginalEstimator {
    fn estimate(&self, a: &[u64], b: &[u64]) -> f64 {
        let groups = self.size.div_ceil(64);
        let (mut either, mut both, mut agree) = (0, 0, 0);
        for g in 0..groups {
            let filled = |words: &[u64]| words[self.bits * groups + g];
            let differ = (0..self.bits).fold(0, |or, p| or | (a[g * self.bits + p] ^ b[g * self.bits + p]));
            either += (filled(a) | filled(b)).count_ones() as usize;
            both += (filled(a) & filled(b)).count_ones() as usize;
            agree += (filled(a) & filled(b) & !differ).count_ones() as usize;
        }
        // Of the bins filled in both, those that agree are equal or agree by accident.
        let equal = estimate::estimate(agree, both.max(1), self.bits) * both as f64;
        original_estimate(equal, self.size, self.size - either).unwrap_or(0.0)
    }

    /// An upper bound: the value for independent components.
    fn standard_error(&self, similarity: f64) -> f64 {
        variance::of_bits(1.0, similarity, self.size, self.bits).sqrt()
    }

    /// That of a place for each bin.
    fn unseen(&self) -> f64 {
        Agreement::Bits(self.bits).unseen(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(n: u64) -> Vec<u64> {
        (0..n).map(|i| mix(i ^ n << 32)).collect()
    }

    fn components(ids: &[u64], size: usize) -> Vec<u64> {
        let mut out = vec![0; size];
        Oph::new(3).components(Features::set(ids), &mut out);
        out
    }

    #[test]
    fn a_full_sketch_has_no_copies_and_a_sparse_one_copies_of_all_its_features() {
        assert!(components(&features(4000), 64).iter().all(|bin| *bin < COPY));
        for n in [1, 3, 40] {
            let out = components(&features(n), 1000);
            let filled = out.iter().filter(|bin| **bin < COPY).count();
            assert!(filled as u64 <= n && filled > 0 && !out.contains(&EMPTY), "{n}: {filled}");
        }
    }

    /// A bin that is empty in both texts copies a common feature in both, or different features.
    #[test]
    fn copies_of_one_origin_are_equal() {
        let (one, other) = (components(&features(1), 256), components(&[mix(77)], 256));
        assert_eq!(one, components(&features(1), 256));
        assert!(one.iter().zip(&other).all(|(x, y)| x != y));
        // The walk is the same with and without a second feature, unless it reaches that feature's bin first.
        let both = components(&[features(1)[0], mix(77)], 256);
        assert!(both.iter().zip(&one).zip(&other).all(|((x, y), z)| x == y || x == z));
        let of_one = both.iter().zip(&one).filter(|(x, y)| x == y).count();
        assert!((64..192).contains(&of_one), "{of_one}");
    }

    #[test]
    fn the_original_estimate_by_hand() {
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}");
        // 4 bins of 2 bits: the third is empty in both, the fourth in one only, the second differs.
        let (a, b) = ([0b0011, 0b0001, 0b1011], [0b0001, 0b0001, 0b0011]);
        let original = OphOriginalEstimator { size: 4, bits: 2 };
        // 1 of 2 agrees. Corrected for accidents, (1/2 - 1/4) / (3/4) of 2 bins are equal, of 3 not empty in
        // both.
        near(original.estimate(&a, &b), 2.0 / 3.0 / 3.0);
        near(original.estimate(&a, &a), 1.0);
        assert_eq!(original_estimate(0.0, 4, 4), None);
    }

    #[test]
    fn empty_bins_are_marked() {
        let mut words = Vec::new();
        OphOriginal::new(70, 4, 1).sketch(Features::set(&features(1)), &mut words);
        assert_eq!(words.len(), 10);
        assert_eq!(words[8].count_ones() + words[9].count_ones(), 1);
    }
}
