//! The key of a block.

use serde::{Deserialize, Serialize};

/// The key of a block: a table (band) and a 40-bit hash within it. Two different contents of a band have the
/// same hash with probability 2^-40; the filter rejects such a pair. Ordered by table, then by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockKey {
    /// Band or table, from 0.
    pub table: u16,
    // The hash in two parts, so that a key takes 8 bytes.
    high: u8,
    low: u32,
}

impl BlockKey {
    /// Bits of a hash.
    pub const HASH_BITS: u32 = 40;

    /// The key of a table and a hash below 2^[`HASH_BITS`](Self::HASH_BITS); higher bits are dropped.
    #[inline]
    pub fn new(table: u16, hash: u64) -> Self {
        let [.., high, a, b, c, d] = hash.to_be_bytes();
        Self { table, high, low: u32::from_be_bytes([a, b, c, d]) }
    }

    /// The hash of the band's components, below 2^[`HASH_BITS`](Self::HASH_BITS).
    #[inline]
    pub fn hash(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_small_and_ordered() {
        assert_eq!(size_of::<BlockKey>(), 8);
        let hash = 0x12_3456_789a;
        let key = BlockKey::new(7, hash);
        assert_eq!((key.table, key.hash()), (7, hash));
        assert_eq!(key, BlockKey::new(7, hash | 3 << BlockKey::HASH_BITS));
        assert!(key < BlockKey::new(7, hash + 1) && key < BlockKey::new(7, 1 << 39));
        assert!(key < BlockKey::new(8, 0));
    }
}
