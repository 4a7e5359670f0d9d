//! Ingest: each worker pulls its share of the events and sketches them before they are sent on. Sketches
//! leave this operator, texts do not.

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
use super::key::EventKey;
use super::output::EpochReport;
use super::queries::{IdQuery, PendingQueries, QuerySubject, ResolvedQuery};
use super::retain::Tick;
use super::{Stages, kept};
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::doc::{DocEvent, Letter, Position, without_separators};
use dupflow_core::hash;
use dupflow_core::run::metrics::Counter;
use dupflow_core::run::query::{Query, QueuedQuery};
use dupflow_core::sketch::SketchMaker;
use dupflow_core::time::{Epoch, UnixTime};

/// Epochs that may be open at once: enough to keep every stage busy, few enough to bound memory.
const EPOCHS_IN_FLIGHT: Epoch = 4;

/// Queries that are admitted between two batches of events: enough to keep their waiting time short, few
/// enough to hardly delay the events.
const QUERIES_AT_ONCE: usize = 4;

/// The answer of [`Intake::pull`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// Events of this epoch are ready to be read.
    Batch(Epoch),
    /// No events now, and none of an epoch before this one will follow. 0 adds no information.
    Idle(Epoch),
    /// No more events will follow.
    Done,
}

/// One record of a batch.
#[derive(Debug)]
pub enum BatchRecord<'a> {
    /// An event and its position.
    Event(Position, DocEvent<'a>),
    /// A live document: its id, and the value that an earlier run kept.
    Restored(&'a [u8], &'a [u8]),
}

/// What a batch holds except its events.
#[derive(Debug, Default)]
pub struct BatchEnd {
    /// The position after the batch, where its partition continues; `None` if the batch has no partition.
    pub end: Option<Position>,
    /// Invalid records of the batch, if they are kept with their epoch.
    pub letters: Vec<Letter>,
    /// Where each of several processes reads the whole input: the index of the process, and a hash of the
    /// batch as all processes must see it.
    pub seen: Option<(usize, u64)>,
    /// When the batch was read, in unix seconds, where documents expire by wall-clock time. With several
    /// processes, one of them sets it.
    pub at: Option<f64>,
}

/// The source of a worker's events.
///
/// Contract: epochs never decrease. Each `Batch` is followed by one `read`. When events or the end of the
/// input follow an `Idle`, the intake comparisons the function passed to `wake_with`. `pull` never blocks. After a
/// failure it returns `Idle` forever: an epoch that was not read to its end must not close.
pub trait Intake {
    /// Asks for events of an epoch up to `limit`, inclusive.
    fn pull(&mut self, limit: Epoch) -> Pull;

    /// Reads the batch just pulled.
    fn read(&mut self, each: &mut dyn FnMut(BatchRecord<'_>)) -> BatchEnd;

    /// Sets the function that wakes this worker.
    fn wake_with(&mut self, wake: Box<dyn Fn() + Send>);
}

/// The outputs of the ingest: sketched events, and for every batch the position after it.
pub(super) struct IngestOutputs<'scope> {
    pub(super) arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    pub(super) read: Stream<'scope, Epoch, Vec<EpochReport>>,
    /// Text queries, at the time of an epoch that is open.
    pub(super) resolved: Stream<'scope, Epoch, Vec<ResolvedQuery>>,
    /// Id queries, at the time of an epoch that is open.
    pub(super) id_queries: Stream<'scope, Epoch, Vec<IdQuery>>,
    /// For every batch a tick to all workers: its time, where documents expire by age, and the inputs that
    /// have begun, where other processes need them.
    pub(super) ticks: Stream<'scope, Epoch, Vec<Tick>>,
    /// Schedules the operator again, so that it reads the first open epoch.
    pub(super) wake: Activator,
}

/// Sketches the events of this worker. `open` is the first epoch that is not closed on all workers, set by
/// the output. Queries are admitted a few at a time, alternating with batches of events, and recorded in
/// `pending`.
pub(super) fn ingest<'scope>(
    scope: Scope<'scope, Epoch>,
    stages: &Stages,
    mut intake: Box<dyn Intake>,
    open: Rc<Cell<Epoch>>,
    pending: Rc<RefCell<PendingQueries>>,
) -> IngestOutputs<'scope> {
    let mut builder = OperatorBuilder::new("Ingest".to_owned(), scope);
    let (output, arrivals) = builder.new_output();
    let (read, read_stream) = builder.new_output();
    let (ticks, ticks_stream) = builder.new_output();
    let mut ticks = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(ticks);
    let mut output = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(output);
    let mut read = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(read);
    let (resolved, callers_stream) = builder.new_output();
    let mut resolved = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(resolved);
    let (id_queries, seekers_stream) = builder.new_output();
    let mut id_queries = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(id_queries);
    let address = builder.operator_info().address;
    let activator = scope.activator_for(Rc::clone(&address));
    let waker = || -> Box<dyn Fn() + Send> {
        let wake = scope.worker().sync_activator_for(address.to_vec());
        // A worker that has ended need not be woken.
        Box::new(move || wake.activate().unwrap_or(()))
    };
    intake.wake_with(waker());
    let receiver = stages.queries.register(waker());

    let mut maker = SketchMaker::new(&stages.scheme);
    let is_live = stages.scheme.live().is_some();
    let has_fields = !stages.scheme.text.field_names().is_empty();
    let ids_move = stages.ids_move;
    let metrics = Arc::clone(&stages.metrics);
    let (retention, live) = (stages.retention, Arc::clone(&stages.live));
    let peers = scope.peers() as u64;
    // Each worker sends the beginnings to all workers with its own batches: no epoch with these batches
    // closes before they have arrived.
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
                    let taken = intake.read(&mut |record| {
                        let (position, event) = match record {
                            BatchRecord::Event(position, event) => (position, event),
                            BatchRecord::Restored(id, value) => {
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
                                    maker
                                        .sketch(&text)
                                        .map(|(id, sketch)| Content::Sketch(id, Box::new(sketch)))
                                };
                                empty += u64::from(content.is_none());
                                content.unwrap_or(Content::Empty)
                            }
                        };
                        let hash = hash::bytes(0, event.id.as_str().as_bytes());
                        let DocEvent { id, ts, written, .. } = event;
                        newest = newest.max(ts.and_then(UnixTime::new));
                        let is_restored = false;
                        // Between partitions the time of the record decides, not the `ts` of its payload.
                        let key = ids_move.then(|| EventKey::new(written, position));
                        let key = key.filter(|key| *key != EventKey::new(ts, position)).map(Box::new);
                        let bytes = u32::try_from(length).unwrap_or(u32::MAX);
                        session.give(Arrival { hash, id, position, ts, content, bytes, is_restored, key });
                    });
                    let reports = taken.end.map(EpochReport::Read).into_iter();
                    let letters = taken.letters.into_iter().map(EpochReport::Letter);
                    let seen = taken.seen.map(|(process, hash)| EpochReport::Seen(process, hash)).into_iter();
                    let at = match retention.clock {
                        RetentionClock::Event => newest,
                        // A repeated batch is compared with the clock stored in its progress, as the output
                        // has it.
                        RetentionClock::Wall => {
                            taken.at.filter(|_| live.holds(epoch)).and_then(UnixTime::new)
                        }
                    };
                    let at = at.filter(|_| retention.max_age.is_some());
                    let clock = at.map(|at| EpochReport::Clock(retention.clock.at(at)));
                    let all = reports.chain(letters).chain(seen).chain(clock);
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
            receiver.live();
            for _ in 0..QUERIES_AT_ONCE {
                let Some(QueuedQuery { query, reply }) = receiver.take(now) else { return };
                match query {
                    Query::Text { text, top } => {
                        let query_id = pending.borrow_mut().admit(reply, top);
                        let text = if has_fields { without_separators(&text) } else { text.as_str().into() };
                        let subject = if is_live {
                            maker.terms(&text).map(|terms| QuerySubject::Terms(Box::new(terms)))
                        } else {
                            maker.sketch(&text).map(|(id, sketch)| QuerySubject::Sketch(id, Box::new(sketch)))
                        };
                        let subject = subject.unwrap_or(QuerySubject::Nothing);
                        let query = ResolvedQuery { query_id, top, document: None, subject };
                        resolved.activate().session(&held[3]).give(query);
                    }
                    Query::Document { id, top } => {
                        let query_id = pending.borrow_mut().admit(reply, top);
                        let hash = hash::bytes(0, id.as_bytes());
                        id_queries.activate().session(&held[4]).give(IdQuery { query_id, top, hash, id });
                    }
                }
            }
            // More batches or queries may be waiting.
            again.activate();
        }
    });
    IngestOutputs {
        arrivals,
        read: read_stream,
        resolved: callers_stream,
        id_queries: seekers_stream,
        ticks: ticks_stream,
        wake: activator,
    }
}

/// Drops the right to send at epochs before this one.
fn advance(held: &mut [Capability<Epoch>], epoch: Epoch) {
    held.iter_mut()
        .filter(|capability| *capability.time() < epoch)
        .for_each(|capability| capability.downgrade(&epoch));
}
