//! Inner loops that are compiled for certain processors; above all, comparison: how many components differ between two
//! sketches.
//!
//! A component differs iff one of its b bits does, so 64 components differ where the OR over the planes of `a ^ b` has a
//! one. The engine is chosen once, when a [`Kernel`] is made; every engine equals the
//! portable one (tested on all lengths).
//!
//! The loops know slices of words and nothing of the sketchers that call them.

#[cfg(target_arch = "x86_64")]
mod avx512;
pub(super) mod bins;
pub(super) mod planes;
pub(super) mod samples;
mod scalar;
pub(super) mod votes;
#[cfg(target_arch = "x86_64")]
mod x86;

use bins::Fill;
use planes::Pack;
use samples::{Law, Pass};
use votes::Tally;

/// Compares sketches of one shape.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    shape: Shape,
    engine: Engine,
}

/// The fastest way of this machine to throw features into bins.
pub(super) fn fill() -> Fill {
    #[cfg(target_arch = "x86_64")]
    if let Some(fill) = x86::fill() {
        return fill;
    }
    bins::fill
}

/// The same for a pass of consistent sampling.
pub(super) fn pass<L: Law>() -> Pass {
    #[cfg(target_arch = "x86_64")]
    if let Some(pass) = x86::pass::<L>() {
        return pass;
    }
    samples::pass::<L>
}

/// The same for the votes of `simhash`.
pub(super) fn tally() -> Tally {
    #[cfg(target_arch = "x86_64")]
    if let Some(tally) = x86::tally() {
        return tally;
    }
    votes::tally
}

/// The same for packing components.
pub(super) fn pack() -> Pack {
    #[cfg(target_arch = "x86_64")]
    if let Some(pack) = x86::packs().last() {
        return *pack;
    }
    planes::pack
}

/// Every way of this machine to pack components but the portable one: for tests.
#[cfg(test)]
pub(super) fn packs() -> impl Iterator<Item = Pack> {
    #[cfg(target_arch = "x86_64")]
    return x86::packs().into_iter();
    #[cfg(not(target_arch = "x86_64"))]
    std::iter::empty()
}

/// How a sketch's words are laid out: bit planes, one after the other.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Words of a plane.
    groups: usize,
    /// Planes, the bits of a component.
    planes: usize,
}

/// Differing components among the whole groups `from..to`.
type Engine = fn(a: &[u64], b: &[u64], shape: Shape, from: usize, to: usize) -> u32;

impl Kernel {
    /// The fastest engine of this machine for sketches of `size` components of `bits` bits.
    pub fn new(size: usize, bits: usize) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(engine) = x86::detect() {
            return Self { engine, ..Self::scalar(size, bits) };
        }
        Self::scalar(size, bits)
    }

    /// Every engine of this machine, by name, the portable one first: for tests and benches.
    pub fn engines(size: usize, bits: usize) -> Vec<(&'static str, Self)> {
        let scalar = Self::scalar(size, bits);
        #[cfg(target_arch = "x86_64")]
        let more = x86::engines();
        #[cfg(not(target_arch = "x86_64"))]
        let more: Vec<(&'static str, Engine)> = Vec::new();
        let named = |(name, engine)| (name, Self { engine, ..scalar });
        std::iter::once(("scalar", scalar)).chain(more.into_iter().map(named)).collect()
    }

    /// The portable engine.
    pub fn scalar(size: usize, bits: usize) -> Self {
        Self { shape: Shape { groups: size.div_ceil(64), planes: bits }, engine: scalar::differing }
    }

    /// How many of the components `from..to` (from 0, `to` exclusive and at most K) differ between `a` and `b`.
    #[inline]
    pub fn differing(&self, a: &[u64], b: &[u64], from: usize, to: usize) -> u32 {
        debug_assert!(
            from <= to && to <= self.shape.groups * 64 && a.len() >= self.shape.planes * self.shape.groups
        );
        let (first, last) = (from.div_ceil(64), to / 64);
        if first > last {
            // Both ends lie within one word.
            return self.within(a, b, last, (!0 << (from % 64)) & !(!0 << (to % 64)));
        }
        let head = if from.is_multiple_of(64) { 0 } else { self.within(a, b, from / 64, !0 << (from % 64)) };
        let tail = if to.is_multiple_of(64) { 0 } else { self.within(a, b, last, !(!0 << (to % 64))) };
        head + (self.engine)(a, b, self.shape, first, last) + tail
    }

    /// Differing components among those of group `g` that `mask` selects.
    fn within(&self, a: &[u64], b: &[u64], g: usize, mask: u64) -> u32 {
        let differ = (0..self.shape.planes).fold(0, |acc, p| {
            let at = p * self.shape.groups + g;
            acc | (a[at] ^ b[at])
        });
        (differ & mask).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    /// Words of which about one bit in eight is set, so that planes overlap seldom.
    fn words(count: usize, salt: u64) -> Vec<u64> {
        (0..count as u64)
            .map(|i| mix(i ^ salt) & mix(i ^ salt ^ 0x100_0000) & mix(i ^ salt ^ 0x200_0000))
            .collect()
    }

    /// Bit by bit, as the layout is defined.
    fn differ(a: &[u64], b: &[u64], groups: usize, component: usize) -> bool {
        a.chunks(groups)
            .zip(b.chunks(groups))
            .any(|(a, b)| (a[component / 64] ^ b[component / 64]) >> (component % 64) & 1 == 1)
    }

    #[test]
    fn every_engine_counts_every_range_of_whole_words() {
        for bits in [1, 2, 4, 8, 16, 32, 64] {
            for groups in 1..=20 {
                let (a, b) = (words(bits * groups, 1), words(bits * groups, 2));
                let differing: Vec<bool> = (0..groups * 64).map(|j| differ(&a, &b, groups, j)).collect();
                for (name, kernel) in Kernel::engines(groups * 64, bits) {
                    for (from, to) in (0..=groups).flat_map(|to| (0..=to).map(move |from| (from, to))) {
                        let expected = differing[from * 64..to * 64].iter().filter(|&&d| d).count();
                        let found = kernel.differing(&a, &b, from * 64, to * 64);
                        assert_eq!(
                            found as usize, expected,
                            "{name}: {bits} bits, words {from}..{to} of {groups}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn every_engine_counts_every_range_of_components() {
        for (size, bits) in [(16, 1), (64, 2), (130, 1), (200, 8), (192, 64)] {
            let groups = usize::div_ceil(size, 64);
            let (a, b) = (words(bits * groups, 3), words(bits * groups, 4));
            for (name, kernel) in Kernel::engines(size, bits) {
                for from in 0..=size {
                    let mut expected = 0;
                    for to in from..=size {
                        let found = kernel.differing(&a, &b, from, to);
                        assert_eq!(found, expected, "{name}: {bits} bits, components {from}..{to} of {size}");
                        expected += u32::from(to < size && differ(&a, &b, groups, to));
                    }
                }
            }
        }
    }

    #[test]
    fn no_groups() {
        assert!(Kernel::engines(0, 1).iter().all(|(_, kernel)| kernel.differing(&[], &[], 0, 0) == 0));
    }
}
