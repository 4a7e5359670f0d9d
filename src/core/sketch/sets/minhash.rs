//! MinHash: K independent minima (Broder, *On the resemblance and containment of documents*, 1997). O(n K):
//! the reference for faster sketches.

use crate::hash::{PI, fold, mix};
use crate::sketch::sampler::Sampler;
use crate::text::Features;

/// The MinHash sketcher: component j is the least hash of a feature under hash function j.
#[derive(Clone, Debug)]
pub struct MinHash {
    seeds: Vec<u64>,
}

impl MinHash {
    /// `size` components under hash functions derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self { seeds: (1..=size as u64).map(|j| mix(seed ^ mix(j))).collect() }
    }

    /// One component: the least image of the features under a permutation; `u64::MAX` without features.
    pub fn component(features: &[u64], image: impl Fn(u64) -> u64) -> u64 {
        features.iter().map(|x| image(*x)).min().unwrap_or(u64::MAX)
    }
}

impl Sampler for MinHash {
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        for (component, seed) in out.iter_mut().zip(&self.seeds) {
            *component = Self::component(features.ids, |x| mix(fold(x ^ seed, PI[3])));
        }
    }
}
