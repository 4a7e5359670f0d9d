//! Find: a document by its id, as the last epoch has left it that was applied where it is kept.

use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::{Caller, Look, Seeker};
use crate::dataflow::documents::{InForce, SharedDocuments};
use crate::dataflow::epochs::Stash;
use dupflow_core::run::visit::Found;
use dupflow_core::time::Epoch;

/// Finds the documents that visitors ask about. `look` tells what to compare by, of a document's place and of
/// what is in force of it; `changed` has no record of an epoch any more once all documents are as the epoch
/// has left them.
pub(in crate::dataflow) fn find<'scope, V: InForce, D: Clone + 'static>(
    seekers: Stream<'scope, Epoch, Vec<Seeker>>,
    changed: &Stream<'scope, Epoch, Vec<D>>,
    documents: SharedDocuments<V>,
    look: impl Fn(u32, V) -> Look + 'static,
) -> Stream<'scope, Epoch, Vec<Caller>> {
    let mut builder = OperatorBuilder::new("Find".to_owned(), seekers.scope());
    let mut seekers = builder.new_input(seekers, Exchange::new(|s: &Seeker| s.hash));
    let mut behind = builder.new_input(changed.clone(), Pipeline);
    let (callers, stream) = builder.new_output();
    let mut callers = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(callers);
    builder.build(move |_| {
        let (mut stash, nothing) = (Stash::<Seeker>::new(), Stash::<D>::new());
        move |frontiers| {
            seekers.for_each_time(|time, data| stash.keep(&time, 1, data));
            // Only its frontier counts.
            behind.for_each_time(|_, _| ());
            let documents = documents.borrow();
            // While an epoch is applied nobody is let in. That ends, for no epoch follows another for ever:
            // it would wait for the visitor.
            while let Some(epoch) = documents.epoch()
                && let Some((capabilities, present)) = stash.next_begun(&frontiers[1..], &nothing)
            {
                // Later epochs may have been applied here.
                let next = (*capabilities[0].time()).max(epoch + 1);
                let capability = capabilities[0].delayed(&next);
                let mut callers = callers.activate();
                let mut session = callers.session(&capability);
                for Seeker { name, top, hash, id } in present {
                    let caller = match documents.alive(hash, &id) {
                        Some((place, document)) => {
                            let found = Found {
                                position: document.position(),
                                ts: document.ts(),
                                changed: document.changed(),
                            };
                            Caller {
                                name,
                                top,
                                document: Some((id, found)),
                                look: look(place, document.value),
                            }
                        }
                        None => Caller { name, top, document: None, look: Look::Nothing },
                    };
                    session.give(caller);
                }
            }
        }
    });
    stream
}
