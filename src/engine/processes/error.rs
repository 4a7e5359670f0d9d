//! Why the processes could not connect.

use std::fmt;
use std::io;
use std::time::Duration;

use thiserror::Error;

use super::handshake::list;
use dupflow_core::description::Difference;

/// Why the processes could not connect.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The address in this process's own line cannot be listened on.
    #[error("cannot listen on \"{address}\", the address of process {index}")]
    Listen {
        /// As the hosts file has it.
        address: String,
        /// The index of this process.
        index: usize,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Process 0 refused this one, or another process listens at its address.
    #[error("{process}: {why}")]
    Refused {
        /// Name of the process.
        process: String,
        /// The reason that it gave.
        why: String,
    },
    /// Another process has a different description.
    #[error("{process} is of another run: {}", list(differences))]
    Differs {
        /// Name of the process.
        process: String,
        /// Where the descriptions differ.
        differences: Vec<Difference>,
    },
    /// Some processes did not connect in time.
    #[error("after {} s there is no \
        {}", within.as_secs_f64(), missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; no "))]
    Missing {
        /// These processes.
        missing: Vec<Missing>,
        /// The time limit.
        within: Duration,
    },
    /// A connected process has disconnected before the start.
    #[error("{process} is gone before the start: {why}")]
    Gone {
        /// Name of the process.
        process: String,
        /// How this was detected.
        why: String,
    },
    /// Another process has given up, with this message.
    #[error("{0}")]
    Failed(String),
    /// The system cannot make another thread or socket.
    #[error("cannot connect the processes")]
    Io(#[source] io::Error),
}

/// A process that did not connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Name of the process.
    pub process: String,
    /// The last known reason.
    pub why: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.process, self.why)
    }
}
