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

    /// A writer of the share of this process, the one with this index among those of the run.
    ///
    /// # Errors
    /// If the store does not hold the state of this owner, or cannot be written.
    pub fn writer(&self, owner: &StateOwner, index: usize) -> Result<StateWriter, StateError> {
        let manifest = Manifest::read(&self.0, owner.number)?;
        if manifest.owner != owner.owner {
            let (found, expected) = (manifest.owner, owner.owner);
            let what = format!("expected one of the owner {expected:016x}, found one of {found:016x}");
            return Err(self.0.damaged(&Manifest::name(owner.number), what));
        }
        let names = SegmentNames::new(owner.owner, Some(index));
        let probe = names.next("delta");
        self.0.put(&probe, b"")?;
        self.0.delete(&probe)?;
        let (waiting, unpublished) = (Vec::new(), Vec::new());
        Ok(StateWriter { files: self.0.clone(), names, published: 0, waiting, unpublished, job: None })
    }
}

/// Writes the share of a process of the state that another one owns.
#[derive(Debug)]
pub struct StateWriter {
    files: StateFiles,
    names: SegmentNames,
    /// How often the owner has published.
    published: u64,
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
            WriterWork::Store { through, published } => {
                if self.published < published {
                    self.published = published;
                    self.unpublished.clear();
                }
                self.waiting.extend(changes(through));
                let stored = self.store().map_err(|error| WriterFailure::new(&error));
                reply(WriterReply { serial, done: WriterDone::Stored(stored) });
            }
            WriterWork::Rebase { manifest, groups } => {
                let again = reply.clone();
                let rebased = move |bases, failure| WriterReply {
                    serial,
                    done: WriterDone::Rebased { bases, failure },
                };
                let (files, names) = (self.files.clone(), self.names.clone());
                let job = CompactionJob::spawn(move |progress| {
                    let task = CompactionTask::Rebase(groups);
                    let execute = || compaction::execute(&files, &manifest, task, &names, progress);
                    let done = catch_unwind(AssertUnwindSafe(execute));
                    let failure = match done {
                        Ok(done) => done.err().map(|error| WriterFailure::new(&error)),
                        Err(_) => {
                            Some(WriterFailure { what: "its thread panicked".to_owned(), is_full: false })
                        }
                    };
                    reply(rebased(progress.take(), failure));
                    Ok(())
                });
                // One that was sent before has been replied to.
                match job {
                    Ok(job) => self.job = Some(job),
                    Err(error) => {
                        let what = format!("no thread to compact state: {error}");
                        let failure = Some(WriterFailure { what, is_full: false });
                        again(WriterReply {
                            serial,
                            done: WriterDone::Rebased { bases: Vec::new(), failure },
                        });
                    }
                }
            }
            WriterWork::Discard => self.discard(),
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

    /// Removes the deltas that are not published, so that a full disk can be compacted.
    fn discard(&mut self) {
        let mut waiting = Vec::new();
        // The newest first: what stays is older than what goes.
        while let Some((delta, changes)) =
            self.unpublished.pop_if(|(delta, _)| self.files.delete(&delta.name).is_ok())
        {
            waiting.splice(0..0, changes);
            tracing::debug!(delta = delta.name, "an unpublished delta is removed");
        }
        waiting.append(&mut self.waiting);
        self.waiting = waiting;
    }
}
