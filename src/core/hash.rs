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

use serde::{Deserialize, Serialize, Serializer};
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

/// Hash of a token's bytes: [`Self::step`] over its 16-byte pieces.
///
/// Whoever knows its keys can write different tokens of one hash, so texts with nothing in common that have
/// equal features. Keys that are [secret](Self::keyed) prevent it; without them a token hash is a function
/// that everybody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenHash {
    keys: [u64; 2],
    /// Names the keys without showing them; 0 for the known ones.
    name: u64,
}

impl Default for TokenHash {
    /// That of known keys.
    fn default() -> Self {
        Self { keys: [PI[0], PI[1]], name: 0 }
    }
}

impl TokenHash {
    /// The hash under secret keys, 128 random bits, with a name for them from which they cannot be derived.
    pub fn keyed(keys: [u64; 2], name: u64) -> Self {
        Self { keys, name }
    }

    /// The name of secret keys.
    pub fn name(self) -> Option<u64> {
        (self.name != 0).then_some(self.name)
    }

    /// One step of [`Self::token`], for up to 16 bytes: `a` and `b` are little-endian and padded with zeros;
    /// `len` is the length of the whole token.
    #[inline(always)]
    pub fn step(self, state: u64, a: u64, b: u64, len: usize) -> u64 {
        let (x, y) = (a ^ self.keys[0] ^ state, b ^ self.keys[1] ^ (len as u64));
        if x == 0 || y == 0 {
            // The product would not depend on the other half.
            return self.step_of_zero(x, y);
        }
        fold(x, y)
    }

    #[cold]
    fn step_of_zero(self, x: u64, y: u64) -> u64 {
        mix(mix(x ^ self.keys[0]) ^ mix(y ^ self.keys[1]).rotate_left(32))
    }

    /// The hash of a token.
    pub fn token(self, bytes: &[u8]) -> u64 {
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
            state = self.step(state, half(a), half(b), bytes.len());
            rest = tail;
            if rest.is_empty() {
                return state;
            }
        }
    }
}

/// The hash of a token under known keys.
pub fn token(bytes: &[u8]) -> u64 {
    TokenHash::default().token(bytes)
}

/// As its name.
impl Serialize for TokenHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{:016x}", self.name))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A half that cancels its key makes no product of zero: tokens with that half differ by the other.
    #[test]
    fn no_half_of_a_token_hides_the_other() {
        for hash in [TokenHash::default(), TokenHash::keyed([3, 5], 7)] {
            let [x, y] = hash.keys;
            let mut seen: Vec<u64> =
                (0..1000).flat_map(|b| [hash.step(0, x, b, 16), hash.step(x, 0, b, 16)]).collect();
            seen.extend((1..1000).flat_map(|a| [hash.step(0, a, y ^ 16, 16), hash.step(1, a, y ^ 16, 16)]));
            let all = seen.len();
            seen.sort_unstable();
            seen.dedup();
            // `step(0, x, b)` and `step(x, 0, b)` are one value, so are `step(1, a)` and `step(0, a ^ 1)`.
            assert!((all / 2 - 2..=all / 2 + 2).contains(&seen.len()), "{} of {all}", seen.len());
            assert!(!seen.contains(&0));
        }
    }

    /// Under other keys each token has another hash, and known keys are those of `token`.
    #[test]
    fn keys_decide() {
        let keyed = TokenHash::keyed([1, 2], 3);
        assert_eq!((TokenHash::default().name(), keyed.name()), (None, Some(3)));
        for word in ["", "a", "sixteen bytes ..", "more than sixteen bytes of it"] {
            assert_eq!(TokenHash::default().token(word.as_bytes()), token(word.as_bytes()));
            assert_ne!(keyed.token(word.as_bytes()), token(word.as_bytes()));
        }
    }
}
