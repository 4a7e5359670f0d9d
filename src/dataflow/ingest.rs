//! Ingest: each worker pulls its share of the events and sketches them before anything travels: sketches, not texts,
//! leave this operator.

use std::cell::Cell;
use std::rc::Rc;

use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::{Scope, Stream};
use timely::scheduling::Activator;

use super::arrival::{Arrival, Content};
use super::output::Reached;
use super::{Stages, kept};
use crate::doc::{DocEvent, Letter, Position};
use crate::hash;
use crate::metrics::Counter;
use crate::sketch::SketchMaker;
use crate::time::Epoch;

/// Epochs that may be open at once: enough to keep every stage busy, few enough to bound what is held.
const EPOCHS_IN_FLIGHT: Epoch = 4;

/// What a worker finds when it asks for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// Events of this epoch are ready to be read.
    Batch(Epoch),
    /// None for now; none of an epoch before this one will come. 0 says nothing new.
    Idle(Epoch),
    /// None will come.
    Done,
}

/// What a batch holds.
#[derive(Debug)]
pub enum Given<'a> {
    /// An event, and where it stands.
    Event(Position, DocEvent<'a>),
    /// A document alive, by its id and the value that an earlier run kept.
    Kept(&'a [u8], &'a [u8]),
}

/// What a batch has come to, beside its events.
#[derive(Debug, Default)]
pub struct Taken {
    /// The position after it: of its partition, where to go on; none if it stands in no partition.
    pub end: Option<Position>,
    /// Its records that are no events, if they are kept with their epoch.
    pub letters: Vec<Letter>,
    /// Where each of several processes reads all: the process, and a hash of what the batch was for all of them.
    pub seen: Option<(usize, u64)>,
}

/// Where a worker's events come from.
///
/// Contract: epochs never go back; each `Batch` is followed by one `read`; whoever has events or an end to tell after an
/// `Idle` calls what `wake_with` was given. `pull` never blocks. After a failure it is `Idle` for ever: an epoch that was not
/// read to its end must not close.
pub trait Intake {
    /// Asks for events of an epoch up to `limit`, inclusive.
    fn pull(&mut self, limit: Epoch) -> Pull;

    /// Reads the batch just pulled.
    fn read(&mut self, each: &mut dyn FnMut(Given<'_>)) -> Taken;

    /// Hands over what wakes this worker.
    fn wake_with(&mut self, wake: Box<dyn Fn() + Send>);
}

/// What leaves: the events, and of every batch the position after it.
pub(super) struct Ingested<'scope> {
    pub(super) arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    pub(super) read: Stream<'scope, Epoch, Vec<Reached>>,
    /// Gives the operator a new look at how far the others are.
    pub(super) wake: Activator,
}

/// Sketches the events of this worker. `open` is the first epoch that is not closed everywhere, kept by the output.
pub(super) fn ingest<'scope>(
    scope: Scope<'scope, Epoch>,
    stages: &Stages,
    mut intake: Box<dyn Intake>,
    open: Rc<Cell<Epoch>>,
) -> Ingested<'scope> {
    let mut builder = OperatorBuilder::new("Ingest".to_owned(), scope);
    let (output, arrivals) = builder.new_output();
    let (read, read_stream) = builder.new_output();
    let mut output = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(output);
    let mut read = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(read);
    let address = builder.operator_info().address;
    let activator = scope.activator_for(Rc::clone(&address));
    let wake = scope.worker().sync_activator_for(address.to_vec());
    // A worker that is gone needs no waking.
    intake.wake_with(Box::new(move || wake.activate().unwrap_or(())));

    let mut maker = SketchMaker::new(&stages.scheme);
    let is_live = stages.scheme.live().is_some();
    let metrics = std::sync::Arc::clone(&stages.metrics);
    let again = scope.activator_for(address);
    builder.build(move |capabilities| {
        let mut held = capabilities;
        move |_| {
            if held.is_empty() {
                return;
            }
            match intake.pull(open.get() + EPOCHS_IN_FLIGHT - 1) {
                Pull::Done => held.clear(),
                Pull::Idle(epoch) => advance(&mut held, epoch),
                Pull::Batch(epoch) => {
                    advance(&mut held, epoch);
                    let mut output = output.activate();
                    let mut session = output.session(&held[0]);
                    let (mut events, mut bytes, mut empty, mut restored) = (0, 0, 0, 0);
                    let taken = intake.read(&mut |given| {
                        let (position, event) = match given {
                            Given::Event(position, event) => (position, event),
                            Given::Kept(id, value) => {
                                let document = kept::restore(id, value, &maker);
                                session.give(document.expect("what is kept under a scheme is read under it"));
                                restored += 1;
                                return;
                            }
                        };
                        events += 1;
                        let content = match event.text {
                            None => Content::Delete,
                            Some(text) => {
                                bytes += text.len() as u64;
                                let content = if is_live {
                                    maker.terms(&text).map(|terms| Content::Terms(Box::new(terms)))
                                } else {
                                    maker.sketch(&text).map(|(id, made)| Content::Sketch(id, Box::new(made)))
                                };
                                empty += u64::from(content.is_none());
                                content.unwrap_or(Content::Empty)
                            }
                        };
                        let hash = hash::bytes(0, event.id.as_str().as_bytes());
                        let DocEvent { id, ts, .. } = event;
                        session.give(Arrival { hash, id, position, ts, content, is_restored: false });
                    });
                    let reached = taken.end.map(Reached::Read).into_iter();
                    let letters = taken.letters.into_iter().map(Reached::Letter);
                    let seen = taken.seen.map(|(process, hash)| Reached::Seen(process, hash)).into_iter();
                    read.activate().session(&held[1]).give_iterator(reached.chain(letters).chain(seen));
                    metrics.add(Counter::Restored, restored);
                    metrics.add(Counter::Events, events);
                    metrics.add(Counter::Bytes, bytes);
                    metrics.add(Counter::Empty, empty);
                    again.activate();
                }
            }
        }
    });
    Ingested { arrivals, read: read_stream, wake: activator }
}

/// Gives up the epochs before this one; one that has been given up stays so.
fn advance(held: &mut [Capability<Epoch>], epoch: Epoch) {
    held.iter_mut()
        .filter(|capability| *capability.time() < epoch)
        .for_each(|capability| capability.downgrade(&epoch));
}
