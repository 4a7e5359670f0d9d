//! Restores the documents of the state: threads read its shards and push them into the queue, before the
//! readers begin. The documents of a [reference](Reference) are pushed first, in epochs of their own.
//!
//! Of several processes each restores its share of the shards, if it reaches the state; process 0 restores
//! the shares of those that do not. Which process reads a document does not matter: the dataflow sends it to
//! the worker that owns it.
//!
//! Memory: the queue, one slice and one block for each thread, and the epochs in flight, of
//! [`RESTORED_BYTES`] for each process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::process_group::PeerProcesses;
use super::worker::{OwnProcess, RunShared};
use crate::pipeline::error::{RunError, chain};
use dupflow_connectors::intake::{Batch, Closed};
use dupflow_connectors::state::{OpenSnapshot, Snapshot, StateError, UnreadShards};
use dupflow_core::doc::changes::Changes;
use dupflow_engine::dataflow::Reference;
use dupflow_run::status::Phase;

/// Approximate bytes of restored documents in one batch.
const SLICE_BYTES: usize = 256 << 10;

/// Approximate bytes that each process restores in one epoch; bounds the memory of a restart. With
/// 32 MiB a restart takes 2 % less CPU time, with 4 MiB 16 % more.
const RESTORED_BYTES: u64 = 16 << 20;

/// Under a memory budget an epoch has at most this part of it: 1 / `BUDGET_PARTS`.
const BUDGET_PARTS: u64 = 64;

/// How often process 0 looks again whether the others have said what they restore; it is woken too.
const ANSWERS_EVERY: Duration = Duration::from_secs(1);

/// What the restore needs.
pub(super) struct RestoreParts {
    /// The reference, in process 0.
    pub(super) reference: Option<Reference>,
    /// The documents, as this process reaches them.
    pub(super) snapshot: Option<Snapshot>,
    /// Threads that read, at least 1.
    pub(super) threads: usize,
    /// The memory budget of this process, in bytes.
    pub(super) budget: Option<u64>,
    pub(super) peers: Option<Arc<PeerProcesses>>,
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

/// Restores the share of this process, then lets the readers begin. It runs as the first of the readers that
/// the queue waits for.
pub(super) fn restore(mut parts: RestoreParts, shared: &RunShared) -> Result<(), RunError> {
    shared.status.enter(Phase::Restoring);
    let reference = parts.reference.take();
    let restoring =
        Restoring { parts: &parts, shared, documents: AtomicU64::new(0), bytes: AtomicU64::new(0) };
    let begun = shared.clock.now();
    let taken_in = reference.map_or(Ok(()), |reference| restoring.take_in(reference));
    let has_read = match taken_in.and_then(|()| restoring.run()) {
        Ok(has_read) => has_read,
        // The run has ended meanwhile.
        Err(RestoreEnd::Closed) => return Ok(()),
        Err(RestoreEnd::State(error)) => return Err(error.into()),
    };
    if has_read {
        let seconds = (shared.clock.now() - begun).as_secs_f64();
        let documents = restoring.documents.into_inner();
        tracing::info!(documents, seconds, "documents restored from the state");
    }
    shared.status.enter(Phase::CatchingUp);
    shared.queue.restored();
    if shared.live.get().is_some() {
        shared.status.enter(Phase::Live);
    }
    if parts.snapshot.is_some() && shared.process.index == 0 {
        // The first line is behind the shares of all processes; until then the files of the snapshot stay.
        shared.queue.wait_for_first_line();
    }
    drop(parts);
    shared.queue.finish();
    Ok(())
}

/// A restore in progress.
struct Restoring<'r> {
    parts: &'r RestoreParts,
    shared: &'r RunShared,
    documents: AtomicU64,
    /// Bytes pushed since the last cut.
    bytes: AtomicU64,
}

impl Restoring<'_> {
    /// Pushes the documents of the reference. All of them are in their blocks before another document is
    /// looked up there.
    fn take_in(&self, reference: Reference) -> Result<(), RestoreEnd> {
        for part in reference.documents {
            self.push(part)?;
        }
        self.shared.queue.cut();
        Ok(())
    }

    /// Restores what this process has to. Returns whether that is anything.
    fn run(&self) -> Result<bool, RestoreEnd> {
        let OwnProcess { index, count } = self.shared.process;
        let snapshot = self.parts.snapshot.as_ref().map(Snapshot::open);
        let snapshot = match (index, &self.parts.peers) {
            (0, _) | (_, None) => snapshot.transpose()?,
            (_, Some(peers)) => {
                let opened = snapshot.and_then(|opened| {
                    opened
                        .inspect_err(|error| {
                            let error = chain(error);
                            tracing::warn!(error, "the state is not reached here: process 0 restores it");
                        })
                        .ok()
                });
                peers.restores(opened.is_some());
                opened
            }
        };
        let Some(snapshot) = snapshot else { return Ok(false) };
        self.share(&snapshot, index)?;
        if let (0, Some(peers)) = (index, &self.parts.peers) {
            for other in 1..count {
                if !self.answer(peers, other)? {
                    tracing::info!(process = other, "its share of the state is restored here");
                    self.share(&snapshot, other)?;
                }
            }
        }
        Ok(true)
    }

    /// Whether another process restores its share itself.
    fn answer(&self, peers: &PeerProcesses, process: usize) -> Result<bool, RestoreEnd> {
        loop {
            if let Some(restores) = peers.restored_by(process) {
                return Ok(restores);
            }
            let wait = self.shared.queue.pause_until(ANSWERS_EVERY, || peers.restored_by(process).is_some());
            wait.map_err(|Closed| RestoreEnd::Closed)?;
        }
    }

    /// Restores the share of a process, by all threads.
    fn share(&self, snapshot: &OpenSnapshot, process: usize) -> Result<(), RestoreEnd> {
        let unread = UnreadShards::share(process, self.shared.process.count);
        let read = || self.read(snapshot, &unread);
        thread::scope(|scope| {
            let spawn = |_| thread::Builder::new().name("restore".to_owned()).spawn_scoped(scope, read);
            // With fewer threads it takes longer.
            let others: Vec<_> = (1..self.parts.threads).map(spawn).filter_map(Result::ok).collect();
            others.into_iter().fold(read(), |result, other| {
                let joined = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                result.and(joined)
            })
        })
    }

    /// Restores shards until there is none left.
    fn read(&self, snapshot: &OpenSnapshot, unread: &UnreadShards) -> Result<(), RestoreEnd> {
        let read = snapshot.read(unread, SLICE_BYTES, |slice| {
            let documents = self.push(slice)?;
            self.documents.fetch_add(documents, Ordering::Relaxed);
            self.shared.status.count_restored(documents);
            Ok(())
        });
        // The other threads end too.
        read.inspect_err(|_| unread.take_all())
    }

    /// Pushes some documents, and ends the epoch if it has enough. Returns their number.
    fn push(&self, slice: Changes) -> Result<u64, RestoreEnd> {
        let queue = &self.shared.queue;
        let budget = self.parts.budget.map_or(u64::MAX, |budget| (budget / BUDGET_PARTS).max(1));
        // Each process ends the epochs of all.
        let in_epoch = RESTORED_BYTES.min(budget) * self.shared.process.count as u64;
        let batch = Batch::kept(slice);
        let (documents, bytes) = (batch.records, batch.bytes());
        queue.push(batch).map_err(|Closed| RestoreEnd::Closed)?;
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before / in_epoch != (before + bytes) / in_epoch {
            queue.cut();
        }
        Ok(documents)
    }
}
