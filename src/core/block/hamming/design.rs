//! Designs: the ways to cut fingerprints into tables.
//!
//! In: f, k and a [`Kind`]. Out: how many tables there are, and how many bits lead each.
//!
//! | kind | tables | two within k agree in |
//! |---|---|---|
//! | one level of B > k blocks | C(B, k), each led by B - k blocks | some table |
//! | two levels: k + 1 blocks, one leads, the rest in C > k | (k + 1) C(C, k) | some table |
//! | multi-index, m <= k + 1 blocks | m | some block, but for ⌊k / m⌋ bits in the first (k mod m) + 1, one less in the others |
//! | groups (alg.H), m = k + c | m, one for each group | c groups at least |
//! | conjunctions (alg.G), m = k + c | m groups, C(m, c) choices of c of them | some choice |
//!
//! Conjunctions of c out of k + c groups lead the same bits as one level of k + c blocks. They differ in what
//! is stored: one list a group, intersected at each query, in place of one table a choice.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::{binomial, widths};

/// Most keys of one sketch in the stream, and most tables of an index of equal prefixes; inclusive. Beyond it
/// a comparison with all sketches costs less than the look-ups.
pub const MOST_KEYS: u64 = 4096;

/// Most groups that must agree, inclusive: they are counted in bytes.
const MOST_SURPLUS: usize = 255;

/// How fingerprints are cut, and which parts lead a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Permuted tables, each led by all but k of the blocks.
    OneLevel {
        /// B, k + 1 to f inclusive.
        blocks: usize,
    },
    /// Permuted tables, each led by one of k + 1 blocks and by all but k sub-blocks of the rest.
    TwoLevel {
        /// C, k + 1 inclusive or more.
        sub_blocks: usize,
    },
    /// Multi-index hashing: a table for each block, probed by all values near the query's.
    MultiIndex {
        /// m, 1 to k + 1 inclusive.
        blocks: usize,
    },
    /// alg.H: k + c groups, of which c at least agree.
    Groups {
        /// c, 1 to 255 inclusive.
        surplus: usize,
    },
    /// alg.G: each choice of c out of k + c groups.
    Conjunctions {
        /// c, 1 to 255 inclusive.
        surplus: usize,
    },
    /// No table: every fingerprint is a candidate.
    Scan,
}

/// Tables for all fingerprints of `bits` bits within a radius.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    bits: usize,
    radius: usize,
    kind: Kind,
}

/// Why there is no such design.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesignError {
    /// The radius takes in everything.
    #[error("a radius of {radius} on fingerprints of {bits} bits is outside its range: below {bits}")]
    Radius {
        /// As asked for.
        radius: usize,
        /// f.
        bits: usize,
    },
    /// Blocks outside their range.
    #[error("{what} = {found} does not serve radius {radius} on {bits} bits: its range is {least} to {most}")]
    Blocks {
        /// Of what there are too few or too many.
        what: &'static str,
        /// As asked for.
        found: usize,
        /// k.
        radius: usize,
        /// f.
        bits: usize,
        /// Inclusive.
        least: usize,
        /// Inclusive.
        most: usize,
    },
    /// No permuted tables of this number.
    #[error("{found} permuted tables do not serve radius {radius} on {bits} bits: possible are {possible}")]
    Tables {
        /// As asked for.
        found: u64,
        /// k.
        radius: usize,
        /// f.
        bits: usize,
        /// The numbers next to it.
        possible: String,
    },
    /// Too many look-ups.
    #[error("{design}: {keys} keys for each fingerprint, at most {MOST_KEYS} are kept; {instead}")]
    Keys {
        /// The design.
        design: String,
        /// Its keys.
        keys: u64,
        /// What would do.
        instead: String,
    },
}

impl Design {
    /// Checks and makes a design for fingerprints of `bits` bits, at least 1, and a radius below `bits`,
    /// inclusive.
    ///
    /// # Errors
    /// If the radius or the number of blocks is outside its range.
    pub fn new(bits: usize, radius: usize, kind: Kind) -> Result<Self, DesignError> {
        if radius >= bits {
            return Err(DesignError::Radius { radius, bits });
        }
        let spare = bits - radius;
        let (what, found, least, most) = match kind {
            Kind::OneLevel { blocks } => ("blocks", blocks, radius + 1, bits),
            // The rest beside the widest block must have a bit for each sub-block.
            Kind::TwoLevel { sub_blocks } => {
                ("sub-blocks", sub_blocks, radius + 1, bits - bits.div_ceil(radius + 1))
            }
            Kind::MultiIndex { blocks } => ("blocks", blocks, 1, radius + 1),
            Kind::Groups { surplus } | Kind::Conjunctions { surplus } => {
                ("groups beyond the radius", surplus, 1, spare.min(MOST_SURPLUS))
            }
            Kind::Scan => return Ok(Self { bits, radius, kind }),
        };
        if (least..=most).contains(&found) {
            Ok(Self { bits, radius, kind })
        } else {
            Err(DesignError::Blocks { what, found, radius, bits, least, most })
        }
    }

    /// f, bits of a fingerprint.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// k, inclusive.
    pub fn radius(&self) -> usize {
        self.radius
    }

    /// How the fingerprints are cut.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The blocks or groups that the fingerprint is cut into, from its first bit on.
    pub fn blocks(&self) -> Vec<Range<usize>> {
        let blocks = match self.kind {
            Kind::OneLevel { blocks } | Kind::MultiIndex { blocks } => blocks,
            Kind::TwoLevel { .. } => self.radius + 1,
            Kind::Groups { surplus } | Kind::Conjunctions { surplus } => self.radius + surplus,
            Kind::Scan => 1,
        };
        cut(0..self.bits, blocks)
    }

    /// The distance at which block `block` is probed by multi-index hashing; 0 in all other designs.
    pub fn block_radius(&self, block: usize) -> usize {
        let Kind::MultiIndex { blocks } = self.kind else { return 0 };
        // With all blocks beyond their radius, the distance would be more than k. The last ones are
        // probed at all, since m <= k + 1.
        if block <= self.radius % blocks { self.radius / blocks } else { self.radius / blocks - 1 }
    }

    /// How many agreeing groups make a candidate in groups and conjunctions, c; elsewhere 1.
    pub fn surplus(&self) -> usize {
        match self.kind {
            Kind::Groups { surplus } | Kind::Conjunctions { surplus } => surplus,
            _ => 1,
        }
    }

    /// Tables of an index: sorted copies of the corpus, or lists of its ids by group.
    pub fn tables(&self) -> u64 {
        match self.kind {
            Kind::OneLevel { .. } | Kind::TwoLevel { .. } => self.prefixes().values().fold(0, saturating_sum),
            Kind::Scan => 0,
            _ => self.blocks().len() as u64,
        }
    }

    /// Keys of a fingerprint in the stream, which are the tables there.
    pub fn keys(&self) -> u64 {
        self.key_widths().values().fold(0, saturating_sum)
    }

    /// How many tables lead how many bits: permuted tables by all bits of their prefix, the others by block
    /// or group.
    pub fn prefixes(&self) -> BTreeMap<usize, u64> {
        match self.kind {
            Kind::OneLevel { blocks } => prefixes(self.bits, blocks, blocks - self.radius),
            Kind::TwoLevel { sub_blocks } => {
                let mut all = BTreeMap::new();
                for lead in widths(self.bits, self.radius + 1) {
                    for (width, tables) in prefixes(self.bits - lead, sub_blocks, sub_blocks - self.radius) {
                        let total = all.entry(lead + width).or_insert(0);
                        *total = saturating_sum(*total, &tables);
                    }
                }
                all
            }
            Kind::Scan => BTreeMap::new(),
            _ => prefixes(self.bits, self.blocks().len(), 1),
        }
    }

    /// How many keys of the stream select how many bits.
    pub(super) fn key_widths(&self) -> BTreeMap<usize, u64> {
        match self.kind {
            Kind::MultiIndex { .. } => {
                let mut all = BTreeMap::new();
                for (i, block) in self.blocks().iter().enumerate() {
                    let radius = self.block_radius(i);
                    let total = all.entry(block.len() - radius).or_insert(0);
                    *total = saturating_sum(*total, &binomial(block.len(), radius));
                }
                all
            }
            Kind::Conjunctions { surplus } => prefixes(self.bits, self.radius + surplus, surplus),
            Kind::Scan => BTreeMap::from([(0, 1)]),
            _ => self.prefixes(),
        }
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::OneLevel { blocks } => write!(f, "{} tables (one level of {blocks} blocks)", self.tables()),
            Kind::TwoLevel { sub_blocks } => {
                write!(f, "{} tables (two levels, {} x {sub_blocks} blocks)", self.tables(), self.radius + 1)
            }
            Kind::MultiIndex { blocks } => write!(f, "multi-index of {blocks} blocks"),
            Kind::Groups { surplus } => {
                write!(f, "groups (alg.H), {surplus} of {} agree", self.radius + surplus)
            }
            Kind::Conjunctions { surplus } => {
                write!(f, "conjunctions (alg.G) of {surplus} of {} groups", self.radius + surplus)
            }
            Kind::Scan => f.write_str("scan"),
        }
    }
}

/// A range of bits in `blocks` blocks.
pub(super) fn cut(range: Range<usize>, blocks: usize) -> Vec<Range<usize>> {
    let mut start = range.start;
    let next = |width| {
        start += width;
        start - width..start
    };
    widths(range.len(), blocks).into_iter().map(next).collect()
}

/// How many choices of `chosen` out of `blocks` blocks have how many bits.
fn prefixes(bits: usize, blocks: usize, chosen: usize) -> BTreeMap<usize, u64> {
    let (narrow, wide) = (bits / blocks, bits % blocks);
    (0..=chosen.min(wide))
        .filter(|&wides| chosen - wides <= blocks - wide)
        .map(|wides| {
            let ways = binomial(wide, wides).saturating_mul(binomial(blocks - wide, chosen - wides));
            (narrow * chosen + wides, ways)
        })
        .collect()
}

fn saturating_sum(a: u64, b: &u64) -> u64 {
    a.saturating_add(*b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design(bits: usize, radius: usize, kind: Kind) -> Design {
        Design::new(bits, radius, kind).unwrap()
    }

    #[test]
    fn five_blocks_by_hand() {
        let five = design(64, 3, Kind::OneLevel { blocks: 5 });
        assert_eq!(five.tables(), 10);
        assert_eq!(five.prefixes(), BTreeMap::from([(25, 4), (26, 6)]));
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let error = |bits, radius, kind| Design::new(bits, radius, kind).unwrap_err().to_string();
        assert_eq!(
            error(64, 3, Kind::OneLevel { blocks: 3 }),
            "blocks = 3 does not serve radius 3 on 64 bits: its range is 4 to 64"
        );
        assert_eq!(
            error(64, 64, Kind::Scan),
            "a radius of 64 on fingerprints of 64 bits is outside its range: below 64"
        );
        assert!(Design::new(64, 3, Kind::MultiIndex { blocks: 4 }).is_ok());
        assert!(Design::new(64, 3, Kind::MultiIndex { blocks: 5 }).is_err());
        assert!(Design::new(64, 3, Kind::Groups { surplus: 0 }).is_err());
        assert!(Design::new(64, 60, Kind::Groups { surplus: 5 }).is_err());
    }
}
