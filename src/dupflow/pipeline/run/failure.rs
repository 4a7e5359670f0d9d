//! The first failure of a run: it is stored, and all threads of the run end.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::pipeline::commit::Commits;
use crate::pipeline::error::RunError;
use dupflow_connectors::intake::Queue;
use dupflow_engine::dataflow::Cancellation;
use dupflow_run::status::{Phase, Status};

/// Sends a failure to the other processes.
pub(in crate::pipeline) type SendFailure = Box<dyn Fn(&RunError) + Send + Sync>;

/// Ends something that the run waits for.
type EndOnFailure = Box<dyn Fn() + Send + Sync>;

/// Shared by readers, workers and committer, which report their failures here.
///
/// A failure ends all of them at once. Workers keep the records of open epochs: not all records of such an
/// epoch were read, so it must not close. Closed epochs that wait are not written, and the sink is not
/// finished.
pub(in crate::pipeline) struct RunFailure {
    first: Mutex<Option<RunError>>,
    queue: Arc<Queue>,
    commits: Arc<Commits>,
    workers: Arc<Cancellation>,
    /// What else a failure ends.
    ends: Mutex<Vec<EndOnFailure>>,
    /// Sends a failure to the other processes, if there are any.
    tell: Option<SendFailure>,
    status: Arc<Status>,
}

impl RunFailure {
    pub(in crate::pipeline) fn new(
        queue: &Arc<Queue>,
        commits: &Arc<Commits>,
        workers: &Arc<Cancellation>,
        tell: Option<SendFailure>,
        status: &Arc<Status>,
    ) -> Self {
        Self {
            first: Mutex::default(),
            queue: Arc::clone(queue),
            commits: Arc::clone(commits),
            workers: Arc::clone(workers),
            ends: Mutex::default(),
            tell,
            status: Arc::clone(status),
        }
    }

    /// A failure calls this too, perhaps twice. It must not wait.
    pub(in crate::pipeline) fn ends(&self, end: impl Fn() + Send + Sync + 'static) {
        self.ends.lock().push(Box::new(end));
        // The failure may have come before.
        if self.has_failed() {
            self.end_all();
        }
    }

    fn end_all(&self) {
        self.ends.lock().iter().for_each(|end| end());
    }

    /// Fails the run with `error`, unless it has failed before.
    pub(in crate::pipeline) fn fail(&self, error: RunError) {
        self.status.enter(Phase::Failed(error.to_string()));
        let mut first = self.first.lock();
        if let Some(tell) = &self.tell {
            // This wakes the thread that waits for the end of the run in `PeerProcesses::finish`. It then
            // calls `outcome`, which waits for the lock and so finds the error.
            tell(&error);
        }
        first.get_or_insert(error);
        drop(first);
        // The queue first: no worker may take records after a gap as if they were the next ones.
        self.queue.fail();
        self.commits.cancel();
        self.workers.cancel();
        self.end_all();
    }

    /// Whether the run has failed.
    pub(in crate::pipeline) fn has_failed(&self) -> bool {
        self.first.lock().is_some()
    }

    /// The result of the run, after all threads have ended. A closed pipe at the output is no failure.
    pub(in crate::pipeline) fn outcome(&self) -> Result<(), RunError> {
        match self.first.lock().take() {
            Some(error) if error.is_closed_pipe() => Ok(()),
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
