//! Bytes of a file, of which those since a mark are kept, so that they can be looked through again.

use std::io::{self, BufRead, ErrorKind};

/// Where a file is read, and what of it is kept.
pub(super) struct Window {
    from: Box<dyn BufRead + Send>,
    bytes: Vec<u8>,
    /// The offset in the file of the first byte that is kept.
    base: u64,
    /// What is before is not needed any more; at or before `at`.
    mark: usize,
    /// What comes next.
    at: usize,
}

impl Window {
    pub(super) fn new(from: Box<dyn BufRead + Send>) -> Self {
        Self::at(from, 0)
    }

    /// A file from this offset on.
    pub(super) fn at(from: Box<dyn BufRead + Send>, base: u64) -> Self {
        Self { from, bytes: Vec::new(), base, mark: 0, at: 0 }
    }

    /// What has been read and not been taken.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// The offset in the file of what comes next.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Takes so many bytes of [`Self::rest`].
    pub(super) fn take(&mut self, count: usize) {
        self.at = (self.at + count).min(self.bytes.len());
    }

    /// How many bytes are kept that have been taken.
    pub(super) fn kept(&self) -> usize {
        self.at - self.mark
    }

    /// What comes next is the first that may be needed again.
    pub(super) fn mark(&mut self) {
        self.mark = self.at;
    }

    /// Goes back to the mark.
    pub(super) fn back(&mut self) {
        self.at = self.mark;
    }

    /// Reads a further piece; false at the end of the file.
    pub(super) fn more(&mut self) -> io::Result<bool> {
        // Here and not at the mark: what is kept is moved once for each piece.
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

    /// Reads until so many bytes are there; false if the file ends before.
    pub(super) fn have(&mut self, count: usize) -> io::Result<bool> {
        while self.rest().len() < count {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
