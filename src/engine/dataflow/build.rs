//! Build: the drawing of this folder as code.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use timely::dataflow::Scope;
use timely::dataflow::operators::Concat;
use timely::scheduling::Activator;

use super::ingest::IngestOutputs;
use super::intake::Intake;
use super::output::Emit;
use super::queries::PendingQueries;
use super::stages::Stages;
#[cfg(feature = "views")]
use super::views;
use super::{blocks, collapse, ingest, live, output, pairs, queries, units, upsert, verify};
use dupflow_core::time::Epoch;

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
