//! Starts a run: finds where it begins, then starts its workers and all other threads.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use super::failure::{RunFailure, SendFailure};
use super::job::RunJob;
use super::memory_watch::MemoryWatch;
use super::process_group::{PeerProcesses, ProcessGroup, QueuePeers};
use super::restore::{RestoreParts, restore};
use super::running::Running;
use super::threads::{Written, commit, read, read_watches, spawn, watch_outputs, write_state};
use super::worker::{self, OwnProcess, RunShared};
use crate::pipeline::commit::{ClockWarning, Commits, Committer, GrowthWarning, Keeper, MayCorrect};
use crate::pipeline::continuity::{Continuity, WatchParts};
use crate::pipeline::error::RunError;
use crate::pipeline::outcome::{ResumedAt, Summary};
use crate::pipeline::outputs::{InForce, OtherOutput};
use crate::pipeline::past::Past;
use dupflow_connectors::intake::{
    Announce, Batch, CatchUp, CatchUpLine, EpochLimits, Peers, Queue, QueueRoom, Source, SourceReader,
};
use dupflow_connectors::sinks::Sink;
use dupflow_connectors::state::Snapshot;
#[cfg(feature = "webhook")]
use dupflow_connectors::watch::hook;
use dupflow_connectors::watch::{NoticeBoard, NoticeFile, WatchList, WatchedRun};
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::time::{Clock, Epoch, RetentionTime};
use dupflow_engine::dataflow::{Cancellation, KeptEpochs, PeerSockets, Stages};
use dupflow_run::metrics::Counter;

/// How long an input may be idle before an empty epoch begins, if documents expire by wall-clock time.
const TICK: Duration = Duration::from_secs(1);

/// How often idle workers are woken, so that the monitor sees that they still run.
const PULSE: Duration = Duration::from_secs(5);

/// Capacity of the queue between readers and workers: enough that neither waits for the other.
const ROOM: QueueRoom = QueueRoom { bytes: 2 << 20, batches: 256 };

/// Runs a job to the end of its input. A closed pipe at the output ends it early, without an error.
///
/// # Errors
/// If reading or writing fails; the counts up to there are lost.
pub fn run(job: RunJob) -> Result<Summary, RunError> {
    start(job)?.join()
}

/// Starts a job.
///
/// # Errors
/// If the workers cannot be started. Later failures are returned by [`Running::join`].
pub fn start(job: RunJob) -> Result<Running, RunError> {
    let queries = Arc::clone(&job.stages.observers.queries);
    launch(job).inspect_err(|_| queries.close())
}

fn launch(mut job: RunJob) -> Result<Running, RunError> {
    let Some(group) = job.processes.take() else {
        let past = find(&mut job)?;
        return begin(job, past, None);
    };
    let past = if group.index() == 0 {
        let sent = group.wait_for_others().and_then(|()| find(&mut job)).and_then(|past| {
            let owner = job.continuity.state.as_ref().map(|(state, _)| state.owner());
            group.go(&past, &job.stages.scheme.text, owner).map(|()| past)
        });
        sent.inspect_err(|error| group.fail(error))?
    } else {
        let store = job.continuity.shared_state.take();
        group.wait_for_go(&job.stages.scheme.text, store)?
    };
    begin(job, past, Some(group))
}

/// Determines where the run begins.
fn find(job: &mut RunJob) -> Result<Past, RunError> {
    #[cfg(feature = "webhook")]
    if let Some(hook) = job.continuity.watch.as_ref().and_then(|watch| watch.hook.as_ref()) {
        hook::check(hook).map_err(RunError::Hook)?;
    }
    let now = job.clock.unix();
    let (source, sink) = (&mut *job.source, &mut *job.sink);
    let found = Past::find(&job.stages, source, sink, &mut job.continuity, job.first_epoch, now);
    let past = found.map_err(|error| match error {
        RunError::Past(error) => error.of_table(&job.continuity.table).into(),
        error => error,
    })?;
    if let Some(RetentionTime::Event(at) | RetentionTime::Wall(at)) = past.mark.progress.clock {
        job.status.set_retention_clock(at.seconds());
    }
    Ok(past)
}

/// Starts a job that begins at `past`. The workers start first: if that fails, no other thread has started.
fn begin(job: RunJob, mut past: Past, group: Option<ProcessGroup>) -> Result<Running, RunError> {
    let RunJob {
        mut stages,
        source,
        bad,
        sink,
        mut demands,
        publication,
        continuity,
        workers: threads,
        clock,
        most_records,
        status,
        ..
    } = job;
    let (index, count) = group.as_ref().map_or((0, 1), |group| (group.index(), group.count()));
    let process = OwnProcess { index, count };
    let share = past.writer.take().map(|writer| (writer, Arc::<KeptEpochs>::default()));
    stages.observers.kept_here = share.as_ref().map(|(_, kept)| Arc::clone(kept));
    let (peers, sockets, listen) = match group.map(ProcessGroup::begin) {
        Some((peers, sockets, listen)) => (Some(peers), Some(sockets), Some(listen)),
        None => (None, None, None),
    };
    let first_epoch = past.mark.progress.epoch + 1;
    let up_to = past.lines.iter().rev().find_map(|line| match line {
        CatchUpLine::Offsets(up_to) => Some(up_to.clone()),
        CatchUpLine::Restored => None,
    });
    status.set_beginning(past.snapshot.as_ref().map(Snapshot::documents), up_to.unwrap_or_default());
    if stages.retention.follows(RetentionClock::Wall) {
        status.follow_wall_clock();
    }
    continue_stages(&mut stages, &*source, &mut past);
    let resumed = past.mark.tally.as_ref().map(|tally| {
        bad.resume(&tally.bad, tally.unread);
        stages.observers.metrics.add(Counter::ReplacedAcrossFiles, tally.replaced);
        let records = past.mark.progress.next.values().sum::<u64>();
        demands.before = records - tally.bad.values().sum::<u64>().min(records);
        ResumedAt { epoch: past.mark.progress.epoch, records }
    });
    let limits = source.epochs();
    if let Some(backlog) = source.backlog() {
        status.watch_input(backlog);
    }
    // A dry run does not publish its positions as read.
    let announce = if process.index == 0 && most_records.is_none() { source.announcer() } else { None };
    let followed = peers.as_ref().filter(|_| !source.cuts_alike());
    let readers = source.readers(&past.begin);
    let queue = Arc::new(queue(&mut past, process, followed, readers.len(), limits));
    queue.stop_after(most_records);
    if let Some(watch) = &continuity.watch {
        // Before any document, and before another process opens an epoch.
        watch.run.list.begin(&queue);
    }
    let commits = Arc::new(Commits::new(first_epoch));
    let cancellation = Arc::<Cancellation>::default();
    let send =
        peers.clone().map(|peers| Box::new(move |error: &RunError| peers.failed(error)) as SendFailure);
    let failure = RunFailure::new(&queue, &commits, &cancellation, send, &status);
    let (live, begun) = (Arc::clone(&past.live), Mutex::default());
    let budget = stages.spill.as_ref().map(|spill| spill.memory_bytes);
    let memory = MemoryWatch::new(budget);
    let metrics = Arc::clone(&stages.observers.metrics);
    let shared = Arc::new(RunShared {
        queue,
        commits,
        failure,
        bad,
        clock,
        status,
        process,
        memory,
        metrics,
        live,
        begun,
    });
    let told = Arc::downgrade(&shared);
    cancellation.on_failure(move |error| {
        told.upgrade().iter().for_each(|run| run.failure.fail(error.clone().into()));
    });

    let data = sockets.zip(peers.clone()).map(|(sockets, peers)| PeerSockets {
        index: process.index,
        sockets,
        lost: Box::new(move |lost, why| peers.suspect(lost, why)),
    });
    let give_up = |error: &RunError| {
        cancellation.cancel();
        if let Some(peers) = &peers {
            peers.failed(error);
            peers.end();
        }
    };
    let workers = worker::start(&stages, first_epoch, threads, data, &cancellation, &shared)
        .map_err(RunError::Worker)
        .inspect_err(give_up)?;
    let (tasks, writing) = share.zip(peers.clone()).map_or((None, None), |((writer, kept), peers)| {
        let (to_writer, tasks) = channel();
        let work = move |_: &RunShared| {
            write_state(writer, &kept, tasks, &peers);
            Ok(())
        };
        (Some(to_writer), spawn("state", &shared, work))
    });
    if let Some(listen) = listen {
        listen(Arc::clone(&shared), tasks);
    }
    let snapshot = past.snapshot.take();
    let stored = snapshot.as_ref().map_or(0, |snapshot| snapshot.saved().epoch());
    let mut continuity = continuity;
    let reference = continuity.reference.take();
    let (watches, notices, deliveries) = begin_watches(continuity.watch.take(), &shared.clock, give_up)?;
    let list = watches.as_ref().map(|watches| Arc::clone(&watches.list));
    let may_correct = continuity.anew.then(|| {
        let (demands, stages, run) = (demands.clone(), stages.clone(), Arc::clone(&shared));
        Box::new(move || demands.are_met(&stages, &run.bad)) as MayCorrect
    });
    let of_first = (!continuity.others.is_empty()).then(|| continuity.table.clone());
    let of_first = publication.map(|end| (of_first, end));
    let of_others = continuity.others.iter_mut();
    let of_others = of_others.filter_map(|other| Some((Some(other.name.clone()), other.end.take()?)));
    let ends = of_first.into_iter().chain(of_others).collect();
    let output = CommitterParts {
        notices,
        watches: list.clone(),
        sink,
        continuity,
        announce,
        may_correct,
        has_ended: process.index == 0 && has_ended(&stages, snapshot.as_ref()),
        stored,
    };
    let committer = if process.index == 0 {
        start_committer(output, &mut past, &stages, peers.clone(), &shared).inspect_err(give_up)?
    } else {
        None
    };
    let restored = RestoreParts { reference, snapshot, threads, budget, peers: peers.clone() };
    let mut helpers = start_threads(readers, watches, restored, limits, &stages, &shared);
    helpers.extend(writing);
    Ok(Running {
        list,
        deliveries,
        helpers,
        stages,
        shared,
        workers,
        threads,
        committer,
        peers,
        demands,
        ends,
        resumed: resumed.filter(|at| at.records > 0),
    })
}

/// Sets what the stages take over from the source and from the past of the run.
fn continue_stages(stages: &mut Stages, source: &dyn Source, past: &mut Past) {
    stages.ids_move = source.ids_move();
    stages.keeps = past.keeps;
    stages.emits_documents = past.emits_documents;
    stages.emits_upserts = past.emits_upserts;
    stages.start.live = Arc::clone(&past.live);
    stages.start.past = past.mark.progress.clone();
    stages.start.table = past.table.take();
    stages.observers.origins = source.origins();
}

/// The queue between the readers and the workers; the thread that restores documents counts as a reader.
/// `followed`: the other processes, if all open the same epochs.
fn queue(
    past: &mut Past,
    OwnProcess { index, count }: OwnProcess,
    followed: Option<&Arc<PeerProcesses>>,
    readers: usize,
    limits: EpochLimits,
) -> Queue {
    let lines = std::mem::take(&mut past.lines);
    let ahead = CatchUp::new(lines).here(|partition| partition as usize % count == index);
    let peers = followed.map(|peers| Box::new(QueuePeers(Arc::clone(peers))) as Box<dyn Peers>);
    let first_epoch = past.mark.progress.epoch + 1;
    Queue::behind(ahead, Arc::clone(&past.live), peers, readers + 1, first_epoch, ROOM, limits)
}

/// Whether the state that the run continues from has a complete record of deleted ids. States of older
/// versions lack it; then the run logs a warning.
fn has_ended(stages: &Stages, snapshot: Option<&Snapshot>) -> bool {
    let Some(saved) = snapshot.map(Snapshot::saved).filter(|_| stages.ids_move) else {
        return stages.ids_move;
    };
    if !saved.ended {
        tracing::warn!(
            epoch = saved.epoch(),
            "the state is of an older version, which did not remember deleted ids: it is gone on with, and \
             exact unless ids have moved between partitions; if partitions were added to the topic, take \
             another place for the state and start with --reconcile once"
        );
    }
    saved.ended
}

/// The list, the file of notices, and what the web hook delivers.
type BegunWatches = (Option<WatchedRun>, Option<NoticeFile>, Option<Arc<NoticeBoard>>);

/// Starts the web hook, if there is one.
fn begin_watches(
    parts: Option<WatchParts>,
    clock: &Arc<dyn Clock>,
    give_up: impl Fn(&RunError),
) -> Result<BegunWatches, RunError> {
    let Some(parts) = parts else { return Ok((None, None, None)) };
    #[cfg(feature = "webhook")]
    let deliveries = {
        let start = |settings| {
            let board = Arc::clone(parts.run.list.board());
            hook::start(&settings, Arc::clone(&board), Arc::clone(clock)).map(|()| board)
        };
        parts.hook.map(start).transpose().map_err(RunError::Hook).inspect_err(give_up)?
    };
    #[cfg(not(feature = "webhook"))]
    let (deliveries, _) = (None, (clock, give_up));
    Ok((Some(parts.run), Some(parts.notices), deliveries))
}

/// What process 0 writes to.
struct CommitterParts {
    notices: Option<NoticeFile>,
    watches: Option<Arc<WatchList>>,
    sink: Box<dyn Sink + Send>,
    continuity: Continuity,
    announce: Option<Announce>,
    may_correct: Option<MayCorrect>,
    /// See [`has_ended`].
    has_ended: bool,
    /// The epoch of the state.
    stored: Epoch,
}

/// Starts the keeper, if there is a state, and the committer; `None` if its thread cannot be started.
fn start_committer(
    output: CommitterParts,
    past: &mut Past,
    stages: &Stages,
    peers: Option<Arc<PeerProcesses>>,
    shared: &Arc<RunShared>,
) -> Result<Option<JoinHandle<Written>>, RunError> {
    let CommitterParts { notices, watches, sink, continuity, announce, may_correct, has_ended, stored } =
        output;
    let keeper = continuity.state.map(|(mut state, every)| {
        if let Some(peers) = &peers {
            state.share_with(Arc::clone(&peers.writers) as _);
        }
        let failed = Arc::clone(shared);
        let fail = move |error| failed.failure.fail(error);
        shared.status.set_state(stored, state.stored_bytes());
        let (status, reading) = (Arc::clone(&shared.status), past.reading.clone());
        Keeper::start(state, every, stages, has_ended, status, reading, fail)
    });
    let keeper = keeper.transpose()?;
    if let Some(keeper) = &keeper {
        let stop = keeper.stop();
        shared.failure.ends(move || stop.cancel());
    }
    if let Some(history) = continuity.history {
        shared.failure.ends(move || history.hurry());
    }
    for other in &continuity.others {
        let run = Arc::downgrade(shared);
        other.wakes(move || run.upgrade().iter().for_each(|run| run.commits.look()));
    }
    let guards = continuity.others.iter().filter_map(OtherOutput::guard);
    for guard in sink.guard().into_iter().chain(guards) {
        // It may wait for a broker when the run ends, so it is not joined.
        drop(spawn("outputs", shared, |shared| watch_outputs(guard, shared)));
    }
    let (bad, metrics) = (Arc::clone(&shared.bad), Arc::clone(&stages.observers.metrics));
    let mut committer = Committer::new(sink, continuity.letters, keeper, bad, Arc::clone(&metrics), past);
    committer.inputs = continuity.inputs;
    committer.announce = announce;
    committer.may_correct = may_correct;
    committer.table = continuity.table;
    let holds_documents = waiting(&continuity.others).any(|other| other.wants[0]);
    committer.in_force = waiting(&continuity.others).next().map(|_| InForce::new(holds_documents));
    committer.others = continuity.others;
    committer.sides = continuity.sides;
    committer.notices = notices;
    committer.watches = watches;
    let growth = GrowthWarning::new(stages.planned);
    let mut clock = ClockWarning::new(&stages.retention);
    clock.check(shared.clock.now(), shared.status.retention_ahead(shared.clock.unix()), 0);
    let work = move |run: &RunShared| commit(committer, &metrics, growth, clock, peers.as_deref(), run);
    Ok(spawn("committer", shared, work))
}

/// The outputs that may be left behind.
fn waiting(others: &[OtherOutput]) -> impl Iterator<Item = &OtherOutput> {
    others.iter().filter(|other| other.may_wait())
}

/// Starts the readers, the restore, and the threads that wake the queue. Returns those that could be started.
fn start_threads(
    readers: Vec<Box<dyn SourceReader>>,
    watches: Option<WatchedRun>,
    restored: RestoreParts,
    limits: EpochLimits,
    stages: &Stages,
    shared: &Arc<RunShared>,
) -> Vec<JoinHandle<()>> {
    let mut started = Vec::new();
    for reader in readers {
        started.extend(spawn("reader", shared, move |shared| read(reader, shared)));
    }
    if let Some(WatchedRun { list, again: Some(given) }) = watches {
        started.extend(spawn("watches", shared, move |shared| read_watches(&list, &given, shared)));
    }
    started.extend(spawn("restore", shared, move |shared| restore(restored, shared)));
    let writes = shared.process.index == 0;
    if limits.interval.is_some() && writes && stages.retention.follows(RetentionClock::Wall) {
        started.extend(spawn("ticks", shared, |shared| {
            shared.queue.tick(TICK, || Batch::kept(Changes::default()));
            Ok(())
        }));
    }
    started.extend(spawn("pulse", shared, |shared| {
        shared.queue.pulse(PULSE);
        Ok(())
    }));
    if limits.interval.is_some() {
        started.extend(spawn("epochs", shared, |shared| {
            shared.queue.cut_by_clock();
            Ok(())
        }));
    }
    started
}
