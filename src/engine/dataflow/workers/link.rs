//! Links: the sockets between the workers of several processes. A lost peer ends the run, but not this
//! process.
//!
//! timely's threads read and write a socket through a [`PeerLink`]. On a plain socket that fails they panic,
//! which ends the process with many messages. A link instead reports once which process is lost, and why, and
//! then shows timely an orderly end:
//!
//! - writes are discarded;
//! - reads wait until all workers of this process have ended, then return the rest of the message that was
//!   cut off, as zeros, and timely's mark of the end.
//!
//! A peer must not take a failure for an end. So a process that is cancelled sends nothing more over its
//! links, not even that mark. Its peers have received a prefix of its progress updates, and hence never
//! consider an epoch closed while it still holds a share of it. Its sockets are shut down when its workers
//! have ended.
//!
//! Incoming bytes are checked before timely reads them, since timely trusts its framing. A header must name
//! workers of this process and of the peer, and a length of at most [`MESSAGE_BYTES`]. A header has 48 bytes,
//! six big-endian `u64`: channel, source, first target, end of targets, length, number. A header of length 0
//! is the last one (`timely_communication::networking::MessageHeader`).

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};
use timely::communication::allocator::zero_copy::stream::Stream;

/// Length of a header, in bytes.
const HEADER_BYTES: usize = 48;

/// The longest message, in bytes, inclusive: a message is one buffer of records.
const MESSAGE_BYTES: u64 = 1 << 30;

/// Callback with the index of a process whose link is lost, and the reason; called once for each process. It
/// runs on a thread that serves only this link.
pub type OnLost = Box<dyn Fn(usize, &str) + Send + Sync>;

/// The links of this process.
pub(in crate::dataflow) struct PeerLinks {
    /// Worker threads of each process.
    workers: u64,
    /// This process.
    index: usize,
    lost: OnLost,
    is_lost: Vec<AtomicBool>,
    /// Whether sending has stopped.
    stopped_sending: AtomicBool,
    /// Workers of this process that have not ended.
    at_work: Mutex<usize>,
    all_left: Condvar,
    sockets: Vec<TcpStream>,
}

/// One side of timely on a socket: the reading or the writing one.
#[derive(Debug)]
pub(in crate::dataflow) struct PeerLink {
    stream: TcpStream,
    remote: usize,
    links: Arc<PeerLinks>,
    /// Whether writing has failed.
    broken: bool,
    incoming: Incoming,
}

/// The reader's position in the incoming messages.
#[derive(Debug)]
struct Incoming {
    /// A header of which `received` bytes have been received; once complete ([`HEADER_BYTES`]), `passed_on`
    /// of them have been passed on.
    header: [u8; HEADER_BYTES],
    received: usize,
    passed_on: usize,
    /// Bytes that are left of the present message.
    rest: u64,
    end: IncomingEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IncomingEnd {
    Open,
    /// This many zeros follow, then the end.
    Zeros(u64),
    Reached,
}

impl PeerLinks {
    /// The links of process `index`, with `workers` threads in each process.
    ///
    /// # Errors
    /// If the system cannot clone or configure a socket.
    pub(in crate::dataflow) fn new(
        index: usize,
        workers: usize,
        sockets: &[Option<TcpStream>],
        lost: OnLost,
    ) -> io::Result<Arc<Self>> {
        let clones = sockets.iter().flatten().map(TcpStream::try_clone).collect::<io::Result<Vec<_>>>()?;
        // Without this option (Nagle's algorithm) each round of progress takes 40 ms longer.
        clones.iter().try_for_each(|socket| socket.set_nodelay(true))?;
        Ok(Arc::new(Self {
            workers: workers as u64,
            index,
            lost,
            is_lost: sockets.iter().map(|_| AtomicBool::new(false)).collect(),
            stopped_sending: AtomicBool::new(false),
            at_work: Mutex::new(workers),
            all_left: Condvar::new(),
            sockets: clones,
        }))
    }

    /// One link for each socket.
    pub(in crate::dataflow) fn over(
        self: &Arc<Self>,
        sockets: Vec<Option<TcpStream>>,
    ) -> Vec<Option<PeerLink>> {
        let link = |(remote, stream)| PeerLink::new(stream, remote, Arc::clone(self));
        sockets.into_iter().enumerate().map(|(i, stream)| stream.map(|stream| link((i, stream)))).collect()
    }

    /// Stops sending on every link, so that peers do not take a failure for progress.
    pub(in crate::dataflow) fn stop_sending(&self) {
        let at_work = self.at_work.lock();
        self.stopped_sending.store(true, Ordering::SeqCst);
        self.shut_down_if_left(*at_work);
    }

    /// A worker has ended, and reads nothing any more.
    pub(in crate::dataflow) fn leave(&self) {
        let mut at_work = self.at_work.lock();
        *at_work -= 1;
        self.shut_down_if_left(*at_work);
        if *at_work == 0 {
            self.all_left.notify_all();
        }
    }

    /// Shuts the sockets down once no worker reads and sending has stopped.
    fn shut_down_if_left(&self, at_work: usize) {
        if at_work == 0 && self.has_stopped_sending() {
            // An error means that the socket is closed already.
            self.sockets.iter().for_each(|socket| socket.shutdown(Shutdown::Both).unwrap_or(()));
        }
    }

    fn has_stopped_sending(&self) -> bool {
        self.stopped_sending.load(Ordering::SeqCst)
    }

    fn report_lost(&self, remote: usize, why: &str) {
        if !self.has_stopped_sending() && !self.is_lost[remote].swap(true, Ordering::SeqCst) {
            (self.lost)(remote, why);
        }
    }

    fn wait_until_all_left(&self) {
        self.all_left.wait_while(&mut self.at_work.lock(), |at_work| *at_work > 0);
    }

    /// The length of a message, from its header; or why the header is invalid.
    fn check(&self, remote: usize, header: &[u8; HEADER_BYTES]) -> Result<u64, String> {
        let field = |at: usize| {
            let (_, from) = header.split_at(8 * at);
            from.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
        };
        let [source, first, end, length] = [1, 2, 3, 4].map(field);
        let of = |process: usize| process as u64 * self.workers..(process as u64 + 1) * self.workers;
        if length > MESSAGE_BYTES {
            return Err(format!(
                "it announces a message of {length} bytes, expected at most {MESSAGE_BYTES}"
            ));
        }
        let is_ours = of(remote).contains(&source)
            && of(self.index).contains(&first)
            && first < end
            && end <= of(self.index).end;
        if length > 0 && !is_ours {
            return Err(format!("it says that worker {source} sends to workers {first} to {end}"));
        }
        Ok(length)
    }
}

impl PeerLink {
    fn new(stream: TcpStream, remote: usize, links: Arc<PeerLinks>) -> Self {
        let incoming = Incoming {
            header: [0; HEADER_BYTES],
            received: 0,
            passed_on: 0,
            rest: 0,
            end: IncomingEnd::Open,
        };
        Self { stream, remote, links, broken: false, incoming }
    }

    /// Reads from the socket: 1 byte or more, or the reason why there are none.
    fn receive(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<usize, String> {
        loop {
            match stream.read(buffer) {
                Ok(0) => return Err("the connection has ended".to_owned()),
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Reads complete headers and parts of messages. 0: only a part of a header was received, and is received
    /// back.
    fn next(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let Self { stream, remote, links, incoming, .. } = self;
        if incoming.received == 0 {
            let count = Self::receive(stream, buffer)?;
            return incoming.advance(&buffer[..count], |header| links.check(*remote, header));
        }
        if incoming.received < HEADER_BYTES {
            incoming.received += Self::receive(stream, &mut incoming.header[incoming.received..])?;
        }
        if incoming.received < HEADER_BYTES {
            return Ok(0);
        }
        if incoming.passed_on == 0 {
            incoming.rest = links.check(*remote, &incoming.header)?;
        }
        let count = buffer.len().min(HEADER_BYTES - incoming.passed_on);
        buffer[..count].copy_from_slice(&incoming.header[incoming.passed_on..][..count]);
        incoming.passed_on += count;
        if incoming.passed_on == HEADER_BYTES {
            (incoming.received, incoming.passed_on) = (0, 0);
            if incoming.rest == 0 {
                incoming.end = IncomingEnd::Reached;
            }
        }
        Ok(count)
    }
}

impl Incoming {
    /// Returns how many of these bytes can be passed on. Bytes behind a last header belong to no message, and
    /// are dropped.
    fn advance(
        &mut self,
        bytes: &[u8],
        check: impl Fn(&[u8; HEADER_BYTES]) -> Result<u64, String>,
    ) -> Result<usize, String> {
        let mut at = 0;
        loop {
            let left = bytes.len() - at;
            let of_message = usize::try_from(self.rest).map_or(left, |rest| rest.min(left));
            self.rest -= of_message as u64;
            at += of_message;
            if at == bytes.len() {
                return Ok(at);
            }
            let Some(header) = bytes[at..].first_chunk::<HEADER_BYTES>() else {
                self.received = bytes.len() - at;
                self.header[..self.received].copy_from_slice(&bytes[at..]);
                return Ok(at);
            };
            match check(header) {
                Ok(0) => {
                    self.end = IncomingEnd::Reached;
                    return Ok(at + HEADER_BYTES);
                }
                Ok(length) => self.rest = length,
                // The bytes before the invalid header are passed on first.
                Err(_) if at > 0 => {
                    (self.header, self.received) = (*header, HEADER_BYTES);
                    return Ok(at);
                }
                Err(why) => return Err(why),
            }
            at += HEADER_BYTES;
        }
    }
}

impl Read for PeerLink {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.incoming.end {
                IncomingEnd::Reached => return Ok(0),
                IncomingEnd::Zeros(left) => {
                    let count = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
                    buffer[..count].fill(0);
                    let left = left - count as u64;
                    self.incoming.end =
                        if left == 0 { IncomingEnd::Reached } else { IncomingEnd::Zeros(left) };
                    return Ok(count);
                }
                IncomingEnd::Open => match self.next(buffer) {
                    Ok(0) => {}
                    Ok(count) => return Ok(count),
                    Err(why) => {
                        self.links.report_lost(self.remote, &why);
                        self.links.wait_until_all_left();
                        self.incoming.end = IncomingEnd::Zeros(self.incoming.rest + HEADER_BYTES as u64);
                    }
                },
            }
        }
    }
}

impl Write for PeerLink {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.broken || self.links.has_stopped_sending() {
            return Ok(buffer.len());
        }
        let why = match self.stream.write(buffer) {
            Ok(count) if count > 0 => return Ok(count),
            Ok(_) => "it takes nothing".to_owned(),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(error) => error.to_string(),
        };
        self.broken = true;
        self.links.report_lost(self.remote, &why);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for PeerLink {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self::new(self.stream.try_clone()?, self.remote, Arc::clone(&self.links)))
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.stream.set_nonblocking(nonblocking)
    }

    /// Never fails: a peer whose connection has ended needs no shutdown.
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.stream.shutdown(how).or(Ok(()))
    }
}

impl fmt::Debug for PeerLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerLinks").field("index", &self.index).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
