//! Comparison kernels: how many components differ between two sketches.
//!
//! A component differs iff one of its b bits does, so 64 components differ where the OR over the planes of `a ^ b` has a
//! one. The engine is chosen once, when a [`Kernel`] is made; every engine equals [`scalar`] (tested on all lengths).

mod scalar;

/// Compares sketches of one shape.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    groups: usize,
    planes: usize,
    engine: Engine,
}

/// Differing components among the whole groups `from..to`; `groups` words to a plane.
type Engine = fn(a: &[u64], b: &[u64], groups: usize, from: usize, to: usize) -> u32;

impl Kernel {
    /// The fastest engine of this machine for sketches of `size` components of `bits` bits.
    pub fn new(size: usize, bits: usize) -> Self {
        Self::scalar(size, bits)
    }

    /// The portable engine.
    pub fn scalar(size: usize, bits: usize) -> Self {
        Self { groups: size.div_ceil(64), planes: bits, engine: scalar::differing }
    }

    /// How many of the components `from..to` (from 0, `to` exclusive and at most K) differ between `a` and `b`.
    #[inline]
    pub fn differing(&self, a: &[u64], b: &[u64], from: usize, to: usize) -> u32 {
        debug_assert!(from <= to && to <= self.groups * 64 && a.len() == self.planes * self.groups);
        let (first, last) = (from.div_ceil(64), to / 64);
        if first > last {
            // Both ends lie within one word.
            return self.within(a, b, last, (!0 << (from % 64)) & !(!0 << (to % 64)));
        }
        let head = if from % 64 == 0 { 0 } else { self.within(a, b, from / 64, !0 << (from % 64)) };
        let tail = if to % 64 == 0 { 0 } else { self.within(a, b, last, !(!0 << (to % 64))) };
        head + (self.engine)(a, b, self.groups, first, last) + tail
    }

    /// Differing components among those of group `g` that `mask` selects.
    fn within(&self, a: &[u64], b: &[u64], g: usize, mask: u64) -> u32 {
        let differ = (0..self.planes).fold(0, |acc, p| {
            let at = p * self.groups + g;
            acc | (a[at] ^ b[at])
        });
        (differ & mask).count_ones()
    }
}
