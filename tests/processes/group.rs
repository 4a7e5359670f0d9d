//! Processes for tests: on ports that the system gives, each in a thread.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dupflow::core::description::Description;
use dupflow::engine::processes::{
    ConnectError, ConnectLimits, ConnectSettings, Connected, ControlEvent, Processes, Secret, connect_on,
};

/// How long a test waits for an expected event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Long enough not to be reached, unless a test is about it.
pub(crate) fn limits() -> ConnectLimits {
    let hello = Duration::from_secs(20);
    ConnectLimits { connect: PATIENCE, hello, beat: Duration::from_millis(100), lost: PATIENCE }
}

/// A listener, and its address.
pub(crate) fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// The settings of each of the processes at these addresses.
pub(crate) fn settings(hosts: &[String], limits: ConnectLimits) -> Vec<ConnectSettings> {
    let of = |index| ConnectSettings {
        processes: Processes::read(&hosts.join("\n"), "hosts", hosts.len(), index).unwrap(),
        description: Description::new().with("filter.threshold", 0.8).with("workers", 2_u64),
        secret: Secret::new(b"a secret"),
        limits,
    };
    (0..hosts.len()).map(of).collect()
}

/// Listeners and settings of some processes.
pub(crate) fn processes(count: usize, limits: ConnectLimits) -> Vec<(TcpListener, ConnectSettings)> {
    let (listeners, hosts): (Vec<_>, Vec<_>) = (0..count).map(|_| listener()).unzip();
    listeners.into_iter().zip(settings(&hosts, limits)).collect()
}

/// A process that connects.
pub(crate) type Connecting = JoinHandle<Result<Connected, ConnectError>>;

pub(crate) fn start((listener, settings): (TcpListener, ConnectSettings)) -> Connecting {
    thread::spawn(move || connect_on(listener, &settings))
}

/// All of them, connected.
pub(crate) fn connected(processes: Vec<(TcpListener, ConnectSettings)>) -> Vec<Connected> {
    let connecting: Vec<Connecting> = processes.into_iter().map(start).collect();
    connecting.into_iter().map(|process| process.join().unwrap().unwrap()).collect()
}

/// The events of a process.
pub(crate) fn listen(connected: &Connected) -> Receiver<(usize, ControlEvent)> {
    let (heard, events) = channel();
    // A test that has seen enough has dropped the receiver.
    connected.control.listen(move |from, event| heard.send((from, event)).unwrap_or(())).unwrap();
    events
}

/// Forwards connections to another address, until it is frozen: then no bytes pass, and no connection ends.
pub(crate) struct Cable {
    frozen: Arc<(Mutex<bool>, Condvar)>,
    /// Connections so far.
    connections: Arc<(Mutex<Vec<TcpStream>>, Condvar)>,
}

impl Cable {
    /// From this listener.
    pub(crate) fn new(listener: TcpListener, to: String) -> Self {
        let frozen = Arc::new((Mutex::new(false), Condvar::new()));
        let connections = Arc::<(Mutex<Vec<TcpStream>>, Condvar)>::default();
        let (state, all) = (Arc::clone(&frozen), Arc::clone(&connections));
        thread::spawn(move || {
            for one in listener.incoming() {
                // The port is not open yet, or no longer.
                let (one, Ok(other)) = (one.unwrap(), TcpStream::connect(&to)) else { continue };
                all.0.lock().unwrap().push(other.try_clone().unwrap());
                all.1.notify_all();
                for (a, b) in [(&one, &other), (&other, &one)] {
                    let (a, b) = (a.try_clone().unwrap(), b.try_clone().unwrap());
                    let state = Arc::clone(&state);
                    thread::spawn(move || copy(a, b, &state));
                }
            }
        });
        Self { frozen, connections }
    }

    /// Ends all present connections, once there are this many; later ones pass.
    pub(crate) fn cut(&self, count: usize) {
        let (all, more) = &*self.connections;
        let all = more.wait_while(all.lock().unwrap(), |all| all.len() < count).unwrap();
        all.iter().for_each(|one| one.shutdown(Shutdown::Both).unwrap_or(()));
    }

    pub(crate) fn freeze(&self) {
        *self.frozen.0.lock().unwrap() = true;
    }
}

/// Dropping it lets a frozen relay continue, so that its threads end.
impl Drop for Cable {
    fn drop(&mut self) {
        *self.frozen.0.lock().unwrap() = false;
        self.frozen.1.notify_all();
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, frozen: &(Mutex<bool>, Condvar)) {
    let mut buffer = [0; 4096];
    while let Ok(count) = from.read(&mut buffer) {
        drop(frozen.1.wait_while(frozen.0.lock().unwrap(), |frozen| *frozen).unwrap());
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The other side sees the end, if it is still there.
    to.shutdown(Shutdown::Write).unwrap_or(());
}
