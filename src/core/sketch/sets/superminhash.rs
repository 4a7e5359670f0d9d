//! SuperMinHash (O. Ertl, *SuperMinHash: a new minwise hashing algorithm for Jaccard similarity estimation*,
//! 2017): K components in O(n + K log² K), with the variance `alpha(K, u) J (1 - J) / K`, half of MinHash's
//! for texts of fewer features than components.
//!
//! Each feature visits all K components in its own random order. At its j-th step it offers the value j + r,
//! r uniform in 0..1; a component keeps the least offer. So a feature's offers ascend, and the feature can
//! stop at the first step above all kept values: `last`, which falls as the components fill. A value is the
//! step (high 16 bits) above 48 hash bits, as in [`fss`](super::fss).
//!
//! The order is a Fisher-Yates shuffle, drawn only as far as needed. It is not undone for the next feature;
//! instead each place stores the number of the feature that wrote it. Components are exchangeable, P[equal] =
//! J; repeats change nothing.

use crate::hash::mix;
use crate::sketch::sampler::Sampler;
use crate::text::Features;

/// The increment of splitmix64: 2^64 divided by the golden ratio, odd.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The SuperMinHash sketcher.
#[derive(Clone, Debug)]
pub struct SuperMinHash {
    salt: u64,
    /// For each place of the order: the number of the feature that wrote it, and the component.
    order: Vec<(u32, u32)>,
    /// Number of the present feature; entries of `order` with another number are stale.
    feature: u32,
    /// How many components keep an offer of each step; components without an offer count for the last step.
    steps: Vec<u32>,
}

impl SuperMinHash {
    /// `size` components, at most 32768, under hash functions derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self { salt: mix(mix(seed)), order: vec![(0, 0); size], feature: 0, steps: vec![0; size] }
    }
}

impl Sampler for SuperMinHash {
    #[expect(clippy::cast_possible_truncation, reason = "places are below 32768")]
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        let mut last = out.len() - 1;
        out.fill(u64::MAX);
        self.steps.fill(0);
        self.steps[last] = out.len() as u32;
        for x in features.ids {
            self.feature = self.feature.checked_add(1).unwrap_or_else(|| {
                self.order.fill((0, 0));
                1
            });
            let mut step = 0;
            while step <= last {
                let hash = mix((x ^ self.salt).wrapping_add(GAMMA.wrapping_mul(step as u64)));
                // The high half chooses a place that is not visited yet; its remainder and the low bits of
                // the hash are r.
                let scaled = (hash >> 32) * (out.len() - step) as u64;
                let place = step + (scaled >> 32) as usize;
                let value = (step as u64) << 48 | (scaled & 0xffff_ffff) << 16 | hash & 0xffff;
                let holds = |at: usize| match self.order[at] {
                    (feature, component) if feature == self.feature => component,
                    _ => at as u32,
                };
                let (visited, moved) = (holds(place) as usize, holds(step));
                // The place of this step is not read again.
                self.order[place] = (self.feature, moved);
                if value < out[visited] {
                    let before = ((out[visited] >> 48) as usize).min(out.len() - 1);
                    out[visited] = value;
                    self.steps[before] -= 1;
                    self.steps[step] += 1;
                    while self.steps[last] == 0 {
                        last -= 1;
                    }
                }
                step += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components(sampler: &mut SuperMinHash, ids: &[u64], size: usize) -> Vec<u64> {
        let mut out = vec![0; size];
        sampler.components(Features::set(ids), &mut out);
        out
    }

    #[test]
    fn one_feature_visits_every_component_once() {
        let mut out = components(&mut SuperMinHash::new(100, 1), &[5], 100);
        out.sort_unstable();
        assert!((0..100).eq(out.iter().map(|value| value >> 48)));
    }

    #[test]
    fn stopping_early_changes_nothing() {
        let ids: Vec<u64> = (0..500).map(mix).collect();
        let mut sampler = SuperMinHash::new(64, 9);
        let together = components(&mut sampler, &ids, 64);
        // A single feature never stops early; the least of all is the sketch of the union.
        let mut least = vec![u64::MAX; 64];
        for id in &ids {
            let one = components(&mut sampler, &[*id], 64);
            least.iter_mut().zip(one).for_each(|(least, value)| *least = (*least).min(value));
        }
        assert_eq!(together, least);
    }

    #[test]
    fn feature_number_overflow_resets_the_order() {
        let ids: Vec<u64> = (0..30).map(mix).collect();
        let mut sampler = SuperMinHash::new(32, 2);
        let expected = components(&mut sampler, &ids, 32);
        sampler.feature = u32::MAX - 10;
        assert_eq!(components(&mut sampler, &ids, 32), expected);
    }
}
