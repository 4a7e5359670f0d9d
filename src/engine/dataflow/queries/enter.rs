//! Enter: sends a query's sketch to the workers that own one of its blocks.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::{AnswerPart, PartialAnswer, Probe, QuerySubject, ResolvedQuery, SketchedQuery};
use crate::dataflow::epochs::Stash;
use crate::dataflow::sketches::Sketches;
use crate::dataflow::{Stages, parcels};
use dupflow_core::block::{BlockKey, Blocking};
use dupflow_core::time::Epoch;

/// The outputs of [`enter`].
pub(in crate::dataflow) struct EnterOutputs<'scope> {
    pub(in crate::dataflow) probes: Stream<'scope, Epoch, Vec<Probe>>,
    pub(in crate::dataflow) partial_answers: Stream<'scope, Epoch, Vec<PartialAnswer>>,
}

/// Sends queries, which have their sketch now if they have any, to the blocks. Id queries read theirs from
/// `sketches`, once these hold all changes of the epoch before: that is when `changed` can receive no more
/// records of it.
pub(in crate::dataflow) fn enter<'scope, D: Clone + 'static>(
    resolved: Stream<'scope, Epoch, Vec<ResolvedQuery>>,
    changed: &Stream<'scope, Epoch, Vec<D>>,
    sketches: Rc<RefCell<Sketches>>,
    stages: &Stages,
) -> EnterOutputs<'scope> {
    let peers = resolved.scope().peers();
    let blocking = Arc::clone(&stages.blocking);
    let mut builder = OperatorBuilder::new("Enter".to_owned(), resolved.scope());
    let mut resolved = builder.new_input(resolved, Exchange::new(ResolvedQuery::owner));
    let mut changed = builder.new_input(changed.clone(), Pipeline);
    let (probes, guests_stream) = builder.new_output();
    let (partial_answers, notes_stream) = builder.new_output();
    let mut probes = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(probes);
    let mut partial_answers = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(partial_answers);

    builder.build(move |_| {
        let (mut waiting, nothing) = (Stash::<ResolvedQuery>::new(), Stash::<D>::new());
        move |frontiers| {
            let mut admit = |capabilities: &[Capability<Epoch>],
                             present: &mut dyn Iterator<Item = ResolvedQuery>| {
                let (mut probes, mut partial_answers) = (probes.activate(), partial_answers.activate());
                let (mut probes, mut partial_answers) =
                    (probes.session(&capabilities[0]), partial_answers.session(&capabilities[1]));
                for ResolvedQuery { query_id, top, document, subject } in present {
                    let sketched = match subject {
                        QuerySubject::Sketch(id, sketch) => Some((id, *sketch)),
                        QuerySubject::Stored(id) => Some((id, sketches.borrow().get(id).to_owned())),
                        QuerySubject::Nothing | QuerySubject::Terms(_) | QuerySubject::Weighed(_) => None,
                    };
                    let (document, last_event) = document.unzip();
                    let (is_sketched, mut sent) = (sketched.is_some(), 0);
                    if let Some((id, sketch)) = sketched {
                        let query = SketchedQuery { query_id, top, document, id, sketch };
                        probes_of(&query, &*blocking, peers, |probe| {
                            probes.give(probe);
                            sent += 1;
                        });
                    }
                    let part =
                        AnswerPart::Entered { sketched: is_sketched, probes: sent, document: last_event };
                    partial_answers.give(PartialAnswer { query_id, part });
                }
            };
            resolved.for_each_time(|time, data| {
                let (mut held, mut others): (Vec<_>, Vec<_>) = data
                    .flat_map(|d| d.drain(..))
                    .partition(|query| matches!(query.subject, QuerySubject::Stored(_)));
                if !held.is_empty() {
                    waiting.keep(&time, 2, std::iter::once(&mut held));
                }
                if !others.is_empty() {
                    admit(&[time.retain(0), time.retain(1)], &mut others.drain(..));
                }
            });
            // Only the frontier is used.
            changed.for_each_time(|_, _| ());
            while let Some((capabilities, present)) = waiting.next_begun(&frontiers[1..], &nothing) {
                admit(&capabilities, &mut present.into_iter());
            }
        }
    });
    EnterOutputs { probes: guests_stream, partial_answers: notes_stream }
}

/// Sends a query to all workers that own a block of its sketch, and to the one that owns the sketch, for its
/// copies.
fn probes_of(query: &SketchedQuery, blocking: &dyn Blocking, peers: usize, mut send: impl FnMut(Probe)) {
    let mut keys = Vec::new();
    blocking.keys(query.sketch.view(), &mut keys);
    for (to, owned) in by_owner(&keys, peers) {
        if !owned.is_empty() || to == query.id.low() % peers as u64 {
            send(Probe { to, query: query.clone(), keys: owned });
        }
    }
}

/// By worker, the keys that it owns.
fn by_owner(keys: &[BlockKey], peers: usize) -> impl Iterator<Item = (u64, Vec<BlockKey>)> {
    let mut owned = vec![Vec::new(); peers];
    keys.iter().for_each(|key| owned[parcels::owner(*key, peers)].push(*key));
    (0..).zip(owned)
}
