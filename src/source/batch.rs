//! What the reader hands to the workers.

use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

use crate::doc::{DocId, Position};
use crate::time::Epoch;

/// Consecutive records of one input and one epoch, not yet looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The epoch of all its records.
    pub epoch: Epoch,
    /// The position of its first record; the others follow without gaps.
    pub first: Position,
    /// Number of records, 1 or more.
    pub records: u64,
    /// The input as the user named it, for messages.
    pub input: Arc<str>,
    /// The number of its first line in the input, from 1, blank lines included; 0 for files.
    pub first_line: u64,
    /// The records.
    pub payload: Payload,
}

/// The records of a [`Batch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Whole lines as they were read, with their ends (the last line of an input may have none); some may be blank.
    Lines(Vec<u8>),
    /// Files that each hold one document.
    Files(Vec<FileDocument>),
}

/// A file that holds one document's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDocument {
    /// The document.
    pub id: DocId,
    /// Where its text is.
    pub path: PathBuf,
    /// The file's size in bytes when it was listed.
    pub bytes: u64,
}

/// One record's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) position: Position,
    /// From 1.
    pub(super) number: u64,
    /// With its end, if it has one.
    pub(super) bytes: &'a [u8],
}

impl Batch {
    /// What the batch weighs in the queue: bytes of lines, or of the files that it names.
    pub fn bytes(&self) -> u64 {
        match &self.payload {
            Payload::Lines(lines) => lines.len() as u64,
            Payload::Files(files) => files.iter().map(|file| file.bytes).sum(),
        }
    }

    /// The records in `lines`, this batch's payload.
    pub(super) fn lines<'a>(&self, lines: &'a [u8]) -> impl Iterator<Item = Line<'a>> {
        let Position(mut next) = self.first;
        let mut number = self.first_line;
        split(lines).filter_map(move |bytes| {
            let line = Line { position: Position(next), number, bytes };
            let record = !is_blank(bytes);
            next += u64::from(record);
            number += 1;
            record.then_some(line)
        })
    }
}

/// A line without a record; it has a number but no position.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii_start().is_empty()
}

/// The lines of a buffer, each with its end.
fn split(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let from = rest;
        // A slice as a reader: it finds the newline with the platform's `memchr`, and cannot fail.
        let length = rest.skip_until(b'\n').unwrap_or(0);
        (length > 0).then(|| &from[..length])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_have_numbers_and_no_positions() {
        let lines = b"\n{1}\n  \t\r\n{2}\r\n\n{3}".to_vec();
        let batch = Batch {
            epoch: 1,
            first: Position(10),
            records: 3,
            input: "x".into(),
            first_line: 5,
            payload: Payload::Lines(lines.clone()),
        };
        let found: Vec<_> = batch.lines(&lines).map(|l| (l.position.0, l.number, l.bytes)).collect();
        assert_eq!(found, [(10, 6, &b"{1}\n"[..]), (11, 8, b"{2}\r\n"), (12, 10, b"{3}")]);
        assert_eq!(batch.bytes(), 19);
    }
}
