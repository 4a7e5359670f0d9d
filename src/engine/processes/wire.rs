//! One control connection at work: a thread that writes, one that reads, and a beat.
//!
//! Frames in, frames out. The writer sends what is queued, and an empty frame, a *beat*, whenever there has
//! been nothing to send for the time of one. The reader passes frames on; it takes the other side for lost
//! once that has said nothing for [`Pace::lost`], or at once when the connection ends.
//!
//! Invariants: sending never waits, a peer that takes nothing is lost when the queue is full or a write takes
//! longer than `lost`; the end of the connection is told exactly once, last, with the first reason that was
//! known. An end in good order loses nothing: what is queued is written, then this side says no more, and the
//! connection is kept until the other side has ended it too.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

use super::handshake::is_late;
use super::message::FRAME_BYTES;

/// Frames that may wait to be written. A run sends a few an epoch.
const QUEUED: usize = 4096;

/// How often a side shows that it is alive, and after which silence it is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) beat: Duration,
    pub(super) lost: Duration,
}

/// What is heard over a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Frame(Vec<u8>),
    /// The connection is at its end, and why.
    Ended(String),
}

/// A connection at work.
#[derive(Debug)]
pub(super) struct Wire {
    queue: SyncSender<Vec<u8>>,
    writer: JoinHandle<()>,
    /// Ends when the reader has.
    reading: Receiver<()>,
    stream: Arc<Shared>,
    lost: Duration,
}

#[derive(Debug)]
struct Shared {
    stream: TcpStream,
    /// Why the connection ends, if this side ends it.
    why: Mutex<Option<String>>,
    ended: AtomicBool,
}

impl Shared {
    /// Ends the connection, for this reason unless there is one.
    fn end(&self, why: String) {
        self.why.lock().get_or_insert(why);
        // If it has ended already, so much the better.
        self.stream.shutdown(Shutdown::Both).unwrap_or(());
    }
}

impl Wire {
    /// Starts the threads; `hear` is called by the one that reads.
    ///
    /// # Errors
    /// If the system has no more of something.
    pub(super) fn start(
        stream: TcpStream,
        pace: Pace,
        mut hear: impl FnMut(Heard) + Send + 'static,
    ) -> io::Result<Self> {
        stream.set_read_timeout(Some(pace.lost))?;
        stream.set_write_timeout(Some(pace.lost))?;
        let shared = Arc::new(Shared { stream, why: Mutex::default(), ended: AtomicBool::new(false) });
        let (queue, queued) = sync_channel(QUEUED);
        let to_write = Arc::clone(&shared);
        let writer = thread::Builder::new().name("control-write".to_owned()).spawn(move || {
            if let Err(error) = write(&to_write.stream, &queued, pace.beat) {
                let late =
                    is_late(&error).then(|| format!("it took nothing for {} s", pace.lost.as_secs_f64()));
                to_write.end(late.unwrap_or_else(|| error.to_string()));
            }
        })?;
        let (guard, reading) = sync_channel::<()>(0);
        let to_read = Arc::clone(&shared);
        thread::Builder::new().name("control-read".to_owned()).spawn(move || {
            let _guard = guard;
            let ended = read(&to_read.stream, pace.lost, &mut hear);
            to_read.ended.store(true, Ordering::SeqCst);
            let why = to_read.why.lock().take();
            // Whoever says no more has heard all that it waits for: it waits for this end only.
            to_read.end(String::new());
            hear(Heard::Ended(why.unwrap_or(ended)));
        })?;
        Ok(Self { queue, writer, reading, stream: shared, lost: pace.lost })
    }

    /// Queues a frame. One that cannot be queued ends the connection; of one that has ended, the reader
    /// tells.
    pub(super) fn send(&self, frame: Vec<u8>) {
        if self.queue.try_send(frame).is_err() {
            self.stream.end(format!("it took none of {QUEUED} messages"));
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.stream.ended.load(Ordering::SeqCst)
    }

    /// Ends connections in good order: each at most a few times [`Pace::lost`], all at the same time.
    pub(super) fn end(wires: Vec<Self>) {
        let writers: Vec<_> = wires
            .into_iter()
            .map(|Self { queue, writer, reading, stream, lost }| {
                drop(queue);
                (writer, reading, stream, lost)
            })
            .collect();
        for (writer, reading, stream, lost) in writers {
            // A writer does not panic.
            writer.join().unwrap_or(());
            // Until the other side has read all: to close earlier could discard what it has not.
            if reading.recv_timeout(lost) == Err(RecvTimeoutError::Timeout) {
                stream.end("this side has ended".to_owned());
            }
        }
    }
}

/// Writes frames until there will be no more, then says so.
fn write(mut stream: &TcpStream, queued: &Receiver<Vec<u8>>, beat: Duration) -> io::Result<()> {
    loop {
        let frame = match queued.recv_timeout(beat) {
            Ok(frame) => frame,
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let length = u32::try_from(frame.len()).ok().filter(|length| *length <= FRAME_BYTES);
        let length = length.ok_or(io::ErrorKind::FileTooLarge)?;
        stream.write_all(&[&length.to_le_bytes()[..], &frame].concat())?;
    }
    stream.shutdown(Shutdown::Write)
}

/// Reads frames until the end, and says why it is one.
fn read(stream: &TcpStream, lost: Duration, hear: &mut impl FnMut(Heard)) -> String {
    let mut reader = BufReader::new(stream);
    let ended = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the connection has ended".to_owned(),
        _ if is_late(&error) => format!("it said nothing for {} s", lost.as_secs_f64()),
        _ => error.to_string(),
    };
    loop {
        let mut length = [0; 4];
        if let Err(error) = reader.read_exact(&mut length) {
            return ended(error);
        }
        let length = u32::from_le_bytes(length);
        if length == 0 {
            continue;
        }
        if length > FRAME_BYTES {
            return format!("it announces a message of {length} bytes, expected at most {FRAME_BYTES}");
        }
        let mut frame = Vec::new();
        match reader.by_ref().take(u64::from(length)).read_to_end(&mut frame) {
            Ok(count) if count == length as usize => hear(Heard::Frame(frame)),
            Ok(_) => return ended(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => return ended(error),
        }
    }
}
