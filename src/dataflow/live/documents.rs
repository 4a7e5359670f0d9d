//! Documents: which are alive, where each is kept, and how their number changes.

use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::{NewText, Update};
use crate::codec::Changes;
use crate::dataflow::arrival::{Arrival, Content};
use crate::dataflow::epochs::Stash;
use crate::dataflow::{Stages, kept};
use crate::doc::DocId;
use crate::metrics::Counter;
use crate::time::Epoch;

/// A document alive.
struct Document {
    id: DocId,
    place: u32,
    /// Whether it counts: whether its text has a token.
    counts: bool,
}

/// The documents of one worker.
#[derive(Default)]
struct Documents {
    by_id: HashTable<Document>,
    places: u32,
    free: Vec<u32>,
}

/// What the events of an epoch come to.
pub(super) struct Updated<'scope> {
    /// In the order of their events.
    pub(super) updates: Stream<'scope, Epoch, Vec<Update>>,
    /// How many more documents with terms an epoch leaves, where that has changed.
    pub(super) changes: Stream<'scope, Epoch, Vec<i64>>,
    /// What a later run needs to go on from here, if documents are kept.
    pub(super) kept: Stream<'scope, Epoch, Vec<Changes>>,
}

/// Finds each event's document, which are partitioned by the hash of their ids.
pub(super) fn documents<'scope>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    stages: &Stages,
) -> Updated<'scope> {
    let metrics = Arc::clone(&stages.metrics);
    let keeps = stages.keeps;
    let mut builder = OperatorBuilder::new("Documents".to_owned(), arrivals.scope());
    let mut input = builder.new_input(arrivals, Exchange::new(|a: &Arrival| a.hash));
    let (updates, updates_stream) = builder.new_output();
    let (changes, changes_stream) = builder.new_output();
    let mut updates = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(updates);
    let (kept, kept_stream) = builder.new_output();
    let mut changes = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(changes);
    let mut kept = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(kept);

    builder.build(move |_| {
        let mut stash = Stash::<Arrival>::new();
        let mut documents = Documents::default();
        move |frontiers| {
            input.for_each_time(|time, data| stash.keep(&time, 3, data));
            while let Some((capabilities, mut events)) = stash.next_closed(frontiers) {
                let mut updates = updates.activate();
                let mut updates = updates.session(&capabilities[0]);
                let (mut inserted, mut deleted, mut unknown, mut change) = (0, 0, 0, 0);
                let mut kept = kept.activate();
                let mut kept = kept.session(&capabilities[2]);
                let mut keeping = Changes::default();
                // A place is free for other documents from the next epoch on: within one, places and documents are one.
                let mut freed = Vec::new();
                events.sort_unstable_by_key(|arrival| arrival.position);
                for arrival in events {
                    let (place, before, after) = documents.apply(&arrival, &mut freed);
                    match (before, after) {
                        (None, None) => unknown += 1,
                        (None, Some(_)) => inserted += 1,
                        (Some(_), None) => deleted += 1,
                        (Some(_), Some(_)) => {}
                    }
                    if keeps && (before.is_some() || after.is_some()) {
                        kept::keep(&arrival, &mut keeping);
                        if keeping.len_bytes() >= kept::PARCEL_BYTES {
                            kept.give(std::mem::take(&mut keeping));
                        }
                    }
                    change += i64::from(after == Some(true)) - i64::from(before == Some(true));
                    let text = match arrival.content {
                        Content::Delete => NewText::Ended,
                        Content::Empty => NewText::InForce(arrival.id, None),
                        Content::Terms(terms) => NewText::InForce(arrival.id, Some(terms)),
                        Content::Sketch(..) => unreachable!("live weights sketch later"),
                    };
                    if let Some(place) = place {
                        updates.give(Update { place, text });
                    }
                }
                if !keeping.is_empty() {
                    kept.give(keeping);
                }
                if change != 0 {
                    changes.activate().session(&capabilities[1]).give(change);
                }
                documents.free.append(&mut freed);
                metrics.add(Counter::Inserted, inserted);
                metrics.add(Counter::Deleted, deleted);
                metrics.add(Counter::UnknownDeletes, unknown);
            }
        }
    });
    Updated { updates: updates_stream, changes: changes_stream, kept: kept_stream }
}

impl Documents {
    /// Applies an event: where its document is kept, if it was or is alive, and whether it counted before and counts
    /// after (`None` = not alive).
    fn apply(
        &mut self,
        arrival: &Arrival,
        freed: &mut Vec<u32>,
    ) -> (Option<u32>, Option<bool>, Option<bool>) {
        // The exchange reads the low bits of the hash, the table the others.
        let table_hash = |hash: u64| hash.rotate_right(20);
        let rehash = |d: &Document| table_hash(crate::hash::bytes(0, d.id.as_str().as_bytes()));
        let entry = self.by_id.entry(table_hash(arrival.hash), |d| d.id == arrival.id, rehash);
        let counts = match arrival.content {
            Content::Delete => None,
            Content::Empty => Some(false),
            Content::Terms(_) | Content::Sketch(..) => Some(true),
        };
        match (entry, counts) {
            (Entry::Occupied(mut document), Some(counts)) => {
                let document = document.get_mut();
                let before = std::mem::replace(&mut document.counts, counts);
                (Some(document.place), Some(before), Some(counts))
            }
            (Entry::Occupied(document), None) => {
                let (document, _) = document.remove();
                freed.push(document.place);
                (Some(document.place), Some(document.counts), None)
            }
            (Entry::Vacant(vacant), Some(counts)) => {
                let place = self.free.pop().unwrap_or_else(|| {
                    self.places += 1;
                    self.places - 1
                });
                vacant.insert(Document { id: arrival.id.clone(), place, counts });
                (Some(place), None, Some(counts))
            }
            (Entry::Vacant(_), None) => (None, None, None),
        }
    }
}
