//! Answers: what a run writes of its pairs, each in a file of its own.
//!
//! ```text
//!  deltas, documents ─▶ Changes ─▶ rows, each with a key ─▶ a file, a topic
//!                  ╰──▶ EndList ─▶ rows, at the end ──────▶ a file
//! ```
//!
//! An answer says what a row is, and which it adds and takes away; a place says where rows go, and how they
//! become durable. Neither knows the others by their names: an answer is a file here and a line in
//! [`ANSWERS`].

mod answer;
mod changes;
mod cluster_deltas;
mod clusters;
mod decisions;
mod deltas;
mod items;
mod lists;
mod pairs;
mod rejected;

pub use answer::{Answer, AnswerSettings, BoxedRows, Subject, Written};
pub use changes::{Changes, EachRead, EachRecord, ReadBack, RecordForm, RecordKey, RowSink};
pub use cluster_deltas::ClusterDeltas;
pub use clusters::ClusterLines;
pub use decisions::{DecisionChanges, DecisionLines};
pub use deltas::{DeltaLines, PairDeltas};
pub use pairs::PairLines;
pub use rejected::RejectedRow;

/// The answers, each in a file of its own; the first one is the default.
pub static ANSWERS: [Answer; 11] = [
    deltas::ANSWER,
    pairs::ANSWER,
    clusters::ANSWER,
    cluster_deltas::ANSWER,
    lists::KEPT,
    lists::REMOVED,
    decisions::ANSWER,
    lists::KEPT_RECORDS,
    lists::REMOVED_RECORDS,
    items::ANSWER,
    rejected::ANSWER,
];
