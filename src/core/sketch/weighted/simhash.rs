//! SimHash: the signs of f weighted votes.
//!
//! Weighted features -> f bits, f = 32, 64 or 128. Every feature votes with its weight for or against each
//! bit, by the bits of its hash: bit i is the sign of `sum of w (+1 if bit i of the hash is set, else -1)`.
//! Under random hashing two texts whose weight vectors have the angle θ agree in a bit with probability
//! `1 - θ / π`, the law [`Agreement::Angle`](crate::sketch::agreement::Agreement). This assumes normally
//! distributed sums: it holds for many features of similar weight, and is less accurate if few features
//! dominate.
//!
//! A **tie** is a sum of 0, as texts with an even number of equal weights have: with n of them, a share of
//! about `sqrt(2 / (π n))` of the bits. If all were 1 ([`Ties::One`]), two texts would agree where both are
//! tied, and in more bits than the law says. [`Ties::Hash`] votes on a tied bit again, each weight times a
//! number between 0 and 1 from the hash of the feature and the bit: as if weights were a little different.
//! Of {x, y} and {x, z} it gives 2/3, as the law does, where `One` gives 3/4.
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

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::draws::power_of_two;
use crate::hash::mix;
use crate::sketch::kernel;
use crate::sketch::kernel::votes::{self, TallyFn};
use crate::sketch::sampler::{Sketcher, weighted};
use crate::text::Features;

/// What a bit is whose votes are tied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ties {
    /// The sign of a second vote, by hashes of the bit and the features.
    #[default]
    Hash,
    /// 1.
    One,
}

impl Ties {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::One => "one",
        }
    }
}

/// The SimHash sketcher.
#[derive(Clone, Debug)]
pub struct SimHash {
    /// f, 32, 64 or 128.
    size: usize,
    ties: Ties,
    /// One salt for each word.
    salts: Vec<u64>,
    ids: Vec<u64>,
    hashes: Vec<u64>,
    votes: Vec<i64>,
    tally: TallyFn,
}

impl SimHash {
    /// A sketcher of `size` bits, 32, 64 or 128, under hash functions derived from `seed`.
    pub fn new(size: usize, ties: Ties, seed: u64) -> Self {
        debug_assert!([32, 64, 128].contains(&size), "a scheme has been checked");
        Self {
            size,
            ties,
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
            let tie = |bit| match self.ties {
                Ties::One => true,
                Ties::Hash => second_vote(bit, &self.hashes, &self.votes),
            };
            words.push(
                signs(&(self.tally)(&self.hashes, &self.votes), &self.votes, tie)
                    & u64::MAX >> (64 - self.size.min(64)),
            );
        }
    }
}

/// SimHash of the 64 bits of the given hashes, without hashing them again. There is at least one hash, and
/// one weight for each, above 0 and finite. Bit 0 is the lowest; ties are 1.
pub fn fingerprint(hashes: &[u64], weights: &[f64]) -> u64 {
    let mut votes = Vec::new();
    whole(Features { ids: hashes, weights }, &mut votes);
    signs(&votes::tally(hashes, &votes), &votes, |_| true)
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
fn signs(for_bit: &[i64; 64], votes: &[i64], tie: impl Fn(usize) -> bool) -> u64 {
    let all: i64 = votes.iter().sum();
    let is_set = |bit: &usize| match (2 * for_bit[*bit]).cmp(&all) {
        Ordering::Less => false,
        Ordering::Equal => tie(*bit),
        Ordering::Greater => true,
    };
    (0..64).filter(is_set).fold(0, |word, bit| word | 1 << bit)
}

/// The second vote on a tied bit; 1 if it is tied again.
fn second_vote(bit: usize, hashes: &[u64], votes: &[i64]) -> bool {
    let salt = mix(bit as u64 + 1);
    // Below 2^61 in all, times a number below 2^32: no sum overflows.
    let vote = |(hash, vote): (&u64, &i64)| {
        let vote = i128::from(*vote) * i128::from(mix(hash ^ salt) >> 32);
        if hash >> bit & 1 == 1 { vote } else { -vote }
    };
    hashes.iter().zip(votes).map(vote).sum::<i128>() >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(size: usize, ids: &[u64], weights: &[f64]) -> Vec<u64> {
        let mut words = Vec::new();
        SimHash::new(size, Ties::One, 7).sketch(Features { ids, weights }, &mut words);
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

    /// Bits of 64 in which texts of n words differ that have all words but d in common, on average: by the
    /// law of the angle, and by the program under both rules.
    fn differing(n: u64, d: u64) -> (f64, [f64; 2]) {
        const SEEDS: u64 = 3000;
        let law = (1.0 - d as f64 / n as f64).acos() / std::f64::consts::PI * 64.0;
        let text = |from: u64| (0..n - d).chain(from..from + d).map(mix).collect::<Vec<_>>();
        let (a, b) = (text(1000), text(2000));
        let found = [Ties::Hash, Ties::One].map(|ties| {
            let bits = (0..SEEDS).map(|seed| {
                let mut sketcher = SimHash::new(64, ties, seed);
                let [a, b] = [&a, &b].map(|ids| {
                    let mut words = Vec::new();
                    sketcher.sketch(Features { ids, weights: &[] }, &mut words);
                    words[0]
                });
                (a ^ b).count_ones()
            });
            f64::from(bits.sum::<u32>()) / SEEDS as f64
        });
        (law, found)
    }

    /// The standard error of a mean is below 0.08 bits. The last column is by enumeration of all votes.
    #[test]
    fn tied_bits_follow_the_law_of_the_angle() {
        for (n, d, one_by_enumeration) in [(2, 1, 16.0), (4, 2, 18.0), (4, 1, 12.0), (6, 1, 10.0)] {
            let (law, [hash, one]) = differing(n, d);
            println!("{n} words, all but {d}: law {law:.2}, one {one:.2}, hash {hash:.2}");
            assert!((hash - law).abs() < 0.35, "{d} of {n}: {hash}, by the law {law}");
            assert!((one - one_by_enumeration).abs() < 0.35, "{d} of {n}: {one}");
            assert!(law - one > 1.5, "{d} of {n}: the old rule is no better");
        }
        for (n, d) in [(10, 1), (100, 5), (5, 1)] {
            let (law, [hash, one]) = differing(n, d);
            println!("{n} words, all but {d}: law {law:.2}, one {one:.2}, hash {hash:.2}");
            assert!(if n % 2 == 0 {
                (hash - law).abs() < (one - law).abs()
            } else {
                (hash - one).abs() < 1e-9
            });
        }
        let (law, [hash, one]) = differing(20, 2);
        println!("20 words, all but 2: law {law:.2}, one {one:.2}, hash {hash:.2}");
        assert!(
            (law - 9.19).abs() < 0.01 && (one - 8.46).abs() < 0.3 && (hash - law).abs() < 0.4,
            "{hash} {one}"
        );
    }

    /// Ties are of even numbers of equal weights; nothing else depends on the rule.
    #[test]
    fn only_tied_bits_depend_on_the_rule() {
        for n in 1..40_u64 {
            let ids: Vec<_> = (0..n).map(mix).collect();
            let of = |ties| {
                let mut words = Vec::new();
                SimHash::new(128, ties, 3).sketch(Features { ids: &ids, weights: &[] }, &mut words);
                words
            };
            let (hash, one) = (of(Ties::Hash), of(Ties::One));
            for (word, salt) in SimHash::new(128, Ties::One, 3).salts.iter().enumerate() {
                for bit in 0..64 {
                    let votes: i64 =
                        ids.iter().map(|id| if mix(id ^ salt) >> bit & 1 == 1 { 1 } else { -1 }).sum();
                    let [hash, one] = [&hash, &one].map(|words| words[word] >> bit & 1);
                    assert_eq!(one == 1, votes >= 0);
                    assert!(hash == one || votes == 0, "{n} {bit}");
                }
            }
            assert!(n % 2 == 0 || hash == one);
        }
        // Sums of the greatest weights do not overflow.
        let mut words = Vec::new();
        let ids: Vec<_> = (0..1000).map(mix).collect();
        let [great, least] = [f64::MAX, 0.5].map(|weight| vec![weight; 1000]);
        SimHash::new(64, Ties::Hash, 3).sketch(Features { ids: &ids, weights: &great }, &mut words);
        let mut small = Vec::new();
        SimHash::new(64, Ties::Hash, 3).sketch(Features { ids: &ids, weights: &least }, &mut small);
        assert_eq!(words, small);
    }
}
