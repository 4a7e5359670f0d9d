//! Fast similarity sketching (S. Dahlgaard, M. B. T. Knudsen and M. Thorup, *Fast similarity sketching*, FOCS
//! 2017, algorithm 1): K components in O(n + K log K), with at most the variance of MinHash.
//!
//! A round throws every feature into one bin; a bin keeps its least value. A value is the round (high 16
//! bits) above 48 hash bits, so values of earlier rounds are less. Rounds end when every bin is filled: a
//! text of many features needs one round, that is, one hash for each feature. After [`RANDOM_ROUNDS`] rounds
//! each empty bin takes the least of all features under its own hash function, so that every bin is filled.
//!
//! The paper throws K rounds before it fills the empty bins one by one. Any fixed number of rounds keeps the
//! law, because a bin's value belongs to each feature of A ∪ B with equal probability: P[component equal] =
//! J, and components are exchangeable. With 32 rounds, texts of 5 features have 0.75 of MinHash's variance
//! instead of 0.5; texts of 20 and more features have the variance of the paper, and short texts cost half as
//! much (measured at K = 448; see the statistics in the tests).
//!
//! The hash of a feature is the product of its two salted halves: one multiplication of 32-bit numbers, which
//! every vector unit has. The loops are in [`kernel::bins`].
//!
//! Consequences: repeats of a feature change nothing, and the sketch of a union is the component-wise
//! minimum.

use crate::hash::mix;
use crate::sketch::kernel;
use crate::sketch::kernel::bins::{FillFn, RANDOM_ROUNDS};
use crate::sketch::sampler::Sampler;
use crate::text::Features;

/// The FSS sketcher.
#[derive(Clone, Debug)]
pub struct Fss {
    /// One salt for each round, then one for each bin.
    salts: Vec<u64>,
    fill: FillFn,
}

impl Fss {
    /// `size` components, at most 32768, under hash functions derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self { salts: salts(seed, RANDOM_ROUNDS + size), fill: kernel::fill() }
    }

    /// As [`Self::new`], but with the portable loop.
    #[cfg(test)]
    fn portable(size: usize, seed: u64) -> Self {
        Self { fill: kernel::bins::fill, ..Self::new(size, seed) }
    }
}

/// `count` salts derived from a seed.
pub(super) fn salts(seed: u64, count: usize) -> Vec<u64> {
    (1..=count as u64).map(|i| mix(mix(seed) ^ mix(i))).collect()
}

impl Sampler for Fss {
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        (self.fill)(&self.salts, features.ids, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components(sketcher: &mut Fss, features: &[u64], size: usize) -> Vec<u64> {
        let mut out = vec![0; size];
        sketcher.components(Features::set(features), &mut out);
        out
    }

    fn features(n: u64) -> Vec<u64> {
        (0..n).map(|i| mix(i ^ n << 32)).collect()
    }

    #[test]
    fn engines_agree() {
        for size in [1, 16, 63, 64, 448, 1000, 1024, 1025] {
            for n in (1..=130).chain([700, 1000, 5000]) {
                let (x, seed) = (features(n), n * 3);
                let portable = components(&mut Fss::portable(size, seed), &x, size);
                assert_eq!(portable, components(&mut Fss::new(size, seed), &x, size), "K {size}, n {n}");
                let repeated = [x.as_slice(), &x[..1], &x[..1]].concat();
                assert_eq!(
                    portable,
                    components(&mut Fss::new(size, seed), &repeated, size),
                    "K {size}, n {n}"
                );
            }
        }
        // A single round of throws, as in one permutation hashing.
        for n in [1, 7, 64, 300] {
            let (mut portable, mut fast) = (vec![0; 448], vec![7; 448]);
            kernel::bins::fill(&salts(n, 1), &features(n), &mut portable);
            kernel::fill()(&salts(n, 1), &features(n), &mut fast);
            assert_eq!(portable, fast, "n {n}");
        }
    }

    #[test]
    fn union_is_the_componentwise_minimum() {
        let mut fss = Fss::new(100, 7);
        let (a, b) = (features(40), features(300));
        let mut both = a.clone();
        both.extend(&b);
        both.extend(&a);
        both.reverse();
        let minimum: Vec<u64> = components(&mut fss, &a, 100)
            .into_iter()
            .zip(components(&mut fss, &b, 100))
            .map(|(x, y)| x.min(y))
            .collect();
        assert_eq!(components(&mut fss, &both, 100), minimum);
    }

    #[test]
    fn one_feature_fills_every_bin() {
        let out = components(&mut Fss::new(64, 1), &[5], 64);
        assert!(out.iter().all(|bin| *bin != u64::MAX));
        assert!(
            out.iter().any(|bin| bin >> 48 == RANDOM_ROUNDS as u64),
            "some bin is filled by its own function"
        );
    }
}
