//! Ingest: each worker pulls its share of the events and sketches them before anything travels: sketches, not
//! texts, leave this operator.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::{Scope, Stream};
use timely::scheduling::Activator;

use super::arrival::{Arrival, Content};
use super::key::Key;
use super::output::Reached;
use super::retain::Tick;
use super::visitors::{Caller, Lobby, Look, Seeker};
use super::{Stages, kept};
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::doc::{DocEvent, Letter, Position, without_separators};
use dupflow_core::hash;
use dupflow_core::run::metrics::Counter;
use dupflow_core::run::visit::{Question, Visitor};
use dupflow_core::sketch::SketchMaker;
use dupflow_core::time::{Epoch, UnixTime};

/// Epochs that may be open at once: enough to keep every stage busy, few enough to bound what is held.
const EPOCHS_IN_FLIGHT: Epoch = 4;

/// Visitors that are let in between two batches of events: enough that they wait for few, few enough that
/// they cost the events little.
const LET_IN: usize = 4;

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
    /// Where each of several processes reads all: the process, and a hash of what the batch was for all of
    /// them.
    pub seen: Option<(usize, u64)>,
    /// When it was read, in unix seconds, where documents expire by the time of day: told by one process of
    /// several.
    pub at: Option<f64>,
}

/// Where a worker's events come from.
///
/// Contract: epochs never go back; each `Batch` is followed by one `read`; whoever has events or an end to
/// tell after an `Idle` calls what `wake_with` was given. `pull` never blocks. After a failure it is `Idle`
/// for ever: an epoch that was not read to its end must not close.
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
    /// Who has come to ask about a text, at the time of an epoch that is open.
    pub(super) callers: Stream<'scope, Epoch, Vec<Caller>>,
    /// Who has come to ask about a document.
    pub(super) seekers: Stream<'scope, Epoch, Vec<Seeker>>,
    /// Of every batch its time, to all workers, where documents expire by age; and the inputs that have
    /// begun, where other processes need them.
    pub(super) ticks: Stream<'scope, Epoch, Vec<Tick>>,
    /// Gives the operator a new look at how far the others are.
    pub(super) wake: Activator,
}

/// Sketches the events of this worker. `open` is the first epoch that is not closed everywhere, kept by the
/// output. Visitors are let into `lobby`, a few at a time: they and the events go by turns.
pub(super) fn ingest<'scope>(
    scope: Scope<'scope, Epoch>,
    stages: &Stages,
    mut intake: Box<dyn Intake>,
    open: Rc<Cell<Epoch>>,
    lobby: Rc<RefCell<Lobby>>,
) -> Ingested<'scope> {
    let mut builder = OperatorBuilder::new("Ingest".to_owned(), scope);
    let (output, arrivals) = builder.new_output();
    let (read, read_stream) = builder.new_output();
    let (ticks, ticks_stream) = builder.new_output();
    let mut ticks = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(ticks);
    let mut output = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(output);
    let mut read = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(read);
    let (callers, callers_stream) = builder.new_output();
    let mut callers = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(callers);
    let (seekers, seekers_stream) = builder.new_output();
    let mut seekers = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(seekers);
    let address = builder.operator_info().address;
    let activator = scope.activator_for(Rc::clone(&address));
    let waker = || -> Box<dyn Fn() + Send> {
        let wake = scope.worker().sync_activator_for(address.to_vec());
        // A worker that is gone needs no waking.
        Box::new(move || wake.activate().unwrap_or(()))
    };
    intake.wake_with(waker());
    let door = stages.visitors.register(waker());

    let mut maker = SketchMaker::new(&stages.scheme);
    let is_live = stages.scheme.live().is_some();
    let has_fields = !stages.scheme.text.field_names().is_empty();
    let ids_move = stages.ids_move;
    let metrics = Arc::clone(&stages.metrics);
    let (retention, live) = (stages.retention, Arc::clone(&stages.live));
    let peers = scope.peers() as u64;
    // Each worker sends all of them with its own batches: no epoch of those closes before they are there.
    let (origins, mut sent) = (stages.origins.clone(), 0);
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
                    let (mut events, mut all_bytes, mut empty, mut restored) = (0, 0, 0, 0);
                    let mut newest = None;
                    let taken = intake.read(&mut |given| {
                        let (position, event) = match given {
                            Given::Event(position, event) => (position, event),
                            Given::Kept(id, value) => {
                                let document = kept::restore(id, value, &maker);
                                let document =
                                    document.expect("what is kept under a scheme is read under it");
                                newest = newest.max(document.ts.and_then(UnixTime::new));
                                restored += u64::from(!matches!(document.content, Content::Delete));
                                session.give(document);
                                return;
                            }
                        };
                        events += 1;
                        let length = event.text.as_ref().map_or(0, |text| text.len());
                        let content = match event.text {
                            None => Content::Delete,
                            Some(text) => {
                                all_bytes += text.len() as u64;
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
                        let DocEvent { id, ts, written, .. } = event;
                        newest = newest.max(ts.and_then(UnixTime::new));
                        let is_restored = false;
                        // Between partitions the time of the record decides, and not what its payload says.
                        let key = ids_move.then(|| Key::of(written, position));
                        let key = key.filter(|key| *key != Key::of(ts, position)).map(Box::new);
                        let bytes = u32::try_from(length).unwrap_or(u32::MAX);
                        session.give(Arrival { hash, id, position, ts, content, bytes, is_restored, key });
                    });
                    let reached = taken.end.map(Reached::Read).into_iter();
                    let letters = taken.letters.into_iter().map(Reached::Letter);
                    let seen = taken.seen.map(|(process, hash)| Reached::Seen(process, hash)).into_iter();
                    let at = match retention.clock {
                        RetentionClock::Event => newest,
                        // What is repeated is compared with the time of then, as the output stands.
                        RetentionClock::Wall => {
                            taken.at.filter(|_| live.holds(epoch)).and_then(UnixTime::new)
                        }
                    };
                    let at = at.filter(|_| retention.max_age.is_some());
                    let clock = at.map(|at| Reached::Clock(retention.clock.at(at)));
                    let all = reached.chain(letters).chain(seen).chain(clock);
                    read.activate().session(&held[1]).give_iterator(all);
                    let begins = origins.as_ref().map_or_else(Vec::new, |origins| origins.noted(&mut sent));
                    if at.is_some() || !begins.is_empty() {
                        let to_each = (0..peers).map(|to| Tick { to, at, begins: begins.clone() });
                        ticks.activate().session(&held[2]).give_iterator(to_each);
                    }
                    metrics.add(Counter::Restored, restored);
                    metrics.add(Counter::Events, events);
                    metrics.add(Counter::Bytes, all_bytes);
                    metrics.add(Counter::Empty, empty);
                    again.activate();
                }
            }
            let Some(now) = held.first().map(|capability| *capability.time()) else { return };
            if !live.holds(now) {
                return;
            }
            door.live();
            for _ in 0..LET_IN {
                let Some(Visitor { question, reply }) = door.take(now) else { return };
                match question {
                    Question::Text { text, top } => {
                        let name = lobby.borrow_mut().let_in(reply, top);
                        let text = if has_fields { without_separators(&text) } else { text.as_str().into() };
                        let look = if is_live {
                            maker.terms(&text).map(|terms| Look::Terms(Box::new(terms)))
                        } else {
                            maker.sketch(&text).map(|(id, made)| Look::Sketch(id, Box::new(made)))
                        };
                        let look = look.unwrap_or(Look::Nothing);
                        let caller = Caller { name, top, document: None, look };
                        callers.activate().session(&held[3]).give(caller);
                    }
                    Question::Document { id, top } => {
                        let name = lobby.borrow_mut().let_in(reply, top);
                        let hash = hash::bytes(0, id.as_bytes());
                        seekers.activate().session(&held[4]).give(Seeker { name, top, hash, id });
                    }
                }
            }
            // There may be more.
            again.activate();
        }
    });
    Ingested {
        arrivals,
        read: read_stream,
        callers: callers_stream,
        seekers: seekers_stream,
        ticks: ticks_stream,
        wake: activator,
    }
}

/// Gives up the epochs before this one; one that has been given up stays so.
fn advance(held: &mut [Capability<Epoch>], epoch: Epoch) {
    held.iter_mut()
        .filter(|capability| *capability.time() < epoch)
        .for_each(|capability| capability.downgrade(&epoch));
}
