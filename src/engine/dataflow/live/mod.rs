//! Live weights: sketches by TF-IDF whose document frequencies are those of the corpus itself.
//!
//! ```text
//! arrivals ─ Documents ─┬─ updates ──────────────────┬─ Terms ─┬─ local frequencies ─ Weigh ─┬─ memberships
//!            (by id)    └─ more, fewer ─ Tables: due ┤         │                             └─ next table
//!                                        (one)       │         ├─ memberships
//!                                    queries' terms ─┘         └─ queries, sketched
//! ```
//!
//! Weights come from a numbered **table**: the number of documents, and for each feature how many of them
//! hold it. The rule: when an epoch closes and the number of live documents [is due](Growth::is_due) for
//! another table than the one in force, the corpus at the end of that epoch makes the next table. All
//! documents are sketched by it in the same epoch. So the table in force after an epoch follows from the
//! table before and from the corpus at its end. The order of events within the epoch, the number of
//! partitions and the number of workers do not matter. The output is D(C) *under the table in force*: the
//! pairs that a fresh run finds with that table frozen.
//!
//! The rule is applied at ends of epochs, not at each event, for two reasons. Events of several partitions
//! have no common order. And the decision must be a part of what is committed:
//! [`TableInForce`](dupflow_core::time::TableInForce) arrives on worker 0 at the time of the epoch that made
//! it, and is written with the progress of that epoch. The price: the cut into epochs affects which table is
//! in force. A corpus that arrives as one epoch is weighted by its own frequencies.
//!
//! A new table costs one sketch of every document. Between two tables, a number of documents proportional to
//! the corpus is added or removed, so the cost is a constant for each event, amortised: at a factor of 2, two
//! sketches for an added document, one for a removed one.

mod documents;
mod tables;
mod terms;
mod update;
mod watched;
mod weigh;

use timely::dataflow::Stream;
use timely::dataflow::operators::Concat;

use self::update::Update;
use super::documents::arrival::Arrival;
use super::documents::retain::{RetainOutputs, Tick, retain};
use super::output::EpochReport;
use super::queries::{self, IdQuery, ResolvedQuery};
use super::sketches::membership::Membership;
use super::stages::Stages;
use super::watches::WatchUpdate;
use dupflow_core::text::Growth;
use dupflow_core::time::Epoch;

/// The outputs of [`live`].
pub(super) struct LiveOutputs<'scope> {
    /// Of documents in sketches; the counterpart of [`upsert`](super::upsert::upsert).
    pub(super) memberships: Stream<'scope, Epoch, Vec<Membership>>,
    /// The reports of [`upsert`](super::upsert::upsert), the documents whose weights changed, and, from
    /// worker 0, the table that is in force from the end of its epoch on. Before the first table there is
    /// none.
    pub(super) reports: Stream<'scope, Epoch, Vec<EpochReport>>,
    /// Changes of the watch list with their sketches; `None` if there is no list.
    pub(super) watches: Option<Stream<'scope, Epoch, Vec<WatchUpdate>>>,
    /// Queries with their sketches.
    pub(super) resolved: Stream<'scope, Epoch, Vec<ResolvedQuery>>,
}

/// Sketches documents by live weights, and queries by the table in force when they are handled. Watches are
/// sketched as documents are, and count for no table.
pub(super) fn live<'scope>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    watches: Option<Stream<'scope, Epoch, Vec<WatchUpdate>>>,
    resolved: Stream<'scope, Epoch, Vec<ResolvedQuery>>,
    id_queries: Stream<'scope, Epoch, Vec<IdQuery>>,
    growth: Growth,
    stages: &Stages,
) -> LiveOutputs<'scope> {
    let RetainOutputs { records, more, reports, documents } =
        retain::<documents::Updates>(arrivals, ticks, "Documents", stages);
    let found = queries::find(id_queries, &more, documents, documents::subject);
    let weighed = weighed(records, more, watches, resolved.concat(found), growth, stages);
    LiveOutputs { reports: reports.concat(weighed.reports), ..weighed }
}

/// Sketches documents from their updates and from the changes of their number. The reports are without those
/// on documents.
fn weighed<'scope>(
    updates: Stream<'scope, Epoch, Vec<Update>>,
    changes: Stream<'scope, Epoch, Vec<i64>>,
    watches: Option<Stream<'scope, Epoch, Vec<WatchUpdate>>>,
    resolved: Stream<'scope, Epoch, Vec<ResolvedQuery>>,
    growth: Growth,
    stages: &Stages,
) -> LiveOutputs<'scope> {
    let due = tables::tables(changes, growth, stages);
    let applied = weigh::apply(updates, due, watches, resolved, stages);
    let (memberships, again, reports) = weigh::weigh(applied.frequencies, applied.documents, stages);
    let memberships = applied.memberships.concat(memberships);
    let sketched = applied.watches.zip(again).map(|(at_once, again)| at_once.concat(again));
    LiveOutputs { memberships, watches: sketched, reports, resolved: applied.resolved }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use parking_lot::Mutex;
    use timely::CommunicationConfig;
    use timely::dataflow::operators::Inspect;
    use timely::dataflow::operators::vec::Input;

    use super::update::TextUpdate;
    use super::*;
    use dupflow_core::block::Scan;
    use dupflow_core::doc::DocId;
    use dupflow_core::doc::fields::FieldRow;
    use dupflow_core::filter::WholeFilter;
    use dupflow_core::sketch::{Scheme, SketchKind, SketchParams, VERSION};
    use dupflow_core::text::{Featurizer, Idf, IdfForm, IdfTable, Shingle, TextRules, Weights};
    use dupflow_core::time::TableInForce;

    const EPOCHS: u64 = 12;

    /// The live documents after an epoch: 2, 4 … 8, then 8 until their number falls by two in each epoch.
    fn alive(epoch: u64) -> std::ops::Range<u64> {
        0..2 * epoch.min(4).min(EPOCHS - epoch)
    }

    fn text(document: u64) -> String {
        format!("common w{} w{document}", document % 3)
    }

    fn scheme() -> Scheme {
        let sketch = SketchParams { kind: SketchKind::Dart, size: 64, bits: 4, wide: 0, seed: 0 };
        let weights = Weights::TfIdf(Idf::Live(Growth::default()), IdfForm::Smooth);
        let rules = TextRules { shingle: Shingle::Words(1), weights, ..TextRules::default() };
        Scheme { version: VERSION, text: rules, sketch, ..Scheme::default() }
    }

    /// The tables that a run reports, with the epochs that make them.
    fn reported(workers: usize) -> Vec<(Epoch, TableInForce)> {
        let (sender, receiver) = channel();
        let sender = Mutex::new(sender);
        let communication =
            if workers == 1 { CommunicationConfig::Thread } else { CommunicationConfig::Process(workers) };
        let config = timely::Config { communication, worker: timely::WorkerConfig::default() };
        let guards = timely::execute(config, move |worker| {
            let (index, peers) = (worker.index() as u64, worker.peers() as u64);
            let sender = sender.lock().clone();
            let filter = WholeFilter::new(0.5, &scheme().sketch).unwrap();
            let stages = Stages::new(scheme(), Arc::new(Scan), Arc::new(filter), 10);
            let (mut updates, mut changes) = worker.dataflow::<Epoch, _, _>(|scope| {
                let (updates, of_updates) = scope.new_input();
                let (changes, of_changes) = scope.new_input();
                let (_, no_queries) = scope.new_input();
                let weighed = weighed(of_updates, of_changes, None, no_queries, Growth::default(), &stages);
                weighed.reports.inspect_time(move |epoch, report| {
                    if let EpochReport::Table(table) = report {
                        sender.send((*epoch, *table)).unwrap();
                    }
                });
                (updates, changes)
            });
            let mut featurizer = Featurizer::new(scheme().text);
            let mut terms = |document| {
                let terms = featurizer.terms(&text(document)).to_owned();
                let id = DocId::new(&format!("d{document}")).unwrap();
                TextUpdate::InForce(id, Some(Box::new(terms)), FieldRow::default())
            };
            updates.advance_to(1);
            changes.advance_to(1);
            for epoch in 1..=EPOCHS {
                let (before, after) = (alive(epoch - 1), alive(epoch));
                let mut change = 0;
                for document in (0..2 * EPOCHS).filter(|document| document % peers == index) {
                    let place = u32::try_from(document / peers).unwrap();
                    let text = match (before.contains(&document), after.contains(&document)) {
                        (false, true) => terms(document),
                        (true, false) => TextUpdate::Ended,
                        _ => continue,
                    };
                    change += if matches!(text, TextUpdate::Ended) { -1 } else { 1 };
                    updates.send(Update { place, text });
                }
                changes.send(change);
                updates.advance_to(epoch + 1);
                changes.advance_to(epoch + 1);
            }
        });
        guards.unwrap().join().into_iter().for_each(|ended| ended.unwrap());
        receiver.into_iter().collect()
    }

    /// Each table is reported once, at the time of the epoch that makes it, for the progress of that epoch.
    #[test]
    fn a_table_is_reported_once_in_its_epoch() {
        let mut featurizer = Featurizer::new(scheme().text);
        let (mut expected, mut in_force) = (Vec::new(), 0);
        for epoch in 1..=EPOCHS {
            let documents = alive(epoch).end;
            if Growth::default().is_due(in_force, documents) {
                in_force = documents;
                let features = alive(epoch).map(|d| featurizer.terms(&text(d)).to_owned().ids);
                let fingerprint = IdfTable::count(features).fingerprint();
                let number = expected.len() as u64 + 1;
                expected.push((epoch, TableInForce { number, documents, fingerprint }));
            }
        }
        assert_eq!(expected.iter().map(|(_, table)| table.documents).collect::<Vec<_>>(), [2, 4, 8, 4, 2, 0]);
        for workers in [1, 2] {
            assert_eq!(reported(workers), expected, "{workers} workers");
        }
    }
}
