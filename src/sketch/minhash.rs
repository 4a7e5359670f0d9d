//! MinHash: K independent minima (Broder, *On the resemblance and containment of documents*, 1997). O(n K): the
//! reference that faster sketches are measured against.

use super::Sampler;
use crate::hash::{PI, fold, mix};
use crate::text::Features;

/// K hash functions; component j is the least hash of a feature under function j.
#[derive(Clone, Debug)]
pub struct MinHash {
    seeds: Vec<u64>,
}

impl MinHash {
    /// `size` components under hash functions derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self { seeds: (1..=size as u64).map(|j| mix(seed ^ mix(j))).collect() }
    }
}

impl Sampler for MinHash {
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        for (component, seed) in out.iter_mut().zip(&self.seeds) {
            *component = features.ids.iter().map(|x| mix(fold(x ^ seed, PI[3]))).min().unwrap_or(u64::MAX);
        }
    }
}
