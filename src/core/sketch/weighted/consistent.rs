//! Consistent weighted sampling: K samples of weighted features, one feature and level each, in O(n K).
//!
//! Weighted features -> K components. For each component a [`SamplingLaw`] gives every feature x of weight S
//! a *rank* and a *level*; the component is the pair (x, level) of least rank. The randomness of a law is a
//! hash of x and the number of the component. Over this randomness a law guarantees:
//!
//! - The rank has the distribution Exp(S), so x is sampled with a probability proportional to its weight.
//! - The rank does not rise with S. Two weights S < T have the same level, and then the same rank, with
//!   probability S / T, whatever the rank of T is.
//!
//! It follows that `P[component equal] = sum min(S_A, S_B) / sum max(S_A, S_B) = J_w`: x is least in both A
//! and B with the same level iff it is least among the larger weights of all features and both its weights
//! have the same level.
//!
//! For most features one hash or two show, without a logarithm, that they are not least:
//! [`SamplingLaw::may_be_below`], which the compiler vectorizes. So the cost is two to four times that of
//! MinHash. A text of 1000 features at K = 256: 369 ns a feature by MinHash, 735 by CWS, and 1440 by ICWS,
//! whose bound is looser (AMD EPYC with AVX-512).

use crate::hash::mix;
use crate::sketch::kernel;
use crate::sketch::kernel::samples::{LANES, LaneRanks, LaneWords, PassFn, SamplingLaw};
use crate::sketch::sampler::{Sampler, weighted};
use crate::text::Features;

/// The sketcher for one law.
#[derive(Clone, Debug)]
pub(super) struct Consistent {
    /// One salt for each component, and some more to fill the last lanes.
    salts: Vec<LaneWords>,
    ranks: Vec<LaneRanks>,
    ids: Vec<LaneWords>,
    pass: PassFn,
}

impl Consistent {
    /// `size` components under hash functions derived from `seed`.
    pub(super) fn new<L: SamplingLaw>(size: usize, seed: u64) -> Self {
        let groups = size.div_ceil(LANES);
        let salt = |group, lane| mix(mix(seed) ^ mix((group * LANES + lane + 1) as u64));
        Self {
            salts: (0..groups).map(|group| std::array::from_fn(|lane| salt(group, lane))).collect(),
            ranks: vec![[0.0; LANES]; groups],
            ids: vec![[0; LANES]; groups],
            pass: kernel::pass::<L>(),
        }
    }

    /// As [`Self::new`], but with the portable pass.
    #[cfg(test)]
    fn portable<L: SamplingLaw>(size: usize, seed: u64) -> Self {
        Self { pass: kernel::samples::pass::<L>, ..Self::new::<L>(size, seed) }
    }
}

impl Sampler for Consistent {
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        self.ranks.fill([f64::INFINITY; LANES]);
        self.ids.fill([u64::MAX; LANES]);
        for (x, weight) in weighted(features) {
            (self.pass)(x, weight, &self.salts, &mut self.ranks, &mut self.ids);
        }
        out.copy_from_slice(&self.ids.as_flattened()[..out.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{cws::Intervals, icws::Logarithms};
    use super::*;

    fn sketch(mut sketcher: Consistent, size: usize, features: &[(u64, f64)]) -> Vec<u64> {
        let (ids, weights): (Vec<_>, Vec<_>) = features.iter().copied().unzip();
        let mut out = vec![0; size];
        sketcher.components(Features { ids: &ids, weights: &weights }, &mut out);
        out
    }

    fn features(n: u64) -> Vec<(u64, f64)> {
        (0..n).map(|i| (mix(i), 1e-3 * (1 + i % 50) as f64)).collect()
    }

    /// The definition: the rank of every feature is computed, without the bound.
    fn plain<L: SamplingLaw>(size: usize, seed: u64, features: &[(u64, f64)]) -> Vec<u64> {
        let salts = Consistent::new::<L>(size, seed).salts;
        let least = |salt: &u64| {
            let samples = features.iter().map(|(x, weight)| {
                let word = mix(x ^ salt);
                let (rank, level) = L::new(*weight).sample(word);
                (rank, mix(word ^ mix(level)))
            });
            samples.min_by(|a, b| a.partial_cmp(b).unwrap()).unwrap().1
        };
        salts.as_flattened()[..size].iter().map(least).collect()
    }

    fn follows_its_definition<L: SamplingLaw>() {
        for (size, n) in [(1, 1), (16, 3), (61, 40), (128, 300)] {
            let mut features = features(n);
            let expected = plain::<L>(size, n, &features);
            assert_eq!(expected, sketch(Consistent::new::<L>(size, n), size, &features));
            assert_eq!(expected, sketch(Consistent::portable::<L>(size, n), size, &features));
            features.reverse();
            features.extend(features.clone());
            assert_eq!(expected, sketch(Consistent::new::<L>(size, n), size, &features), "order, repeats");
        }
    }

    /// The rank falls as the weight grows, and changes exactly where the level changes.
    fn ranks_and_levels_are_monotone<L: SamplingLaw>() {
        for x in 0..200 {
            let samples = (-300..300).map(|i| L::new(1.05_f64.powi(i)).sample(mix(x)));
            let samples: Vec<_> = samples.collect();
            for pair in samples.windows(2) {
                assert!(pair[1].0 <= pair[0].0);
                assert_eq!(pair[1].0.to_bits() == pair[0].0.to_bits(), pair[1].1 == pair[0].1);
            }
        }
    }

    /// Exp(S) has mean 1 / S. Of weights 2 and 3 two thirds have the same level.
    fn keeps_its_promise<L: SamplingLaw>() {
        const TRIALS: u64 = 30_000;
        let share = |count: usize| count as f64 / TRIALS as f64;
        for low in [0.02, 1.0, 2.0, 300.0] {
            let of = |weight: f64| (0..TRIALS).map(move |x| L::new(weight).sample(mix(x)));
            let mean = of(low).map(|(rank, _)| rank * low).sum::<f64>() / TRIALS as f64;
            // The standard deviation of the mean is 1 / sqrt(30000) = 0.006; the bound is 4.5 of them.
            assert!((mean - 1.0).abs() < 0.026, "{low}: {mean}");
            let tail = share(of(low).filter(|(rank, _)| rank * low > 2.0).count());
            // P[Exp(1) > 2] = 0.1353, standard deviation 0.002.
            assert!((tail - 0.1353).abs() < 0.009, "{low}: {tail}");
            let same = share(of(low).zip(of(low * 1.5)).filter(|(a, b)| a.1 == b.1).count());
            assert!((same - 2.0 / 3.0).abs() < 0.0123, "{low}: {same}");
        }
    }

    #[test]
    fn cws() {
        follows_its_definition::<Intervals>();
        ranks_and_levels_are_monotone::<Intervals>();
        keeps_its_promise::<Intervals>();
    }

    #[test]
    fn icws() {
        follows_its_definition::<Logarithms>();
        ranks_and_levels_are_monotone::<Logarithms>();
        keeps_its_promise::<Logarithms>();
    }

    #[test]
    fn known_answers() {
        let features = [(1, 0.5), (2, 3.0), (3, 0.001)];
        assert_eq!(
            sketch(Consistent::new::<Intervals>(3, 7), 3, &features),
            [3_432_871_028_743_824_748, 16_816_876_065_191_173_917, 2_171_951_219_755_495_646]
        );
        assert_eq!(
            sketch(Consistent::new::<Logarithms>(3, 7), 3, &features),
            [1_253_924_297_699_775_538, 2_897_132_441_420_695_465, 11_424_855_599_563_914_794]
        );
    }
}
