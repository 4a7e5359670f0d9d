//! A run: source, dataflow and sink put together. The only place where dataflow meets I/O.
//!
//! ```text
//!  readers ── Queue ──┬─▶ worker 0: decode ─ dataflow ── Commits ──▶ committer ── Sink
//!                     └─▶ worker n: decode ─ dataflow
//! ```
//!
//! Each reader cuts its input into batches, workers take them as they can, worker 0 gathers the closed
//! epochs, the committer writes them. Nobody on this way waits for the next one but the readers, who wait for
//! room in the queue.
//!
//! Three ends. The input ends: all is written, the sink is finished. The run is [stopped](Stopper): the same,
//! of what has been read. The run fails (`failure`): everything ends where it is.

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
pub use measures::{HotBlock, Latencies, Measures, Quantiles};
pub use summary::Summary;
pub use together::{Teller, Together};
pub use watched::Follower;

use commits::Commits;
use committer::Committer;
use dupflow_connectors::intake::{
    BadRecords, Batch, CatchUp, Closed, Peers, Queue, QueueRoom, Source, SourceError, SourceReader,
};
use dupflow_connectors::sinks::{LetterFile, Publication, Sink};
use dupflow_connectors::state::{Snapshot, StateError, StoredState};
use dupflow_core::description::Description;
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::run::metrics::{Counter, Counts, Metrics};
use dupflow_core::run::status::{Phase, Status};
use dupflow_core::time::{Clock, Epoch, LiveFrom};
use dupflow_engine::dataflow::{Cancellation, PeerSockets, Stages, Workers};
use failure::{Failure, Tell};
use keeper::Keeper;
use outgrown::Outgrown;
use past::Past;
use together::{Others, ToOthers};
use watched::Watched;
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
    /// What is demanded of the run once all is read.
    pub demands: Demands,
    /// Puts the output in its place once they are met; an output that is written epoch by epoch has none.
    pub publication: Option<Publication>,
    /// How it goes on where another run ended.
    pub continuity: Continuity,
    /// Worker threads of this process, 1 or more.
    pub workers: usize,
    /// Records after which the run ends, or a few more; `None` = with its input.
    pub most_records: Option<NonZeroU64>,
    /// The other processes of the run, if it has several.
    pub together: Option<Together>,
    /// Where it stands, for whoever watches.
    pub status: Arc<Status>,
    /// The clock of the run, started with it.
    pub clock: Arc<dyn Clock>,
}

/// What makes a run the next one of those before it.
#[derive(Debug)]
pub struct Continuity {
    /// The name of the run, which no other one has.
    pub run: String,
    /// All that decides the result: the encoded [description](dupflow_core::description::Description) of the plan.
    pub pipeline: String,
    /// Whether an output that is of another pipeline, or whose input or state is lost, is corrected; it is
    /// refused otherwise.
    pub reconcile: bool,
    /// The file of dead letters, if there is one.
    pub letters: Option<LetterFile>,
    /// Where documents are kept, if they are, and how often at most.
    pub state: Option<(StoredState, Duration)>,
}

impl Continuity {
    /// Of a run of this pipeline that keeps nothing.
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
    /// Reading.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Writing.
    #[error("the output cannot be written")]
    Sink(#[source] io::Error),
    /// Keeping bad records.
    #[error("the dead letters cannot be written")]
    Letters(#[source] io::Error),
    /// Keeping documents.
    #[error(transparent)]
    StoredState(#[from] StateError),
    /// Going on where another run ended.
    #[error(transparent)]
    Past(#[from] PastError),
    /// Another process of the run, or the way to it.
    #[error("{0}")]
    Process(String),
    /// A broken promise inside.
    #[error("a worker failed: {0}")]
    Worker(String),
}

/// Bytes of documents that are restored as one batch, about.
const SLICE_BYTES: usize = 256 << 10;

/// Bytes of documents that are restored in one epoch, about: so that memory does not grow with what is
/// restored.
const RESTORED_BYTES: u64 = 16 << 20;

/// How often a run tells how far it is.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// How long an input may be idle before an epoch without records is begun, where documents expire by the time
/// of day.
const TICK: Duration = Duration::from_secs(1);

/// How often workers are woken, whether there is anything to do or not: so that whoever watches sees that
/// they step.
const PULSE: Duration = Duration::from_secs(5);

/// What may wait between the readers and the workers: enough that neither waits for the other.
const ROOM: QueueRoom = QueueRoom { bytes: 2 << 20, batches: 256 };

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
    /// The committer ends with how long epochs took; none if it could not be started, or is in another
    /// process.
    committer: Option<JoinHandle<Latencies>>,
    others: Option<Arc<Others>>,
    demands: Demands,
    publication: Option<Publication>,
}

/// Ends a run before its input does.
#[derive(Clone)]
pub struct Stopper(Arc<Queue>, Option<Arc<Others>>, Arc<Status>);

/// Starts a job.
///
/// # Errors
/// If its workers cannot be started. All that fails later is told when it is joined.
pub fn start(job: Job) -> Result<Running, RunError> {
    let queries = Arc::clone(&job.stages.observers.queries);
    launch(job).inspect_err(|_| queries.close())
}

fn launch(mut job: Job) -> Result<Running, RunError> {
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

/// Finds out where the run begins.
fn find(job: &mut Job) -> Result<Past, RunError> {
    Past::find(&job.stages, &mut *job.source, &mut *job.sink, &mut job.continuity, job.first_epoch)
}

/// Starts a job that begins there.
fn begin(job: Job, mut past: Past, together: Option<Together>) -> Result<Running, RunError> {
    let Job {
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
    let (others, data, listen) = match together.map(Together::begin) {
        Some((others, data, listen)) => (Some(others), Some(data), Some(listen)),
        None => (None, None, None),
    };
    let first_epoch = past.mark.progress.epoch + 1;
    stages.ids_move = source.ids_move();
    stages.keeps = past.keeps;
    stages.emits_documents = past.emits_documents;
    stages.start.live = Arc::clone(&past.live);
    stages.start.past = past.mark.progress.clone();
    stages.start.table = past.table.take();
    stages.observers.origins = source.origins();
    let limits = source.epochs();
    let cuts_alike = source.cuts_alike();
    if let Some(backlog) = source.backlog() {
        status.watch_input(backlog);
    }
    // What is only looked at is not shown as read.
    let announce = if index == 0 && most_records.is_none() { source.announcer() } else { None };
    let readers = source.readers(&past.begin);
    let ahead =
        CatchUp::new(std::mem::take(&mut past.lines)).here(|partition| partition as usize % count == index);
    let followed = others.as_ref().filter(|_| !cuts_alike);
    let peers = followed.map(|told| Box::new(ToOthers(Arc::clone(told))) as Box<dyn Peers>);
    let live = Arc::clone(&past.live);
    let queue = Arc::new(Queue::behind(ahead, live, peers, readers.len() + 1, first_epoch, ROOM, limits));
    queue.stop_after(most_records);
    let commits = Arc::new(Commits::new(first_epoch));
    let cancellation = Arc::<Cancellation>::default();
    let tell = others.clone().map(|told| Box::new(move |error: &RunError| told.failed(error)) as Tell);
    let failure = Failure::new(&queue, &commits, &cancellation, tell, &status);
    let writes = index == 0;
    let shared = Arc::new(Shared {
        queue,
        commits,
        failure,
        bad,
        clock,
        status,
        process: (index, count),
        begun: Mutex::default(),
    });

    // The workers first: without them, nothing else has been started.
    let data = data.zip(others.clone()).map(|(sockets, others)| PeerSockets {
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
    // What it goes on from may lack them.
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
        let (metrics, others) = (Arc::clone(&stages.observers.metrics), others.clone());
        let outgrown = Outgrown::new(stages.planned);
        spawn("committer", &shared, move |shared| {
            commit(committer, &metrics, outgrown, others.as_deref(), shared)
        })
    } else {
        None
    };
    for reader in readers {
        spawn("reader", &shared, move |shared| read(reader, shared));
    }
    let live_from = Arc::clone(&stages.start.live);
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

/// One line on how far the run is.
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

/// Bad records by reason.
fn counted(bad: &BadRecords) -> BTreeMap<String, u64> {
    bad.counts().into_iter().map(|(reason, n)| (reason.to_owned(), n)).collect()
}

/// Writes what is closed, and measures how long epochs take.
fn commit(
    committer: Committer,
    metrics: &Metrics,
    mut outgrown: Outgrown,
    others: Option<&Others>,
    shared: &Shared,
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
        if now - told >= TELL_EVERY {
            told = now;
            tell(last, &metrics.counts(), shared.status.unread());
        }
        // Sketches are spread evenly over the processes, by their hashes.
        let own = metrics.counts().balance(Counter::SketchesBorn, Counter::SketchesDied);
        outgrown.look(own * shared.process.1 as u64);
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

fn read(mut reader: Box<dyn SourceReader>, shared: &Shared) -> Result<(), RunError> {
    reader.read(&shared.queue, &shared.bad, &*shared.clock)?;
    shared.queue.finish();
    Ok(())
}

/// Why not all that was kept is handed over.
enum Unread {
    Closed,
    StoredState(StateError),
}

impl From<StateError> for Unread {
    fn from(error: StateError) -> Self {
        Self::StoredState(error)
    }
}

/// Hands over what was kept, and lets the readers go beyond it: the first of those that the queue waits for.
fn restore(snapshot: Option<Snapshot>, live: &LiveFrom, shared: &Shared) -> Result<(), RunError> {
    shared.status.enter(Phase::Restoring);
    if let Some(snapshot) = snapshot {
        let (mut in_epoch, mut documents) = (0, 0);
        let begun = shared.clock.now();
        let read = snapshot.read(SLICE_BYTES, |slice| {
            let batch = Batch::kept(slice);
            in_epoch += batch.bytes();
            documents += batch.records;
            shared.queue.push(batch).map_err(|Closed| Unread::Closed)?;
            if in_epoch >= RESTORED_BYTES {
                in_epoch = 0;
                shared.queue.cut();
            }
            Ok(())
        });
        match read {
            Ok(()) => {}
            // The run has ended meanwhile.
            Err(Unread::Closed) => return Ok(()),
            Err(Unread::StoredState(error)) => return Err(error.into()),
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

/// Starts a thread whose failure is the run's, a panic too; its result is the default then. None if it cannot
/// be started.
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
        Stopper(Arc::clone(&self.shared.queue), self.others.clone(), Arc::clone(&self.shared.status))
    }

    /// Waits for the end. Not for a reader that waits for its input after the run has been stopped or has
    /// failed: it ends when there is some, or with the process.
    ///
    /// # Errors
    /// What failed first.
    pub fn join(self) -> Result<Summary, RunError> {
        let Self { stages, shared, workers, threads, committer, others, demands, publication } = self;
        if let Err(error) = workers.join() {
            shared.failure.fail(RunError::Worker(error));
        }
        // Those under way have been answered or refused by the workers.
        stages.observers.queries.close();
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
        // The first process has the counts of all.
        let unmet = if shared.process.0 == 0 {
            demands.unmet(&measures, stages.observers.origins.as_deref())
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
        Ok(Summary { unmet, ..Summary::of(&measures, &stages, threads, shared.clock.now()) })
    }
}

impl Stopper {
    /// Ends reading now. The epochs that have been begun are finished and written, the last one with what had
    /// been read of it; then the run ends as if its input had.
    pub fn stop(&self) {
        self.2.enter(Phase::Stopping);
        self.0.stop();
        if let Some(others) = &self.1 {
            others.stop();
        }
    }
}

impl Job {
    /// Reports commits to a follower: once they are durable, and after what the output held before.
    pub fn follow(&mut self, follower: impl Follower + 'static) {
        let sink = std::mem::replace(&mut self.sink, assemble::nowhere());
        self.sink = Box::new(Watched::new(sink, Box::new(follower)));
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
