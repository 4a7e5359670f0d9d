//! The stable hash functions. All values are part of a [scheme](crate::sketch::Scheme): they are equal on
//! every machine and in every release, and tested by golden vectors.
//!
//! Short keys are hashed by *folded multiplication* (the 128-bit product of two 64-bit words, its halves
//! xored), one multiplication for 16 bytes; whole contents by XXH3-128.
//!
//! References: Y. Wang, *wyhash* (2019), for the folded multiplication; Y. Collet, *xxHash* (XXH3); G.
//! Steele, D. Lea and C. Flood, *Fast splittable pseudorandom number generators* (OOPSLA 2014), for the
//! finaliser of [`mix`].

use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// 64-bit constants with about half of their bits set: the fraction of pi, as in Blowfish's key schedule.
pub const PI: [u64; 8] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7345,
    0xa409_3822_299f_31d1,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
    0xbe54_66cf_34e9_0c6d,
    0xc0ac_29b7_c97c_50dd,
    0x3f84_d5b5_b547_0917,
];

/// The halves of the 128-bit product, xored.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
pub fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// A bijection of 64-bit words whose output bits all depend on all input bits (the splitmix64 finaliser).
#[inline(always)]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One step of [`token`], for up to 16 bytes: `a` and `b` are little-endian and padded with zeros.
#[inline(always)]
pub fn token_step(state: u64, a: u64, b: u64, len: usize) -> u64 {
    fold(a ^ PI[0] ^ state, b ^ PI[1] ^ (len as u64))
}

/// Hash of a token's bytes: [`token_step`] over its 16-byte pieces; `len` is the length of the whole token.
pub fn token(bytes: &[u8]) -> u64 {
    let half = |piece: &[u8]| {
        let mut word = [0; 8];
        word[..piece.len()].copy_from_slice(piece);
        u64::from_le_bytes(word)
    };
    let mut state = 0;
    let mut rest = bytes;
    loop {
        let (piece, tail) = rest.split_at(rest.len().min(16));
        let (a, b) = piece.split_at(piece.len().min(8));
        state = token_step(state, half(a), half(b), bytes.len());
        rest = tail;
        if rest.is_empty() {
            return state;
        }
    }
}

/// Hash of bytes, for routing and for look-ups by id.
#[inline]
pub fn bytes(seed: u64, data: &[u8]) -> u64 {
    xxh3_64_with_seed(data, seed)
}

/// Hash builder for tables whose keys are hashes already: 64-bit words are used unchanged.
pub type BuildIdentityHasher = BuildHasherDefault<IdentityHasher>;

/// The hasher of [`BuildIdentityHasher`].
#[derive(Debug, Default)]
pub struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, data: &[u8]) {
        self.0 = bytes(self.0, data);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The identity of a sketch: a 128-bit hash of the scheme's fingerprint and of all compared data: its words,
/// then the features where they are stored. Sketches with equal ids are the same sketch, so the comparison of
/// two sketches is a pure function of their ids.
///
/// Among n distinct sketches the probability of an accidental collision is about n²/2^129 (10^9 sketches:
/// 2e-21).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SketchId {
    // Two words in place of a u128, whose alignment would pad every record that contains it.
    high: u64,
    low: u64,
}

impl SketchId {
    /// An id that stands for no sketch, the default; a sketch has it with probability 2^-128.
    pub const NONE: Self = Self { high: 0, low: 0 };

    /// The id of a sketch with these compared words, under a scheme's fingerprint.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are meant")]
    pub fn new(scheme: u64, words: &[u64]) -> Self {
        let hash = xxh3_128_with_seed(bytemuck::cast_slice(words), scheme);
        Self { high: (hash >> 64) as u64, low: hash as u64 }
    }

    /// The id as words, those of [`from_words`](Self::from_words).
    pub fn to_words(self) -> [u64; 2] {
        [self.high, self.low]
    }

    /// The id of [words](Self::to_words).
    pub fn from_words([high, low]: [u64; 2]) -> Self {
        Self { high, low }
    }

    /// The 64 bits by which ids are ordered first.
    #[inline(always)]
    pub fn high(self) -> u64 {
        self.high
    }

    /// 64 well-mixed bits, for routing and for hash tables.
    #[inline(always)]
    pub fn low(self) -> u64 {
        self.low
    }
}

impl fmt::Debug for SketchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.high, self.low)
    }
}

impl fmt::Display for SketchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
