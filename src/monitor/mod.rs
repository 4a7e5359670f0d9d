//! What can be asked about a run from outside, over HTTP: its numbers, whether it works, whether it is live.
//!
//! ```text
//!  run ── Status, Metrics ◀── routes ◀── server (one thread) ◀── GET /metrics, /health, /ready
//!         atomics               text       connections
//! ```
//!
//! | path | 200 | 503 |
//! |---|---|---|
//! | `/metrics` | the text format of Prometheus, version 0.0.4 | |
//! | `/health` | the process works | with the reason: the run has failed |
//! | `/ready` | the run is live, and at most [`EPOCHS_BEHIND`] closed epochs wait to be durable | with what it waits for |
//!
//! Invariants: whoever asks reads atomics, and locks texts for no longer than it takes to copy them; so nobody outside can hold up the run.
//! Whatever a client does, or leaves undone, costs a bounded amount of memory and ends after a bounded time ([`Limits`]). Only
//! loopback addresses are listened on: there is nothing here that tells callers apart.

mod families;
mod histogram;
mod memory;
mod patient;
mod routes;
mod server;
mod status;
mod text;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::oneshot;

pub use families::{Kind, Listed, listed};
pub use status::{EPOCHS_BEHIND, Phase, Status};

use crate::metrics::Metrics;
use crate::time::Clock;

/// What a client may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at the same time, 1 or more; one more is answered with 503 and closed. 128: well below what a process may have
    /// open, which the run needs for files of its own.
    pub connections: usize,
    /// From when a connection is made, or has been answered, until the head of a request is whole; 5 s. So it is the limit of idle ones too.
    pub head: Duration,
    /// How long a client may take nothing of what it is sent; 30 s: a slow one is served, a stuck one closed.
    pub stuck: Duration,
    /// How long answers that have been begun may take once the monitor ends; half a second.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 128,
            head: Duration::from_secs(5),
            stuck: Duration::from_secs(30),
            shutdown: Duration::from_millis(500),
        }
    }
}

/// A server beside a run. It ends when it is stopped or dropped, within [`Limits::shutdown`].
#[derive(Debug)]
pub struct Monitor {
    address: SocketAddr,
    /// What ends it when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// Starts to listen; port 0 takes one that is free. `clock` is that of the run, by which `status` is told times.
    ///
    /// # Errors
    /// If the address is no loopback address, or cannot be listened on; if no thread can be started.
    pub fn start(
        address: SocketAddr,
        metrics: Arc<Metrics>,
        status: Arc<Status>,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        Self::with_limits(address, metrics, status, clock, Limits::default())
    }

    /// The same with other limits.
    ///
    /// # Errors
    /// The same.
    pub fn with_limits(
        address: SocketAddr,
        metrics: Arc<Metrics>,
        status: Arc<Status>,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> io::Result<Self> {
        let failed = |error: &io::Error| format!("the monitor cannot listen on {address}: {error}");
        if !address.ip().is_loopback() {
            let what = "expected a loopback address, such as 127.0.0.1:9600 or [::1]:9600: whoever reaches it may ask";
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the monitor cannot listen on {address}: {what}"),
            ));
        }
        let listener =
            TcpListener::bind(address).map_err(|error| io::Error::new(error.kind(), failed(&error)))?;
        listener.set_nonblocking(true)?;
        let bound = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let router = routes::router(metrics, status, clock);
        let (stop, stopped) = oneshot::channel();
        let serve = move || runtime.block_on(server::serve(listener, router, limits, stopped));
        let thread = thread::Builder::new().name("monitor".to_owned()).spawn(serve)?;
        tracing::info!(address = %bound, "monitor listens");
        Ok(Self { address: bound, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it, and waits for that.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there is nothing that a run should fail with.
            drop(thread.join());
        }
    }
}
