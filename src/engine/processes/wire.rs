//! One control connection: a thread that writes, one that reads, and a beat.
//!
//! Frames in, frames out. The writer sends the queued frames, and an empty frame, a *beat*, whenever nothing
//! was queued for the time of a beat. The reader passes frames on. It reports the other side as lost after a
//! silence of [`WirePace::lost`], or at once when the connection ends.
//!
//! Invariants:
//!
//! - sending never blocks: a peer that reads nothing is lost when the queue is full or a write takes longer
//!   than `lost`;
//! - the end of the connection is reported exactly once, last, with the first reason that was known;
//! - an orderly end loses nothing: the queue is written, then this side shuts its sending direction down and
//!   waits until the other side has ended the connection too.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

use super::handshake::is_late;
use super::message::{FRAME_BYTES, MORE, PIECE_BYTES};

/// Frames in the queue. A run sends a few in each epoch.
const QUEUED: usize = 4096;

/// The time between beats, and the silence after which a side is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct WirePace {
    pub(super) beat: Duration,
    pub(super) lost: Duration,
}

/// What the reader reports.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WireEvent {
    Frame(Vec<u8>),
    /// The connection has ended, for this reason.
    Ended(String),
}

/// A running connection.
#[derive(Debug)]
pub(super) struct Wire {
    queue: SyncSender<Vec<u8>>,
    writer: JoinHandle<()>,
    /// Disconnected when the reader ends.
    reading: Receiver<()>,
    stream: Arc<WireShared>,
    lost: Duration,
}

#[derive(Debug)]
struct WireShared {
    stream: TcpStream,
    /// Why the connection ends, if this side ends it.
    why: Mutex<Option<String>>,
    ended: AtomicBool,
}

impl WireShared {
    /// Ends the connection. Keeps the reason of an earlier call.
    fn end(&self, why: String) {
        self.why.lock().get_or_insert(why);
        // An error means that it has ended already.
        self.stream.shutdown(Shutdown::Both).unwrap_or(());
    }
}

impl Wire {
    /// Starts the threads; the reader calls `on_event`.
    ///
    /// # Errors
    /// If the system cannot make another thread, or configure the socket.
    pub(super) fn start(
        stream: TcpStream,
        pace: WirePace,
        mut on_event: impl FnMut(WireEvent) + Send + 'static,
    ) -> io::Result<Self> {
        stream.set_read_timeout(Some(pace.lost))?;
        stream.set_write_timeout(Some(pace.lost))?;
        let shared = Arc::new(WireShared { stream, why: Mutex::default(), ended: AtomicBool::new(false) });
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
            let ended = read(&to_read.stream, pace.lost, &mut on_event);
            to_read.ended.store(true, Ordering::SeqCst);
            let why = to_read.why.lock().take();
            // The other side sends no more, and waits only for this side to end.
            to_read.end(String::new());
            on_event(WireEvent::Ended(why.unwrap_or(ended)));
        })?;
        Ok(Self { queue, writer, reading, stream: shared, lost: pace.lost })
    }

    /// Queues a frame. A full queue ends the connection. If the connection has ended, the reader has reported
    /// it.
    pub(super) fn send(&self, frame: Vec<u8>) {
        if self.queue.try_send(frame).is_err() {
            self.stream.end(format!("it took none of {QUEUED} messages"));
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.stream.ended.load(Ordering::SeqCst)
    }

    /// Ends connections in order, all at the same time: at most a few times [`WirePace::lost`].
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
            // Waits until the other side has read everything: an earlier close could discard unread bytes.
            if reading.recv_timeout(lost) == Err(RecvTimeoutError::Timeout) {
                stream.end("this side has ended".to_owned());
            }
        }
    }
}

/// Writes frames until the queue is closed, then shuts the sending direction down.
fn write(mut stream: &TcpStream, queued: &Receiver<Vec<u8>>, beat: Duration) -> io::Result<()> {
    loop {
        let frame = match queued.recv_timeout(beat) {
            Ok(frame) => frame,
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if frame.len() > FRAME_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut rest = &*frame;
        loop {
            let (piece, later) = rest.split_at(rest.len().min(PIECE_BYTES as usize));
            let length = u32::try_from(piece.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
            let length = if later.is_empty() { length } else { length | MORE };
            stream.write_all(&[&length.to_le_bytes()[..], piece].concat())?;
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
    }
    stream.shutdown(Shutdown::Write)
}

/// Reads frames until the end, and returns the reason of the end.
fn read(stream: &TcpStream, lost: Duration, on_event: &mut impl FnMut(WireEvent)) -> String {
    let mut reader = BufReader::new(stream);
    let ended = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the connection has ended".to_owned(),
        _ if is_late(&error) => format!("it said nothing for {} s", lost.as_secs_f64()),
        _ => error.to_string(),
    };
    let mut frame = Vec::new();
    loop {
        let mut length = [0; 4];
        if let Err(error) = reader.read_exact(&mut length) {
            return ended(error);
        }
        let length = u32::from_le_bytes(length);
        let (length, has_more) = (length & !MORE, length & MORE != 0);
        if length == 0 {
            continue;
        }
        if length > PIECE_BYTES || frame.len() + length as usize > FRAME_BYTES {
            return format!(
                "it announces {length} bytes after {}, expected at most {PIECE_BYTES}, and {FRAME_BYTES} in \
                all",
                frame.len()
            );
        }
        match reader.by_ref().take(u64::from(length)).read_to_end(&mut frame) {
            Ok(count) if count == length as usize => {
                if !has_more {
                    on_event(WireEvent::Frame(std::mem::take(&mut frame)));
                }
            }
            Ok(_) => return ended(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => return ended(error),
        }
    }
}
