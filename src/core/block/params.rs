//! The table `[blocking]` of a pipeline.

use serde::{Deserialize, Serialize};

use super::hot::{HotPolicy, HotRule, LeadersBy};

/// The kinds of blocking.
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
    /// A block for each shingle of a document of the reference, in which all other documents are looked up.
    Reference,
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
    /// Least probability with which a pair at the threshold shares a block; above 0 and below 1. Default
    /// 0.99; no requirement by default if bands and rows are both given.
    pub recall: Option<f64>,
    /// A block of more distinct sketches than this is hot; at least 2, default 96.
    pub cap: usize,
    /// Treatment of hot blocks; default `leaders`, and `never` for the kinds by distance.
    pub hot: HotPolicy,
    /// Leaders of a hot block, 1 to 64 inclusive; default 2.
    pub leaders: usize,
    /// Which members are leaders; default `id`.
    pub leaders_by: LeadersBy,
    /// Number of documents that blocks are planned for, at least 1; default a million.
    pub documents: u64,
}

impl BlockingParams {
    /// Default of `documents`.
    pub const DOCUMENTS: u64 = 1_000_000;

    /// The rule for hot blocks that `hot`, `cap` and `leaders` select.
    pub fn rule(&self) -> HotRule {
        match self.hot {
            HotPolicy::Leaders => HotRule { cap: self.cap, leaders: self.leaders, by: self.leaders_by },
            HotPolicy::Skip => HotRule { cap: self.cap, leaders: 0, by: LeadersBy::Id },
            HotPolicy::Never => HotRule::NEVER,
        }
    }
}

impl Default for BlockingParams {
    fn default() -> Self {
        Self {
            kind: BlockingKind::Banding,
            bands: None,
            rows: None,
            recall: None,
            cap: 96,
            hot: HotPolicy::Leaders,
            leaders: 2,
            leaders_by: LeadersBy::Id,
            documents: Self::DOCUMENTS,
        }
    }
}
