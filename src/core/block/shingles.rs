//! Shingles as blocks: two texts that share a shingle are candidates, and every shared shingle is counted.
//!
//! In: the features of a sketch, which this blocking needs to be stored. Out: one [`BlockKey`] for each
//! feature, 40 bits of its hash. The index sorts changes by block, then sorts and sums the pairs of the
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
use crate::sketch::SketchRef;

/// A block for each feature.
#[derive(Clone, Copy, Debug)]
pub struct Shingles {
    /// Whether the features are followed by their weights.
    weighted: bool,
    rule: HotRule,
}

impl Shingles {
    /// A blocking of features with or without weights.
    pub fn new(weighted: bool, rule: HotRule) -> Self {
        Self { weighted, rule }
    }
}

impl Blocking for Shingles {
    fn keys(&self, sketch: SketchRef<'_>, out: &mut Vec<BlockKey>) {
        let start = out.len();
        let ids = &sketch.features[..sketch.features.len() / (1 + usize::from(self.weighted))];
        out.extend(ids.iter().map(|feature| BlockKey::new(0, feature >> (u64::BITS - BlockKey::HASH_BITS))));
        // Features ascend, so equal keys are adjacent.
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
        1
    }

    fn rule(&self, _table: u16) -> HotRule {
        self.rule
    }
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
}
