//! Watch lists: where watches come from, where their notices go.
//!
//! ```text
//!  inputs ── given ─┐                                      ┌─▶ board ──▶ monitor
//!  POST /watch ─ journal ─▶ list ── Queue ─▶ dataflow ─▶ NoticeFile ─▶ hook ──▶ receiver
//! ```
//!
//! The [`WatchList`] is the list of one run. Watches of inputs are read whole, at the start and again every
//! so often; posted ones are kept as texts in a journal, since no input repeats them and another
//! pipeline must be able to sketch them anew. Every start gives the whole list to the dataflow before the
//! first document.
//!
//! The [`NoticeFile`] holds the notices. It compares itself, at the start, with what the restored corpus
//! gives: so it is right after a crash between two of its writes and after a change of the list meanwhile.
//! What is in it is durable, and it is the queue of the [web hook](hook): a receiver that is down costs no
//! memory.

mod given;
#[cfg(feature = "webhook")]
pub mod hook;
mod journal;
mod list;
mod notice_board;
mod notice_file;

pub use given::{GivenList, GivenWatches, OpenGiven};
pub use journal::WatchJournal;
pub use list::{WatchList, WatchedRun};
pub use notice_board::NoticeBoard;
pub use notice_file::{NoticeFile, NoticeLine};
