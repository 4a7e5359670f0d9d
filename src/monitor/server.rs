//! The accept loop: connections in, each on a task of its own, until the end.
//!
//! It is written by hand since what the routing library brings has no deadline for a request's head, no bound
//! of connections, and an end that half a request holds up for ever.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{interval, sleep, timeout};

use super::Limits;
use super::patient::Patient;
use super::refusals::Refused;
use super::routes::{self, Asked};
use super::samples::EVERY_SECONDS;

/// The head of a request in bytes, and the most headers in it.
const HEAD_BYTES: usize = 32 << 10;
const HEADERS: usize = 64;

/// After a connection could not be accepted, as when no file can be opened: it is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// What a connection too many is told.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n\
    content-type: application/json\r\ncontent-length: 32\r\n\r\n{\"error\":\"too many connections\"}";

/// Serves until `ending` is true, or its sender is gone.
pub(super) async fn serve(
    listener: TcpListener,
    asked: Arc<Asked>,
    base_path: &str,
    limits: Limits,
    mut ending: watch::Receiver<bool>,
) {
    tokio::spawn(sample(Arc::clone(&asked)));
    let refusals = Arc::clone(&asked);
    let router = routes::router(asked);
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
        let stream = match accepted {
            Ok((stream, _)) => stream,
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
            refusals.refusals.add(Refused::Connections);
            continue;
        };
        let io = TokioIo::new(Patient::new(stream, limits.stuck));
        let base_path = Arc::clone(&base_path);
        let answers = TowerToHyperService::new(router.clone());
        let answers = service_fn(move |request| answers.call(routes::below(&base_path, request)));
        let connection = graceful.watch(http.serve_connection(io, answers));
        tokio::spawn(async move {
            // What a client does wrong is its own affair.
            drop(connection.await);
            drop(permit);
        });
    }
    drop(listener);
    // Whoever is not served by then is cut off: tasks end with the runtime.
    drop(timeout(limits.shutdown, graceful.shutdown()).await);
}

/// Takes a sample of the run's numbers, again and again.
async fn sample(asked: Arc<Asked>) {
    let mut every = interval(Duration::from_secs(EVERY_SECONDS));
    loop {
        every.tick().await;
        asked.sample();
    }
}

/// Says that there is no room, as far as that goes without waiting.
fn refuse(stream: &TcpStream) {
    match stream.try_write(FULL) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) => tracing::debug!(%error, "a connection too many is gone already"),
    }
}
