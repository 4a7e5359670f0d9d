//! Where results go: the deltas of closed epochs in, lines (or a list, in tests) out.

mod cluster_changes;
mod clusters;
mod csv_rows;
mod deltas;
mod destination;
mod envelope;
#[cfg(feature = "kafka")]
mod kafka;
mod keep_list;
mod letters;
mod lines;
mod marked;
mod memory;
#[cfg(feature = "parquet")]
mod parquet_rows;
mod rows;
mod tables;
mod whole;

use std::collections::BTreeSet;
use std::io;

pub use clusters::{ClusterDeltaLines, ClusterLines};
pub use csv_rows::Csv;
pub use deltas::StandardError;
pub use destination::Destination;
pub use envelope::Envelope;
#[cfg(feature = "kafka")]
pub use kafka::{KafkaOutput, KafkaSink, output_topic};
pub use keep_list::{KeepList, Listed};
pub use letters::LetterFile;
pub use lines::{DeltaLines, PairLines};
pub use marked::MarkedFile;
pub use memory::Memory;
#[cfg(feature = "parquet")]
pub use parquet_rows::Parquet;
pub use rows::{Cell, Holds, Lines, Row, RowKind, Rows};
pub use tables::{TableOutput, TableSink};
pub use whole::{Held, Publication};

use crate::mark::{Mark, Standing, Topic};
use dupflow_core::doc::{DocChange, Letter};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{Epoch, Progress};

/// A destination of pair deltas.
///
/// Contract, for the committer, the one thread that calls it (no worker does):
///
/// ```text
///  look ─▶ take_over ─▶ [pairs] ─▶ restored* ─▶ ( epoch+ ─▶ commit )* ─▶ finish      live, once, before the first epoch or after corrections
///                                  ╰ documents   ╰ documents, before it, if they are wanted
/// ```
///
/// - [`Self::look`] is called before it, and changes nothing: a run that is to be refused does not end the
///   one that has the destination.
/// - [`Self::take_over`] is called once, before anything is read. From then on no run that had the
///   destination before can write to it: its next commit fails. What it had not committed is gone. A
///   destination that forgets starts anew.
/// - [`Self::restored`] is called for the deltas of epochs that are in the output already, up to the mark:
///   for what a sink derives from all deltas.
/// - [`Self::documents`] is called, if they are [wanted](Self::wants_documents), before [`Self::restored`] or
///   [`Self::epoch`] of the same epoch, if there is a change of a document in it. All changes together leave
///   the documents alive, whether the run began with them or not. While an output is corrected, the changes
///   come as the epochs are repeated, before the corrections.
/// - [`Self::epoch`] is called once for every epoch after that, in order, once the epoch is closed: nothing
///   that it was given is ever taken back. An epoch may have no delta. Numbers ascend, and may have a gap
///   after a restart.
/// - [`Self::commit`] makes the epochs given since the last one *durable*, with a mark: all of them and the
///   mark, or nothing. When it returns, a reader of the destination finds them, also after the end of the
///   process and, as far as the destination can, of the machine.
/// - The deltas of an epoch are consolidated: no two of them are equal but for their sign; each is 1 or -1.
///   They are sorted by (a, b, diff), so that a pair whose similarity changes is a -1 and then a +1.
/// - Over all epochs each pair accumulates to 0 or 1.
/// - [`Self::finish`] is called once, last; if it is not (the run failed), what is durable are the epochs up
///   to the last commit.
/// - After an error no further call is made. An error of kind [`io::ErrorKind::BrokenPipe`] means that nobody
///   reads on.
///
/// A call may wait for its destination (a pipe that is full, a broker that is gone). Meanwhile closed epochs
/// wait, and once enough of them do, the readers are held back; workers are not.
pub trait Sink {
    /// What stands in the destination, of which nothing is made, claimed or changed; `None` if that shows
    /// only once it has been taken over. So it is of a destination that one run at a time can open, such as a
    /// file: there is no other run to be ended.
    ///
    /// # Errors
    /// Those of the destination.
    fn look(&mut self) -> io::Result<Option<Standing>> {
        Ok(None)
    }

    /// Takes the destination over, and tells what stands in it.
    ///
    /// # Errors
    /// Those of the destination; that another run holds it.
    fn take_over(&mut self) -> io::Result<Standing> {
        Ok(Standing::Forgets)
    }

    /// The pairs that the durable deltas accumulate to, read from the destination itself.
    ///
    /// # Errors
    /// Those of the destination; that it keeps no marks; that it holds something else.
    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the output keeps no marks"))
    }

    /// Which topic holds the deltas, if one does; known once it has been looked at or taken over.
    fn topic(&self) -> Option<Topic> {
        None
    }

    /// Whether the sink is to be told which documents are alive; asked once, before the run begins. It costs
    /// about 100 bytes for each event of an open epoch, and what is told travels to the process that writes.
    fn wants_documents(&self) -> bool {
        false
    }

    /// Learns of an epoch's changes of documents: one of a document, sorted by id. Those of an epoch before
    /// the run is live are `restored`: the destination has them already, if it goes on where it was; it has
    /// them not if it is new, or is corrected.
    ///
    /// # Errors
    /// Those of the destination.
    fn documents(&mut self, _changes: &[DocChange], _restored: bool) -> io::Result<()> {
        Ok(())
    }

    /// Learns of deltas that are in the output already.
    fn restored(&mut self, _deltas: &[Delta]) {}

    /// Learns that the run is live: all that is in the output has been handed over, up to this epoch, and
    /// corrected where it had to be.
    fn live(&mut self, _past: Epoch) {}

    /// Takes one epoch: how far it has read, its deltas, and the records in it that are no events (if letters
    /// go here).
    ///
    /// # Errors
    /// Those of the destination.
    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()>;

    /// Makes the epochs since the last commit durable, with the mark.
    ///
    /// # Errors
    /// Those of the destination; that another run has taken it over.
    fn commit(&mut self, mark: &Mark) -> io::Result<()>;

    /// Writes out everything that is still held.
    ///
    /// # Errors
    /// Those of the destination.
    fn finish(&mut self) -> io::Result<()>;
}
