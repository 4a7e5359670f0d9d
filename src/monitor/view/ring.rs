//! The last deltas in pieces, with their rendered frames.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;

use super::render::{self, FrameRules};
use dupflow_core::pair::Delta;
use dupflow_core::time::{Epoch, EpochTimes};

/// Some deltas of an epoch, in their order.
#[derive(Debug)]
pub(crate) struct DeltaPiece {
    pub(crate) epoch: Epoch,
    pub(crate) times: EpochTimes,
    /// Its number in the epoch, from 0.
    pub(crate) index: u32,
    /// Whether it is the last piece of its epoch.
    pub(crate) is_last: bool,
    /// The number of deltas of its epoch that follow.
    pub(crate) left: usize,
    pub(crate) deltas: Vec<Delta>,
    /// The rendered event, shared by all readers.
    pub(crate) frame: Bytes,
}

impl DeltaPiece {
    /// The pieces of an epoch, of at most `most` deltas each; one without deltas, if there are none.
    pub(crate) fn of_epoch(
        rules: FrameRules<'_>,
        epoch: Epoch,
        times: EpochTimes,
        deltas: &[Delta],
        most: usize,
    ) -> impl Iterator<Item = Self> {
        let mut left = deltas.len();
        let none = deltas.is_empty().then_some(&[][..]);
        (0..).zip(deltas.chunks(most).chain(none)).map(move |(index, deltas)| {
            left -= deltas.len();
            Self::rendered(rules, epoch, index, times, deltas.to_vec(), left)
        })
    }

    /// A piece after which `left` deltas of its epoch follow.
    pub(crate) fn rendered(
        rules: FrameRules<'_>,
        epoch: Epoch,
        index: u32,
        times: EpochTimes,
        deltas: Vec<Delta>,
        left: usize,
    ) -> Self {
        let frame = Bytes::from(render::epoch(rules, epoch, times, &deltas, left));
        Self { epoch, times, index, is_last: left == 0, left, deltas, frame }
    }

    /// The piece without its first `taken` deltas.
    pub(crate) fn without_first(&self, rules: FrameRules<'_>, taken: usize) -> Self {
        let deltas = self.deltas[taken..].to_vec();
        Self::rendered(rules, self.epoch, self.index, self.times, deltas, self.left)
    }

    /// Approximate memory of the piece; long ids, which are shared with the pairs, are not counted.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.frame.len() + self.deltas.len() * size_of::<Delta>()
    }
}

/// A position between two pieces, or within one: what precedes it, counted from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamPosition {
    /// Number of complete pieces.
    pub(crate) piece: u64,
    /// Number of deltas of the next piece that precede it; less than the piece has.
    pub(crate) taken: usize,
    /// Number of complete epochs.
    pub(crate) epochs: u64,
    /// Number of deltas.
    pub(crate) deltas: u64,
}

impl StreamPosition {
    /// The position after a piece, of which only the deltas from this position on are given.
    pub(crate) fn after_piece(self, piece: &DeltaPiece) -> Self {
        Self {
            piece: self.piece + 1,
            taken: 0,
            epochs: self.epochs + u64::from(piece.is_last),
            deltas: self.deltas + piece.deltas.len() as u64,
        }
    }

    /// Epochs and deltas between this position and a later one.
    pub(crate) fn until(self, later: Self) -> (u64, u64) {
        (later.epochs.saturating_sub(self.epochs), later.deltas.saturating_sub(self.deltas))
    }
}

/// The last pieces that fit into a number of bytes; at least one.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    pieces: VecDeque<Arc<DeltaPiece>>,
    begin: StreamPosition,
    end: StreamPosition,
    bytes: usize,
    most_bytes: usize,
    /// The last epoch before those of which pieces are held; `None` if that is not known.
    pub(crate) begins_after: Option<Epoch>,
}

impl Ring {
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, ..Self::default() }
    }

    /// Appends a piece; returns those that are dropped for it.
    pub(crate) fn push(&mut self, piece: DeltaPiece) -> Vec<Arc<DeltaPiece>> {
        self.end = self.end.after_piece(&piece);
        self.bytes += piece.bytes();
        self.pieces.push_back(Arc::new(piece));
        let mut dropped = Vec::new();
        while self.bytes > self.most_bytes && self.pieces.len() > 1 {
            dropped.extend(self.drop_first());
        }
        dropped
    }

    /// Drops the pieces that were committed before this time, in unix seconds, except the last one.
    pub(crate) fn drop_before(&mut self, time: f64) -> Vec<Arc<DeltaPiece>> {
        let mut dropped = Vec::new();
        while self.pieces.len() > 1 && self.pieces.front().is_some_and(|one| one.times.committed < time) {
            dropped.extend(self.drop_first());
        }
        dropped
    }

    /// Drops all pieces.
    pub(crate) fn clear(&mut self) -> Vec<Arc<DeltaPiece>> {
        std::iter::from_fn(|| self.drop_first()).collect()
    }

    fn drop_first(&mut self) -> Option<Arc<DeltaPiece>> {
        let first = self.pieces.pop_front()?;
        self.begin = self.begin.after_piece(&first);
        self.bytes -= first.bytes();
        // Of an epoch that is dropped in part, the rest is of no use to a reader of the epoch before it.
        self.begins_after = Some(first.epoch - u64::from(!first.is_last));
        Some(first)
    }

    /// The pieces that will be pushed follow this epoch. There are none yet.
    pub(crate) fn begin_after(&mut self, epoch: Epoch) {
        debug_assert!(self.pieces.is_empty());
        self.begins_after = Some(epoch);
    }

    /// The position before the first piece held.
    pub(crate) fn begin(&self) -> StreamPosition {
        self.begin
    }

    /// The position after the last piece.
    pub(crate) fn end(&self) -> StreamPosition {
        self.end
    }

    /// The position after an epoch. `None` if there is no such epoch, or if it or a later piece is no longer
    /// held.
    pub(crate) fn after(&self, epoch: Epoch) -> Option<StreamPosition> {
        if self.begins_after == Some(epoch) {
            // Of the next epoch all pieces are held, or none is there yet.
            return self.pieces.front().is_none_or(|first| first.index == 0).then_some(self.begin);
        }
        let at = self.pieces.partition_point(|piece| piece.epoch <= epoch);
        let ends_there = at
            .checked_sub(1)
            .is_some_and(|last| self.pieces[last].epoch == epoch && self.pieces[last].is_last);
        ends_there
            .then(|| self.pieces.iter().take(at).fold(self.begin, |place, piece| place.after_piece(piece)))
    }

    /// The position from which on at most this many deltas are held; it may be within an epoch, and within a
    /// piece.
    pub(crate) fn last(&self, deltas: u64) -> StreamPosition {
        let precede = self.end.deltas.saturating_sub(deltas);
        let mut position = self.begin;
        for piece in &self.pieces {
            if position.deltas >= precede {
                break;
            }
            let after = position.after_piece(piece);
            if after.deltas > precede {
                let taken = usize::try_from(precede - position.deltas).expect("a part of a piece");
                return StreamPosition { taken, deltas: precede, ..position };
            }
            position = after;
        }
        position
    }

    /// Pieces from that of a position on, of about `bytes` bytes of frames. `None` if the first of them is no
    /// longer held.
    pub(crate) fn since(&self, from: StreamPosition, bytes: usize) -> Option<Vec<Arc<DeltaPiece>>> {
        let skip = usize::try_from(from.piece.checked_sub(self.begin.piece)?).ok()?;
        let mut taken = 0;
        let fits = |piece: &&Arc<DeltaPiece>| {
            let fits = taken < bytes;
            taken += piece.frame.len();
            fits
        };
        Some(self.pieces.iter().skip(skip).take_while(fits).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(epoch: Epoch, is_last: bool, bytes: usize) -> DeltaPiece {
        DeltaPiece {
            epoch,
            times: EpochTimes::default(),
            index: u32::from(is_last && epoch == 7),
            is_last,
            left: usize::from(!is_last),
            deltas: Vec::new(),
            frame: Bytes::from(vec![b'x'; bytes]),
        }
    }

    #[test]
    fn pieces_beyond_the_limit_are_dropped_and_counted() {
        let mut ring = Ring::new(3 * (size_of::<DeltaPiece>() + 10));
        for epoch in 1..=5 {
            ring.push(piece(epoch, true, 10));
        }
        assert_eq!((ring.begin().piece, ring.begin().epochs, ring.end().piece), (2, 2, 5));
        assert_eq!(
            ring.since(StreamPosition { piece: 1, ..StreamPosition::default() }, 100).map(|all| all.len()),
            None
        );
        let epochs = |from: StreamPosition, bytes| -> Vec<Epoch> {
            ring.since(from, bytes).unwrap().iter().map(|piece| piece.epoch).collect()
        };
        assert_eq!(epochs(ring.begin(), 100), [3, 4, 5]);
        assert_eq!(epochs(ring.begin(), 11), [3, 4], "the second one is begun before there are 11 bytes");
        assert_eq!(epochs(ring.end(), 100), Vec::<Epoch>::new());
        ring.push(piece(6, true, 1000));
        assert_eq!((ring.begin().piece, ring.end().piece), (5, 6), "the last one stays, however large it is");
    }

    #[test]
    fn the_last_deltas_begin_at_a_piece_or_within_one() {
        let pair = dupflow_core::pair::Pair::new(
            dupflow_core::doc::DocId::new("a").unwrap(),
            dupflow_core::doc::DocId::new("b").unwrap(),
        );
        let pair = dupflow_core::pair::DocPair {
            pair: pair.unwrap(),
            similarity: dupflow_core::pair::Similarity::ONE,
            evidence: dupflow_core::pair::Evidence::default(),
        };
        let delta = Delta { pair, diff: 1, cause: dupflow_core::pair::Cause::Insert };
        let mut ring = Ring::new(1 << 20);
        for (epoch, deltas) in [(1, 3), (2, 0), (3, 2), (3, 2), (4, 1)] {
            ring.push(DeltaPiece { deltas: vec![delta.clone(); deltas], ..piece(epoch, true, 1) });
        }
        let from = |deltas| (ring.last(deltas).piece, ring.last(deltas).taken, ring.last(deltas).deltas);
        let expected =
            [(5, 0, 8), (4, 0, 7), (3, 1, 6), (3, 0, 5), (2, 1, 4), (1, 0, 3), (0, 1, 1), (0, 0, 0)];
        assert_eq!([0, 1, 2, 3, 4, 5, 7, 8].map(from), expected);
        assert_eq!(from(9), (0, 0, 0));
        assert_eq!(Ring::new(1).last(5), StreamPosition::default());
    }

    #[test]
    fn after_finds_complete_epochs_only() {
        let mut ring = Ring::new(1 << 20);
        ring.push(piece(3, true, 1));
        ring.push(piece(7, false, 1));
        assert_eq!(ring.after(3).map(|place| place.piece), Some(1));
        assert_eq!([7, 2, 5, 9].map(|epoch| ring.after(epoch)), [None; 4]);
        ring.push(piece(7, true, 1));
        assert_eq!(ring.after(7), Some(StreamPosition { piece: 3, epochs: 2, ..StreamPosition::default() }));
        assert_eq!(ring.after(0), None, "nothing says what came before epoch 3");
        ring.drop_before(1.0);
        assert_eq!((ring.begins_after, ring.after(6)), (Some(6), None), "a part of epoch 7 is dropped");
        let mut restored = Ring::new(1 << 20);
        restored.begin_after(2);
        restored.push(piece(5, true, 1));
        assert_eq!(restored.after(2), Some(StreamPosition::default()), "all that followed is held");
    }
}
