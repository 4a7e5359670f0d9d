//! Min-max hashing: K/2 hash functions, and of each the least and the greatest value (J. Ji, J. Li, S. Yan,
//! Q. Tian and B. Zhang, *Min-max hash for Jaccard similarity*, ICDM 2013). O(n K / 2): half the work of
//! MinHash.
//!
//! P[equal] = J for each component. The two components of one function are slightly *less* likely to be equal
//! together than independent ones, `J (a - 1) / (u - 1)`, so the variance is slightly below that of MinHash.
//! The seed decides at which places they are stored. So any k places are a random choice among the K, as the
//! filter's looks require. If they were adjacent, the first k places would hold more couples than a random
//! choice does.
//!
//! With an odd K the last function has its least value only.

use crate::hash::{PI, fold, mix};
use crate::sketch::sampler::Sampler;
use crate::text::Features;

/// The min-max sketcher.
#[derive(Clone, Debug)]
pub struct MinMax {
    seeds: Vec<u64>,
    /// The places of the least and the greatest values, alternately.
    places: Vec<usize>,
}

impl MinMax {
    /// `size` components under hash functions derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        let seeds = (1..=size.div_ceil(2) as u64).map(|j| mix(seed ^ mix(j))).collect();
        let mut places: Vec<usize> = (0..size).collect();
        places.sort_by_key(|place| mix(!seed ^ mix(*place as u64)));
        Self { seeds, places }
    }
}

impl Sampler for MinMax {
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        for (places, seed) in self.places.chunks(2).zip(&self.seeds) {
            let ends = features.ids.iter().map(|x| mix(fold(x ^ seed, PI[3])));
            let (least, greatest) =
                ends.fold((u64::MAX, 0), |(least, greatest), h| (h.min(least), h.max(greatest)));
            out[places[0]] = least;
            // Hashed again: for a single feature the least and the greatest value are the same.
            if let Some(place) = places.get(1) {
                out[*place] = mix(!greatest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::MinHash;

    #[test]
    fn every_place_is_written_and_half_of_them_are_minhash() {
        let ids: Vec<u64> = (0..50).map(mix).collect();
        for size in [16, 33, 448] {
            let (mut out, mut reference) = (vec![0; size], vec![0; size.div_ceil(2)]);
            let mut sampler = MinMax::new(size, 4);
            sampler.components(Features::set(&ids), &mut out);
            MinHash::new(size.div_ceil(2), 4).components(Features::set(&ids), &mut reference);
            assert!(reference.iter().all(|least| out.contains(least)));
            assert!(out.iter().all(|value| *value != 0));
            let mut places = sampler.places;
            places.sort_unstable();
            assert!(places.into_iter().eq(0..size));
        }
    }
}
