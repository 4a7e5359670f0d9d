//! Counts the stored bytes that are read from inputs, and notes whether the next read may block.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of one read of an input. Large enough that system calls cost little, small enough for the
/// second-level cache.
pub(crate) const READ_BYTES: usize = 128 << 10;

/// How many bytes of the inputs have been read.
#[derive(Debug, Default)]
pub struct InputProgress {
    /// Stored bytes of all inputs; 0 if that is not known.
    total: AtomicU64,
    read: AtomicU64,
}

impl InputProgress {
    /// Progress over inputs of this size; 0 if it is not known.
    pub(crate) fn with_total(total: u64) -> Self {
        Self { total: total.into(), read: 0.into() }
    }

    /// Bytes read so far.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Stored bytes of all inputs; `None` if that is not known.
    pub fn total(&self) -> Option<u64> {
        Some(self.total.load(Ordering::Relaxed)).filter(|total| *total > 0)
    }

    /// Adds bytes that have been read.
    pub(crate) fn add(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A buffered reader that counts its bytes.
pub(crate) struct Metered<R> {
    inner: R,
    buffer: Box<[u8]>,
    from: usize,
    to: usize,
    progress: Arc<InputProgress>,
    waits: Arc<AtomicBool>,
}

impl<R: Read> Metered<R> {
    /// `waits` is set while the buffer is empty after a short read, so that the next read may block.
    pub(crate) fn new(inner: R, progress: Arc<InputProgress>, waits: Arc<AtomicBool>) -> Self {
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        Self { inner, buffer, from: 0, to: 0, progress, waits }
    }
}

impl<R: Read> Metered<R> {
    /// The first bytes: at least `least`, fewer only at the end of the input.
    ///
    /// # Errors
    /// A read error of the input.
    pub(crate) fn head(&mut self, least: usize) -> io::Result<&[u8]> {
        while self.to < least {
            match self.inner.read(&mut self.buffer[self.to..]) {
                Ok(0) => break,
                Ok(more) => {
                    self.to += more;
                    self.progress.add(more as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.from..self.to])
    }
}

impl<R: Read> BufRead for Metered<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
            self.to = self.inner.read(&mut self.buffer)?;
            self.waits.store(false, Ordering::Relaxed);
            self.progress.add(self.to as u64);
        }
        Ok(&self.buffer[self.from..self.to])
    }

    fn consume(&mut self, bytes: usize) {
        self.from = (self.from + bytes).min(self.to);
        if self.from == self.to && self.to < READ_BYTES {
            self.waits.store(true, Ordering::Relaxed);
        }
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

/// Reads what a reader holds: its `read`, by its `fill_buf`.
pub(crate) fn read_buffered(reader: &mut impl BufRead, out: &mut [u8]) -> io::Result<usize> {
    let length = reader.fill_buf()?.read(out)?;
    reader.consume(length);
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_and_short_reads_may_block() {
        let progress = Arc::new(InputProgress::with_total(10));
        let waits = Arc::new(AtomicBool::new(false));
        let text = "日".repeat(READ_BYTES);
        let mut read = Metered::new(text.as_bytes(), Arc::clone(&progress), Arc::clone(&waits));
        assert_eq!((progress.read(), progress.total()), (0, Some(10)));
        let first = read.fill_buf().unwrap().len();
        assert_eq!((first, progress.read()), (READ_BYTES, READ_BYTES as u64));
        read.consume(first);
        assert!(!waits.load(Ordering::Relaxed), "a full buffer: there is more");
        let mut rest = String::new();
        read.read_to_string(&mut rest).unwrap_or_default();
        assert_eq!((progress.read(), InputProgress::default().total()), (text.len() as u64, None));
    }
}
