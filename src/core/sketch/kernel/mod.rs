//! Inner loops compiled for certain processors, above all comparison: the number of differing components of
//! two sketches.
//!
//! A component differs iff one of its b bits does. So for 64 components, the set bits of the OR over the
//! planes of `a ^ b` are those that differ. Components of 64 bits are words, and differ if their words do.
//! The engine is chosen once, when a [`Kernel`] is made; every engine equals the portable one (tested on all
//! lengths).
//!
//! The loops operate on slices of words and do not depend on the sketchers that call them.

#[cfg(target_arch = "x86_64")]
mod avx512;
pub(super) mod bins;
pub(super) mod planes;
pub(super) mod samples;
mod scalar;
pub(super) mod votes;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

use bins::FillFn;
use planes::PackFn;
use samples::{PassFn, SamplingLaw};
use votes::TallyFn;

/// Compares sketches of one shape.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    size: usize,
    bits: usize,
    engine: Engine,
}

/// The fastest loop of this machine that throws features into bins.
pub(super) fn fill() -> FillFn {
    #[cfg(target_arch = "x86_64")]
    if let Some(fill) = x86::fill() {
        return fill;
    }
    bins::fill
}

/// The fastest pass of consistent sampling on this machine.
pub(super) fn pass<L: SamplingLaw>() -> PassFn {
    #[cfg(target_arch = "x86_64")]
    if let Some(pass) = x86::pass::<L>() {
        return pass;
    }
    samples::pass::<L>
}

/// The fastest loop of this machine for the votes of `simhash`.
pub(super) fn tally() -> TallyFn {
    #[cfg(target_arch = "x86_64")]
    if let Some(tally) = x86::tally() {
        return tally;
    }
    votes::tally
}

/// The fastest loop of this machine that packs components.
pub(super) fn pack() -> PackFn {
    #[cfg(target_arch = "x86_64")]
    if let Some(pack) = x86::packs().last() {
        return *pack;
    }
    planes::pack
}

/// All packing loops of this machine except the portable one, for tests.
#[cfg(test)]
pub(super) fn packs() -> impl Iterator<Item = PackFn> {
    #[cfg(target_arch = "x86_64")]
    return x86::packs().into_iter();
    #[cfg(not(target_arch = "x86_64"))]
    std::iter::empty()
}

/// Components of this many bits are stored as words, after the first word; narrower ones as bit planes.
pub(super) const WHOLE: usize = 64;

/// Counts differing components in whole groups of 64, with `bits` words for each group. With [`WHOLE`] bits,
/// counts differing words. Both slices have the same length.
type Engine = fn(a: &[u64], b: &[u64], bits: usize) -> u32;

impl Kernel {
    /// The fastest engine of this machine for sketches of `size` components of `bits` bits.
    pub fn new(size: usize, bits: usize) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(engine) = x86::detect() {
            return Self { engine, ..Self::scalar(size, bits) };
        }
        Self::scalar(size, bits)
    }

    /// All engines of this machine, by name, the portable one first; for tests and benches.
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
        Self { size, bits, engine: scalar::differing }
    }

    /// The number of components in `from..to` (from 0, `to` exclusive and at most K) that differ between `a`
    /// and `b`.
    #[inline]
    pub fn differing(&self, a: &[u64], b: &[u64], from: usize, to: usize) -> u32 {
        debug_assert!(from <= to && to <= self.size.next_multiple_of(64));
        let engine = |words: Range<usize>| (self.engine)(&a[words.clone()], &b[words], self.bits);
        if self.bits == WHOLE {
            return engine(1 + from..1 + to);
        }
        let (first, last) = (from.div_ceil(64), to / 64);
        if first > last {
            // Both ends are in the same word.
            return self.within(a, b, last, (!0 << (from % 64)) & !(!0 << (to % 64)));
        }
        let head = if from.is_multiple_of(64) { 0 } else { self.within(a, b, from / 64, !0 << (from % 64)) };
        let tail = if to.is_multiple_of(64) { 0 } else { self.within(a, b, last, !(!0 << (to % 64))) };
        head + engine(first * self.bits..last * self.bits) + tail
    }

    /// Differing components of group `g` among those in `mask`.
    fn within(&self, a: &[u64], b: &[u64], g: usize, mask: u64) -> u32 {
        let planes = g * self.bits..(g + 1) * self.bits;
        let differ = a[planes.clone()].iter().zip(&b[planes]).fold(0, |acc, (x, y)| acc | (x ^ y));
        (differ & mask).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    /// Words with about one bit in eight set, so that planes seldom overlap.
    fn words(count: usize, salt: u64) -> Vec<u64> {
        (0..count as u64)
            .map(|i| mix(i ^ salt) & mix(i ^ salt ^ 0x100_0000) & mix(i ^ salt ^ 0x200_0000))
            .collect()
    }

    /// Number of words of a sketch.
    fn length(size: usize, bits: usize) -> usize {
        if bits == WHOLE { 1 + size } else { bits * size.div_ceil(64) }
    }

    /// By definition of the layout, bit by bit.
    fn differ(a: &[u64], b: &[u64], bits: usize, component: usize) -> bool {
        if bits == WHOLE {
            return a[1 + component] != b[1 + component];
        }
        let planes = component / 64 * bits..(component / 64 + 1) * bits;
        planes.into_iter().any(|at| (a[at] ^ b[at]) >> (component % 64) & 1 == 1)
    }

    /// Two lists of words; about a third of them are equal, as components of 64 bits must be to agree.
    fn pair(count: usize, salt: u64) -> (Vec<u64>, Vec<u64>) {
        let (a, other) = (words(count, salt), words(count, salt + 1));
        let both = (salt..).zip(a.iter().zip(other));
        let b = both.map(|(i, (x, y))| if mix(i).is_multiple_of(3) { *x } else { y }).collect();
        (a, b)
    }

    #[test]
    fn every_engine_counts_every_range_of_whole_words() {
        for bits in [1, 2, 3, 4, 8, 16, 32, 64] {
            for groups in 1..=20 {
                let (a, b) = pair(length(groups * 64, bits), 1);
                let differing: Vec<bool> = (0..groups * 64).map(|j| differ(&a, &b, bits, j)).collect();
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
        for (size, bits) in [(16, 1), (64, 2), (130, 1), (200, 8), (192, 64), (100, 64), (70, 6)] {
            let (a, b) = pair(length(size, bits), 3);
            for (name, kernel) in Kernel::engines(size, bits) {
                for from in 0..=size {
                    let mut expected = 0;
                    for to in from..=size {
                        let found = kernel.differing(&a, &b, from, to);
                        assert_eq!(found, expected, "{name}: {bits} bits, components {from}..{to} of {size}");
                        expected += u32::from(to < size && differ(&a, &b, bits, to));
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
