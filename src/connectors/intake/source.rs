//! Sources and their readers: the contract.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::bad_records::BadRecords;
#[cfg(doc)]
use super::batch::Batch;
use super::error::SourceError;
use super::input_log::InputLog;
use super::look::{AsOf, ChangedRecord, OffsetGap, SourceInfo};
#[cfg(doc)]
use super::queue::{Closed, Refused};
use super::queue::{EpochLimits, Queue};
use super::table_log::TableLog;
use super::texts::Texts;
use crate::formats::InputProgress;
use crate::mark::{InputList, TableLook};
use dupflow_core::text::TextColumns;
use dupflow_core::time::{Clock, LastRecord, Offsets};
use dupflow_run::backlog::Backlog;
use dupflow_run::origins::Origins;

/// Publishes how far the output covers a source: all records before these offsets (exclusive).
pub type Announce = Box<dyn FnMut(&Offsets) + Send>;

/// The inputs that an earlier run has read, as the output and the state have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastInputs {
    /// The list in the mark of the output, if there is a mark.
    pub of_output: Option<InputList>,
    /// The list in the state with all of its spans, if there is a state.
    pub of_state: Option<InputList>,
    /// Whether the run goes on with the documents of the state, and does not read them again.
    pub has_documents: bool,
    /// The position of the state, or 0.
    pub begin: u64,
    /// The position up to which the output or the state has read, or 0.
    pub read: u64,
    /// What the table was that was read up to the state.
    pub table: Option<TableLook>,
    /// Whether the run compares its result with the output in any case.
    pub reconcile: bool,
}

/// How a run can continue after the inputs of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// The positions of the mark and of the state are of the same records as before.
    AsRead,
    /// Those of the state are; those between it and the mark are not. The run reads on from the state, and
    /// corrects the output.
    FromState,
    /// No position counts: the run reads everything, without the state, and corrects the output.
    Anew,
}

/// A source of events: partitions of records, distributed over readers.
///
/// A **partition** is a sequence of records with a number that never changes. An **offset** identifies a
/// record in its partition: it never changes, ascends with the records, and may leave gaps. All events of one
/// document are in one partition, so its last event is the one with the greatest offset; for the exception
/// see [`Self::ids_move`]. Partitions are not ordered among each other. A source that is opened again gives
/// every record the same position, and can begin a partition at any offset: reading continues at the
/// [`Batch::next`] of the last batch that was read.
///
/// ```text
///  epochs() ─▶ inspect() ─▶ resume() ─▶ begin() ─▶ readers() ─▶ each Reader::read, on its own thread
/// ```
///
/// Each is called once, in this order. If several processes run together, only process 0 calls
/// [`Self::inspect`] and [`Self::begin`] (or [`Self::begin_left`] after it) and sends the result to the
/// others.
pub trait Source: Send + fmt::Debug {
    /// Limits at which the queue cuts epochs by itself, in addition to the cuts that readers make.
    fn epochs(&self) -> EpochLimits {
        EpochLimits::default()
    }

    /// Whether the readers of all processes see the same records and cut at the same ones. Then no process
    /// has to follow the cuts of another.
    fn cuts_alike(&self) -> bool {
        false
    }

    /// What is known of the source before a run begins. Only process 0 calls this.
    ///
    /// # Errors
    /// If the source does not exist or cannot be reached.
    fn inspect(&mut self) -> Result<SourceInfo, SourceError> {
        Ok(SourceInfo::default())
    }

    /// How the run continues after the inputs that an earlier one has read. Called after [`Self::inspect`],
    /// perhaps twice; the last call counts.
    ///
    /// # Errors
    /// If an input is not as it was read, and the settings do not say what that means.
    fn resume(&mut self, _past: &PastInputs) -> Result<Resumption, SourceError> {
        Ok(Resumption::AsRead)
    }

    /// The list of inputs, if the source has one. Call it before [`Self::readers`].
    fn input_log(&self) -> Option<Arc<InputLog>> {
        None
    }

    /// The looks at the table that is read, if the source is one. Call it before [`Self::readers`].
    fn table_log(&self) -> Option<Arc<TableLog>> {
        None
    }

    /// How much of the source waits to be read; `None` where that is not known.
    fn backlog(&self) -> Option<Arc<Backlog>> {
        None
    }

    /// Publishes the committed offsets in the source's own system, as a consumer group does; `None` if it
    /// publishes nothing. It is called after each commit.
    fn announcer(&self) -> Option<Announce> {
        None
    }

    /// Whether the events of one document may be in several partitions, as in a topic to which partitions
    /// have been added. Then records should have times: the partition with the newest record of an id
    /// decides.
    fn ids_move(&self) -> bool {
        false
    }

    /// The offset of the first record to be read, for each partition. With `from` (the offsets of an earlier
    /// run) it begins there, if everything after them is still available; a partition that `from` does not
    /// name begins with its first record. Without `from` it begins as the source is configured.
    ///
    /// # Errors
    /// [`SourceError::Lost`] if records from `from` on are no longer available; another error if the source
    /// cannot be reached.
    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError>;

    /// Like [`Self::begin`], for a source that no longer has all records after `_from`: where reading begins,
    /// and the gaps. If the source cannot say what is missing, it begins as with empty offsets.
    ///
    /// # Errors
    /// If the source cannot be reached.
    fn begin_left(&mut self, _from: &Offsets) -> Result<(Offsets, Vec<OffsetGap>), SourceError> {
        self.begin(Some(&Offsets::new())).map(|begin| (begin, Vec::new()))
    }

    /// The first of these records, by partition, in whose place the source holds another one; of records
    /// before its first offset nothing is known. `may_lack`: single records may be missing, as in a compacted
    /// topic; otherwise a missing one counts as another one.
    ///
    /// # Errors
    /// If the source cannot be reached.
    fn changed(
        &mut self,
        _last: &BTreeMap<u32, LastRecord>,
        _may_lack: bool,
    ) -> Result<Option<ChangedRecord>, SourceError> {
        Ok(None)
    }

    /// The time as of which the source has been read; `None` where that is not tracked. Call it before
    /// [`Self::readers`].
    fn as_of(&self) -> Option<Arc<AsOf>> {
        None
    }

    /// How many bytes the readers have read; `None` where bytes are not counted.
    fn progress(&self) -> Option<Arc<InputProgress>> {
        None
    }

    /// Which input each record belongs to, where several inputs follow each other; `None` where the position
    /// of a record does not depend on inputs.
    fn origins(&self) -> Option<Arc<Origins>> {
        None
    }

    /// Reads the texts of documents back, by these columns, while the readers continue;
    /// `None` where texts cannot be read back. Call it before [`Self::readers`].
    fn texts(&self, _columns: &TextColumns) -> Option<Box<dyn Texts>> {
        None
    }

    /// The readers, at least one, which begin at `begin`. Each partition is read by one reader.
    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn SourceReader>>;
}

/// Reads some partitions of a [`Source`].
///
/// Contract, for [`Self::read`], which is called once:
/// - It pushes the records of each partition in order of offset; a batch has records of one partition. A bad
///   record that the reader itself detects is reported instead, and the [`Batch::next`] of the batch that
///   follows is after it. A batch may be empty.
/// - It returns `Ok` at the end of its input (if it has one), or once the queue returns [`Closed`], which is
///   no error. It returns an error if it must not continue; then the open epoch is not written. It never
///   calls [`Queue::finish`].
/// - Epochs: a reader may cut anywhere ([`Queue::cut`]), which ends the epoch for all readers. A reader
///   without input holds no epoch open. It must push what it has read before it waits for more, since a
///   record that is not pushed is in no epoch.
/// - Lines: while [`Queue::line`] returns an offset of a partition, no batch crosses it: a batch that would
///   is split there. The rest waits until all partitions have reached their lines, in [`Queue::push`] or as
///   [`Refused::Held`]. A partition that reaches the end of its input with nothing left to push reports that
///   by an empty batch. A line may be at the end of what is there ([`u64::MAX`]): a reader whose source does
///   not say beforehand what it holds calls [`Queue::at_end`] there.
/// - Backpressure: [`Queue::push`] waits while the workers are behind, which pauses the reader;
///   [`Queue::pause`] and [`Queue::wait_for_room`] wait too. All three return at once when the run ends. A
///   reader with other duties (the heartbeat of a Kafka consumer) uses [`Queue::try_push`] instead, keeps the
///   refused batch, and reads no more until it is taken. So at most one batch per reader waits outside the
///   queue.
/// - A reader may wait for its input forever. Only the queue asks it to end, at its next call, and no thread
///   joins it.
pub trait SourceReader: Send {
    /// Reads to the end of the input.
    ///
    /// # Errors
    /// An error that ends the run.
    fn read(&mut self, queue: &Queue, bad: &BadRecords, clock: &dyn Clock) -> Result<(), SourceError>;
}
