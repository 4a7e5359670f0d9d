//! Intake: the source of a worker's events, as the dataflow reads it.
//!
//! A batch is the records of one epoch that were read together; it may be empty.

use dupflow_core::doc::{DocEvent, Letter, Position};
use dupflow_core::time::{Epoch, LastRecord};
use dupflow_run::watch::WatchChange;

/// The answer of [`Intake::pull`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// Events of this epoch are ready to be read.
    Batch(Epoch),
    /// No events now, and none of an epoch before this one will follow. 0 adds no information.
    Idle(Epoch),
    /// No more events will follow.
    Done,
}

/// One record of a batch.
#[derive(Debug)]
pub enum BatchRecord<'a> {
    /// An event and its position.
    Event(Position, DocEvent<'a>),
    /// A live document: its id, and the value that an earlier run kept.
    Restored(&'a [u8], &'a [u8]),
    /// A change of the watch list.
    Watched(&'a WatchChange),
}

/// What a batch holds except its events.
#[derive(Debug, Default)]
pub struct BatchEnd {
    /// The position after the batch, where its partition continues; `None` if the batch has no partition.
    pub end: Option<Position>,
    /// The last record of the batch and its partition, if the input is a topic.
    pub last: Option<(u32, LastRecord)>,
    /// Invalid records of the batch, if they are kept with their epoch.
    pub letters: Vec<Letter>,
    /// Where each of several processes reads the whole input: the index of the process, and a hash of the
    /// batch as all processes must see it.
    pub seen: Option<(usize, u64)>,
    /// When the batch was read, in unix seconds, where documents expire by wall-clock time. With several
    /// processes, one of them sets it.
    pub at: Option<f64>,
}

/// The source of a worker's events.
///
/// Contract: epochs never decrease. Each `Batch` is followed by one `read`. When events or the end of the
/// input follow an `Idle`, the intake comparisons the function passed to `wake_with`. `pull` never blocks.
/// After a failure it returns `Idle` forever: an epoch that was not read to its end must not close.
pub trait Intake {
    /// Asks for events of an epoch up to `limit`, inclusive.
    fn pull(&mut self, limit: Epoch) -> Pull;

    /// Reads the batch just pulled.
    fn read(&mut self, each: &mut dyn FnMut(BatchRecord<'_>)) -> BatchEnd;

    /// Sets the function that wakes this worker.
    fn wake_with(&mut self, wake: Box<dyn Fn() + Send>);
}
