//! Packs components into b-bit fingerprints (P. Li and A. C. König, *b-bit minwise hashing*, WWW 2010).
//!
//! A component of value s is stored as the low b bits of a re-hash of s. The re-hash is a bijection of 64-bit
//! words, so unequal components collide with probability 2^-b. Truncating s itself would not give that,
//! because s is a minimum.
//!
//! A list of [`Cut`]s says which bits of which components make planes, and in which order: one cut for plain
//! components; two where the first components have more bits (P. Yuan et al., *f-fractional bit minwise
//! hashing*, 2012); n for places that are runs of n components.
//!
//! Places of 64 bits are stored as words instead of planes, so that a look reads only the places that it
//! counts. The first word is stored before them, as it would begin the planes.

use std::ops::Range;

use super::kernel;
use super::kernel::planes::{PackFn, rehash};
use super::sampler::{Sampler, Sketcher};
use crate::text::Features;

/// Some bits of some components, and where their planes are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Indices of the components.
    pub(super) components: Range<usize>,
    /// The bits of each component; one plane for each bit.
    pub(super) bits: Range<usize>,
    /// The word of the first plane. Where places are words: the bit of the place at which the first of these
    /// bits is stored.
    pub(super) at: usize,
    /// Distance in words from a word of a plane to the next word of the same plane.
    pub(super) stride: usize,
}

impl Cut {
    /// Number of words in the planes.
    pub(super) fn words(&self) -> usize {
        self.bits.len() * self.components.len().div_ceil(64)
    }
}

/// Sketcher for sketches that consist of components.
#[derive(Debug)]
pub(super) struct Packed {
    sampler: Box<dyn Sampler>,
    components: Vec<u64>,
    cuts: Vec<Cut>,
    by_word: bool,
    packer: Packer,
}

impl Packed {
    /// `size` components with these cuts; `by_word` stores places as words instead of planes.
    pub(super) fn new(sampler: Box<dyn Sampler>, size: usize, cuts: Vec<Cut>, by_word: bool) -> Self {
        Self { sampler, components: vec![0; size], cuts, by_word, packer: Packer::new() }
    }

    /// Appends the first word (the lowest bits of the first 64 places), then the places, one word each.
    fn places(&self, words: &mut Vec<u64>) {
        let first = words.len();
        let places = self.cuts.first().map_or(0, |cut| cut.components.len());
        words.resize(first + 1 + places, 0);
        for cut in &self.cuts {
            let mask = !0 >> (64 - cut.bits.len());
            let components = &self.components[cut.components.clone()];
            for (word, value) in words[first + 1..].iter_mut().zip(components) {
                *word |= (rehash(*value) >> cut.bits.start & mask) << cut.at;
            }
        }
        words[first] = words[first + 1..].iter().take(64).rev().fold(0, |word, place| word << 1 | place & 1);
    }
}

impl Sketcher for Packed {
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>) {
        self.sampler.components(features, &mut self.components);
        if self.by_word {
            return self.places(words);
        }
        let start = words.len();
        words.resize(start + self.cuts.iter().map(Cut::words).sum::<usize>(), 0);
        for cut in &self.cuts {
            let components = &self.components[cut.components.clone()];
            (self.packer.0)(components, cut.bits.clone(), cut.stride, &mut words[start + cut.at..]);
        }
    }
}

/// Packs components with the fastest kernel; see the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packer(PackFn);

impl Packer {
    /// The fastest kernel of this machine.
    pub(super) fn new() -> Self {
        Self(kernel::pack())
    }

    /// Appends the planes of these `bits` of `components`; the planes of 64 components are adjacent. Unused
    /// bits of the last words are 0.
    pub(super) fn pack(self, components: &[u64], bits: Range<usize>, planes: &mut Vec<u64>) {
        let start = planes.len();
        planes.resize(start + bits.len() * components.len().div_ceil(64), 0);
        (self.0)(components, bits.clone(), bits.len(), &mut planes[start..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::sketch::kernel::planes;

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
                            let stored = planes[1 + j / 64 * bits + p] >> (j % 64) & 1;
                            let expected = components.get(j).map_or(0, |s| rehash(*s) >> p & 1);
                            assert_eq!(stored, expected, "size {size} bits {bits} plane {p} component {j}");
                        }
                    }
                    // Packing a range of planes gives the same words as packing all of them.
                    for (from, to) in [(bits / 2, bits), (bits / 3, bits * 2 / 3)] {
                        let mut some = Vec::new();
                        packer.pack(&components, from..to, &mut some);
                        let expected = planes[1..].chunks(bits).flat_map(|group| &group[from..to]);
                        assert!(some.iter().eq(expected));
                    }
                }
            }
        }
    }

    /// A sampler with fixed components.
    #[derive(Debug)]
    struct FixedSampler(Vec<u64>);

    impl Sampler for FixedSampler {
        fn components(&mut self, _features: Features<'_>, out: &mut [u64]) {
            out.copy_from_slice(&self.0);
        }
    }

    #[test]
    fn places_of_a_word_hold_the_bits_of_the_planes() {
        for (size, length) in [(16, 1), (64, 1), (130, 1), (1000, 1), (200, 2), (400, 4), (70, 2)] {
            let components: Vec<u64> = (0..size as u64).map(|j| mix(j * 17 + 3)).collect();
            let (places, bits) = (size / length, 64 / length);
            let cut = |i: usize| Cut {
                components: i * places..(i + 1) * places,
                bits: 0..bits,
                at: i * bits,
                stride: 64,
            };
            let words = |by_word| {
                let cuts = (0..length).map(cut).collect();
                let mut words = vec![99];
                let features = Features { ids: &[1], weights: &[] };
                Packed::new(Box::new(FixedSampler(components.clone())), size, cuts, by_word)
                    .sketch(features, &mut words);
                words.split_off(1)
            };
            let (rows, planes) = (words(true), {
                // Planes of several cuts are interleaved in one region.
                let mut planes = vec![0; 64 * places.div_ceil(64)];
                for i in 0..length {
                    let cut = cut(i);
                    (Packer::new().0)(
                        &components[cut.components],
                        cut.bits,
                        cut.stride,
                        &mut planes[cut.at..],
                    );
                }
                planes
            });
            assert_eq!((rows.len(), rows[0]), (1 + places, planes[0]), "{size} in runs of {length}");
            for j in 0..places {
                let plane = |p: usize| (planes[j / 64 * 64 + p] >> (j % 64) & 1) << p;
                assert_eq!(
                    rows[1 + j],
                    (0..64).map(plane).sum::<u64>(),
                    "place {j} of {size} in runs of {length}"
                );
            }
        }
    }
}
