//! A run: source, dataflow and sink put together. This is the only place where dataflow meets I/O.
//!
//! ```text
//!  readers ── Queue ──┬─▶ worker 0: decode ─ dataflow ── Commits ──▶ committer ── Sink
//!                     └─▶ worker n: decode ─ dataflow
//! ```
//!
//! Each reader cuts its input into batches, and workers take the batches as they can. Worker 0 collects the
//! closed epochs, and the committer writes them. No stage waits for the next one, except the readers, which
//! wait for room in the queue.
//!
//! A run ends in one of three ways. At the end of the input everything is written and the sink is finished. A
//! [stop](Stopper) does the same with what has been read so far. A failure (`failure`) ends all threads at
//! once.

mod assemble;
mod commits;
mod committer;
mod demands;
mod failure;
mod fit;
mod keeper;
mod measures;
mod outgrown;
mod past;
mod summary;
mod together;
mod watched;
mod worker;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;

pub use assemble::{AssembleError, Mode, nowhere, stages};
pub use demands::Demands;
pub use fit::PastError;
pub use measures::{HotBlockReport, Latencies, Measures, Quantiles};
pub use summary::Summary;
pub use together::{FailureSender, ProcessGroup};
pub use watched::Follower;

use commits::Commits;
use committer::Committer;
use dupflow_connectors::sink::{LetterFile, Publication, Sink};
use dupflow_connectors::source::{
    Ahead, BadRecords, Batch, Closed, Peers, Queue, Reader, Room, Source, SourceError,
};
use dupflow_connectors::state::{Snapshot, State, StateError};
use dupflow_core::description::Description;
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::run::metrics::{Counter, Counts, Metrics};
use dupflow_core::run::status::{Phase, Status};
use dupflow_core::time::{Clock, Epoch, LiveFrom};
use dupflow_engine::dataflow::{Cancellation, Data, Stages, Workers};
use failure::{RunFailure, SendFailure};
use keeper::Keeper;
use outgrown::GrowthWarning;
use past::Past;
use together::{PeerProcesses, QueuePeers};
use watched::FollowedSink;
use worker::RunShared;

/// Everything that a run needs.
pub struct RunJob {
    /// The stages of the dataflow.
    pub stages: Stages,
    /// The input.
    pub source: Box<dyn Source>,
    /// The number of the first epoch, 1 or more.
    pub first_epoch: Epoch,
    /// Counts and keeps bad records.
    pub bad: Arc<BadRecords>,
    /// The output of the deltas.
    pub sink: Box<dyn Sink + Send>,
    /// Conditions that the run must meet after all input is read.
    pub demands: Demands,
    /// Publishes the output once the conditions are met; `None` if the output is written epoch by epoch.
    pub publication: Option<Publication>,
    /// What the run needs to continue after an earlier one.
    pub continuity: Continuity,
    /// Worker threads of this process, at least 1.
    pub workers: usize,
    /// Number of records after which the run ends, or a few more; `None` = at the end of the input.
    pub most_records: Option<NonZeroU64>,
    /// The connections to the other processes of the run, if it has several.
    pub together: Option<ProcessGroup>,
    /// The state of the run, for the monitor.
    pub status: Arc<Status>,
    /// The clock of the run; it starts with the run.
    pub clock: Arc<dyn Clock>,
}

/// What a run needs to continue after an earlier one.
#[derive(Debug)]
pub struct Continuity {
    /// The unique name of this run.
    pub run: String,
    /// The encoded [description](dupflow_core::description::Description) of everything that decides the result.
    pub pipeline: String,
    /// Whether to correct an output that another pipeline has written, or whose input or state is lost.
    /// Otherwise such a run is refused.
    pub reconcile: bool,
    /// The dead-letter file, if there is one.
    pub letters: Option<LetterFile>,
    /// Where documents are stored, and the shortest time between two commits there; `None` = nowhere.
    pub state: Option<(State, Duration)>,
}

impl Continuity {
    /// For a run of this pipeline without a state.
    pub fn new(pipeline: &Description) -> Self {
        let pipeline = String::from_utf8_lossy(&pipeline.encode()).into_owned();
        Self {
            run: format!("{:016x}", rand::random::<u64>()),
            pipeline,
            reconcile: false,
            letters: None,
            state: None,
        }
    }
}

/// Why a run failed.
#[derive(Debug, Error)]
pub enum RunError {
    /// Reading failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Writing failed.
    #[error("the output cannot be written")]
    Sink(#[source] io::Error),
    /// A dead letter cannot be written.
    #[error("the dead letters cannot be written")]
    Letters(#[source] io::Error),
    /// The state cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The run does not fit the output or the state of an earlier one.
    #[error(transparent)]
    Past(#[from] PastError),
    /// Another process of the run, or the connection to it, failed.
    #[error("{0}")]
    Process(String),
    /// A worker or another thread panicked.
    #[error("a worker failed: {0}")]
    Worker(String),
}

/// Approximate bytes of restored documents in one batch.
const SLICE_BYTES: usize = 256 << 10;

/// Approximate bytes of restored documents in one epoch; bounds the memory of a restart.
const RESTORED_BYTES: u64 = 16 << 20;

/// How often the log reports the progress of the run.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// How long an input may be idle before an empty epoch begins, if documents expire by wall-clock time.
const TICK: Duration = Duration::from_secs(1);

/// How often idle workers are woken, so that the monitor sees that they still run.
const PULSE: Duration = Duration::from_secs(5);

/// Capacity of the queue between readers and workers: enough that neither waits for the other.
const ROOM: Room = Room { bytes: 2 << 20, batches: 256 };

/// Runs a job to the end of its input. A closed pipe at the output ends it early, without an error.
///
/// # Errors
/// If reading or writing fails; the counts up to there are lost.
pub fn run(job: RunJob) -> Result<Summary, RunError> {
    start(job)?.join()
}

/// A run in progress.
#[must_use = "a run is waited for when it is joined"]
pub struct Running {
    stages: Stages,
    shared: Arc<RunShared>,
    workers: Workers,
    threads: usize,
    /// Returns how long epochs took; `None` if the committer could not start or is in another process.
    committer: Option<JoinHandle<Latencies>>,
    others: Option<Arc<PeerProcesses>>,
    demands: Demands,
    publication: Option<Publication>,
}

/// Ends a run before its input does.
#[derive(Clone)]
pub struct Stopper(Arc<Queue>, Option<Arc<PeerProcesses>>, Arc<Status>);

/// Starts a job.
///
/// # Errors
/// If the workers cannot be started. Later failures are returned by [`Running::join`].
pub fn start(job: RunJob) -> Result<Running, RunError> {
    let visitors = Arc::clone(&job.stages.visitors);
    launch(job).inspect_err(|_| visitors.close())
}

fn launch(mut job: RunJob) -> Result<Running, RunError> {
    let Some(together) = job.together.take() else {
        let past = find(&mut job)?;
        return begin(job, past, None);
    };
    let past = if together.index() == 0 {
        let found = find(&mut job);
        let told = found.and_then(|past| together.go(&past, &job.stages.scheme.text).map(|()| past));
        told.inspect_err(|error| together.fail(error))?
    } else {
        together.wait_for_go(&job.stages.scheme.text)?
    };
    begin(job, past, Some(together))
}

/// Determines where the run begins.
fn find(job: &mut RunJob) -> Result<Past, RunError> {
    Past::find(&job.stages, &mut *job.source, &mut *job.sink, &mut job.continuity, job.first_epoch)
}

/// Starts a job that begins at `past`.
fn begin(job: RunJob, mut past: Past, together: Option<ProcessGroup>) -> Result<Running, RunError> {
    let RunJob {
        mut stages,
        source,
        bad,
        sink,
        demands,
        publication,
        continuity,
        workers: threads,
        clock,
        most_records,
        status,
        ..
    } = job;
    let (index, count) = together.as_ref().map_or((0, 1), |together| (together.index(), together.count()));
    let (others, data, listen) = match together.map(ProcessGroup::begin) {
        Some((others, data, listen)) => (Some(others), Some(data), Some(listen)),
        None => (None, None, None),
    };
    let first_epoch = past.mark.progress.epoch + 1;
    stages.ids_move = source.ids_move();
    stages.keeps = past.keeps;
    stages.tells_documents = past.tells_documents;
    stages.live = Arc::clone(&past.live);
    stages.past = past.mark.progress.clone();
    stages.table = past.table.take();
    stages.origins = source.origins();
    let limits = source.epochs();
    let cuts_alike = source.cuts_alike();
    if let Some(backlog) = source.backlog() {
        status.watch_input(backlog);
    }
    // A dry run does not publish its positions as read.
    let announce = if index == 0 && most_records.is_none() { source.announcer() } else { None };
    let readers = source.readers(&past.begin);
    let ahead =
        Ahead::of(std::mem::take(&mut past.lines)).here(|partition| partition as usize % count == index);
    let followed = others.as_ref().filter(|_| !cuts_alike);
    let peers = followed.map(|told| Box::new(QueuePeers(Arc::clone(told))) as Box<dyn Peers>);
    let live = Arc::clone(&past.live);
    let queue = Arc::new(Queue::behind(ahead, live, peers, readers.len() + 1, first_epoch, ROOM, limits));
    queue.stop_after(most_records);
    let commits = Arc::new(Commits::new(first_epoch));
    let cancellation = Arc::<Cancellation>::default();
    let tell = others.clone().map(|told| Box::new(move |error: &RunError| told.failed(error)) as SendFailure);
    let failure = RunFailure::new(&queue, &commits, &cancellation, tell, &status);
    let writes = index == 0;
    let shared = Arc::new(RunShared {
        queue,
        commits,
        failure,
        bad,
        clock,
        status,
        process: (index, count),
        begun: Mutex::default(),
    });

    // Workers start first: if that fails, no other thread has started.
    let data = data.zip(others.clone()).map(|(sockets, others)| Data {
        index,
        sockets,
        lost: Box::new(move |process, why| others.suspect(process, why)),
    });
    let give_up = |error: &RunError| {
        cancellation.cancel();
        if let Some(others) = &others {
            others.failed(error);
            others.end();
        }
    };
    let workers =
        worker::start(&stages, first_epoch, threads, data, &cancellation, &shared).map_err(|error| {
            let error = RunError::Worker(error);
            give_up(&error);
            error
        })?;
    if let Some(listen) = listen {
        listen(Arc::clone(&shared));
    }
    let snapshot = past.snapshot.take();
    if let Some(saved) =
        snapshot.as_ref().map(Snapshot::saved).filter(|saved| stages.ids_move && !saved.ended)
    {
        tracing::warn!(
            epoch = saved.epoch(),
            "the state is of an older version, which did not remember deleted ids: it is gone on with, and exact unless ids have moved \
             between partitions; if partitions were added to the topic, take another place for the state and start with --reconcile once"
        );
    }
    // The state that the run continues from may lack deleted ids.
    let ended = stages.ids_move && snapshot.as_ref().is_none_or(|snapshot| snapshot.saved().ended);
    let committer = if writes {
        let keeper = continuity.state.map(|(state, every)| {
            let told = Arc::clone(&shared);
            let stands = Arc::clone(&shared.status);
            Keeper::start(state, every, &stages, ended, stands, move |error| told.failure.fail(error))
        });
        let keeper = keeper.transpose().inspect_err(give_up)?;
        if let Some(keeper) = &keeper {
            shared.failure.stops(keeper.stop());
        }
        let mut committer =
            Committer::new(sink, continuity.letters, keeper, Arc::clone(&shared.bad), &mut past);
        committer.announce = announce;
        let (metrics, others) = (Arc::clone(&stages.metrics), others.clone());
        let outgrown = GrowthWarning::new(stages.planned);
        spawn("committer", &shared, move |shared| {
            commit(committer, &metrics, outgrown, others.as_deref(), shared)
        })
    } else {
        None
    };
    for reader in readers {
        spawn("reader", &shared, move |shared| read(reader, shared));
    }
    let live_from = Arc::clone(&stages.live);
    spawn("restore", &shared, move |shared| restore(snapshot, &live_from, shared));
    if limits.interval.is_some() && writes && stages.retention.follows(RetentionClock::Wall) {
        spawn("ticks", &shared, |shared| {
            shared.queue.tick(TICK, || Batch::kept(Changes::default()));
            Ok(())
        });
    }
    spawn("pulse", &shared, |shared| {
        shared.queue.pulse(PULSE);
        Ok(())
    });
    if limits.interval.is_some() {
        spawn("epochs", &shared, |shared| {
            shared.queue.cut_by_clock();
            Ok(())
        });
    }
    Ok(Running { stages, shared, workers, threads, committer, others, demands, publication })
}

/// Logs one line on the progress of the run.
fn tell(epoch: Epoch, counts: &Counts, unread: u64) {
    tracing::info!(
        epoch,
        events = counts.get(Counter::Events),
        documents = counts.documents(),
        pairs = counts.balance(Counter::Added, Counter::Removed),
        state_commits = counts.get(Counter::StateCommits),
        unread,
        "running"
    );
}

/// The number of bad records by reason.
fn counted(bad: &BadRecords) -> BTreeMap<String, u64> {
    bad.counts().into_iter().map(|(reason, n)| (reason.to_owned(), n)).collect()
}

/// Runs the committer, and measures how long epochs take.
fn commit(
    committer: Committer,
    metrics: &Metrics,
    mut outgrown: GrowthWarning,
    others: Option<&PeerProcesses>,
    shared: &RunShared,
) -> Result<Latencies, RunError> {
    let mut latencies = Latencies::default();
    let mut told = shared.clock.now();
    let written = committer.run(&shared.commits, &*shared.clock, |first, last, took, awaited| {
        metrics.add(Counter::Durable, last + 1 - first);
        tracing::debug!(epoch = last, epochs = last + 1 - first, "committed");
        let now = shared.clock.now();
        shared.status.committed(last, took, now);
        shared.status.set_waiting_deltas(shared.commits.deltas() as u64);
        shared.status.set_bad_records(counted(&shared.bad));
        if now - told >= LOG_EVERY {
            told = now;
            tell(last, &metrics.counts(), shared.status.unread());
        }
        // The hashes of sketches spread them evenly over the processes.
        let own = metrics.counts().balance(Counter::SketchesBorn, Counter::SketchesDied);
        outgrown.check(own * shared.process.1 as u64);
        let mut begun = shared.begun.lock();
        let later = begun.split_off(&(last + 1));
        for first_events in std::mem::replace(&mut *begun, later).into_values() {
            latencies.record(now.saturating_sub(first_events));
        }
        drop(begun);
        if let Some(others) = others {
            others.durable(last);
        }
        if awaited {
            shared.queue.wake();
        }
    });
    written.map(|()| latencies)
}

fn read(mut reader: Box<dyn Reader>, shared: &RunShared) -> Result<(), RunError> {
    reader.read(&shared.queue, &shared.bad, &*shared.clock)?;
    shared.queue.finish();
    Ok(())
}

/// Why the restore ended before the end of the snapshot.
enum RestoreEnd {
    Closed,
    State(StateError),
}

impl From<StateError> for RestoreEnd {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

/// Pushes the documents of the state into the queue, then lets the readers begin. It runs as the first of the
/// readers that the queue waits for.
fn restore(snapshot: Option<Snapshot>, live: &LiveFrom, shared: &RunShared) -> Result<(), RunError> {
    shared.status.enter(Phase::Restoring);
    if let Some(snapshot) = snapshot {
        let (mut in_epoch, mut documents) = (0, 0);
        let begun = shared.clock.now();
        let read = snapshot.read(SLICE_BYTES, |slice| {
            let batch = Batch::kept(slice);
            in_epoch += batch.bytes();
            documents += batch.records;
            shared.queue.push(batch).map_err(|Closed| RestoreEnd::Closed)?;
            if in_epoch >= RESTORED_BYTES {
                in_epoch = 0;
                shared.queue.cut();
            }
            Ok(())
        });
        match read {
            Ok(()) => {}
            // The run has ended meanwhile.
            Err(RestoreEnd::Closed) => return Ok(()),
            Err(RestoreEnd::State(error)) => return Err(error.into()),
        }
        let seconds = (shared.clock.now() - begun).as_secs_f64();
        tracing::info!(documents, seconds, "documents restored from the state");
    }
    shared.status.enter(Phase::CatchingUp);
    shared.queue.restored();
    if live.get().is_some() {
        shared.status.enter(Phase::Live);
    }
    shared.queue.finish();
    Ok(())
}

/// Starts a thread whose error or panic fails the run; its result is then the default. `None` if the thread
/// cannot be started.
fn spawn<T: Default + Send + 'static>(
    name: &str,
    shared: &Arc<RunShared>,
    work: impl FnOnce(&RunShared) -> Result<T, RunError> + Send + 'static,
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
    /// A handle that ends the run before its input does.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared.queue), self.others.clone(), Arc::clone(&self.shared.status))
    }

    /// Waits for the end of the run. After a stop or a failure it does not wait for a reader that is blocked
    /// on its input: that reader ends with its next record, or with the process.
    ///
    /// # Errors
    /// The first failure.
    pub fn join(self) -> Result<Summary, RunError> {
        let Self { stages, shared, workers, threads, committer, others, demands, publication } = self;
        if let Err(error) = workers.join() {
            shared.failure.fail(RunError::Worker(error));
        }
        // The workers have answered or refused all open queries.
        stages.visitors.close();
        let latencies = committer.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let mut measures = Measures::collect(&stages, &shared.bad, latencies);
        if let Some(others) = &others
            && !shared.failure.has_failed()
        {
            let theirs = others.finish(&measures).unwrap_or_default();
            theirs.iter().for_each(|theirs| measures += theirs);
        }
        let outcome = shared.failure.outcome();
        if let Some(others) = &others {
            others.end();
        }
        outcome?;
        // Process 0 has the counts of all processes.
        let unmet = if shared.process.0 == 0 {
            demands.unmet(&measures, stages.origins.as_deref())
        } else {
            Vec::new()
        };
        if unmet.is_empty()
            && let Some(publication) = &publication
        {
            match publication.publish() {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                published => published.map_err(RunError::Sink)?,
            }
        }
        Ok(Summary { unmet, ..Summary::new(&measures, &stages, threads, shared.clock.now()) })
    }
}

impl Stopper {
    /// Stops reading. Open epochs are finished and written, the last one with the records read so far. Then
    /// the run ends as at the end of its input.
    pub fn stop(&self) {
        self.2.enter(Phase::Stopping);
        self.0.stop();
        if let Some(others) = &self.1 {
            others.stop();
        }
    }
}

impl RunJob {
    /// Reports each commit to a follower after it is durable; the pairs that the output held before are
    /// reported first.
    pub fn follow(&mut self, follower: impl Follower + 'static) {
        let sink = std::mem::replace(&mut self.sink, assemble::nowhere());
        self.sink = Box::new(FollowedSink::new(sink, Box::new(follower)));
    }
}

impl std::fmt::Debug for RunJob {
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
