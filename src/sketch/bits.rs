//! Full-width components to b-bit fingerprints (P. Li and A. C. König, *b-bit minwise hashing*, WWW 2010).
//!
//! A component of value s is stored as the low b bits of a re-hash of s: a bijection of 64-bit words, so that unequal
//! components collide with probability 2^-b (truncating the value itself, a minimum, would not give that).
//!
//! Which bits of which components make planes, and in which order, is a list of [`Cut`]s: one for plain components; two where the
//! first components have more bits (P. Yuan et al., *f-fractional bit minwise hashing*, 2012); and n for places that are runs
//! of n components.

use std::ops::Range;

use super::{Sampler, Sketcher};
use crate::hash::PI;
use crate::text::Features;

/// Some planes of some components, which are stored together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Which components.
    pub(super) components: Range<usize>,
    /// Which of their bits, a plane each.
    pub(super) bits: Range<usize>,
}

impl Cut {
    /// Words of the planes.
    pub(super) fn words(&self) -> usize {
        self.bits.len() * self.components.len().div_ceil(64)
    }
}

/// The words of a sketch that is made of components.
#[derive(Debug)]
pub(super) struct Packed {
    sampler: Box<dyn Sampler>,
    components: Vec<u64>,
    cuts: Vec<Cut>,
}

impl Packed {
    /// `size` components, cut like this.
    pub(super) fn new(sampler: Box<dyn Sampler>, size: usize, cuts: Vec<Cut>) -> Self {
        Self { sampler, components: vec![0; size], cuts }
    }
}

impl Sketcher for Packed {
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>) {
        self.sampler.components(features, &mut self.components);
        for cut in &self.cuts {
            pack(&self.components[cut.components.clone()], cut.bits.clone(), words);
        }
    }
}

/// The re-hash: the low bits of the result are the high bits of a product, which depend on all bits of the value.
#[inline(always)]
fn rehash(value: u64) -> u64 {
    value.wrapping_mul(PI[5]).swap_bytes()
}

/// Appends the planes of these `bits` of `components`, `ceil(K / 64)` words each; unused bits of the last words are 0.
pub(super) fn pack(components: &[u64], bits: Range<usize>, planes: &mut Vec<u64>) {
    let groups = components.len().div_ceil(64);
    let start = planes.len();
    planes.resize(start + bits.len() * groups, 0);
    let planes = &mut planes[start..];
    // Eight bits of eight components at a time: row i of a bit matrix is component i, a column is a plane.
    for byte in bits.start / 8..bits.end.div_ceil(8) {
        for (e, eight) in components.chunks(8).enumerate() {
            let rows = eight.iter().rev().fold(0, |m, s| m << 8 | (rehash(*s) >> (8 * byte) & 0xff));
            let columns = transpose(rows);
            for p in bits.start.max(8 * byte)..bits.end.min(8 * byte + 8) {
                planes[(p - bits.start) * groups + e / 8] |=
                    (columns >> (8 * (p % 8)) & 0xff) << (8 * (e % 8));
            }
        }
    }
}

/// Transposes a matrix of 8 x 8 bits, row i in byte i (H. S. Warren, *Hacker's Delight*, 7-3).
fn transpose(mut x: u64) -> u64 {
    for (shift, mask) in
        [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
    {
        let swap = (x ^ (x >> shift)) & mask;
        x ^= swap ^ (swap << shift);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn every_plane_holds_its_bit_of_every_component() {
        for size in [1usize, 7, 8, 63, 64, 65, 130, 448] {
            let components: Vec<u64> = (0..size as u64).map(|j| mix(j * 31 + 7)).collect();
            for bits in [1, 2, 4, 8, 16, 32, 64] {
                let mut planes = vec![99];
                pack(&components, 0..bits, &mut planes);
                let groups = size.div_ceil(64);
                assert_eq!((planes.len(), planes[0]), (1 + bits * groups, 99));
                for p in 0..bits {
                    for j in 0..groups * 64 {
                        let stored = planes[1 + p * groups + j / 64] >> (j % 64) & 1;
                        let expected = components.get(j).map_or(0, |s| rehash(*s) >> p & 1);
                        assert_eq!(stored, expected, "size {size} bits {bits} plane {p} component {j}");
                    }
                }
                // Any planes by themselves are those of the whole.
                let (from, mut upper) = (bits / 2, Vec::new());
                pack(&components, from..bits, &mut upper);
                assert_eq!(upper, planes[1 + from * groups..]);
            }
        }
    }
}
