//! A writer: the side of a process that does not own the state.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{StateOwner, WriterDone, WriterFailure, WriterReply, WriterTask, WriterWork};
use crate::failpoint;
use crate::state::StateError;
use crate::state::compaction::{self, CompactionJob, CompactionTask};
use crate::state::files::{SegmentNames, StateFiles};
use crate::state::manifest::Manifest;
use crate::state::segment::{SegmentFile, write_delta};
use crate::state::snapshot::Snapshot;
use crate::state::store::Store;
use dupflow_core::doc::changes::Changes;
use dupflow_core::time::Epoch;

/// A state that another process owns, as this process reaches it.
#[derive(Debug)]
pub struct SharedState(StateFiles);

impl SharedState {
    /// In this store. Nothing is read yet.
    pub fn new(store: Box<dyn Store>) -> Self {
        Self(StateFiles::new(store))
    }

    /// The snapshot that the owner has [encoded](Snapshot::encode).
    ///
    /// # Errors
    /// If these are not the bytes of a snapshot.
    pub fn snapshot(&self, bytes: &[u8]) -> Result<Option<Snapshot>, StateError> {
        let manifest = Manifest::decode(&self.0, "the sent manifest", bytes)?;
        Ok(Snapshot::from_manifest(&self.0, &Arc::new(manifest)))
    }

    /// A writer of the share of this process. `process` is its number in the run, which is in the names of
    /// its files.
    ///
    /// # Errors
    /// If the store does not hold the state of this owner, or cannot be written.
    pub fn writer(&self, owner: &StateOwner, process: usize) -> Result<StateWriter, StateError> {
        let manifest = Manifest::read(&self.0, owner.number)?;
        if manifest.owner != owner.owner {
            return Err(StateError::AnotherState { file: self.0.full_name(&Manifest::name(owner.number)) });
        }
        let names = SegmentNames::new(owner.owner, Some(process));
        let probe = names.next("delta");
        self.0.put(&probe, b"")?;
        self.0.delete(&probe)?;
        let (waiting, unpublished) = (Vec::new(), Vec::new());
        Ok(StateWriter { files: self.0.clone(), names, waiting, unpublished, job: None })
    }
}

/// Writes the share of a process of the state that another one owns.
#[derive(Debug)]
pub struct StateWriter {
    files: StateFiles,
    names: SegmentNames,
    /// Changes that are in no file yet.
    waiting: Vec<Changes>,
    /// Deltas that the owner has not published, with their changes.
    unpublished: Vec<(SegmentFile, Vec<Changes>)>,
    job: Option<CompactionJob>,
}

impl StateWriter {
    /// Does a task. `changes` returns the changes of the epochs through one, inclusive, each once. `reply` is
    /// called at most once, now or by another thread.
    pub fn work(
        &mut self,
        WriterTask { serial, work }: WriterTask,
        changes: impl FnOnce(Epoch) -> Vec<Changes>,
        reply: impl FnOnce(WriterReply) + Clone + Send + 'static,
    ) {
        match work {
            WriterWork::Store { through } => {
                self.waiting.extend(changes(through));
                let stored = self.store().map_err(|error| WriterFailure::new(&error));
                reply(WriterReply { serial, done: WriterDone::Stored(stored) });
            }
            WriterWork::Published => self.unpublished.clear(),
            WriterWork::Discard { listed } => self.discard(&listed),
            WriterWork::Rebase { manifest, groups } => {
                let rebased = move |bases, failure: Option<WriterFailure>| WriterReply {
                    serial,
                    done: WriterDone::Rebased { bases, failure },
                };
                let failed = |what: String| Some(WriterFailure::other(what));
                let (again, files, names) = (reply.clone(), self.files.clone(), self.names.clone());
                let job = CompactionJob::spawn(move |progress| {
                    let task = CompactionTask::Rebase(groups);
                    let execute = || compaction::execute(&files, &manifest, task, &names, progress);
                    let failure = match catch_unwind(AssertUnwindSafe(execute)) {
                        Ok(done) => done.err().map(|error| WriterFailure::new(&error)),
                        Err(_) => failed("its thread panicked".to_owned()),
                    };
                    failpoint::reach("writer-rebased");
                    reply(rebased(progress.take(), failure));
                    Ok(())
                });
                match job {
                    // The one before has replied, so its thread has nothing more to do.
                    Ok(job) => self.job = Some(job),
                    Err(error) => again(rebased(Vec::new(), failed(format!("no thread: {error}")))),
                }
            }
            WriterWork::Stop => self.job.iter().for_each(CompactionJob::request_stop),
        }
    }

    /// Writes what waits. Returns what is not published.
    fn store(&mut self) -> Result<Vec<SegmentFile>, StateError> {
        let written = write_delta(&self.files, self.names.next("delta"), &self.waiting)?;
        let changes = std::mem::take(&mut self.waiting);
        self.unpublished.extend(written.map(|delta| (delta, changes)));
        failpoint::reach("writer-stored");
        Ok(self.unpublished.iter().map(|(delta, _)| delta.clone()).collect())
    }

    /// Removes the deltas that are not published, so that a full disk can be compacted; the newest first, so
    /// that what stays is older than what goes. A manifest that was written although that was reported as a
    /// failure may list some.
    fn discard(&mut self, listed: &[String]) {
        let Self { files, unpublished, waiting, .. } = self;
        let goes = |(delta, _): &mut (SegmentFile, _)| {
            !listed.contains(&delta.name)
                && match files.delete(&delta.name) {
                    Err(error) if !error.is_gone() => {
                        let error = error.in_full();
                        tracing::warn!(error, "a delta that is not published is not removed");
                        // It may have been removed nevertheless.
                        files.size(&delta.name).is_err_and(|found| found.is_gone())
                    }
                    _ => true,
                }
        };
        while let Some((_, changes)) = unpublished.pop_if(goes) {
            waiting.splice(0..0, changes);
        }
    }
}
