//! The interface of a blocking.

use std::fmt;

use super::hot::HotRule;
use super::key::BlockKey;
use super::near::NearRule;
use crate::pair_rule::Realm;
use crate::sketch::SketchRef;

/// Default of [`Blocking::scan_limit`]. Chosen, not measured: a search costs k + 1 look-ups in ordered sets
/// and their memory in place of one list, a scan of 1,024 members reads 8 KiB of words. Any value gives the
/// same pairs.
pub(super) const SCAN_LIMIT: usize = 1024;

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
    fn near(&self, _table: u16) -> Option<NearRule> {
        None
    }

    /// Members up to which a block by distance is scanned member by member, inclusive; a larger block is
    /// searched. This changes the time of a change, not the pairs that meet.
    fn scan_limit(&self) -> usize {
        SCAN_LIMIT
    }

    /// Whether a sketch enters its blocks. One that does not is looked up in them: it meets all members, and
    /// is met by none that enters later. Then members do not meet each other.
    fn enters(&self, _sketch: SketchRef<'_>) -> bool {
        true
    }

    /// Whether there are sketches that do not [enter](Self::enters) their blocks. No block is hot then.
    fn is_one_sided(&self) -> bool {
        false
    }

    /// The realm of a sketch: sketches of different realms do not meet, and which sketches of a block meet is
    /// a function of those of their realm alone. `None` for a text without fields, which meets sketches of
    /// all realms, of each as if it were of that one.
    fn realm(&self, _sketch: SketchRef<'_>) -> Option<Realm> {
        None
    }

    /// Whether the sketches of documents have realms.
    fn has_realms(&self) -> bool {
        false
    }

    /// The number of shared blocks from which on two sketches are candidates, inclusive. Above 1 only where
    /// no block is ever hot, so that two sketches meet in all blocks that they share, or in none.
    fn least(&self) -> usize {
        1
    }
}
