//! Units: documents are cut into paragraphs or lines, and these are the members of sketches.
//!
//! ```text
//! arrivals ─ Documents ─ units of a document ─ Units ─┬─ memberships     in place of "Upsert"
//!    ticks ──┘ (by id)                                └─ changes of units
//! ```
//!
//! "Documents" applies events and retention to the documents; "Units" holds the units of each. The units of a
//! document after an epoch are those of its last text, so an update or an end of the document ends units that
//! are not in it any more. A unit whose content stays is updated: its place and the facts of its document may
//! be others.

mod documents;

use std::collections::BTreeMap;

use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Concat;

use super::documents::arrival::{Arrival, SketchedUnit, TextUnits};
use super::documents::retain::{Tick, retain};
use super::operator::Operator;
use super::operator::epochs::Stash;
use super::output::EpochReport;
use super::sketches::membership::Membership;
use super::stages::Stages;
use documents::{DocumentUnits, LastTexts};
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::doc::units::UnitFacts;
use dupflow_core::doc::{DocChange, DocId};
use dupflow_core::time::Epoch;

/// The outputs of [`units`].
pub(super) struct UnitOutputs<'scope> {
    /// Of units in sketches; the counterpart of [`upsert`](super::upsert::upsert).
    pub(super) memberships: Stream<'scope, Epoch, Vec<Membership>>,
    /// The reports on documents, and the changes of units.
    pub(super) reports: Stream<'scope, Epoch, Vec<EpochReport>>,
}

/// The units of a live document: content, occurrence and the low half of the sketch's id; sorted.
type HeldUnits = Box<[((u64, u32), u64)]>;

/// Applies the events of each epoch to documents and their units.
pub(super) fn units<'scope>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    stages: &Stages,
) -> UnitOutputs<'scope> {
    let applied = retain::<LastTexts>(arrivals, ticks, "Documents", stages);
    let mut operator = Operator::new("Units", applied.records.scope());
    let mut input = operator.input(applied.records, Pipeline);
    let (mut memberships, memberships_stream) = operator.output();
    let (mut reports, reports_stream) = operator.output();
    let mut stash = Stash::<DocumentUnits>::new();
    // By the place of the document.
    let mut held = BTreeMap::<u32, HeldUnits>::new();
    operator.build(move |frontiers| {
        input.for_each_time(|time, data| stash.keep(&time, 2, data));
        while let Some((capabilities, documents)) = stash.next_closed(frontiers) {
            let (mut memberships, mut changes) = (memberships.at(&capabilities), Vec::new());
            for DocumentUnits { place, id, now } in documents {
                let before = held.remove(&place).unwrap_or_default();
                let after = change(&id, &before, now, &mut changes, &mut |member| memberships.give(member));
                if !after.is_empty() {
                    held.insert(place, after);
                }
            }
            if !changes.is_empty() {
                reports.at(&capabilities).give(EpochReport::Documents(changes));
            }
        }
    });
    UnitOutputs { memberships: memberships_stream, reports: applied.reports.concat(reports_stream) }
}

/// Changes the units of a document to those that it has now. Returns these.
fn change(
    document: &DocId,
    before: &HeldUnits,
    now: Option<(Box<TextUnits>, FieldRow)>,
    changes: &mut Vec<DocChange>,
    emit: &mut dyn FnMut(Membership),
) -> HeldUnits {
    let low = |units: &HeldUnits, named| {
        units.binary_search_by_key(&named, |(named, _)| *named).ok().map(|at| units[at].1)
    };
    let (units, fields) = now.map_or_else(Default::default, |(text, fields)| (text.units, fields));
    let mut after: HeldUnits = units.iter().map(|unit| (unit.named, unit.sketch.0.low())).collect();
    after.sort_unstable();
    for ((content, occurrence), left) in before {
        let (id, stays) = (document.of_unit(*content, *occurrence), low(&after, (*content, *occurrence)));
        if stays.is_none() {
            let unit = Some(UnitFacts { sketch: *left, ..UnitFacts::default() });
            changes.push(DocChange { unit, ..DocChange::end(id.clone()) });
        }
        if stays != Some(*left) {
            emit(Membership { low: *left, document: id, joins: None });
        }
    }
    for SketchedUnit { named, span, facts, sketch } in units {
        let (id, fields) = (document.of_unit(named.0, named.1), fields.clone());
        let unit = Some(UnitFacts { span, sketch: sketch.0.low() });
        changes.push(DocChange { now: Some(facts), fields, unit, ..DocChange::end(id.clone()) });
        if low(before, named) != Some(sketch.0.low()) {
            emit(Membership { low: sketch.0.low(), document: id, joins: Some(sketch) });
        }
    }
    after
}
