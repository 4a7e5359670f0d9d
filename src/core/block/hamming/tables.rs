//! Block keys by Hamming distance: two fingerprints within the radius share a block.
//!
//! In: the first plane of a sketch, f bits. Out: one [`BlockKey`] for each [selection](Design::selections) of
//! the design: its number, and 40 bits of a hash of the selected bits. So in every design each key has its
//! own table, and look-ups are for equality. (Multi-index hashing probes a block at distance s by all values
//! near it. In a stream a sketch is stored and looked up by the same keys, so a block has one table for each
//! choice of s left-out bits.)
//!
//! A design without tables ([`DesignKind::Scan`](super::DesignKind::Scan)) has one block with all sketches; a
//! scan of the stream is [`crate::block::Scan`].
//!
//! Recall is 1 where no block is ever hot. Then two sketches of a block meet if their first words are within
//! the radius ([`NearRule`]), which holds for all fingerprints within it. This allows a search in large
//! blocks, those of a table on few bits. Where blocks may be hot, recall is not guaranteed, and a design
//! needs prefixes of about log2(n / cap) bits or more.

use std::ops::Range;

use super::design::{Design, DesignError, DesignKind, MOST_KEYS, cut};
use super::{Selection, choices};
use crate::block::{BlockKey, Blocking, HotRule, NearRule};
use crate::hash::{PI, mix};
use crate::sketch::SketchRef;

/// Cuts fingerprints into the keys of a design.
#[derive(Clone, Debug)]
pub struct HammingTables {
    selections: Box<[Selection]>,
    rule: HotRule,
    /// The distance rule of each table; empty where blocks may be hot.
    near: Box<[NearRule]>,
    /// Least number of tables in which two fingerprints within the radius agree.
    least: usize,
}

impl HammingTables {
    /// The tables of a design.
    ///
    /// # Errors
    /// If a sketch would have more than [`MOST_KEYS`](super::MOST_KEYS) keys.
    pub fn new(design: &Design, rule: HotRule) -> Result<Self, DesignError> {
        // alg.H counts the groups that agree. Where a block may be hot the count is not complete.
        let least = match design.kind() {
            DesignKind::Groups { surplus } if !rule.is_ever() => surplus,
            _ => 1,
        };
        let selections = design.selections()?;
        let near = |selection| near(design, selection);
        let near = if rule.is_ever() { Box::default() } else { selections.iter().map(near).collect() };
        Ok(Self { selections: selections.into(), rule, near, least })
    }

    /// Appends the keys of a fingerprint; words beyond its f bits are not read.
    #[expect(clippy::cast_possible_truncation, reason = "at most 4096 tables")]
    fn keys_of(&self, words: &[u64], out: &mut Vec<BlockKey>) {
        out.extend(self.selections.iter().enumerate().map(|(table, selection)| {
            let hash = selection.hash(words, mix(PI[3] ^ table as u64));
            BlockKey::new(table as u16, hash >> (u64::BITS - BlockKey::HASH_BITS))
        }));
    }
}

impl Blocking for HammingTables {
    fn keys(&self, sketch: SketchRef<'_>, out: &mut Vec<BlockKey>) {
        self.keys_of(sketch.words, out);
    }

    fn tables(&self) -> usize {
        self.selections.len()
    }

    fn rule(&self, _table: u16) -> HotRule {
        self.rule
    }

    fn near(&self, table: u16) -> Option<NearRule> {
        self.near.get(usize::from(table)).copied()
    }

    fn least(&self) -> usize {
        self.least
    }
}

/// The distance rule for the blocks of a selection. The selected bits are equal in all members of a block;
/// the bits beyond the length f are equal in all fingerprints.
fn near(design: &Design, selection: &Selection) -> NearRule {
    let is_common =
        |bit: &usize| *bit >= design.bits() || selection.ranges().iter().any(|bits| bits.contains(bit));
    let common = (0..64).filter(is_common).fold(0, |all, bit| all | 1 << bit);
    NearRule { distance: u32::try_from(design.radius()).unwrap_or(u32::MAX), common }
}

impl Design {
    /// The selected bits of each table: two fingerprints within the radius agree in at least one selection.
    ///
    /// # Errors
    /// If there are more than [`MOST_KEYS`].
    pub fn selections(&self) -> Result<Vec<Selection>, DesignError> {
        let keys = self.keys();
        if keys > MOST_KEYS {
            return Err(DesignError::Keys { design: self.to_string(), keys, instead: self.instead() });
        }
        let blocks = self.blocks();
        let of = |chosen: Vec<usize>| Selection::new(chosen.into_iter().map(|i| blocks[i].clone()));
        Ok(match self.kind() {
            DesignKind::OneLevel { .. } => {
                choices(blocks.len(), blocks.len() - self.radius()).map(of).collect()
            }
            DesignKind::Conjunctions { surplus } => choices(blocks.len(), surplus).map(of).collect(),
            DesignKind::Groups { .. } => blocks.iter().cloned().map(Selection::from).collect(),
            DesignKind::TwoLevel { sub_blocks } => blocks
                .iter()
                .flat_map(|lead| {
                    let rest = cut_around(self.bits(), lead, sub_blocks);
                    let lead = lead.clone();
                    choices(sub_blocks, sub_blocks - self.radius()).map(move |chosen| {
                        let others = chosen.iter().flat_map(|i| rest[*i].iter().cloned());
                        Selection::new(others.chain([lead.clone()]))
                    })
                })
                .collect(),
            DesignKind::MultiIndex { .. } => blocks
                .iter()
                .enumerate()
                .flat_map(|(i, block)| {
                    let start = block.start;
                    choices(block.len(), block.len() - self.block_radius(i))
                        .map(move |kept| Selection::new(kept.iter().map(|bit| start + bit..start + bit + 1)))
                })
                .collect(),
            DesignKind::Scan => vec![Selection::new([])],
        })
    }

    /// For the error message: a design of the same family with few enough keys.
    fn instead(&self) -> String {
        let with = |kind| Self::new(self.bits(), self.radius(), kind).ok().filter(|d| d.keys() <= MOST_KEYS);
        let found = match self.kind() {
            DesignKind::Conjunctions { surplus } => {
                (1..surplus).rev().find_map(|surplus| with(DesignKind::Conjunctions { surplus }))
            }
            DesignKind::OneLevel { blocks } => {
                (self.radius() + 1..blocks).rev().find_map(|blocks| with(DesignKind::OneLevel { blocks }))
            }
            DesignKind::TwoLevel { sub_blocks } => (self.radius() + 1..sub_blocks)
                .rev()
                .find_map(|sub_blocks| with(DesignKind::TwoLevel { sub_blocks }))
                .or_else(|| with(DesignKind::OneLevel { blocks: self.radius() + 1 })),
            DesignKind::MultiIndex { blocks } => {
                (blocks + 1..=self.radius() + 1).find_map(|blocks| with(DesignKind::MultiIndex { blocks }))
            }
            DesignKind::Groups { .. } | DesignKind::Scan => None,
        };
        match found {
            Some(design) => format!("{design} would do, with {} keys", design.keys()),
            None => "only banding or a scan would do".to_owned(),
        }
    }
}

/// The bits outside `lead` cut into `blocks` blocks; a block on both sides of `lead` has two ranges.
fn cut_around(bits: usize, lead: &Range<usize>, blocks: usize) -> Vec<Vec<Range<usize>>> {
    cut(0..bits - lead.len(), blocks)
        .into_iter()
        .map(|block| {
            let before = block.start.min(lead.start)..block.end.min(lead.start);
            let behind = block.start.max(lead.start)..block.end.max(lead.start);
            vec![before, behind.start + lead.len()..behind.end + lead.len()]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn design(bits: usize, radius: usize, kind: DesignKind) -> Design {
        Design::new(bits, radius, kind).unwrap()
    }

    #[test]
    fn five_blocks_by_hand() {
        let first = &design(64, 3, DesignKind::OneLevel { blocks: 5 }).selections().unwrap()[0];
        assert!(first.ranges().iter().eq(std::iter::once(&(0..26))));
    }

    #[test]
    fn two_levels_lead_with_a_block_and_parts_of_the_rest() {
        let selections = design(64, 3, DesignKind::TwoLevel { sub_blocks: 4 }).selections().unwrap();
        assert_eq!(selections.len(), 16);
        assert!(selections.iter().all(|s| s.width() == 28));
        // The second block leads; the second sub-block of the rest is on both sides of it.
        assert_eq!(selections[4].ranges(), [0..12, 16..32]);
        assert!(selections[5].ranges().iter().eq(std::iter::once(&(12..40))));
    }

    #[test]
    fn selections_are_as_many_and_as_wide_as_their_count_says() {
        for kind in [
            DesignKind::OneLevel { blocks: 7 },
            DesignKind::TwoLevel { sub_blocks: 5 },
            DesignKind::MultiIndex { blocks: 2 },
            DesignKind::Groups { surplus: 2 },
            DesignKind::Conjunctions { surplus: 3 },
            DesignKind::Scan,
        ] {
            let design = design(70, 3, kind);
            let mut found = BTreeMap::new();
            for selection in design.selections().unwrap() {
                *found.entry(selection.width()).or_insert(0) += 1;
            }
            assert_eq!(found, design.key_widths(), "{design}");
        }
    }

    #[test]
    fn too_many_keys_name_a_design_of_fewer() {
        let error = |bits, radius, kind| design(bits, radius, kind).selections().unwrap_err().to_string();
        assert_eq!(
            error(400, 60, DesignKind::Conjunctions { surplus: 3 }),
            "conjunctions (alg.G) of 3 of 63 groups: 39711 keys for each fingerprint, at most 4096 are kept; \
             conjunctions (alg.G) of 2 of 62 groups would do, with 1891 keys"
        );
        assert!(
            error(64, 6, DesignKind::MultiIndex { blocks: 1 })
                .ends_with("multi-index of 3 blocks would do, with 273 keys")
        );
        assert!(
            error(32768, 9000, DesignKind::OneLevel { blocks: 9001 })
                .ends_with("only banding or a scan would do")
        );
    }

    fn keys(tables: &HammingTables, words: &[u64]) -> Vec<BlockKey> {
        let mut out = Vec::new();
        tables.keys_of(words, &mut out);
        out
    }

    /// Every possible design with at most 2,000 keys.
    fn designs(bits: usize, radius: usize) -> Vec<Design> {
        let kinds = (1..=bits.min(radius + 4)).flat_map(|n| {
            [
                DesignKind::OneLevel { blocks: n },
                DesignKind::TwoLevel { sub_blocks: n },
                DesignKind::MultiIndex { blocks: n },
                DesignKind::Groups { surplus: n },
                DesignKind::Conjunctions { surplus: n },
            ]
        });
        let found: Vec<Design> = kinds
            .chain([DesignKind::Scan])
            .filter_map(|kind| Design::new(bits, radius, kind).ok())
            .filter(|design| design.keys() <= 2000)
            .collect();
        assert!(found.len() > 4, "{bits} bits, radius {radius}");
        found
    }

    #[track_caller]
    fn share_a_key(tables: &HammingTables, design: &Design, a: &[u64], b: &[u64]) {
        let (a_keys, b_keys) = (keys(tables, a), keys(tables, b));
        assert!(a_keys.iter().zip(&b_keys).any(|(x, y)| x == y), "{design}: {a:x?} {b:x?}");
    }

    #[test]
    fn all_small_fingerprints_within_the_radius_share_a_key() {
        for bits in [5, 8, 10] {
            for radius in 0..4 {
                for design in designs(bits, radius) {
                    let tables = HammingTables::new(&design, HotRule::NEVER).unwrap();
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

    /// At exactly the radius, with changed bits spread or crowded: the hardest case.
    #[test]
    fn long_fingerprints_at_the_radius_share_a_key() {
        for (bits, radius) in [(32, 2), (64, 3), (64, 6), (100, 10), (128, 3), (400, 20)] {
            for design in designs(bits, radius) {
                let tables = HammingTables::new(&design, HotRule::NEVER).unwrap();
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
            let keys = keys(&HammingTables::new(&design, HotRule::NEVER).unwrap(), &[42]);
            assert!(keys.iter().enumerate().all(|(i, key)| usize::from(key.table) == i), "{design}");
        }
    }

    #[test]
    fn other_planes_have_no_part_in_the_keys() {
        let tables = HammingTables::new(
            &Design::new(64, 3, DesignKind::OneLevel { blocks: 4 }).unwrap(),
            HotRule::NEVER,
        )
        .unwrap();
        assert_eq!(keys(&tables, &[42]), keys(&tables, &[42, 7]));
    }

    #[test]
    fn golden_keys() {
        let tables = HammingTables::new(
            &Design::new(128, 1, DesignKind::OneLevel { blocks: 2 }).unwrap(),
            HotRule::NEVER,
        )
        .unwrap();
        let hashes: Vec<u64> = keys(&tables, &[mix(0), mix(1)]).iter().map(|key| key.hash() >> 8).collect();
        assert_eq!(hashes, [3_431_839_811, 720_491_145]);
    }
}
