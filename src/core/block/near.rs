//! Nearness: which sketches meet in a block of a table by Hamming distance.
//!
//! In: the first words of two sketches, 64 bits of each fingerprint. Two fingerprints within distance k
//! differ in at most k of *any* of their bits. So sketches whose first words differ in more than k bits are
//! beyond the distance and need not meet. The rule is a function of the two words alone: the size of the
//! block has no influence, and no pair within the distance is missed in a block of any size.
//!
//! Any way to search a block is correct if it finds the same pairs. A small block is scanned. A large one is
//! searched by the pigeonhole principle ([`Members`]): if the first word is cut into k + 1 parts, two near
//! words are equal in at least one part. The bits of a block's key are equal in all its members and
//! distinguish none, so the cuts divide the *other* bits evenly among the parts.

use std::collections::BTreeSet;
use std::ops::Range;

/// The distance rule: two sketches meet if their first words differ in at most `distance` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    /// Most bits in which they may differ, inclusive.
    pub distance: u32,
    /// Mask of the bits of the first word that are equal in all members of a block, or in all sketches.
    pub common: u64,
}

/// Least number of bits of a part, inclusive, without the bits common to the block. Shorter parts are equal
/// by chance too often.
const LEAST_BITS: u32 = 4;

impl Near {
    /// Whether two sketches with these first words meet.
    #[inline]
    pub fn meet(self, a: u64, b: u64) -> bool {
        (a ^ b).count_ones() <= self.distance
    }

    /// The parts that a first word is cut into; empty if they would be shorter than [`LEAST_BITS`].
    fn parts(self) -> Vec<Part> {
        let parts = self.distance + 1;
        let others = self.common.count_zeros();
        if others / parts < LEAST_BITS {
            return Vec::new();
        }
        let (mut start, mut seen, mut done, mut cut) = (0, 0, 1, Vec::new());
        for bit in 0..u64::BITS {
            seen += u32::from(self.common >> bit & 1 == 0);
            if seen == done * others / parts && done < parts {
                cut.push(Part::from(start..bit + 1));
                (start, done) = (bit + 1, done + 1);
            }
        }
        cut.push(Part::from(start..u64::BITS));
        cut
    }
}

/// A run of consecutive bits of a first word, at least one bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Left rotation that moves the part to the highest bits.
    rotation: u32,
    /// Mask of all bits except the part, after the rotation.
    rest: u64,
    mask: u64,
}

impl From<Range<u32>> for Part {
    fn from(bits: Range<u32>) -> Self {
        let rotation = (u64::BITS - bits.end) % u64::BITS;
        let rest = u64::MAX.checked_shr(bits.end - bits.start).unwrap_or(0);
        Self { rotation, rest, mask: (!rest).rotate_right(rotation) }
    }
}

/// Words of members, rotated so that one part is in the highest bits, with their slots.
type Order = BTreeSet<(u64, u32)>;

/// The members of a large block: for each part a set that is ordered by that part first.
#[derive(Debug)]
pub(super) struct Members {
    orders: Box<[(Part, Order)]>,
}

impl Members {
    /// An empty block; `None` if a search is not possible because the parts would be too short.
    pub(super) fn new(near: Near) -> Option<Self> {
        let orders: Box<[_]> = near.parts().into_iter().map(|part| (part, Order::new())).collect();
        (!orders.is_empty()).then_some(Self { orders })
    }

    pub(super) fn len(&self) -> usize {
        self.orders[0].1.len()
    }

    /// The slots of all members.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.orders[0].1.iter().map(|(_, slot)| *slot)
    }

    /// Adds a member that is not yet in the block.
    pub(super) fn insert(&mut self, word: u64, slot: u32) {
        for (part, order) in &mut self.orders {
            order.insert((word.rotate_left(part.rotation), slot));
        }
    }

    /// Removes a member; returns whether it was in the block.
    pub(super) fn remove(&mut self, word: u64, slot: u32) -> bool {
        let mut orders = self.orders.iter_mut();
        orders.all(|(part, order)| order.remove(&(word.rotate_left(part.rotation), slot)))
    }

    /// Calls `found` once for each member that is equal to `word` in at least one part. These include all
    /// near members.
    pub(super) fn search(&self, word: u64, mut found: impl FnMut(u32)) {
        for (i, (part, order)) in self.orders.iter().enumerate() {
            let turned = word.rotate_left(part.rotation);
            let equal = (turned & !part.rest, 0)..=(turned | part.rest, u32::MAX);
            for (other, slot) in order.range(equal) {
                let differs = word ^ other.rotate_right(part.rotation);
                // Members that an earlier part has found are skipped.
                if self.orders[..i].iter().all(|(before, _)| differs & before.mask != 0) {
                    found(*slot);
                }
            }
        }
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
                let parts = Near { distance, common }.parts();
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

    /// Compared with brute force, on words near a few centres (a family of near-duplicates), under random
    /// inserts and removals.
    #[test]
    fn a_search_finds_all_that_are_near() {
        for (distance, common) in [(0, 0), (1, 0), (3, 0xffff), (3, 0x3ff_ffff << 20), (7, 0), (15, 0)] {
            let near = Near { distance, common };
            let mut members = Members::new(near).unwrap();
            let mut present: Vec<Option<u64>> = vec![None; 400];
            let mut met = 0;
            for step in 0..3000_u64 {
                let slot = (mix(step) % 400) as u32;
                match present[slot as usize].take() {
                    Some(word) => assert!(members.remove(word, slot)),
                    None => {
                        let flips =
                            (0..mix(step ^ 5) % 9).fold(0, |all, i| all | 1 << (mix(step ^ i << 20) % 64));
                        let word = mix(step % 7) ^ flips & !common;
                        present[slot as usize] = Some(word);
                        members.insert(word, slot);
                    }
                }
                let asked = mix(step % 7) ^ 1 << (step % 64) & !common;
                let mut found = Vec::new();
                members.search(asked, |other| found.push(other));
                let all = found.len();
                found.sort_unstable();
                found.dedup();
                assert_eq!(found.len(), all, "each once");
                found.retain(|other| near.meet(asked, present[*other as usize].unwrap()));
                let expected: Vec<u32> = (0..400)
                    .filter(|other| present[*other as usize].is_some_and(|word| near.meet(asked, word)))
                    .collect();
                assert_eq!(found, expected, "{near:?}, step {step}");
                met += found.len();
                assert_eq!(members.slots().count(), members.len());
                assert_eq!(members.len(), present.iter().flatten().count());
            }
            assert!(met > 30, "{near:?}: {met} were near");
            assert!(!members.remove(0, 400));
        }
    }

    /// A search reads few members if the bits that are not common are uniformly distributed.
    #[test]
    fn a_search_reads_few_of_a_large_block() {
        let near = Near { distance: 3, common: 0x3ff_ffff };
        let mut members = Members::new(near).unwrap();
        let word = |n: u64| mix(n) & !near.common;
        (0..50_000_u32).for_each(|slot| members.insert(word(u64::from(slot)), slot));
        let mut read = 0;
        (0..100).for_each(|n| members.search(word(1 << 40 | n), |_| read += 1));
        // 4 parts of 9 or 10 bits.
        assert!(read < 100 * 50_000 * 4 / 512, "{read}");
    }
}
