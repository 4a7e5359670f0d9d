//! The fast tokenizer: reads a text once and allocates nothing per token.
//!
//! Text -> runs of lowercased bytes, each a token. There are two steps, so that neither has many
//! unpredictable branches: [`lower`](super::lower) writes the lowercased text and a bitmap of the bytes
//! inside tokens; [`Lowered::runs`] walks the edges of the bitmap. [`hash_at`] hashes a token in place.

use super::lower::{LowercaseResult, LowercaseWriter};
use super::options::{Marks, Spaceless};
use super::unicode::{Class, Classes, WORD};
use crate::hash::TokenHash;

/// Bytes that may be written or read beyond the lowercased text: one ASCII block.
pub(in crate::text) const SLACK: usize = 64;

/// A lowercased text and which of its bytes are inside tokens. Buffers are reused for the next text.
#[derive(Debug)]
pub(in crate::text) struct Lowered {
    rule: Spaceless,
    classes: Classes,
    /// The lowercased text, `len` bytes, and at least [`SLACK`] more of any value.
    bytes: Vec<u8>,
    len: usize,
    /// Bit `i % 64` of word `i / 64` is 1 if byte i is inside a token. Bit `len` exists and is 0.
    inside: Vec<u64>,
    has_parts: bool,
}

impl Lowered {
    pub(in crate::text) fn new(rule: Spaceless, marks: Marks) -> Self {
        let classes = Classes::new(rule, marks);
        Self { rule, classes, bytes: Vec::new(), len: 0, inside: Vec::new(), has_parts: false }
    }

    /// Replaces the text.
    pub(in crate::text) fn fill(&mut self, text: &str) {
        // Lowercasing at most doubles the length. The worst cases: a spaceless character of 3 bytes may get a
        // separator on either side, and İ, Ⱥ and Ⱦ have 2 bytes and become 3.
        let most = 2 * text.len() + SLACK;
        if self.bytes.len() < most {
            self.bytes.resize(most, 0);
            self.inside.resize(most / 64 + 2, 0);
        }
        let writer = LowercaseWriter::new(self.classes, &mut self.bytes, &mut self.inside);
        LowercaseResult { len: self.len, has_parts: self.has_parts } = writer.write(text);
    }

    /// Whether the text has tokens that are parts of words.
    pub(in crate::text) fn has_parts(&self) -> bool {
        self.has_parts && matches!(self.rule, Spaceless::Part | Spaceless::Bag)
    }

    /// The weight of the token that begins at byte `first`, in 24ths of a word.
    #[inline(always)]
    pub(in crate::text) fn weight(&self, first: usize) -> usize {
        // Parts of words are characters of three or four bytes.
        if self.bytes[first] < 0xe0 {
            return WORD;
        }
        match self.class_at(first) {
            Class::Alone(part) => part.weight(self.rule),
            _ => WORD,
        }
    }

    /// The class of the character of three or four bytes that begins at byte `first`.
    #[inline(always)]
    fn class_at(&self, first: usize) -> Class {
        let bytes: [u8; 4] = *self.bytes[first..].first_chunk().expect("the buffer has slack");
        let low = |at: usize| u32::from(bytes[at] & 0x3f);
        let three = u32::from(bytes[0] & 0xf) << 12 | low(1) << 6 | low(2);
        if bytes[0] < 0xf0 {
            return self.classes.near(three as usize);
        }
        let four = char::from_u32(three << 6 | low(3));
        four.map_or(Class::Separator, |c| self.classes.class(c))
    }

    /// Calls `token` with the first byte and the end byte of every token in turn.
    #[inline(always)]
    pub(in crate::text) fn runs(&self, mut token: impl FnMut(usize, usize)) {
        let (mut first, mut before) = (0, 0);
        for (word, &inside) in self.inside[..self.len / 64 + 1].iter().enumerate() {
            let base = word * 64;
            let previous = inside << 1 | before;
            let (mut starts, mut ends) = (inside & !previous, previous & !inside);
            if before == 0 {
                first = base + pop(&mut starts);
            }
            while ends != 0 {
                token(first, base + pop(&mut ends));
                // Meaningless after the last start, but then unused: the next word begins outside a token.
                first = base + pop(&mut starts);
            }
            before = inside >> 63;
        }
    }

    /// The lowercased text, and at least [`SLACK`] bytes after it.
    #[inline(always)]
    pub(in crate::text) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// [The hash](TokenHash::token) of `bytes[first..end]`, read in place: at least 16 bytes of any value must
/// follow `end`.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
pub(in crate::text) fn hash_at(hash: TokenHash, bytes: &[u8], first: usize, end: usize) -> u64 {
    let load = |at: usize| u128::from_le_bytes(*bytes[at..].first_chunk().expect("16 bytes follow"));
    let len = end - first;
    let step = |state, piece: u128| hash.step(state, piece as u64, (piece >> 64) as u64, len);
    let (mut state, mut at) = (0, first);
    while end - at > 16 {
        state = step(state, load(at));
        at += 16;
    }
    step(state, load(at) & KEEP[end - at])
}

/// Masks of the first `len` (0 to 16) of 16 bytes.
const KEEP: [u128; 17] = {
    let mut keep = [0; 17];
    let mut len = 1;
    while len < keep.len() {
        keep[len] = u128::MAX >> (128 - 8 * len);
        len += 1;
    }
    keep
};

/// Removes the lowest set bit of `bits` and returns its index; 64 if there is none.
#[inline(always)]
fn pop(bits: &mut u64) -> usize {
    let at = bits.trailing_zeros() as usize;
    *bits &= bits.wrapping_sub(1);
    at
}
