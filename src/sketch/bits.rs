//! Full-width components to b-bit fingerprints (P. Li and A. C. König, *b-bit minwise hashing*, WWW 2010).
//!
//! A component of value s is stored as the low b bits of a re-hash of s: a bijection of 64-bit words, so that unequal
//! components collide with probability 2^-b (truncating the value itself, a minimum, would not give that).
//!
//! Which bits of which components make planes, and in which order, is a list of [`Cut`]s: one for plain components; two where the
//! first components have more bits (P. Yuan et al., *f-fractional bit minwise hashing*, 2012); and n for places that are runs
//! of n components.

use std::ops::Range;

use super::kernel::planes::Pack;
use super::{Sampler, Sketcher, kernel};
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
    packer: Packer,
}

impl Packed {
    /// `size` components, cut like this.
    pub(super) fn new(sampler: Box<dyn Sampler>, size: usize, cuts: Vec<Cut>) -> Self {
        Self { sampler, components: vec![0; size], cuts, packer: Packer::new() }
    }
}

impl Sketcher for Packed {
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>) {
        self.sampler.components(features, &mut self.components);
        for cut in &self.cuts {
            self.packer.pack(&self.components[cut.components.clone()], cut.bits.clone(), words);
        }
    }
}

/// Packs components; see the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packer(Pack);

impl Packer {
    /// The fastest of this machine.
    pub(super) fn new() -> Self {
        Self(kernel::pack())
    }

    /// Appends the planes of these `bits` of `components`, `ceil(K / 64)` words each; unused bits of the last words are 0.
    pub(super) fn pack(self, components: &[u64], bits: Range<usize>, planes: &mut Vec<u64>) {
        let start = planes.len();
        planes.resize(start + bits.len() * components.len().div_ceil(64), 0);
        (self.0)(components, bits, &mut planes[start..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::sketch::kernel::planes::{self, rehash};

    #[test]
    fn every_plane_holds_its_bit_of_every_component() {
        for packer in [Packer(planes::pack), Packer::new()].into_iter().chain(kernel::packs().map(Packer)) {
            for size in (1usize..=130).chain([448, 1000]) {
                let components: Vec<u64> = (0..size as u64).map(|j| mix(j * 31 + 7)).collect();
                for bits in [1, 2, 4, 8, 16, 32, 64] {
                    let mut planes = vec![99];
                    packer.pack(&components, 0..bits, &mut planes);
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
                    for (from, to) in [(bits / 2, bits), (bits / 3, bits * 2 / 3)] {
                        let mut some = Vec::new();
                        packer.pack(&components, from..to, &mut some);
                        assert_eq!(some, planes[1 + from * groups..][..(to - from) * groups]);
                    }
                }
            }
        }
    }
}
