//! Shingles: hashes of token windows, and of character windows.
//!
//! Token hashes t, in text order -> features. The feature of w tokens is `mix(t1 C^(w-1) + t2 C^(w-2) + ... +
//! tw)` modulo 2^64: it depends on the order, one multiplication and one subtraction roll it on by a token,
//! and for w = 1 it is `mix(t)`. A window of characters is one token in this sense. C is 5 modulo 8, so that
//! C - 1 and C^2 - 1 have few factors of two: tokens that change places d = 1 or 2 apart collide by chance
//! with 2^-62 or 2^-61, no more.
//!
//! Where tokens may be parts of words ([`Parts`]) windows have any number of tokens, and the same formula: of
//! words alone they are the windows above. For d = 512, more than the tokens of any window, the chance is
//! 2^-53.
//!
//! The roller starts with zeros, so the values it gives before w tokens are there are those of the shorter
//! windows from the first token on: of a text of fewer than w tokens the last value is its one shingle, of
//! others the first w - 1 are dropped.

use super::tokenize::hash_at;
use super::unicode::{LEAST, WORD};
use crate::hash::{self, mix};

/// C.
const FACTOR: u64 = hash::PI[5];
const _: () = assert!(FACTOR % 8 == 5);

/// Rolls over token hashes.
pub(super) trait Roll {
    /// The feature of the window that ends with this token.
    fn next(&mut self, token: u64) -> u64;
}

/// A short window, its size known to the compiler.
pub(super) struct Short<const W: usize>([u64; W]);

impl<const W: usize> Short<W> {
    pub(super) fn new() -> Self {
        Self([0; W])
    }
}

impl<const W: usize> Roll for Short<W> {
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
pub(super) struct Long {
    /// The last w tokens, the oldest at `at`.
    ring: Box<[u64]>,
    at: usize,
    sum: u64,
    /// C^w.
    power: u64,
}

impl Long {
    /// A window of `size` tokens, 1 or more.
    pub(super) fn new(size: usize) -> Self {
        let power = (0..size).fold(1, |power: u64, _| power.wrapping_mul(FACTOR));
        Self { ring: vec![0; size].into(), at: 0, sum: 0, power }
    }
}

impl Roll for Long {
    #[inline(always)]
    fn next(&mut self, token: u64) -> u64 {
        let oldest = std::mem::replace(&mut self.ring[self.at], token);
        self.at = if self.at + 1 == self.ring.len() { 0 } else { self.at + 1 };
        let gone = oldest.wrapping_mul(self.power);
        self.sum = self.sum.wrapping_mul(FACTOR).wrapping_add(token).wrapping_sub(gone);
        mix(self.sum)
    }
}

/// Windows that begin with each token and are the shortest to weigh so much; a token from which none does
/// begins no window.
#[derive(Debug)]
pub(super) struct Parts {
    /// What a window weighs at least, in 24ths of a word.
    wanted: usize,
    /// C^i for each place i of a window.
    powers: Box<[u64]>,
    /// The tokens since the start of the next window, and what each weighs, at their numbers modulo the size,
    /// a power of two.
    ring: Box<[(u64, usize)]>,
    /// The number of the first of them, and of the next token.
    first: usize,
    end: usize,
    /// What they weigh, less than is wanted between two calls.
    weight: usize,
    sum: u64,
}

impl Parts {
    /// Windows of `size` words, 1 or more.
    pub(super) fn new(size: usize) -> Self {
        let wanted = size * WORD;
        // A window without its last token weighs less than is wanted.
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

    /// Forgets the text before.
    pub(super) fn clear(&mut self) {
        (self.first, self.end, self.weight, self.sum) = (0, 0, 0, 0);
    }

    /// Takes the next token, and gives the features of the windows that end with it.
    #[inline(always)]
    pub(super) fn next(&mut self, token: u64, weight: usize, mut feature: impl FnMut(u64)) {
        let last = self.ring.len() - 1;
        self.ring[self.end & last] = (token, weight);
        self.end += 1;
        self.weight += weight;
        self.sum = self.sum.wrapping_mul(FACTOR).wrapping_add(token);
        while self.weight >= self.wanted {
            feature(mix(self.sum));
            let (gone, gone_weight) = self.ring[self.first & last];
            self.first += 1;
            self.weight -= gone_weight;
            self.sum = self.sum.wrapping_sub(gone.wrapping_mul(self.powers[self.end - self.first]));
        }
    }

    /// The feature of all tokens, if there are any and no window has been given.
    pub(super) fn whole(&self) -> Option<u64> {
        (self.first == 0 && self.end > 0).then(|| mix(self.sum))
    }
}

/// Appends the features of the windows of `size` characters (1 or more) of the first `len` bytes of `text`,
/// which is UTF-8, not empty, and has [`SLACK`](super::tokenize::SLACK) bytes after it. A shorter text is one
/// window.
pub(super) fn chars(text: &[u8], len: usize, size: usize, features: &mut Vec<u64>) {
    if text.is_ascii() {
        // No load between one window and the next: a quarter faster (265 against 210 MB/s, k = 5).
        windows(text, len, size, |_| 1, features);
    } else {
        windows(text, len, size, width, features);
    }
}

#[inline(always)]
fn windows(text: &[u8], len: usize, size: usize, width: impl Fn(u8) -> usize, features: &mut Vec<u64>) {
    let after = |at: usize| at + width(text[at]);
    let (mut first, mut end) = (0, 0);
    for _ in 0..size {
        end = if end < len { after(end) } else { end };
    }
    loop {
        features.push(mix(hash_at(text, first, end)));
        if end == len {
            return;
        }
        (first, end) = (after(first), after(end));
    }
}

/// The bytes of a character, by its first.
#[inline(always)]
fn width(first: u8) -> usize {
    1 + usize::from(first >= 0xc0) + usize::from(first >= 0xe0) + usize::from(first >= 0xf0)
}
