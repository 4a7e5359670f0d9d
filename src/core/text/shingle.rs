//! Hashes of token windows and of character windows.
//!
//! Token hashes t, in text order -> features. The feature of w tokens is `mix(t1 C^(w-1) + t2 C^(w-2) + ... +
//! tw)` modulo 2^64. It depends on the order of the tokens, one multiplication and one subtraction roll it on
//! by a token, and for w = 1 it is `mix(t)`. A window of characters is hashed like one token.
//!
//! C is 5 modulo 8, so that C - 1 and C^2 - 1 have few factors of two: two tokens at distance d = 1 or 2 that
//! are swapped collide with probability 2^-62 or 2^-61 only.
//!
//! Where tokens may be parts of words ([`WeightedRoll`]), windows have any number of tokens, and the same
//! formula. For whole words these are the windows above. For d = 512, more than the tokens of any window, the
//! probability is 2^-53.
//!
//! The roller starts with zeros, so its first w - 1 values are those of the shorter windows at the start of
//! the text. If a text has fewer than w tokens, its last value is its one shingle; otherwise the first w - 1
//! values are dropped.

use super::tokens::tokenize::hash_at;
use super::tokens::unicode::{LEAST, WORD};
use crate::hash::{self, TokenHash, mix};

/// C of the formula.
const FACTOR: u64 = hash::PI[5];
const _: () = assert!(FACTOR % 8 == 5);

/// A rolling hash over tokens.
pub(super) trait Roll {
    /// The feature of the window that ends with this token.
    fn next(&mut self, token: u64) -> u64;
}

/// A short window of a size known at compile time.
pub(super) struct ShortRoll<const W: usize>([u64; W]);

impl<const W: usize> ShortRoll<W> {
    pub(super) fn new() -> Self {
        Self([0; W])
    }
}

impl<const W: usize> Roll for ShortRoll<W> {
    #[inline(always)]
    fn next(&mut self, token: u64) -> u64 {
        for i in (1..W).rev() {
            self.0[i] = self.0[i - 1].wrapping_mul(FACTOR).wrapping_add(token);
        }
        self.0[0] = token;
        mix(self.0[W - 1])
    }
}

/// A window of any size.
pub(super) struct LongRoll {
    /// The last w tokens; the oldest is at `at`.
    ring: Box<[u64]>,
    at: usize,
    sum: u64,
    /// C^w.
    power: u64,
}

impl LongRoll {
    /// A window of `size` tokens, 1 or more.
    pub(super) fn new(size: usize) -> Self {
        let power = (0..size).fold(1, |power: u64, _| power.wrapping_mul(FACTOR));
        Self { ring: vec![0; size].into(), at: 0, sum: 0, power }
    }
}

impl Roll for LongRoll {
    #[inline(always)]
    fn next(&mut self, token: u64) -> u64 {
        let oldest = std::mem::replace(&mut self.ring[self.at], token);
        self.at = if self.at + 1 == self.ring.len() { 0 } else { self.at + 1 };
        let gone = oldest.wrapping_mul(self.power);
        self.sum = self.sum.wrapping_mul(FACTOR).wrapping_add(token).wrapping_sub(gone);
        mix(self.sum)
    }
}

/// Windows measured by weight: at each token begins the shortest window with at least the wanted weight, if
/// the text is long enough.
#[derive(Debug)]
pub(super) struct WeightedRoll {
    /// Minimum weight of a window, in 24ths of a word.
    wanted: usize,
    /// C^i for each position i of a window.
    powers: Box<[u64]>,
    /// The tokens since the start of the next window with their weights. Token n is at index n modulo the
    /// length, which is a power of two.
    ring: Box<[(u64, usize)]>,
    /// The number of the first of these tokens (`first`), and of the next token (`end`).
    first: usize,
    end: usize,
    /// Their total weight; below `wanted` between two calls.
    weight: usize,
    sum: u64,
}

impl WeightedRoll {
    /// Windows of `size` words, 1 or more.
    pub(super) fn new(size: usize) -> Self {
        let wanted = size * WORD;
        // A window without its last token weighs less than `wanted`.
        let most = wanted / LEAST;
        let powers = std::iter::successors(Some(1), |power: &u64| Some(power.wrapping_mul(FACTOR)));
        Self {
            wanted,
            powers: powers.take(most).collect(),
            ring: vec![(0, 0); most.next_power_of_two()].into(),
            first: 0,
            end: 0,
            weight: 0,
            sum: 0,
        }
    }

    /// Starts a new text.
    pub(super) fn clear(&mut self) {
        (self.first, self.end, self.weight, self.sum) = (0, 0, 0, 0);
    }

    /// Adds the next token, and calls `feature` with the features of the windows that end with it, and the
    /// weights of their first tokens.
    #[inline(always)]
    pub(super) fn next(&mut self, token: u64, weight: usize, mut feature: impl FnMut(u64, usize)) {
        let last = self.ring.len() - 1;
        self.ring[self.end & last] = (token, weight);
        self.end += 1;
        self.weight += weight;
        self.sum = self.sum.wrapping_mul(FACTOR).wrapping_add(token);
        while self.weight >= self.wanted {
            let (gone, gone_weight) = self.ring[self.first & last];
            feature(mix(self.sum), gone_weight);
            self.first += 1;
            self.weight -= gone_weight;
            self.sum = self.sum.wrapping_sub(gone.wrapping_mul(self.powers[self.end - self.first]));
        }
    }

    /// The feature of all tokens, if there are any and no window was completed.
    pub(super) fn whole(&self) -> Option<u64> {
        (self.first == 0 && self.end > 0).then(|| mix(self.sum))
    }
}

/// Appends the features of the windows of `size` characters (1 or more) of the first `len` bytes of `text`.
/// The text is UTF-8, not empty, and followed by [`SLACK`](super::tokens::tokenize::SLACK) bytes. A shorter
/// text is one window.
pub(super) fn chars(hash: TokenHash, text: &[u8], len: usize, size: usize, features: &mut Vec<u64>) {
    if text.is_ascii() {
        // One window does not wait for a load of the window before: a quarter faster (265 against 210 MB/s, k
        // = 5).
        windows(hash, text, len, size, |_| 1, features);
    } else {
        windows(hash, text, len, size, width, features);
    }
}

#[inline(always)]
fn windows(
    hash: TokenHash,
    text: &[u8],
    len: usize,
    size: usize,
    width: impl Fn(u8) -> usize,
    features: &mut Vec<u64>,
) {
    let after = |at: usize| at + width(text[at]);
    let (mut first, mut end) = (0, 0);
    for _ in 0..size {
        end = if end < len { after(end) } else { end };
    }
    loop {
        features.push(mix(hash_at(hash, text, first, end)));
        if end == len {
            return;
        }
        (first, end) = (after(first), after(end));
    }
}

/// The number of bytes of a UTF-8 character, by its first byte.
#[inline(always)]
fn width(first: u8) -> usize {
    1 + usize::from(first >= 0xc0) + usize::from(first >= 0xe0) + usize::from(first >= 0xf0)
}
