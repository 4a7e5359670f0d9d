//! Designs: the ways to cut fingerprints into tables.
//!
//! In: f, k and a [`DesignKind`]. Out: the number of tables, and the number of leading bits of each.
//!
//! | kind | tables | two fingerprints within k agree in |
//! |---|---|---|
//! | one level of B > k blocks | C(B, k), each led by B - k blocks | some table |
//! | two levels: k + 1 blocks, one leads, the rest in C > k | (k + 1) C(C, k) | some table |
//! | multi-index, m <= k + 1 blocks | m | some block, except ⌊k / m⌋ bits in the first (k mod m) + 1 blocks, one less in the others |
//! | groups (alg.H), m = k + c | m, one for each group | c groups at least |
//! | conjunctions (alg.G), m = k + c | m groups, C(m, c) choices of c of them | some choice |
//!
//! Conjunctions of c out of k + c groups select the same bits as one level of k + c blocks. They differ in
//! the stored data: one list for each group, intersected at each query, in place of one table for each
//! choice.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::{binomial, widths};

/// Most keys of one sketch in the stream, and most tables of an index of equal prefixes; inclusive. With more
/// keys a comparison with all sketches costs less than the look-ups.
pub const MOST_KEYS: u64 = 4096;

/// Most groups that must agree, inclusive: the counts are stored in bytes.
const MOST_SURPLUS: usize = 255;

/// How fingerprints are cut, and which parts lead (select the entries of) a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesignKind {
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
    /// Multi-index hashing: a table for each block, probed by all values near the query's block.
    MultiIndex {
        /// m, 1 to k + 1 inclusive.
        blocks: usize,
    },
    /// alg.H: k + c groups, of which at least c agree.
    Groups {
        /// c, 1 to 255 inclusive.
        surplus: usize,
    },
    /// alg.G: a table for each choice of c out of k + c groups.
    Conjunctions {
        /// c, 1 to 255 inclusive.
        surplus: usize,
    },
    /// No table: every fingerprint is a candidate.
    Scan,
}

/// A way to find all fingerprints of `bits` bits within a radius.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    bits: usize,
    radius: usize,
    kind: DesignKind,
}

/// A requested design that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesignError {
    /// The radius is not below the number of bits.
    #[error("a radius of {radius} on fingerprints of {bits} bits is outside its range: below {bits}")]
    Radius {
        /// As requested.
        radius: usize,
        /// f.
        bits: usize,
    },
    /// Blocks outside their range.
    #[error("{what} = {found} does not serve radius {radius} on {bits} bits: its range is {least} to {most}")]
    Blocks {
        /// The name of the number that is outside its range.
        what: &'static str,
        /// As requested.
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
    /// No permuted design has this number of tables.
    #[error("{found} permuted tables do not serve radius {radius} on {bits} bits: possible are {possible}")]
    Tables {
        /// As requested.
        found: u64,
        /// k.
        radius: usize,
        /// f.
        bits: usize,
        /// The nearest possible numbers.
        possible: String,
    },
    /// Too many keys.
    #[error("{design}: {keys} keys for each fingerprint, at most {MOST_KEYS} are kept; {instead}")]
    Keys {
        /// The design.
        design: String,
        /// Its keys.
        keys: u64,
        /// A design with few enough keys.
        instead: String,
    },
}

impl Design {
    /// A design for fingerprints of `bits` bits, at least 1, and an inclusive radius, below `bits`.
    ///
    /// # Errors
    /// If the radius or the number of blocks is outside its range.
    pub fn new(bits: usize, radius: usize, kind: DesignKind) -> Result<Self, DesignError> {
        if radius >= bits {
            return Err(DesignError::Radius { radius, bits });
        }
        let spare = bits - radius;
        let (what, found, least, most) = match kind {
            DesignKind::OneLevel { blocks } => ("blocks", blocks, radius + 1, bits),
            // The bits outside the widest block must be at least one for each sub-block.
            DesignKind::TwoLevel { sub_blocks } => {
                ("sub-blocks", sub_blocks, radius + 1, bits - bits.div_ceil(radius + 1))
            }
            DesignKind::MultiIndex { blocks } => ("blocks", blocks, 1, radius + 1),
            DesignKind::Groups { surplus } | DesignKind::Conjunctions { surplus } => {
                ("groups beyond the radius", surplus, 1, spare.min(MOST_SURPLUS))
            }
            DesignKind::Scan => return Ok(Self { bits, radius, kind }),
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
    pub fn kind(&self) -> DesignKind {
        self.kind
    }

    /// The blocks or groups that the fingerprint is cut into, from its first bit on.
    pub fn blocks(&self) -> Vec<Range<usize>> {
        let blocks = match self.kind {
            DesignKind::OneLevel { blocks } | DesignKind::MultiIndex { blocks } => blocks,
            DesignKind::TwoLevel { .. } => self.radius + 1,
            DesignKind::Groups { surplus } | DesignKind::Conjunctions { surplus } => self.radius + surplus,
            DesignKind::Scan => 1,
        };
        cut(0..self.bits, blocks)
    }

    /// The distance at which block `block` is probed by multi-index hashing; 0 in all other designs.
    pub fn block_radius(&self, block: usize) -> usize {
        let DesignKind::MultiIndex { blocks } = self.kind else { return 0 };
        // If all blocks differed by more than their radius, the distance would be above k. The radius of the
        // last blocks is not negative, since m <= k + 1.
        if block <= self.radius % blocks { self.radius / blocks } else { self.radius / blocks - 1 }
    }

    /// c, the number of agreeing groups that make a candidate in groups and conjunctions; 1 in other designs.
    pub fn surplus(&self) -> usize {
        match self.kind {
            DesignKind::Groups { surplus } | DesignKind::Conjunctions { surplus } => surplus,
            _ => 1,
        }
    }

    /// Number of tables of an index: sorted copies of the corpus, or lists of its ids by group.
    pub fn tables(&self) -> u64 {
        match self.kind {
            DesignKind::OneLevel { .. } | DesignKind::TwoLevel { .. } => {
                self.prefixes().values().fold(0, saturating_sum)
            }
            DesignKind::Scan => 0,
            _ => self.blocks().len() as u64,
        }
    }

    /// Number of keys of a fingerprint in the stream; there it is also the number of tables.
    pub fn keys(&self) -> u64 {
        self.key_widths().values().fold(0, saturating_sum)
    }

    /// Number of leading bits to number of tables. Permuted tables are led by all bits of their prefix, the
    /// others by a block or group.
    pub fn prefixes(&self) -> BTreeMap<usize, u64> {
        match self.kind {
            DesignKind::OneLevel { blocks } => prefixes(self.bits, blocks, blocks - self.radius),
            DesignKind::TwoLevel { sub_blocks } => {
                let mut all = BTreeMap::new();
                for lead in widths(self.bits, self.radius + 1) {
                    for (width, tables) in prefixes(self.bits - lead, sub_blocks, sub_blocks - self.radius) {
                        let total = all.entry(lead + width).or_insert(0);
                        *total = saturating_sum(*total, &tables);
                    }
                }
                all
            }
            DesignKind::Scan => BTreeMap::new(),
            _ => prefixes(self.bits, self.blocks().len(), 1),
        }
    }

    /// Number of selected bits to number of keys in the stream.
    pub(super) fn key_widths(&self) -> BTreeMap<usize, u64> {
        match self.kind {
            DesignKind::MultiIndex { .. } => {
                let mut all = BTreeMap::new();
                for (i, block) in self.blocks().iter().enumerate() {
                    let radius = self.block_radius(i);
                    let total = all.entry(block.len() - radius).or_insert(0);
                    *total = saturating_sum(*total, &binomial(block.len(), radius));
                }
                all
            }
            DesignKind::Conjunctions { surplus } => prefixes(self.bits, self.radius + surplus, surplus),
            DesignKind::Scan => BTreeMap::from([(0, 1)]),
            _ => self.prefixes(),
        }
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            DesignKind::OneLevel { blocks } => {
                write!(f, "{} tables (one level of {blocks} blocks)", self.tables())
            }
            DesignKind::TwoLevel { sub_blocks } => {
                write!(f, "{} tables (two levels, {} x {sub_blocks} blocks)", self.tables(), self.radius + 1)
            }
            DesignKind::MultiIndex { blocks } => write!(f, "multi-index of {blocks} blocks"),
            DesignKind::Groups { surplus } => {
                write!(f, "groups (alg.H), {surplus} of {} agree", self.radius + surplus)
            }
            DesignKind::Conjunctions { surplus } => {
                write!(f, "conjunctions (alg.G) of {surplus} of {} groups", self.radius + surplus)
            }
            DesignKind::Scan => f.write_str("scan"),
        }
    }
}

/// Cuts a range of bits into `blocks` blocks.
pub(super) fn cut(range: Range<usize>, blocks: usize) -> Vec<Range<usize>> {
    let mut start = range.start;
    let next = |width| {
        start += width;
        start - width..start
    };
    widths(range.len(), blocks).into_iter().map(next).collect()
}

/// Number of bits to number of choices of `chosen` out of `blocks` blocks with so many bits.
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

    fn design(bits: usize, radius: usize, kind: DesignKind) -> Design {
        Design::new(bits, radius, kind).unwrap()
    }

    #[test]
    fn five_blocks_by_hand() {
        let five = design(64, 3, DesignKind::OneLevel { blocks: 5 });
        assert_eq!(five.tables(), 10);
        assert_eq!(five.prefixes(), BTreeMap::from([(25, 4), (26, 6)]));
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let error = |bits, radius, kind| Design::new(bits, radius, kind).unwrap_err().to_string();
        assert_eq!(
            error(64, 3, DesignKind::OneLevel { blocks: 3 }),
            "blocks = 3 does not serve radius 3 on 64 bits: its range is 4 to 64"
        );
        assert_eq!(
            error(64, 64, DesignKind::Scan),
            "a radius of 64 on fingerprints of 64 bits is outside its range: below 64"
        );
        assert!(Design::new(64, 3, DesignKind::MultiIndex { blocks: 4 }).is_ok());
        assert!(Design::new(64, 3, DesignKind::MultiIndex { blocks: 5 }).is_err());
        assert!(Design::new(64, 3, DesignKind::Groups { surplus: 0 }).is_err());
        assert!(Design::new(64, 60, DesignKind::Groups { surplus: 5 }).is_err());
    }
}
