//! Retain: applies the events of an epoch and the [retention](dupflow_core::doc::retention) to the documents.
//!
//! ```text
//! arrivals ─ Upsert ───────────────────────────────── changes of documents     no limit of their number
//!    ticks ──┘
//! arrivals ─ Upsert ─ slots ─ Surplus ─ oldest keys ─ Retire ─ changes         with a limit
//!    ticks ──┘  ▲      (all)             (all)            │
//!               └───────────── the epoch is settled ──────┘
//! ```
//!
//! Of each document's events in an epoch the last one wins. When an epoch closes, its ticks have arrived from
//! all workers, so its clock is known without another round: late arrivals end their documents, and the
//! oldest documents expire.
//!
//! Where slots are limited, each worker sends all workers the number of slots it has gained. If the total is
//! X too many, each worker sends all its X oldest keys, and gives up those of its own slots that are among
//! the X oldest of all. The three operators share the documents. "Upsert" applies an epoch, and "Surplus"
//! sends its keys, only after "Retire" of this worker has settled all earlier epochs: the keys are always
//! those of the epoch that needs them. When the frontier of "Retire" passes an epoch, no worker has keys of
//! it left to send.
//!
//! The changes are emitted when the epoch is settled, net: a document that is added and removed in one epoch
//! leaves no trace.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::{Capability, InputCapability};
use timely::scheduling::Activator;

use crate::dataflow::documents::arrival::Arrival;
use crate::dataflow::documents::key::EventKey;
use crate::dataflow::documents::retaining::{Follow, Outputs, Retaining};
use crate::dataflow::documents::store::{DocumentStore, SharedDocuments};
use crate::dataflow::operator::epochs::Stash;
use crate::dataflow::operator::{Operator, Output};
use crate::dataflow::output::EpochReport;
use crate::dataflow::stages::Stages;
use dupflow_core::time::{Epoch, UnixTime};
use dupflow_run::origins::{InputBeginning, Origins};

/// What one worker must know of a batch that another has read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dataflow) struct Tick {
    pub(in crate::dataflow) to: u64,
    /// The time of the batch, where documents expire by age.
    pub(in crate::dataflow) at: Option<UnixTime>,
    /// The inputs that have begun, where one process reads for others.
    pub(in crate::dataflow) begins: Vec<InputBeginning>,
}

/// The number of slots that a worker has gained, sent to another.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct MoreSlots {
    to: u64,
    more: i64,
}

/// The oldest keys of a worker, sent to another, when there are `surplus` slots too many.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Oldest {
    to: u64,
    surplus: usize,
    keys: Vec<EventKey>,
}

/// The outputs of [`retain`].
pub(in crate::dataflow) struct RetainOutputs<'scope, F: Follow> {
    /// Changes of documents.
    pub(in crate::dataflow) records: Stream<'scope, Epoch, Vec<F::Emitted>>,
    /// Changes of the number of documents that count, where not 0.
    pub(in crate::dataflow) more: Stream<'scope, Epoch, Vec<i64>>,
    /// What a later run needs to continue from here, if documents are kept; and the causes.
    pub(in crate::dataflow) reports: Stream<'scope, Epoch, Vec<EpochReport>>,
    /// The documents of this worker.
    pub(in crate::dataflow) documents: SharedDocuments<F::LiveValue>,
}

/// Applies the events of each epoch to the documents, which are partitioned by the hash of their ids.
pub(in crate::dataflow) fn retain<'scope, F: Follow>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    name: &str,
    stages: &Stages,
) -> RetainOutputs<'scope, F> {
    let documents = Rc::new(RefCell::new(DocumentStore::for_run(stages)));
    let retaining = Retaining::<F>::new(Rc::clone(&documents), stages);
    let (records, more, reports) = match stages.retention.max_documents {
        None => at_once(arrivals, ticks, name, retaining),
        Some(most) => in_rounds(arrivals, ticks, name, retaining, most),
    };
    RetainOutputs { records, more, reports, documents }
}

/// The outputs, as streams.
type Leaving<'scope, F> = (
    Stream<'scope, Epoch, Vec<<F as Follow>::Emitted>>,
    Stream<'scope, Epoch, Vec<i64>>,
    Stream<'scope, Epoch, Vec<EpochReport>>,
);

/// The three outputs of an operator that settles epochs.
struct SettlePorts<F: Follow> {
    records: Output<F::Emitted>,
    more: Output<i64>,
    reports: Output<EpochReport>,
}

impl<F: Follow> SettlePorts<F> {
    fn new<'scope>(operator: &mut Operator<'scope>) -> (Self, Leaving<'scope, F>) {
        let (records, records_stream) = operator.output();
        let (more, more_stream) = operator.output();
        let (reports, reports_stream) = operator.output();
        (Self { records, more, reports }, (records_stream, more_stream, reports_stream))
    }

    /// Settles the epoch of these capabilities.
    fn settle(&mut self, capabilities: &[Capability<Epoch>], retaining: &mut Retaining<F>) {
        let (mut records, mut more) = (self.records.at(capabilities), self.more.at(capabilities));
        let mut reports = self.reports.at(capabilities);
        let outputs = Outputs {
            record: &mut |record| records.give(record),
            more: &mut |n| more.give(n),
            reports: &mut |report| reports.give(report),
        };
        retaining.settle(*capabilities[0].time(), outputs);
    }
}

/// Without a limit of slots: an epoch is settled as soon as it is applied.
fn at_once<'scope, F: Follow>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    name: &str,
    mut retaining: Retaining<F>,
) -> Leaving<'scope, F> {
    let mut operator = Operator::new(name, arrivals.scope());
    let mut arrivals = operator.input(arrivals, Exchange::new(|a: &Arrival| a.hash));
    let mut ticks = operator.input(ticks, Exchange::new(|tick: &Tick| tick.to));
    let (mut ports, streams) = SettlePorts::new(&mut operator);
    let mut epochs = ArrivalEpochs::new(retaining.origins.clone());
    operator.build(move |frontiers| {
        arrivals.for_each_time(|time, data| epochs.stash.keep(&time, 3, data));
        ticks.for_each_time(|time, data| epochs.tick(&time, 3, data));
        while let Some((capabilities, events)) = epochs.stash.next_closed(frontiers) {
            let epoch = *capabilities[0].time();
            retaining.apply(epoch, events, epochs.clock_of(epoch));
            ports.settle(&capabilities, &mut retaining);
        }
    });
    streams
}

/// The documents of a worker, shared by the three operators of [`in_rounds`].
struct SharedRetaining<F: Follow> {
    retaining: Rc<RefCell<Retaining<F>>>,
    /// Epochs before this one are settled on this worker, and all workers have sent their oldest keys of
    /// them.
    settled: Rc<Cell<Epoch>>,
}

impl<F: Follow> Clone for SharedRetaining<F> {
    fn clone(&self) -> Self {
        Self { retaining: Rc::clone(&self.retaining), settled: Rc::clone(&self.settled) }
    }
}

/// With at most `most` slots over all workers: an epoch is settled in two rounds.
fn in_rounds<'scope, F: Follow>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    name: &str,
    retaining: Retaining<F>,
    most: u64,
) -> Leaving<'scope, F> {
    let shared = SharedRetaining { retaining: Rc::new(RefCell::new(retaining)), settled: Rc::default() };
    let (slots, first) = apply(arrivals, ticks, name, shared.clone());
    let (oldest, second) = surplus(slots, shared.clone(), most);
    retire(oldest, shared, [first, second])
}

/// Applies each epoch once all earlier ones are settled, and sends how many slots were gained.
fn apply<'scope, F: Follow>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    name: &str,
    shared: SharedRetaining<F>,
) -> (Stream<'scope, Epoch, Vec<MoreSlots>>, Activator) {
    let scope = arrivals.scope();
    let (this, peers) = (scope.index() as u64, scope.peers() as u64);
    let mut operator = Operator::new(name, scope);
    let again = operator.activator();
    let mut arrivals = operator.input(arrivals, Exchange::new(|a: &Arrival| a.hash));
    let mut ticks = operator.input(ticks, Exchange::new(|tick: &Tick| tick.to));
    let (mut slots, slots_stream) = operator.output();
    let mut epochs = ArrivalEpochs::new(shared.retaining.borrow().origins.clone());
    operator.build(move |frontiers| {
        arrivals.for_each_time(|time, data| epochs.stash.keep(&time, 1, data));
        ticks.for_each_time(|time, data| epochs.tick(&time, 1, data));
        while epochs.stash.first().is_some_and(|epoch| epoch <= shared.settled.get())
            && let Some((capabilities, events)) = epochs.stash.next_closed(frontiers)
        {
            let epoch = *capabilities[0].time();
            let clock = epochs.clock_of(epoch);
            let more = shared.retaining.borrow_mut().apply(epoch, events, clock);
            // Always to itself, so that the epoch is settled.
            let to = (0..peers).filter(|to| *to == this || more != 0);
            slots.at(&capabilities).give_all(to.map(|to| MoreSlots { to, more }));
        }
    });
    (slots_stream, again)
}

/// Adds up the slots of all workers, and sends the oldest keys of this worker if there are too many.
///
/// Like "Upsert" it waits until this worker has settled all earlier epochs. A worker without events in an
/// epoch does not delay the others, which may ask for its keys before it has given up those of the epoch
/// before.
fn surplus<'scope, F: Follow>(
    slots: Stream<'scope, Epoch, Vec<MoreSlots>>,
    shared: SharedRetaining<F>,
    most: u64,
) -> (Stream<'scope, Epoch, Vec<Oldest>>, Activator) {
    let scope = slots.scope();
    let (this, peers) = (scope.index() as u64, scope.peers() as u64);
    let mut operator = Operator::new("Surplus", scope);
    let again = operator.activator();
    let mut slots = operator.input(slots, Exchange::new(|more: &MoreSlots| more.to));
    let (mut oldest, oldest_stream) = operator.output();
    let mut stash = Stash::<MoreSlots>::new();
    let mut all = 0_u64;
    operator.build(move |frontiers| {
        slots.for_each_time(|time, data| stash.keep(&time, 1, data));
        while stash.first().is_some_and(|epoch| epoch <= shared.settled.get())
            && let Some((capabilities, records)) = stash.next_closed(frontiers)
        {
            let more = records.iter().map(|one| one.more).sum();
            all = all.checked_add_signed(more).expect("no more slots are given up than were gained");
            // All workers compute the same number.
            let surplus = usize::try_from(all.saturating_sub(most)).expect("slots fit in memory");
            all = all.min(most);
            let keys = shared.retaining.borrow().documents.borrow_mut().oldest(surplus);
            let to = (0..peers).filter(|to| *to == this || surplus > 0);
            oldest.at(&capabilities).give_all(to.map(|to| Oldest { to, surplus, keys: keys.clone() }));
        }
    });
    (oldest_stream, again)
}

/// Gives up the slots that are among the oldest of all, settles the epoch, and lets the next one be applied.
fn retire<'scope, F: Follow>(
    oldest: Stream<'scope, Epoch, Vec<Oldest>>,
    shared: SharedRetaining<F>,
    waiting: [Activator; 2],
) -> Leaving<'scope, F> {
    let mut operator = Operator::new("Retire", oldest.scope());
    let mut oldest = operator.input(oldest, Exchange::new(|one: &Oldest| one.to));
    let (mut ports, streams) = SettlePorts::new(&mut operator);
    let mut stash = Stash::<Oldest>::new();
    operator.build(move |frontiers| {
        oldest.for_each_time(|time, data| stash.keep(&time, 3, data));
        while let Some((capabilities, records)) = stash.next_closed(frontiers) {
            let mut retaining = shared.retaining.borrow_mut();
            let surplus = records.first().map_or(0, |first| first.surplus);
            let mut keys: Vec<EventKey> = records.into_iter().flat_map(|one| one.keys).collect();
            if surplus > 0 {
                let (_, last, _) = keys.select_nth_unstable(surplus - 1);
                retaining.retire(*last);
            }
            ports.settle(&capabilities, &mut retaining);
        }
        let open = frontiers[0].frontier().first().copied().unwrap_or(Epoch::MAX);
        if shared.settled.replace(open) != open {
            waiting.iter().for_each(Activator::activate);
        }
    });
    streams
}

/// The open epochs of an operator that receives arrivals, and their clocks.
struct ArrivalEpochs {
    stash: Stash<Arrival>,
    clocks: BTreeMap<Epoch, Option<UnixTime>>,
    origins: Option<Arc<Origins>>,
}

impl ArrivalEpochs {
    fn new(origins: Option<Arc<Origins>>) -> Self {
        Self { stash: Stash::new(), clocks: BTreeMap::new(), origins }
    }

    /// Stores the ticks of an epoch, which is then handled even without events, and the inputs that have
    /// begun. Keeps the capability for each of `outputs` outputs.
    fn tick<'a>(
        &mut self,
        time: &InputCapability<Epoch>,
        outputs: usize,
        data: impl Iterator<Item = &'a mut Vec<Tick>>,
    ) {
        self.stash.keep(time, outputs, std::iter::empty::<&mut Vec<Arrival>>());
        let clock = self.clocks.entry(*time.time()).or_default();
        for Tick { at, begins, .. } in data.flat_map(|batches| batches.drain(..)) {
            *clock = at.max(*clock);
            if let Some(origins) = &self.origins {
                begins.into_iter().for_each(|begin| origins.learn(begin));
            }
        }
    }

    /// The greatest time of the batches of a closed epoch.
    fn clock_of(&mut self, epoch: Epoch) -> Option<UnixTime> {
        self.clocks.remove(&epoch).flatten()
    }
}
