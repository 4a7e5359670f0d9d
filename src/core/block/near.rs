//! Nearness: which sketches meet in a block of a table by Hamming distance.
//!
//! In: the first words of two sketches, 64 bits of each fingerprint. Two fingerprints within distance k
//! differ in at most k of *any* of their bits. So sketches whose first words differ in more than k bits are
//! beyond the distance and need not meet. The rule is a function of the two words alone: the size of the
//! block has no influence, and no pair within the distance is missed in a block of any size.
//!
//! Any way to search a block is correct if it finds the same pairs. A small block is scanned. A large one is
//! searched by the pigeonhole principle (`index::large`): if the first word is cut into k + 1 parts, two near
//! words are equal in at least one part. The bits of a block's key are equal in all its members and
//! distinguish none, so the cuts divide the *other* bits evenly among the parts.

use std::ops::Range;

/// The distance rule: two sketches meet if their first words differ in at most `distance` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearRule {
    /// Most bits in which they may differ, inclusive.
    pub distance: u32,
    /// Mask of the bits of the first word that are equal in all members of a block, or in all sketches.
    pub common: u64,
}

/// Least number of bits of a part, inclusive, without the bits common to the block. Shorter parts are equal
/// by chance too often.
const LEAST_BITS: u32 = 4;

impl NearRule {
    /// Whether two sketches with these first words meet.
    #[inline]
    pub fn meet(self, a: u64, b: u64) -> bool {
        (a ^ b).count_ones() <= self.distance
    }

    /// The parts that a first word is cut into; empty if they would be shorter than [`LEAST_BITS`].
    pub(super) fn parts(self) -> Vec<WordCut> {
        let parts = self.distance + 1;
        let others = self.common.count_zeros();
        if others / parts < LEAST_BITS {
            return Vec::new();
        }
        let (mut start, mut seen, mut done, mut cut) = (0, 0, 1, Vec::new());
        for bit in 0..u64::BITS {
            seen += u32::from(self.common >> bit & 1 == 0);
            if seen == done * others / parts && done < parts {
                cut.push(WordCut::from(start..bit + 1));
                (start, done) = (bit + 1, done + 1);
            }
        }
        cut.push(WordCut::from(start..u64::BITS));
        cut
    }
}

/// A run of consecutive bits of a first word, at least one bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordCut {
    /// Left rotation that moves the part to the highest bits.
    pub(super) rotation: u32,
    /// Mask of all bits except the part, after the rotation.
    pub(super) rest: u64,
    pub(super) mask: u64,
}

impl From<Range<u32>> for WordCut {
    fn from(bits: Range<u32>) -> Self {
        let rotation = (u64::BITS - bits.end) % u64::BITS;
        let rest = u64::MAX.checked_shr(bits.end - bits.start).unwrap_or(0);
        Self { rotation, rest, mask: (!rest).rotate_right(rotation) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    /// Every bit is in exactly one part, and the bits that are not common are divided evenly.
    #[test]
    fn parts_are_cut_around_what_a_block_has_in_common() {
        for distance in 0..20 {
            for common in [0, 0xffff, 0x3ff_ffff << 13, u64::MAX << 32, 0xffff_0000_ffff_0000, u64::MAX] {
                let parts = NearRule { distance, common }.parts();
                let others = (!common).count_ones();
                if others / (distance + 1) < LEAST_BITS {
                    assert_eq!(parts, []);
                    continue;
                }
                assert_eq!(parts.len(), distance as usize + 1);
                assert_eq!(parts.iter().fold(0, |all, part| all ^ part.mask), u64::MAX);
                for part in parts {
                    let telling = (part.mask & !common).count_ones();
                    assert!(telling.abs_diff(others / (distance + 1)) <= 1, "{distance} {common:x} {part:?}");
                    let word = mix(u64::from(distance));
                    assert_eq!(
                        (word.rotate_left(part.rotation) & !part.rest).rotate_right(part.rotation),
                        word & part.mask
                    );
                }
            }
        }
    }
}
