//! Several processes as one run: how they connect, and how each notices that another has failed.
//!
//! A hosts file, a description of the run and a secret -> a connected socket to every other process, for the
//! dataflow, and a [`Control`] for messages between processes.
//!
//! ```text
//! hosts ─┐
//!        ├─ gather ── listener, connect ── handshake (secret)
//!        │     │
//!        │     ├─ data sockets, one for each pair of processes ──── to the dataflow
//!        │     └─ wires, one from each process to process 0 ─── control: messages, beats, failures
//! ```
//!
//! Invariants:
//!
//! - a process listens at the address in its own line of the hosts file, and only until all processes are
//!   connected;
//! - no connection of a stranger ends or delays the start, whatever it sends;
//! - processes whose descriptions differ never run together;
//! - when a process ends, hangs or cannot be reached, all others notice within [`ConnectLimits::lost`] and a
//!   beat, and each gets one event.
//!
//! The secret protects the start. Later traffic is neither encrypted nor authenticated: an attacker on the
//! network could change it, so the network must be private. This module does not depend on what is computed.

mod control;
mod gather;
mod handshake;
mod hosts;
mod listener;
mod message;
mod refusals;
mod secret;
mod wire;

use std::fmt;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use thiserror::Error;

pub use control::{Control, ControlEvent};
pub use hosts::{HostsError, HostsProblem, Processes};
pub use message::ControlMessage;
pub use secret::Secret;

use dupflow_core::description::{Description, Difference};

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

/// All connections of a process.
#[derive(Debug)]
pub struct Connected {
    /// Messages, beats, failures.
    pub control: Control,
    /// By process, the socket for the dataflow's records, `None` for this process; blocking, and nothing has
    /// been sent.
    pub data: Vec<Option<TcpStream>>,
}

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
    #[error("{process} is of another run: {}", handshake::list(differences))]
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

/// Connects to the other processes, as many as the hosts file has, in any order of starting. Returns when all
/// are connected.
///
/// # Errors
/// Why there is no run. The other connected processes are notified.
///
/// # Panics
/// If the description has a field `processes.hosts`.
pub fn connect(settings: &ConnectSettings) -> Result<Connected, ConnectError> {
    let index = settings.processes.index();
    let address = &settings.processes.hosts()[index];
    let listener = TcpListener::bind(address).map_err(|source| {
        let address = address.clone();
        ConnectError::Listen { address, index, source }
    })?;
    connect_on(listener, settings)
}

/// As [`connect`], with a socket that already listens at this process's address.
///
/// # Errors
/// Why there is no run. The other connected processes are notified.
///
/// # Panics
/// If the description has a field `processes.hosts`.
pub fn connect_on(listener: TcpListener, settings: &ConnectSettings) -> Result<Connected, ConnectError> {
    let mut gathered = gather::gather(listener, settings)?;
    let data = std::mem::take(&mut gathered.data);
    Ok(Connected { control: Control::new(&settings.processes, gathered, settings.limits.beat), data })
}
