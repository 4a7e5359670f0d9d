//! Odd sketches: n = c K bits, of which each component (j, s_j) of a sketch of K components flips one.
//!
//! Equal components flip the same bit in both sketches and cancel in their difference. So the number z of
//! differing bits gives the number m of differing components, `m = -(n / 2) ln(1 - 2 z / n)` of 2 K, and `J =
//! 1 + n / (4 K) ln(1 - 2 z / n)`. The estimate is most precise near J = 1; below J = 0.9 collisions
//! dominate. With 2 z >= n the sketch is *saturated*: smaller similarities cannot be distinguished, and the
//! estimate is minus infinity, reported as 0.
//!
//! Bits agree with probability `(1 + exp(-4 (1 - J) / c)) / 2` (see [`agreement`](crate::sketch::agreement))
//! and are exchangeable, so the filter can look at a prefix of them. They do not suit bands: at J = 0.8 and c
//! = 1 they agree hardly more often than by chance.
//!
//! The components are those of [`fss`](super::fss), in O(n + K log K) and with at most the variance of the
//! paper's MinHash.
//!
//! Reference: M. Mitzenmacher, R. Pagh and N. Pham, *Efficient estimation for high similarities using odd
//! sketches* (WWW 2014).

use super::fss::Fss;
use crate::hash::mix;
use crate::sketch::sampler::{Sampler, Sketcher};
use crate::text::Features;

/// The odd sketcher.
#[derive(Clone, Debug)]
pub struct Odd {
    sampler: Fss,
    components: Vec<u64>,
    /// n, the number of bits.
    bits: usize,
}

impl Odd {
    /// A sketcher with `load` bits for each of `size` components.
    pub fn new(size: usize, load: usize, seed: u64) -> Self {
        Self { sampler: Fss::new(size, seed), components: vec![0; size], bits: size * load }
    }
}

impl Sketcher for Odd {
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>) {
        self.sampler.components(features, &mut self.components);
        let start = words.len();
        words.resize(start + self.bits.div_ceil(64), 0);
        for (j, component) in (1..).zip(&self.components) {
            let hash = mix(component ^ mix(j));
            let bit = (((hash >> 32) * self.bits as u64) >> 32) as usize;
            words[start + bit / 64] ^= 1 << (bit % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_component_flips_one_bit() {
        let ids: Vec<u64> = (0..100).map(mix).collect();
        let mut odd = Odd::new(100, 3, 1);
        let mut words = Vec::new();
        odd.sketch(Features::set(&ids), &mut words);
        assert_eq!(words.len(), 5);
        // Components cancel in pairs; each remaining one sets a bit.
        let set: u32 = words.iter().map(|word| word.count_ones()).sum();
        assert!(set.is_multiple_of(2) && (60..=100).contains(&set), "{set}");
        assert_eq!(words[4] >> (300 - 256), 0, "bits beyond n stay 0");
    }
}
