//! The listener, while processes gather: every connection is heard in a thread of its own, so that none holds
//! up another.
//!
//! Connections -> [`Newcomer`]s. Whoever is refused is told to the log and forgotten. The listener ends, and
//! its port is closed, when it is dropped: after the start nobody can connect.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::handshake::{Identity, Newcomer, Refusal, accept};
use super::refusals::Refusals;

/// Connections that are heard at the same time; of more, the later ones are refused. Some for each process
/// that there may be.
const HEARD_AT_ONCE: usize = 256;

/// A listener at work.
#[derive(Debug)]
pub(super) struct Listener {
    address: SocketAddr,
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts it. `newcomer` takes who has shown who it is; `refused` why a process that has shown who it is
    /// was refused.
    ///
    /// # Errors
    /// If the system has no more of something.
    pub(super) fn start(
        listener: TcpListener,
        identity: &Arc<Identity>,
        refusals: &Arc<Refusals>,
        within: Duration,
        heard: impl Fn(Result<Newcomer, (usize, String)>) + Clone + Send + 'static,
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
                // One that is gone before it is accepted is nobody.
                let Ok(stream) = stream else { continue };
                let Ok(peer) = stream.peer_addr() else { continue };
                if at_once.fetch_add(1, Ordering::SeqCst) >= HEARD_AT_ONCE {
                    at_once.fetch_sub(1, Ordering::SeqCst);
                    refusals.note(peer.ip(), &peer.to_string(), "too many connections at once");
                    continue;
                }
                let (identity, said) = (Arc::clone(&identity), Arc::clone(&refusals));
                let (heard, counted) = (heard.clone(), Arc::clone(&at_once));
                let hear = move || {
                    match accept(stream, &identity, within) {
                        Ok(newcomer) => heard(Ok(newcomer)),
                        Err(Refusal { from: Some(from), why }) => {
                            said.note(peer.ip(), &format!("process {from} ({peer})"), &why);
                            heard(Err((from, why)));
                        }
                        Err(Refusal { from: None, why }) => said.note(peer.ip(), &peer.to_string(), &why),
                    }
                    counted.fetch_sub(1, Ordering::SeqCst);
                };
                if thread::Builder::new().name("hello".to_owned()).spawn(hear).is_err() {
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
        // A connection wakes it. Where it listens on all addresses, this is one of them.
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        let woken = TcpStream::connect_timeout(&(ip, self.address.port()).into(), Duration::from_secs(1));
        // If that fails, the next one that connects wakes it, and is not heard.
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            thread.join().unwrap_or(());
        }
    }
}
