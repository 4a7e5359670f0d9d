//! Rejection sampling of weighted features: random points on the range that weights may have, until one lies
//! below a weight.
//!
//! Weighted features -> K components. Every feature falls into one of D slots by its hash, and a slot has a
//! weight from 0 to the bound M: that of its heaviest feature, and no more than M. Of each component, points
//! are drawn on all slots together, `[0, D M)`, the same for all texts; the first that lies below the weight
//! of its slot (*green*, the others are *red*) is the component. Two texts agree iff the first point that is
//! green in either is green in both, so
//!
//! `P[component equal] = sum min(S_A, S_B) / sum max(S_A, S_B) = J_w`, exactly, of the weights of slots;
//! components are independent.
//!
//! The paper has a known set of features, each with a bound of its own; a stream has not. So what is exact is
//! J_w of the slots: two features of a text that share one (of n features about `n^2 / 2 D` pairs do: 0.7 of
//! 300) count as the heavier, and weights above M count as M.
//!
//! Cost: O(n + K / s) with `s = sum S / (D M)` the share of points that are green: fast where weights are
//! near the bound, as counts in long texts (1,000 weights up to M = 4: 50 µs where darts take 150), slow
//! where they are far below it, as shares of a text. After [`MOST`] red points a component is left to
//! [`Icws`] of the same slots, whose randomness is its own: two texts that both draw so many red points agree
//! there with probability J_w again, and one that does not has another component. So the law holds at any
//! weight, and the time is bounded.
//!
//! Reference: A. Shrivastava, *Simple and efficient weighted minwise hashing* (NIPS 2016), section 4.

use super::draws::Draws;
use super::{Icws, Sampler, weighted};
use crate::hash::mix;
use crate::text::Features;

/// D, a power of two.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 16;

/// Bits of a point within its slot, the low ones of its word.
const BITS: u32 = 64 - SLOT_BITS;

/// Points of a component, at most: they take as long as [`Icws`] does for a component of about 900 features.
const MOST: usize = 4096;

/// The sketcher.
#[derive(Clone, Debug)]
pub struct Rejection {
    seed: u64,
    bound: f64,
    /// Points drawn of a component, at most.
    most: usize,
    /// How many of the places in a slot are green, of 2^48.
    green: Box<[u64]>,
    /// Bit i: slot i has a green place. In the first cache, unlike the slots.
    any: Box<[u64]>,
    /// Those that have, by number, and what they weigh in units of the bound.
    slots: Vec<u64>,
    weights: Vec<f64>,
    rest: Icws,
    of_rest: Vec<u64>,
}

impl Rejection {
    /// `size` components of weights up to `bound`, under hash functions derived from `seed`.
    ///
    /// # Panics
    /// If the bound is not above 0.
    pub fn new(size: usize, bound: f64, seed: u64) -> Self {
        assert!(bound > 0.0, "weights are above 0");
        Self {
            seed: mix(seed),
            bound,
            most: MOST,
            green: vec![0; SLOTS].into(),
            any: vec![0; SLOTS / 64].into(),
            slots: Vec::new(),
            weights: Vec::new(),
            rest: Icws::new(size, mix(seed)),
            of_rest: vec![0; size],
        }
    }

    /// Puts the features into their slots.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a slot, and at most 2^48")]
    fn fill(&mut self, features: Features<'_>) {
        let full = 2.0_f64.powi(BITS.cast_signed());
        for (x, weight) in weighted(features) {
            let slot = mix(x ^ self.seed) >> BITS;
            // What is lighter than any point is as light as the least.
            let green = ((weight / self.bound).min(1.0) * full).max(1.0) as u64;
            if self.green[slot as usize] == 0 {
                self.slots.push(slot);
                self.any[slot as usize / 64] |= 1 << (slot % 64);
            }
            self.green[slot as usize] = self.green[slot as usize].max(green);
        }
        self.weights.extend(self.slots.iter().map(|slot| self.green[*slot as usize] as f64 / full));
    }

    /// The first point of a component that is green, if it is among those that are drawn.
    #[inline]
    fn point(&self, component: usize) -> Option<u64> {
        let mut draws = Draws(mix(self.seed ^ mix(component as u64 + 1)));
        let is_green = |word: &u64| {
            let slot = (word >> BITS) as usize;
            self.any[slot / 64] >> (slot % 64) & 1 == 1 && word & (!0 >> SLOT_BITS) < self.green[slot]
        };
        (0..self.most).map(|_| draws.word()).find(is_green)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a slot")]
    fn clear(&mut self) {
        for slot in self.slots.drain(..) {
            self.green[slot as usize] = 0;
            self.any[slot as usize / 64] = 0;
        }
        self.weights.clear();
    }
}

impl Sampler for Rejection {
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        self.fill(features);
        let mut has_rest = false;
        for (component, place) in out.iter_mut().enumerate() {
            *place = self.point(component).unwrap_or_else(|| {
                if !std::mem::replace(&mut has_rest, true) {
                    let slots = Features { ids: &self.slots, weights: &self.weights };
                    self.rest.components(slots, &mut self.of_rest);
                }
                self.of_rest[component]
            });
        }
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 256;

    /// The share of components that agree, over many seeds; of `most` points each.
    fn equal(a: &[(u64, f64)], b: &[(u64, f64)], bound: f64, most: usize) -> f64 {
        const TRIALS: u64 = 60;
        let mut equal = 0;
        for seed in 0..TRIALS {
            let mut sampler = Rejection { most, ..Rejection::new(SIZE, bound, seed) };
            let [a, b] = [a, b].map(|features| sketch(&mut sampler, features));
            equal += a.iter().zip(&b).filter(|(a, b)| a == b).count();
        }
        equal as f64 / (SIZE as u64 * TRIALS) as f64
    }

    fn sketch(sampler: &mut Rejection, features: &[(u64, f64)]) -> Vec<u64> {
        let (ids, weights): (Vec<_>, Vec<_>) = features.iter().copied().unzip();
        let mut out = vec![0; SIZE];
        sampler.components(Features { ids: &ids, weights: &weights }, &mut out);
        out
    }

    /// Two texts of n features, and J_w of weights of at most `bound`.
    fn pair(n: u64, bound: f64) -> ([Vec<(u64, f64)>; 2], f64) {
        let weight = |i: u64| 0.05 * (1 + mix(i) % 40) as f64;
        let a: Vec<_> = (0..n).map(|i| (mix(i), weight(i))).collect();
        let b: Vec<_> =
            (n / 4..n).map(|i| (mix(i), weight(i) * if i % 3 == 0 { 0.5 } else { 1.0 })).collect();
        let clipped = |features: &[(u64, f64)], x: u64| {
            features.iter().find(|(id, _)| *id == x).map_or(0.0, |(_, own)| own.min(bound))
        };
        let sum = |of: fn(f64, f64) -> f64| {
            a.iter().map(|(x, _)| of(clipped(&a, *x), clipped(&b, *x))).sum::<f64>()
        };
        let jaccard = sum(f64::min) / sum(f64::max);
        ([a, b], jaccard)
    }

    /// 15,360 components: a standard deviation of 0.004, and 0.001 for slots that are shared; 4.5 of them.
    /// With few points all are left to the rest, with more about half are.
    #[test]
    fn components_agree_as_weights_do_however_many_points_are_drawn() {
        for (n, bound, most) in
            [(60, 2.0, MOST), (60, 2.0, 800), (60, 2.0, 1), (300, 2.0, MOST), (60, 0.7, MOST)]
        {
            let ([a, b], jaccard) = pair(n, bound);
            let found = equal(&a, &b, bound, most);
            println!("{n} features, bound {bound}, {most} points: {found:.4} for {jaccard:.4}");
            assert!((found - jaccard).abs() < 0.019, "{n} {bound} {most}: {found} {jaccard}");
        }
    }

    #[test]
    fn order_repeats_and_the_text_before_are_immaterial() {
        let ([a, b], _) = pair(50, 2.0);
        let mut sampler = Rejection::new(SIZE, 2.0, 7);
        let before = sketch(&mut sampler, &a);
        assert_ne!(sketch(&mut sampler, &b), before);
        let mut twice = [a.clone(), a].concat();
        twice.reverse();
        assert_eq!(sketch(&mut sampler, &twice), before);
    }

    #[test]
    fn known_answers() {
        // Mostly left to the rest in both: three slots of 65,536.
        for (bound, expected) in [
            (16.0, [226_181_819_735_846_777, 8_136_880_936_520_732_908, 5_640_966_262_328_282_249]),
            (0.001, [6_251_690_947_619_862_894, 7_516_481_911_180_188_625, 10_797_864_792_432_427_928]),
        ] {
            let mut out = vec![0; 16];
            let features = Features { ids: &[1, 2, 3], weights: &[0.5, 3.0, 0.001] };
            Rejection::new(16, bound, 7).components(features, &mut out);
            assert_eq!(out[..3], expected);
        }
    }

    #[test]
    fn weights_of_any_size() {
        for weight in [f64::MIN_POSITIVE, 1e-30, 1e-9, 1.0, 1e15, f64::MAX] {
            let out = sketch(&mut Rejection::new(SIZE, 1.0, 7), &[(1, weight)]);
            assert_eq!(out, sketch(&mut Rejection::new(SIZE, 1.0, 7), &[(1, weight)]), "{weight}");
            assert_ne!(out, sketch(&mut Rejection::new(SIZE, 1.0, 7), &[(2, weight)]), "{weight}");
        }
    }
}
