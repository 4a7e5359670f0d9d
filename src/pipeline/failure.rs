//! The one way in which a run fails: whoever fails first says why, and everything ends.

use std::io;
use std::sync::{Arc, Mutex};

use super::committer::Commits;
use super::{RunError, lock};
use crate::dataflow::Cancellation;
use crate::source::Queue;

/// What reader, workers and committer tell when they fail.
///
/// A failure ends them all where they are. Workers keep the epochs that they hold: what was read of an open epoch is not all of
/// it, so it must not close; and of epochs that are closed, none is written any more, and the sink is not finished.
pub(super) struct Failure {
    first: Mutex<Option<RunError>>,
    queue: Arc<Queue>,
    commits: Arc<Commits>,
    workers: Arc<Cancellation>,
}

impl Failure {
    pub(super) fn new(queue: &Arc<Queue>, commits: &Arc<Commits>, workers: &Arc<Cancellation>) -> Self {
        Self {
            first: Mutex::default(),
            queue: Arc::clone(queue),
            commits: Arc::clone(commits),
            workers: Arc::clone(workers),
        }
    }

    /// Ends the run with an error, unless it already has one.
    pub(super) fn fail(&self, error: RunError) {
        lock(&self.first).get_or_insert(error);
        // The queue first: no worker may take what follows a gap for what comes next.
        self.queue.fail();
        self.commits.cancel();
        self.workers.cancel();
    }

    /// How the run went, once all have ended. An output that nobody reads on is no failure.
    pub(super) fn outcome(&self) -> Result<(), RunError> {
        match lock(&self.first).take() {
            Some(RunError::Sink(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
