//! Retain: what the events of an epoch, and the [retention](dupflow_core::doc::retention), make of the
//! documents.
//!
//! ```text
//! arrivals ─ Upsert ───────────────────────────────── what is told of documents     without a limit of their number
//!   clock ──┘
//! arrivals ─ Upsert ─ slots ─ Surplus ─ oldest keys ─ Retire ─ what is told         with one
//!   clock ──┘  ▲      (all)             (all)            │
//!              └───────────── the epoch is settled ──────┘
//! ```
//!
//! Of each document's events in an epoch the last one wins. The clock of the epoch has come from all workers
//! when the epoch closes, so what is too old is known without a further round: late arrivals end what was in
//! force, and the oldest documents expire.
//!
//! Where slots are limited, each worker tells all how many more it has; if they are too many by X, each tells
//! all its X oldest keys, and gives up those of its own that are among the X oldest of all. The documents are
//! shared by the three operators. "Upsert" applies no epoch, and "Surplus" tells no keys of one, before
//! "Retire" of this worker has settled all earlier ones: keys are those of the epoch that asks for them. The
//! frontier of "Retire" says that no worker has keys of an earlier epoch still to tell.
//!
//! What is told leaves when the epoch is settled, net: a document that comes and goes in it leaves no trace.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::{Capability, InputCapability};
use timely::scheduling::Activator;

use super::Stages;
use super::arrival::Arrival;
use super::documents::{Documents, SharedDocuments};
use super::epochs::Stash;
use super::key::Key;
use super::output::Reached;
use super::retaining::{Follow, Outputs, Retaining};
use dupflow_core::run::origins::{InputBeginning, Origins};
use dupflow_core::time::{Epoch, UnixTime};

/// What all workers have to know of a batch, on its way to one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Tick {
    pub(super) to: u64,
    /// Its time, where documents expire by age.
    pub(super) at: Option<UnixTime>,
    /// The inputs that have begun, where one process reads for others.
    pub(super) begins: Vec<InputBeginning>,
}

/// How many more slots a worker has, on the way to another.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct MoreSlots {
    to: u64,
    more: i64,
}

/// The oldest keys of a worker, on the way to another; there are `surplus` too many slots.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Oldest {
    to: u64,
    surplus: usize,
    keys: Vec<Key>,
}

/// What the events of an epoch come to.
pub(super) struct Retained<'scope, F: Follow> {
    /// What is told of documents.
    pub(super) records: Stream<'scope, Epoch, Vec<F::Record>>,
    /// How many more documents count, where that has changed.
    pub(super) more: Stream<'scope, Epoch, Vec<i64>>,
    /// What a later run needs to go on from here, if documents are kept; and what was done to which document.
    pub(super) reached: Stream<'scope, Epoch, Vec<Reached>>,
    /// The documents of this worker.
    pub(super) documents: SharedDocuments<F::Value>,
}

/// Applies the events of each epoch to the documents, which are partitioned by the hash of their ids. `ticks`
/// are the times of batches.
pub(super) fn retain<'scope, F: Follow>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    name: &str,
    stages: &Stages,
) -> Retained<'scope, F> {
    let documents = Rc::new(RefCell::new(Documents::new(&stages.retention, stages.ids_move)));
    let retaining = Retaining::<F>::new(Rc::clone(&documents), stages);
    let (records, more, reached) = match stages.retention.max_documents {
        None => at_once(arrivals, ticks, name, retaining),
        Some(most) => in_rounds(arrivals, ticks, name, retaining, most),
    };
    Retained { records, more, reached, documents }
}

/// What leaves, as streams.
type Leaving<'scope, F> = (
    Stream<'scope, Epoch, Vec<<F as Follow>::Record>>,
    Stream<'scope, Epoch, Vec<i64>>,
    Stream<'scope, Epoch, Vec<Reached>>,
);

/// The three outputs of an operator that settles epochs.
macro_rules! leaving {
    ($builder:ident => $give:ident, $streams:ident) => {
        let (records, records_stream) = $builder.new_output();
        let (more, more_stream) = $builder.new_output();
        let (reached, reached_stream) = $builder.new_output();
        let mut records = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(records);
        let mut more = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(more);
        let mut reached = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(reached);
        let mut $give = move |capabilities: &[Capability<Epoch>], retaining: &mut Retaining<F>| {
            let (mut records, mut more, mut reached) =
                (records.activate(), more.activate(), reached.activate());
            let mut records = records.session(&capabilities[0]);
            let mut more = more.session(&capabilities[1]);
            let mut reached = reached.session(&capabilities[2]);
            retaining.settle(Outputs {
                record: &mut |record| records.give(record),
                more: &mut |n| more.give(n),
                reached: &mut |one| reached.give(one),
            });
        };
        let $streams = (records_stream, more_stream, reached_stream);
    };
}

/// Without a limit of slots: an epoch is settled when it is applied.
fn at_once<'scope, F: Follow>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    name: &str,
    mut retaining: Retaining<F>,
) -> Leaving<'scope, F> {
    let mut builder = OperatorBuilder::new(name.to_owned(), arrivals.scope());
    let mut arrivals = builder.new_input(arrivals, Exchange::new(|a: &Arrival| a.hash));
    let mut ticks = builder.new_input(ticks, Exchange::new(|tick: &Tick| tick.to));
    leaving!(builder => give, streams);
    builder.build(move |_| {
        let mut epochs = Epochs::new(retaining.origins.clone());
        move |frontiers| {
            arrivals.for_each_time(|time, data| epochs.stash.keep(&time, 3, data));
            ticks.for_each_time(|time, data| epochs.tick(&time, 3, data));
            while let Some((capabilities, events)) = epochs.stash.next_closed(frontiers) {
                let epoch = *capabilities[0].time();
                retaining.apply(epoch, events, epochs.clock_of(epoch));
                give(&capabilities, &mut retaining);
            }
        }
    });
    streams
}

/// The documents of a worker, as the three operators of [`in_rounds`] share them.
struct Shared<F: Follow> {
    retaining: Rc<RefCell<Retaining<F>>>,
    /// Epochs before this one are settled: on this worker, and all have told their oldest keys of them.
    settled: Rc<Cell<Epoch>>,
}

impl<F: Follow> Clone for Shared<F> {
    fn clone(&self) -> Self {
        Self { retaining: Rc::clone(&self.retaining), settled: Rc::clone(&self.settled) }
    }
}

/// With at most `most` slots, of all workers.
fn in_rounds<'scope, F: Follow>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    name: &str,
    retaining: Retaining<F>,
    most: u64,
) -> Leaving<'scope, F> {
    let shared = Shared { retaining: Rc::new(RefCell::new(retaining)), settled: Rc::default() };
    let (slots, first) = apply(arrivals, ticks, name, shared.clone());
    let (oldest, second) = surplus(slots, shared.clone(), most);
    retire(oldest, shared, [first, second])
}

/// Applies each epoch once all before it are settled, and tells how many more slots there are.
fn apply<'scope, F: Follow>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    name: &str,
    shared: Shared<F>,
) -> (Stream<'scope, Epoch, Vec<MoreSlots>>, Activator) {
    let scope = arrivals.scope();
    let (this, peers) = (scope.index() as u64, scope.peers() as u64);
    let mut builder = OperatorBuilder::new(name.to_owned(), scope);
    let again = scope.activator_for(builder.operator_info().address);
    let mut arrivals = builder.new_input(arrivals, Exchange::new(|a: &Arrival| a.hash));
    let mut ticks = builder.new_input(ticks, Exchange::new(|tick: &Tick| tick.to));
    let (slots, slots_stream) = builder.new_output();
    let mut slots = OutputBuilder::<_, CapacityContainerBuilder<Vec<MoreSlots>>>::from(slots);
    builder.build(move |_| {
        let mut epochs = Epochs::new(shared.retaining.borrow().origins.clone());
        move |frontiers| {
            arrivals.for_each_time(|time, data| epochs.stash.keep(&time, 1, data));
            ticks.for_each_time(|time, data| epochs.tick(&time, 1, data));
            while epochs.stash.first().is_some_and(|epoch| epoch <= shared.settled.get())
                && let Some((capabilities, events)) = epochs.stash.next_closed(frontiers)
            {
                let epoch = *capabilities[0].time();
                let clock = epochs.clock_of(epoch);
                let more = shared.retaining.borrow_mut().apply(epoch, events, clock);
                // Oneself always, so that the epoch is settled.
                let to = (0..peers).filter(|to| *to == this || more != 0);
                slots.activate().session(&capabilities[0]).give_iterator(to.map(|to| MoreSlots { to, more }));
            }
        }
    });
    (slots_stream, again)
}

/// Adds up the slots of all workers, and tells the oldest keys of this one if there are too many.
///
/// As "Upsert" it waits until this worker has settled all before: a worker without events of an epoch does
/// not hold back the others, which may ask for its keys before it has given up those of the epoch before.
fn surplus<'scope, F: Follow>(
    slots: Stream<'scope, Epoch, Vec<MoreSlots>>,
    shared: Shared<F>,
    most: u64,
) -> (Stream<'scope, Epoch, Vec<Oldest>>, Activator) {
    let scope = slots.scope();
    let (this, peers) = (scope.index() as u64, scope.peers() as u64);
    let mut builder = OperatorBuilder::new("Surplus".to_owned(), scope);
    let again = scope.activator_for(builder.operator_info().address);
    let mut slots = builder.new_input(slots, Exchange::new(|more: &MoreSlots| more.to));
    let (oldest, oldest_stream) = builder.new_output();
    let mut oldest = OutputBuilder::<_, CapacityContainerBuilder<Vec<Oldest>>>::from(oldest);
    builder.build(move |_| {
        let mut stash = Stash::<MoreSlots>::new();
        let mut all = 0_u64;
        move |frontiers| {
            slots.for_each_time(|time, data| stash.keep(&time, 1, data));
            while stash.first().is_some_and(|epoch| epoch <= shared.settled.get())
                && let Some((capabilities, told)) = stash.next_closed(frontiers)
            {
                let more = told.iter().map(|one| one.more).sum();
                all = all.checked_add_signed(more).expect("no more slots go than came");
                // All workers come to the same number.
                let surplus = usize::try_from(all.saturating_sub(most)).expect("slots fit in memory");
                all = all.min(most);
                let keys = shared.retaining.borrow().documents.borrow_mut().oldest(surplus);
                let to = (0..peers).filter(|to| *to == this || surplus > 0);
                let to_each = to.map(|to| Oldest { to, surplus, keys: keys.clone() });
                oldest.activate().session(&capabilities[0]).give_iterator(to_each);
            }
        }
    });
    (oldest_stream, again)
}

/// Gives up the slots that are among the oldest of all, settles the epoch, and lets the next one be applied.
fn retire<'scope, F: Follow>(
    oldest: Stream<'scope, Epoch, Vec<Oldest>>,
    shared: Shared<F>,
    waiting: [Activator; 2],
) -> Leaving<'scope, F> {
    let mut builder = OperatorBuilder::new("Retire".to_owned(), oldest.scope());
    let mut oldest = builder.new_input(oldest, Exchange::new(|one: &Oldest| one.to));
    leaving!(builder => give, streams);
    builder.build(move |_| {
        let mut stash = Stash::<Oldest>::new();
        move |frontiers| {
            oldest.for_each_time(|time, data| stash.keep(&time, 3, data));
            while let Some((capabilities, told)) = stash.next_closed(frontiers) {
                let mut retaining = shared.retaining.borrow_mut();
                let surplus = told.first().map_or(0, |first| first.surplus);
                let mut keys: Vec<Key> = told.into_iter().flat_map(|one| one.keys).collect();
                if surplus > 0 {
                    let (_, last, _) = keys.select_nth_unstable(surplus - 1);
                    retaining.retire(*last);
                }
                give(&capabilities, &mut retaining);
            }
            let open = frontiers[0].frontier().first().copied().unwrap_or(Epoch::MAX);
            if shared.settled.replace(open) != open {
                waiting.iter().for_each(Activator::activate);
            }
        }
    });
    streams
}

/// The open epochs of an operator that takes arrivals, and their clocks.
struct Epochs {
    stash: Stash<Arrival>,
    clocks: BTreeMap<Epoch, Option<UnixTime>>,
    origins: Option<Arc<Origins>>,
}

impl Epochs {
    fn new(origins: Option<Arc<Origins>>) -> Self {
        Self { stash: Stash::new(), clocks: BTreeMap::new(), origins }
    }

    /// Batches of an epoch have these times, and begin these inputs: it is handled, also without events. With
    /// the capability for each of `outputs` outputs.
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

    /// The greatest time of the batches of an epoch, which is closed.
    fn clock_of(&mut self, epoch: Epoch) -> Option<UnixTime> {
        self.clocks.remove(&epoch).flatten()
    }
}
