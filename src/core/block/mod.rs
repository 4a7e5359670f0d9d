//! Blocking: which pairs of sketches are compared at all. Two sketches that share a block are candidates,
//! unless the block is *hot*: then one of them has to be a [leader](HotRule) of it. Tables by distance have
//! no hot block: two of a block meet that are [`Near`].

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

/// What shares a block: a table (band) and a 32-bit hash within it. Two different contents of a band may fall
/// into one block (with probability 2^-32); the filter tells them apart.
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

    /// Which blocks of a table are hot, and who meets in them.
    fn rule(&self, table: u16) -> HotRule;

    /// The rule of the first table whose blocks may be hot.
    fn hot_rule(&self) -> Option<HotRule> {
        (0..=u16::MAX).take(self.tables()).map(|table| self.rule(table)).find(|rule| rule.is_ever())
    }

    /// Which sketches meet in a block of a table that is never hot, if that depends on how near they are.
    fn near(&self, _table: u16) -> Option<Near> {
        None
    }

    /// Most members of a block that is walked, where a larger one can be searched: of the time that it takes,
    /// not of what meets.
    fn walked(&self) -> usize {
        WALKED
    }

    /// Blocks that two sketches share at least before they are candidates; more than 1 only where no block is
    /// ever hot, so that two sketches meet in all that they share, or in none.
    fn least(&self) -> usize {
        1
    }
}

/// Members up to which a walk through a block is faster than a search, which takes its steps in any case.
const WALKED: usize = 1024;

/// When a block is hot, and who meets whom in it: a function of its present members, with no regard to how
/// they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HotRule {
    /// A block of more distinct sketches is hot; at least 1. Serialized as nothing where no block is.
    #[serde(serialize_with = "unless_never")]
    pub cap: usize,
    /// The leaders of a hot block are its members with the least sketch ids, so many of them. They meet all
    /// members, others do not meet each other. With 0 nobody meets.
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
    /// Its sketches.
    pub sketches: usize,
    /// The one with the least id.
    pub example: SketchId,
    /// The one with the next id.
    pub other: Option<SketchId>,
    /// A document with that sketch, once it has been said by what knows members: the index does not.
    pub document: Option<DocId>,
    /// A document with the other sketch, in the same way.
    pub beside: Option<DocId>,
}

impl HotBlock {
    /// Takes over the names that the block has had, as far as they are of the same sketches.
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

/// The hot blocks, and which of them lack a name.
#[derive(Clone, Debug, Default)]
pub struct HotBlocks {
    blocks: BTreeMap<BlockKey, HotBlock>,
    unnamed: BTreeSet<BlockKey>,
}

impl HotBlocks {
    /// A block is hot, and is as this: it keeps the names that it has had. Whether it was not hot before.
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

    /// A block is hot no more; whether it was.
    pub fn remove(&mut self, key: &BlockKey) -> bool {
        self.unnamed.remove(key);
        self.blocks.remove(key).is_some()
    }

    /// Names all blocks anew, or looks only at those that lack a name. `first_of` knows of some sketches:
    /// their first document, if there is one.
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

/// What is done about a hot block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HotPolicy {
    /// Its members meet its leaders.
    #[default]
    Leaders,
    /// Nobody meets.
    Skip,
    /// No block is hot: all of a block meet, whatever it costs; where a distance is promised, those that may
    /// be within it.
    Never,
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
    /// The probability with which a pair at the threshold shares a block, at least; above 0 and below 1.
    /// Default 0.99 unless bands and rows are both given, which then stand as they are.
    pub recall: Option<f64>,
    /// A block of more distinct sketches is hot; at least 2, default 96.
    pub cap: usize,
    /// What is done about a hot block; default `leaders`, and `never` for the kinds by distance.
    pub hot: HotPolicy,
    /// Leaders of a hot block, 1 to 64 inclusive; default 2.
    pub leaders: usize,
    /// Documents that blocks are planned for, at least 1; default a million.
    pub documents: u64,
}

impl BlockingParams {
    /// Documents that blocks are planned for where nothing is said.
    pub const DOCUMENTS: u64 = 1_000_000;

    /// Which blocks are hot, and who meets in them.
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
