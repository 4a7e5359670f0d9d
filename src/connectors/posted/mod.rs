//! Documents that clients post: a journal of their lines, which the run reads as a file that grows, and what
//! became of each line.
//!
//! ```text
//!  body ─▶ PostReceiver ─▶ journal (thread) ─▶ file, fsync ─▶ reader of files ─▶ … ─▶ output ─▶ PostedSink
//!                              │                                                                  │
//!                              ╰────────── lines that wait, by number ◀──────────────────────────╯ reply
//! ```
//!
//! The journal is a feed: it decides everything, is all that a restart needs, and can be replayed. Bodies
//! that arrive together are written and synced together. The reader sees only what is durable, and a line is
//! awaited before it is: so none is read that could be lost, and none is durable that nobody waits for.
//!
//! An answer is the [decision](crate::sinks::Decision) of the document as it is in the first output then,
//! with what the line did to the document.

mod journal;
mod keys;
mod receiver;
mod waiting;

pub use receiver::{PostReceiver, PostReceiverSettings};
pub use waiting::PostedSink;
