//! No blocking: every sketch in one block, which is never hot. All pairs are candidates.

use super::blocking::Blocking;
use super::hot::HotRule;
use super::key::BlockKey;
use crate::sketch::SketchRef;

/// Every pair is a candidate: quadratic, for small corpora and as an oracle.
#[derive(Clone, Copy, Debug)]
pub struct Scan;

impl Blocking for Scan {
    fn keys(&self, _sketch: SketchRef<'_>, out: &mut Vec<BlockKey>) {
        out.push(BlockKey::new(0, 0));
    }

    fn tables(&self) -> usize {
        1
    }

    fn rule(&self, _table: u16) -> HotRule {
        HotRule::NEVER
    }
}
