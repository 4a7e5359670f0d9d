//! A receiver of notices: a server that answers as a test says.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// How the receiver answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Status(u16),
    /// 204, after a tenth of a second.
    Slow,
    /// Reads the request and never answers.
    Hang,
    /// Closes the connection without an answer.
    Close,
}

pub(crate) const OK: Mode = Mode::Status(204);

/// A request that was received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    mode: Mode,
    pub(crate) key: String,
    pub(crate) signature: String,
    pub(crate) body: Value,
}

/// A server that answers as its mode says.
pub(crate) struct Receiver {
    mode: Arc<Mutex<Mode>>,
    received: Arc<Mutex<Vec<Received>>>,
    pub(crate) address: SocketAddr,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let receiver = Self { mode: Arc::new(Mutex::new(OK)), received: Arc::default(), address };
        let (mode, received) = (Arc::clone(&receiver.mode), Arc::clone(&receiver.received));
        // It ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mode, received) = (Arc::clone(&mode), Arc::clone(&received));
                thread::spawn(move || serve(stream.unwrap(), &mode, &received));
            }
        });
        receiver
    }

    pub(crate) fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The accepted notices by number, in the order of their requests.
    pub(crate) fn accepted(&self) -> Vec<u64> {
        let all = self.received();
        all.iter()
            .filter(|one| [OK, Mode::Slow].contains(&one.mode))
            .map(|one| one.body["number"].as_u64().unwrap())
            .collect()
    }

    /// Waits until a request has been answered in this mode.
    pub(crate) fn wait_for(&self, mode: Mode) {
        until(|| self.received().iter().any(|one| one.mode == mode));
    }
}

/// Answers the requests of one connection.
fn serve(mut stream: TcpStream, mode: &Mutex<Mode>, received: &Mutex<Vec<Received>>) {
    let mut bytes = Vec::new();
    loop {
        let Some((head, rest)) = split(&bytes) else {
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(n) => bytes.extend_from_slice(&buffer[..n]),
            }
            continue;
        };
        let value = |name: &str| {
            let line = head
                .lines()
                .find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)));
            line.map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let length: usize = value("content-length").parse().unwrap();
        if rest.len() < length {
            let mut more = vec![0; length - rest.len()];
            if stream.read_exact(&mut more).is_err() {
                return;
            }
            bytes.extend(more);
            continue;
        }
        let body = serde_json::from_slice(&rest[..length]).unwrap();
        let (key, signature) = (value("idempotency-key"), value("dupflow-signature"));
        bytes.clear();
        let now = *mode.lock().unwrap();
        received.lock().unwrap().push(Received { mode: now, key, signature, body });
        match now {
            Mode::Status(_) | Mode::Slow => {
                let status = if let Mode::Status(status) = now { status } else { 204 };
                if now == Mode::Slow {
                    thread::park_timeout(Duration::from_millis(100));
                }
                let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 3\r\nretry-after: 0\r\n\r\nwhy");
                let answer = if status == 204 { "HTTP/1.1 204 x\r\n\r\n".to_owned() } else { answer };
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
            // Until the client gives up.
            Mode::Hang => drop(stream.read(&mut [0])),
            Mode::Close => return,
        }
        if now == Mode::Hang {
            return;
        }
    }
}

/// The head of a request and what follows it.
fn split(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((String::from_utf8(bytes[..end].to_vec()).unwrap(), &bytes[end + 4..]))
}

/// Asks again and again until it is so; the bound is reached by a defect only.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        thread::park_timeout(Duration::from_millis(2));
    }
    panic!("it never is so");
}
