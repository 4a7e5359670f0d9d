//! Replays and runs.

/// Whether a job replays a recorded input or continues earlier runs.
#[derive(Debug)]
pub enum Mode {
    /// Reads a recorded input once. Output and dead letters start empty, and no state is kept.
    Replay,
    /// Continues after earlier runs on the same output.
    Run {
        /// Whether to correct an output that another pipeline has written.
        reconcile: bool,
    },
}
