//! Pairs of sketches of any similarity, for all kinds of filter.

use super::super::{FilterKind, FilterParams, Target};
use crate::hash::mix;
use crate::sketch::Sketch;
use crate::sketch::agreement::Shape;

/// A pseudo-random sequence of numbers.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn next(&mut self) -> u64 {
        self.0 += 1;
        mix(self.0)
    }

    pub(super) fn chance(&mut self, p: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= p
    }
}

/// Two sketches of which each component is equal with probability `similarity`, the rest random; and features
/// in proportion.
pub(super) fn sketches(numbers: &mut Numbers, size: usize, bits: usize, similarity: f64) -> (Sketch, Sketch) {
    let shape = Shape::components(size, bits);
    let places: Vec<u64> = (0..size).map(|_| numbers.next()).collect();
    let near: Vec<u64> =
        places.iter().map(|x| if numbers.chance(similarity) { *x } else { numbers.next() }).collect();
    let [mut a, mut b] =
        [places, near].map(|all| Sketch { words: shape.pack(&all).into(), features: [].into() });
    let mut union: Vec<(u64, u64)> = (0..1 + numbers.next() % 80)
        .map(|_| (numbers.next(), if numbers.chance(similarity) { 0 } else { 1 + numbers.next() % 2 }))
        .collect();
    union.sort_unstable();
    let side = |other| union.iter().filter(|(_, side)| *side != other).map(|(x, _)| *x).collect();
    (a.features, b.features) = (side(1), side(2));
    (a, b)
}

/// Number of components that are equal in their lowest `low` bits, counted one by one.
pub(super) fn equal(a: &Sketch, b: &Sketch, size: usize, bits: usize, low: usize) -> Vec<bool> {
    let shape = Shape::components(size, bits);
    let place = |sketch: &Sketch, j| shape.place(&sketch.words, j) & !0 >> (64 - low);
    (0..size).map(|j| place(a, j) == place(b, j)).collect()
}

pub(super) fn count(bits: &[bool]) -> usize {
    bits.iter().filter(|&&bit| bit).count()
}

/// All kinds of filter on all shapes, with pairs of all similarities.
pub(super) fn each_case(mut check: impl FnMut(Target, &FilterParams, &Sketch, &Sketch)) {
    let mut numbers = Numbers(7);
    for (size, bits) in [(16, 1), (16, 64), (64, 1), (64, 2), (100, 8), (256, 1), (256, 2), (1000, 4)] {
        for kind in [FilterKind::Staged, FilterKind::Paper, FilterKind::Full] {
            let target = Target::new(0.8, size, bits).unwrap();
            let params = FilterParams { kind, error: Some(0.01), ..FilterParams::default() };
            for similarity in [0.0, 0.3, 0.6, 0.75, 0.8, 0.85, 0.95, 1.0] {
                for _ in 0..25 {
                    let (a, b) = sketches(&mut numbers, size, bits, similarity);
                    check(target, &params, &a, &b);
                }
            }
        }
    }
}
