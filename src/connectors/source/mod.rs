//! Where events come from: inputs in, [batches](Batch) of raw records out, cut into epochs.
//!
//! ```text
//!  partitions ──▶ Reader (a thread each) ──▶ Queue ──▶ Decoder (each worker) ──▶ events
//!                 finds records, positions    bounded,   reads JSON, keys, files
//!                                             epochs
//! ```
//!
//! A reader only finds where records begin and end, which costs little more than reading the bytes; all that
//! costs more (JSON, files of a folder) is done by the workers, each for the batches that it takes.
//!
//! Invariants:
//! - Every record, good or bad, has one [`Position`]; in recorded inputs partition 0 and the offsets 0, 1, 2,
//!   … over all inputs in order, since later inputs may change the documents of earlier ones. Blank lines
//!   have none.
//! - Epochs are numbered without gaps, and no batch crosses one.
//! - A record that is no event is reported to [`BadRecords`] exactly once, and never ends the run unless
//!   [`OnError::Fail`] says so.

mod ahead;
mod bad;
mod batch;
mod cutter;
mod decode;
mod epochs;
mod file_text;
mod file_texts;
mod files;
mod followed;
mod foreign;
mod formats;
mod globs;
mod input;
#[cfg(feature = "kafka")]
mod kafka;
mod kinds;
mod layout;
mod line_reader;
mod line_rules;
mod look;
mod metered;
mod named;
mod opened;
mod pick;
mod places;
mod queue;
mod reading;
#[cfg(feature = "object-store")]
mod remote;
mod shape;
mod shapes;
mod share;
mod speed;
mod start;
mod staying;
mod tables;
mod texts;
mod whole;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub use ahead::{Ahead, Line, Peers};
pub use bad::{BadRecordAt, BadRecords, DeadLetter, OnError, Place, Tally};
pub use batch::{Batch, FileDocument, KeyedRecord, Payload, Records};
pub use decode::Decoder;
pub use epochs::{EpochRule, interval};
pub use file_text::text_of_file;
pub use files::Files;
pub use globs::listed;
pub use input::{Input, open};
#[cfg(feature = "kafka")]
pub use kafka::Kafka;
pub use kinds::{FolderKind, folder_kinds};
pub use layout::{FileFormat, IdRule, Layout, WarcId};
pub use line_rules::LineRules;
pub use look::{AsOf, Gap, Look, Tombstones};
pub use metered::InputProgress;
pub use opened::{described, refused_beginning};
pub use places::Places;
pub use queue::{Closed, EpochLimits, Queue, Refused, Room, Taken};
pub use shape::{Format, Shape};
pub use share::Share;
pub use speed::Speed;
pub use start::Start;
pub use staying::Staying;
pub use tables::{Overlap, Relation, Table};
pub use texts::{FoundText, NoText, Texts};
use thiserror::Error;
pub use whole::{for_each_event, for_each_event_until};

#[cfg(doc)]
use dupflow_core::doc::Position;
use dupflow_core::run::backlog::Backlog;
use dupflow_core::run::origins::Origins;
use dupflow_core::time::{Clock, Offsets};

/// Shows others how far the output stands for a source: up to these offsets, exclusive.
pub type Announce = Box<dyn FnMut(&Offsets) + Send>;

/// A source of events: partitions of records, dealt out to readers.
///
/// A **partition** is a sequence of records; its number names it for good. An **offset** is a record's place
/// in its partition: a number that never changes, ascends with the records, and may leave gaps. One
/// document's events are all in one partition, so that the greatest offset is that of its last event, or
/// [move](Source::ids_move); there is no order between partitions. A source that is opened again gives every
/// record the same position, and can begin a partition at any offset: then [`Batch::next`] of what was read
/// before is where it goes on.
///
/// ```text
///  epochs() ─▶ look() ─▶ begin() ─▶ readers() ─▶ each Reader::read, on a thread of its own
/// ```
///
/// Each is called once, in this order. Of several processes only the first one calls [`Self::look`] and
/// [`Self::begin`], or [`Self::begin_left`] after it, and tells the others.
pub trait Source: Send + fmt::Debug {
    /// Where the queue is to cut epochs by itself, beside where readers cut.
    fn epochs(&self) -> EpochLimits {
        EpochLimits::default()
    }

    /// Whether the readers of all processes see the same records and cut at the same ones, so that none
    /// follows another.
    fn cuts_alike(&self) -> bool {
        false
    }

    /// What it says of itself before anything else is done. Of several processes only the first one asks.
    ///
    /// # Errors
    /// That there is no such source, or it cannot be reached.
    fn look(&mut self) -> Result<Look, SourceError> {
        Ok(Look::default())
    }

    /// What of it waits to be read; `None` where that is not known.
    fn backlog(&self) -> Option<Arc<Backlog>> {
        None
    }

    /// What others are shown of how far the output stands, if they are shown anything. It is called after
    /// each commit.
    fn announcer(&self) -> Option<Announce> {
        None
    }

    /// Whether a document's events may be in several partitions, as those of a topic are to which partitions
    /// have been added. Then records should have times: the partition with the newest one of an id is
    /// followed.
    fn ids_move(&self) -> bool {
        false
    }

    /// Where each partition begins: the offset of the first record that is to be read. With `from`, of an
    /// earlier run, there, if all that follows is still held; a partition that `from` does not name begins
    /// with its first record. Without, as the source is configured.
    ///
    /// # Errors
    /// [`SourceError::Lost`] if records from there on are not held any more; that the source cannot be
    /// reached.
    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError>;

    /// The same, where records from there on are not held any more: what is left, and what is missing. As
    /// [`Self::begin`] with no offset at all, if the source cannot say what is missing.
    ///
    /// # Errors
    /// That the source cannot be reached.
    fn begin_left(&mut self, _from: &Offsets) -> Result<(Offsets, Vec<Gap>), SourceError> {
        self.begin(Some(&Offsets::new())).map(|begin| (begin, Vec::new()))
    }

    /// As of when it has been read, once it is; `None` where that is not noted. To be asked for before the
    /// readers are.
    fn as_of(&self) -> Option<Arc<AsOf>> {
        None
    }

    /// How far its readers are, in bytes; `None` where nobody counts.
    fn progress(&self) -> Option<Arc<InputProgress>> {
        None
    }

    /// Which input each record is of, where inputs follow each other; `None` where an id has one place.
    fn origins(&self) -> Option<Arc<Origins>> {
        None
    }

    /// What reads the texts of its documents back, with further fields of these names, while its readers read
    /// on; `None` where none can be had. To be asked for before the readers are.
    fn texts(&self, _fields: &[String]) -> Option<Box<dyn Texts>> {
        None
    }

    /// The readers, one or more; they begin there. Each partition is read by one of them.
    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn Reader>>;
}

/// Reads some partitions of a [`Source`].
///
/// Contract, for [`Self::read`], which is called once:
/// - It pushes the records of each partition in order of offset, in batches of one partition, bad ones
///   excepted: those that it finds itself it reports, and the batch that follows has its [`Batch::next`]
///   behind them. A batch may have no record.
/// - It returns `Ok` at the end of its input (if it has one), or once the queue says [`Closed`], which is no
///   error. It returns an error if it must not go on; then the epoch that is open is not written. It never
///   calls [`Queue::finish`].
/// - Epochs: it may cut where it wants to ([`Queue::cut`]), which ends the epoch for all readers. One that
///   has nothing to read holds no epoch open. What it has read it must push before it waits for more: what is
///   kept back is in no epoch.
/// - Lines: while [`Queue::line`] names an offset of a partition, no batch goes beyond it: one that would is
///   parted there. What follows is held back until all partitions have come to their lines, in
///   [`Queue::push`] or by [`Refused::Held`]. A partition that comes to the end of what there is, with
///   nothing to hand over, says so by a batch without records.
/// - Stalls: [`Queue::push`] waits while the workers are behind, which is how a reader is paused;
///   [`Queue::pause`] and [`Queue::wait_for_room`] wait too. All three end at once when the run does. A
///   reader that has other duties meanwhile (the heartbeat of a broker's consumer) uses [`Queue::try_push`]
///   instead, keeps the batch that is refused, and reads no more until it is taken; so at most one batch per
///   reader waits outside the queue.
/// - A reader may wait for its input for ever: it is asked to end by the queue only, at its next step, and
///   nobody waits for it.
pub trait Reader: Send {
    /// Reads to the end.
    ///
    /// # Errors
    /// What ends the run.
    fn read(&mut self, queue: &Queue, bad: &BadRecords, clock: &dyn Clock) -> Result<(), SourceError>;
}

/// The longest record in bytes, inclusive, without the end of its line; 64 MiB. A longer one is `too_long`:
/// it is passed over in pieces, so that one broken line cannot take all memory.
pub const MAX_RECORD_BYTES: usize = 64 << 20;

/// Why a source stops before its input ends.
#[derive(Debug, Error)]
pub enum SourceError {
    /// Inputs that cannot be read at all, found before anything ran: each with what is wrong.
    #[error("{}", .0.join("\n"))]
    Inputs(Vec<String>),
    /// A bad record where none is allowed.
    #[error(transparent)]
    BadRecord(#[from] BadRecordAt),
    /// Records that are still to be read are gone, or were never there.
    #[error(
        "{input}: partition {partition} is to be read from offset {wanted} on, and holds {first} to {end} (exclusive): {hint}"
    )]
    Lost {
        /// The input as the user named it.
        input: Arc<str>,
        /// The partition.
        partition: u32,
        /// The first offset that is wanted.
        wanted: u64,
        /// The first offset that is held.
        first: u64,
        /// The offset after the last one that is held.
        end: u64,
        /// What that means.
        hint: &'static str,
    },
    /// The input cannot be read on, by a cause outside.
    #[error("{input}: {what}")]
    Failed {
        /// The input as the user named it.
        input: Arc<str>,
        /// What is wrong.
        what: String,
    },
    /// A bad record cannot be kept.
    #[error("the dead-letter file \"{}\" cannot be written", path.display())]
    DeadLetter {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
