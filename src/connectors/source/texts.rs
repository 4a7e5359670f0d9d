//! The text of a document, read back from where its last event stands in its source: nothing in a run keeps
//! one.
//!
//! A document's id and the [`Position`] of its last event in, the text out, as the
//! [`Decoder`](super::Decoder) makes it of that record: further fields follow it, each after a
//! [`FIELD_SEPARATOR`](dupflow_core::doc::FIELD_SEPARATOR). The id is compared: where another record stands by now,
//! or none, the text is gone.
//!
//! Which bytes are read, at most, and so how long an answer takes, is said where the source is: `file_texts`,
//! `kafka/texts`. Each call waits for its source; whoever asks has a thread for it.

use thiserror::Error;

use crate::feed::BadRecord;
use dupflow_core::doc::{DocEvent, DocId, Position};

/// Reads texts back.
pub trait Texts: Send {
    /// The text of a document whose last event stands at this position.
    ///
    /// # Errors
    /// Why there is none.
    fn text(&mut self, id: &DocId, position: Position) -> Result<FoundText, NoText>;
}

/// A text that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundText {
    /// The text, or the beginning of it.
    pub text: String,
    /// Whether it goes on: it has more than [`FoundText::MOST_BYTES`].
    pub truncated: bool,
}

impl FoundText {
    /// The most bytes of a text that are given, inclusive: 4 MiB.
    pub const MOST_BYTES: usize = 4 << 20;

    /// A text, cut between two characters if it is too long.
    pub(super) fn of(text: &str) -> Self {
        let end = text.floor_char_boundary(Self::MOST_BYTES);
        Self { text: text[..end].to_owned(), truncated: end < text.len() }
    }
}

/// Why there is no text, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoText {
    /// The source does not hold it any more.
    #[error("{0}")]
    Gone(String),
    /// The source cannot be asked for it.
    #[error("{0}")]
    Unsupported(String),
    /// It cannot be read at this moment; another time it may be.
    #[error("{0}")]
    Failed(String),
}

/// The text of the event that a record is read as, if it is the document's.
pub(super) fn of_event(
    id: &DocId,
    place: &str,
    event: Result<DocEvent<'_>, BadRecord>,
) -> Result<FoundText, NoText> {
    let gone = |what| Err(NoText::Gone(format!("{place} holds {what} now: the input has changed")));
    match event {
        Ok(DocEvent { id: found, .. }) if found != *id => gone("another document"),
        Ok(DocEvent { text: Some(text), .. }) => Ok(FoundText::of(&text)),
        Ok(DocEvent { text: None, .. }) => gone("a delete"),
        Err(_) => gone("no event"),
    }
}
