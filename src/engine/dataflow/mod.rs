//! The dataflow: events in, pair deltas out. This is the one folder that sees timely and differential.
//!
//! ```text
//! events ─ ingest ─ upsert ─ collapse ─┬─ postings ─ blocks ─ verify ─ accepted pairs of sketches ─┐
//!          (sketch)  (by id)  (by       ├─ members ────────────────────────────────────── pairs ───┴─┬─ output
//!                             sketch)   └─ pairs of copies ───────────────────────────────────────────┘
//! ```
//!
//! Time is the epoch. Operators are written by hand over totally ordered time: each keeps the records of an
//! open epoch and handles them together when the epoch closes (`by_epoch`), so that its output is a function
//! of the corpus before and after the epoch. What is indexed is the distinct sketch, named by its content;
//! documents are its members. Of differential, only the consolidation of changes is used; its plain self-join
//! is the reference in the tests.

mod arrival;
mod blocks;
mod causes;
mod collapse;
mod documents;
mod epochs;
mod homes;
mod ingest;
mod kept;
mod key;
mod link;
mod live;
mod members;
mod order;
mod output;
mod pairs;
mod parcels;
mod retain;
mod retaining;
mod sketches;
mod small_map;
mod stages;
mod upsert;
mod verify;
mod visitors;
mod workers;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use timely::dataflow::operators::Concat;
use timely::dataflow::{Scope, Stream};

use ingest::Ingested;
pub use ingest::{Given, Intake, Pull, Taken};
pub use link::Lost;
pub use output::{ClosedEpoch, Emit};
pub use stages::Stages;
use visitors::Lobby;
pub use workers::{Cancellation, Data, Workers};

use dupflow_core::pair::{Evidence, Similarity};
use dupflow_core::time::Epoch;

/// An accepted pair of sketches: the similarity and its evidence, pure functions of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Accepted {
    similarity: Similarity,
    evidence: Evidence,
}

/// A collection's changes: what, when, how often.
type Deltas<'scope, D> = Stream<'scope, Epoch, Vec<(D, Epoch, isize)>>;

/// Builds one worker's share of the dataflow. `intake` gives this worker events of epoch `first` and later
/// ones; `emit` takes every closed epoch, on worker 0 only.
pub fn build(
    scope: Scope<'_, Epoch>,
    stages: &Stages,
    first: Epoch,
    intake: Box<dyn Intake>,
    emit: Box<dyn Emit>,
) {
    let open = Rc::new(Cell::new(first));
    let lobby = Rc::new(RefCell::new(Lobby::new(scope.index())));

    let ingested = ingest::ingest(scope, stages, intake, Rc::clone(&open), Rc::clone(&lobby));
    let Ingested { arrivals, ticks, read, callers, seekers, wake } = ingested;
    let (memberships, callers, seekers, reached) = match stages.scheme.live() {
        None => {
            let upserted = upsert::upsert(arrivals, ticks, stages);
            (upserted.records, callers, Some((seekers, upserted.documents)), upserted.reached)
        }
        Some(growth) => {
            let live = live::live(arrivals, ticks, callers, seekers, growth, stages);
            (live.memberships, live.callers, None, live.reached)
        }
    };
    let reached = read.concat(reached);
    let (sketches, collapsed) = collapse::collapse(memberships, stages);
    let callers = match seekers {
        None => callers,
        Some((seekers, documents)) => {
            callers.concat(visitors::find(seekers, &collapsed.changed, documents, upsert::look))
        }
    };
    let entered = visitors::enter(callers, &collapsed.changed, Rc::clone(&sketches), stages);
    let met = blocks::blocks(collapsed.postings, entered.guests, stages);
    let verified = verify::verify(met.candidates, met.calls, Rc::clone(&sketches), stages);
    let expanded = pairs::expand(verified.acceptances, &collapsed.changed, sketches);
    visitors::answer(entered.notes.concat(met.notes).concat(verified.notes), lobby);
    let reached = reached.concat(collapsed.reached);
    output::output(expanded.concat(collapsed.copies), reached, stages, emit, open, wake);
}
