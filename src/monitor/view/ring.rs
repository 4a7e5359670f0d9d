//! The last deltas, piece by piece, with the frames that readers are sent.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;

use dupflow_core::pair::Delta;
use dupflow_core::time::Epoch;

/// Some deltas of an epoch, in their order.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) epoch: Epoch,
    /// Whether none of its epoch follow.
    pub(crate) is_last: bool,
    pub(crate) deltas: Vec<Delta>,
    /// What readers are sent: rendered once, shared by all.
    pub(crate) frame: Bytes,
}

impl Piece {
    /// About how much memory it takes; ids that are not inside are shared with the pairs.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.frame.len() + self.deltas.len() * size_of::<Delta>()
    }
}

/// A place between two pieces, by what stands before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Pieces.
    pub(crate) piece: u64,
    /// Epochs that end there or before.
    pub(crate) epochs: u64,
    /// Deltas.
    pub(crate) deltas: u64,
}

impl Place {
    /// The place behind a piece.
    pub(crate) fn behind(self, piece: &Piece) -> Self {
        Self {
            piece: self.piece + 1,
            epochs: self.epochs + u64::from(piece.is_last),
            deltas: self.deltas + piece.deltas.len() as u64,
        }
    }

    /// Epochs and deltas from here to a later place.
    pub(crate) fn until(self, later: Self) -> (u64, u64) {
        (later.epochs.saturating_sub(self.epochs), later.deltas.saturating_sub(self.deltas))
    }
}

/// The last pieces, so many as fit; at least the very last one.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    pieces: VecDeque<Arc<Piece>>,
    begin: Place,
    end: Place,
    bytes: usize,
    most_bytes: usize,
}

impl Ring {
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, ..Self::default() }
    }

    pub(crate) fn push(&mut self, piece: Piece) {
        self.end = self.end.behind(&piece);
        self.bytes += piece.bytes();
        self.pieces.push_back(Arc::new(piece));
        while self.bytes > self.most_bytes && self.pieces.len() > 1 {
            if let Some(first) = self.pieces.pop_front() {
                self.begin = self.begin.behind(&first);
                self.bytes -= first.bytes();
            }
        }
    }

    /// Before the first piece that is held.
    pub(crate) fn begin(&self) -> Place {
        self.begin
    }

    /// Behind the last one.
    pub(crate) fn end(&self) -> Place {
        self.end
    }

    /// The place behind an epoch. None if that, or something after it, is not held any more, or if there is
    /// no such epoch.
    pub(crate) fn after(&self, epoch: Epoch) -> Option<Place> {
        let at = self.pieces.partition_point(|piece| piece.epoch <= epoch);
        let ends_there = at
            .checked_sub(1)
            .is_some_and(|last| self.pieces[last].epoch == epoch && self.pieces[last].is_last);
        ends_there.then(|| self.pieces.iter().take(at).fold(self.begin, |place, piece| place.behind(piece)))
    }

    /// Pieces from a place on, until they have about so many bytes of frames. None if the first of them is
    /// gone.
    pub(crate) fn since(&self, from: Place, bytes: usize) -> Option<Vec<Arc<Piece>>> {
        let skip = usize::try_from(from.piece.checked_sub(self.begin.piece)?).ok()?;
        let mut taken = 0;
        let fits = |piece: &&Arc<Piece>| {
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

    fn piece(epoch: Epoch, is_last: bool, bytes: usize) -> Piece {
        Piece { epoch, is_last, deltas: Vec::new(), frame: Bytes::from(vec![b'x'; bytes]) }
    }

    #[test]
    fn what_does_not_fit_goes_and_is_counted() {
        let mut ring = Ring::new(3 * (size_of::<Piece>() + 10));
        for epoch in 1..=5 {
            ring.push(piece(epoch, true, 10));
        }
        assert_eq!((ring.begin().piece, ring.begin().epochs, ring.end().piece), (2, 2, 5));
        assert_eq!(ring.since(Place { piece: 1, ..Place::default() }, 100).map(|all| all.len()), None);
        let epochs = |from: Place, bytes| -> Vec<Epoch> {
            ring.since(from, bytes).unwrap().iter().map(|piece| piece.epoch).collect()
        };
        assert_eq!(epochs(ring.begin(), 100), [3, 4, 5]);
        assert_eq!(epochs(ring.begin(), 11), [3, 4], "the second one is begun before there are 11 bytes");
        assert_eq!(epochs(ring.end(), 100), Vec::<Epoch>::new());
        ring.push(piece(6, true, 1000));
        assert_eq!((ring.begin().piece, ring.end().piece), (5, 6), "the last one stays, however large it is");
    }

    #[test]
    fn only_whole_epochs_are_gone_on_from() {
        let mut ring = Ring::new(1 << 20);
        ring.push(piece(3, true, 1));
        ring.push(piece(7, false, 1));
        assert_eq!(ring.after(3).map(|place| place.piece), Some(1));
        assert_eq!((ring.after(7), ring.after(2), ring.after(5), ring.after(9)), (None, None, None, None));
        ring.push(piece(7, true, 1));
        assert_eq!(ring.after(7), Some(Place { piece: 3, epochs: 2, deltas: 0 }));
    }
}
