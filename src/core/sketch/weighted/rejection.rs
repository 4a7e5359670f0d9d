//! Rejection sampling of weighted features: random points on the range of possible weights, until one is
//! below a weight.
//!
//! Weighted features -> K components. Every feature falls into one of D slots by its hash. The weight of a
//! slot is that of its heaviest feature, clamped to the bound M, and 0 if it has none. For each component,
//! points are drawn on all slots together, `[0, D M)`; the points are the same for all texts. The component
//! is the first point below the weight of its slot (*green*; the others are *red*). Two texts agree iff the
//! first point that is green in either is green in both. So
//!
//! `P[component equal] = sum min(S_A, S_B) / sum max(S_A, S_B) = J_w`, exactly, for the weights of slots;
//! components are independent.
//!
//! The paper has a known set of features, each with its own bound; a stream does not. So the law is exact for
//! the J_w of the slots: two features of a text in one slot count as the heavier one (of n features about
//! `n^2 / 2 D` pairs share a slot: 0.7 for n = 300), and weights above M count as M.
//!
//! Cost: O(n + K / s), where `s = sum S / (D M)` is the share of green points. It is fast for weights near
//! the bound, such as counts in long texts (1,000 weights up to M = 4: 50 µs, darts take 150), and slow for
//! weights far below it, such as shares of a text. After [`MOST`] red points a component is taken from
//! [`Icws`] on the same slots, with independent randomness. If both texts draw that many red points, they
//! agree there with probability J_w again; if only one does, the components differ. So the law holds for all
//! weights, and the time is bounded.
//!
//! Reference: A. Shrivastava, *Simple and efficient weighted minwise hashing* (NIPS 2016), section 4.

use super::draws::Draws;
use super::icws::Icws;
use crate::hash::mix;
use crate::sketch::sampler::{Sampler, weighted};
use crate::text::Features;

/// D, a power of two.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 16;

/// Bits of a point within its slot: the low bits of its word.
const BITS: u32 = 64 - SLOT_BITS;

/// The most points of a component. They take as long as [`Icws`] for a component of about 900 features.
const MOST: usize = 4096;

/// The rejection sketcher.
#[derive(Clone, Debug)]
pub struct Rejection {
    seed: u64,
    bound: f64,
    /// The most points drawn for a component.
    most: usize,
    /// The number of green positions in each slot, of 2^48.
    green: Box<[u64]>,
    /// Bit i is set if slot i has a green position. Unlike the slots, this fits into the first-level cache.
    any: Box<[u64]>,
    /// The slots with green positions, by number, and their weights in units of the bound.
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

    /// Computes the weights of the slots.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a slot, and at most 2^48")]
    fn fill(&mut self, features: Features<'_>) {
        let full = 2.0_f64.powi(BITS.cast_signed());
        for (x, weight) in weighted(features) {
            let slot = mix(x ^ self.seed) >> BITS;
            // Weights below the resolution count as the least weight above 0.
            let green = ((weight / self.bound).min(1.0) * full).max(1.0) as u64;
            if self.green[slot as usize] == 0 {
                self.slots.push(slot);
                self.any[slot as usize / 64] |= 1 << (slot % 64);
            }
            self.green[slot as usize] = self.green[slot as usize].max(green);
        }
        self.weights.extend(self.slots.iter().map(|slot| self.green[*slot as usize] as f64 / full));
    }

    /// The first green point of a component; `None` if the drawn points are all red.
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

    /// The share of components that agree, over many seeds, with at most `most` points each.
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

    /// Two texts of n features, and the J_w of their weights clamped to `bound`.
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

    /// 15,360 components have a standard deviation of 0.004, and shared slots of 0.001; the bound is 4.5 of
    /// them. With 1 point all components are taken from ICWS, with 800 about half.
    #[test]
    fn components_agree_with_probability_j_w() {
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
    fn order_repeats_and_previous_text_have_no_effect() {
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
        // For both bounds most components are taken from ICWS: at most three slots of 65,536 are green.
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
