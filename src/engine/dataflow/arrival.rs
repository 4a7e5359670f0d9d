//! Arrivals: what travels of an event once it is sketched.

use serde::{Deserialize, Serialize};

use super::key::Key;
use dupflow_core::doc::{DocId, Facts, Position};
use dupflow_core::hash::SketchId;
use dupflow_core::sketch::Sketch;
use dupflow_core::text::Terms;

/// What an event asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Content {
    /// The document ends.
    Delete,
    /// The text in force has no token.
    Empty,
    /// The text in force has this sketch.
    Sketch(SketchId, Box<Sketch>),
    /// The text in force has these terms, and is sketched once they are weighed.
    Terms(Box<Terms>),
}

/// A sketched event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Arrival {
    /// Hash of the id: routes the record, finds the document.
    pub(super) hash: u64,
    pub(super) id: DocId,
    pub(super) position: Position,
    /// In unix seconds, if the source has it.
    pub(super) ts: Option<f64>,
    pub(super) content: Content,
    /// The length of its text, as [`Facts::bytes`].
    pub(super) bytes: u32,
    /// It was kept by an earlier run.
    pub(super) is_restored: bool,
    /// The key that it gives its document, if that is not of its `ts` and position: of a record that was
    /// written at another time, or kept.
    pub(super) key: Option<Box<Key>>,
}

impl Arrival {
    /// What it tells of its document.
    pub(super) fn facts(&self) -> Facts {
        Facts { ts: self.ts, bytes: self.bytes, position: self.position }
    }

    /// The key that it gives its document.
    pub(super) fn key(&self) -> Key {
        self.key.as_ref().map_or_else(|| Key::of(self.ts, self.position), |key| **key)
    }
}
