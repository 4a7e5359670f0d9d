//! Where results go: the deltas of closed epochs in, lines (or a list, in tests) out.

mod clusters;
mod lines;
mod memory;

use std::io;

pub use clusters::{ClusterDeltaLines, ClusterLines};
pub use lines::{DeltaLines, PairLines, StandardError};
pub use memory::Memory;

use crate::pair::DocPair;
use crate::time::Epoch;

/// A destination of pair deltas.
///
/// Contract, for the one writer that calls it:
/// - [`Self::epoch`] is called at most once for an epoch, in ascending order, once the epoch is closed: nothing that it
///   was given is ever taken back. Epochs without a delta may be left out.
/// - The deltas of an epoch are consolidated: no two of them are equal but for their sign; each is 1 or -1. They are
///   sorted by (a, b, diff), so that a pair whose similarity changes is a -1 and then a +1.
/// - Over all epochs each pair accumulates to 0 or 1.
/// - [`Self::finish`] is called once, last; if it is not (the run failed), what was written is a prefix of the deltas
///   by whole epochs, but for the last one, which may be cut.
/// - After an error no further call is made. An error of kind [`io::ErrorKind::BrokenPipe`] means that nobody reads on.
///
/// A call may wait for its destination (a pipe that is full), and so hold back the run; it must not wait for input.
pub trait Sink {
    /// Takes the deltas of one epoch.
    ///
    /// # Errors
    /// Those of the destination.
    fn epoch(&mut self, epoch: Epoch, deltas: &[(DocPair, isize)]) -> io::Result<()>;

    /// Writes out everything that is still held.
    ///
    /// # Errors
    /// Those of the destination.
    fn finish(&mut self) -> io::Result<()>;
}
