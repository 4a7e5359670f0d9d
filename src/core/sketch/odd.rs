//! Odd sketches: n = c K bits, of which each component (j, s_j) of a sketch of K components flips one.
//!
//! Components that are equal flip the same bit in both sketches and vanish in their difference; so z
//! differing bits say how many components differ, `m = -(n / 2) ln(1 - 2 z / n)` of 2 K, and `J = 1 + n / (4
//! K) ln(1 - 2 z / n)`. Most precise near J = 1; below J = 0.9 collisions drown it, and with 2 z >= n the
//! sketch is *saturated*: any smaller similarity looks the same, and the estimate is minus infinity, reported
//! as 0.
//!
//! Bits agree with probability `(1 + exp(-4 (1 - J) / c)) / 2` (see [`agreement`](super::agreement)) and are
//! exchangeable, so the filter may look at the first of them. They are not made for bands: at J = 0.8 and c =
//! 1 they agree hardly more often than by chance.
//!
//! The components are those of [`fss`](super::fss), in O(n + K log K) and with no more variance than the
//! paper's MinHash.
//!
//! Reference: M. Mitzenmacher, R. Pagh and N. Pham, *Efficient estimation for high similarities using odd
//! sketches* (WWW 2014).

use super::{Fss, Sampler, Sketcher};
use crate::hash::mix;
use crate::text::Features;

/// The sketcher.
#[derive(Clone, Debug)]
pub struct Odd {
    sampler: Fss,
    components: Vec<u64>,
    /// n.
    bits: usize,
}

impl Odd {
    /// `load` bits for each of `size` components.
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
        // As many bits are set as components were not cancelled, in pairs.
        let set: u32 = words.iter().map(|word| word.count_ones()).sum();
        assert!(set.is_multiple_of(2) && (60..=100).contains(&set), "{set}");
        assert_eq!(words[4] >> (300 - 256), 0, "bits beyond n stay 0");
    }
}
