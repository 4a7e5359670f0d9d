//! Events of documents, their positions, and records that are not valid events.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::DocId;
use super::fields::{EventFields, FieldRow};
use super::units::UnitFacts;

/// The position of an event in its source: a partition, and an offset within it.
///
/// Offsets of a partition ascend in the order of its events and may have gaps; invalid records have offsets
/// too. Partitions are not ordered in time: the last event of an id is decided within one partition, the home
/// of the id. `engine/dataflow/documents/homes.rs` has the rule for ids that move between partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The partition. A recorded feed is partition 0, all its inputs together.
    pub partition: u32,
    /// The offset within it. In a recorded feed records are numbered from 0 over all inputs in order, invalid
    /// ones included.
    pub offset: u64,
}

/// A dead letter: a record that is not a valid event, sent to the dead-letter output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    /// The input as the user named it: a file, a topic.
    pub input: Arc<str>,
    /// Its position in the source.
    pub position: Position,
    /// Why it is not valid, in one word.
    pub reason: Cow<'static, str>,
    /// Its key, if it has one.
    pub key: Option<Vec<u8>>,
    /// Its value or line, as it was read; `None` if it has none.
    pub raw: Option<Vec<u8>>,
    /// Whether records behind it are lost with it, of which the number is not known.
    pub hides_records: bool,
}

/// The facts of a live document besides its text, from its last event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// Time of the event in unix seconds, from the source; `None` if the source has none.
    pub ts: Option<f64>,
    /// The length of the text as it was read, in bytes; 2^32 - 1 also for all longer texts. 0 also for a
    /// document restored from the state of a program version that did not store lengths.
    pub bytes: u32,
    /// Its position in the source.
    pub position: Position,
}

impl Eq for Facts {}

impl PartialEq for Facts {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl PartialOrd for Facts {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Facts {
    fn cmp(&self, other: &Self) -> Ordering {
        // A place may store no sign of a zero.
        let ts = |facts: &Self| facts.ts.map(|ts| ts + 0.0);
        let of_time = match (ts(self), ts(other)) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        of_time.then(self.bytes.cmp(&other.bytes)).then(self.position.cmp(&other.position))
    }
}

/// The change of a document in an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DocChange {
    /// The document.
    pub id: DocId,
    /// Its facts after the epoch; `None` if it is no longer alive.
    pub now: Option<Facts>,
    /// Its fields after the epoch, in the order of `source.fields`, of those that the run holds; empty if it
    /// is no longer alive.
    pub fields: FieldRow,
    /// The first word of its sketch after the epoch; `None` if it is no longer alive, if its text has no
    /// token, and under weights that follow the corpus.
    pub word: Option<u64>,
    /// What else is known, if the document is a unit of another one.
    pub unit: Option<UnitFacts>,
}

impl DocChange {
    /// The end of a document.
    pub fn end(id: DocId) -> Self {
        Self { id, now: None, fields: FieldRow::default(), word: None, unit: None }
    }
}

/// A document with an upsert in an epoch, whether it is alive after the epoch or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpsertedDoc {
    /// The document.
    pub id: DocId,
    /// The position of its last event in the epoch, which may be a delete.
    pub position: Position,
    /// What the epoch did to it.
    pub effect: UpsertEffect,
    /// Whether its text has no token, or too few to be similar to any but its copies.
    pub is_too_short: bool,
}

/// What an epoch with an upsert of a document did to it, from its least to its greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UpsertEffect {
    /// It is alive, and all that is compared of it is as before.
    Unchanged,
    /// It was alive; what it was is not held, so nothing more is known.
    Sent,
    /// It was alive, and its text or its fields are others.
    Changed,
    /// It was not alive before.
    New,
    /// It is not alive.
    Ended,
}

/// An event; it borrows its text from the buffer of the reader.
#[derive(Clone, Debug, PartialEq)]
pub struct DocEvent<'a> {
    /// The document.
    pub id: DocId,
    /// Time of the event in unix seconds, from the payload; `None` if it has none.
    pub ts: Option<f64>,
    /// Time when its record was written, in unix seconds, for records of a topic with time stamps. This time,
    /// not `ts`, decides between partitions.
    pub written: Option<f64>,
    /// The new text, or `None` for a delete. If further fields are read, they follow in their order, each
    /// after a [`FIELD_SEPARATOR`](super::FIELD_SEPARATOR); the fields themselves then contain no separator.
    pub text: Option<Cow<'a, str>>,
    /// The fields of the document that are read; empty for a delete.
    pub fields: EventFields,
}
