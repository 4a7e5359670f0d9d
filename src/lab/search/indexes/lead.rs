//! The leading bits of a sorted table, and the distance up to which keys are looked up.

use dupflow_core::block::hamming::{Design, DesignError, Kind, Selection};

/// The key of a sorted table.
#[derive(Clone, Debug)]
pub(super) struct Lead {
    selection: Selection,
    /// Maximum distance of keys, inclusive; 0 for equality.
    near: usize,
}

impl Lead {
    /// A key of these bits, looked up for equality.
    pub(super) fn equal(selection: Selection) -> Self {
        Self { selection, near: 0 }
    }

    /// The tables of a design: for multi-index hashing one per block, looked up by distance; for any other
    /// design one per selection.
    ///
    /// # Errors
    /// If the design has more keys than [`MOST_KEYS`](dupflow_core::block::hamming::MOST_KEYS).
    pub(super) fn for_design(design: &Design) -> Result<Vec<Self>, DesignError> {
        if !matches!(design.kind(), Kind::MultiIndex { .. }) {
            return Ok(design.selections()?.into_iter().map(Self::equal).collect());
        }
        let block = |(i, range)| Self { selection: Selection::from(range), near: design.block_radius(i) };
        Ok(design.blocks().into_iter().enumerate().map(block).collect())
    }

    /// The first 64 leading bits of a fingerprint.
    #[inline]
    pub(super) fn key(&self, words: &[u64]) -> u64 {
        self.selection.key(words)
    }

    /// Bits of a key.
    pub(super) fn width(&self) -> usize {
        self.selection.key_width()
    }

    /// Visits every key that must be looked up for this one, once.
    pub(super) fn each(&self, key: u64, visit: &mut impl FnMut(u64)) {
        each_near(key, 0, self.width(), self.near, visit);
    }

    /// Whether a lookup of `a` finds `b`.
    pub(super) fn meets(&self, a: &[u64], b: &[u64]) -> bool {
        (self.key(a) ^ self.key(b)).count_ones() as usize <= self.near
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
            let expected: u64 = (0..=radius).map(|i| dupflow_core::block::hamming::binomial(width, i)).sum();
            assert_eq!(seen.len() as u64, expected);
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len() as u64, expected);
        }
    }
}
