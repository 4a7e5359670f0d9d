//! A selection of bits of a fingerprint, which leads a table.
//!
//! In: ranges of bit numbers. Out: the selected bits of a fingerprint, packed, as a number or a hash. When a
//! selection is constructed, its ranges are cut into pieces, each within one word of the fingerprint and one
//! word of the result.

use std::ops::Range;

use crate::hash::{PI, fold, mix};

/// Selected bits, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    ranges: Box<[Range<usize>]>,
    width: usize,
    pieces: Box<[BitPiece]>,
}

/// Bits that are consecutive in the fingerprint and in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BitPiece {
    /// Word of the fingerprint.
    word: usize,
    /// First bit of the piece in that word.
    shift: u32,
    /// Mask of the lowest `length` bits, 1 to 64.
    mask: u64,
    /// First bit of the piece in its word of the result; 0 begins a new word.
    at: u32,
}

impl Selection {
    /// Selects the bits of these ranges, which do not overlap.
    pub fn new(ranges: impl IntoIterator<Item = Range<usize>>) -> Self {
        let mut sorted: Vec<Range<usize>> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in sorted {
            match joined.last_mut() {
                Some(last) if last.end >= range.start => {
                    debug_assert!(last.end == range.start, "ranges overlap");
                    last.end = range.end;
                }
                _ => joined.push(range),
            }
        }
        let (mut pieces, mut width) = (Vec::new(), 0);
        for range in &joined {
            let mut bit = range.start;
            while bit < range.end {
                let length = (range.end - bit).min(64 - bit % 64).min(64 - width % 64);
                pieces.push(BitPiece {
                    word: bit / 64,
                    shift: place(bit),
                    mask: !0 >> (64 - length),
                    at: place(width),
                });
                bit += length;
                width += length;
            }
        }
        Self { ranges: joined.into(), width, pieces: pieces.into() }
    }

    /// The selected ranges, ascending; adjacent ranges are joined.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Number of selected bits.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of bits of a [`key`](Self::key): all selected bits, at most 64.
    pub fn key_width(&self) -> usize {
        self.width.min(64)
    }

    /// The first 64 selected bits, the first one lowest.
    #[inline]
    pub fn key(&self, words: &[u64]) -> u64 {
        let mut key = 0;
        for (i, piece) in self.pieces.iter().enumerate() {
            if piece.at == 0 && i > 0 {
                break;
            }
            key |= piece.extract(words);
        }
        key
    }

    /// A hash of all selected bits. Equal bits have equal hashes for the same salt.
    #[inline]
    pub(super) fn hash(&self, words: &[u64], salt: u64) -> u64 {
        let (mut state, mut packed) = (salt, 0);
        for (i, piece) in self.pieces.iter().enumerate() {
            if piece.at == 0 && i > 0 {
                state = fold(packed ^ state, PI[1]) ^ packed;
                packed = 0;
            }
            packed |= piece.extract(words);
        }
        mix(fold(packed ^ state, PI[1]) ^ packed)
    }
}

impl From<Range<usize>> for Selection {
    fn from(range: Range<usize>) -> Self {
        Self::new(std::iter::once(range))
    }
}

impl BitPiece {
    #[inline(always)]
    fn extract(self, words: &[u64]) -> u64 {
        (words[self.word] >> self.shift & self.mask) << self.at
    }
}

#[expect(clippy::cast_possible_truncation, reason = "below 64")]
fn place(bit: usize) -> u32 {
    (bit % 64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The selected bits one by one, by definition.
    fn bits(selection: &Selection, words: &[u64]) -> Vec<bool> {
        selection
            .ranges()
            .iter()
            .cloned()
            .flatten()
            .map(|bit| words[bit / 64] >> (bit % 64) & 1 == 1)
            .collect()
    }

    #[test]
    fn a_key_holds_the_first_selected_bits_and_a_hash_depends_on_all() {
        let cases: [&[Range<usize>]; 6] = [
            &[0..15, 15..16],
            &[40..52, 3..5],
            &[60..70, 130..133],
            &[0..32, 32..64],
            &[10..100, 120..190],
            &[191..192, 0..1, 64..65],
        ];
        let words: Vec<u64> = (0..3).map(mix).collect();
        for ranges in cases {
            let selection = Selection::new(ranges.iter().cloned());
            let expected = bits(&selection, &words);
            assert_eq!(selection.width(), expected.len());
            let key =
                expected.iter().take(64).enumerate().fold(0, |key, (i, &bit)| key | u64::from(bit) << i);
            assert_eq!(selection.key(&words), key, "{ranges:?}");
            for bit in 0..192 {
                let mut changed = words.clone();
                changed[bit / 64] ^= 1 << (bit % 64);
                let selected = ranges.iter().any(|range| range.contains(&bit));
                assert_eq!(selection.hash(&changed, 7) != selection.hash(&words, 7), selected, "bit {bit}");
            }
            assert_ne!(selection.hash(&words, 7), selection.hash(&words, 8));
        }
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let selection = Selection::new([16..32, 0..16, 48..48]);
        assert!(selection.ranges().iter().eq(std::iter::once(&(0..32))));
        assert_eq!(selection, Selection::from(0..32));
    }

    #[test]
    fn nothing_selected_is_equal_everywhere() {
        let nothing = Selection::new([]);
        assert_eq!(
            (nothing.width(), nothing.key(&[5]), nothing.hash(&[5], 1)),
            (0, 0, nothing.hash(&[6], 1))
        );
    }
}
