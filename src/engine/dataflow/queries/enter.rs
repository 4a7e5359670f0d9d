//! Enter: sends a query's sketch to the workers that own one of its blocks.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use timely::dataflow::Stream;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::Capability;

use super::{AnswerPart, PartialAnswer, Probe, QuerySubject, ResolvedQuery, SketchedQuery};
use crate::dataflow::operator::Operator;
use crate::dataflow::operator::epochs::Stash;
use crate::dataflow::sketches::parcels;
use crate::dataflow::sketches::store::Sketches;
use crate::dataflow::stages::Stages;
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
    let mut operator = Operator::new("Enter", resolved.scope());
    let mut resolved = operator.input(resolved, Exchange::new(ResolvedQuery::owner));
    let mut changed = operator.input(changed.clone(), Pipeline);
    let (mut probes, probes_stream) = operator.output();
    let (mut partial_answers, partial_answers_stream) = operator.output();

    let (mut waiting, nothing) = (Stash::<ResolvedQuery>::new(), Stash::<D>::new());
    operator.build(move |frontiers| {
        let mut send = |capabilities: &[Capability<Epoch>], queries: Vec<ResolvedQuery>| {
            let (mut probes, mut partial_answers) =
                (probes.at(capabilities), partial_answers.at(capabilities));
            for ResolvedQuery { query_id, top, document, subject } in queries {
                let sketched = match subject {
                    QuerySubject::Sketch(id, sketch) => Some((id, *sketch)),
                    QuerySubject::Stored(low) => {
                        let mut sketches = sketches.borrow_mut();
                        sketches.fetch_halves(std::iter::once(low));
                        // An answer describes the epoch before its time.
                        let epoch = *capabilities[0].time() - 1;
                        let id = document.as_ref().and_then(|(id, _)| sketches.of_document(low, id, epoch));
                        id.map(|id| (id, sketches.copied(id)))
                    }
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
                let part = AnswerPart::Entered { sketched: is_sketched, probes: sent, document: last_event };
                partial_answers.give(PartialAnswer { query_id, part });
            }
        };
        resolved.for_each_time(|time, data| {
            let (mut stored, others): (Vec<_>, Vec<_>) = data
                .flat_map(|d| d.drain(..))
                .partition(|query| matches!(query.subject, QuerySubject::Stored(_)));
            if !stored.is_empty() {
                waiting.keep(&time, 2, std::iter::once(&mut stored));
            }
            if !others.is_empty() {
                send(&[time.retain(0), time.retain(1)], others);
            }
        });
        // Only the frontier is used.
        changed.for_each_time(|_, _| ());
        while let Some((capabilities, queries)) = waiting.next_begun(&frontiers[1..], &nothing) {
            send(&capabilities, queries);
        }
    });
    EnterOutputs { probes: probes_stream, partial_answers: partial_answers_stream }
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
