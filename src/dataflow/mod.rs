//! The dataflow: events in, pair deltas out. This is the one folder that sees timely and differential.
//!
//! ```text
//! events ─ ingest ─ upsert ─ collapse ─┬─ postings ─ blocks ─ verify ─ accepted pairs of sketches ─┐
//!          (sketch)  (by id)  (by       ├─ members ────────────────────────────────────── expand ──┴─┬─ output
//!                             sketch)   └─ pairs of copies ───────────────────────────────────────────┘
//! ```
//!
//! Time is the epoch. Operators up to `verify` are written by hand over totally ordered time: each keeps the records of an
//! open epoch and handles them together when the epoch closes (`by_epoch`), so that its output is a function of the
//! corpus before and after the epoch. What is indexed is the distinct sketch, named by its content; documents are its
//! members. From the accepted pairs on, differential collections carry the changes.

mod blocks;
mod collapse;
mod epochs;
mod ingest;
mod live;
mod output;
mod pairs;
mod sketches;
mod stages;
mod upsert;
mod verify;
mod workers;

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use timely::dataflow::{Scope, Stream};

pub use ingest::{Intake, Pull};
pub use output::Emit;
pub use stages::Stages;
pub use workers::Workers;

use crate::pair::{Evidence, Similarity};
use crate::time::Epoch;

/// An accepted pair of sketches: the similarity and its evidence, pure functions of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Accepted {
    similarity: Similarity,
    evidence: Evidence,
}

/// A collection's changes: what, when, how often.
type Deltas<'scope, D> = Stream<'scope, Epoch, Vec<(D, Epoch, isize)>>;

/// Builds one worker's share of the dataflow. `intake` gives this worker events; `emit` takes the deltas of each closed
/// epoch, on worker 0 only.
pub fn build(scope: Scope<'_, Epoch>, stages: &Stages, intake: Box<dyn Intake>, emit: Box<dyn Emit>) {
    let closed = Rc::default();

    let (arrivals, wake) = ingest::ingest(scope, stages, intake, Rc::clone(&closed));
    let memberships = match stages.scheme.live() {
        None => upsert::upsert(arrivals, stages),
        Some(growth) => live::live(arrivals, growth, &stages.scheme, &stages.metrics).memberships,
    };
    let (bodies, collapsed) = collapse::collapse(memberships, stages);
    let meetings = blocks::blocks(collapsed.postings, stages);
    let accepted = verify::verify(meetings, bodies, stages);
    let expanded = pairs::expand(accepted, collapsed.members);
    output::output(expanded, collapsed.copies, stages, emit, closed, wake);
}
