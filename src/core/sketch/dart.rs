//! Darts: K samples of weighted features in O(n + K log K), equal with a probability that is exactly J_w.
//!
//! Weighted features -> K components. Over the plane of weights w > 0 and ranks r > 0 every feature has a
//! Poisson process of rate 1, fixed by its hash: its **darts**. A feature of weight S has those with w below
//! S; each dart falls into one of K buckets, and a component is the dart of least rank in its bucket, of all
//! features. Since A and B see the same darts, and the one of least rank below the larger weight of each
//! feature is equally likely to be any, `P[component equal] = sum min(S_A, S_B) / sum max(S_A, S_B) = J_w`;
//! buckets are independent (a marked Poisson process is one for each mark).
//!
//! Only darts of a rank up to φ can matter if every bucket has one, and there are `φ ‖S‖₁` of them; φ starts
//! at `(K ln K + 2 K) / ‖S‖₁`, where 7 of 8 sketches end, and is raised by half. Darts that are thrown again
//! change nothing; so φ, the order of features and their repeats have no part in the result.
//!
//! To find a feature's darts, the weights are cut into **strips**: `(c, 2c]`, `(2c, 4c]` and so on above c =
//! [`SCALE`], and `(c/256, c]`, `(c/65536, c/256]` and so on below. In a strip darts come in the order of
//! ranks, with exponential gaps of mean 1 / width. A strip costs one hash, and no more if the first gap ends
//! beyond φ. No gap is shorter than `2^-53 / width`, since no uniform number is below 2^-53; so strips
//! narrower than `2^-54 / φ` have no dart, and finitely many strips are left whatever the weights are.
//!
//! Time, for each feature at K = 256 (AMD EPYC with AVX-512, both cores busy; the bench `sketch`, groups
//! `weighted`, repeats it): 97 ns in a text of 1000 features where MinHash takes 369; 86 where weights sum up
//! to 1, 119 where they are from 1 to 1000.
//!
//! Reference: T. Christiani, *DartMinHash: fast sketching for weighted sets* (2020), for darts, buckets and
//! φ. That paper cuts the plane into rectangles, each with a Poisson number of darts; here are strips with
//! gaps, as in O. Ertl, *BagMinHash* (KDD 2018): a rectangle costs its darts even where it is mostly outside,
//! and with c 1000 times too small or too large that took two to three times as long.

use super::draws::{Draws, ln, uniform};
use super::{Sampler, weighted};
use crate::hash::mix;
use crate::text::Features;

/// c, where strips begin to be fine: weights well below it cost more time, those above it a hash for each
/// doubling. 2^-12 is right for counts from 1 on (13 hashes), and for weights that sum up to 1 (half a dart
/// at most, at K = 256).
const SCALE: f64 = 1.0 / 4096.0;

/// Ratio of the ends of a strip below [`SCALE`].
const COARSE: f64 = 256.0;

/// An area without darts for certain: 2^-54.
const NOTHING: f64 = f64::EPSILON / 4.0;

/// What rounding may do to a bound, generously.
const SLACK: f64 = 1.0 + 1e-9;

/// The sketcher.
#[derive(Clone, Debug)]
pub struct Dart {
    seed: u64,
    /// The least rank of each bucket; infinite while it is empty.
    ranks: Vec<f64>,
    strips: Vec<Strip>,
}

/// Weights above `low`, up to `low + width` inclusive.
#[derive(Clone, Copy, Debug)]
struct Strip {
    low: f64,
    width: f64,
    salt: u64,
    /// A first draw above this is a gap that ends beyond φ.
    limit: u64,
}

impl Dart {
    /// `size` components under hash functions derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self { seed: mix(seed), ranks: vec![0.0; size], strips: Vec::new() }
    }

    /// The strips that have a dart of a rank up to `phi` and of a weight below `weight`, ascending.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates, as is meant")]
    fn cut(&mut self, phi: f64, weight: f64) {
        let mut low = SCALE;
        while phi * low > NOTHING {
            low /= COARSE;
        }
        self.strips.clear();
        while low < weight {
            let high = low * if low < SCALE { COARSE } else { 2.0 };
            let width = high - low;
            let salt = mix(self.seed ^ high.to_bits());
            // A gap -ln(1 - u) is u at least, and 2^64 u is the word but for its last 12 bits.
            let limit = (phi * width * SLACK * 2.0_f64.powi(64)) as u64;
            self.strips.push(Strip { low, width, salt, limit: limit.saturating_add(1 << 12) });
            low = high;
        }
    }
}

impl Sampler for Dart {
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        self.ranks.fill(f64::INFINITY);
        out.fill(u64::MAX);
        let (sum, most) =
            weighted(features).fold((0.0, 0.0_f64), |(sum, most), (_, s)| (sum + s, most.max(s)));
        let size = out.len() as f64;
        let mut phi = (size * size.ln() + 2.0 * size) / sum;
        loop {
            self.cut(phi, most);
            for (x, s) in weighted(features) {
                for strip in self.strips.iter().take_while(|strip| strip.low < s) {
                    let mut draws = Draws(x ^ strip.salt);
                    let first = draws.word();
                    if first <= strip.limit {
                        strip.throw(first, draws, s, phi, &mut self.ranks, out);
                    }
                }
            }
            if self.ranks.iter().all(|rank| rank.is_finite()) {
                return;
            }
            phi *= 1.5;
        }
    }
}

impl Strip {
    /// Throws the darts of ranks up to `phi` and weights up to `s`, both inclusive, of the feature that
    /// `draws` and its first word belong to.
    #[inline]
    fn throw(&self, first: u64, mut draws: Draws, s: f64, phi: f64, ranks: &mut [f64], out: &mut [u64]) {
        let (mut gap, mut rank) = (uniform(first), 0.0);
        loop {
            rank -= ln(1.0 - gap) / self.width;
            if rank > phi {
                return;
            }
            let weight = self.low + self.width * draws.uniform();
            let dart = draws.word();
            if weight <= s {
                let bucket = bucket(dart, out.len());
                if (rank, dart) < (ranks[bucket], out[bucket]) {
                    (ranks[bucket], out[bucket]) = (rank, dart);
                }
            }
            gap = draws.uniform();
        }
    }
}

/// One of `size` buckets, by the high bits of the dart's hash.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "less than `size`")]
fn bucket(dart: u64, size: usize) -> usize {
    ((u128::from(dart) * size as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(size: usize, features: &[(u64, f64)]) -> Vec<u64> {
        let (ids, weights): (Vec<_>, Vec<_>) = features.iter().copied().unzip();
        let mut out = vec![0; size];
        Dart::new(size, 7).components(Features { ids: &ids, weights: &weights }, &mut out);
        out
    }

    /// All darts of one feature up to a rank, whether they count or not, as the definition has them.
    fn darts(x: u64, phi: f64, most: f64) -> Vec<(f64, f64, u64)> {
        let mut dart = Dart::new(1, 7);
        dart.cut(phi, most);
        let mut found = Vec::new();
        for strip in &dart.strips {
            let mut draws = Draws(x ^ strip.salt);
            let mut rank = 0.0;
            loop {
                rank -= ln(1.0 - draws.uniform()) / strip.width;
                if rank > phi {
                    break;
                }
                found.push((rank, strip.low + strip.width * draws.uniform(), draws.word()));
            }
        }
        found
    }

    #[test]
    fn a_component_is_the_dart_of_least_rank_in_its_bucket() {
        let features: Vec<_> =
            (0..30).map(|i| (mix(u64::from(i32::unsigned_abs(i))), 0.01 * 1.5_f64.powi(i))).collect();
        let out = sketch(16, &features);
        let all =
            features.iter().flat_map(|(x, s)| darts(*x, 1.0, 2000.0).into_iter().filter(|dart| dart.1 <= *s));
        let mut all: Vec<_> = all.collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (j, component) in out.iter().enumerate() {
            let first = all.iter().find(|dart| bucket(dart.2, 16) == j).unwrap();
            assert_eq!(first.2, *component);
        }
    }

    #[test]
    fn darts_are_as_many_as_the_area_they_are_thrown_at() {
        let (mut inside, mut upper) = (0, 0);
        for x in 0..1000 {
            let all = darts(mix(x), 2.0, 3.0);
            inside += all.iter().filter(|dart| dart.1 <= 3.0).count();
            upper += all.iter().filter(|dart| dart.1 <= 3.0 && dart.0 > 1.5).count();
        }
        // Poisson with means 6000 and 1500: standard deviations 77 and 39.
        assert!(inside.abs_diff(6000) < 350 && upper.abs_diff(1500) < 175, "{inside} {upper}");
    }

    #[test]
    fn order_and_repeats_of_features_are_immaterial() {
        let features: Vec<_> = (0..50).map(|i| (mix(i), 1.0)).collect();
        let mut twice = [features.clone(), features.clone()].concat();
        twice.reverse();
        let ids: Vec<_> = twice.iter().map(|(x, _)| *x).collect();
        let mut set = vec![0; 64];
        Dart::new(64, 7).components(Features::set(&ids), &mut set);
        assert_eq!(sketch(64, &features), sketch(64, &twice));
        assert_eq!(sketch(64, &features), set);
    }

    #[test]
    fn weights_of_any_size() {
        for scale in [f64::MIN_POSITIVE, 1e-300, 1e-9, 1.0, 1e15, f64::MAX] {
            let out = sketch(32, &[(1, scale), (2, scale / 3.0)]);
            assert_eq!(out, sketch(32, &[(2, scale / 3.0), (1, scale)]), "{scale}");
            assert!(out.iter().enumerate().all(|(j, dart)| bucket(*dart, 32) == j), "{scale}");
        }
    }

    #[test]
    fn known_answers() {
        let out = sketch(16, &[(1, 0.5), (2, 3.0), (3, 0.001)]);
        assert_eq!(out[..3], [652672766592646863, 1580097915393591432, 2387992324864791886]);
    }
}
