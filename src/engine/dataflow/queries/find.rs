//! Find: reads a document by its id, as of the last epoch that was applied on its worker.

use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::{IdQuery, QuerySubject, ResolvedQuery};
use crate::dataflow::documents::{InForce, SharedDocuments};
use crate::dataflow::epochs::Stash;
use dupflow_core::run::query::LastEvent;
use dupflow_core::time::Epoch;

/// Finds the documents of id queries. `subject` returns what to compare by, from a document's place and the
/// value in force. `changed` can receive no more records of an epoch once all documents are as of the end of
/// the epoch.
pub(in crate::dataflow) fn find<'scope, V: InForce, D: Clone + 'static>(
    id_queries: Stream<'scope, Epoch, Vec<IdQuery>>,
    changed: &Stream<'scope, Epoch, Vec<D>>,
    documents: SharedDocuments<V>,
    subject: impl Fn(u32, V) -> QuerySubject + 'static,
) -> Stream<'scope, Epoch, Vec<ResolvedQuery>> {
    let mut builder = OperatorBuilder::new("Find".to_owned(), id_queries.scope());
    let mut id_queries = builder.new_input(id_queries, Exchange::new(|s: &IdQuery| s.hash));
    let mut behind = builder.new_input(changed.clone(), Pipeline);
    let (resolved, stream) = builder.new_output();
    let mut resolved = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(resolved);
    builder.build(move |_| {
        let (mut stash, nothing) = (Stash::<IdQuery>::new(), Stash::<D>::new());
        move |frontiers| {
            id_queries.for_each_time(|time, data| stash.keep(&time, 1, data));
            // Only the frontier is used.
            behind.for_each_time(|_, _| ());
            let documents = documents.borrow();
            // While an epoch is being applied no query is handled. That wait is bounded: the next epoch
            // cannot begin before the query has been sent on.
            while let Some(epoch) = documents.epoch()
                && let Some((capabilities, present)) = stash.next_begun(&frontiers[1..], &nothing)
            {
                // Later epochs may have been applied on this worker.
                let next = (*capabilities[0].time()).max(epoch + 1);
                let capability = capabilities[0].delayed(&next);
                let mut resolved = resolved.activate();
                let mut session = resolved.session(&capability);
                for IdQuery { query_id, top, hash, id } in present {
                    let query = match documents.alive(hash, &id) {
                        Some((place, document)) => {
                            let found = LastEvent {
                                position: document.position(),
                                ts: document.ts(),
                                changed: document.changed(),
                            };
                            ResolvedQuery {
                                query_id,
                                top,
                                document: Some((id, found)),
                                subject: subject(place, document.value),
                            }
                        }
                        None => {
                            ResolvedQuery { query_id, top, document: None, subject: QuerySubject::Nothing }
                        }
                    };
                    session.give(query);
                }
            }
        }
    });
    stream
}
