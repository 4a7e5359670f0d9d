//! Links: the sockets between the workers of several processes, so that a lost peer ends a run and not this
//! process.
//!
//! timely's threads read and write a socket through a [`Link`]. Left alone they panic when it fails, which
//! takes down the process with a heap of messages. A link instead tells once which process is lost, and why,
//! and shows timely an end in good order: what is written from then on goes nowhere; what is read, once no
//! worker of this process is at work any more, is the rest of the message that was cut off, in zeros, and
//! timely's mark of the end.
//!
//! So that no peer takes a failure for an end, a process that is cancelled says nothing more over its links,
//! not even that mark: its peers know every change of progress that it has told them, a whole number of them
//! from the first on, hence never believe an epoch to be closed of which it still held a share. Its sockets
//! are shut down when its workers are gone.
//!
//! What comes from a peer is checked before timely sees it, as timely trusts its framing: a header must name
//! workers of this process and of the peer, and a length of at most [`MESSAGE_BYTES`]. A header is 48 bytes,
//! six big-endian `u64`: channel, source, first target, end of targets, length, number; of length 0, it is
//! the last one (`timely_communication::networking::MessageHeader`).

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};
use timely::communication::allocator::zero_copy::stream::Stream;

/// Of a header.
const HEADER_BYTES: usize = 48;

/// The longest message, in bytes, inclusive: a message is one buffer of records.
const MESSAGE_BYTES: u64 = 1 << 30;

/// Takes the index of a process whose link is lost, and why it is; once for each. Called by a thread that
/// serves this link only.
pub type Lost = Box<dyn Fn(usize, &str) + Send + Sync>;

/// The links of this process.
pub(super) struct Links {
    /// Worker threads of each process.
    workers: u64,
    /// This process.
    index: usize,
    lost: Lost,
    is_lost: Vec<AtomicBool>,
    /// Nothing more is said.
    muted: AtomicBool,
    /// Workers of this process at work.
    at_work: Mutex<usize>,
    all_left: Condvar,
    sockets: Vec<TcpStream>,
}

/// One side of timely on a socket: what reads, or what writes.
#[derive(Debug)]
pub(super) struct Link {
    stream: TcpStream,
    remote: usize,
    links: Arc<Links>,
    /// Nothing more can be written.
    broken: bool,
    incoming: Incoming,
}

/// Where in the incoming messages the reader is.
#[derive(Debug)]
struct Incoming {
    /// A header of which only `held` bytes have come, or, at [`HEADER_BYTES`], that has been given up to
    /// `given`.
    header: [u8; HEADER_BYTES],
    held: usize,
    given: usize,
    /// Bytes that are left of the present message.
    rest: u64,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    NotYet,
    /// So many zeros, then the end.
    MadeUp(u64),
    Reached,
}

impl Links {
    /// Of process `index`, with `workers` threads in each process.
    ///
    /// # Errors
    /// If the system has no more of something.
    pub(super) fn new(
        index: usize,
        workers: usize,
        sockets: &[Option<TcpStream>],
        lost: Lost,
    ) -> io::Result<Arc<Self>> {
        let clones = sockets.iter().flatten().map(TcpStream::try_clone).collect::<io::Result<Vec<_>>>()?;
        // A system that waits for more to send adds 40 ms to each round of progress.
        clones.iter().try_for_each(|socket| socket.set_nodelay(true))?;
        Ok(Arc::new(Self {
            workers: workers as u64,
            index,
            lost,
            is_lost: sockets.iter().map(|_| AtomicBool::new(false)).collect(),
            muted: AtomicBool::new(false),
            at_work: Mutex::new(workers),
            all_left: Condvar::new(),
            sockets: clones,
        }))
    }

    /// One for each socket.
    pub(super) fn over(self: &Arc<Self>, sockets: Vec<Option<TcpStream>>) -> Vec<Option<Link>> {
        let link = |(remote, stream)| Link::new(stream, remote, Arc::clone(self));
        sockets.into_iter().enumerate().map(|(i, stream)| stream.map(|stream| link((i, stream)))).collect()
    }

    /// Says nothing more.
    pub(super) fn mute(&self) {
        let at_work = self.at_work.lock();
        self.muted.store(true, Ordering::SeqCst);
        self.shut_down_if_left(*at_work);
    }

    /// A worker is no longer at work, and reads nothing any more.
    pub(super) fn leave(&self) {
        let mut at_work = self.at_work.lock();
        *at_work -= 1;
        self.shut_down_if_left(*at_work);
        if *at_work == 0 {
            self.all_left.notify_all();
        }
    }

    /// Ends what waits for a peer, where nobody waits for what it would say.
    fn shut_down_if_left(&self, at_work: usize) {
        if at_work == 0 && self.is_muted() {
            // One that has ended is shut down.
            self.sockets.iter().for_each(|socket| socket.shutdown(Shutdown::Both).unwrap_or(()));
        }
    }

    fn is_muted(&self) -> bool {
        self.muted.load(Ordering::SeqCst)
    }

    fn tell(&self, remote: usize, why: &str) {
        if !self.is_muted() && !self.is_lost[remote].swap(true, Ordering::SeqCst) {
            (self.lost)(remote, why);
        }
    }

    fn wait_until_all_left(&self) {
        self.all_left.wait_while(&mut self.at_work.lock(), |at_work| *at_work > 0);
    }

    /// The length of a message, from its header.
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

impl Link {
    fn new(stream: TcpStream, remote: usize, links: Arc<Links>) -> Self {
        let incoming = Incoming { header: [0; HEADER_BYTES], held: 0, given: 0, rest: 0, end: End::NotYet };
        Self { stream, remote, links, broken: false, incoming }
    }

    /// Reads from the socket: something, or why there is no more.
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

    /// Whole headers and parts of messages. 0: the header in which it stops is held back.
    fn next(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let Self { stream, remote, links, incoming, .. } = self;
        if incoming.held == 0 {
            let count = Self::receive(stream, buffer)?;
            return incoming.advance(&buffer[..count], |header| links.check(*remote, header));
        }
        if incoming.held < HEADER_BYTES {
            incoming.held += Self::receive(stream, &mut incoming.header[incoming.held..])?;
        }
        if incoming.held < HEADER_BYTES {
            return Ok(0);
        }
        if incoming.given == 0 {
            incoming.rest = links.check(*remote, &incoming.header)?;
        }
        let count = buffer.len().min(HEADER_BYTES - incoming.given);
        buffer[..count].copy_from_slice(&incoming.header[incoming.given..][..count]);
        incoming.given += count;
        if incoming.given == HEADER_BYTES {
            (incoming.held, incoming.given) = (0, 0);
            if incoming.rest == 0 {
                incoming.end = End::Reached;
            }
        }
        Ok(count)
    }
}

impl Incoming {
    /// How many of these bytes can be given. What is behind a last header is no message, and dropped.
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
                self.held = bytes.len() - at;
                self.header[..self.held].copy_from_slice(&bytes[at..]);
                return Ok(at);
            };
            match check(header) {
                Ok(0) => {
                    self.end = End::Reached;
                    return Ok(at + HEADER_BYTES);
                }
                Ok(length) => self.rest = length,
                // First what is before it.
                Err(_) if at > 0 => {
                    (self.header, self.held) = (*header, HEADER_BYTES);
                    return Ok(at);
                }
                Err(why) => return Err(why),
            }
            at += HEADER_BYTES;
        }
    }
}

impl Read for Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.incoming.end {
                End::Reached => return Ok(0),
                End::MadeUp(left) => {
                    let count = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
                    buffer[..count].fill(0);
                    let left = left - count as u64;
                    self.incoming.end = if left == 0 { End::Reached } else { End::MadeUp(left) };
                    return Ok(count);
                }
                End::NotYet => match self.next(buffer) {
                    Ok(0) => {}
                    Ok(count) => return Ok(count),
                    Err(why) => {
                        self.links.tell(self.remote, &why);
                        self.links.wait_until_all_left();
                        self.incoming.end = End::MadeUp(self.incoming.rest + HEADER_BYTES as u64);
                    }
                },
            }
        }
    }
}

impl Write for Link {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.broken || self.links.is_muted() {
            return Ok(buffer.len());
        }
        let why = match self.stream.write(buffer) {
            Ok(count) if count > 0 => return Ok(count),
            Ok(_) => "it takes nothing".to_owned(),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(error) => error.to_string(),
        };
        self.broken = true;
        self.links.tell(self.remote, &why);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Link {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self::new(self.stream.try_clone()?, self.remote, Arc::clone(&self.links)))
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.stream.set_nonblocking(nonblocking)
    }

    /// Never fails: a peer that has ended too has nothing left to be told.
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.stream.shutdown(how).or(Ok(()))
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("index", &self.index).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
