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
mod error;
mod gather;
mod handshake;
mod hosts;
mod listener;
mod message;
mod refusals;
mod secret;
mod settings;
mod wire;

use std::net::{TcpListener, TcpStream};

pub use control::{Control, ControlEvent};
pub use error::{ConnectError, Missing};
pub use hosts::{HostsError, HostsProblem, Processes};
pub use message::ControlMessage;
pub use secret::Secret;
pub use settings::{ConnectLimits, ConnectSettings};

/// All connections of a process.
#[derive(Debug)]
pub struct Connected {
    /// Messages, beats, failures.
    pub control: Control,
    /// By process, the socket for the dataflow's records, `None` for this process; blocking, and nothing has
    /// been sent.
    pub data: Vec<Option<TcpStream>>,
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
