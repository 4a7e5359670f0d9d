//! Where results go: the deltas of closed epochs in, lines (or a list, in tests) out.

mod clusters;
mod lines;
mod memory;

use std::io;

pub use clusters::{ClusterDeltaLines, ClusterLines};
pub use lines::{DeltaLines, PairLines, StandardError};
pub use memory::Memory;

use crate::pair::DocPair;
use crate::time::Progress;

/// A destination of pair deltas.
///
/// Contract, for the committer, the one thread that calls it (no worker does):
/// - [`Self::epoch`] is called once for every epoch, without gaps and in order, once the epoch is closed: nothing that it
///   was given is ever taken back. An epoch may have no delta: it moves progress all the same.
/// - When it returns, the deltas are at least where a reader of the destination finds them after the end of the process: they and the
///   progress are *durable* as far as the destination can make them so. What it stores of the progress is where a restart goes on.
/// - The deltas of an epoch are consolidated: no two of them are equal but for their sign; each is 1 or -1. They are
///   sorted by (a, b, diff), so that a pair whose similarity changes is a -1 and then a +1.
/// - Over all epochs each pair accumulates to 0 or 1.
/// - [`Self::finish`] is called once, last; if it is not (the run failed), what was written is a prefix of the deltas
///   by whole epochs, but for the last one, which may be cut.
/// - After an error no further call is made. An error of kind [`io::ErrorKind::BrokenPipe`] means that nobody reads on.
///
/// A call may wait for its destination (a pipe that is full). Meanwhile closed epochs wait, and once enough of them do, the
/// readers are held back; workers are not.
pub trait Sink {
    /// Takes one epoch: how far it has read, and its deltas.
    ///
    /// # Errors
    /// Those of the destination.
    fn epoch(&mut self, progress: &Progress, deltas: &[(DocPair, isize)]) -> io::Result<()>;

    /// Writes out everything that is still held.
    ///
    /// # Errors
    /// Those of the destination.
    fn finish(&mut self) -> io::Result<()>;
}
