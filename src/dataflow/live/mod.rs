//! Live weights: sketches by TF-IDF whose document frequencies are those of the corpus itself.
//!
//! ```text
//! arrivals ─ Documents ─┬─ effects ──────────────┬─ Terms ─┬─ shares ─ Weigh ─┬─ memberships
//!            (by id)    └─ comes, goes ─ Tables ─┘         └──────────────────┘
//!                                        (one)    decrees    each worker to all
//! ```
//!
//! Weights come from a numbered **table**: how many documents there are, and how many of them hold each feature. The number
//! of documents alive is followed event by event, in order of position. A table made at N documents is in force until an
//! event leaves [`Growth::is_due`] of N documents; that event's corpus makes the next table. So which table is in force is
//! a function of the history of the count, however it is cut into epochs; before an epoch closes, all documents are
//! sketched by the last table that falls into it. What leaves is D(C) *under the table in force*: the pairs that a fresh run
//! finds with that table frozen.
//!
//! A table costs a sketch of every document. Between two tables, documents come or go in proportion to their number, so that is
//! a constant for each event, amortised: at a factor of 2, two sketches for a document that comes, one for one that goes.

mod documents;
mod tables;
mod terms;
mod weigh;

use timely::dataflow::Stream;
use timely::dataflow::operators::Concat;

use super::Stages;
use super::ingest::Arrival;
use super::upsert::Membership;
use crate::doc::{DocId, Position};
use crate::text::{Growth, Terms};
use crate::time::Epoch;

/// What an event does to a document of this worker.
#[derive(Clone, Debug)]
struct Effect {
    position: Position,
    /// Where the document is kept; of one document within an epoch.
    place: u32,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    /// This text is in force, by its terms; none if it has no token.
    Text(DocId, Option<Box<Terms>>),
    /// The document ends.
    End,
}

/// The memberships of documents sketched by live weights; the counterpart of [`upsert`](super::upsert::upsert).
pub(super) fn live<'scope>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    growth: Growth,
    stages: &Stages,
) -> Stream<'scope, Epoch, Vec<Membership>> {
    let (effects, counts) = documents::documents(arrivals, stages);
    let decrees = tables::tables(counts, growth, stages);
    let applied = weigh::apply(effects, decrees, stages);
    applied.memberships.concat(weigh::weigh(applied.shares, applied.corpus))
}
