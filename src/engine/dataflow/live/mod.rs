//! Live weights: sketches by TF-IDF whose document frequencies are those of the corpus itself.
//!
//! ```text
//! arrivals ─ Documents ─┬─ updates ──────────────────────┬─ Terms ─┬─ local frequencies ─ Weigh ─┬─ memberships
//!            (by id)    └─ more, fewer ─ Tables ─ is due ┤         │                             └─ table in force
//!                                        (one)           │         ├─ memberships
//!                                       visitors' terms ─┘         └─ visitors, sketched
//! ```
//!
//! Weights come from a numbered **table**: how many documents there are, and how many of them hold each
//! feature. The rule: when an epoch closes and the number of documents alive [is due](Growth::is_due) for
//! another table than the one in force, that corpus, as of the end of the epoch, makes the next table, and
//! all documents are sketched by it in the same epoch. So which table is in force after an epoch follows from
//! the table before and from the corpus at its end; the order of events within the epoch, the number of
//! partitions that they come from and the number of workers have no part in it. What leaves is D(C) *under
//! the table in force*: the pairs that a fresh run finds with that table frozen.
//!
//! The rule looks at ends of epochs, and not at each event, because events of several partitions have no
//! common order, and because a decision must be a part of what is committed:
//! [`TableInForce`](dupflow_core::time::TableInForce) arrives at the time of the epoch that made it, on
//! worker 0, to be written with the progress of that epoch. The price: the cut into epochs has a part in
//! which table is in force. As one epoch, a corpus is weighed by its own frequencies.
//!
//! A table costs a sketch of every document. Between two tables, documents come or go in proportion to their
//! number, so that is a constant for each event, amortised: at a factor of 2, two sketches for a document
//! that comes, one for one that goes.

mod documents;
mod tables;
mod terms;
mod weigh;

use timely::dataflow::Stream;
use timely::dataflow::operators::Concat;

use super::Stages;
use super::arrival::Arrival;
use super::output::Reached;
use super::retain::{Retained, Tick};
use super::upsert::Membership;
use super::visitors::{self, Caller, Seeker};
use dupflow_core::doc::DocId;
use dupflow_core::text::{Growth, Terms};
use dupflow_core::time::Epoch;

/// What an event does to a document of this worker.
#[derive(Clone, Debug)]
pub(super) struct Update {
    /// Where the document is kept; of one document within an epoch.
    place: u32,
    text: NewText,
}

#[derive(Clone, Debug)]
enum NewText {
    /// This text is in force, by its terms; none if it has no token.
    InForce(DocId, Option<Box<Terms>>),
    /// The document ends.
    Ended,
}

/// What live weights give.
pub(super) struct Live<'scope> {
    /// Of documents in sketches; the counterpart of [`upsert`](super::upsert::upsert).
    pub(super) memberships: Stream<'scope, Epoch, Vec<Membership>>,
    /// As [`upsert`](super::upsert::upsert)'s; with which documents are weighed otherwise, and on worker 0,
    /// in each epoch that makes one, the table that is in force from its end on. Before the first there is
    /// none.
    pub(super) reached: Stream<'scope, Epoch, Vec<Reached>>,
    /// Visitors, with their sketches.
    pub(super) callers: Stream<'scope, Epoch, Vec<Caller>>,
}

/// Sketches documents by live weights, and visitors, by the table that they find in force; `seekers` ask
/// about documents.
pub(super) fn live<'scope>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    callers: Stream<'scope, Epoch, Vec<Caller>>,
    seekers: Stream<'scope, Epoch, Vec<Seeker>>,
    growth: Growth,
    stages: &Stages,
) -> Live<'scope> {
    let Retained { records, more, reached, documents } = documents::documents(arrivals, ticks, stages);
    let found = visitors::find(seekers, &more, documents, documents::look);
    let weighed = weighed(records, more, callers.concat(found), growth, stages);
    Live {
        memberships: weighed.memberships,
        reached: reached.concat(weighed.reached),
        callers: weighed.callers,
    }
}

/// What comes of updates.
struct Weighed<'scope> {
    memberships: Stream<'scope, Epoch, Vec<Membership>>,
    reached: Stream<'scope, Epoch, Vec<Reached>>,
    callers: Stream<'scope, Epoch, Vec<Caller>>,
}

/// Sketches documents from their updates and from how their number changes.
fn weighed<'scope>(
    updates: Stream<'scope, Epoch, Vec<Update>>,
    changes: Stream<'scope, Epoch, Vec<i64>>,
    callers: Stream<'scope, Epoch, Vec<Caller>>,
    growth: Growth,
    stages: &Stages,
) -> Weighed<'scope> {
    let due = tables::tables(changes, growth, stages);
    let applied = weigh::apply(updates, due, callers, stages);
    let (memberships, reached) = weigh::weigh(applied.frequencies, applied.documents, stages);
    let memberships = applied.memberships.concat(memberships);
    Weighed { memberships, reached, callers: applied.callers }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use parking_lot::Mutex;
    use timely::CommunicationConfig;
    use timely::dataflow::operators::Inspect;
    use timely::dataflow::operators::vec::Input;

    use super::*;
    use dupflow_core::block::Scan;
    use dupflow_core::filter::WholeFilter;
    use dupflow_core::sketch::{Scheme, SketchKind, SketchParams, VERSION};
    use dupflow_core::text::{Featurizer, Idf, IdfForm, IdfTable, Shingle, TextRules, Weights};
    use dupflow_core::time::TableInForce;

    const EPOCHS: u64 = 12;

    /// The documents alive after an epoch: 2, 4 … 8, the same again, then two fewer each time.
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
        Scheme { version: VERSION, text: rules, sketch, blocks: None, exact: false }
    }

    /// The tables that a run tells of, with the epochs that make them.
    fn told(workers: usize) -> Vec<(Epoch, TableInForce)> {
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
                let (_, nobody) = scope.new_input();
                let weighed = weighed(of_updates, of_changes, nobody, Growth::default(), &stages);
                weighed.reached.inspect_time(move |epoch, told| {
                    if let Reached::Table(table) = told {
                        sender.send((*epoch, *table)).unwrap();
                    }
                });
                (updates, changes)
            });
            let mut featurizer = Featurizer::new(scheme().text);
            let mut terms = |document| {
                let terms = featurizer.terms(&text(document)).to_owned();
                let id = DocId::new(&format!("d{document}")).unwrap();
                NewText::InForce(id, Some(Box::new(terms)))
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
                        (true, false) => NewText::Ended,
                        _ => continue,
                    };
                    change += if matches!(text, NewText::Ended) { -1 } else { 1 };
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

    /// Whoever writes the progress of an epoch is told which table is in force after it, once, from one
    /// place.
    #[test]
    fn the_table_in_force_is_told_with_the_epoch_that_makes_it() {
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
            assert_eq!(told(workers), expected, "{workers} workers");
        }
    }
}
