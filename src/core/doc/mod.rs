//! Documents and the events that change them.
//!
//! A corpus is the result of a sequence of events: the last event of each id, by its [`Position`], decides. A
//! [retention] lets documents expire.

pub mod changes;
mod event;
pub mod fields;
mod id;
pub mod retention;
mod separator;
pub mod units;

pub use event::{DocChange, DocEvent, Facts, Letter, Position, UpsertEffect, UpsertedDoc};
pub use id::DocId;
pub use separator::{FIELD_SEPARATOR, without_separators};
