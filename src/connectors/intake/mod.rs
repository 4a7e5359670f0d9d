//! The input side of a run: reads inputs and gives the workers [batches](Batch) of raw records, cut into
//! epochs.
//! ```text
//!  partitions ──▶ Reader (a thread each) ──▶ Queue ──▶ Decoder (each worker) ──▶ events
//!                 finds records, positions    bounded,   reads JSON, keys, files
//!                                             epochs
//! ```
//!
//! A reader only finds where records begin and end, which costs little more than reading the bytes. The
//! expensive steps (JSON, the files of a folder) run on the workers, each for the batches that it takes.
//!
//! Invariants:
//! - Every record, good or bad, has one [`Position`]. Recorded inputs are partition 0, with the offsets 0, 1,
//!   2, … over all inputs in order, since later inputs may change the documents of earlier ones. Blank lines
//!   have no position.
//! - Epochs are numbered without gaps, and no batch crosses an epoch boundary.
//! - A record that is not a valid event is reported to [`BadRecords`] exactly once. It ends the run only
//!   under [`OnError::Fail`].

mod bad_records;
mod batch;
mod cutter;
mod decode;
mod error;
mod events;
mod input_file;
mod input_log;
mod look;
mod queue;
mod source;
mod table_log;
mod texts;

pub use bad_records::{BadRecords, DeadLetter, InputTally, OnError, UnreadFiles};
pub(crate) use batch::is_blank;
pub use batch::{Batch, FileDocument, Payload};
pub(crate) use cutter::{Cutter, PARTITION, ReadEnd};
pub use cutter::{EpochRule, Share, Speed, interval};
pub use decode::Decoder;
pub use error::{BadRecordAt, SourceError};
pub use events::EventBuffer;
pub use input_file::InputFile;
pub use input_log::InputLog;
pub(crate) use input_log::{FileOrder, SpanEnd};
pub use look::{AsOf, ChangedRecord, LateReading, OffsetGap, SourceInfo, Tombstones};
pub use queue::{CatchUp, CatchUpLine, Closed, Dequeued, EpochLimits, Peers, Queue, QueueRoom, Refused};
pub use source::{Announce, PastInputs, Resumption, Source, SourceReader};
pub use table_log::TableLog;
pub(crate) use texts::of_event;
pub use texts::{FoundText, NoText, Texts};

#[cfg(doc)]
use dupflow_core::doc::Position;
