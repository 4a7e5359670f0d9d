//! Block keys by Hamming distance: two fingerprints within the radius share a block.
//!
//! In: the first plane of a sketch, f bits. Out: one [`BlockKey`] for each [selection](Design::selections) of the design: its
//! number, and 32 bits of a hash of the bits that it selects. So whatever the design, a key is a table and a look-up is
//! for equality. (Multi-index hashing probes a block at distance s by all values near it; in a stream, where
//! everybody is stored and asks by the same keys, a block has one table for each choice of s bits that it leaves out.)
//!
//! A design without tables ([`Kind::Scan`](super::Kind::Scan)) gives one block to all, which gets hot like any other: a scan
//! of the stream is [`crate::block::Scan`].
//!
//! Recall is 1 but for hot blocks. A table on few bits has few blocks, and large ones: those above `cap` are hot, so a
//! design for the stream needs prefixes of about log2(n / cap) bits or more.

use super::{Design, DesignError, Selection};
use crate::block::{BlockKey, Blocking, HotRule};
use crate::hash::{PI, mix};
use crate::sketch::SketchRef;

/// Cuts fingerprints into the keys of a design.
#[derive(Clone, Debug)]
pub struct Tables {
    selections: Box<[Selection]>,
    rule: HotRule,
}

impl Tables {
    /// The tables of a design.
    ///
    /// # Errors
    /// If a sketch would have more than [`MOST_KEYS`](super::MOST_KEYS) keys.
    pub fn new(design: &Design, rule: HotRule) -> Result<Self, DesignError> {
        Ok(Self { selections: design.selections()?.into(), rule })
    }

    /// Appends the keys of a fingerprint; words beyond its f bits have no part in them.
    #[expect(clippy::cast_possible_truncation, reason = "at most 4096 tables")]
    fn keys_of(&self, words: &[u64], out: &mut Vec<BlockKey>) {
        out.extend(self.selections.iter().enumerate().map(|(table, selection)| BlockKey {
            table: table as u16,
            hash: selection.hash(words, mix(PI[3] ^ table as u64)),
        }));
    }
}

impl Blocking for Tables {
    fn keys(&self, sketch: SketchRef<'_>, out: &mut Vec<BlockKey>) {
        self.keys_of(sketch.words, out);
    }

    fn tables(&self) -> usize {
        self.selections.len()
    }

    fn rule(&self) -> HotRule {
        self.rule
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn keys(tables: &Tables, words: &[u64]) -> Vec<BlockKey> {
        let mut out = Vec::new();
        tables.keys_of(words, &mut out);
        out
    }

    /// Every design that there is for fingerprints of so many bits, with few enough keys.
    fn designs(bits: usize, radius: usize) -> Vec<Design> {
        let kinds = (1..=bits.min(radius + 4)).flat_map(|n| {
            [
                Kind::OneLevel { blocks: n },
                Kind::TwoLevel { sub_blocks: n },
                Kind::MultiIndex { blocks: n },
                Kind::Groups { surplus: n },
                Kind::Conjunctions { surplus: n },
            ]
        });
        let found: Vec<Design> = kinds
            .chain([Kind::Scan])
            .filter_map(|kind| Design::new(bits, radius, kind).ok())
            .filter(|design| design.keys() <= 2000)
            .collect();
        assert!(found.len() > 4, "{bits} bits, radius {radius}");
        found
    }

    #[track_caller]
    fn share_a_key(tables: &Tables, design: &Design, a: &[u64], b: &[u64]) {
        let (a_keys, b_keys) = (keys(tables, a), keys(tables, b));
        assert!(a_keys.iter().zip(&b_keys).any(|(x, y)| x == y), "{design}: {a:x?} {b:x?}");
    }

    #[test]
    fn all_small_fingerprints_within_the_radius_share_a_key() {
        for bits in [5, 8, 10] {
            for radius in 0..4 {
                for design in designs(bits, radius) {
                    let tables = Tables::new(&design, HotRule::NEVER).unwrap();
                    assert_eq!(tables.tables() as u64, design.keys());
                    let all: Vec<Vec<BlockKey>> = (0..1 << bits).map(|x| keys(&tables, &[x])).collect();
                    for (x, ours) in all.iter().enumerate() {
                        for (y, theirs) in all.iter().enumerate().skip(x) {
                            let near = (x ^ y).count_ones() as usize <= radius;
                            let share = ours.iter().zip(theirs).any(|(a, b)| a == b);
                            assert!(share || !near, "{design}: {x:b} {y:b}");
                        }
                    }
                }
            }
        }
    }

    /// At exactly the radius, the changed bits spread or crowded: the hardest to find.
    #[test]
    fn long_fingerprints_at_the_radius_share_a_key() {
        for (bits, radius) in [(32, 2), (64, 3), (64, 6), (100, 10), (128, 3), (400, 20)] {
            for design in designs(bits, radius) {
                let tables = Tables::new(&design, HotRule::NEVER).unwrap();
                for seed in 0..40 {
                    let word = |i: u64| mix(seed << 20 ^ i);
                    let a: Vec<u64> = (0..bits.div_ceil(64) as u64).map(word).collect();
                    let mut b = a.clone();
                    let (mut left, mut turn) = (radius, 100);
                    while left > 0 {
                        turn += 1;
                        let spread = if seed % 4 == 0 { 2 * radius } else { bits };
                        let bit = usize::try_from(word(turn) % spread as u64).unwrap();
                        if (a[bit / 64] ^ b[bit / 64]) >> (bit % 64) & 1 == 0 {
                            b[bit / 64] ^= 1 << (bit % 64);
                            left -= 1;
                        }
                    }
                    share_a_key(&tables, &design, &a, &b);
                }
            }
        }
    }

    #[test]
    fn every_key_of_a_sketch_has_its_own_table() {
        for design in designs(64, 3) {
            let keys = keys(&Tables::new(&design, HotRule::NEVER).unwrap(), &[42]);
            assert!(keys.iter().enumerate().all(|(i, key)| usize::from(key.table) == i), "{design}");
        }
    }

    #[test]
    fn other_planes_have_no_part_in_the_keys() {
        let tables =
            Tables::new(&Design::new(64, 3, Kind::OneLevel { blocks: 4 }).unwrap(), HotRule::NEVER).unwrap();
        assert_eq!(keys(&tables, &[42]), keys(&tables, &[42, 7]));
    }

    #[test]
    fn golden_keys() {
        let tables =
            Tables::new(&Design::new(128, 1, Kind::OneLevel { blocks: 2 }).unwrap(), HotRule::NEVER).unwrap();
        let hashes: Vec<u32> = keys(&tables, &[mix(0), mix(1)]).iter().map(|key| key.hash).collect();
        assert_eq!(hashes, [3_431_839_811, 720_491_145]);
    }
}
