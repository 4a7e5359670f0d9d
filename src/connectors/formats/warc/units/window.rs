//! A window over a file: bytes since a mark are kept, so that they can be read again.

use std::io::{self, BufRead, ErrorKind};

/// The position in a file, and the bytes that are kept.
pub(super) struct Window {
    from: Box<dyn BufRead + Send>,
    bytes: Vec<u8>,
    /// The offset in the file of the first byte in memory.
    pub(super) base: u64,
    /// Bytes before this index are not needed any more; at most `at`.
    mark: usize,
    /// The index of the next byte.
    at: usize,
}

impl Window {
    pub(super) fn new(from: Box<dyn BufRead + Send>) -> Self {
        Self { from, bytes: Vec::new(), base: 0, mark: 0, at: 0 }
    }

    /// Bytes that have been read from the file and not consumed.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// The offset in the file of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Consumes bytes of [`Self::rest`].
    pub(super) fn take(&mut self, count: usize) {
        self.at = (self.at + count).min(self.bytes.len());
    }

    /// Number of consumed bytes that are kept.
    pub(super) fn kept(&self) -> usize {
        self.at - self.mark
    }

    /// Sets the mark at the next byte.
    pub(super) fn mark(&mut self) {
        self.mark = self.at;
    }

    /// Goes back to the mark.
    pub(super) fn back(&mut self) {
        self.at = self.mark;
    }

    /// Reads a further piece; false at the end of the file.
    pub(super) fn more(&mut self) -> io::Result<bool> {
        // Removed here and not in `mark`, so that the kept bytes are moved once for each piece.
        self.bytes.drain(..self.mark);
        self.base += self.mark as u64;
        self.at -= self.mark;
        self.mark = 0;
        loop {
            match self.from.fill_buf() {
                Ok([]) => return Ok(false),
                Ok(piece) => {
                    let length = piece.len();
                    self.bytes.extend_from_slice(piece);
                    self.from.consume(length);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads until `count` bytes are available; false if the file ends before.
    pub(super) fn have(&mut self, count: usize) -> io::Result<bool> {
        while self.rest().len() < count {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The offset of `wanted`, or the number of bytes at the end that may be its beginning.
pub(crate) fn find(bytes: &[u8], wanted: &[u8]) -> Result<usize, usize> {
    let first = wanted[0];
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        let here = &bytes[from + at..];
        if here.starts_with(wanted) {
            return Ok(from + at);
        }
        if here.len() < wanted.len() && wanted.starts_with(here) {
            return Err(here.len());
        }
        from += at + 1;
    }
    Err(0)
}
