//! The dataflow: events in, pair deltas out. This is the one folder that sees timely and differential.
//!
//! ```text
//! events ─ ingest ─ upsert ─ collapse ─┬─ postings ─ blocks ─ verify ─ accepted pairs of sketches ─┐
//!          (sketch)  (by id)  (by       ├─ members ────────────────────────────────────── pairs ───┴─┬─ output
//!                             sketch)   └─ pairs of copies ───────────────────────────────────────────┘
//! ```
//!
//! Time is the epoch. Operators are written by hand over totally ordered time: each keeps the records of an
//! open epoch and handles them together when the epoch closes (`by_epoch`), so that its output is a function of the
//! corpus before and after the epoch. What is indexed is the distinct sketch, named by its content; documents are its
//! members. Of differential, only the consolidation of changes is used; its plain self-join is the reference in the tests.

mod arrival;
mod blocks;
mod collapse;
mod epochs;
mod ingest;
mod kept;
mod link;
mod live;
mod members;
mod output;
mod pairs;
mod parcels;
mod sketches;
mod small_map;
mod stages;
mod upsert;
mod verify;
mod workers;

use std::cell::Cell;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use timely::dataflow::operators::Concat;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::{Scope, Stream};

pub use ingest::{Given, Intake, Pull, Taken};
pub use link::Lost;
use output::Reached;
pub use output::{ClosedEpoch, Emit};
pub use stages::Stages;
pub use workers::{Cancellation, Data, Workers};

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

/// Builds one worker's share of the dataflow. `intake` gives this worker events of epoch `first` and later ones; `emit` takes
/// every closed epoch, on worker 0 only.
pub fn build(
    scope: Scope<'_, Epoch>,
    stages: &Stages,
    first: Epoch,
    intake: Box<dyn Intake>,
    emit: Box<dyn Emit>,
) {
    let open = Rc::new(Cell::new(first));

    let ingested = ingest::ingest(scope, stages, intake, Rc::clone(&open));
    let (memberships, kept, reached) = match stages.scheme.live() {
        None => {
            let upserted = upsert::upsert(ingested.arrivals, stages);
            (upserted.memberships, upserted.kept, ingested.read)
        }
        Some(growth) => {
            let live = live::live(ingested.arrivals, growth, stages);
            (live.memberships, live.kept, ingested.read.concat(live.tables.map(Reached::Table)))
        }
    };
    let reached = reached.concat(kept.map(Reached::Kept));
    let (sketches, collapsed) = collapse::collapse(memberships, stages);
    let candidates = blocks::blocks(collapsed.postings, stages);
    let accepted = verify::verify(candidates, Rc::clone(&sketches), stages);
    let expanded = pairs::expand(accepted, &collapsed.changed, sketches);
    output::output(expanded.concat(collapsed.copies), reached, stages, emit, open, ingested.wake);
}
