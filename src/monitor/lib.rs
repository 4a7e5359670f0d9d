//! What can be asked about a run from outside, over HTTP: its numbers, its pairs, what a text is similar to;
//! and the page that shows it all.
//!
//! ```text
//!  committer ── Feeder ──▶ View ◀──────────┐
//!  run ── Status, Metrics ◀──────────── routes ◀── access ◀── server (one thread) ◀── connections
//!  workers ◀── QueryQueue ◀───────────────┘   └── stream ──▶ readers of deltas
//! ```
//!
//! The paths, what they take and what they answer: `docs/api.md`, and `/openapi.json`, which is made from the
//! code.
//!
//! Invariants: whoever asks reads atomics, and holds a lock for no longer than it takes to copy a page; so
//! nobody outside can hold up the run. Whatever a client does, or leaves undone, costs a bounded amount of
//! memory and ends after a bounded time ([`Limits`]). An address that others can reach is listened on only
//! with a token ([`Entry`]). No text of a document is kept.

mod access;
mod bucket;
mod exposition;
mod families;
mod memory;
pub mod page;
mod patient;
mod refusals;
mod routes;
mod samples;
mod server;
mod stream;
mod subject;
mod view;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;

pub use access::TOKEN_BYTES;
pub use exposition::Kind;
pub use families::{Listed, listed, page as metrics_page};

pub use subject::{Compare, Compared, ErrorOf, Hot, NoText, Pipeline, Subject, Texts};
pub use view::{Feeder, Unseen, View};

use access::Access;

/// What a client may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at the same time, 1 or more; one more is answered with 503 and closed. 128; a quarter of
    /// what the process may have open if that is less, so that the run can open files of its own.
    pub connections: usize,
    /// Streams of deltas among them; 64.
    pub streams: usize,
    /// Bodies that are read or answered at the same time; 32.
    pub bodies: usize,
    /// The most bytes of a body, inclusive; 4 MiB.
    pub body_bytes: usize,
    /// Questions that are answered in a second, 1 or more; 500.
    pub questions_per_second: u32,
    /// From when a connection is made, or has been answered, until the head of a request is whole; 5 s. So it
    /// is the limit of idle ones too.
    pub head: Duration,
    /// From the head of a request until its body is whole; 30 s.
    pub body: Duration,
    /// How long a client may take nothing of what it is sent; 30 s: a slow one is served, a stuck one closed.
    pub stuck: Duration,
    /// How long answers that have been begun may take once the monitor ends; half a second.
    pub shutdown: Duration,
}

impl Limits {
    /// What holds unless it is set.
    pub const DEFAULT: Self = Self {
        connections: 128,
        streams: 64,
        bodies: 32,
        body_bytes: 4 << 20,
        questions_per_second: 500,
        head: Duration::from_secs(5),
        body: Duration::from_secs(30),
        stuck: Duration::from_secs(30),
        shutdown: Duration::from_millis(500),
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Where a monitor listens, and what whoever comes there has to show.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The address; port 0 takes one that is free.
    pub address: SocketAddr,
    /// The token, of [`TOKEN_BYTES`] bytes or more; an address that is no loopback address needs one.
    pub token: Option<String>,
    /// Names by which it may be called beside those of the loopback, where there is no token: of a proxy in
    /// front of it.
    pub hosts: Vec<String>,
    /// The path below which a proxy shows it, as `/near`; empty for none. Requests have it or not.
    pub base_path: String,
}

impl Entry {
    /// Without a token.
    pub fn open(address: SocketAddr) -> Self {
        Self { address, token: None, hosts: Vec::new(), base_path: String::new() }
    }
}

impl std::fmt::Debug for Entry {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("address", &self.address).finish_non_exhaustive()
    }
}

/// How long the end of a run may wait until its last deltas are ready for those who read them.
const LAST_DELTAS: Duration = Duration::from_secs(10);

/// A server beside a run. It ends when it is stopped or dropped, within [`Limits::shutdown`]; the deltas that
/// have been told are ready before.
#[derive(Debug)]
pub struct Monitor {
    address: SocketAddr,
    /// What ends it.
    stop: watch::Sender<bool>,
    view: Option<Arc<View>>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// Starts to listen.
    ///
    /// # Errors
    /// If the address is no loopback address and there is no token, or if it cannot be listened on; if no
    /// thread can be started.
    pub fn start(entry: &Entry, subject: Subject, limits: Limits) -> io::Result<Self> {
        let Entry { address, token, hosts, base_path } = entry;
        let failed = |error: &io::Error| format!("the monitor cannot listen on {address}: {error}");
        let is_loopback = address.ip().is_loopback();
        if !is_loopback && token.is_none() {
            let what = "expected a loopback address, such as 127.0.0.1:9600 or [::1]:9600, or a token: whoever reaches it may ask";
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
        let (stop, ending) = watch::channel(false);
        let view = subject.view.clone();
        let access = Access::new(is_loopback, token.as_deref()).behind(hosts, base_path);
        let base_path = base_path.clone();
        let asked = Arc::new(routes::Asked::new(subject, access, limits, ending.clone()));
        let limits =
            Limits { connections: limits.connections.min(memory::most_files() / 4).max(1), ..limits };
        let serve = move || {
            runtime.block_on(server::serve(listener, asked, &base_path, limits, ending));
            // Reads that are under way are not waited for.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("monitor".to_owned()).spawn(serve)?;
        tracing::info!(address = %bound, "monitor listens");
        Ok(Self { address: bound, stop, view, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it, and waits for that: whoever reads deltas is told what is there and that the run ends.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Some(view) = &self.view {
            view.wait_until_taken(LAST_DELTAS);
        }
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic there is nothing that a run should fail with.
            drop(thread.join());
        }
    }
}
