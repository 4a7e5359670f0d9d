//! Random access to an object.

use std::fmt;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::object::{RANGE_BYTES, StoredObject};
use crate::formats::{InputProgress, RandomAccess};

/// Size of the first request where a sequential read continues after what was read before. It doubles with
/// each request up to [`RANGE_BYTES`], so that a column of a row group takes a few requests and not one for
/// each of its pages.
const LEAST_BYTES: u64 = 64 << 10;

/// Parts kept in memory, enough for some columns for each reading thread. Beyond that the least recently used
/// part is dropped, and requested again if it is needed.
const HELD: usize = 24;

/// Random access to an object, with a byte count. Sequential reads are requested ahead, in parts that grow.
#[derive(Debug)]
pub(crate) struct ObjectAccess {
    object: Arc<StoredObject>,
    progress: Arc<InputProgress>,
    /// The parts in memory; the most recently used is the last.
    held: Mutex<Vec<ObjectPart>>,
}

/// A part of an object.
struct ObjectPart {
    from: u64,
    bytes: Arc<[u8]>,
}

impl fmt::Debug for ObjectPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectPart").field("from", &self.from).field("bytes", &self.bytes.len()).finish()
    }
}

impl ObjectPart {
    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }

    /// At most `most` bytes from `from` on, if the part has the first of them.
    fn get(&self, from: u64, most: usize) -> Option<&[u8]> {
        let at = usize::try_from(from.checked_sub(self.from)?).ok().filter(|at| *at < self.bytes.len())?;
        Some(&self.bytes[at..self.bytes.len().min(at + most)])
    }
}

impl ObjectAccess {
    /// Random access to this object.
    pub(crate) fn new(object: Arc<StoredObject>, progress: Arc<InputProgress>) -> Self {
        Self { object, progress, held: Mutex::default() }
    }

    /// Copies at least one byte from `from` on into `out`; returns the number of bytes.
    fn read_some(&self, from: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut held = self.held.lock();
        if let Some(at) = held.iter().position(|part| part.get(from, 1).is_some()) {
            let part = held.remove(at);
            let found = part.get(from, out.len()).unwrap_or_default();
            let length = found.len();
            out[..length].copy_from_slice(found);
            held.push(part);
            return Ok(length);
        }
        // The read continues after a part: that part has been consumed.
        let before = held.iter().position(|part| part.end() == from).map(|at| held.remove(at));
        drop(held);
        let ahead = before.map_or(LEAST_BYTES, |part| (2 * part.bytes.len() as u64).min(RANGE_BYTES));
        let end = self.object.bytes().min(from + ahead.max(out.len() as u64));
        let bytes = self.object.wait(self.object.ask(from..end))?;
        let length = bytes.len().min(out.len());
        out[..length].copy_from_slice(&bytes[..length]);
        let mut parts = self.held.lock();
        if parts.len() == HELD {
            parts.remove(0);
        }
        parts.push(ObjectPart { from, bytes: bytes.into() });
        Ok(length)
    }
}

impl RandomAccess for ObjectAccess {
    fn bytes(&self) -> u64 {
        self.object.bytes()
    }

    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = from.checked_add(buffer.len() as u64).filter(|end| *end <= self.object.bytes());
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut done = 0;
        while done < buffer.len() {
            done += self.read_some(from + done as u64, &mut buffer[done..])?;
        }
        self.progress.add(done as u64);
        Ok(())
    }
}
