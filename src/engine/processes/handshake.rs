//! How a connection begins: who is there, does it know the secret, does it mean the same run.
//!
//! A stream -> who is on its other side and what it is for, or why it is refused. The one that connects
//! speaks first:
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
//! So nothing is told to a stranger but an index, and a description to nobody who does not know the secret.
//! Each side has a time for all of its part, however slowly bytes drip; what is read is bounded before it is
//! kept.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::secret::{self, PROOF_BYTES, Secret};
use dupflow_core::description::{Description, Difference};
use dupflow_core::time::{Clock, SystemClock};

/// What every connection of this protocol begins with.
const MAGIC: [u8; 8] = *b"dupflow\n";

/// Of this protocol; another one is refused.
const VERSION: u16 = 1;

/// Of a hello: magic, version, purpose, from, to, nonce.
const HELLO_BYTES: usize = 8 + 2 + 1 + 4 + 4 + PROOF_BYTES;

/// The longest answer, in bytes, inclusive: descriptions have some thousand.
const ANSWER_BYTES: u32 = 1 << 20;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Records and progress, between each two processes.
    Data = 0,
    /// Messages, between each process and process 0.
    Control = 1,
}

/// What one side of a handshake knows.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) index: u32,
    pub(super) count: u32,
    pub(super) secret: Secret,
    pub(super) description: Description,
}

/// Why there is no connection, as the side that connects sees it.
#[derive(Debug)]
pub(super) enum NotMade {
    /// It may become one later.
    Yet(String),
    /// It was refused, and would be again.
    Refused(String),
    /// It is for another run: where the descriptions differ.
    Differs(Vec<Difference>),
}

impl NotMade {
    /// By the other side, which says why.
    fn refused(text: &[u8]) -> Self {
        Self::Refused(format!("it refused this one: {}", String::from_utf8_lossy(text)))
    }

    /// What is not expected to last.
    pub(super) fn for_now(self) -> Self {
        match self {
            Self::Yet(why) | Self::Refused(why) => Self::Yet(why),
            Self::Differs(differences) => Self::Yet(format!("it is of another run: {}", list(&differences))),
        }
    }
}

/// A process that has shown who it is, and waits to be welcomed.
#[derive(Debug)]
pub(super) struct Newcomer {
    pub(super) from: usize,
    pub(super) purpose: Purpose,
    pub(super) stream: TcpStream,
}

/// Why a connection was not accepted.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Which process it is, if it has shown that.
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

/// Says hello over a fresh connection to process `to`, within a time.
///
/// # Errors
/// Why the connection is none.
pub(super) fn connect(
    stream: TcpStream,
    identity: &Identity,
    to: u32,
    purpose: Purpose,
    within: Duration,
) -> Result<TcpStream, NotMade> {
    let mut talk = Talk::new(&stream, within);
    let yet = |what: &str| NotMade::Yet(what.to_owned());
    let hello = Hello::new(identity.index, to, purpose).ok_or(yet("there are no random numbers"))?;
    talk.write(&hello.bytes).map_err(|error| NotMade::Yet(error.to_string()))?;
    let other = Hello::read(&mut talk).map_err(NotMade::Yet)?;
    if other.version != VERSION {
        let why = format!("it speaks version {} of the protocol, this is version {VERSION}", other.version);
        return Err(NotMade::Refused(why));
    }
    if (other.from, other.to) != (to, identity.index) {
        return Err(NotMade::Refused(format!("it says that it is process {}", other.from)));
    }
    let transcript = [hello.bytes, other.bytes].concat();
    let proof = identity.secret.proof("connects", &transcript);
    talk.answer(b'p', &proof).map_err(|error| NotMade::Yet(error.to_string()))?;
    match talk.hear().map_err(NotMade::Yet)? {
        (b'p', theirs) if identity.secret.verifies("accepts", &transcript, &theirs) => {}
        (b'p', _) => return Err(yet("what listens there does not know the secret")),
        (_, text) => return Err(NotMade::refused(&text)),
    }
    talk.answer(b'd', &identity.description.encode()).map_err(|error| NotMade::Yet(error.to_string()))?;
    match talk.hear().map_err(NotMade::Yet)? {
        (b'w', _) => {}
        (b'd', theirs) => {
            let differences = identity.description.differences(&theirs);
            return Err(differences.map_or_else(|error| NotMade::Yet(error.to_string()), NotMade::Differs));
        }
        (_, text) => return Err(NotMade::refused(&text)),
    }
    ready(&stream).map_err(|error| NotMade::Yet(error.to_string()))?;
    Ok(stream)
}

/// Hears who has connected, within a time.
///
/// # Errors
/// Why it is refused; it has been told if it is one of ours.
pub(super) fn accept(stream: TcpStream, identity: &Identity, within: Duration) -> Result<Newcomer, Refusal> {
    let stranger = |why: String| Refusal { from: None, why };
    let mut talk = Talk::new(&stream, within);
    let hello = Hello::read(&mut talk).map_err(stranger)?;
    let purpose = if hello.purpose == Purpose::Control as u8 { Purpose::Control } else { Purpose::Data };
    let own = Hello::new(identity.index, hello.from, purpose)
        .ok_or_else(|| stranger("there are no random numbers".to_owned()))?;
    talk.write(&own.bytes).map_err(|error| stranger(error.to_string()))?;
    if hello.version != VERSION {
        let why = format!("it speaks version {} of the protocol, this is version {VERSION}", hello.version);
        return Err(stranger(why));
    }
    let (kind, proof) = talk.hear().map_err(stranger)?;
    let transcript = [hello.bytes, own.bytes].concat();
    let mut refuse = |from, why: String, told: String| {
        // Whoever does not hear it sees that the connection ends.
        talk.answer(b'r', told.as_bytes()).unwrap_or(());
        Err(Refusal { from, why })
    };
    if kind != b'p' || !identity.secret.verifies("connects", &transcript, &proof) {
        let told = "its secret is another one, or only one of the two has one";
        return refuse(None, "it does not know the secret".to_owned(), told.to_owned());
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
    let told = |why: String| Refusal { from: Some(from), why };
    talk.answer(b'p', &identity.secret.proof("accepts", &transcript))
        .map_err(|error| told(error.to_string()))?;
    let (_, description) = talk.hear().map_err(told)?;
    let differences =
        identity.description.differences(&description).map_err(|error| told(error.to_string()))?;
    if !differences.is_empty() {
        talk.answer(b'd', &identity.description.encode()).unwrap_or(());
        return Err(told(list(&differences)));
    }
    Ok(Newcomer { from, purpose, stream })
}

impl Newcomer {
    /// Tells it that it is welcome. `None` if it is gone.
    pub(super) fn welcome(self) -> Option<TcpStream> {
        write_answer(&self.stream, b'w', &[]).ok()?;
        ready(&self.stream).ok()?;
        Some(self.stream)
    }

    /// Tells it why it is not.
    pub(super) fn refuse(&self, why: &str) {
        write_answer(&self.stream, b'r', why.as_bytes()).unwrap_or(());
    }
}

/// Differences as one line.
pub(super) fn list(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Ends the time limits of a handshake.
fn ready(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    stream.set_nodelay(true)?;
    watch(stream)
}

/// Has the system find a peer that is gone without a word: within 10 s, where it would take minutes.
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

/// Beats find it, on the control connections.
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

    fn read(talk: &mut Talk<'_>) -> Result<Self, String> {
        let mut bytes = [0; HELLO_BYTES];
        talk.read(&mut bytes[..8])?;
        if bytes[..8] != MAGIC {
            return Err("it does not speak as dupflow does".to_owned());
        }
        talk.read(&mut bytes[8..])?;
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

/// One side of a handshake on its stream, which must end within a time.
struct Talk<'a> {
    stream: &'a TcpStream,
    clock: SystemClock,
    within: Duration,
}

impl<'a> Talk<'a> {
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

    /// An answer: its kind, its length, its bytes.
    fn answer(&mut self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_timeout(Some(self.within))?;
        write_answer(self.stream, kind, bytes)
    }

    fn hear(&mut self) -> Result<(u8, Vec<u8>), String> {
        let mut head = [0; 5];
        self.read(&mut head)?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        if length > ANSWER_BYTES {
            return Err(format!("it announces {length} bytes, expected at most {ANSWER_BYTES}"));
        }
        // Grows with what comes, not with what is announced.
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

/// Whether a time limit of the socket is over: systems say it in two ways.
pub(super) fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
