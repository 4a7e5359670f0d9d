//! Find: reads a document by its id, as of the last epoch that was applied on its worker.

use timely::dataflow::Stream;
use timely::dataflow::channels::pact::{Exchange, Pipeline};

use super::{IdQuery, QuerySubject, ResolvedQuery};
use crate::dataflow::documents::store::{InForce, SharedDocuments};
use crate::dataflow::operator::Operator;
use crate::dataflow::operator::epochs::Stash;
use dupflow_core::time::Epoch;
use dupflow_run::query::LastEvent;

/// Finds the documents of id queries. `subject` returns what to compare by, from a document's place and the
/// value in force. `changed` can receive no more records of an epoch once all documents are as of the end of
/// the epoch.
pub(in crate::dataflow) fn find<'scope, V: InForce, D: Clone + 'static>(
    id_queries: Stream<'scope, Epoch, Vec<IdQuery>>,
    changed: &Stream<'scope, Epoch, Vec<D>>,
    documents: SharedDocuments<V>,
    subject: impl Fn(u32, V) -> QuerySubject + 'static,
) -> Stream<'scope, Epoch, Vec<ResolvedQuery>> {
    let mut operator = Operator::new("Find", id_queries.scope());
    let mut id_queries = operator.input(id_queries, Exchange::new(|s: &IdQuery| s.hash));
    let mut behind = operator.input(changed.clone(), Pipeline);
    let (mut resolved, stream) = operator.output();
    let (mut stash, nothing) = (Stash::<IdQuery>::new(), Stash::<D>::new());
    operator.build(move |frontiers| {
        id_queries.for_each_time(|time, data| stash.keep(&time, 1, data));
        // Only the frontier is used.
        behind.for_each_time(|_, _| ());
        let mut documents = documents.borrow_mut();
        // While an epoch is being applied no query is handled. That wait is bounded: the next epoch cannot
        // begin before the query has been sent on.
        while let Some(epoch) = documents.epoch()
            && let Some((capabilities, present)) = stash.next_begun(&frontiers[1..], &nothing)
        {
            // Later epochs may have been applied on this worker.
            let next = (*capabilities[0].time()).max(epoch + 1);
            let mut resolved = resolved.with(capabilities[0].delayed(&next));
            documents.fetch(present.iter().map(|query| query.hash));
            for IdQuery { query_id, top, hash, id } in present {
                let (document, subject) = match documents.alive(hash, &id) {
                    Some((place, found)) => {
                        let event = LastEvent {
                            position: found.position(),
                            ts: found.ts(),
                            changed: found.changed(),
                        };
                        (Some((id, event)), subject(place, found.value))
                    }
                    None => (None, QuerySubject::Nothing),
                };
                resolved.give(ResolvedQuery { query_id, top, document, subject });
            }
        }
    });
    stream
}
