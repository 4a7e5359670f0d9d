//! Documents and the events that change them.
//!
//! A corpus is what is left after a sequence of events: the last event of an id wins, by its [`Position`].

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name of a document: UTF-8, 1 to [`DocId::MAX_BYTES`] bytes, kept verbatim from input to output.
///
/// Ordered by bytes. Clones share the text, so that an id is stored once however many operators hold it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DocId(Arc<str>);

impl DocId {
    /// The longest id, in bytes, inclusive.
    pub const MAX_BYTES: usize = 1024;

    /// Accepts an id of 1 to [`Self::MAX_BYTES`] bytes; `None` for any other length.
    pub fn new(id: &str) -> Option<Self> {
        (1..=Self::MAX_BYTES).contains(&id.len()).then(|| Self(id.into()))
    }

    /// The id as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for DocId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Where an event stands in its source: a partition, and an offset within it.
///
/// Offsets of a partition ascend in the order of its events and may have gaps; bad records have one too. Between partitions
/// there is no order in time: what counts as the last event of an id is decided within the one partition that the id lives in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The partition. A recorded feed is partition 0, all its inputs together.
    pub partition: u32,
    /// The offset within it. In a recorded feed records are numbered from 0 over all inputs in order, bad ones included.
    pub offset: u64,
}

/// Stands before each further field of an event's text: the record separator of ASCII.
pub const FIELD_SEPARATOR: char = '\u{1e}';

/// A text that has none of [`FIELD_SEPARATOR`], each being replaced by a space: both part tokens, neither is in one.
pub fn without_separators(text: &str) -> Cow<'_, str> {
    if text.contains(FIELD_SEPARATOR) { text.replace(FIELD_SEPARATOR, " ").into() } else { text.into() }
}

/// One event, borrowing its text from the buffer that it was read into.
#[derive(Clone, Debug, PartialEq)]
pub struct DocEvent<'a> {
    /// Whose event it is.
    pub id: DocId,
    /// When it happened, in unix seconds as the source says; `None` if it does not.
    pub ts: Option<f64>,
    /// The text now in force, or `None` for a delete. Where further fields are read, each follows it after a
    /// [`FIELD_SEPARATOR`], in their order; then none is within a part.
    pub text: Option<Cow<'a, str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_one_to_1024_bytes() {
        assert!(DocId::new("").is_none());
        assert!(DocId::new("a").is_some());
        assert!(DocId::new(&"é".repeat(512)).is_some());
        assert!(DocId::new(&"é".repeat(513)).is_none());
    }

    #[test]
    fn separators_become_spaces() {
        assert_eq!(without_separators("a\u{1e}\u{1e}b\u{1f}"), "a  b\u{1f}");
        assert!(matches!(without_separators("a b"), Cow::Borrowed("a b")));
    }
}
