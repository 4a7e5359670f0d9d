//! Writers: the other processes of a run, which write their share of a state that one process owns.
//!
//! ```text
//! owner ── Store: changes through an epoch ──▶ writer ── its delta ──▶ owner: manifest n lists all deltas
//!       ── Published ────────────────────────▶
//!       ── Rebase: some groups ──────────────▶        ── their bases ▶        listed in a later manifest
//! ```
//!
//! The owner lists the files of writers in its manifests, and removes what was listed. A writer removes only
//! deltas that the owner is certain not to have listed. A file that is never listed stays until the next
//! owner has opened the state. The documents of two writers are disjoint, so the order of the deltas of one
//! publish does not matter.
//!
//! A writer hands a delta over with every reply until the owner has published it. So a publish that failed is
//! repeated without its changes being written twice.

mod asked;
mod writer;

use std::fmt::Debug;
use std::io;

use serde::{Deserialize, Serialize};

pub(super) use asked::AskedWriters;
pub use writer::{SharedState, StateWriter};

use super::StateError;
use super::compaction::CompactionResult;
use super::manifest::Manifest;
use super::segment::SegmentFile;
use dupflow_core::time::Epoch;

/// The owner of a state, as the other processes recognise its state: by the manifest with which it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateOwner {
    pub(super) owner: u64,
    pub(super) number: u64,
}

/// The writers of a run, as the owner reaches them, numbered from 0.
///
/// Contract: tasks reach a writer in the order in which they are sent.
pub trait StateWriters: Debug + Send + Sync {
    /// Their number.
    fn count(&self) -> usize;

    /// Their name for messages.
    fn name(&self, writer: usize) -> String;

    /// Sends a task. Does not wait.
    fn send(&self, writer: usize, task: WriterTask);

    /// Waits for the reply to a task, by its number. `None` if the run has failed.
    fn reply(&self, writer: usize, serial: u64) -> Option<WriterReply>;
}

/// A task of a writer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriterTask {
    /// Its number; the reply has it too.
    serial: u64,
    work: WriterWork,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum WriterWork {
    /// Store the changes of the epochs through this one, inclusive.
    Store { through: Epoch },
    /// All deltas of the last reply are published.
    Published,
    /// Remove the deltas that are not published, except those listed, and store their changes the next time.
    Discard { listed: Vec<String> },
    /// Write new bases of these groups.
    Rebase { manifest: Box<Manifest>, groups: Vec<u8> },
    /// End a rebase at the next shard.
    Stop,
}

/// The reply to a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriterReply {
    /// The number of the task.
    pub serial: u64,
    done: WriterDone,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum WriterDone {
    /// The process does not reach the state, so the owner has all its changes.
    Unreached,
    /// The deltas that the owner has not published.
    Stored(Result<Vec<SegmentFile>, WriterFailure>),
    /// New bases, and why there are not more.
    Rebased { bases: Vec<CompactionResult>, failure: Option<WriterFailure> },
}

/// Why a writer could not write.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct WriterFailure {
    /// The file, if there is one.
    file: Option<String>,
    what: String,
    is_full: bool,
}

impl WriterReply {
    /// The reply of a process that does not reach the state; `None` if the task has none.
    pub fn unreached(task: &WriterTask) -> Option<Self> {
        let has_reply = matches!(task.work, WriterWork::Store { .. } | WriterWork::Rebase { .. });
        has_reply.then_some(Self { serial: task.serial, done: WriterDone::Unreached })
    }
}

impl WriterFailure {
    fn new(error: &StateError) -> Self {
        match error {
            StateError::Io { file, source } => {
                Self { file: Some(file.clone()), what: source.to_string(), is_full: error.is_full() }
            }
            error => Self::other(error.in_full()),
        }
    }

    fn other(what: String) -> Self {
        Self { file: None, what, is_full: false }
    }

    /// The error at the owner.
    fn into_error(self, writer: &str) -> StateError {
        let kind = if self.is_full { io::ErrorKind::StorageFull } else { io::ErrorKind::Other };
        let file = self.file.map_or_else(|| writer.to_owned(), |file| format!("{file}\" of \"{writer}"));
        StateError::Io { file, source: io::Error::new(kind, self.what) }
    }
}
