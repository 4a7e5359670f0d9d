//! Hot blocks: the rule for their pairs, and the list of those that are hot now.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize, Serializer};

use super::key::BlockKey;
use crate::doc::DocId;
use crate::hash::SketchId;

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
