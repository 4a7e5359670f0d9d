//! Fast similarity sketching (S. Dahlgaard, M. B. T. Knudsen and M. Thorup, *Fast similarity sketching*, FOCS 2017,
//! algorithm 1): K components in O(n + K log K), with no more variance than MinHash.
//!
//! A round throws every feature into one bin; a bin keeps its least value. A value is the round (high 16 bits) above 48 hash
//! bits, so an earlier round always wins, and rounds end when every bin is filled: a text of many features takes one
//! round, one hash each. After [`RANDOM_ROUNDS`] rounds a bin that is still empty takes the least of all features under a
//! hash function of its own, which ends the filling for certain.
//!
//! The paper throws K rounds before it turns to the empty bins one by one. Any fixed number keeps the law, since a bin's value
//! belongs to each feature of A ∪ B with equal probability: P[component equal] = J, components exchangeable. With 32, texts
//! of 5 features have 0.75 of MinHash's variance instead of 0.5, those of 20 and more what the paper's have, and short
//! texts cost half as much (measured at K = 448; see the statistics in the tests).
//!
//! The hash of a feature is the product of its two salted halves: one multiplication of 32 bits, which every vector unit
//! has, so that the compiler makes vectors of the loop; the bins themselves are scalar.
//!
//! Consequences: repeats of a feature change nothing, and the sketch of a union is the component-wise minimum.

use super::{Sampler, kernel};
use crate::hash::mix;
use crate::text::Features;

/// Rounds of throws at random before the empty bins are filled one by one.
const RANDOM_ROUNDS: usize = 32;

/// Features hashed before their values are put into bins.
const CHUNK: usize = 64;

/// The sketcher.
#[derive(Clone, Debug)]
pub struct Fss {
    /// One for each round, then one for each bin.
    salts: Vec<u64>,
    fill: Fill,
}

/// What a bin holds that no feature has fallen into.
pub(super) const EMPTY: u64 = u64::MAX;

/// Fills bins: salts as in [`Fss`], features, one place for each bin. With a single salt there is one round, whose values are
/// below 2^48, and bins may stay [`EMPTY`].
pub(super) type Fill = fn(salts: &[u64], features: &[u64], bins: &mut [u64]);

impl Fss {
    /// `size` components, at most 32768, under hash functions derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self { salts: salts(seed, RANDOM_ROUNDS + size), fill: engine() }
    }

    /// As [`Self::new`], but without vector instructions beyond the architecture's baseline.
    #[cfg(test)]
    fn portable(size: usize, seed: u64) -> Self {
        Self { fill, ..Self::new(size, seed) }
    }
}

/// So many salts, derived from a seed.
pub(super) fn salts(seed: u64, count: usize) -> Vec<u64> {
    (1..=count as u64).map(|i| mix(mix(seed) ^ mix(i))).collect()
}

/// The fastest [`Fill`] of this machine.
pub(super) fn engine() -> Fill {
    kernel::fill().unwrap_or(fill)
}

impl Sampler for Fss {
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        (self.fill)(&self.salts, features.ids, out);
    }
}

/// The portable [`Fill`], and the body of those that are compiled for certain processors.
#[inline(always)]
pub(super) fn fill(salts: &[u64], features: &[u64], bins: &mut [u64]) {
    bins.fill(EMPTY);
    let size = bins.len() as u64;
    let (throws, own) = salts.split_at(RANDOM_ROUNDS.min(salts.len()));
    let (mut places, mut values) = ([0; CHUNK], [0; CHUNK]);
    for (round, salt) in (0..).zip(throws) {
        for chunk in features.chunks(CHUNK) {
            for ((place, value), x) in places.iter_mut().zip(&mut values).zip(chunk) {
                let product = product(*x, *salt);
                // The folded half times K is a bin above 32 bits that do not depend on it; the middle of the product
                // breaks ties.
                let scaled = ((product ^ product >> 32) & LOW) * size;
                *place = (scaled >> 32) as u32;
                *value = round << 48 | (scaled & LOW) << 16 | product >> 24 & 0xffff;
            }
            for (place, value) in places.iter().zip(&values).take(chunk.len()) {
                let bin = &mut bins[*place as usize];
                *bin = (*bin).min(*value);
            }
        }
        // Rounds after the last bin is filled change nothing, so the bins are looked at only when all are likely to be. They
        // are counted, not searched: a sum becomes vectors, an early exit does not.
        let likely = (round + 1) * features.len() as u64 >= 4 * size;
        if likely && bins.iter().map(|bin| u32::from(*bin == EMPTY)).sum::<u32>() == 0 {
            return;
        }
    }
    for (bin, salt) in bins.iter_mut().zip(own).filter(|(bin, _)| **bin == EMPTY) {
        let least = features.iter().map(|x| {
            let product = product(*x, *salt);
            product ^ product.rotate_left(32)
        });
        *bin = (RANDOM_ROUNDS as u64) << 48 | least.fold(u64::MAX, u64::min) >> 16;
    }
}

const LOW: u64 = 0xffff_ffff;

/// The product of the halves of a salted feature.
#[inline(always)]
fn product(feature: u64, salt: u64) -> u64 {
    let salted = feature ^ salt;
    (salted & LOW) * (salted >> 32)
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
        for size in [16, 64, 448, 1000] {
            for n in [1, 2, 20, 63, 64, 65, 1000] {
                let (x, seed) = (features(n), n * 3);
                let portable = components(&mut Fss::portable(size, seed), &x, size);
                assert_eq!(portable, components(&mut Fss::new(size, seed), &x, size), "K {size}, n {n}");
            }
        }
    }

    #[test]
    fn a_sketch_is_of_a_set_and_a_union_is_the_minimum() {
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
