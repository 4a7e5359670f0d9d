//! The fast tokenizer: reads a text once, allocates nothing for a token.
//!
//! Text -> runs of lowercased bytes, each a token. Two steps, so that neither has a branch that texts make hard to
//! predict: [`Lowered::fill`] writes the lowercased text and, beside it, a bitmap of the bytes that are inside tokens
//! (ASCII 64 bytes at a time, in plain loops that the compiler turns into vectors; other characters one by one through the class table of
//! [`unicode`]); [`Lowered::runs`] then walks the edges of the bitmap. [`hash_at`] hashes a token
//! where it lies.
//!
//! Lowercasing needs to know the whole token only for the capital sigma, which is final or not: on meeting one, the rest
//! of its token is left to [`str::to_lowercase`].

use super::unicode::{self, Class};
use crate::hash;

/// Bytes that may be written or read beyond the lowercased text: one ASCII block.
pub(super) const SLACK: usize = 64;

/// A lowercased text and which of its bytes are inside tokens. Buffers are kept from one text to the next.
#[derive(Debug)]
pub(super) struct Lowered {
    classes: &'static unicode::Table,
    /// Whether characters of scripts without spaces are tokens of their own.
    alone: bool,
    /// The lowercased text, `len` bytes, and at least [`SLACK`] more of any value.
    bytes: Vec<u8>,
    len: usize,
    /// Bit `i % 64` of word `i / 64`: byte i is inside a token. Bits from `len` to the end of the word after it are zero.
    inside: Vec<u64>,
}

impl Lowered {
    pub(super) fn new(alone: bool) -> Self {
        Self { classes: unicode::table(), alone, bytes: Vec::new(), len: 0, inside: Vec::new() }
    }

    /// Replaces the text.
    pub(super) fn fill(&mut self, text: &str) {
        // No character grows to twice its length: the worst are a spaceless one of 3 bytes, which may get a separator on
        // either side, and İ, Ⱥ and Ⱦ, whose 2 bytes become 3.
        let most = 2 * text.len() + SLACK;
        if self.bytes.len() < most {
            self.bytes.resize(most, 0);
            self.inside.resize(most / 64 + 2, 0);
        }
        self.len = 0;
        self.inside[0] = 0;
        let mut at = 0;
        while at < text.len() {
            let rest = &text.as_bytes()[at..];
            let ascii = rest.first_chunk::<8>().map_or(rest[0].is_ascii(), |eight| eight.is_ascii());
            at += if ascii { self.push_ascii(rest) } else { self.push_char(text, at) };
        }
    }

    /// Calls `token` with the first and the end byte of every token in turn.
    #[inline(always)]
    pub(super) fn runs(&self, mut token: impl FnMut(usize, usize)) {
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
                // Meaningless after the last start, and not used then: the next word begins outside a token.
                first = base + pop(&mut starts);
            }
            before = inside >> 63;
        }
    }

    /// The lowercased text, and at least [`SLACK`] bytes after it.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends the ASCII characters at the start of `rest`, which has one, up to 64; returns how many.
    #[inline(always)]
    fn push_ascii(&mut self, rest: &[u8]) -> usize {
        let mut padded = [0; 64];
        let block = rest.first_chunk().unwrap_or_else(|| {
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        });
        let out = self.bytes[self.len..].first_chunk_mut::<64>().expect("the buffer has slack");
        let mut parts = [0; 64];
        for ((&from, to), part) in block.iter().zip(out).zip(&mut parts) {
            *to = from.to_ascii_lowercase();
            *part = u8::from(to.is_ascii_lowercase() | from.is_ascii_digit());
        }
        let count = if block.is_ascii() { rest.len().min(64) } else { ascii_prefix(block) };
        let inside = parts.as_chunks().0.iter().rev().fold(0, |bits, part| bits << 8 | gather(*part));
        self.push(inside & (!0 >> (64 - count)), count);
        count
    }

    /// Appends the character at byte `at`, or the rest of its token; returns the bytes of `text` that are done.
    #[inline(always)]
    fn push_char(&mut self, text: &str, at: usize) -> usize {
        let c = text[at..].chars().next().expect("a character begins here");
        match self.class(c) {
            Class::Separator => self.push(0, 1),
            Class::Lower => self.push_token_char(c),
            Class::Upper if c == 'Σ' => return self.push_from_sigma(text, at),
            Class::Upper => c.to_lowercase().for_each(|c| self.push_token_char(c)),
            Class::Spaceless => {
                if self.len > 0 && self.inside[(self.len - 1) / 64] >> ((self.len - 1) % 64) & 1 == 1 {
                    self.push(0, 1);
                }
                self.push_token_char(c);
                self.push(0, 1);
            }
        }
        c.len_utf8()
    }

    /// Appends the rest of the token, from the sigma at byte `at`; returns the length of that rest in `text`.
    #[cold]
    fn push_from_sigma(&mut self, text: &str, at: usize) -> usize {
        let is_part = |c: char| matches!(self.class(c), Class::Lower | Class::Upper);
        let before = text[..at].trim_end_matches(is_part).len();
        let end = text.len() - text[at..].trim_start_matches(is_part).len();
        let done = text[before..at].to_lowercase().len();
        text[before..end].to_lowercase()[done..].chars().for_each(|c| self.push_token_char(c));
        end - at
    }

    #[inline(always)]
    fn class(&self, c: char) -> Class {
        let class = self.classes.get(c as usize).copied().unwrap_or_else(|| unicode::class(c));
        if class == Class::Spaceless && !self.alone { Class::Lower } else { class }
    }

    #[inline(always)]
    fn push_token_char(&mut self, c: char) {
        let count = c.encode_utf8(&mut self.bytes[self.len..]).len();
        self.push(!(!0 << count), count);
    }

    /// Appends `count` bytes (1 to 64) that are written already, with their bits.
    #[inline(always)]
    fn push(&mut self, inside: u64, count: usize) {
        let (word, shift) = (self.len / 64, self.len % 64);
        self.inside[word] |= inside << shift;
        self.inside[word + 1] = (inside >> 1) >> (63 - shift);
        self.len += count;
    }
}

/// [`hash::token`] of `bytes[first..end]`, read where it lies: at least 16 bytes must follow, of any value.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
pub(super) fn hash_at(bytes: &[u8], first: usize, end: usize) -> u64 {
    let load = |at: usize| u128::from_le_bytes(*bytes[at..].first_chunk().expect("16 bytes follow"));
    let len = end - first;
    let step = |state, piece: u128| hash::token_step(state, piece as u64, (piece >> 64) as u64, len);
    let (mut state, mut at) = (0, first);
    while end - at > 16 {
        state = step(state, load(at));
        at += 16;
    }
    step(state, load(at) & KEEP[end - at])
}

/// The masks of the first `len` (0 to 16) of 16 bytes.
const KEEP: [u128; 17] = {
    let mut keep = [0; 17];
    let mut len = 1;
    while len < keep.len() {
        keep[len] = u128::MAX >> (128 - 8 * len);
        len += 1;
    }
    keep
};

/// Takes the lowest one out of `bits`: its place, or 64 if there is none.
#[inline(always)]
fn pop(bits: &mut u64) -> usize {
    let at = bits.trailing_zeros() as usize;
    *bits &= bits.wrapping_sub(1);
    at
}

/// How many bytes come before the first that is not ASCII. Kept apart, or else it is computed where nobody asks.
#[inline(never)]
fn ascii_prefix(block: &[u8; 64]) -> usize {
    block.iter().take_while(|byte| byte.is_ascii()).count()
}

/// Eight bytes of 0 or 1 as bits, the first lowest.
#[inline(always)]
fn gather(bytes: [u8; 8]) -> u64 {
    u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56
}
