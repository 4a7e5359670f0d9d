//! The key of a block.

use serde::{Deserialize, Serialize};

/// The key of a block: a table (band) and a 32-bit hash within it. Two different contents of a band have the
/// same hash with probability 2^-32; the filter rejects such a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockKey {
    /// Band or table, from 0.
    pub table: u16,
    /// Hash of the band's components.
    pub hash: u32,
}
