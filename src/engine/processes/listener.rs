//! The listener for new connections during the start. Each connection has a thread of its own, so that none
//! delays another.
//!
//! Connections -> [`NewPeer`]s. Refused ones are logged and dropped. Dropping the listener closes its
//! port: after the start no process can connect.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::handshake::{HandshakeRefusal, Identity, NewPeer, accept};
use super::refusals::RefusalLog;

/// Most handshakes at the same time, a few for each process that there may be; further connections are
/// refused.
const HANDSHAKES_AT_ONCE: usize = 256;

/// A running listener.
#[derive(Debug)]
pub(super) struct Listener {
    address: SocketAddr,
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts the listener. `on_peer` receives each process that has proved its identity, or why such a
    /// process was refused.
    ///
    /// # Errors
    /// If the system cannot make another thread or socket.
    pub(super) fn start(
        listener: TcpListener,
        identity: &Arc<Identity>,
        refusals: &Arc<RefusalLog>,
        within: Duration,
        on_peer: impl Fn(Result<NewPeer, (usize, String)>) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let closed = Arc::new(AtomicBool::new(false));
        let (is_closed, identity, refusals) =
            (Arc::clone(&closed), Arc::clone(identity), Arc::clone(refusals));
        let at_once = Arc::new(AtomicUsize::new(0));
        let thread = thread::Builder::new().name("listener".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if is_closed.load(Ordering::SeqCst) {
                    break;
                }
                // Connections that end before they are accepted are ignored.
                let Ok(stream) = stream else { continue };
                let Ok(peer) = stream.peer_addr() else { continue };
                if at_once.fetch_add(1, Ordering::SeqCst) >= HANDSHAKES_AT_ONCE {
                    at_once.fetch_sub(1, Ordering::SeqCst);
                    refusals.note(peer.ip(), &peer.to_string(), "too many connections at once");
                    continue;
                }
                let (identity, log) = (Arc::clone(&identity), Arc::clone(&refusals));
                let (on_peer, running) = (on_peer.clone(), Arc::clone(&at_once));
                let handshake = move || {
                    match accept(stream, &identity, within) {
                        Ok(accepted) => on_peer(Ok(accepted)),
                        Err(HandshakeRefusal { from: Some(from), why }) => {
                            log.note(peer.ip(), &format!("process {from} ({peer})"), &why);
                            on_peer(Err((from, why)));
                        }
                        Err(HandshakeRefusal { from: None, why }) => {
                            log.note(peer.ip(), &peer.to_string(), &why);
                        }
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                };
                if thread::Builder::new().name("hello".to_owned()).spawn(handshake).is_err() {
                    at_once.fetch_sub(1, Ordering::SeqCst);
                    refusals.note(peer.ip(), &peer.to_string(), "there are no more threads");
                }
            }
        })?;
        Ok(Self { address, closed, thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        // A connection wakes the thread. A listener on all addresses is reached at the local one.
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        let woken = TcpStream::connect_timeout(&(ip, self.address.port()).into(), Duration::from_secs(1));
        // If this fails, the next connection wakes the thread, and is not handled.
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            thread.join().unwrap_or(());
        }
    }
}
