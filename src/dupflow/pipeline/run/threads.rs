//! What the threads of a run do, except for the workers and the restore: reading, committing, storing.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::process_group::PeerProcesses;
use super::worker::RunShared;
use crate::pipeline::commit::{ClockWarning, Committer, GrowthWarning};
use crate::pipeline::error::RunError;
use crate::pipeline::outcome::Latencies;
use dupflow_connectors::intake::{BadRecords, Closed, SourceReader};
use dupflow_connectors::sinks::OutputGuard;
use dupflow_connectors::state::{StateWriter, WriterTask};
use dupflow_connectors::watch::{GivenList, WatchList};
use dupflow_core::time::Epoch;
use dupflow_engine::dataflow::KeptEpochs;
use dupflow_run::metrics::{Counter, Counts, Metrics};

/// How often the log reports the progress of the run.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Logs one line on the progress of the run.
fn log_progress(epoch: Epoch, counts: &Counts, unread: u64) {
    tracing::info!(
        epoch,
        events = counts.get(Counter::Events),
        documents = counts.documents(),
        pairs = counts.pairs(),
        state_commits = counts.get(Counter::StateCommits),
        unread,
        "running"
    );
}

/// The number of bad records by reason.
fn counted(bad: &BadRecords) -> BTreeMap<String, u64> {
    bad.counts().into_iter().map(|(reason, n)| (reason.to_owned(), n)).collect()
}

/// What the committer returns.
#[derive(Default)]
pub(super) struct Written {
    /// How long epochs took.
    pub(super) latencies: Latencies,
    /// Which outputs are still behind, and why.
    pub(super) behind: Vec<String>,
}

/// Runs the committer, and measures how long epochs take.
pub(super) fn commit(
    committer: Committer,
    metrics: &Metrics,
    mut growth: GrowthWarning,
    mut clock: ClockWarning,
    peers: Option<&PeerProcesses>,
    shared: &RunShared,
) -> Result<Written, RunError> {
    let mut latencies = Latencies::default();
    let mut logged = shared.clock.now();
    let written = committer.run(&shared.commits, &*shared.clock, |first, last, took, awaited| {
        metrics.add(Counter::Durable, last + 1 - first);
        tracing::debug!(epoch = last, epochs = last + 1 - first, "committed");
        let now = shared.clock.now();
        shared.status.committed(last, took, now);
        shared.status.set_waiting_deltas(shared.commits.deltas() as u64);
        shared.status.set_bad_records(counted(&shared.bad));
        if now - logged >= LOG_EVERY {
            logged = now;
            log_progress(last, &metrics.counts(), shared.status.unread());
        }
        // The hashes of sketches spread them evenly over the processes.
        let own = metrics.counts().balance(Counter::SketchesBorn, Counter::SketchesDied);
        growth.check(own * shared.process.count as u64);
        clock.check(now, shared.status.retention_ahead(shared.clock.unix()), metrics.get(Counter::Late));
        let mut begun = shared.begun.lock();
        let later = begun.split_off(&(last + 1));
        for first_events in std::mem::replace(&mut *begun, later).into_values() {
            latencies.record(now.saturating_sub(first_events));
        }
        drop(begun);
        if let Some(peers) = peers {
            peers.durable(last);
        }
        if awaited {
            shared.queue.wake();
        }
    });
    written.map(|behind| Written { latencies, behind })
}

pub(super) fn read(mut reader: Box<dyn SourceReader>, shared: &RunShared) -> Result<(), RunError> {
    reader.read(&shared.queue, &shared.bad, &*shared.clock)?;
    shared.queue.finish();
    Ok(())
}

/// Reads the inputs of the watch list again every so often, and when a posted watch ends that hid one of
/// theirs, until the run ends. An input that cannot be read leaves the list as it is.
pub(super) fn read_watches(list: &WatchList, given: &GivenList, shared: &RunShared) -> Result<(), RunError> {
    while shared.queue.pause_until(given.every, || list.take_uncovered()).is_ok() {
        let read = given.read();
        given.log(&read);
        match read.map(|read| list.give(read.watches)) {
            Ok(Ok(0)) | Err(_) => {}
            Ok(Ok(changes)) => tracing::info!(changes, "the watch list has changed"),
            Ok(Err(Closed)) => break,
        }
    }
    Ok(())
}

/// Looks at what the run writes, until the run ends.
pub(super) fn watch_outputs(mut guard: OutputGuard, shared: &RunShared) -> Result<(), RunError> {
    let mut wait = guard().map_err(RunError::Sink)?;
    while shared.queue.pause(wait).is_ok() {
        wait = guard().map_err(RunError::Sink)?;
    }
    Ok(())
}

/// Does the tasks for the state of a process that is not its owner, until there are no more.
pub(super) fn write_state(
    mut writer: StateWriter,
    kept: &KeptEpochs,
    tasks: Receiver<WriterTask>,
    peers: &Arc<PeerProcesses>,
) {
    for task in tasks {
        let peers = Arc::clone(peers);
        writer.work(task, |through| kept.take(through), move |reply| peers.reply(&reply));
    }
}

/// Starts a thread whose error or panic fails the run; its result is then the default. `None` if the thread
/// cannot be started.
pub(super) fn spawn<T: Default + Send + 'static>(
    name: &str,
    shared: &Arc<RunShared>,
    work: impl FnOnce(&RunShared) -> Result<T, RunError> + Send + 'static,
) -> Option<JoinHandle<T>> {
    let context = Arc::clone(shared);
    let panicked = format!("the {name} panicked");
    let work = move || {
        let worked = catch_unwind(AssertUnwindSafe(|| work(&context)));
        worked.unwrap_or_else(|_| Err(RunError::Worker(panicked))).unwrap_or_else(|error| {
            context.failure.fail(error);
            T::default()
        })
    };
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(|error| shared.failure.fail(RunError::Worker(format!("the {name}: {error}")))).ok()
}
