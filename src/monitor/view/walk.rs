//! All pairs of one moment, told piece by piece while the moment moves on: no copy of them is made.
//!
//! A walk goes through the pairs in their order, with a cursor. Each step is one look at the view, under its
//! lock:
//! 1. of the deltas taken in since the last step, those of pairs at or before the cursor are told;
//! 2. then the next pairs after the cursor as they are now, and the cursor moves behind them; after the last
//!    pair, behind everything.
//!
//! **What the reader holds after a step is {pairs now at or before the cursor}.** Before the first one both
//! are empty. Let it be true of the state S that a step left, and let S' be the state now. S' comes of S by
//! the deltas in between; restricted to the pairs at or before the cursor it comes of S so restricted by the
//! deltas so restricted, since a delta changes one pair. That is 1. Then 2. adds those of S' in the next
//! range, of which the reader holds none. After the step that moves the cursor behind everything the reader
//! holds S' whole, and what follows are all deltas after it. So no pair is lost or doubled, however the state
//! moves on during the walk; each pair is told at most once by 2., and the work of 1. is that of the deltas.
//!
//! If the ring has lost deltas that 1. needs, the reader was too slow for this: the walk begins anew.
//!
//! Reference: A. Andreakis, I. Papapanagiotou, *DBLog: A Watermark Based Change-Data-Capture Framework*
//! (2020), section 4: chunks between watermarks in one log. There the log's events win over the chunk's rows;
//! here both are read under one lock.

use std::sync::Arc;

use super::Told;
use super::pairs::{Pairs, Wanted};
use super::ring::{Piece, Place, Ring};
use dupflow_core::doc::DocId;
use dupflow_core::pair::Delta;
use dupflow_core::time::Epoch;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Walk {
    /// Pairs that a step tells, at most.
    chunk: usize,
    /// Where the last step left the deltas; none before the first one.
    at: Option<Place>,
    cursor: Option<(DocId, DocId)>,
}

/// What a step has found. It is told after the step, in this order.
#[derive(Debug)]
pub(crate) enum Step {
    /// The walk has begun anew: the reader was too slow.
    Anew,
    /// And it goes on, or has ended at a place from which all deltas follow.
    Told {
        /// Pieces of which the deltas at or before `cursor` are told.
        pieces: Vec<Arc<Piece>>,
        cursor: Option<(DocId, DocId)>,
        /// Whether the pairs are the first ones: what the reader held before is of no use.
        is_first: bool,
        pairs: Vec<Told>,
        /// The last whole epoch.
        epoch: Epoch,
        /// After the last step, where it goes on, and whether that is the end of an epoch.
        end: Option<(Place, bool)>,
    },
}

impl Walk {
    /// Before all pairs.
    pub(super) fn new(chunk: usize) -> Self {
        Self { chunk, at: None, cursor: None }
    }

    pub(super) fn step(&mut self, epoch: Epoch, is_within: bool, pairs: &Pairs, ring: &Ring) -> Step {
        let is_first = self.at.is_none();
        let Some(pieces) = ring.since(self.at.unwrap_or(ring.end()), usize::MAX) else {
            *self = Self::new(self.chunk);
            return Step::Anew;
        };
        let everything =
            Wanted { document: None, min: 0.0, max: 1.0, after: self.cursor.clone(), limit: self.chunk };
        let (found, next) = pairs.page(&everything);
        let cursor = std::mem::replace(&mut self.cursor, next);
        self.at = Some(ring.end());
        let end = self.cursor.is_none().then(|| (ring.end(), !is_within));
        Step::Told { pieces, cursor, is_first, pairs: found, epoch, end }
    }
}

/// The deltas of a piece that the reader of a walk needs, whose cursor stands there: of pairs at or before
/// it.
pub(crate) fn needed<'p>(
    piece: &'p Piece,
    cursor: Option<&(DocId, DocId)>,
) -> impl Iterator<Item = &'p Delta> {
    let is_needed = move |delta: &&Delta| {
        cursor.is_some_and(|(a, b)| (delta.pair.pair.lo(), delta.pair.pair.hi()) <= (a, b))
    };
    piece.deltas.iter().filter(is_needed)
}
