//! Blocking: which pairs of sketches are compared at all. Two sketches that share a *live* block are candidates.

pub mod index;

use std::fmt;

use serde::{Deserialize, Serialize};

/// What shares a block: a table (band) and a 32-bit hash within it. Two different contents of a band may fall into one
/// block (with probability 2^-32); the filter tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockKey {
    /// Band or table, from 0.
    pub table: u16,
    /// Hash of the band's components.
    pub hash: u32,
}

/// Assigns sketches to blocks.
///
/// Contract: a pure function of the sketch's words; each table at most once per sketch.
pub trait Blocking: Send + Sync + fmt::Debug {
    /// Appends the block keys of a sketch.
    fn keys(&self, words: &[u64], out: &mut Vec<BlockKey>);

    /// Tables in use: keys have `table < tables()`.
    fn tables(&self) -> usize;

    /// Most sketches that a live block holds, inclusive; a block with more is dead while it has more.
    fn cap(&self) -> usize;
}
