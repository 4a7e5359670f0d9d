//! Multi-index hashing: a table for each of m blocks, probed by every value within ⌊k / m⌋ of the query's block, or one
//! less.
//!
//! A block of more than 64 bits is indexed by its first 64, which differ in no more bits than the block.
//!
//! Reference: Norouzi, Punjani and Fleet (2012), section 3; which blocks are probed one less: section 3.1, corollary.

use super::sorted::SortedTable;
use super::{Fingerprints, HammingSearch, Work};
use crate::block::hamming::{Design, Selection, distance};

/// Sorted tables, looked up for nearness.
#[derive(Debug)]
pub(super) struct MultiIndex {
    radius: usize,
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    table: SortedTable,
    /// Bits of the table's key.
    width: usize,
    /// At which distance it is probed, inclusive.
    radius: usize,
}

impl MultiIndex {
    pub(super) fn new(corpus: &Fingerprints, design: &Design) -> Self {
        let block = |(i, range)| {
            let selection = Selection::from(range);
            let width = selection.key_width();
            Block { table: SortedTable::new(selection, corpus), width, radius: design.block_radius(i) }
        };
        Self { radius: design.radius(), blocks: design.blocks().into_iter().enumerate().map(block).collect() }
    }
}

impl HammingSearch for MultiIndex {
    fn within(&mut self, query: &[u64], found: &mut Vec<u32>) -> Work {
        found.clear();
        let mut work = Work::default();
        for Block { table, width, radius } in &self.blocks {
            each_near(table.key(query), 0, *width, *radius, &mut |key| {
                let range = table.probe(key);
                work.probes += 1;
                work.entries += range.len() as u64;
                found.extend(
                    range.filter(|at| distance(table.row(*at), query) <= self.radius).map(|at| table.id(at)),
                );
            });
        }
        found.sort_unstable();
        found.dedup();
        work.verified = work.entries;
        work
    }
}

/// Visits each value that differs from `value` in at most `radius` of the bits `from..to`, once.
fn each_near(value: u64, from: usize, to: usize, radius: usize, visit: &mut impl FnMut(u64)) {
    visit(value);
    if radius > 0 {
        for bit in from..to {
            each_near(value ^ 1 << bit, bit + 1, to, radius - 1, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_values_are_visited_once() {
        for (width, radius) in [(8, 0), (8, 1), (8, 3), (4, 4), (64, 2)] {
            let mut seen = Vec::new();
            each_near(0b1010, 0, width, radius, &mut |value| seen.push(value));
            assert!(seen.iter().all(|value| (value ^ 0b1010).count_ones() as usize <= radius));
            let expected: u64 = (0..=radius).map(|i| crate::block::hamming::binomial(width, i)).sum();
            assert_eq!(seen.len() as u64, expected);
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len() as u64, expected);
        }
    }
}
