//! The recorded feed: one event a line, as JSON.
//!
//! ```text
//! {"id":"…","op":"upsert","ts":1700000000,"text":"…"}
//! {"id":"…","op":"delete","ts":1700000000.5}
//! ```
//!
//! A line (bytes, UTF-8) comes in; a [`Record`] that borrows its text, or the reason why there is none, goes
//! out.
//!
//! - `id`: a string of 1 to [`DocId::MAX_BYTES`](dupflow_core::doc::DocId::MAX_BYTES) bytes after its escapes are
//!   resolved, kept verbatim, NUL and newline included.
//! - `op`: `"upsert"` (also if absent) or `"delete"`.
//! - `ts`: unix seconds, a number, or a date of ISO 8601, a string; optional.
//! - `text`: a string; required by an upsert, not looked at in a delete.
//! - Further fields that are asked for by name: strings, not looked at in a delete; absent is empty. They
//!   follow the text, each after a [`FIELD_SEPARATOR`](dupflow_core::doc::FIELD_SEPARATOR).
//! - Other fields are ignored. Of a repeated field the last one counts. `null` is not the same as absent.
//!
//! What it does not do: cut the input into lines, count, or log; that is [`crate::source`]'s part.

mod bad;
mod fields;
mod json;
mod record;
mod strings;
mod usual;

pub use bad::BadRecord;
pub use fields::Names;
pub use record::{Parser, Record, timestamp, write};
