//! The accept loop: each connection is served by a task of its own, until the monitor ends.
//!
//! It replaces the loop of the routing library, which has no deadline for the head of a request, no limit of
//! connections, and a shutdown that waits without bound for an incomplete request.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{interval, sleep, timeout};

use super::MonitorLimits;
use super::guard::refusals::RefusalReason;
use super::metrics::samples::EVERY_SECONDS;
use super::routes::{self, PeerAddress, RouteState};
use super::timed_stream::TimedStream;

/// Maximum size of the head of a request in bytes; and the maximum number of headers.
const HEAD_BYTES: usize = 32 << 10;
const HEADERS: usize = 64;

/// Wait after `accept` has failed, for example because no file can be opened.
const PAUSE: Duration = Duration::from_millis(100);

/// The answer to a connection above [`MonitorLimits::connections`].
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n\
    content-type: application/json\r\ncontent-length: 32\r\n\r\n{\"error\":\"too many connections\"}";

/// Serves until `ending` is true or its sender is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    state: Arc<RouteState>,
    base_path: &str,
    limits: MonitorLimits,
    mut ending: watch::Receiver<bool>,
) {
    tokio::spawn(sample(Arc::clone(&state)));
    let refusals = Arc::clone(&state);
    let router = routes::router(state);
    let base_path: Arc<str> = base_path.into();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS);
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(limits.connections));
    let mut fails = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.wait_for(|ends| *ends) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if !std::mem::replace(&mut fails, true) {
                    tracing::warn!(%error, "the monitor cannot accept connections; it goes on trying");
                }
                sleep(PAUSE).await;
                continue;
            }
        };
        fails = false;
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            refuse(&stream);
            refusals.refusals.add(RefusalReason::Connections);
            continue;
        };
        let io = TokioIo::new(TimedStream::new(stream, limits.stuck));
        let base_path = Arc::clone(&base_path);
        let answers = TowerToHyperService::new(router.clone());
        let answers = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(PeerAddress(peer.ip()));
            answers.call(routes::strip_base_path(&base_path, request))
        });
        let connection = graceful.watch(http.serve_connection(io, answers));
        tokio::spawn(async move {
            // Errors of a connection are the client's; they are not reported.
            drop(connection.await);
            drop(permit);
        });
    }
    drop(listener);
    // Connections that are still open then end with the runtime.
    drop(timeout(limits.shutdown, graceful.shutdown()).await);
}

/// Samples the run's counters every [`EVERY_SECONDS`].
async fn sample(state: Arc<RouteState>) {
    let mut every = interval(Duration::from_secs(EVERY_SECONDS));
    loop {
        every.tick().await;
        state.sample();
    }
}

/// Sends 503, unless that would block.
fn refuse(stream: &TcpStream) {
    match stream.try_write(FULL) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) => tracing::debug!(%error, "a connection too many is gone already"),
    }
}
