//! Documents and the events that change them.
//!
//! A corpus is the result of a sequence of events: the last event of each id, by its [`Position`], decides. A
//! [retention] lets documents expire.

pub mod changes;
mod event;
mod id;
pub mod retention;

pub use event::{
    DocChange, DocEvent, FIELD_SEPARATOR, Facts, Letter, Position, UpsertedDoc, without_separators,
};
pub use id::DocId;
