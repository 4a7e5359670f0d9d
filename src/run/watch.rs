//! Watch lists: texts that a run compares with the documents of its corpus, and the notices that result.
//!
//! A **watch** is a text with an id. A watch and a document are *similar* if the pipeline would accept them
//! as a pair; the blocks that they share have no cap, and copies of a document are noticed one by one. A
//! **notice** says that a watch and a document became similar (`diff` 1) or no longer are (-1).
//!
//! Invariant: after every epoch, the accumulated notices are the similar (watch, document) of the present
//! list and the present corpus. So they equal those of a fresh run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use dupflow_core::doc::DocId;
use dupflow_core::pair::Similarity;
use dupflow_core::time::Epoch;

/// A change of the list: a watch begins, gets another text, or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchChange {
    /// Ascends with the changes of a run; of two changes of a watch, the greater number counts.
    pub number: u64,
    /// The watch.
    pub id: DocId,
    /// Its text from now on; `None` ends the watch.
    pub text: Option<Arc<str>>,
}

/// A watch and a document that are similar.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WatchMatch {
    /// The watch.
    pub watch: DocId,
    /// The document.
    pub id: DocId,
    /// The similarity that the pipeline computes, of the watch and the document; 1 for two texts with the
    /// same sketch.
    pub similarity: Similarity,
}

/// A change of the similar watches and documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The watch and the document.
    pub of: WatchMatch,
    /// 1 or -1.
    pub diff: i8,
}

/// A notice that is durable in the file of notices.
#[derive(Clone, Debug, PartialEq)]
pub struct DurableNotice {
    /// Its number in the file, from 1.
    pub number: u64,
    /// The epoch that made it.
    pub epoch: Epoch,
    /// The notice.
    pub notice: Notice,
}

/// Who gave a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchOrigin {
    /// An input of the deployment.
    Input,
    /// A client, by `POST /watch`.
    Posted,
}

/// A watch of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchEntry {
    /// Its id.
    pub id: DocId,
    /// Who gave it.
    pub origin: WatchOrigin,
    /// The length of its text in bytes.
    pub bytes: u64,
}

/// What is known of the deliveries to a web hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookState {
    /// Notices that were accepted by the receiver.
    pub delivered: u64,
    /// Notices that the receiver refused, which are in the dead letters.
    pub refused: u64,
    /// Attempts that failed and are made again.
    pub retries: u64,
    /// Notices that are durable and not yet delivered or refused.
    pub undelivered: u64,
    /// Age of the oldest undelivered notice, in seconds; 0 if there is none. Counted from the time at which
    /// this run first knew of it.
    pub oldest_seconds: f64,
    /// Why the last attempt failed; `None` after a success.
    pub failure: Option<String>,
    /// Why the cursor, or a notice that was refused, cannot be stored; nothing is sent meanwhile.
    pub unstored: Option<String>,
}

/// What is known of a watch list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchState {
    /// Watches of the list.
    pub watches: u64,
    /// Notices in the file.
    pub notices: u64,
    /// The web hook, if there is one.
    pub hook: Option<HookState>,
}

/// Why a change of the list is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WatchRefusal {
    /// The text has no token, so that nothing would ever be similar.
    #[error("the text has no token: nothing would ever be similar to it")]
    Empty,
    /// The watch is given by an input, which alone changes it.
    #[error("an input of the list gives this watch: change it there")]
    OfInput,
    /// There is no such watch.
    #[error("there is no such watch")]
    Unknown,
    /// The deployment has no file for posted watches.
    #[error("this run keeps no posted watches: set watch.path")]
    NotKept,
    /// The run has ended or is not live yet.
    #[error("the run does not take watches now")]
    Ended,
    /// The file of posted watches cannot be written.
    #[error("the file of watches cannot be written: {0}")]
    NotDurable(String),
}

/// A watch list, as the monitor reads and changes it.
pub trait WatchBook: Send + Sync {
    /// Adds a posted watch, or replaces its text. Returns whether it is new. It is durable, and on its way to
    /// the workers, when this returns.
    ///
    /// # Errors
    /// Why the watch is refused.
    fn add(&self, id: &DocId, text: &str) -> Result<bool, WatchRefusal>;

    /// As [`Self::add`], with the text of a document as its record holds it: further fields follow, each
    /// after a [`FIELD_SEPARATOR`](dupflow_core::doc::FIELD_SEPARATOR).
    ///
    /// # Errors
    /// As [`Self::add`].
    fn add_document(&self, id: &DocId, text: &str) -> Result<bool, WatchRefusal>;

    /// Ends a posted watch. The end is durable when this returns.
    ///
    /// # Errors
    /// Why it is refused.
    fn remove(&self, id: &DocId) -> Result<(), WatchRefusal>;

    /// At most `most` watches with ids greater than `after`, in ascending order.
    fn page(&self, after: Option<&str>, most: usize) -> Vec<WatchEntry>;

    /// At most `most` of the last notices with numbers below `before`, the newest first. The oldest may no
    /// longer be in memory.
    fn notices(&self, before: Option<u64>, most: usize) -> Vec<DurableNotice>;

    /// Numbers of the list, the notices and the web hook.
    fn state(&self) -> WatchState;
}
