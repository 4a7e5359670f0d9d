//! The dataflow: events in, pair deltas out. Only this folder uses timely and differential.
//!
//! ```text
//! events   ingest ── upsert ── collapse ┬─── blocks ─ visit ── compare ── pairs ─┬─ output ───▶ emit
//!          decode,   last      members  │    candi-   sketch   filter     of docu│  closed
//!          sketch    event     of each  │    dates    is sent             ments  │  epochs
//!                    of an id  sketch   ├─ members ──────────────────────────┘   │
//!                       ▲               └─ pairs of copies ──────────────────────┤
//! ticks    ingest ──────┘ clock, to all workers
//! progress ingest ───────────────────────────────────────────────────────────────┘
//! queries  ingest ── find ──── enter ─────── blocks ────────── compare ──────────── answer ───▶ reply
//!          sketch    document  sketch        candidates        as of an epoch      counts
//! by       batch     id        sketch        block    x        y          x, y      worker 0
//! ```
//!
//! Where documents are cut into units, `units` takes the place of `upsert`; where weights follow the corpus,
//! `live` does.
//!
//! Time is the epoch. Operators are written by hand over totally ordered time: each keeps the records of an
//! open epoch and handles them together when the epoch closes (`by_epoch`), so that its output is a function
//! of the corpus before and after the epoch. The index holds distinct sketches, named by their content;
//! documents are members of sketches. Of differential, only the consolidation of changes is used, and in
//! `views` its arrangements; its plain self-join is the reference in the tests.

mod blocks;
mod causes;
mod collapse;
mod documents;
mod ingest;
mod intake;
mod live;
mod operator;
mod output;
mod pairs;
mod queries;
mod shared;
mod sketches;
mod spill;
mod stages;
mod units;
mod upsert;
mod verify;
#[cfg(feature = "views")]
mod views;
mod watches;
mod workers;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use timely::dataflow::operators::Concat;
use timely::dataflow::{Scope, Stream};
use timely::scheduling::Activator;

pub use documents::kept::{is_kept_slot, kept_position};
pub use documents::reference::{NoReferenceDocument, Reference, ReferenceBuilder};
use ingest::IngestOutputs;
pub use intake::{BatchEnd, BatchRecord, Intake, Pull};
pub use output::{ClosedEpoch, Emit};
use queries::PendingQueries;
pub use shared::kept_epochs::KeptEpochs;
pub use stages::{HELD_FIELDS, Observers, RunStart, Spill, Stages, described_fields};
pub use workers::link::OnLost;
pub use workers::run::{Cancellation, PeerSockets, WorkerError, Workers};

use dupflow_core::pair::{Evidence, Similarity};
use dupflow_core::time::Epoch;

/// The similarity and the evidence of an accepted pair of sketches: pure functions of the two, in ascending
/// order of ids; in the answer to a query, of the query and the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Accepted {
    similarity: Similarity,
    evidence: Evidence,
}

/// Changes of a collection: the record, its epoch, and the change of its multiplicity.
type Deltas<'scope, D> = Stream<'scope, Epoch, Vec<(D, Epoch, isize)>>;

/// Builds one worker's share of the dataflow. `intake` supplies this worker's events, of epoch `first` and
/// later ones; `emit` receives every closed epoch, on worker 0 only.
///
/// # Panics
/// If there are views and the crate is built without the feature `views`.
pub fn build(
    scope: Scope<'_, Epoch>,
    stages: &Stages,
    first: Epoch,
    intake: Box<dyn Intake>,
    emit: Box<dyn Emit>,
) {
    assert!(cfg!(feature = "views") || stages.views.is_empty(), "views need the feature `views`");
    let open = Rc::new(Cell::new(first));
    let pending = Rc::new(RefCell::new(PendingQueries::new(scope.index())));
    let at_live = Rc::<Cell<Option<Activator>>>::default();

    let ingested =
        ingest::ingest(scope, stages, intake, Rc::clone(&open), Rc::clone(&pending), Rc::clone(&at_live));
    let IngestOutputs { arrivals, ticks, read, resolved, id_queries, watches, wake } = ingested;
    let (memberships, watches, resolved, id_queries, reports) = match stages.scheme.live() {
        None if stages.scheme.units.is_some() => {
            let units = units::units(arrivals, ticks, stages);
            (units.memberships, watches, resolved, None, units.reports)
        }
        None => {
            let upserted = upsert::upsert(arrivals, ticks, stages);
            let id_queries = Some((id_queries, upserted.documents));
            (upserted.records, watches, resolved, id_queries, upserted.reports)
        }
        Some(growth) => {
            let live = live::live(arrivals, ticks, watches, resolved, id_queries, growth, stages);
            (live.memberships, live.watches, live.resolved, None, live.reports)
        }
    };
    let reports = read.concat(reports);
    let (sketches, collapsed) = collapse::collapse(memberships, watches, stages);
    let resolved = match id_queries {
        None => resolved,
        Some((id_queries, documents)) => {
            resolved.concat(queries::find(id_queries, &collapsed.changed, documents, upsert::subject))
        }
    };
    let entered = queries::enter(resolved, &collapsed.changed, Rc::clone(&sketches), stages);
    let met = blocks::blocks(collapsed.postings, entered.probes, Rc::clone(&sketches), stages, &at_live);
    let verified = verify::verify(met.candidates, met.comparisons, Rc::clone(&sketches), stages);
    let expanded = pairs::expand(verified.acceptances, &collapsed.changed, sketches);
    queries::answer(
        entered.partial_answers.concat(met.partial_answers).concat(verified.partial_answers),
        pending,
    );
    let deltas = expanded.concat(collapsed.copies);
    let reports = reports.concat(collapsed.reports);
    #[cfg(feature = "views")]
    let (reports, rows) = views::views(&deltas, reports, stages);
    #[cfg(not(feature = "views"))]
    let rows = None;
    output::output(deltas, rows, reports, stages, emit, open, wake);
}
