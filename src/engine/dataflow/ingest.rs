//! Ingest: each worker pulls its share of the events and sketches them before they are sent on. Sketches
//! leave this operator, texts do not.
//!
//! It is the only operator without inputs, so it also admits [queries](super::queries): it decides which
//! epochs are open.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use timely::dataflow::operators::Capability;
use timely::dataflow::{Scope, Stream};
use timely::scheduling::Activator;

use super::documents::arrival::{Arrival, ArrivalContent};
use super::documents::kept;
use super::documents::sketched::sketched;
use super::intake::{BatchEnd, BatchRecord, Intake, Pull};
use super::operator::{Operator, Output};
use super::output::EpochReport;
use super::queries::{Admission, IdQuery, PendingQueries, ResolvedQuery};
use super::stages::Stages;
use super::watches::{WatchContent, WatchUpdate};
use crate::dataflow::documents::retain::Tick;
use dupflow_core::doc::fields::FieldFlaws;
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::sketch::SketchMaker;
use dupflow_core::time::{Epoch, UnixTime};
use dupflow_run::metrics::Counter;
use dupflow_run::origins::Origins;
use dupflow_run::watch::WatchChange;

/// Epochs that may be open at once: enough to keep every stage busy, few enough to bound memory.
const EPOCHS_IN_FLIGHT: Epoch = 4;

/// The outputs of [`ingest`].
pub(super) struct IngestOutputs<'scope> {
    pub(super) arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    /// For every batch the position after it, and what else is known of it.
    pub(super) read: Stream<'scope, Epoch, Vec<EpochReport>>,
    /// For every batch a tick to all workers: its time, where documents expire by age, and the inputs that
    /// have begun, where other processes need them.
    pub(super) ticks: Stream<'scope, Epoch, Vec<Tick>>,
    /// Text queries, at the time of an epoch that is open.
    pub(super) resolved: Stream<'scope, Epoch, Vec<ResolvedQuery>>,
    /// Id queries, at the time of an epoch that is open.
    pub(super) id_queries: Stream<'scope, Epoch, Vec<IdQuery>>,
    /// Changes of the watch list for every worker; `None` if there is no list.
    pub(super) watches: Option<Stream<'scope, Epoch, Vec<WatchUpdate>>>,
    /// Schedules the operator again, so that it reads the first open epoch.
    pub(super) wake: Activator,
}

/// Sketches the events of this worker. `open` is the first epoch that is not closed on all workers, set by
/// the output. Queries are admitted a few at a time, alternating with batches of events, and recorded in
/// `pending`. Once the run is live, `at_live` is scheduled.
pub(super) fn ingest<'scope>(
    scope: Scope<'scope, Epoch>,
    stages: &Stages,
    mut intake: Box<dyn Intake>,
    open: Rc<Cell<Epoch>>,
    pending: Rc<RefCell<PendingQueries>>,
    at_live: Rc<Cell<Option<Activator>>>,
) -> IngestOutputs<'scope> {
    let mut operator = Operator::new("Ingest", scope);
    let (arrivals, arrivals_stream) = operator.output();
    let (reports, read) = operator.output();
    let (ticks, ticks_stream) = operator.output();
    let (resolved, resolved_stream) = operator.output();
    let (id_queries, id_queries_stream) = operator.output();
    let (watches, watches_stream) = stages.watches.then(|| operator.output()).unzip();
    intake.wake_with(operator.waker());
    let receiver = stages.observers.queries.register(operator.waker());
    let (again, wake) = (operator.activator(), operator.activator());

    let live = Arc::clone(&stages.start.live);
    let mut maker = SketchMaker::new(&stages.scheme);
    let mut batches = Batches::new(stages, scope.peers(), BatchOutputs { arrivals, reports, ticks, watches });
    let mut admission = Admission::new(stages, receiver, pending, resolved, id_queries);
    operator.build_source(move |capabilities| {
        if live.get().is_some() {
            at_live.take().into_iter().for_each(|waits| waits.activate());
        }
        if capabilities.is_empty() {
            return;
        }
        match intake.pull(open.get() + EPOCHS_IN_FLIGHT - 1) {
            Pull::Done => capabilities.clear(),
            Pull::Idle(epoch) => advance(capabilities, epoch),
            Pull::Batch(epoch) => {
                advance(capabilities, epoch);
                batches.read(&mut *intake, epoch, capabilities, &mut maker);
                again.activate();
            }
        }
        let Some(now) = capabilities.first().map(|capability| *capability.time()) else { return };
        if live.holds(now) && admission.admit(capabilities, &mut maker) {
            again.activate();
        }
    });
    IngestOutputs {
        arrivals: arrivals_stream,
        read,
        ticks: ticks_stream,
        resolved: resolved_stream,
        id_queries: id_queries_stream,
        watches: watches_stream,
        wake,
    }
}

/// Drops the right to send at epochs before this one.
fn advance(capabilities: &mut [Capability<Epoch>], epoch: Epoch) {
    capabilities
        .iter_mut()
        .filter(|capability| *capability.time() < epoch)
        .for_each(|capability| capability.downgrade(&epoch));
}

/// The outputs that events use.
struct BatchOutputs {
    arrivals: Output<Arrival>,
    reports: Output<EpochReport>,
    ticks: Output<Tick>,
    watches: Option<Output<WatchUpdate>>,
}

/// Reads batches of events.
struct Batches {
    outputs: BatchOutputs,
    stages: Stages,
    /// Where one process reads for others: the inputs that have begun, and how many of these were sent. Each
    /// worker sends them to all workers with its own batches: no epoch with these batches closes before they
    /// have arrived.
    origins: Option<Arc<Origins>>,
    sent: usize,
    peers: u64,
}

impl Batches {
    fn new(stages: &Stages, peers: usize, outputs: BatchOutputs) -> Self {
        Self {
            outputs,
            stages: stages.clone(),
            origins: stages.observers.origins.clone(),
            sent: 0,
            peers: peers as u64,
        }
    }

    /// Reads the batch just pulled, of this epoch, and sends its events, reports and ticks.
    fn read(
        &mut self,
        intake: &mut dyn Intake,
        epoch: Epoch,
        capabilities: &[Capability<Epoch>],
        maker: &mut SketchMaker,
    ) {
        let until = self.stages.until;
        let (mut after, mut undated) = (0, 0);
        let mut arrivals = self.outputs.arrivals.at(capabilities);
        let (mut events, mut bytes, mut empty, mut weightless, mut too_short) = (0, 0, 0, 0, 0);
        let (mut restored, mut reference) = (0, 0);
        let (mut newest, mut flaws) = (None, [0; 3]);
        let mut updates = Vec::new();
        let end = intake.read(&mut |record| {
            let arrival = match record {
                BatchRecord::Event(_, event) if until.is_some_and(|until| is_after(event.ts, until)) => {
                    after += 1;
                    return;
                }
                BatchRecord::Event(position, event) => {
                    let FieldFlaws { missing, too_long, unusable } = event.fields.flaws;
                    for (count, n) in flaws.iter_mut().zip([missing, too_long, unusable]) {
                        *count += u64::from(n);
                    }
                    undated += u64::from(until.is_some() && event.ts.is_none());
                    let is_old =
                        self.origins.as_ref().is_some_and(|origins| origins.is_of_reference(position.offset));
                    let arrival = sketched(position, event, is_old, maker, &self.stages);
                    events += 1;
                    bytes += u64::from(arrival.bytes);
                    empty += u64::from(matches!(arrival.content, ArrivalContent::Empty));
                    weightless += u64::from(matches!(arrival.content, ArrivalContent::Weightless));
                    too_short += u64::from(arrival.content.is_too_short(&*self.stages.filter));
                    arrival
                }
                BatchRecord::Restored(id, value) => {
                    let arrival = kept::restore(id, value, maker);
                    let arrival = arrival.expect("what is kept under a scheme is read under it");
                    let is_alive = u64::from(!matches!(arrival.content, ArrivalContent::Delete));
                    if self.stages.has_frozen_reference() && arrival.id.is_of_reference() {
                        reference += is_alive;
                    } else {
                        restored += is_alive;
                    }
                    arrival
                }
                BatchRecord::Watched(change) => {
                    return updates.push(watch_update(change, maker, self.stages.scheme.live().is_some()));
                }
            };
            newest = newest.max(arrival.ts.and_then(UnixTime::new));
            arrivals.give(arrival);
        });
        drop(arrivals);
        self.send_watches(&updates, capabilities);
        self.report(end, epoch, newest, capabilities);
        for (counter, n) in [
            (Counter::Restored, restored),
            (Counter::Reference, reference),
            (Counter::Events, events),
            (Counter::Bytes, bytes),
            (Counter::Empty, empty),
            (Counter::Weightless, weightless),
            (Counter::TooShort, too_short),
            (Counter::FieldsMissing, flaws[0]),
            (Counter::FieldsTooLong, flaws[1]),
            (Counter::FieldsUnusable, flaws[2]),
            (Counter::AfterUntil, after),
            (Counter::UndatedUntil, undated),
        ] {
            self.stages.observers.metrics.add(counter, n);
        }
    }

    /// Sends changes of the watch list to all workers.
    fn send_watches(&mut self, updates: &[WatchUpdate], capabilities: &[Capability<Epoch>]) {
        let Some(watches) = self.outputs.watches.as_mut().filter(|_| !updates.is_empty()) else { return };
        let mut watches = watches.at(capabilities);
        for update in updates {
            watches.give_all((0..self.peers).map(|to| WatchUpdate { to, ..update.clone() }));
        }
    }

    /// Reports what was read of an epoch, with `newest` the greatest `ts` of the batch, and sends its tick.
    fn report(
        &mut self,
        end: BatchEnd,
        epoch: Epoch,
        newest: Option<UnixTime>,
        capabilities: &[Capability<Epoch>],
    ) {
        let Stages { retention, start, .. } = &self.stages;
        let at = match retention.clock {
            RetentionClock::Event => newest,
            // A repeated batch is compared with the clock stored in its progress, as the output has it.
            RetentionClock::Wall => end.at.filter(|_| start.live.holds(epoch)).and_then(UnixTime::new),
        };
        let at = at.filter(|_| retention.max_age.is_some());
        let mut reports = self.outputs.reports.at(capabilities);
        reports.give_all(newest.filter(|_| self.stages.times).map(EpochReport::Newest));
        reports.give_all(end.end.map(EpochReport::Read));
        reports.give_all(end.last.map(|(partition, last)| EpochReport::Last(partition, last)));
        reports.give_all(end.letters.into_iter().map(EpochReport::Letter));
        reports.give_all(end.seen.map(|(process, hash)| EpochReport::Seen(process, hash)));
        reports.give_all(at.map(|at| EpochReport::Clock(retention.clock.at(at))));
        let begins = self.origins.as_ref().map_or_else(Vec::new, |origins| origins.noted(&mut self.sent));
        if at.is_some() || !begins.is_empty() {
            let to_each = (0..self.peers).map(|to| Tick { to, at, begins: begins.clone() });
            self.outputs.ticks.at(capabilities).give_all(to_each);
        }
    }
}

/// Whether an event of this time is after `until`; an event without a time is not.
fn is_after(ts: Option<f64>, until: UnixTime) -> bool {
    ts.is_some_and(|ts| ts > until.seconds())
}

/// A change of the watch list as the dataflow sends it: with the sketch of its text or, under live weights,
/// the terms.
fn watch_update(change: &WatchChange, maker: &mut SketchMaker, is_live: bool) -> WatchUpdate {
    let content = match &change.text {
        None => WatchContent::Nothing,
        Some(text) if is_live => {
            maker.terms(text).map_or(WatchContent::Nothing, |terms| WatchContent::Terms(Box::new(terms)))
        }
        Some(text) => maker
            .sketch(text)
            .map_or(WatchContent::Nothing, |(id, sketch)| WatchContent::Sketch(id, Box::new(sketch))),
    };
    WatchUpdate { to: 0, number: change.number, watch: change.id.clone(), content }
}
