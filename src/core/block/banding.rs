//! Banding: b bands of r rows; two sketches share the block of a band iff all its r components are equal.
//!
//! In: the bit planes of a sketch, or its components where these are words. Out: one [`BlockKey`] a band: its
//! number, and 32 bits of a hash of its r b-bit components. What is stored decides, never the components
//! before they were cut to b bits, so a sketch alone rebuilds its blocks. A pair of similarity s is a
//! candidate with probability `1 - (1 - p^r)^b`, `p = s + (1 - s) / 2^bits`: see [`design`](super::design).
//!
//! Band i reads the components `K - (i + 1) r .. K - i r`: bands are cut from the *last* component on, the
//! filter looks from the first. Candidates are equal where they were selected, so a look at the same
//! components would learn little.
//!
//! Reference: A. Rajaraman and J. D. Ullman, *Mining of Massive Datasets*, section 3.4.

use std::ops::Range;

use super::{BlockKey, Blocking, HotRule};
use crate::hash::{PI, fold, mix};
use crate::sketch::SketchRef;

/// Cuts sketches of one shape into bands.
#[derive(Clone, Debug)]
pub struct Banding {
    /// Which words of a sketch are read; all by default.
    part: Option<Range<usize>>,
    /// Words of a plane.
    groups: usize,
    /// Whether components are words.
    by_word: bool,
    rows: usize,
    rule: HotRule,
    bands: Box<[Band]>,
}

/// Where the rows of a band lie.
#[derive(Clone, Copy, Debug)]
struct Band {
    table: u16,
    /// The first row's component: in a plane, the word of it and the bit in that.
    first: usize,
    word: usize,
    shift: u32,
    /// Start of the hash, different for each band.
    salt: u64,
}

impl Banding {
    /// `bands` bands of `rows` rows on sketches of `size` components of any bits.
    ///
    /// # Panics
    /// If there are no rows or more than 64, or the bands need more than `size` components:
    /// [`design`](super::design) yields none such.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most 32768 components, so no more bands; a shift is below 64"
    )]
    pub fn new(size: usize, bands: usize, rows: usize, rule: HotRule) -> Self {
        assert!(
            (1..=64).contains(&rows) && bands * rows <= size,
            "{bands} bands of {rows} rows on {size} components"
        );
        let band = |i: usize| {
            let first = size - (i + 1) * rows;
            Band {
                table: i as u16,
                first,
                word: first / 64,
                shift: (first % 64) as u32,
                salt: mix(PI[2] ^ i as u64),
            }
        };
        let groups = size.div_ceil(64);
        Self { part: None, groups, by_word: false, rows, rule, bands: (0..bands).map(band).collect() }
    }

    /// Reads sketches whose components are words by themselves, behind a first one.
    pub fn by_word(self, by_word: bool) -> Self {
        Self { by_word, ..self }
    }

    /// Reads only these words of a sketch, which are bit planes of the size given.
    pub fn of(self, part: Range<usize>) -> Self {
        Self { part: Some(part), ..self }
    }
}

impl Band {
    /// The band's rows in one plane of so many, in the lowest bits.
    #[inline]
    fn rows(self, words: &[u64], planes: usize, plane: usize, mask: u64) -> u64 {
        let at = self.word * planes + plane;
        let low = words[at] >> self.shift;
        // Two shifts, since a shift by 64 would not give 0.
        let high = words.get(at + planes).map_or(0, |next| next << 1 << (63 - self.shift));
        (low | high) & mask
    }
}

/// One multiplication hashes a word.
#[inline]
fn add(state: u64, word: u64) -> u64 {
    fold(word ^ state, PI[1]) ^ word
}

impl Blocking for Banding {
    fn keys(&self, sketch: SketchRef<'_>, out: &mut Vec<BlockKey>) {
        let words = self.part.clone().map_or(sketch.words, |part| &sketch.words[part]);
        let mask = !0 >> (64 - self.rows);
        let planes = words.len() / self.groups;
        out.extend(self.bands.iter().map(|band| {
            let state = if self.by_word {
                words[1 + band.first..][..self.rows].iter().fold(band.salt, |state, word| add(state, *word))
            } else {
                let (mut state, mut packed, mut filled) = (band.salt, 0, 0);
                // As many planes as fit go into one word.
                for plane in 0..planes {
                    if filled + self.rows > 64 {
                        state = add(state, packed);
                        (packed, filled) = (0, 0);
                    }
                    packed |= band.rows(words, planes, plane, mask) << filled;
                    filled += self.rows;
                }
                add(state, packed)
            };
            BlockKey { table: band.table, hash: (mix(state) >> 32) as u32 }
        }));
    }

    fn tables(&self) -> usize {
        self.bands.len()
    }

    fn rule(&self, _table: u16) -> HotRule {
        self.rule
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::agreement::Shape;

    fn keys(banding: &Banding, words: &[u64]) -> Vec<BlockKey> {
        let mut out = Vec::new();
        banding.keys(SketchRef { words, features: &[] }, &mut out);
        out
    }

    /// A repeatable word.
    fn word(i: u64) -> u64 {
        mix(i ^ 0x5eed)
    }

    #[test]
    fn a_key_changes_iff_a_row_of_its_band_does() {
        for (size, bits, bands, rows) in
            [(200, 1, 9, 22), (128, 2, 2, 64), (100, 8, 12, 8), (65, 64, 65, 1), (16, 4, 3, 5)]
        {
            let shape = Shape::components(size, bits);
            let banding = Banding::new(size, bands, rows, HotRule::NEVER).by_word(shape.by_word());
            let words: Vec<u64> = (0..shape.words() as u64).map(word).collect();
            let before = keys(&banding, &words);
            assert_eq!(before.len(), banding.tables());
            for component in 0..size {
                for plane in 0..bits {
                    let mut changed = words.clone();
                    if shape.by_word() {
                        changed[1 + component] ^= 1 << plane;
                    } else {
                        changed[component / 64 * bits + plane] ^= 1 << (component % 64);
                    }
                    // Bands count from the end.
                    let band = (size - 1 - component) / rows;
                    let after = keys(&banding, &changed);
                    let differ: Vec<usize> = (0..bands).filter(|&i| before[i] != after[i]).collect();
                    let expected: Vec<usize> = if band < bands { vec![band] } else { vec![] };
                    assert_eq!(
                        differ, expected,
                        "size {size} bits {bits} component {component} plane {plane}"
                    );
                }
            }
        }
    }

    #[test]
    fn tables_ascend_and_equal_contents_differ_by_band() {
        let banding = Banding::new(64, 8, 8, HotRule::NEVER);
        let keys = keys(&banding, &[0]);
        assert!(keys.iter().map(|key| key.table).eq(0..8));
        let hashes: std::collections::BTreeSet<u32> = keys.iter().map(|key| key.hash).collect();
        assert_eq!(hashes.len(), 8);
    }

    #[test]
    fn golden_keys() {
        let keys = keys(&Banding::new(256, 2, 8, HotRule::NEVER), &[word(0), word(1), word(2), word(3)]);
        assert_eq!(keys.iter().map(|key| key.hash).collect::<Vec<_>>(), [3_725_941_335, 2_456_565_615]);
    }

    #[test]
    #[should_panic(expected = "5 bands of 4 rows on 16 components")]
    fn bands_beyond_the_sketch() {
        Banding::new(16, 5, 4, HotRule::NEVER);
    }
}
