//! Upsert: of each document's events in an epoch the last one wins; out come the changes of sketches' memberships.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;

use super::Stages;
use super::epochs::by_epoch;
use super::ingest::{Arrival, Change};
use crate::doc::DocId;
use crate::hash::SketchId;
use crate::metrics::Counter;
use crate::sketch::Sketch;
use crate::time::Epoch;

/// A document becomes a member of a sketch (with the sketch itself) or ceases to be one (without).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Membership {
    pub(super) sketch: SketchId,
    pub(super) document: DocId,
    pub(super) joins: Option<Box<Sketch>>,
}

/// A document alive: its sketch, or none if its text has no token.
struct Document {
    id: DocId,
    sketch: Option<SketchId>,
}

/// Applies the events of each epoch to the documents, which are partitioned by the hash of their ids.
pub(super) fn upsert<'scope>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    stages: &Stages,
) -> Stream<'scope, Epoch, Vec<Membership>> {
    let metrics = std::sync::Arc::clone(&stages.metrics);
    // The exchange reads the low bits of the hash, the table the others.
    let table_hash = |hash: u64| hash.rotate_right(20);
    let rehash = move |d: &Document| table_hash(crate::hash::bytes(0, d.id.as_str().as_bytes()));
    let mut documents: HashTable<Document> = HashTable::new();

    by_epoch(arrivals, Exchange::new(|a: &Arrival| a.hash), "Upsert", move |_, mut arrivals, emit| {
        arrivals.sort_unstable_by(|a, b| (a.hash, &a.id, a.position).cmp(&(b.hash, &b.id, b.position)));
        let (mut inserted, mut deleted, mut unchanged, mut unknown) = (0, 0, 0, 0);
        let mut arrivals = arrivals.into_iter().peekable();
        while let Some(mut last) = arrivals.next() {
            let entry = documents.entry(table_hash(last.hash), |d| d.id == last.id, rehash);
            // What each event of the epoch does is counted as if it stood alone: counts do not depend on the cut.
            let mut in_force = match &entry {
                Entry::Occupied(document) => Some(document.get().sketch),
                Entry::Vacant(_) => None,
            };
            let before = in_force;
            loop {
                let next = match &last.change {
                    Change::Delete => None,
                    Change::Empty => Some(None),
                    Change::Sketch(id, _) => Some(Some(*id)),
                    Change::Terms(_) => unreachable!("only live weights sketch later"),
                };
                match (in_force, next) {
                    (None, None) => unknown += 1,
                    (None, Some(_)) => inserted += 1,
                    (Some(_), None) => deleted += 1,
                    (Some(old), Some(new)) => unchanged += u64::from(old == new),
                }
                in_force = next;
                match arrivals.next_if(|a| a.id == last.id) {
                    Some(later) => last = later,
                    None => break,
                }
            }
            let (old, new) = (before.flatten(), in_force.flatten());
            if old != new {
                if let Some(sketch) = old {
                    emit(Membership { sketch, document: last.id.clone(), joins: None });
                }
                if let Change::Sketch(sketch, body) = last.change {
                    emit(Membership { sketch, document: last.id.clone(), joins: Some(body) });
                }
            }
            match (entry, in_force) {
                (Entry::Occupied(mut document), Some(sketch)) => document.get_mut().sketch = sketch,
                (Entry::Occupied(document), None) => drop(document.remove()),
                (Entry::Vacant(place), Some(sketch)) => drop(place.insert(Document { id: last.id, sketch })),
                (Entry::Vacant(_), None) => {}
            }
        }
        metrics.add(Counter::Inserted, inserted);
        metrics.add(Counter::Deleted, deleted);
        metrics.add(Counter::Unchanged, unchanged);
        metrics.add(Counter::UnknownDeletes, unknown);
    })
}
