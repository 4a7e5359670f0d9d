//! Enter: a visitor's sketch to those workers who own a block of its.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::{Caller, Guest, Look, Note, Presence, Said};
use crate::dataflow::epochs::Stash;
use crate::dataflow::sketches::Sketches;
use crate::dataflow::{Stages, parcels};
use dupflow_core::block::{BlockKey, Blocking};
use dupflow_core::time::Epoch;

/// Visitors on their way.
pub(in crate::dataflow) struct Entered<'scope> {
    pub(in crate::dataflow) guests: Stream<'scope, Epoch, Vec<Guest>>,
    pub(in crate::dataflow) notes: Stream<'scope, Epoch, Vec<Note>>,
}

/// Sends visitors, who have a sketch now if they have any, to the blocks. Those of documents take theirs from
/// `sketches`, once all is held that the epoch before has brought: that is when `changed` has no record of it
/// any more.
pub(in crate::dataflow) fn enter<'scope, D: Clone + 'static>(
    callers: Stream<'scope, Epoch, Vec<Caller>>,
    changed: &Stream<'scope, Epoch, Vec<D>>,
    sketches: Rc<RefCell<Sketches>>,
    stages: &Stages,
) -> Entered<'scope> {
    let peers = callers.scope().peers();
    let blocking = Arc::clone(&stages.blocking);
    let mut builder = OperatorBuilder::new("Enter".to_owned(), callers.scope());
    let mut callers = builder.new_input(callers, Exchange::new(Caller::owner));
    let mut changed = builder.new_input(changed.clone(), Pipeline);
    let (guests, guests_stream) = builder.new_output();
    let (notes, notes_stream) = builder.new_output();
    let mut guests = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(guests);
    let mut notes = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(notes);

    builder.build(move |_| {
        let (mut waiting, nothing) = (Stash::<Caller>::new(), Stash::<D>::new());
        move |frontiers| {
            let mut let_in = |capabilities: &[Capability<Epoch>],
                              present: &mut dyn Iterator<Item = Caller>| {
                let (mut guests, mut notes) = (guests.activate(), notes.activate());
                let (mut guests, mut notes) =
                    (guests.session(&capabilities[0]), notes.session(&capabilities[1]));
                for Caller { name, top, document, look } in present {
                    let sketched = match look {
                        Look::Sketch(id, sketch) => Some((id, *sketch)),
                        Look::Held(id) => Some((id, sketches.borrow().get(id).to_owned())),
                        Look::Nothing | Look::Terms(_) | Look::Weighed(_) => None,
                    };
                    let (document, found) = document.unzip();
                    let (is_sketched, mut sent) = (sketched.is_some(), 0);
                    if let Some((id, sketch)) = sketched {
                        let presence = Presence { name, top, document, id, sketch };
                        guests_of(&presence, &*blocking, peers, |guest| {
                            guests.give(guest);
                            sent += 1;
                        });
                    }
                    let said = Said::Entered { sketched: is_sketched, guests: sent, document: found };
                    notes.give(Note { name, said });
                }
            };
            callers.for_each_time(|time, data| {
                let (mut held, mut others): (Vec<_>, Vec<_>) =
                    data.flat_map(|d| d.drain(..)).partition(|caller| matches!(caller.look, Look::Held(_)));
                if !held.is_empty() {
                    waiting.keep(&time, 2, std::iter::once(&mut held));
                }
                if !others.is_empty() {
                    let_in(&[time.retain(0), time.retain(1)], &mut others.drain(..));
                }
            });
            // Only its frontier counts.
            changed.for_each_time(|_, _| ());
            while let Some((capabilities, present)) = waiting.next_begun(&frontiers[1..], &nothing) {
                let_in(&capabilities, &mut present.into_iter());
            }
        }
    });
    Entered { guests: guests_stream, notes: notes_stream }
}

/// A visitor to all workers who own a block of its sketch, and to the one that owns the sketch, for its
/// copies.
fn guests_of(presence: &Presence, blocking: &dyn Blocking, peers: usize, mut send: impl FnMut(Guest)) {
    let mut keys = Vec::new();
    blocking.keys(presence.sketch.view(), &mut keys);
    for (to, owned) in by_owner(&keys, peers) {
        if !owned.is_empty() || to == presence.id.low() % peers as u64 {
            send(Guest { to, presence: presence.clone(), keys: owned });
        }
    }
}

/// Of each worker, the keys that it owns.
fn by_owner(keys: &[BlockKey], peers: usize) -> impl Iterator<Item = (u64, Vec<BlockKey>)> {
    let mut owned = vec![Vec::new(); peers];
    keys.iter().for_each(|key| owned[parcels::owner(*key, peers)].push(*key));
    (0..).zip(owned)
}
