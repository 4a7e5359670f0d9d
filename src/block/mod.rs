//! Blocking: which pairs of sketches are compared at all. Two sketches that share a *live* block are candidates.

mod banding;
pub mod design;
pub mod hamming;
pub mod index;
mod scan;
mod shingles;
mod table;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use banding::Banding;
pub use scan::Scan;
pub use shingles::Shingles;

use crate::sketch::SketchRef;

/// What shares a block: a table (band) and a 32-bit hash within it. Two different contents of a band may fall into
/// one block (with probability 2^-32); the filter tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockKey {
    /// Band or table, from 0.
    pub table: u16,
    /// Hash of the band's components.
    pub hash: u32,
}

/// Assigns sketches to blocks.
///
/// Contract: a pure function of the sketch; the keys of a sketch are distinct.
pub trait Blocking: Send + Sync + fmt::Debug {
    /// Appends the block keys of a sketch.
    fn keys(&self, sketch: SketchRef<'_>, out: &mut Vec<BlockKey>);

    /// Tables in use: keys have `table < tables()`.
    fn tables(&self) -> usize;

    /// Most sketches that a live block holds, inclusive; a block with more is dead while it has more.
    fn cap(&self) -> usize;
}

/// The blockings that can be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockingKind {
    /// Bands of rows: LSH.
    #[default]
    Banding,
    /// Every pair: for small corpora, and as an oracle.
    Scan,
    /// Permuted tables, by Hamming distance.
    Permuted,
    /// Multi-index hashing, by Hamming distance.
    #[serde(rename = "multi-index")]
    MultiIndex,
    /// alg.H: groups of bits, by Hamming distance.
    Groups,
    /// alg.G: choices of groups, by Hamming distance.
    Conjunctions,
    /// A block for each shingle: for small corpora, and as a judge of the others.
    Shingles,
}

/// The table `[blocking]` of a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlockingParams {
    /// Which blocking; default `banding`.
    pub kind: BlockingKind,
    /// Bands, 1 to K inclusive; derived from `recall` by default.
    pub bands: Option<usize>,
    /// Rows of a band, 1 to 64 inclusive; derived from `recall` by default.
    pub rows: Option<usize>,
    /// The probability with which a pair at the threshold shares a block, at least; above 0 and below 1. Default 0.99
    /// unless bands and rows are both given, which then stand as they are.
    pub recall: Option<f64>,
    /// Most sketches that a live block holds, inclusive, at least 2; default 512.
    pub cap: usize,
}

impl Default for BlockingParams {
    fn default() -> Self {
        Self { kind: BlockingKind::Banding, bands: None, rows: None, recall: None, cap: 512 }
    }
}
