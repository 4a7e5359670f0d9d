//! Queries in the dataflow: they are compared with the documents, and change nothing.
//!
//! ```text
//!  ingest ── resolved ─┬─ Enter ─ probes ─▶ Blocks ─ comparisons ─▶ Compare ─┬─▶ Answer ─▶ reply
//!  (text to sketch)    │    └───── partial answers ──┴───────────────────────┘
//!     └── by id ─ Find ┘                                   on the worker that admitted the query
//!          (documents)
//! ```
//!
//! A query enters at the time e of an epoch that is open, and its answer is of the corpus after e - 1.
//! "Blocks" holds its probes until all of e - 1 is in the blocks, and handles them before any record of e: it
//! finds the sketches that the query *would* share a block with. Comparisons are sent to the owners of these
//! sketches, which compare and read the members as of e - 1. Like all records at e, the query keeps epoch e
//! open for the operators downstream of it. So the sketches that it names are still stored (see
//! [`sketches`](super::sketches)). Epochs last about a hundred milliseconds, a query takes a few.
//!
//! No step of a query waits for an epoch to close. "Answer" counts: "Enter" announces the number of probes,
//! each answered probe announces its number of comparisons, and every comparison has one partial answer.
//!
//! An id query first goes to the worker of the document. "Find" reads the document as of the last epoch that
//! was applied there, and sends the query on at the time of the next epoch; so the answer is of that applied
//! epoch. The answer holds the pairs that the document is in.
//!
//! The answer to a text query holds the pairs that a new document with this text would be in, if its id
//! sorted after all others. This also holds where blocks are hot, or would become so, and where copies are a
//! star.

mod admit;
mod answer;
mod enter;
mod find;

use serde::{Deserialize, Serialize};

pub(super) use admit::Admission;
pub(super) use answer::{PendingQueries, answer};
pub(super) use enter::enter;
pub(super) use find::find;

use super::acceptance::Accepted;
use dupflow_core::block::BlockKey;
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::sketch::Sketch;
use dupflow_core::text::Terms;
use dupflow_run::query::LastEvent;

/// Identifies a query: the worker that admitted it, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueryId {
    worker: u64,
    number: u64,
}

/// A query about a document, on its way to the document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct IdQuery {
    pub(super) query_id: QueryId,
    pub(super) top: usize,
    /// Hash of the id: selects the worker and finds the document.
    pub(super) hash: u64,
    pub(super) id: DocId,
}

/// A query whose subject is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ResolvedQuery {
    pub(super) query_id: QueryId,
    /// Most documents in the answer.
    pub(super) top: usize,
    /// The document that an id query is about, and what is known of it, if it is alive.
    pub(super) document: Option<(DocId, LastEvent)>,
    pub(super) subject: QuerySubject,
}

/// What a query is compared by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum QuerySubject {
    /// Nothing: a text without a token, or without a feature of any weight; or no live document.
    Nothing,
    /// This sketch.
    Sketch(SketchId, Box<Sketch>),
    /// Terms, to be weighted by the table in force.
    Terms(Box<Terms>),
    /// The sketch of the document, stored by the sketch's owner: the low half of its id.
    Stored(u64),
    /// The sketch of the document at this place among the weighted documents of this worker.
    Weighed(u32),
}

/// A query with its sketch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SketchedQuery {
    pub(super) query_id: QueryId,
    pub(super) top: usize,
    /// The document whose sketch it is: the answer does not list it.
    pub(super) document: Option<DocId>,
    pub(super) id: SketchId,
    pub(super) sketch: Sketch,
}

/// A query at the blocks of one worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Probe {
    /// The index of that worker.
    pub(super) to: u64,
    pub(super) query: SketchedQuery,
    /// The query's keys that the worker owns.
    pub(super) keys: Vec<BlockKey>,
}

/// A query to be compared with sketches that one worker owns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct QueryComparison {
    /// The index of that worker.
    pub(super) to: u64,
    pub(super) query: SketchedQuery,
    /// The candidates. For the owner of the query's own sketch, that sketch is one of them, for its copies.
    pub(super) candidates: Vec<SketchId>,
}

/// A part of an answer, sent to the worker that admitted the query.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PartialAnswer {
    pub(super) query_id: QueryId,
    pub(super) part: AnswerPart,
}

/// What a [`PartialAnswer`] says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum AnswerPart {
    /// From "Enter": whether the query has a sketch, the number of probes, and what is known of the document.
    Entered { sketched: bool, probes: usize, document: Option<LastEvent> },
    /// From "Blocks", for one probe: the number of comparisons that follow.
    Compared(usize),
    /// From "Compare", for one comparison: the matches.
    Matches(Vec<QueryMatch>),
    /// From the owner of the query's sketch: the sketch has so many copies that the query would not represent
    /// it. The query's only pair is the one with the copy that does.
    Hidden(QueryMatch),
}

/// A sketch that a query is paired with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct QueryMatch {
    pub(super) sketch: SketchId,
    pub(super) accepted: Accepted,
    /// Its visible documents: those of the least ids, at most `top`.
    pub(super) documents: Vec<DocId>,
    /// The number of further visible documents.
    pub(super) more: usize,
}

impl ResolvedQuery {
    /// The worker that sends the query to the blocks: the owner of the stored sketch or, if the query has its
    /// own, the one that admitted it.
    fn owner(&self) -> u64 {
        match self.subject {
            QuerySubject::Stored(low) => low,
            _ => self.query_id.worker,
        }
    }
}

impl QueryMatch {
    /// A sketch with its visible documents.
    pub(super) fn new(sketch: SketchId, accepted: Accepted, documents: &mut Vec<&DocId>, top: usize) -> Self {
        let more = documents.len().saturating_sub(top);
        if more > 0 {
            documents.sort_unstable();
            documents.truncate(top);
        }
        let documents = documents.iter().map(|document| (*document).clone()).collect();
        Self { sketch, accepted, documents, more }
    }
}
