//! A run: source, dataflow and sink put together. The only place where dataflow meets I/O.
//!
//! ```text
//!  readers ── Queue ──┬─▶ worker 0: decode ─ dataflow ── Commits ──▶ committer ── Sink
//!                     └─▶ worker n: decode ─ dataflow
//! ```
//!
//! Each reader cuts its input into batches, workers take them as they can, worker 0 gathers the closed epochs, the committer
//! writes them. Nobody on this way waits for the next one but the readers, who wait for room in the queue.
//!
//! Three ends. The input ends: all is written, the sink is finished. The run is [stopped](Stopper): the same, of what has
//! been read. The run fails (`failure`): everything ends where it is.

mod assemble;
mod committer;
mod failure;
mod measures;
mod summary;
mod worker;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use thiserror::Error;

pub use assemble::AssembleError;
pub use measures::{HotBlock, Latencies, Measures, Quantiles};
pub use summary::Summary;

use crate::dataflow::{Cancellation, Stages, Workers};
use crate::metrics::Counter;
use crate::sink::Sink;
use crate::source::{BadRecords, Queue, Reader, Room, Source, SourceError};
use crate::time::{Clock, Epoch};
use committer::Commits;
use failure::Failure;
use worker::Shared;

/// What a run takes.
pub struct Job {
    /// What to compute.
    pub stages: Stages,
    /// What to read.
    pub source: Box<dyn Source>,
    /// The number of the first epoch, 1 or more.
    pub first_epoch: Epoch,
    /// Where bad records go.
    pub bad: Arc<BadRecords>,
    /// Where the deltas go.
    pub sink: Box<dyn Sink + Send>,
    /// Worker threads, 1 or more.
    pub workers: usize,
    /// The clock of the run, started with it.
    pub clock: Arc<dyn Clock>,
}

/// Why a run failed.
#[derive(Debug, Error)]
pub enum RunError {
    /// Reading.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Writing.
    #[error("the output cannot be written")]
    Sink(#[source] io::Error),
    /// A broken promise inside.
    #[error("a worker failed: {0}")]
    Worker(String),
}

/// What may wait between the readers and the workers: enough that neither waits for the other.
const ROOM: Room = Room { bytes: 2 << 20, batches: 256 };

/// Runs a job to the end of its input. An output that nobody reads on ends it early, and well.
///
/// # Errors
/// If reading or writing fails; the counts up to there are lost.
pub fn run(job: Job) -> Result<Summary, RunError> {
    start(job)?.join()
}

/// A run under way.
#[must_use = "a run is waited for when it is joined"]
pub struct Running {
    stages: Stages,
    shared: Arc<Shared>,
    workers: Workers,
    threads: usize,
    /// The committer ends with how long epochs took; none if it could not be started.
    committer: Option<JoinHandle<Latencies>>,
}

/// Ends a run before its input does.
#[derive(Clone)]
pub struct Stopper(Arc<Queue>);

/// Starts a job.
///
/// # Errors
/// If its workers cannot be started. All that fails later is told when it is joined.
pub fn start(job: Job) -> Result<Running, RunError> {
    let Job { stages, source, first_epoch, bad, mut sink, workers: threads, clock } = job;
    let limits = source.epochs();
    let readers = source.readers();
    let queue = Arc::new(Queue::new(readers.len(), first_epoch, ROOM, limits));
    let commits = Arc::new(Commits::new(first_epoch));
    let cancellation = Arc::<Cancellation>::default();
    let failure = Failure::new(&queue, &commits, &cancellation);
    let shared = Arc::new(Shared { queue, commits, failure, bad, clock, begun: Mutex::default() });

    // The workers first: without them, nothing else has been started.
    let workers = worker::start(&stages, first_epoch, threads, &cancellation, &shared).map_err(|error| {
        cancellation.cancel();
        RunError::Worker(error)
    })?;
    let metrics = Arc::clone(&stages.metrics);
    let committer = spawn("committer", &shared, move |shared| {
        let mut latencies = Latencies::default();
        let written = committer::run(&shared.commits, &mut *sink, &shared.bad, |epoch, awaited| {
            metrics.add(Counter::Durable, 1);
            if let Some(begun) = lock(&shared.begun).remove(&epoch) {
                latencies.record(shared.clock.now().saturating_sub(begun));
            }
            if awaited {
                shared.queue.wake();
            }
        });
        written.map(|()| latencies)
    });
    for reader in readers {
        spawn("reader", &shared, move |shared| read(reader, shared));
    }
    if limits.interval.is_some() {
        spawn("epochs", &shared, |shared| {
            shared.queue.cut_by_clock();
            Ok(())
        });
    }
    Ok(Running { stages, shared, workers, threads, committer })
}

fn read(mut reader: Box<dyn Reader>, shared: &Shared) -> Result<(), RunError> {
    reader.read(&shared.queue, &shared.bad, &*shared.clock)?;
    shared.queue.finish();
    Ok(())
}

/// Starts a thread whose failure is the run's, a panic too; its result is the default then. None if it cannot be started.
fn spawn<T: Default + Send + 'static>(
    name: &str,
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) -> Result<T, RunError> + Send + 'static,
) -> Option<JoinHandle<T>> {
    let told = Arc::clone(shared);
    let panicked = format!("the {name} panicked");
    let work = move || {
        let worked = catch_unwind(AssertUnwindSafe(|| work(&told)));
        worked.unwrap_or_else(|_| Err(RunError::Worker(panicked))).unwrap_or_else(|error| {
            told.failure.fail(error);
            T::default()
        })
    };
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(|error| shared.failure.fail(RunError::Worker(format!("the {name}: {error}")))).ok()
}

impl Running {
    /// What ends the run before its input does.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared.queue))
    }

    /// Waits for the end. Not for a reader that waits for its input after the run has been stopped or has failed: it ends when there
    /// is some, or with the process.
    ///
    /// # Errors
    /// What failed first.
    pub fn join(self) -> Result<Summary, RunError> {
        let Self { stages, shared, workers, threads, committer } = self;
        if let Err(error) = workers.join() {
            shared.failure.fail(RunError::Worker(error));
        }
        let latencies = committer.and_then(|thread| thread.join().ok()).unwrap_or_default();
        shared.failure.outcome()?;
        let measures = Measures::collect(&stages, &shared.bad, latencies);
        Ok(Summary::of(&measures, &stages, threads, shared.clock.now()))
    }
}

impl Stopper {
    /// Ends reading now. The epochs that have been begun are finished and written, the last one with what had been read
    /// of it; then the run ends as if its input had.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("stages", &self.stages)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Stopper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopper").finish_non_exhaustive()
    }
}

/// A lock on what stays whole if its holder panics.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
