//! What a reader hands to the workers.

use std::io::BufRead;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::doc::{DocId, Position};

/// Records of one input and one partition, in order of offset, not yet looked into.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The input as the user named it, for messages.
    pub input: Arc<str>,
    /// The partition of all its records.
    pub partition: u32,
    /// Number of records.
    pub records: u64,
    /// The offset after its last record: whoever goes on from there misses nothing and repeats nothing. A batch without records
    /// says only this, where a partition was read on and nothing is to be handed over.
    pub next: u64,
    /// The records.
    pub payload: Payload,
}

/// The records of a [`Batch`].
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Lines of a feed, whole as they were read, with their ends (the last line of an input may have none); some may be
    /// blank, which are no records.
    Lines {
        /// The lines.
        bytes: Vec<u8>,
        /// The number of the first one in the input, from 1, blank lines included.
        first_line: u64,
        /// The offset of the first record; the others follow without gaps.
        first: u64,
    },
    /// Files that each hold one document.
    Files {
        /// The files.
        files: Vec<FileDocument>,
        /// The offset of the first one; the others follow without gaps.
        first: u64,
    },
    /// Records with keys, as a log holds them.
    Records(Records),
}

/// Records with keys: the key is the document's id, the value its text; no value or an empty one ends the document.
///
/// All bytes lie in one buffer, so that a batch is two allocations however many records it has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// One record of [`Records`].
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    offset: u64,
    ts: Option<f64>,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
}

/// One record with a key, borrowed from where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyedRecord<'a> {
    /// Its offset in its partition; offsets ascend and may have gaps.
    pub offset: u64,
    /// When it was written, in unix seconds, if that is known.
    pub ts: Option<f64>,
    /// Its key, if it has one.
    pub key: Option<&'a [u8]>,
    /// Its value, if it has one.
    pub value: Option<&'a [u8]>,
}

impl Records {
    /// Appends a record, whose offset must be greater than all before.
    pub fn push(&mut self, record: KeyedRecord<'_>) {
        debug_assert!(self.entries.last().is_none_or(|last| last.offset < record.offset), "offsets ascend");
        let mut append = |part: &[u8]| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(part);
            start..self.bytes.len()
        };
        let (key, value) = (record.key.map(&mut append), record.value.map(&mut append));
        self.entries.push(Entry { offset: record.offset, ts: record.ts, key, value });
    }

    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = KeyedRecord<'_>> {
        self.entries.iter().map(|entry| {
            let part = |range: &Range<usize>| &self.bytes[range.clone()];
            let (key, value) = (entry.key.as_ref().map(part), entry.value.as_ref().map(part));
            KeyedRecord { offset: entry.offset, ts: entry.ts, key, value }
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
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
    pub(super) offset: u64,
    /// From 1.
    pub(super) number: u64,
    /// With its end, if it has one.
    pub(super) bytes: &'a [u8],
}

impl Batch {
    /// What the batch weighs in the queue: bytes of lines and records, or of the files that it names.
    pub fn bytes(&self) -> u64 {
        match &self.payload {
            Payload::Lines { bytes, .. } => bytes.len() as u64,
            Payload::Files { files, .. } => files.iter().map(|file| file.bytes).sum(),
            Payload::Records(records) => records.bytes.len() as u64,
        }
    }

    /// The position after its last record.
    pub fn end(&self) -> Position {
        Position { partition: self.partition, offset: self.next }
    }
}

/// The records among the lines of a batch whose first line has the number `first_line`, and its first record the offset `first`.
pub(super) fn records(bytes: &[u8], first_line: u64, first: u64) -> impl Iterator<Item = Line<'_>> {
    let (mut offset, mut number) = (first, first_line);
    split(bytes).filter_map(move |bytes| {
        let line = Line { offset, number, bytes };
        let is_record = !is_blank(bytes);
        offset += u64::from(is_record);
        number += 1;
        is_record.then_some(line)
    })
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
    fn blank_lines_have_numbers_and_no_offsets() {
        let lines = b"\n{1}\n  \t\r\n{2}\r\n\n{3}".to_vec();
        let found: Vec<_> = records(&lines, 5, 10).map(|l| (l.offset, l.number, l.bytes)).collect();
        assert_eq!(found, [(10, 6, &b"{1}\n"[..]), (11, 8, b"{2}\r\n"), (12, 10, b"{3}")]);
        let payload = Payload::Lines { bytes: lines, first_line: 5, first: 10 };
        let batch = Batch { input: "x".into(), partition: 7, records: 3, next: 13, payload };
        assert_eq!((batch.bytes(), batch.end()), (19, Position { partition: 7, offset: 13 }));
    }

    #[test]
    fn records_come_back_as_they_were_given() {
        let given = [
            KeyedRecord { offset: 3, ts: Some(1.5), key: Some(b"a"), value: Some(b"text") },
            KeyedRecord { offset: 4, ts: None, key: None, value: Some(b"") },
            KeyedRecord { offset: 9, ts: None, key: Some(b""), value: None },
        ];
        let mut records = Records::default();
        assert!(records.is_empty());
        given.iter().for_each(|record| records.push(*record));
        assert_eq!((records.len(), records.iter().collect::<Vec<_>>()), (3, given.to_vec()));
        let payload = Payload::Records(records);
        let batch = Batch { input: "x".into(), partition: 0, records: 3, next: 12, payload };
        assert_eq!(batch.bytes(), 5);
    }
}
