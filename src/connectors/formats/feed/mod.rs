//! Parses the lines of a recorded feed: one JSON event per line.
//!
//! ```text
//! {"id":"…","op":"upsert","ts":1700000000,"text":"…"}
//! {"id":"…","op":"delete","ts":1700000000.5}
//! ```
//!
//! A line (bytes, UTF-8) -> a [`FeedRecord`] that borrows its text, or the reason why the line is bad.
//!
//! - `id`: a string of 1 to [`DocId::MAX_BYTES`](dupflow_core::doc::DocId::MAX_BYTES) bytes after its escapes
//!   are resolved. Used verbatim, including NUL and newline.
//! - `op`: `"upsert"` (also if absent) or `"delete"`.
//! - `ts`: unix seconds (a number), or an ISO 8601 date (a string); optional.
//! - `text`: a string; required in an upsert, ignored in a delete.
//! - Further fields, by the names that the caller gives: strings, ignored in a delete, empty if absent. They
//!   follow the text, each after a [`FIELD_SEPARATOR`](dupflow_core::doc::FIELD_SEPARATOR).
//! - Other fields are ignored. Of a repeated field the last one counts. `null` is not the same as absent.
//!
//! What it does not do: split the input into lines, count, or log; [`crate::intake`] does.

mod array;
mod fields;
mod format;
mod json;
mod line_reader;
mod line_rules;
mod record;
mod strings;
mod usual;

pub(super) use array::JSON_ARRAY;
pub use fields::FieldNames;
pub(super) use format::JSON_LINES;
pub(crate) use line_reader::LineReader;
pub use line_rules::LineRules;
pub(crate) use line_rules::numbered;
pub use record::{FeedRecord, Parser, timestamp, write};
