//! The receiver of a run whose documents are posted by clients.
//!
//! In: the body of a request, one event a line. Out: for each line what became of it, once that is known.
//! Neither side blocks: the reply is a function.

use thiserror::Error;

/// Takes the documents of clients.
pub trait DocumentReceiver: Send + Sync {
    /// Takes the lines of a body. What was taken is durable in the journal when `reply` is called. Returns
    /// the number of the body.
    fn post(&self, body: PostedBody, reply: PostReply) -> u64;

    /// Ends the wait of the body of this number. If its lines are stored, `reply` has been called on return;
    /// else they will not be, except in the moment in which they are being written.
    fn cancel(&self, body: u64);
}

/// A body as a client has sent it.
#[derive(Clone, Debug, Default)]
pub struct PostedBody {
    /// Its bytes, which may be compressed with gzip or zstd.
    pub bytes: Vec<u8>,
    /// Most bytes that it may have, decompressed too.
    pub most: usize,
    /// When it is answered.
    pub wait: PostWait,
    /// Of bodies with one key only the first is stored, whoever sends them.
    pub key: Option<String>,
}

/// When the lines of a body are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PostWait {
    /// When they are stored: without their decisions.
    Stored,
    /// When their epoch is computed.
    Closed,
    /// When that is durable in the first output.
    #[default]
    Durable,
}

/// Receives the reply; must neither block nor panic.
pub type PostReply = Box<dyn FnOnce(Result<PostedLines, PostRefusal>) + Send>;

/// What became of the lines of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostedLines {
    /// One JSON object for each line, in their order.
    pub answers: Vec<String>,
    /// How many of them are bad records.
    pub bad: usize,
    /// Whether all are decided; else some are only stored.
    pub are_decided: bool,
}

/// Why nothing of a body was taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PostRefusal {
    /// It has no line.
    #[error("the body has no line")]
    Empty,
    /// It cannot be decompressed.
    #[error("the body cannot be decompressed: {0}")]
    Damaged(String),
    /// It has too many bytes.
    #[error("the body has more than {0} bytes, decompressed (monitor.body_bytes, at most 16 MiB)")]
    TooLarge(usize),
    /// Its key was that of another body.
    #[error("another body was posted with this Idempotency-Key: a key is of one body, sent again as it was")]
    OtherBody,
    /// Too much waits.
    #[error("too many documents wait (source.waiting)")]
    Full,
    /// It cannot be stored.
    #[error("the documents cannot be stored: {0}")]
    NotStored(String),
    /// The run ends.
    #[error("the run ends")]
    Ended,
}
