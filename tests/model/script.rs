//! Runs the dataflow over events in memory.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use dupflow::dataflow::{ClosedEpoch, Emit, Given, Intake, Pull, Stages, Taken, build};
use dupflow::doc::{DocEvent, Position};
use dupflow::pair::DocPair;
use dupflow::time::Epoch;
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
    /// Which worker reads which event.
    pub(crate) seed: u64,
}

/// The deltas of a history that is cut into epochs 1, 2, …; the events of an epoch are dealt out to the workers at
/// random.
pub(crate) fn deltas(stages: &Stages, epochs: &[Vec<Event>], run: Run) -> Vec<Delta> {
    let mut shares: Vec<VecDeque<Batch>> = vec![VecDeque::new(); run.workers];
    let mut position = 0;
    for (epoch, whole) in (1..).zip(epochs) {
        let mut dealt = vec![Vec::new(); run.workers];
        for event in whole {
            let worker = dupflow::hash::mix(run.seed ^ position) % run.workers as u64;
            let at = Position { partition: 0, offset: position };
            dealt[usize::try_from(worker).unwrap()].push((at, event.clone()));
            position += 1;
        }
        for (share, mut events) in shares.iter_mut().zip(dealt) {
            // A worker may see its events in any order, and in several batches.
            events.reverse();
            let rest = events.split_off(events.len() / 2);
            share.extend(
                [(epoch, events), (epoch, rest)].into_iter().filter(|(_, events)| !events.is_empty()),
            );
        }
    }

    let (sender, receiver) = channel();
    let shares = Mutex::new(shares.into_iter().map(Some).collect::<Vec<_>>());
    let (stages, sender) = (stages.clone(), Mutex::new(sender));
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
        worker.dataflow(|scope| build(scope, &stages, 1, Box::new(Script(batches)), Box::new(Tape(sender))));
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

/// How long a worker waits before it looks whether another one has failed.
const PATIENCE: Duration = Duration::from_millis(100);

/// Tells the other workers that this one has panicked, so that a history that does so can be shrunk.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

type Batch = (Epoch, Vec<(Position, Event)>);

struct Script(VecDeque<Batch>);

impl Intake for Script {
    fn pull(&mut self, limit: Epoch) -> Pull {
        match self.0.front() {
            None => Pull::Done,
            Some((epoch, _)) if *epoch > limit => Pull::Idle(*epoch),
            Some((epoch, _)) => Pull::Batch(*epoch),
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(Given<'_>)) -> Taken {
        let mut end = Position::default();
        for (position, (id, text)) in self.0.pop_front().unwrap().1 {
            end = end.max(position);
            each(Given::Event(position, DocEvent { id, ts: None, text: text.map(Into::into) }));
        }
        Taken { end: Some(Position { offset: end.offset + 1, ..end }), letters: Vec::new(), seen: None }
    }

    fn wake_with(&mut self, _: Box<dyn Fn() + Send>) {
        // A script always knows its next batch; only the output has to wake its worker.
    }
}

struct Tape(Sender<Delta>);

impl Emit for Tape {
    fn closed(&mut self, closed: ClosedEpoch) {
        for (pair, diff) in closed.deltas {
            self.0.send((closed.progress.epoch, pair, diff)).unwrap();
        }
    }

    fn ended(&mut self) {}
}
