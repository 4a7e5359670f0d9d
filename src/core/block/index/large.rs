//! The members of a large block of a table by distance, for a search by the pigeonhole principle.
//!
//! In: a first word. Out: the members that are equal to it in at least one of the parts of [`NearRule`];
//! these include all near members.

use std::collections::BTreeSet;

use crate::block::near::{NearRule, WordCut};

/// Words of members, rotated so that one part is in the highest bits, with their slots.
type WordOrder = BTreeSet<(u64, u32)>;

/// The members of a large block: for each part a set that is ordered by that part first.
#[derive(Debug)]
pub(super) struct LargeBlock {
    orders: Box<[(WordCut, WordOrder)]>,
}

impl LargeBlock {
    /// An empty block; `None` if a search is not possible because the parts would be too short.
    pub(super) fn new(near: NearRule) -> Option<Self> {
        let orders: Box<[_]> = near.parts().into_iter().map(|part| (part, WordOrder::new())).collect();
        (!orders.is_empty()).then_some(Self { orders })
    }

    pub(super) fn len(&self) -> usize {
        self.orders[0].1.len()
    }

    /// The slots of all members.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.orders[0].1.iter().map(|(_, slot)| *slot)
    }

    /// The slots of the members with this word.
    pub(super) fn with_word(&self, word: u64) -> impl Iterator<Item = u32> {
        let (part, order) = &self.orders[0];
        let turned = word.rotate_left(part.rotation);
        order.range((turned, 0)..=(turned, u32::MAX)).map(|(_, slot)| *slot)
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

    /// Compared with brute force, on words near a few centres (a family of near-duplicates), under random
    /// inserts and removals.
    #[test]
    fn a_search_finds_all_that_are_near() {
        for (distance, common) in [(0, 0), (1, 0), (3, 0xffff), (3, 0x3ff_ffff << 20), (7, 0), (15, 0)] {
            let near = NearRule { distance, common };
            let mut members = LargeBlock::new(near).unwrap();
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
        let near = NearRule { distance: 3, common: 0x3ff_ffff };
        let mut members = LargeBlock::new(near).unwrap();
        let word = |n: u64| mix(n) & !near.common;
        (0..50_000_u32).for_each(|slot| members.insert(word(u64::from(slot)), slot));
        let mut read = 0;
        (0..100).for_each(|n| members.search(word(1 << 40 | n), |_| read += 1));
        // 4 parts of 9 or 10 bits.
        assert!(read < 100 * 50_000 * 4 / 512, "{read}");
    }
}
