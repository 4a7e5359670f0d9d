//! Runs the dataflow over events in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dupflow::core::doc::fields::{FieldRow, FieldRules, RawValue};
use dupflow::core::doc::{DocEvent, DocId, Position};
use dupflow::core::hash::mix;
use dupflow::core::memory::PlaceInMemory;
use dupflow::core::pair::DocPair;
use dupflow::core::time::{Epoch, LiveFrom};
use dupflow::engine::dataflow::{
    BatchEnd, BatchRecord, ClosedEpoch, Emit, Intake, Pull, Spill, Stages, build,
};
use timely::CommunicationConfig;

use crate::data::Event;

/// An epoch, a pair, and whether the pair is added (1) or removed (-1).
pub(crate) type Delta = (Epoch, DocPair, isize);

/// How a history is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) workers: usize,
    /// Whether records are serialized between workers, as they are between processes.
    pub(crate) serialized: bool,
    /// The worker that reads each event, and the [memory budget](budget).
    pub(crate) seed: u64,
}

/// A memory budget for half of all seeds: rows are in files, with caches of 1 to 16 pages of one row or more.
pub(crate) fn budget(seed: u64) -> Option<Spill> {
    let random = mix(seed ^ 0x5b_11);
    (random & 1 == 0).then(|| spill(random >> 1, None))
}

/// Any spill; its files fail after so many reads and writes.
pub(crate) fn spill(random: u64, passes: Option<u64>) -> Spill {
    let page_bytes = [1, 512, 4096][usize::try_from(random % 3).unwrap()];
    let cache_bytes = page_bytes.max(512) * usize::try_from(1 + (random >> 8) % 16).unwrap();
    Spill { place: Arc::new(PlaceInMemory { passes }), page_bytes, cache_bytes, memory_bytes: 0 }
}

/// The deltas of a history that is cut into epochs 1, 2, …; the events of an epoch are distributed over the
/// workers at random.
pub(crate) fn deltas(stages: &Stages, epochs: &[Vec<Event>], run: Run) -> Vec<Delta> {
    deltas_through(stages, epochs, run, |_, script| script)
}

/// As [`deltas`]; a worker reads what `through` returns for its script and its index.
pub(crate) fn deltas_through(
    stages: &Stages,
    epochs: &[Vec<Event>],
    run: Run,
    through: impl Fn(usize, Box<dyn Intake>) -> Box<dyn Intake> + Send + Sync + 'static,
) -> Vec<Delta> {
    let stamped = |(id, text): &Event| Stamped::new(id.clone(), text.clone(), None);
    let epochs = epochs.iter().map(|epoch| Epoched { events: epoch.iter().map(stamped).collect(), at: None });
    let told = closed_through(stages, &epochs.collect::<Vec<_>>(), &Past::default(), run, through);
    told.into_iter().flat_map(deltas_of).collect()
}

/// The deltas of an epoch, without their causes.
pub(crate) fn deltas_of(told: ClosedEpoch) -> impl Iterator<Item = Delta> {
    let epoch = told.progress.epoch;
    told.deltas.into_iter().map(move |delta| (epoch, delta.pair, delta.diff))
}

/// An event with its time.
#[derive(Clone, Debug)]
pub(crate) struct Stamped {
    pub(crate) id: DocId,
    pub(crate) text: Option<String>,
    pub(crate) ts: Option<f64>,
    /// When its record was written.
    pub(crate) written: Option<f64>,
    pub(crate) fields: FieldRow,
}

impl Stamped {
    /// Without fields; written at the time of the event.
    pub(crate) fn new(id: DocId, text: Option<String>, ts: Option<f64>) -> Self {
        Self { id, text, ts, written: ts, fields: FieldRow::default() }
    }
}

/// The events of an epoch, and the wall-clock time at which it is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Epoched {
    pub(crate) events: Vec<Stamped>,
    pub(crate) at: Option<f64>,
}

/// The result of an earlier run: the number of its epochs and events, and the stored documents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    pub(crate) epochs: Epoch,
    pub(crate) events: u64,
    pub(crate) kept: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The closed epochs of a history; the first one restores the kept documents, if any. No worker knows where
/// the run is live before one of them has read what is kept.
pub(crate) fn closed(stages: &Stages, epochs: &[Epoched], past: &Past, run: Run) -> Vec<ClosedEpoch> {
    closed_through(stages, epochs, past, run, |_, script| script)
}

/// As [`closed`] and [`deltas_through`].
pub(crate) fn closed_through(
    stages: &Stages,
    epochs: &[Epoched],
    past: &Past,
    run: Run,
    through: impl Fn(usize, Box<dyn Intake>) -> Box<dyn Intake> + Send + Sync + 'static,
) -> Vec<ClosedEpoch> {
    let mut shares: Vec<VecDeque<Batch>> = vec![VecDeque::new(); run.workers];
    let mut position = past.events;
    let first = past.epochs + 1;
    let mut live = first;
    if !past.kept.is_empty() {
        // Any worker may restore any document.
        for (id, value) in &past.kept {
            let worker =
                dupflow::core::hash::mix(run.seed ^ dupflow::core::hash::bytes(7, id)) % run.workers as u64;
            let kept = vec![(id.clone(), value.clone())];
            let batch = Batch { kept, ..Batch::new(first, Vec::new(), None) };
            shares[usize::try_from(worker).unwrap()].push_back(batch);
        }
        live += 1;
    }
    for (epoch, whole) in (live..).zip(epochs) {
        let mut dealt = vec![Vec::new(); run.workers];
        for event in &whole.events {
            let worker = dupflow::core::hash::mix(run.seed ^ position) % run.workers as u64;
            let at = Position { partition: 0, offset: position };
            dealt[usize::try_from(worker).unwrap()].push((at, event.clone()));
            position += 1;
        }
        for (share, mut events) in shares.iter_mut().zip(dealt) {
            // A worker may see its events in any order, and in several batches.
            events.reverse();
            let rest = events.split_off(events.len() / 2);
            let batches = [events, rest].into_iter().filter(|events| !events.is_empty());
            share.extend(batches.map(|some| Batch::new(epoch, some, whole.at)));
        }
        if whole.at.is_some() {
            // A tick, which holds no events.
            let worker = dupflow::core::hash::mix(run.seed ^ epoch) % run.workers as u64;
            shares[usize::try_from(worker).unwrap()].push_back(Batch::new(epoch, Vec::new(), whole.at));
        }
    }

    let (sender, receiver) = channel();
    let shares = Mutex::new(shares.into_iter().map(Some).collect::<Vec<_>>());
    let spill = stages.spill.clone().or_else(|| budget(run.seed));
    let (mut stages, sender) = (Stages { spill, ..stages.clone() }, Mutex::new(sender));
    if live > first {
        stages.start.live = Arc::new(LiveFrom::default());
    }
    let communication = match (run.workers, run.serialized) {
        (1, false) => CommunicationConfig::Thread,
        (n, false) => CommunicationConfig::Process(n),
        (n, true) => CommunicationConfig::ProcessBinary(n),
    };
    let config = timely::Config { communication, worker: timely::WorkerConfig::default() };
    let failed = AtomicBool::new(false);
    let guards = timely::execute(config, move |worker| {
        let _alarm = Alarm(&failed);
        let batches = shares.lock().unwrap()[worker.index()].take().unwrap();
        let sender = sender.lock().unwrap().clone();
        let (fields, goes_live) = (stages.fields.clone(), (Arc::clone(&stages.start.live), live));
        let intake = through(worker.index(), Box::new(Script { batches, fields, goes_live }));
        worker.dataflow(|scope| build(scope, &stages, first, intake, Box::new(Tape(sender))));
        while worker.step_or_park(Some(PATIENCE)) {
            assert!(!failed.load(Ordering::Relaxed), "another worker failed");
        }
    })
    .unwrap();
    for result in guards.join() {
        result.unwrap();
    }
    receiver.into_iter().collect()
}

/// How long a worker waits before it checks whether another one has failed.
const PATIENCE: Duration = Duration::from_millis(100);

/// Notifies the other workers that this one has panicked, so that a panicking history can be shrunk.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[derive(Clone)]
struct Batch {
    epoch: Epoch,
    events: Vec<(Position, Stamped)>,
    at: Option<f64>,
    kept: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Batch {
    fn new(epoch: Epoch, events: Vec<(Position, Stamped)>, at: Option<f64>) -> Self {
        Self { epoch, events, at, kept: Vec::new() }
    }
}

/// Batches to read.
struct Script {
    batches: VecDeque<Batch>,
    /// The fields of their documents.
    fields: FieldRules,
    /// The first live epoch, which all workers know once one of them has come to a later batch.
    goes_live: (Arc<LiveFrom>, Epoch),
}

impl Intake for Script {
    fn pull(&mut self, limit: Epoch) -> Pull {
        let (live, from) = &self.goes_live;
        if live.get().is_none() && self.batches.front().is_none_or(|batch| batch.epoch >= *from) {
            live.set(*from);
        }
        match self.batches.front() {
            None => Pull::Done,
            Some(Batch { epoch, .. }) if *epoch > limit => Pull::Idle(*epoch),
            Some(Batch { epoch, .. }) => Pull::Batch(*epoch),
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(BatchRecord<'_>)) -> BatchEnd {
        let Batch { events, at, kept, .. } = self.batches.pop_front().unwrap();
        let last = events.iter().map(|(position, _)| *position).max();
        kept.iter().for_each(|(id, value)| each(BatchRecord::Restored(id, value)));
        for (position, Stamped { id, text, ts, written, fields: row }) in events {
            let read = || self.fields.read(&id, ts, |_| RawValue::Absent);
            let mut fields = text.as_ref().map(|_| read()).unwrap_or_default();
            if row != FieldRow::default() {
                fields.row = row;
            }
            let text = text.map(Into::into);
            each(BatchRecord::Event(position, DocEvent { id, ts, written, text, fields }));
        }
        let end = last.map(|last| Position { offset: last.offset + 1, ..last });
        BatchEnd { end, at, ..BatchEnd::default() }
    }

    fn wake_with(&mut self, _: Box<dyn Fn() + Send>) {
        // A script always has its next batch ready; only the output has to wake its worker.
    }
}

struct Tape(Sender<ClosedEpoch>);

impl Emit for Tape {
    fn closed(&mut self, closed: ClosedEpoch) {
        self.0.send(closed).unwrap();
    }

    fn ended(&mut self) {}
}
