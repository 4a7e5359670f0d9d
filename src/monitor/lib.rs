//! The monitor: an HTTP server beside a run. It serves the run's counters, its pairs and clusters, a search
//! for documents similar to a text, a stream of deltas, and the page that shows all of this.
//!
//! ```text
//!  committer ── Feeder ──▶ View ◀──────────┐
//!  run ── Status, Metrics ◀──────────── routes ◀── access ◀── server (one thread) ◀── connections
//!  workers ◀── QueryQueue ◀───────────────┘   └── stream ──▶ readers of deltas
//! ```
//!
//! `docs/api.md` lists the paths with their parameters and answers; so does `/openapi.json`, which is
//! generated from the code.
//!
//! Invariants:
//! - A request reads atomics, or holds a lock only while it copies a page: no client can block the run.
//! - A slow or hostile client costs a bounded amount of memory and ends after a bounded time
//!   ([`MonitorLimits`]).
//! - The monitor listens on an address other than loopback only with a token ([`Endpoint`]).
//! - It keeps no text of a document.

#[doc(hidden)]
pub mod cluster_history;
mod guard;
mod metrics;
pub mod page;
mod routes;
mod server;
mod stream;
mod subject;
mod timed_stream;
mod view;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::http::HeaderName;
use tokio::sync::watch;

pub use guard::access::TOKEN_BYTES;
pub use guard::proxies::AddressRange;
pub use metrics::{MetricKind, MetricRow, metric_rows, page as metrics_page};
pub use subject::{
    Compare, ComparedTexts, ErrorOf, HotBlockInfo, InputBytes, MonitoredRun, Pipeline, ReadText, TextReader,
    TextUnavailable,
};
pub use view::{EachRecord, Feeder, HistoryStore, KeptHistory, View, ViewContents, ViewUnavailable};

use guard::access::Access;
use guard::proxies::TrustedProxies;

/// Limits on what clients may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorLimits {
    /// Connections open at the same time, 1 or more; default 128. A further one is answered with 503 and
    /// closed. Lowered to a quarter of the process's limit of open files, so that the run can open its own.
    pub connections: usize,
    /// Streams of deltas among them; default 64.
    pub streams: usize,
    /// Request bodies that are read or answered at the same time; default 32.
    pub bodies: usize,
    /// Maximum size of a body in bytes, inclusive; default 4 MiB.
    pub body_bytes: usize,
    /// Queries that are answered in a second, 1 or more; default 500.
    pub questions_per_second: u32,
    /// Maximum time from the start of a connection, or from the end of its last answer, until the head of a
    /// request is complete; default 5 s. An idle connection is closed after it.
    pub head: Duration,
    /// Maximum time from the head of a request until its body is complete; default 30 s.
    pub body: Duration,
    /// How long a write to a client may make no progress before the connection is closed; default 30 s.
    pub stuck: Duration,
    /// How long answers in progress may take after the monitor was stopped; default 0.5 s.
    pub shutdown: Duration,
}

impl MonitorLimits {
    /// The defaults.
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

impl Default for MonitorLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Where a monitor listens, and what a request must present.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The address; port 0 chooses a free port.
    pub address: SocketAddr,
    /// The token, of [`TOKEN_BYTES`] bytes or more; required unless the address is a loopback address.
    pub token: Option<String>,
    /// A second token, which only permits to read; never without the first one.
    pub read_token: Option<String>,
    /// Values of the `Host` header that are accepted without a token, besides the names of the loopback:
    /// those of a proxy in front of the monitor.
    pub hosts: Vec<String>,
    /// The path prefix under which a proxy serves the monitor, such as `/near`; empty for none. Requests are
    /// accepted with and without it.
    pub base_path: String,
    /// The proxies that are believed.
    pub trusted_proxies: Vec<AddressRange>,
    /// The header in which a trusted proxy names the user. If it is set, requests are logged.
    pub user_header: Option<HeaderName>,
}

impl Endpoint {
    /// A monitor without tokens and proxies.
    pub fn open(address: SocketAddr) -> Self {
        Self {
            address,
            token: None,
            read_token: None,
            hosts: Vec::new(),
            base_path: String::new(),
            trusted_proxies: Vec::new(),
            user_header: None,
        }
    }
}

impl std::fmt::Debug for Endpoint {
    /// Omits the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("address", &self.address).finish_non_exhaustive()
    }
}

/// How long the end of a run may wait until the view has taken in its last deltas.
const LAST_DELTAS: Duration = Duration::from_secs(10);

/// The HTTP server of a run. Stopping or dropping it ends it within [`MonitorLimits::shutdown`], after the
/// view has taken in the deltas that were committed.
#[derive(Debug)]
pub struct Monitor {
    address: SocketAddr,
    /// Sends `true` to end the server.
    stop: watch::Sender<bool>,
    view: Option<Arc<View>>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// Starts to listen.
    ///
    /// # Errors
    /// If the address is not a loopback address and there is no token, if it cannot be bound, or if the
    /// thread cannot be started.
    pub fn start(entry: &Endpoint, subject: MonitoredRun, limits: MonitorLimits) -> io::Result<Self> {
        let Endpoint { address, token, read_token, hosts, base_path, trusted_proxies, user_header } = entry;
        let failed = |error: &io::Error| format!("the monitor cannot listen on {address}: {error}");
        let is_loopback = address.ip().is_loopback();
        if !is_loopback && token.is_none() {
            let what = "expected a loopback address, such as 127.0.0.1:9600 or [::1]:9600, or a token: \
                whoever reaches it may ask";
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
        let access = Access::new(is_loopback, token.as_deref())
            .with_reader(read_token.as_deref())
            .with_proxy(hosts, base_path);
        let proxies = TrustedProxies::new(trusted_proxies, user_header.clone());
        let base_path = base_path.clone();
        let state = Arc::new(routes::RouteState::new(subject, access, proxies, limits, ending.clone()));
        let limits = MonitorLimits {
            connections: limits.connections.min(metrics::process::most_files() / 4).max(1),
            ..limits
        };
        let serve = move || {
            runtime.block_on(server::serve(listener, state, &base_path, limits, ending));
            // Does not wait for reads in progress.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("monitor".to_owned()).spawn(serve)?;
        tracing::info!(address = %bound, "monitor listens");
        Ok(Self { address: bound, stop, view, thread: Some(thread) })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the server and waits for it. Streams of deltas first send what the view holds, then `bye`.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Some(view) = &self.view {
            view.wait_until_applied(LAST_DELTAS);
        }
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the server must not fail the run.
            drop(thread.join());
        }
    }
}
