//! Backpressure and failures: limits that hold the readers back, and failures after which no epoch closes.
//!
//! Bug classes: memory that grows with a slow worker or a slow sink; a failure that makes a part of an epoch
//! look complete, or leaves a thread waiting forever.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use dupflow::config::Plan;
use dupflow::connectors::formats::{KeyedRecord, KeyedRecords};
use dupflow::connectors::intake::{
    BadRecords, Batch, OnError, Payload, Queue, Refused, Source, SourceError, SourceReader,
};
use dupflow::connectors::mark::Mark;
use dupflow::connectors::sinks::{MemorySink, Sink};
use dupflow::core::description::Description;
use dupflow::core::doc::fields::EventFields;
use dupflow::core::doc::{DocEvent, DocId, Letter, Position};
use dupflow::core::pair::Delta;
use dupflow::core::run::metrics::Counter;
use dupflow::core::time::{Clock, Epoch, Offsets, Progress, SystemClock};
use dupflow::engine::dataflow::{
    BatchEnd, BatchRecord, Cancellation, ClosedEpoch, Emit, Intake, Pull, Stages, WorkerError, Workers,
};
use dupflow::pipeline::{self, Continuity, Demands, RunError, RunJob, Summary};

pub(crate) fn stages() -> Stages {
    dupflow::pipeline::stages(&Plan::load("minhash", &[]).unwrap(), false)
}

/// One event per epoch, as fast as they are read, from `next` to `last`.
struct Fast {
    next: Epoch,
    last: Epoch,
    /// The greatest epoch that was requested so far.
    asked: Arc<Mutex<Epoch>>,
    /// Signals that no further epochs are requested.
    held_back: Sender<Epoch>,
}

impl Intake for Fast {
    fn pull(&mut self, limit: Epoch) -> Pull {
        let mut asked = self.asked.lock().unwrap();
        *asked = limit.max(*asked);
        if self.next > self.last {
            Pull::Done
        } else if self.next > limit {
            self.held_back.send(self.next).unwrap_or(());
            Pull::Idle(self.next)
        } else {
            Pull::Batch(self.next)
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(BatchRecord<'_>)) -> BatchEnd {
        let position = Position { partition: 0, offset: self.next };
        let id = DocId::new(&self.next.to_string()).unwrap();
        let text = Some("the same text for all of them".into());
        let fields = EventFields::default();
        each(BatchRecord::Event(position, DocEvent { id, ts: None, written: None, text, fields }));
        self.next += 1;
        let end = Some(Position { offset: position.offset + 1, ..position });
        BatchEnd { end, ..BatchEnd::default() }
    }

    fn wake_with(&mut self, _: Box<dyn Fn() + Send>) {}
}

/// An intake without events that stays in its epoch until it is released.
struct Slow {
    epoch: Epoch,
    released: Arc<AtomicBool>,
    /// Takes the function that wakes its worker, once that is running.
    wake: Sender<Wake>,
}

/// A function that wakes a worker.
type Wake = Box<dyn Fn() + Send>;

/// An emitted epoch, with the number of its deltas; `None` is the end.
type Epochs = Receiver<Option<(Progress, usize)>>;

impl Intake for Slow {
    fn pull(&mut self, _: Epoch) -> Pull {
        if self.released.load(Ordering::SeqCst) { Pull::Done } else { Pull::Idle(self.epoch) }
    }

    fn read(&mut self, _: &mut dyn FnMut(BatchRecord<'_>)) -> BatchEnd {
        unreachable!("it has nothing")
    }

    fn wake_with(&mut self, wake: Box<dyn Fn() + Send>) {
        self.wake.send(wake).unwrap_or(());
    }
}

/// An intake that fails when it reads.
struct Broken;

impl Intake for Broken {
    fn pull(&mut self, _: Epoch) -> Pull {
        Pull::Batch(1)
    }

    fn read(&mut self, _: &mut dyn FnMut(BatchRecord<'_>)) -> BatchEnd {
        panic!("broken on purpose")
    }

    fn wake_with(&mut self, _: Box<dyn Fn() + Send>) {}
}

/// Every closed epoch with the number of its deltas, and `None` at the end.
struct Told(Sender<Option<(Progress, usize)>>);

impl Emit for Told {
    fn closed(&mut self, closed: ClosedEpoch) {
        self.0.send(Some((closed.progress, closed.deltas.len()))).unwrap();
    }

    fn ended(&mut self) {
        self.0.send(None).unwrap();
    }
}

/// Two workers, each with its intake.
fn two_workers(
    first: Epoch,
    one: impl Intake + Send + 'static,
    two: impl Intake + Send + 'static,
) -> (Workers, Arc<Cancellation>, Epochs) {
    let (told, epochs) = channel();
    let cancellation = Arc::<Cancellation>::default();
    let intakes: [Box<dyn Intake + Send>; 2] = [Box::new(one), Box::new(two)];
    let intakes = Mutex::new((intakes.map(Some), told));
    let parts = move |worker: usize| -> (Box<dyn Intake>, Box<dyn Emit>) {
        let mut parts = intakes.lock().unwrap();
        (parts.0[worker].take().unwrap(), Box::new(Told(parts.1.clone())))
    };
    let workers = Workers::start(&stages(), first, 2, &cancellation, parts).unwrap();
    (workers, cancellation, epochs)
}

#[test]
fn no_more_than_four_epochs_are_open() {
    let (first, last) = (100, 130);
    let (asked, released) = (Arc::default(), Arc::default());
    let (wake, wakes) = channel();
    let (held_back, is_held_back) = channel();
    let fast = Fast { next: first, last, asked: Arc::clone(&asked), held_back };
    let slow = Slow { epoch: first, released: Arc::clone(&released), wake };
    let (workers, _cancellation, epochs) = two_workers(first, fast, slow);
    assert_eq!(is_held_back.recv(), Ok(first + 4), "what is next when four are open");
    assert_eq!(*asked.lock().unwrap(), first + 3);
    assert!(epochs.try_recv().is_err(), "none is closed while a worker may still have events of the first");

    released.store(true, Ordering::SeqCst);
    wakes.recv().unwrap()();
    workers.join().unwrap();
    let mut expected = first;
    let mut ended = false;
    for told in epochs {
        let Some((progress, deltas)) = told else {
            ended = true;
            continue;
        };
        assert!(!ended);
        assert_eq!((progress.epoch, progress.next[&0]), (expected, expected + 1));
        assert_eq!(deltas as u64, expected - first, "a pair with each of those before");
        expected += 1;
    }
    assert!(ended && expected == last + 1);
}

#[test]
fn a_worker_that_panics_ends_the_others_and_says_why() {
    let slow = Slow { epoch: 1, released: Arc::default(), wake: channel().0 };
    let (workers, cancellation, epochs) = two_workers(1, slow, Broken);
    assert_eq!(workers.join(), Err(WorkerError::Panicked("broken on purpose".to_owned())));
    assert!(cancellation.is_cancelled());
    assert!(epochs.recv().is_err(), "no epoch closes, and the input has not ended");
}

#[test]
fn cancelled_workers_end_without_closing_what_is_open() {
    let slow = || Slow { epoch: 1, released: Arc::default(), wake: channel().0 };
    let (workers, cancellation, epochs) = two_workers(1, slow(), slow());
    cancellation.cancel();
    workers.join().unwrap();
    assert!(epochs.recv().is_err());
}

/// The actions of a reader.
pub(crate) type Script = Box<dyn FnMut(&Queue) -> Result<(), SourceError> + Send>;

/// Readers that follow a script.
struct Scripts(Vec<Script>);

impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} scripts", self.0.len())
    }
}

impl Source for Scripts {
    fn begin(&mut self, _: Option<&Offsets>) -> Result<Offsets, SourceError> {
        Ok(Offsets::new())
    }

    fn readers(self: Box<Self>, _: &Offsets) -> Vec<Box<dyn SourceReader>> {
        self.0.into_iter().map(|script| Box::new(Scripted(script)) as Box<dyn SourceReader>).collect()
    }
}

struct Scripted(Script);

impl SourceReader for Scripted {
    fn read(&mut self, queue: &Queue, _: &BadRecords, _: &dyn Clock) -> Result<(), SourceError> {
        (self.0)(queue)
    }
}

/// One document for each event, all with the same text.
pub(crate) fn batch(offset: u64) -> Batch {
    let mut records = KeyedRecords::default();
    let key = offset.to_string();
    records.push(KeyedRecord {
        offset,
        ts: None,
        key: Some(key.as_bytes()),
        value: Some(b"the same text for all of them"),
    });
    let payload = Payload::Records(records);
    Batch {
        input: "script".into(),
        partition: 0,
        records: 1,
        next: offset + 1,
        payload,
        letters: Vec::new(),
        seen: None,
    }
}

/// A sink that follows a script, and keeps the epochs that are written.
struct Watched<F> {
    memory: Arc<Mutex<MemorySink>>,
    first: F,
}

impl<F: FnMut(Epoch) -> io::Result<()>> Sink for Watched<F> {
    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()> {
        (self.first)(progress.epoch)?;
        self.memory.lock().unwrap().epoch(progress, deltas, letters)
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.memory.lock().unwrap().finish()
    }
}

/// Runs readers to their end; returns the result and the written epochs.
pub(crate) fn run(
    stages: &Stages,
    readers: Vec<Script>,
    first: impl FnMut(Epoch) -> io::Result<()> + Send + 'static,
) -> (Result<Summary, RunError>, MemorySink) {
    let memory = Arc::<Mutex<MemorySink>>::default();
    let job = RunJob {
        receiver: None,
        stages: stages.clone(),
        source: Box::new(Scripts(readers)),
        first_epoch: 1,
        processes: None,
        status: Arc::default(),
        most_records: None,
        demands: Demands::default(),
        publication: None,
        continuity: Continuity::new(&Description::new()),
        bad: Arc::new(BadRecords::new(OnError::Count, None)),
        sink: Box::new(Watched { memory: Arc::clone(&memory), first }),
        workers: 2,
        clock: Arc::new(SystemClock::start()),
    };
    let ended = pipeline::run(job);
    let written = memory.lock().unwrap().clone();
    (ended, written)
}

/// Checks that the written epochs are complete and in order; returns their number.
fn whole(memory: &MemorySink) -> usize {
    for (epoch, progress) in (1..).zip(&memory.progress) {
        assert_eq!((progress.epoch, progress.next[&0]), (epoch, 2 * epoch), "two documents each");
        let deltas = memory.deltas.iter().filter(|(of, ..)| *of == epoch).count() as u64;
        assert_eq!(deltas, 1 + 4 * (epoch - 1), "a pair with each of those before, and of the two");
    }
    memory.progress.len()
}

#[test]
fn a_slow_sink_holds_back_the_readers_and_no_worker() {
    // Epochs that may be begun beyond the durable one, and batches in the queue.
    const AHEAD: u64 = 64;
    const BOUND: u64 = AHEAD + 256;
    let stages = stages();
    let (held_back, is_held_back) = channel();
    let (open, opened) = channel();
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    let reader: Script = Box::new(move |queue| {
        for offset in 0..BOUND + 100 {
            let mut refused = queue.try_push(batch(offset));
            while let Err(Refused::Full(batch)) = refused {
                if offset == BOUND {
                    held_back.send(()).unwrap_or(());
                    if queue.push(*batch).is_ok() {
                        queue.cut();
                    }
                    return Ok(());
                }
                // Time for the workers to start.
                queue.wait_for_room(std::time::Duration::MAX).unwrap();
                refused = queue.try_push(*batch);
            }
            assert_eq!(refused, Ok(()));
            assert!(offset < BOUND || gate.load(Ordering::SeqCst), "{offset} epochs wait for the sink");
            queue.cut();
        }
        Ok(())
    });
    let metrics = Arc::clone(&stages.observers.metrics);
    let watch = std::thread::spawn(move || {
        is_held_back.recv().unwrap();
        let (closed, durable) = (metrics.get(Counter::Epochs), metrics.get(Counter::Durable));
        is_open.store(true, Ordering::SeqCst);
        open.send(()).unwrap();
        (closed, durable)
    });
    let mut waits = true;
    let (ended, memory) = run(&stages, vec![reader], move |_| {
        if std::mem::take(&mut waits) {
            opened.recv().unwrap();
        }
        Ok(())
    });
    let (closed, durable) = watch.join().unwrap();
    assert!(closed <= AHEAD && durable == 0, "{closed} closed, {durable} durable while the sink waits");
    assert_eq!(ended.unwrap().durable_epochs, BOUND + 1);
    assert!(memory.finished && memory.progress.len() as u64 == BOUND + 1);
}

#[test]
fn what_a_reader_that_fails_has_read_of_an_epoch_is_not_written() {
    let stages = stages();
    for (panics, another_ends) in [(false, false), (false, true), (true, false), (true, true)] {
        let broken: Script = Box::new(move |queue| {
            for offset in 0..7 {
                queue.push(batch(offset)).unwrap();
                if offset % 2 == 1 {
                    queue.cut();
                }
            }
            assert!(!panics, "broken on purpose");
            Err(SourceError::Inputs(vec!["broken on purpose".to_owned()]))
        });
        let other: Script = if another_ends {
            Box::new(|_| Ok(()))
        } else {
            Box::new(|queue| queue.pause(std::time::Duration::MAX).or(Ok(())))
        };
        let (ended, memory) = run(&stages, vec![broken, other], |_| Ok(()));
        let error = ended.unwrap_err().to_string();
        assert!(error.contains(if panics { "the reader panicked" } else { "broken on purpose" }), "{error}");
        assert!(whole(&memory) <= 3, "the fourth epoch was cut off: {:?}", memory.progress);
        assert!(!memory.finished);
    }
}

#[test]
fn a_sink_that_fails_or_panics_ends_the_run() {
    let stages = stages();
    for panics in [false, true] {
        let endless: Script = Box::new(move |queue| {
            let mut offset = 0;
            while queue.push(batch(offset)).is_ok() {
                offset += 1;
                if offset % 2 == 0 {
                    queue.cut();
                }
            }
            Ok(())
        });
        let (ended, memory) = run(&stages, vec![endless], move |epoch| {
            assert!(epoch < 3 || !panics, "broken on purpose");
            if epoch < 3 { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
        });
        let error = ended.unwrap_err();
        if panics {
            assert!(error.to_string().contains("the committer panicked"), "{error}");
        } else {
            assert!(matches!(error, RunError::Sink(_)), "{error}");
        }
        assert_eq!((whole(&memory), memory.finished), (2, false));
    }
}
