//! SimHash: the signs of f weighted votes.
//!
//! Weighted features -> f bits, f = 32, 64 or 128. Every feature votes with its weight for or against each
//! bit, by the bits of its hash: bit i is 1 iff `sum of w (+1 if bit i of the hash is set, else -1) >= 0`, so
//! a tie is 1. Under random hashing two texts whose weight vectors have the angle θ agree in a bit with
//! probability `1 - θ / π`, the law [`Agreement::Angle`](crate::sketch::agreement::Agreement). This assumes
//! normally distributed sums: it holds for many features of similar weight, and is less accurate if few
//! features dominate.
//!
//! Sums are of integers, so that they do not depend on the order of features. Weights are scaled by a power
//! of two so that the largest takes `61 - b` bits, where b is the number of bits of the number of features,
//! and truncated. So no sum can overflow, and of 1000 features a weight counts down to 2^-51 of the largest.
//! Signs do not depend on the scale.
//!
//! In a set each distinct feature votes once with weight 1. Bits above f are 0. The hash of a feature is
//! hashed again; for 128 bits, in two independent ways.
//!
//! References: M. Charikar, *Similarity estimation techniques from rounding algorithms* (STOC 2002), section
//! 3; G. Manku, A. Jain and A. Das Sarma, *Detecting near-duplicates for web crawling* (WWW 2007), section 2,
//! which leaves ties open.

use super::draws::power_of_two;
use crate::hash::mix;
use crate::sketch::kernel;
use crate::sketch::kernel::votes::{self, TallyFn};
use crate::sketch::sampler::{Sketcher, weighted};
use crate::text::Features;

/// The SimHash sketcher.
#[derive(Clone, Debug)]
pub struct SimHash {
    /// f, 32, 64 or 128.
    size: usize,
    /// One salt for each word.
    salts: Vec<u64>,
    ids: Vec<u64>,
    hashes: Vec<u64>,
    votes: Vec<i64>,
    tally: TallyFn,
}

impl SimHash {
    /// A sketcher of `size` bits, 32, 64 or 128, under hash functions derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        debug_assert!([32, 64, 128].contains(&size), "a scheme has been checked");
        Self {
            size,
            salts: (1..=size.div_ceil(64) as u64).map(|word| mix(mix(seed) ^ mix(word))).collect(),
            ids: Vec::new(),
            hashes: Vec::new(),
            votes: Vec::new(),
            tally: kernel::tally(),
        }
    }
}

impl Sketcher for SimHash {
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>) {
        self.ids.clear();
        self.ids.extend_from_slice(features.ids);
        if features.weights.is_empty() {
            self.ids.sort_unstable();
            self.ids.dedup();
        }
        whole(Features { ids: &self.ids, weights: features.weights }, &mut self.votes);
        for salt in &self.salts {
            self.hashes.clear();
            self.hashes.extend(self.ids.iter().map(|x| mix(x ^ salt)));
            words.push(
                signs(&(self.tally)(&self.hashes, &self.votes), &self.votes)
                    & u64::MAX >> (64 - self.size.min(64)),
            );
        }
    }
}

/// SimHash of the 64 bits of the given hashes, without hashing them again. There is at least one hash, and
/// one weight for each, above 0 and finite. Bit 0 is the lowest.
pub fn fingerprint(hashes: &[u64], weights: &[f64]) -> u64 {
    let mut votes = Vec::new();
    whole(Features { ids: hashes, weights }, &mut votes);
    signs(&votes::tally(hashes, &votes), &votes)
}

/// Weights as integers whose sums cannot overflow; see the module.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "small exponents; a fraction is cut off"
)]
fn whole(features: Features<'_>, votes: &mut Vec<i64>) {
    let most = weighted(features).map(|(_, weight)| weight).fold(power_of_two(-400), f64::max);
    let largest = (most.to_bits() >> 52) as i32 - 1023;
    let count = (usize::BITS - features.ids.len().leading_zeros()) as i32;
    // The largest is below 2^(61 - count), so the sum is below 2^61.
    let scale = power_of_two(60 - count - largest);
    votes.clear();
    votes.extend(weighted(features).map(|(_, weight)| (weight * scale) as i64));
}

/// The sign of each bit: votes for it against the other votes.
fn signs(for_bit: &[i64; 64], votes: &[i64]) -> u64 {
    let all: i64 = votes.iter().sum();
    (0..64).filter(|bit| 2 * for_bit[*bit] >= all).fold(0, |word, bit| word | 1 << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(size: usize, ids: &[u64], weights: &[f64]) -> Vec<u64> {
        let mut words = Vec::new();
        SimHash::new(size, 7).sketch(Features { ids, weights }, &mut words);
        words
    }

    #[test]
    fn by_hand() {
        assert_eq!(fingerprint(&[0b1100, 0b1010], &[1.0, 1.0]) & 0b1111, 0b1110);
        assert_eq!(fingerprint(&[0b1100, 0b1010], &[1.0, 1.5]), 0b1010);
        assert_eq!(
            fingerprint(&[0b1100, 0b1010, 0b0001], &[0.25, 0.5, 0.25]),
            u64::MAX >> 60 & 0b1010 | 0b1010
        );
        assert_eq!(fingerprint(&[u64::MAX, 0], &[1.0, 1.0]), u64::MAX, "all tied");
        assert_eq!(fingerprint(&[u64::MAX, 0], &[1.0, 1.0 + f64::EPSILON * 64.0]), 0);
    }

    #[test]
    fn no_sum_overflows_and_no_scale_matters() {
        let hashes: Vec<_> = (0..5000).map(mix).collect();
        let weights: Vec<_> = (0..5000).map(|i| 1.0 + f64::from(i % 7)).collect();
        let expected = fingerprint(&hashes, &weights);
        for scale in [2.0_f64.powi(-390), 0.25, 1024.0, 2.0_f64.powi(390)] {
            let scaled: Vec<_> = weights.iter().map(|weight| weight * scale).collect();
            assert_eq!(fingerprint(&hashes, &scaled), expected);
        }
        assert_eq!(fingerprint(&[u64::MAX; 1000], &[f64::MAX; 1000]), u64::MAX);
        assert_eq!(fingerprint(&[5], &[f64::MIN_POSITIVE]), 5);
    }

    #[test]
    fn engines_agree() {
        let tallies = [votes::tally as TallyFn, kernel::tally()];
        for n in [0, 1, 2, 31, 500] {
            let hashes: Vec<_> = (0..n).map(mix).collect();
            let votes: Vec<i64> = (1..=1000).take(hashes.len()).map(|i| i * i + 1).collect();
            let plain: Vec<i64> = (0..64)
                .map(|bit| {
                    hashes.iter().zip(&votes).filter(|(hash, _)| *hash >> bit & 1 == 1).map(|(_, v)| v).sum()
                })
                .collect();
            for tally in tallies {
                assert_eq!(tally(&hashes, &votes).to_vec(), plain);
            }
        }
    }

    #[test]
    fn a_set_votes_once_and_order_is_immaterial() {
        let (ids, once) = ([5, 9, 5, 7, 5], [9, 7, 5]);
        for size in [32, 64, 128] {
            let words = sketch(size, &ids, &[]);
            assert_eq!(words.len(), size.div_ceil(64));
            assert_eq!(words, sketch(size, &once, &[]));
            assert_eq!(words, sketch(size, &once, &[0.1; 3]));
        }
        let (long, wide) = (sketch(64, &ids, &[])[0], sketch(128, &ids, &[]));
        assert_eq!(sketch(32, &ids, &[]), [long & 0xffff_ffff]);
        assert_eq!(wide[0], long);
        assert!((16..48).contains(&(wide[0] ^ wide[1]).count_ones()), "the second word is independent");
    }

    #[test]
    fn known_answers() {
        assert_eq!(
            sketch(128, &[1, 2, 3], &[0.5, 3.0, 1.75]),
            [3_879_360_865_101_480_009, 10_295_775_984_132_960_123]
        );
        assert_eq!(sketch(64, &[1, 2, 3, 4], &[]), [17_995_942_371_705_872_719]);
    }
}
