//! Shingles as blocks: two texts that share a shingle are candidates, and every shared shingle is counted.
//!
//! In: the features of a sketch, which this blocking needs to be stored. Out: one [`BlockKey`] for each
//! feature, 40 bits of its hash. Of a [scaled](Scaled) sketch, in: its values. Out: a key for each kept one,
//! 44 of its bits, of which 4 are the table. These are its lowest bits, since the highest ones of kept values
//! are 0; 40 bits would be too few, as a text has dozens of keys: at 100 million texts of 60 keys, 1 key of
//! 180 would have a block by accident, with 44 bits 1 of 2,900.
//!
//! The index sorts changes by block, then sorts and sums the pairs of the
//! blocks. For a corpus loaded in one epoch this is pair generation by sorting (feature, id) into (id, id,
//! count), as in Broder's clustering of the web. Pairs are missed only in hot blocks: those of shingles that
//! more than `cap` sketches have. The cost is quadratic in the size of the other blocks, so this is for small
//! corpora and as a reference for the other blockings.
//!
//! Two different shingles share a block with probability 2^-40. Such a candidate changes no result, since the
//! filter decides.
//!
//! References: A. Broder, S. Glassman, M. Manasse and G. Zweig, *Syntactic clustering of the web* (1997),
//! section 4; Yuan et al. (2019), section 3.

use super::blocking::Blocking;
use super::hot::HotRule;
use super::key::BlockKey;
use crate::sketch::{Scaled, Scheme, SketchRef};

/// A block for each feature.
#[derive(Clone, Copy, Debug)]
pub struct Shingles {
    stored: StoredFeatures,
    rule: HotRule,
}

/// What a sketch stores of its features.
#[derive(Clone, Copy, Debug)]
enum StoredFeatures {
    All,
    /// All, followed by their weights.
    Weighted,
    /// Their values, of which the first are kept.
    Values(Scaled),
}

/// Bits of a value that are the table.
const TABLE_BITS: u32 = 4;

impl Shingles {
    /// A blocking of features with or without weights.
    pub fn new(weighted: bool, rule: HotRule) -> Self {
        Self { stored: if weighted { StoredFeatures::Weighted } else { StoredFeatures::All }, rule }
    }

    /// A blocking of the kept values of scaled sketches.
    pub fn scaled(scaled: Scaled, rule: HotRule) -> Self {
        Self { stored: StoredFeatures::Values(scaled), rule }
    }

    /// A blocking of the features of sketches of this scheme.
    pub fn for_scheme(scheme: &Scheme, rule: HotRule) -> Self {
        match scheme.sketch.scaled() {
            Some(scaled) => Self::scaled(scaled, rule),
            None => Self::new(scheme.measure().is_weighted(), rule),
        }
    }
}

impl Blocking for Shingles {
    fn keys(&self, sketch: SketchRef<'_>, out: &mut Vec<BlockKey>) {
        let start = out.len();
        let leading = |feature: &u64| BlockKey::new(0, feature >> (u64::BITS - BlockKey::HASH_BITS));
        match self.stored {
            // Features ascend, so equal keys are adjacent.
            StoredFeatures::All => out.extend(sketch.features.iter().map(leading)),
            StoredFeatures::Weighted => {
                out.extend(sketch.features[..sketch.features.len() / 2].iter().map(leading));
            }
            StoredFeatures::Values(scaled) => {
                out.extend(scaled.kept(sketch.features).iter().copied().map(lowest));
                out[start..].sort_unstable();
            }
        }
        let mut last = None;
        let mut kept = start;
        for at in start..out.len() {
            let key = out[at];
            if last.replace(key) != Some(key) {
                out[kept] = key;
                kept += 1;
            }
        }
        out.truncate(kept);
    }

    fn tables(&self) -> usize {
        match self.stored {
            StoredFeatures::All | StoredFeatures::Weighted => 1,
            StoredFeatures::Values(_) => 1 << TABLE_BITS,
        }
    }

    fn rule(&self, _table: u16) -> HotRule {
        self.rule
    }
}

/// The key of a value.
fn lowest(value: u64) -> BlockKey {
    let table = value >> BlockKey::HASH_BITS & ((1 << TABLE_BITS) - 1);
    BlockKey::new(u16::try_from(table).expect("a table has 4 bits"), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_for_each_shingle() {
        let features = [7, 1 << 24, 1 << 24 | 5, 9 << 32];
        let mut keys = vec![BlockKey::new(0, 0)];
        let sketch = SketchRef { words: &[], features: &features };
        Shingles::new(false, HotRule::NEVER).keys(sketch, &mut keys);
        let hashes: Vec<u64> = keys.iter().map(|key| key.hash()).collect();
        assert_eq!(
            hashes,
            [0, 0, 1, 9 << 8],
            "what was there stays, and neighbours that fall together are one"
        );
        keys.clear();
        Shingles::new(true, HotRule::NEVER).keys(sketch, &mut keys);
        assert_eq!(keys.len(), 2, "weights are no shingles");
    }

    #[test]
    fn keys_of_kept_values_are_their_lowest_bits() {
        let blocking = Shingles::scaled(Scaled::new(8, 4, 0), HotRule::NEVER);
        let keys = |values: &[u64]| {
            let mut keys = vec![BlockKey::new(9, 9)];
            blocking.keys(SketchRef { words: &[0], features: values }, &mut keys);
            assert_eq!(keys.remove(0), BlockKey::new(9, 9), "what was there stays");
            assert!(keys.iter().all(|key| usize::from(key.table) < blocking.tables()));
            keys
        };
        // The last two differ in bits above the lowest 44 only.
        let low = [0x312_3456_789a, 0x500_0000_0001, 1 << 60 | 0x500_0000_0001];
        assert_eq!(keys(&low), [BlockKey::new(3, 0x12_3456_789a), BlockKey::new(5, 1)]);
        // Four are kept of any text, and all below 2^61; above it, no more.
        let around = |below: u64| (0..9).map(|n| (1 << 61) - below + n).collect::<Vec<u64>>();
        assert_eq!([3, 7].map(|below| keys(&around(below)).len()), [4, 7]);
    }
}
