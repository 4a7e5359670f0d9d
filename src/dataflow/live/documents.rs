//! Documents: which are alive, where each is kept, and when their number changes.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::tables::Count;
use super::{Change, Effect};
use crate::dataflow::Stages;
use crate::dataflow::epochs::Stash;
use crate::dataflow::ingest::{self, Arrival};
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

/// Finds each event's document, which are partitioned by the hash of their ids; tells when documents with terms come or go.
pub(super) fn documents<'scope>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    stages: &Stages,
) -> (Stream<'scope, Epoch, Vec<Effect>>, Stream<'scope, Epoch, Vec<Count>>) {
    let metrics = std::sync::Arc::clone(&stages.metrics);
    let mut builder = OperatorBuilder::new("Documents".to_owned(), arrivals.scope());
    let mut input = builder.new_input(arrivals, Exchange::new(|a: &Arrival| a.hash));
    let (effects, effects_stream) = builder.new_output();
    let (counts, counts_stream) = builder.new_output();
    let mut effects = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(effects);
    let mut counts = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(counts);

    builder.build(move |_| {
        let mut stash = Stash::<Arrival>::new();
        let mut documents = Documents::default();
        move |frontiers| {
            input.for_each_time(|time, data| stash.keep(&time, 2, data));
            while let Some((capabilities, mut events)) = stash.next_closed(frontiers) {
                let (mut effects, mut counts) = (effects.activate(), counts.activate());
                let mut effects = effects.session(&capabilities[0]);
                let mut counts = counts.session(&capabilities[1]);
                let (mut inserted, mut deleted, mut unknown) = (0, 0, 0);
                // A place is free for other documents from the next epoch on: within one, places and documents are one.
                let mut freed = Vec::new();
                events.sort_unstable_by_key(|arrival| arrival.position);
                for arrival in events {
                    let position = arrival.position;
                    let (place, before, after) = documents.apply(&arrival, &mut freed);
                    match (before, after) {
                        (None, None) => unknown += 1,
                        (None, Some(_)) => inserted += 1,
                        (Some(_), None) => deleted += 1,
                        (Some(_), Some(_)) => {}
                    }
                    let diff = i8::from(after == Some(true)) - i8::from(before == Some(true));
                    if diff != 0 {
                        counts.give(Count { position, diff });
                    }
                    let change = match arrival.change {
                        ingest::Change::Delete => Change::End,
                        ingest::Change::Empty => Change::Text(arrival.id, None),
                        ingest::Change::Terms(terms) => Change::Text(arrival.id, Some(terms)),
                        ingest::Change::Sketch(..) => unreachable!("live weights sketch later"),
                    };
                    if let Some(place) = place {
                        effects.give(Effect { position, place, change });
                    }
                }
                documents.free.append(&mut freed);
                metrics.add(Counter::Inserted, inserted);
                metrics.add(Counter::Deleted, deleted);
                metrics.add(Counter::UnknownDeletes, unknown);
            }
        }
    });
    (effects_stream, counts_stream)
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
        let counts = match arrival.change {
            ingest::Change::Delete => None,
            ingest::Change::Empty => Some(false),
            ingest::Change::Terms(_) | ingest::Change::Sketch(..) => Some(true),
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
