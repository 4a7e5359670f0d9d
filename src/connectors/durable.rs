//! How much of a file is durable, for who reads it while it is written.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// How many bytes of a file are durable: its writer sets them, and its reader reads no further.
#[derive(Debug, Default)]
pub struct Durable {
    state: Mutex<DurableState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct DurableState {
    bytes: u64,
    /// Whether the file is read; `None`: not yet.
    is_read: Option<bool>,
    /// The position in the input of its first record; `None`: it is not read so far.
    first: Option<u64>,
}

impl Durable {
    /// So many bytes are durable now.
    pub(crate) fn set(&self, bytes: u64) {
        self.state.lock().bytes = bytes;
        self.changed.notify_all();
    }

    /// How many are.
    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// The file is read from now on, or, if `is_read` is false, is not read any more.
    pub(crate) fn read(&self, is_read: bool) {
        self.state.lock().is_read = Some(is_read);
        self.changed.notify_all();
    }

    /// The position in the input of the file's first record.
    pub(crate) fn begins_at(&self, first: u64) {
        self.state.lock().first = Some(first);
    }

    /// The position of the file's first record, which others may precede; `None`: it is not known yet.
    pub(crate) fn first(&self) -> Option<u64> {
        self.state.lock().first
    }

    /// Waits until it is known whether the file is read.
    pub(crate) fn wait_for_reader(&self) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.is_read.is_none());
        state.is_read == Some(true)
    }

    /// Waits until there are more bytes than `read`, at most this time.
    pub(crate) fn wait_beyond(&self, read: u64, most: Duration) {
        self.changed.wait_while_for(&mut self.state.lock(), |state| state.bytes <= read, most);
    }
}

/// What is durable of a file, from its beginning; ends there, until there is more.
pub(crate) struct DurablePart<R> {
    stored: R,
    read: u64,
    /// `None`: all of it.
    durable: Option<Arc<Durable>>,
}

impl<R> DurablePart<R> {
    pub(crate) fn new(stored: R, durable: Option<Arc<Durable>>) -> Self {
        Self { stored, read: 0, durable }
    }
}

impl<R: Read> Read for DurablePart<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Bytes behind these may be taken back.
        let most = self.durable.as_ref().map_or(u64::MAX, |durable| durable.bytes() - self.read);
        let length = into.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        let read = self.stored.read(&mut into[..length])?;
        self.read += read as u64;
        Ok(read)
    }
}
