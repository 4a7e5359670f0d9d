//! Replays and runs.

use crate::config::Deployment;

/// Whether a job replays a recorded input or continues earlier runs.
#[derive(Clone, Copy, Debug)]
pub enum Mode {
    /// Reads a recorded input once. Without a state, output and dead letters start empty, and tables and
    /// topics are corrected; with one, the job continues a replay that ended early.
    Replay,
    /// Continues after earlier runs on the same output.
    Run {
        /// Whether to correct an output that another pipeline has written.
        reconcile: bool,
    },
}

impl Mode {
    /// Whether the job continues after earlier ones.
    pub(super) fn continues(&self, deployment: &Deployment) -> bool {
        matches!(self, Self::Run { .. }) || deployment.state.is_some()
    }

    /// Whether the job corrects an output to what its inputs give, whatever was read for it before.
    pub(super) fn begins_anew(&self, deployment: &Deployment) -> bool {
        matches!(self, Self::Replay) && deployment.output.place.is_corrected()
    }

    /// Whether the job continues a replay that ended early.
    pub(super) fn resumes(&self, deployment: &Deployment) -> bool {
        matches!(self, Self::Replay) && deployment.state.is_some()
    }
}
