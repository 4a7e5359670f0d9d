//! Fast similarity sketching (S. Dahlgaard, M. B. T. Knudsen and M. Thorup, *Fast similarity sketching*, FOCS 2017,
//! algorithm 1): K components in O(n + K log K), with no more variance than MinHash.
//!
//! Round i throws every feature into one bin; a bin keeps its least value. A value is the round (high 16 bits) above 48
//! hash bits, so an earlier round always wins, and rounds end when every bin is filled: a text of many features takes
//! one round, one hash each. Rounds K to 2K - 1 throw all features into bin i - K, which ends the filling for certain.
//!
//! Consequences: repeats of a feature change nothing, and the sketch of a union is the component-wise minimum.

use super::Sketcher;
use crate::hash::{fold, mix};

/// The sketcher, with one pair of hash constants for each round.
#[derive(Clone, Debug)]
pub struct Fss {
    rounds: Vec<(u64, u64)>,
}

impl Fss {
    /// `size` components, at most 32768, under hash functions derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        let rounds =
            (1..=2 * size as u64).map(|i| (mix(seed ^ mix(2 * i)), mix(seed ^ mix(2 * i + 1)) | 1)).collect();
        Self { rounds }
    }
}

impl Sketcher for Fss {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the high half of a product by K is below K; the low half is meant"
    )]
    fn components(&mut self, features: &[u64], out: &mut [u64]) {
        out.fill(u64::MAX);
        let size = out.len();
        let mut empty = size;
        for (i, &(salt, factor)) in self.rounds.iter().enumerate() {
            let round = (i as u64) << 48;
            for &x in features {
                let h = fold(x ^ salt, factor);
                // The product by K splits the hash into a bin and, below it, bits that are independent of the bin.
                let product = u128::from(h) * size as u128;
                let bin = if i < size { (product >> 64) as usize } else { i - size };
                let value = round | (product as u64) >> 16;
                empty -= usize::from(out[bin] == u64::MAX);
                out[bin] = out[bin].min(value);
            }
            if empty == 0 {
                return;
            }
        }
    }
}
