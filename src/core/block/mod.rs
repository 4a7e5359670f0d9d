//! Blocking: selects the pairs of sketches that are compared at all.
//!
//! In: sketches. Out: their block keys ([`Blocking::keys`]), and a rule for the pairs of a block. Two
//! sketches *meet* in a block if the rule makes them a candidate pair:
//!
//! - in a block of at most `cap` sketches all of them meet;
//! - in a larger, *hot* block two meet only if one of them is a [leader](HotRule);
//! - in a table by Hamming distance no block is hot: two sketches meet if they are [`Near`].

mod banding;
pub mod crowd;
mod curve;
pub mod design;
pub mod hamming;
pub mod index;
mod lists;
mod near;
mod scan;
mod several;
mod shingles;
mod slots;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize, Serializer};

pub use banding::Banding;
pub use near::Near;
pub use scan::Scan;
pub use several::Several;
pub use shingles::Shingles;

use crate::doc::DocId;
use crate::hash::SketchId;
use crate::sketch::SketchRef;

/// The key of a block: a table (band) and a 32-bit hash within it. Two different contents of a band have the
/// same hash with probability 2^-32; the filter rejects such a pair.
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

    /// The rule for hot blocks of a table: which blocks are hot, and which of their members meet.
    fn rule(&self, table: u16) -> HotRule;

    /// The rule of the first table whose blocks may be hot.
    fn hot_rule(&self) -> Option<HotRule> {
        (0..=u16::MAX).take(self.tables()).map(|table| self.rule(table)).find(|rule| rule.is_ever())
    }

    /// The distance rule of a table; `None` if the members of its blocks meet at any distance. Only a table
    /// whose blocks are never hot may have one.
    fn near(&self, _table: u16) -> Option<Near> {
        None
    }

    /// Members up to which a block by distance is scanned member by member, inclusive; a larger block is
    /// searched. This changes the time of a change, not the pairs that meet.
    fn walked(&self) -> usize {
        WALKED
    }

    /// The number of shared blocks from which on two sketches are candidates, inclusive. Above 1 only where
    /// no block is ever hot, so that two sketches meet in all blocks that they share, or in none.
    fn least(&self) -> usize {
        1
    }
}

/// Default of [`Blocking::walked`]. Chosen, not measured: a search costs k + 1 look-ups in ordered sets and
/// their memory in place of one list, a scan of 1,024 members reads 8 KiB of words. Any value gives the same
/// pairs.
const WALKED: usize = 1024;

/// When a block is hot, and which of its members meet then. A function of the present members; the order of
/// their arrival has no influence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HotRule {
    /// A block of more distinct sketches than this is hot; at least 1. Serialized as null where no block is
    /// ever hot.
    #[serde(serialize_with = "unless_never")]
    pub cap: usize,
    /// Number of leaders of a hot block: its members with the least sketch ids. Leaders meet all members,
    /// other members do not meet each other. With 0 no pair meets.
    pub leaders: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn unless_never<S: Serializer>(cap: &usize, serializer: S) -> Result<S::Ok, S::Error> {
    (*cap != HotRule::NEVER.cap).then_some(*cap).serialize(serializer)
}

impl HotRule {
    /// No block is ever hot.
    pub const NEVER: Self = Self { cap: usize::MAX, leaders: 0 };

    /// Whether a block can be hot.
    pub fn is_ever(self) -> bool {
        self != Self::NEVER
    }
}

impl fmt::Display for HotRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cap, leaders } = self;
        if !self.is_ever() {
            return f
                .write_str("is never hot: all of a large one may meet, which takes the square of its size");
        }
        write!(f, "of more than {cap} distinct sketches is hot while it has more: ")?;
        match leaders {
            0 => write!(f, "nobody meets in it"),
            1 => write!(f, "its members meet its leader only"),
            n => write!(f, "its members meet its {n} leaders only"),
        }
    }
}

/// A hot block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotBlock {
    /// Number of its sketches.
    pub sketches: usize,
    /// The sketch with the least id.
    pub example: SketchId,
    /// The sketch with the next larger id.
    pub other: Option<SketchId>,
    /// A document with the sketch `example`. The index has no documents; the store of sketches sets it later.
    pub document: Option<DocId>,
    /// A document with the sketch `other`, set in the same way.
    pub beside: Option<DocId>,
}

impl HotBlock {
    /// Copies the document names of `before` for those sketches that are the same in both.
    pub fn named_as(self, before: &Self) -> Self {
        let of = |same: bool, name: &Option<DocId>| name.clone().filter(|_| same);
        Self {
            document: of(self.example == before.example, &before.document),
            beside: of(self.other == before.other, &before.beside),
            ..self
        }
    }

    fn is_named(&self) -> bool {
        self.document.is_some() && (self.other.is_none() || self.beside.is_some())
    }
}

/// The hot blocks, and which of them lack a document name.
#[derive(Clone, Debug, Default)]
pub struct HotBlocks {
    blocks: BTreeMap<BlockKey, HotBlock>,
    unnamed: BTreeSet<BlockKey>,
}

impl HotBlocks {
    /// Adds or updates a hot block; names of unchanged sketches are kept. Returns whether the block is new.
    pub fn put(&mut self, key: BlockKey, block: HotBlock) -> bool {
        let before = self.blocks.get(&key);
        let is_new = before.is_none();
        let block = match before {
            Some(before) => block.named_as(before),
            None => block,
        };
        if block.is_named() {
            self.unnamed.remove(&key);
        } else {
            self.unnamed.insert(key);
        }
        self.blocks.insert(key, block);
        is_new
    }

    /// Removes a block that is no longer hot; returns whether it was present.
    pub fn remove(&mut self, key: &BlockKey) -> bool {
        self.unnamed.remove(key);
        self.blocks.remove(key).is_some()
    }

    /// Sets document names: of all blocks if `all`, otherwise of those that lack one. `first_of` returns the
    /// first document of a sketch; the outer `None` means that the sketch is not known here.
    pub fn name(&mut self, all: bool, first_of: impl Fn(SketchId) -> Option<Option<DocId>>) {
        let name = |block: &mut HotBlock| {
            let names = [(Some(block.example), &mut block.document), (block.other, &mut block.beside)];
            for (sketch, name) in names {
                if (all || name.is_none())
                    && let Some(first) = sketch.and_then(&first_of)
                {
                    *name = first;
                }
            }
            block.is_named()
        };
        if all {
            let unnamed = self.blocks.iter_mut().filter_map(|(key, block)| (!name(block)).then_some(*key));
            self.unnamed = unnamed.collect();
        } else {
            self.unnamed.retain(|key| self.blocks.get_mut(key).is_some_and(|block| !name(block)));
        }
    }
}

impl Deref for HotBlocks {
    type Target = BTreeMap<BlockKey, HotBlock>;

    fn deref(&self) -> &Self::Target {
        &self.blocks
    }
}

/// Treatment of hot blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HotPolicy {
    /// Its members meet its leaders.
    #[default]
    Leaders,
    /// No pair of its members meets.
    Skip,
    /// No block is hot: all members of a block meet, at any cost; in tables by distance, those that may be
    /// within the distance.
    Never,
}

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
    /// Number of documents that blocks are planned for, at least 1; default a million.
    pub documents: u64,
}

impl BlockingParams {
    /// Default of `documents`.
    pub const DOCUMENTS: u64 = 1_000_000;

    /// The rule for hot blocks that `hot`, `cap` and `leaders` select.
    pub fn rule(&self) -> HotRule {
        match self.hot {
            HotPolicy::Leaders => HotRule { cap: self.cap, leaders: self.leaders },
            HotPolicy::Skip => HotRule { cap: self.cap, leaders: 0 },
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
            documents: Self::DOCUMENTS,
        }
    }
}
