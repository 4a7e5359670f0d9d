//! Lowercases a text and marks which bytes are inside tokens, in one pass.
//!
//! Text -> its lowercased bytes, and a bitmap of the bytes that are inside tokens. Bytes outside tokens have
//! any value. ASCII is processed 64 bytes at a time, in plain loops that the compiler vectorizes; other
//! characters one by one, by their [class](unicode).
//!
//! The lowercase of a character depends on its token only for the capital sigma, which is final or not. At a
//! capital sigma, the rest of its token is lowercased by [`str::to_lowercase`].
//!
//! A mark is inside a token if the character before it is, unless that character belongs to a script without
//! spaces. So one bit is kept from one character to the next.

use super::unicode::{Class, Classes};

/// Writes one text. The value lives on the stack during the pass, so that its fields are held in registers.
pub(super) struct LowercaseWriter<'a> {
    classes: Classes,
    bytes: &'a mut [u8],
    /// Bit `i % 64` of word `i / 64` is 1 if byte i is inside a token. Bits from `len` to the end of the word
    /// after it are zero.
    inside: &'a mut [u64],
    len: usize,
    /// Whether any character was a token of its own by the rule.
    has_parts: bool,
}

/// Result of [`LowercaseWriter::write`].
pub(super) struct LowercaseResult {
    /// Length of the lowercased text in bytes.
    pub(super) len: usize,
    /// Whether any character is a token of its own by the rule, that is, belongs to a script without spaces.
    pub(super) has_parts: bool,
}

impl<'a> LowercaseWriter<'a> {
    /// `bytes` must have room for twice the text and [`SLACK`](super::tokenize::SLACK); `inside` for a bit
    /// for each of them and one more word.
    #[inline(always)]
    pub(super) fn new(classes: Classes, bytes: &'a mut [u8], inside: &'a mut [u64]) -> Self {
        inside[0] = 0;
        Self { classes, bytes, inside, len: 0, has_parts: false }
    }

    /// Writes the text.
    #[inline(always)]
    pub(super) fn write(mut self, text: &str) -> LowercaseResult {
        let mut rest = text;
        while !rest.is_empty() {
            let done = if begins_with_ascii(rest) {
                self.push_ascii(rest.as_bytes())
            } else {
                self.push_chars(text, text.len() - rest.len())
            };
            rest = &rest[done..];
        }
        LowercaseResult { len: self.len, has_parts: self.has_parts }
    }

    /// Appends up to 64 ASCII characters from the start of `rest`, which starts with at least one; returns
    /// how many.
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

    /// Appends characters from byte `from` up to the next stretch of ASCII; returns how many bytes of `text`
    /// were read.
    #[inline(always)]
    fn push_chars(&mut self, text: &str, from: usize) -> usize {
        let mut rest = text[from..].chars();
        // Whether a mark at this point would be inside a word. The character before is ASCII.
        let mut accepts_mark = self.is_inside();
        while let Some(c) = rest.next() {
            match self.classes.class(c) {
                class @ (Class::Separator | Class::Lower) => {
                    accepts_mark = class == Class::Lower;
                    self.push_char(c, accepts_mark);
                }
                Class::Mark => self.push_char(c, accepts_mark),
                Class::Joiner => {
                    let is_joined = |next| self.classes.class(next).is_joined();
                    accepts_mark = accepts_mark && rest.clone().next().is_some_and(is_joined);
                    self.push_char(c, accepts_mark);
                }
                Class::Upper if c == 'Σ' => {
                    let at = text.len() - rest.as_str().len() - c.len_utf8();
                    let (lowered, end) = self.sigma_and_rest(text, at);
                    lowered.chars().for_each(|lower| self.push_char(lower, true));
                    rest = text[end..].chars();
                    // Marks of the token are already in `lowered`.
                    accepts_mark = false;
                }
                Class::Upper => {
                    accepts_mark = true;
                    c.to_lowercase().for_each(|lower| self.push_char(lower, true));
                }
                Class::Run => {
                    accepts_mark = false;
                    self.push_char(c, true);
                }
                Class::Alone(_) => {
                    accepts_mark = false;
                    self.has_parts = true;
                    if self.is_inside() {
                        self.push(0, 1);
                    }
                    self.push_char(c, true);
                    self.push(0, 1);
                }
            }
            if begins_with_ascii(rest.as_str()) {
                break;
            }
        }
        text.len() - from - rest.as_str().len()
    }

    /// The rest of the token from the sigma at byte `at`, lowercased, and the byte of `text` where the token
    /// ends.
    #[cold]
    fn sigma_and_rest(&self, text: &str, at: usize) -> (String, usize) {
        let mut next = Class::Upper;
        let is_before = |c: char| {
            let behind = std::mem::replace(&mut next, self.classes.class(c));
            next.may_precede(behind)
        };
        // Marks at the start follow no word.
        let is_mark = |c: char| matches!(self.classes.class(c), Class::Mark | Class::Joiner);
        let first = text[..at].trim_end_matches(is_before).len();
        let before = text[first..at].trim_start_matches(is_mark);
        let mut last = Class::Upper;
        let is_after = |c: char| {
            let ahead = std::mem::replace(&mut last, self.classes.class(c));
            ahead.may_precede(last)
        };
        let sigma = 'Σ'.len_utf8();
        let after = text[at + sigma..].trim_start_matches(is_after);
        let token = &text[at - before.len()..text.len() - after.len()];
        let token = token.trim_end_matches(|c| self.classes.class(c) == Class::Joiner);
        (token.to_lowercase().split_off(before.to_lowercase().len()), at - before.len() + token.len())
    }

    /// Whether the last written byte is inside a token.
    #[inline(always)]
    fn is_inside(&self) -> bool {
        self.len.checked_sub(1).is_some_and(|last| self.inside[last / 64] >> (last % 64) & 1 == 1)
    }

    #[inline(always)]
    fn push_char(&mut self, c: char, inside: bool) {
        let count = c.encode_utf8(&mut self.bytes[self.len..]).len();
        self.push(u64::from(inside).wrapping_neg() & !(!0 << count), count);
    }

    /// Appends `count` bytes (1 to 64) that are already written, with their bits.
    #[inline(always)]
    fn push(&mut self, inside: u64, count: usize) {
        let (word, shift) = (self.len / 64, self.len % 64);
        self.inside[word] |= inside << shift;
        self.inside[word + 1] = (inside >> 1) >> (63 - shift);
        self.len += count;
    }
}

/// Whether the text starts with enough ASCII for a block to pay off: 8 bytes, or one byte near its end.
#[inline(always)]
fn begins_with_ascii(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first_chunk::<8>().map_or(bytes.first().is_some_and(u8::is_ascii), |eight| eight.is_ascii())
}

/// Number of bytes before the first that is not ASCII. Not inlined: otherwise it is computed also for blocks
/// that are all ASCII.
#[inline(never)]
fn ascii_prefix(block: &[u8; 64]) -> usize {
    block.iter().take_while(|byte| byte.is_ascii()).count()
}

/// Eight bytes of 0 or 1 as bits, the first byte lowest.
#[inline(always)]
fn gather(bytes: [u8; 8]) -> u64 {
    u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56
}
