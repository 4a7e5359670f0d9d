//! Hot blocks: the rule for their pairs, and the list of those that are hot now.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize, Serializer};

use super::key::BlockKey;
use crate::doc::DocId;
use crate::hash::SketchId;
use crate::pair_rule::Realm;
use crate::sketch::scaled::features_of;

/// When a block is hot, and which of its members meet then. A function of the present members; the order of
/// their arrival has no influence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HotRule {
    /// A block of more distinct sketches than this is hot; at least 1. Serialized as null where no block is
    /// ever hot.
    #[serde(serialize_with = "unless_never")]
    pub cap: usize,
    /// Number of leaders of a hot block: its first members in the order of [`Self::rank`]. Leaders meet all
    /// members, other members do not meet each other. With 0 no pair meets.
    pub leaders: usize,
    /// The order of members.
    #[serde(skip_serializing_if = "LeadersBy::is_default")]
    pub by: LeadersBy,
}

/// Which members of a hot block are its leaders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeadersBy {
    /// Those with the least sketch ids.
    #[default]
    Id,
    /// The largest texts of [scaled](crate::sketch::Scaled) sketches, which the others may lie in. Texts of
    /// about the same size, within an eighth of an octave, are in the order of ids: so a text that grows
    /// changes its place seldom.
    Size,
}

impl LeadersBy {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn unless_never<S: Serializer>(cap: &usize, serializer: S) -> Result<S::Ok, S::Error> {
    (*cap != HotRule::NEVER.cap).then_some(*cap).serialize(serializer)
}

impl HotRule {
    /// No block is ever hot.
    pub const NEVER: Self = Self { cap: usize::MAX, leaders: 0, by: LeadersBy::Id };

    /// Whether a block can be hot.
    pub fn is_ever(self) -> bool {
        self != Self::NEVER
    }

    /// The place of a sketch with this first word among the members of a block, of which the first are its
    /// leaders.
    pub fn rank(self, id: SketchId, word: u64) -> (u32, SketchId) {
        (self.leading(id, word), id)
    }

    /// The first part of a [rank](Self::rank).
    pub(super) fn leading(self, id: SketchId, word: u64) -> u32 {
        let leading = (id.high() >> 32) as u32;
        match self.by {
            LeadersBy::Id => leading,
            LeadersBy::Size => u32::from(u8::MAX - size_class(word)) << 24 | leading >> 8,
        }
    }
}

impl fmt::Display for HotRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cap, leaders, by } = self;
        let largest = if *by == LeadersBy::Size { "largest " } else { "" };
        if !self.is_ever() {
            return f
                .write_str("is never hot: all of a large one may meet, which takes the square of its size");
        }
        write!(f, "of more than {cap} distinct sketches is hot while it has more: ")?;
        match leaders {
            0 => write!(f, "nobody meets in it"),
            1 => write!(f, "its members meet its {largest}leader only"),
            n => write!(f, "its members meet its {n} {largest}leaders only"),
        }
    }
}

/// The size of a text in eighths of an octave, from the first word of its scaled sketch. Whole numbers only:
/// logarithms differ between machines.
fn size_class(word: u64) -> u8 {
    let features = features_of(word).max(1);
    let octave = features.ilog2();
    let eighth = ((features - (1 << octave)) << 3) >> octave;
    u8::try_from((octave as usize) << 3 | eighth).unwrap_or(u8::MAX)
}

/// A hot block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotBlock {
    /// Number of its sketches.
    pub sketches: usize,
    /// Its first leader.
    pub example: SketchId,
    /// The next one in order.
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
}

/// A block; where sketches have [realms](super::Blocking::realm), those of one realm in it.
pub type HotPlace = (BlockKey, Option<Realm>);

/// A change of a block that is hot, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HotChange {
    /// It became hot, or has another first or second leader.
    Hot(HotBlock),
    /// It has this number of sketches.
    Size(usize),
    /// It is no longer hot.
    Cooled,
}

/// The hot blocks, by place and by size.
#[derive(Clone, Debug, Default)]
pub struct HotBlocks {
    blocks: BTreeMap<HotPlace, HotBlock>,
    by_size: BTreeSet<(Reverse<usize>, HotPlace)>,
}

impl HotBlocks {
    /// Number of blocks that are shown while they change: the [largest](Self::largest).
    pub const SHOWN: usize = 20;

    /// Adds or updates a hot block; names of unchanged sketches are kept. Returns whether the block is new.
    pub fn put(&mut self, key: HotPlace, block: HotBlock) -> bool {
        let before = self.take(&key);
        let is_new = before.is_none();
        let block = match before {
            Some(before) => block.named_as(&before),
            None => block,
        };
        self.by_size.insert((Reverse(block.sketches), key));
        self.blocks.insert(key, block);
        is_new
    }

    /// Sets the number of sketches of a block.
    pub fn resize(&mut self, key: &HotPlace, sketches: usize) {
        if let Some(block) = self.blocks.get_mut(key) {
            self.by_size.remove(&(Reverse(block.sketches), *key));
            block.sketches = sketches;
            self.by_size.insert((Reverse(sketches), *key));
        }
    }

    /// Removes a block that is no longer hot; returns whether it was present.
    pub fn remove(&mut self, key: &HotPlace) -> bool {
        self.take(key).is_some()
    }

    fn take(&mut self, key: &HotPlace) -> Option<HotBlock> {
        let block = self.blocks.remove(key)?;
        self.by_size.remove(&(Reverse(block.sketches), *key));
        Some(block)
    }

    /// The blocks, those of most sketches first.
    pub fn largest(&self) -> impl Iterator<Item = (&HotPlace, &HotBlock)> {
        self.by_size.iter().filter_map(|(_, key)| self.blocks.get_key_value(key))
    }

    /// Sets the document names of the `most` largest blocks. `first_of` returns the first document of a
    /// sketch; the outer `None` means that the sketch is not known here.
    pub fn name(&mut self, most: usize, first_of: impl Fn(SketchId) -> Option<Option<DocId>>) {
        for (_, key) in self.by_size.iter().take(most) {
            let Some(block) = self.blocks.get_mut(key) else { continue };
            let names = [(Some(block.example), &mut block.document), (block.other, &mut block.beside)];
            for (sketch, name) in names {
                if let Some(first) = sketch.and_then(&first_of) {
                    *name = first;
                }
            }
        }
    }
}

impl Deref for HotBlocks {
    type Target = BTreeMap<HotPlace, HotBlock>;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::scaled::packed;

    #[test]
    fn sizes_are_in_eighths_of_an_octave() {
        let class = |features| size_class(packed(9, features));
        let classes = [0, 1, 2, 3, 8, 9, 15, 16, 17, 18, 1 << 31, usize::MAX].map(class);
        assert_eq!(classes, [0, 0, 8, 12, 24, 25, 31, 32, 32, 33, 248, 255]);
        assert!((1..5000).map(class).is_sorted());
        assert!((64..5000).all(|features| class(features * 8 / 7) > class(features) || features % 7 > 0));
    }

    #[test]
    fn members_are_ranked_by_id_or_by_size() {
        let mut ids: Vec<SketchId> = (0..9).map(|n| SketchId::new(0, &[n])).collect();
        ids.sort_unstable();
        let rank = |by, at: usize, features| {
            HotRule { cap: 9, leaders: 1, by }.rank(ids[at], packed(1000 - features, features))
        };
        assert!(rank(LeadersBy::Id, 0, 10) < rank(LeadersBy::Id, 8, 900));
        assert!(rank(LeadersBy::Size, 0, 10) > rank(LeadersBy::Size, 8, 900));
        assert!(rank(LeadersBy::Size, 0, 510) < rank(LeadersBy::Size, 8, 511), "of one class");
    }
}
