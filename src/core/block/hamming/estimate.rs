//! The expected cost of a search by a design.
//!
//! In: a [`Design`] and n, the number of fingerprints. Out: an [`Estimate`] under uniformly random
//! fingerprints: a table on p bits has n / 2^p entries in the range of a query. Fingerprints of real texts
//! are not uniform, and have more.

use std::collections::BTreeMap;

use super::binomial;
use super::design::{Design, DesignKind};

/// The use of a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesignUse {
    /// Static tables of a whole corpus, probed by queries.
    Index,
    /// Block keys in a stream, looked up for equality.
    Stream {
        /// Most sketches that a live block holds, inclusive.
        cap: usize,
    },
}

/// The expected cost of one query among n uniform fingerprints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Number of look-ups.
    pub probes: f64,
    /// Number of entries read: those in the looked-up ranges of all tables.
    pub entries: f64,
    /// Number of fingerprints compared in full; a fingerprint found in several tables counts several times.
    pub candidates: f64,
    /// Memory of all tables, in bytes.
    pub bytes: f64,
}

/// Bytes of an id in a table.
const ID: f64 = 4.0;

/// Bytes of a sketch in a block of the stream, on average.
const STREAM_ENTRY: f64 = 12.0;

impl Design {
    /// The expected cost of a query among `documents` uniform fingerprints.
    pub fn estimate(&self, documents: u64, form: DesignUse) -> Estimate {
        let n = documents as f64;
        let row = (self.bits().div_ceil(64) * 8) as f64;
        let among = |prefixes: BTreeMap<usize, u64>| -> f64 {
            prefixes.into_iter().map(|(width, tables)| tables as f64 * share(width) * n).sum()
        };
        if matches!(form, DesignUse::Stream { .. }) {
            let (probes, entries) = (self.keys() as f64, among(self.key_widths()));
            return Estimate { probes, entries, candidates: entries, bytes: n * probes * STREAM_ENTRY };
        }
        let tables = self.tables() as f64;
        let lists = n * (tables * ID + row);
        match self.kind() {
            DesignKind::OneLevel { .. } | DesignKind::TwoLevel { .. } => {
                let entries = among(self.prefixes());
                Estimate { probes: tables, entries, candidates: entries, bytes: n * tables * (row + ID) }
            }
            DesignKind::MultiIndex { .. } => {
                let blocks = self.blocks();
                let balls =
                    || blocks.iter().enumerate().map(|(i, b)| (b.len(), ball(b.len(), self.block_radius(i))));
                let entries = balls().map(|(width, ball)| ball * share(width) * n).sum();
                let probes = balls().map(|(_, ball)| ball).sum();
                Estimate { probes, entries, candidates: entries, bytes: n * tables * (row + ID) }
            }
            DesignKind::Groups { surplus } => {
                let chances = self.blocks().iter().map(|group| share(group.len())).collect::<Vec<_>>();
                let candidates = n * at_least(surplus, &chances);
                Estimate { probes: tables, entries: among(self.prefixes()), candidates, bytes: lists }
            }
            DesignKind::Conjunctions { surplus } => {
                let groups = self.radius() + surplus;
                // Choices with a common beginning share their first intersections. Finding an entry in
                // another list takes about five steps where both are equally long. That holds at the second
                // group, which dominates.
                let mean = share(1).powf(self.bits() as f64 / groups as f64);
                let steps = (2..=surplus)
                    .map(|i| 5.0 * binomial(groups, i) as f64 * n * mean.powf((i - 1) as f64))
                    .sum::<f64>();
                let candidates = among(self.key_widths());
                let probes = binomial(groups, surplus) as f64 * surplus as f64;
                Estimate { probes, entries: steps + candidates, candidates, bytes: lists }
            }
            DesignKind::Scan => Estimate { probes: 0.0, entries: n, candidates: n, bytes: n * row },
        }
    }

    /// The expected size of a block in the stream, among `documents` uniform fingerprints, in the table on
    /// the fewest bits.
    pub fn largest_block(&self, documents: u64) -> f64 {
        self.key_widths().first_key_value().map_or(0.0, |(width, _)| documents as f64 * share(*width))
    }
}

/// The share of uniform fingerprints that agree in `width` bits: 2^-width.
fn share(width: usize) -> f64 {
    0.5f64.powf(width as f64)
}

/// The number of values of `width` bits within a radius of one value.
fn ball(width: usize, radius: usize) -> f64 {
    (0..=radius).map(|i| binomial(width, i) as f64).sum()
}

/// The probability that at least `count` of independent events with these probabilities happen. Only positive
/// terms are summed, so that a tail of 1e-12 keeps its precision.
fn at_least(count: usize, chances: &[f64]) -> f64 {
    let mut exactly = vec![0.0; count];
    exactly[0] = 1.0;
    let mut tail = 0.0;
    for chance in chances {
        tail += exactly[count - 1] * chance;
        for i in (0..count).rev() {
            let before = if i == 0 { 0.0 } else { exactly[i - 1] };
            exactly[i] = exactly[i] * (1.0 - chance) + before * chance;
        }
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_blocks_by_hand() {
        let five = Design::new(64, 3, DesignKind::OneLevel { blocks: 5 }).unwrap();
        let estimate = five.estimate(1 << 34, DesignUse::Index);
        assert_eq!((estimate.probes, estimate.candidates), (10.0, 4.0 * 512.0 + 6.0 * 256.0));
        assert!((estimate.bytes - (1u64 << 34) as f64 * 120.0).abs() < 1.0);
        let stream = five.estimate(1 << 34, DesignUse::Stream { cap: 512 });
        assert_eq!((stream.probes, stream.candidates), (10.0, 4.0 * 512.0 + 6.0 * 256.0));
        assert!((five.largest_block(1 << 34) - 512.0).abs() < 1e-9);
    }

    #[test]
    fn a_tail_by_hand() {
        assert!((at_least(2, &[0.5, 0.5, 0.5]) - 0.5).abs() < 1e-15);
        assert!((at_least(1, &[0.25, 0.5]) - 0.625).abs() < 1e-15);
        assert!(at_least(3, &[0.5, 0.5]) <= 0.0);
    }
}
