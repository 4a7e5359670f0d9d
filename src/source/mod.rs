//! Where events come from: inputs in, [batches](Batch) of raw records out, cut into epochs.
//!
//! ```text
//!  inputs ──▶ Files (one thread) ──▶ Queue ──▶ Decoder (each worker) ──▶ events
//!             cuts records, epochs    bounded    reads JSON and files
//! ```
//!
//! One thread only finds the ends of records, which costs little more than reading the bytes; all that costs more (JSON,
//! files of a folder) is done by the workers, each for the batches that it pulls.
//!
//! Invariants:
//! - Every record, good or bad, has one [`Position`]: 0, 1, 2, … over all inputs in order. Blank lines have none.
//! - Epochs are numbered from 1 without gaps, ascend with the positions, and no batch crosses one.
//! - A record that is no event is reported to [`BadRecords`] exactly once, and never ends the run unless
//!   [`OnError::Fail`] says so.

mod bad;
mod batch;
mod cutter;
mod decode;
mod epochs;
mod files;
mod input;
mod queue;
mod read;
mod speed;
mod whole;

use std::io;
use std::path::PathBuf;

pub use bad::{BadRecordAt, BadRecords, DeadLetter, OnError};
pub use batch::{Batch, FileDocument, Payload};
pub use decode::Decoder;
pub use epochs::EpochRule;
pub use files::{Files, Totals};
pub use input::{Input, open};
pub use queue::{Closed, Pull, Queue};
pub use read::read;
pub use speed::Speed;
use thiserror::Error;
pub use whole::for_each_event;

#[cfg(doc)]
use crate::doc::Position;

/// The longest record in bytes, inclusive, without the end of its line; 64 MiB. A longer one is `too_long`: it is passed
/// over in pieces, so that one broken line cannot take all memory.
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
    /// A bad record cannot be kept.
    #[error("the dead-letter file \"{}\" cannot be written", path.display())]
    DeadLetter {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
