//! A snapshot of all pairs, read in steps while the pairs change, without a copy of them.
//!
//! A walk passes through the pairs in order, with a cursor. Each step locks the view once:
//!
//! 1. Of the deltas applied since the last step, it returns those of pairs at or before the cursor.
//! 2. It then returns the next pairs after the cursor as they are now, and moves the cursor after them; after
//!    the last pair, to the end.
//!
//! **Invariant: after a step the reader holds the present pairs at or before the cursor.** Before the first
//! step both sets are empty. Let the invariant hold for the state S at the end of a step, and let S' be the
//! state at the next one.
//!
//! - S' is S with the deltas in between. A delta changes one pair, so restricted to the pairs at or before
//!   the cursor, S' is S with the deltas of those pairs: part 1.
//! - Part 2 adds the pairs of S' in the next range, of which the reader holds none.
//! - After the step that moves the cursor to the end, the reader holds all of S', and the deltas after it
//!   follow.
//!
//! So no pair is lost or doubled. Part 2 returns each pair at most once; the work of part 1 is bounded by the
//! number of deltas. If the ring no longer holds deltas that part 1 needs, the reader was too slow: the walk
//! restarts.
//!
//! Reference: A. Andreakis, I. Papapanagiotou, *DBLog: A Watermark Based Change-Data-Capture Framework*
//! (2020), section 4: chunks between watermarks in one log. There the log's events replace the chunk's rows;
//! here both are read under one lock.

use std::sync::Arc;

use super::KnownPair;
use super::pairs::{PairMap, PairQuery};
use super::ring::{DeltaPiece, Ring, StreamPosition};
use dupflow_core::doc::DocId;
use dupflow_core::pair::Delta;
use dupflow_core::time::Epoch;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Walk {
    /// Maximum number of pairs of a step.
    chunk: usize,
    /// The position in the deltas after the last step; `None` before the first one.
    at: Option<StreamPosition>,
    cursor: Option<(DocId, DocId)>,
}

/// The result of a step: what the reader must be sent, in this order.
#[derive(Debug)]
pub(crate) enum WalkStep {
    /// The walk has restarted; the reader was too slow.
    Restarted,
    /// Deltas, then pairs.
    Chunk {
        /// Of these pieces, the deltas of pairs at or before `cursor`.
        pieces: Vec<Arc<DeltaPiece>>,
        cursor: Option<(DocId, DocId)>,
        /// Whether these are the first pairs: the reader discards what it held before.
        is_first: bool,
        pairs: Vec<KnownPair>,
        /// The last complete epoch.
        epoch: Epoch,
        /// Set by the last step: the position of the deltas that follow, and whether it is the end of an
        /// epoch.
        end: Option<(StreamPosition, bool)>,
    },
}

impl Walk {
    /// Before all pairs.
    pub(super) fn new(chunk: usize) -> Self {
        Self { chunk, at: None, cursor: None }
    }

    pub(super) fn step(&mut self, epoch: Epoch, is_within: bool, pairs: &PairMap, ring: &Ring) -> WalkStep {
        let is_first = self.at.is_none();
        let Some(pieces) = ring.since(self.at.unwrap_or(ring.end()), usize::MAX) else {
            *self = Self::new(self.chunk);
            return WalkStep::Restarted;
        };
        let everything = PairQuery {
            document: None,
            min: 0.0,
            max: 1.0,
            since: None,
            after: self.cursor.clone(),
            limit: self.chunk,
        };
        let (found, next) = pairs.page(&everything);
        let cursor = std::mem::replace(&mut self.cursor, next);
        self.at = Some(ring.end());
        let end = self.cursor.is_none().then(|| (ring.end(), !is_within));
        WalkStep::Chunk { pieces, cursor, is_first, pairs: found, epoch, end }
    }
}

/// The deltas of a piece that belong to pairs at or before the cursor.
pub(crate) fn needed<'p>(
    piece: &'p DeltaPiece,
    cursor: Option<&(DocId, DocId)>,
) -> impl Iterator<Item = &'p Delta> {
    let is_needed = move |delta: &&Delta| {
        cursor.is_some_and(|(a, b)| (delta.pair.pair.lo(), delta.pair.pair.hi()) <= (a, b))
    };
    piece.deltas.iter().filter(is_needed)
}
