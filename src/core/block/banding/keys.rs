//! Banding: b bands of r rows; two sketches share the block of a band iff all its r components are equal.
//!
//! In: the bit planes of a sketch, or its components where each is a word. Out: one [`BlockKey`] for each
//! band: the band's number and 40 bits of a hash of its r b-bit components. A key is computed from the stored
//! b-bit components, never from the full hashes, so the blocks can be rebuilt from a stored sketch. A pair of
//! similarity s is a candidate with probability `1 - (1 - p^r)^b`, `p = s + (1 - s) / 2^bits`: see
//! [`design`](super::design()).
//!
//! Band i reads the components `K - (i + 1) r .. K - i r`: bands are cut from the *last* component on, the
//! filter reads from the first. Candidates are equal in the components of the band that selected them, so the
//! filter would gain little information from these.
//!
//! Reference: A. Rajaraman and J. D. Ullman, *Mining of Massive Datasets*, section 3.4.

use std::ops::Range;

use crate::block::{BlockKey, Blocking, HotRule};
use crate::hash::{PI, fold, mix};
use crate::sketch::SketchRef;

/// Cuts sketches of one shape into bands.
#[derive(Clone, Debug)]
pub struct Banding {
    /// Range of the sketch's words that is read; all words if `None`.
    part: Option<Range<usize>>,
    /// Words of a bit plane.
    groups: usize,
    /// Whether each component is a whole word.
    by_word: bool,
    rows: usize,
    rule: HotRule,
    bands: Box<[Band]>,
}

/// Position of a band's rows in a sketch.
#[derive(Clone, Copy, Debug)]
struct Band {
    table: u16,
    /// Index of the first row's component; in a plane it is in word `word`, at bit `shift`.
    first: usize,
    word: usize,
    shift: u32,
    /// Initial state of the hash, different for each band.
    salt: u64,
}

impl Banding {
    /// `bands` bands of `rows` rows on sketches of `size` components of any number of bits.
    ///
    /// # Panics
    /// If there are no rows or more than 64, or the bands need more than `size` components:
    /// [`design`](super::design()) yields none such.
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

    /// For sketches in which each component is a word; their first word is no component and is skipped.
    pub fn by_word(self, by_word: bool) -> Self {
        Self { by_word, ..self }
    }

    /// Reads only this range of a sketch's words, which holds bit planes of `size` components.
    pub fn on_words(self, part: Range<usize>) -> Self {
        Self { part: Some(part), ..self }
    }
}

impl Band {
    /// The bits of the band's rows in plane `plane` of `planes`, in the lowest bits of the result.
    #[inline]
    fn rows(self, words: &[u64], planes: usize, plane: usize, mask: u64) -> u64 {
        let at = self.word * planes + plane;
        let low = words[at] >> self.shift;
        // Two shifts, since a shift by 64 would not give 0.
        let high = words.get(at + planes).map_or(0, |next| next << 1 << (63 - self.shift));
        (low | high) & mask
    }
}

/// Adds a word to the hash state by one multiplication.
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
                // As many planes as fit are packed into one word.
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
            BlockKey::new(band.table, mix(state) >> (u64::BITS - BlockKey::HASH_BITS))
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

    /// A pseudo-random word.
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
                    // Bands are numbered from the last component.
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
        let hashes: std::collections::BTreeSet<u64> = keys.iter().map(|key| key.hash()).collect();
        assert_eq!(hashes.len(), 8);
    }

    #[test]
    fn golden_keys() {
        let keys = keys(&Banding::new(256, 2, 8, HotRule::NEVER), &[word(0), word(1), word(2), word(3)]);
        assert_eq!(
            keys.iter().map(|key| key.hash() >> 8).collect::<Vec<_>>(),
            [3_725_941_335, 2_456_565_615]
        );
    }

    #[test]
    #[should_panic(expected = "5 bands of 4 rows on 16 components")]
    fn bands_beyond_the_sketch() {
        Banding::new(16, 5, 4, HotRule::NEVER);
    }
}
