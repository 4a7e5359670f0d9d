//! A run: inputs, dataflow and sink put together. The only place where dataflow meets I/O.
//!
//! ```text
//!  reader thread ── Queue ──┬─▶ worker 0: decode ─ dataflow ─▶ Sink
//!                           └─▶ worker n: decode ─ dataflow
//! ```
//!
//! The reader cuts the inputs into batches, workers pull them as they can, worker 0 writes. A sink that fails closes the
//! queue, so that the reader ends and the workers run dry.

mod assemble;
mod summary;
mod worker;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

pub use summary::{HotBlock, Quantiles, Summary};

use crate::dataflow::{Stages, Workers};
use crate::sink::Sink;
use crate::source::{BadRecords, Files, Queue, SourceError};
use crate::time::Clock;

/// What a run takes.
pub struct Job {
    /// What to compute.
    pub stages: Stages,
    /// What to read.
    pub files: Files,
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

/// Bytes and batches that may wait between the reader and the workers: enough that neither waits for the other.
const QUEUE_BYTES: u64 = 2 << 20;
const QUEUE_BATCHES: usize = 256;

/// Runs a job to the end of its input. An output that nobody reads on ends it early, and well.
///
/// # Errors
/// If reading or writing fails; the counts up to there are lost.
pub fn run(job: Job) -> Result<Summary, RunError> {
    let Job { stages, files, bad, sink, workers, clock } = job;
    let queue = Arc::new(Queue::new(QUEUE_BYTES, QUEUE_BATCHES));
    let shared =
        Arc::new(worker::Shared::new(Arc::clone(&queue), Arc::clone(&bad), Arc::clone(&clock), sink));

    let reader = {
        let (bad, clock) = (Arc::clone(&bad), Arc::clone(&clock));
        std::thread::Builder::new()
            .name("reader".into())
            .spawn(move || files.run(&queue, &bad, &*clock))
            .map_err(|error| RunError::Worker(error.to_string()))?
    };
    worker::start(&stages, workers, &shared).and_then(Workers::join).map_err(RunError::Worker)?;
    let read = reader.join().map_err(|_| RunError::Worker("the reader panicked".to_owned()))?;
    // What failed first closed the queue and thereby ended the rest.
    shared.outcome()?;
    let totals = read?.unwrap_or_default();
    bad.finish()?;
    Ok(Summary::collect(&stages, &bad, totals, workers, &shared.latencies(), clock.now()))
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("stages", &self.stages)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

/// A lock on what stays whole if its holder panics.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
