//! Reads the text of a document back from its source. No part of a run keeps texts.
//!
//! A document's id and the [`Position`] of its last event -> its text, as the [`Decoder`](super::Decoder)
//! reads it from that record: further fields follow, each after a
//! [`FIELD_SEPARATOR`](dupflow_core::doc::FIELD_SEPARATOR). The id is compared. If another record is at the
//! position by now, or none, the text is [`NoText::Gone`].
//!
//! How many bytes one call reads at most, and so how long it takes, is documented with each source:
//! `inputs::texts`, `kafka`, `tables`. A call blocks on the source, so it needs its own thread.

use thiserror::Error;

use crate::formats::BadRecord;
use dupflow_core::doc::{DocEvent, DocId, Position};

/// Reads texts back from a source.
pub trait Texts: Send {
    /// The text of the document whose last event is at this position.
    ///
    /// # Errors
    /// Why the text cannot be read.
    fn text(&mut self, id: &DocId, position: Position) -> Result<FoundText, NoText>;
}

/// A text, perhaps truncated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundText {
    /// The text, or its beginning.
    pub text: String,
    /// Whether the text was longer than [`FoundText::MOST_BYTES`].
    pub truncated: bool,
    /// Where the text stands, in the words of its source: a file and its line (`feed.jsonl:12`) or row, a
    /// topic with partition and offset, a table.
    pub place: Option<String>,
}

impl FoundText {
    /// The maximum length of a returned text in bytes, inclusive: 4 MiB.
    pub const MOST_BYTES: usize = 4 << 20;

    /// A text, truncated between two characters if it is too long.
    pub(crate) fn new(text: &str) -> Self {
        let end = text.floor_char_boundary(Self::MOST_BYTES);
        Self { text: text[..end].to_owned(), truncated: end < text.len(), place: None }
    }

    /// The same text, with its place.
    pub(crate) fn at(self, place: String) -> Self {
        Self { place: Some(place), ..self }
    }
}

/// Why there is no text; the message is one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoText {
    /// The source does not have the text any more.
    #[error("{0}")]
    Gone(String),
    /// The source cannot read texts back.
    #[error("{0}")]
    Unsupported(String),
    /// The text cannot be read at present; a later call may succeed.
    #[error("{0}")]
    Failed(String),
}

/// The text of the event that was read from a record, if that is the document's.
pub(crate) fn of_event(
    id: &DocId,
    place: &str,
    event: Result<DocEvent<'_>, BadRecord>,
) -> Result<FoundText, NoText> {
    let gone = |what| Err(NoText::Gone(format!("{place} holds {what} now: the input has changed")));
    match event {
        Ok(DocEvent { id: found, .. }) if found != *id => gone("another document"),
        Ok(DocEvent { text: Some(text), .. }) => Ok(FoundText::new(&text)),
        Ok(DocEvent { text: None, .. }) => gone("a delete"),
        Err(_) => gone("no event"),
    }
}
