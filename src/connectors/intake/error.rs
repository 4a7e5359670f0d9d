//! Errors that end the reading of a source.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

use thiserror::Error;

use crate::formats::{BadRecord, RecordPlace};

/// Why a source stops before its input ends.
#[derive(Debug, Error)]
pub enum SourceError {
    /// Inputs that cannot be read at all, found before the run begins: one message for each.
    #[error("{}", .0.join("\n"))]
    Inputs(Vec<String>),
    /// Inputs that are not as an earlier run has read them, and what to do.
    #[error("{0}")]
    Changed(String),
    /// A bad record under [`OnError::Fail`](super::OnError::Fail).
    #[error(transparent)]
    BadRecord(#[from] BadRecordAt),
    /// Records that are still to be read no longer exist, or never did.
    #[error(
        "{input}: partition {partition} is to be read from offset {wanted} on, and holds {first} to {end} \
         (exclusive): {hint}"
    )]
    Lost {
        /// The input as the user named it.
        input: Arc<str>,
        /// The partition.
        partition: u32,
        /// The first offset that the run needs.
        wanted: u64,
        /// The first offset that the source has.
        first: u64,
        /// The offset after the last one that the source has.
        end: u64,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// The input cannot be read any further, for an external reason.
    #[error("{input}: {what}")]
    Failed {
        /// The input as the user named it.
        input: Arc<str>,
        /// The cause.
        what: String,
    },
    /// The dead-letter file cannot be written.
    #[error("the dead-letter file \"{}\" cannot be written", path.display())]
    DeadLetter {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A bad record, its place and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct BadRecordAt {
    /// The reason.
    pub reason: BadRecord,
    /// The input as the user named it, or the file of a folder.
    pub input: Arc<str>,
    /// Its place in the input.
    pub place: RecordPlace,
    /// The message of the system or the decompressor, if there is one.
    pub cause: Option<String>,
}

impl BadRecordAt {
    /// Whether records behind it, of which the number is not known, are lost with it: all of a file, or what
    /// is behind its damage.
    pub fn hides_records(&self) -> bool {
        match self.reason {
            BadRecord::Truncated => true,
            BadRecord::Unreadable => {
                matches!(self.place, RecordPlace::Whole | RecordPlace::From(_) | RecordPlace::FromByte(_))
            }
            _ => false,
        }
    }
}

impl fmt::Display for BadRecordAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad record in \"{}\"", self.input)?;
        match self.place {
            RecordPlace::Line(line) => write!(f, ", line {line}")?,
            RecordPlace::Offset(offset) => write!(f, ", offset {offset}")?,
            RecordPlace::Record(record) | RecordPlace::From(record) => write!(f, ", record {record}")?,
            RecordPlace::Byte(byte) | RecordPlace::FromByte(byte) => write!(f, ", byte {byte}")?,
            RecordPlace::Whole => {}
        }
        write!(f, ": {} ({})", self.reason, self.reason.reason())?;
        if let Some(cause) = &self.cause {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}
