//! Why a run failed.

use std::io;

use thiserror::Error;

use super::past_error::PastError;
use dupflow_connectors::intake::SourceError;
use dupflow_connectors::state::StateError;
use dupflow_engine::dataflow::WorkerError;

/// Why a run failed.
#[derive(Debug, Error)]
pub enum RunError {
    /// Reading failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Writing failed.
    #[error("the output cannot be written")]
    Sink(#[source] io::Error),
    /// One of several outputs failed, or does not fit an earlier run.
    #[error("{name}")]
    Output {
        /// Its table in the deployment.
        name: String,
        /// What failed.
        #[source]
        error: Box<RunError>,
    },
    /// A dead letter cannot be written.
    #[error("the dead letters cannot be written")]
    Letters(#[source] io::Error),
    /// Notices cannot be written.
    #[error("the notices cannot be written")]
    Notices(#[source] io::Error),
    /// The file of posted watches is not the run's any more.
    #[error("the posted watches (watch.path)")]
    Watches(#[source] io::Error),
    /// The web hook cannot begin.
    #[error("the web hook cannot start")]
    Hook(#[source] io::Error),
    /// The state cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The run does not fit the output or the state of an earlier one.
    #[error(transparent)]
    Past(#[from] PastError),
    /// Another process of the run, or the connection to it, failed.
    #[error("{0}")]
    Process(String),
    /// [`Stopper::abandon`](super::Stopper::abandon) was called.
    #[error("the run was abandoned")]
    Abandoned,
    /// Rows could not be spilled, or read back. What is committed is exact.
    #[error("{0}")]
    Spill(String),
    /// A worker or another thread panicked.
    #[error("a worker failed: {0}")]
    Worker(String),
}

impl RunError {
    /// Whether the reader of the only output has closed it, which is no failure.
    pub(super) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Sink(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<WorkerError> for RunError {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Panicked(why) => Self::Worker(why),
            WorkerError::Spill(why) => Self::Spill(why),
        }
    }
}

/// The text of an error with all its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |all, cause| format!("{all}: {cause}"))
}
