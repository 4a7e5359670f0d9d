//! The handshake of a new connection: the index of each side, a proof of the secret, and a comparison of
//! descriptions.
//!
//! A stream -> the process on its other side and the purpose, or why it is refused. The connecting side sends
//! first:
//!
//! ```text
//! connects                                       accepts
//! hello: magic, version, from, to, purpose, nonce  ->
//!                                                  <- hello: the same, with a nonce of its own
//! proof over both hellos                           ->
//!                                                  <- proof over both hellos | refused
//! description                                      ->
//!                                                  <- welcome | differs: its own description | refused
//! ```
//!
//! So a stranger learns only an index, and only a process that knows the secret learns the description. Each
//! side limits the time for the whole of its part, however slowly bytes arrive, and checks lengths before it
//! allocates.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::secret::{self, PROOF_BYTES, Secret};
use dupflow_core::description::{Description, Difference};
use dupflow_core::time::{Clock, SystemClock};

/// The first bytes of every connection of this protocol.
const MAGIC: [u8; 8] = *b"dupflow\n";

/// Version of this protocol; others are refused.
const VERSION: u16 = 2;

/// Length of a hello: magic, version, purpose, from, to, nonce.
const HELLO_BYTES: usize = 8 + 2 + 1 + 4 + 4 + PROOF_BYTES;

/// The longest answer, in bytes, inclusive: descriptions have some thousand bytes.
const ANSWER_BYTES: u32 = 1 << 20;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Records and progress, between each two processes.
    Data = 0,
    /// Messages, between each process and process 0.
    Control = 1,
}

/// What one side of a handshake needs.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) index: u32,
    pub(super) count: u32,
    pub(super) secret: Secret,
    pub(super) description: Description,
}

/// Why there is no connection, on the connecting side.
#[derive(Debug)]
pub(super) enum ConnectFailure {
    /// A later attempt may succeed.
    Yet(String),
    /// Refused; a later attempt would be refused too.
    Refused(String),
    /// The other side is of another run: where the descriptions differ.
    Differs(Vec<Difference>),
}

impl ConnectFailure {
    /// Refused by the other side, with its reason.
    fn refused(text: &[u8]) -> Self {
        Self::Refused(format!("it refused this one: {}", String::from_utf8_lossy(text)))
    }

    /// As a problem that may be temporary.
    pub(super) fn for_now(self) -> Self {
        match self {
            Self::Yet(why) | Self::Refused(why) => Self::Yet(why),
            Self::Differs(differences) => Self::Yet(format!("it is of another run: {}", list(&differences))),
        }
    }
}

/// A process that has proved its identity, and waits to be accepted.
#[derive(Debug)]
pub(super) struct NewPeer {
    pub(super) from: usize,
    pub(super) purpose: Purpose,
    pub(super) stream: TcpStream,
}

/// Why a connection was not accepted.
#[derive(Debug)]
pub(super) struct HandshakeRefusal {
    /// The index of the process, if it has proved its identity.
    pub(super) from: Option<usize>,
    pub(super) why: String,
}

struct Hello {
    version: u16,
    purpose: u8,
    from: u32,
    to: u32,
    bytes: [u8; HELLO_BYTES],
}

/// The connecting side of a handshake with process `to`, within a time.
///
/// # Errors
/// Why there is no connection.
pub(super) fn connect(
    stream: TcpStream,
    identity: &Identity,
    to: u32,
    purpose: Purpose,
    within: Duration,
) -> Result<TcpStream, ConnectFailure> {
    let mut io = HandshakeIo::new(&stream, within);
    let yet = |what: &str| ConnectFailure::Yet(what.to_owned());
    let hello = Hello::new(identity.index, to, purpose).ok_or(yet("there are no random numbers"))?;
    io.write(&hello.bytes).map_err(|error| ConnectFailure::Yet(error.to_string()))?;
    let other = Hello::read(&mut io).map_err(ConnectFailure::Yet)?;
    if other.version != VERSION {
        let why = format!("it speaks version {} of the protocol, this is version {VERSION}", other.version);
        return Err(ConnectFailure::Refused(why));
    }
    if (other.from, other.to) != (to, identity.index) {
        return Err(ConnectFailure::Refused(format!("it says that it is process {}", other.from)));
    }
    let transcript = [hello.bytes, other.bytes].concat();
    let proof = identity.secret.proof("connects", &transcript);
    io.answer(b'p', &proof).map_err(|error| ConnectFailure::Yet(error.to_string()))?;
    match io.read_answer().map_err(ConnectFailure::Yet)? {
        (b'p', theirs) if identity.secret.verifies("accepts", &transcript, &theirs) => {}
        (b'p', _) => return Err(yet("what listens there does not know the secret")),
        (_, text) => return Err(ConnectFailure::refused(&text)),
    }
    io.answer(b'd', &identity.description.encode())
        .map_err(|error| ConnectFailure::Yet(error.to_string()))?;
    match io.read_answer().map_err(ConnectFailure::Yet)? {
        (b'w', _) => {}
        (b'd', theirs) => {
            let differences = identity.description.differences(&theirs);
            return Err(differences
                .map_or_else(|error| ConnectFailure::Yet(error.to_string()), ConnectFailure::Differs));
        }
        (_, text) => return Err(ConnectFailure::refused(&text)),
    }
    ready(&stream).map_err(|error| ConnectFailure::Yet(error.to_string()))?;
    Ok(stream)
}

/// The accepting side of a handshake, within a time.
///
/// # Errors
/// Why the connection is refused. A side that speaks this protocol has received the reason.
pub(super) fn accept(
    stream: TcpStream,
    identity: &Identity,
    within: Duration,
) -> Result<NewPeer, HandshakeRefusal> {
    let stranger = |why: String| HandshakeRefusal { from: None, why };
    let mut io = HandshakeIo::new(&stream, within);
    let hello = Hello::read(&mut io).map_err(stranger)?;
    let purpose = if hello.purpose == Purpose::Control as u8 { Purpose::Control } else { Purpose::Data };
    let own = Hello::new(identity.index, hello.from, purpose)
        .ok_or_else(|| stranger("there are no random numbers".to_owned()))?;
    io.write(&own.bytes).map_err(|error| stranger(error.to_string()))?;
    if hello.version != VERSION {
        let why = format!("it speaks version {} of the protocol, this is version {VERSION}", hello.version);
        return Err(stranger(why));
    }
    let (kind, proof) = io.read_answer().map_err(stranger)?;
    let transcript = [hello.bytes, own.bytes].concat();
    let mut refuse = |from, why: String, text: String| {
        // If this fails, the other side sees the connection end.
        io.answer(b'r', text.as_bytes()).unwrap_or(());
        Err(HandshakeRefusal { from, why })
    };
    if kind != b'p' || !identity.secret.verifies("connects", &transcript, &proof) {
        let text = "its secret is another one, or only one of the two has one";
        return refuse(None, "it does not know the secret".to_owned(), text.to_owned());
    }
    if hello.to != identity.index {
        let why = format!("it looks for process {}, this is process {}", hello.to, identity.index);
        return refuse(None, why, format!("this is process {}, not process {}", identity.index, hello.to));
    }
    if hello.from >= identity.count || hello.from <= identity.index {
        let why = format!("process {} of {} does not connect to this one", hello.from, identity.count);
        return refuse(None, why.clone(), why);
    }
    if purpose == Purpose::Control && identity.index != 0 {
        let why = format!("process {} takes no control connections", identity.index);
        return refuse(None, why.clone(), why);
    }
    let from = hello.from as usize;
    let refused = |why: String| HandshakeRefusal { from: Some(from), why };
    io.answer(b'p', &identity.secret.proof("accepts", &transcript))
        .map_err(|error| refused(error.to_string()))?;
    let (_, description) = io.read_answer().map_err(refused)?;
    let differences =
        identity.description.differences(&description).map_err(|error| refused(error.to_string()))?;
    if !differences.is_empty() {
        io.answer(b'd', &identity.description.encode()).unwrap_or(());
        return Err(refused(list(&differences)));
    }
    Ok(NewPeer { from, purpose, stream })
}

impl NewPeer {
    /// Accepts it. `None` if the connection has ended.
    pub(super) fn welcome(self) -> Option<TcpStream> {
        write_answer(&self.stream, b'w', &[]).ok()?;
        ready(&self.stream).ok()?;
        Some(self.stream)
    }

    /// Refuses it, with a reason.
    pub(super) fn refuse(&self, why: &str) {
        write_answer(&self.stream, b'r', why.as_bytes()).unwrap_or(());
    }
}

/// Differences as one line.
pub(super) fn list(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Removes the time limits of a handshake.
fn ready(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    stream.set_nodelay(true)?;
    watch(stream)
}

/// Lets the system detect a peer that is unreachable within 10 s; by default it takes minutes.
#[cfg(target_os = "linux")]
fn watch(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepcnt(stream, 5)?;
    sockopt::set_tcp_user_timeout(stream, 10_000)?;
    Ok(())
}

/// Beats detect it, on the control connections.
#[cfg(not(target_os = "linux"))]
fn watch(_: &TcpStream) -> io::Result<()> {
    Ok(())
}

impl Hello {
    fn new(from: u32, to: u32, purpose: Purpose) -> Option<Self> {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10] = purpose as u8;
        bytes[11..15].copy_from_slice(&from.to_le_bytes());
        bytes[15..19].copy_from_slice(&to.to_le_bytes());
        bytes[19..].copy_from_slice(&secret::nonce()?);
        Some(Self { version: VERSION, purpose: purpose as u8, from, to, bytes })
    }

    fn read(io: &mut HandshakeIo<'_>) -> Result<Self, String> {
        let mut bytes = [0; HELLO_BYTES];
        io.read(&mut bytes[..8])?;
        if bytes[..8] != MAGIC {
            return Err("it does not speak as dupflow does".to_owned());
        }
        io.read(&mut bytes[8..])?;
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Ok(Self {
            version: u16::from_le_bytes([bytes[8], bytes[9]]),
            purpose: bytes[10],
            from: number(11),
            to: number(15),
            bytes,
        })
    }
}

/// One side of a handshake on its stream, with a time limit.
struct HandshakeIo<'a> {
    stream: &'a TcpStream,
    clock: SystemClock,
    within: Duration,
}

impl<'a> HandshakeIo<'a> {
    fn new(stream: &'a TcpStream, within: Duration) -> Self {
        Self { stream, clock: SystemClock::start(), within }
    }

    fn read(&mut self, mut bytes: &mut [u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            let left = self.within.saturating_sub(self.clock.now());
            let late = || format!("it did not say all within {} s", self.within.as_secs_f64());
            if left.is_zero() {
                return Err(late());
            }
            self.stream.set_read_timeout(Some(left)).map_err(|error| error.to_string())?;
            match self.stream.read(bytes) {
                Ok(0) => return Err("it ended the connection".to_owned()),
                Ok(count) => bytes = &mut bytes[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_late(&error) => return Err(late()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_timeout(Some(self.within))?;
        self.stream.write_all(bytes)
    }

    /// Sends an answer: kind, length, bytes.
    fn answer(&mut self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_timeout(Some(self.within))?;
        write_answer(self.stream, kind, bytes)
    }

    fn read_answer(&mut self) -> Result<(u8, Vec<u8>), String> {
        let mut head = [0; 5];
        self.read(&mut head)?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        if length > ANSWER_BYTES {
            return Err(format!("it announces {length} bytes, expected at most {ANSWER_BYTES}"));
        }
        // The buffer grows with the bytes received, not with the announced length.
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        let mut left = length as usize;
        while left > 0 {
            let now = left.min(part.len());
            self.read(&mut part[..now])?;
            bytes.extend_from_slice(&part[..now]);
            left -= now;
        }
        Ok((head[0], bytes))
    }
}

fn write_answer(mut stream: &TcpStream, kind: u8, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| ErrorKind::FileTooLarge)?;
    stream.write_all(&[&[kind][..], &length.to_le_bytes(), bytes].concat())
}

/// Whether a time limit of the socket has passed; systems use different error kinds for it.
pub(super) fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
