//! Several processes as one run: how they find each other, and how they know of each other.
//!
//! A hosts file, a description of the run and a secret -> a connected socket to every other process, for the
//! dataflow, and a [`Control`] to talk to them beside it.
//!
//! ```text
//! hosts ─┐
//!        ├─ gather ── listener, connect ── handshake (secret)
//!        │     │
//!        │     ├─ data sockets, one for each pair of processes ──── to the dataflow
//!        │     └─ wires, one from each process to process 0 ─── control: messages, beats, failures
//! ```
//!
//! Invariants: a process listens where its own line of the hosts file says, and only until all have gathered;
//! no bytes, silence or end of a stranger's connection ends or delays the start; processes whose descriptions
//! differ never run together; a process that dies, hangs or cannot be reached is known to all others within
//! [`Limits::lost`] and a beat, and is told to each once.
//!
//! The secret guards the start. What is sent afterwards is not encrypted, and whoever can change packets on
//! their way can change it: a network that is private remains a condition. Nothing here knows what is
//! computed.

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

pub use control::{Control, Event};
pub use hosts::{HostsError, HostsProblem, Processes};
pub use message::Message;
pub use secret::Secret;

use dupflow_core::description::{Description, Difference};

/// What a process knows before it meets the others.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The processes, and which of them this is.
    pub processes: Processes,
    /// What must be the same on all of them. The list of hosts need not be in it: it is compared as
    /// `processes.hosts`.
    pub description: Description,
    /// What they all know; the default is nothing.
    pub secret: Secret,
    /// How long they wait for each other.
    pub limits: Limits,
}

/// How long processes wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the start of a process until all have started. Default 60 s: time to start them by hand.
    pub connect: Duration,
    /// For whoever has connected to say who it is. Default 2 s: a process of ours needs a millisecond.
    pub hello: Duration,
    /// Between two signs of life over a control connection. Default 1 s.
    pub beat: Duration,
    /// Without a sign of life, after which a process is lost. Default 5 s: a busy machine skips a beat or
    /// two.
    pub lost: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(60), hello: seconds(2), beat: seconds(1), lost: seconds(5) }
    }
}

/// All connections of a process: what to talk over, and by process the sockets for records, `None` in its own
/// place.
#[derive(Debug)]
pub struct Connected {
    /// Messages, beats, failures.
    pub control: Control,
    /// For the dataflow; blocking, and nothing has been sent yet.
    pub data: Vec<Option<TcpStream>>,
}

/// Why processes do not come together.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The address of this process's own line cannot be listened on.
    #[error("cannot listen on \"{address}\", the address of process {index}")]
    Listen {
        /// As the hosts file has it.
        address: String,
        /// This process.
        index: usize,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Process 0 refused this one, or is not where it was looked for.
    #[error("{process}: {why}")]
    Refused {
        /// Its name.
        process: String,
        /// What it says.
        why: String,
    },
    /// Another process is of another run.
    #[error("{process} is of another run: {}", handshake::list(differences))]
    Differs {
        /// Its name.
        process: String,
        /// Where the descriptions differ.
        differences: Vec<Difference>,
    },
    /// Not all came in time.
    #[error("after {} s there is no {}", within.as_secs_f64(), missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; no "))]
    Missing {
        /// Who did not.
        missing: Vec<Missing>,
        /// Within this time.
        within: Duration,
    },
    /// A process that was there is gone.
    #[error("{process} is gone before the start: {why}")]
    Gone {
        /// Its name.
        process: String,
        /// How that is known.
        why: String,
    },
    /// Another process says that there is no run, and why.
    #[error("{0}")]
    Failed(String),
    /// The system has no more threads, or sockets.
    #[error("cannot connect the processes")]
    Io(#[source] io::Error),
}

/// A process that did not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub process: String,
    /// What is last known of it.
    pub why: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.process, self.why)
    }
}

/// Meets the other processes, as many as the hosts file has, in any order of starting. Returns when all of
/// them are there.
///
/// # Errors
/// Why there is no run; the other processes that are there are told.
///
/// # Panics
/// If the description has a field `processes.hosts`.
pub fn connect(settings: &Settings) -> Result<Connected, ConnectError> {
    let index = settings.processes.index();
    let address = &settings.processes.hosts()[index];
    let listener = TcpListener::bind(address).map_err(|source| {
        let address = address.clone();
        ConnectError::Listen { address, index, source }
    })?;
    connect_on(listener, settings)
}

/// As [`connect`], with a socket that listens already where the others look for this process.
///
/// # Errors
/// Why there is no run; the other processes that are there are told.
///
/// # Panics
/// If the description has a field `processes.hosts`.
pub fn connect_on(listener: TcpListener, settings: &Settings) -> Result<Connected, ConnectError> {
    let mut gathered = gather::gather(listener, settings)?;
    let data = std::mem::take(&mut gathered.data);
    Ok(Connected { control: Control::new(&settings.processes, gathered, settings.limits.beat), data })
}
