//! What connects the processes, and how long they wait for each other.

use std::time::Duration;

use super::hosts::Processes;
use super::secret::Secret;
use dupflow_core::description::Description;

/// What a process needs to connect to the others.
#[derive(Clone, Debug)]
pub struct ConnectSettings {
    /// The processes, and which of them this is.
    pub processes: Processes,
    /// What must be the same on all processes. The list of hosts need not be in it: it is compared as
    /// `processes.hosts`.
    pub description: Description,
    /// The secret of all processes; the default is an empty one.
    pub secret: Secret,
    /// How long they wait for each other.
    pub limits: ConnectLimits,
}

/// Time limits between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectLimits {
    /// From the start of a process until all have started. Default 60 s: time to start them by hand.
    pub connect: Duration,
    /// For a handshake on a new connection. Default 2 s: a process of ours needs a millisecond.
    pub hello: Duration,
    /// Between two beats over a control connection. Default 1 s.
    pub beat: Duration,
    /// Silence after which a process is lost. Default 5 s: a busy machine may miss a beat or two.
    pub lost: Duration,
}

impl Default for ConnectLimits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(60), hello: seconds(2), beat: seconds(1), lost: seconds(5) }
    }
}
