//! The one way in which a run fails: whoever fails first says why, and everything ends.

use std::io;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::RunError;
use super::commits::Commits;
use super::keeper::KeeperStop;
use dupflow_connectors::intake::Queue;
use dupflow_core::run::status::{Phase, Status};
use dupflow_engine::dataflow::Cancellation;

/// Takes a failure to other processes.
pub(super) type Tell = Box<dyn Fn(&RunError) + Send + Sync>;

/// What reader, workers and committer tell when they fail.
///
/// A failure ends them all where they are. Workers keep the epochs that they hold: what was read of an open
/// epoch is not all of it, so it must not close; and of epochs that are closed, none is written any more, and
/// the sink is not finished.
pub(super) struct Failure {
    first: Mutex<Option<RunError>>,
    queue: Arc<Queue>,
    commits: Arc<Commits>,
    workers: Arc<Cancellation>,
    keeper: OnceLock<KeeperStop>,
    /// Tells the other processes, if there are any.
    tell: Option<Tell>,
    status: Arc<Status>,
}

impl Failure {
    pub(super) fn new(
        queue: &Arc<Queue>,
        commits: &Arc<Commits>,
        workers: &Arc<Cancellation>,
        tell: Option<Tell>,
        status: &Arc<Status>,
    ) -> Self {
        Self {
            first: Mutex::default(),
            queue: Arc::clone(queue),
            commits: Arc::clone(commits),
            workers: Arc::clone(workers),
            keeper: OnceLock::new(),
            tell,
            status: Arc::clone(status),
        }
    }

    /// A failure ends this keeper too.
    pub(super) fn stops(&self, keeper: KeeperStop) {
        self.keeper.get_or_init(|| keeper);
    }

    /// Ends the run with an error, unless it already has one.
    pub(super) fn fail(&self, error: RunError) {
        self.status.enter(Phase::Failed(error.to_string()));
        let mut first = self.first.lock();
        if let Some(tell) = &self.tell {
            // Who waits for a good end is woken by this, and asks for the outcome: it must not find none.
            tell(&error);
        }
        first.get_or_insert(error);
        drop(first);
        // The queue first: no worker may take what follows a gap for what comes next.
        self.queue.fail();
        self.commits.cancel();
        self.workers.cancel();
        if let Some(keeper) = self.keeper.get() {
            keeper.cancel();
        }
    }

    /// Whether anybody has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.first.lock().is_some()
    }

    /// How the run went, once all have ended. An output that nobody reads on is no failure.
    pub(super) fn outcome(&self) -> Result<(), RunError> {
        match self.first.lock().take() {
            Some(RunError::Sink(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
