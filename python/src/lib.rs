//! The module `dupflow._dupflow`: Arrow tables in, Arrow tables out. `_dupflow.pyi` documents it.
//!
//! ```text
//!  caller's thread              reader        workers        committer
//!  frame ─ events ─▶ Inbox ──▶ Queue ──▶ decode ─ dataflow ──▶ Collected ─▶ Table
//! ```
//!
//! Invariants:
//! - Only the thread of a caller runs Python. Threads of a run hold no reference to an object of Python, and
//!   no buffer of a frame: events are copied out of a batch before they are queued.
//! - A caller that waits releases the GIL, and takes it again at least every 50 ms to look for
//!   signals.
//! - What a run has started has ended when the call returns that closes or abandons it, but for a reader of
//!   files that waits for its input: it ends with the next record.

#![expect(clippy::shadow_unrelated, reason = "an argument of Python and what is made of it have one name")]

include!("module.rs");
