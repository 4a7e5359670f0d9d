//! Batches of raw records, which readers give to workers.

use std::io::BufRead;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::{LineRules, Place, Shape};
use dupflow_core::codec::Changes;
use dupflow_core::doc::{DocId, Letter, Position};

/// Records of one input and one partition, in order of offset, not yet decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The input as the user named it, for messages.
    pub input: Arc<str>,
    /// The partition of all its records.
    pub partition: u32,
    /// Number of records.
    pub records: u64,
    /// The offset after its last record: a reader that continues there misses and repeats nothing. A batch
    /// without records reports only this: the partition was read, and there was nothing to push.
    pub next: u64,
    /// The records.
    pub payload: Payload,
    /// Bad records before [`Self::next`] that the reader found, if they are kept with their epoch.
    pub letters: Vec<Letter>,
    /// Where every process reads everything: a hash of the whole batch, the same in all processes.
    pub seen: Option<u64>,
}

/// The records of a [`Batch`].
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Lines of a feed with their line ends (the last line of an input may have none). Blank lines are not
    /// records.
    Lines {
        /// The lines.
        bytes: Vec<u8>,
        /// The number of the first line in the input, from 1, counting blank lines.
        first_line: u64,
        /// The offset of the first record; the others follow without gaps.
        first: u64,
        /// The rules for the lines.
        rules: Arc<LineRules>,
    },
    /// Files that are one document each.
    Files {
        /// The files.
        files: Vec<FileDocument>,
        /// The offset of the first one; the others follow without gaps.
        first: u64,
    },
    /// Records with keys, as in a Kafka topic.
    Records(Records),
    /// Documents that an earlier run stored. They have no position in this source.
    Kept(Changes),
}

/// Records with keys, and the [`Shape`] of their values. By default the key is the document's id, the value
/// is its text, and a missing or empty value deletes the document.
///
/// All bytes are in one buffer, so a batch takes two or three allocations for any number of records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    shape: Arc<Shape>,
    /// If the records are from a file: the offset of its first record.
    file: Option<u64>,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Headers: the index of the record in `entries`, the index of the header in the shape, and the value; in
    /// order of record.
    headers: Vec<(usize, usize, Range<usize>)>,
}

/// One record of [`Records`].
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    offset: u64,
    ts: Option<f64>,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
}

/// One record with a key, borrowed from its buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyedRecord<'a> {
    /// Its offset in its partition. Offsets ascend and may have gaps; records of several documents may share
    /// one.
    pub offset: u64,
    /// When it was written, in unix seconds, if that is known.
    pub ts: Option<f64>,
    /// Its key, if it has one.
    pub key: Option<&'a [u8]>,
    /// Its value, if it has one.
    pub value: Option<&'a [u8]>,
}

impl Records {
    /// An empty list with this shape.
    pub fn of(shape: Arc<Shape>) -> Self {
        Self { shape, ..Self::default() }
    }

    /// An empty list for a file whose first record has the offset `first`.
    pub(super) fn of_file(shape: Arc<Shape>, first: u64) -> Self {
        Self { shape, file: Some(first), ..Self::default() }
    }

    /// Where the record at an offset is, for messages.
    pub(super) fn place(&self, offset: u64) -> Place {
        self.file.map_or(Place::Offset(offset), |first| Place::Record(offset - first))
    }

    /// The shape of the values.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// Appends a record, whose offset must not be less than the last one.
    pub fn push(&mut self, record: KeyedRecord<'_>) {
        debug_assert!(self.entries.last().is_none_or(|last| last.offset <= record.offset), "offsets ascend");
        let mut append = |part: &[u8]| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(part);
            start..self.bytes.len()
        };
        let (key, value) = (record.key.map(&mut append), record.value.map(&mut append));
        self.entries.push(Entry { offset: record.offset, ts: record.ts, key, value });
    }

    /// Adds a header to the last record; `which` is its index in the shape.
    pub fn push_header(&mut self, which: usize, value: &[u8]) {
        debug_assert!(!self.entries.is_empty(), "a header belongs to a record");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.headers.push((self.entries.len().saturating_sub(1), which, start..self.bytes.len()));
    }

    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = KeyedRecord<'_>> {
        self.entries.iter().map(|entry| {
            let part = |range: &Range<usize>| &self.bytes[range.clone()];
            let (key, value) = (entry.key.as_ref().map(part), entry.value.as_ref().map(part));
            KeyedRecord { offset: entry.offset, ts: entry.ts, key, value }
        })
    }

    /// The headers of the record at index `place`: the index of each in the shape, and its value.
    pub fn headers(&self, place: usize) -> impl Iterator<Item = (usize, &[u8])> + Clone {
        let from = self.headers.partition_point(|(entry, ..)| *entry < place);
        let own = self.headers[from..].iter().take_while(move |(entry, ..)| *entry == place);
        own.map(|(_, which, value)| (*which, &self.bytes[value.clone()]))
    }

    /// Splits the list: the records before an offset, and the rest.
    #[cfg(any(feature = "kafka", test))]
    pub(super) fn part(&self, offset: u64) -> (Self, Self) {
        let (mut before, mut rest) = (self.emptied(), self.emptied());
        for (place, record) in self.iter().enumerate() {
            let part = if record.offset < offset { &mut before } else { &mut rest };
            part.push(record);
            self.headers(place).for_each(|(which, value)| part.push_header(which, value));
        }
        (before, rest)
    }

    /// An empty list with the same shape and file.
    pub(super) fn emptied(&self) -> Self {
        Self { shape: Arc::clone(&self.shape), file: self.file, ..Self::default() }
    }

    /// Removes all records.
    pub(super) fn clear(&mut self) {
        *self = self.emptied();
    }

    /// Bytes of keys, values and headers.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// A file that is one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDocument {
    /// The document.
    pub id: DocId,
    /// The file.
    pub path: PathBuf,
    /// The file's size in bytes when it was listed.
    pub bytes: u64,
}

/// The line of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) offset: u64,
    /// From 1.
    pub(super) number: u64,
    /// With its line end, if it has one.
    pub(super) bytes: &'a [u8],
}

impl Batch {
    /// Size for the limits of the queue, in bytes: of the lines and records, or of the named files.
    pub fn bytes(&self) -> u64 {
        match &self.payload {
            Payload::Lines { bytes, .. } => bytes.len() as u64,
            Payload::Files { files, .. } => files.iter().map(|file| file.bytes).sum(),
            Payload::Records(records) => records.bytes() as u64,
            Payload::Kept(documents) => documents.len_bytes() as u64,
        }
    }

    /// The position after its last record; `None` for documents of an earlier run.
    pub fn end(&self) -> Option<Position> {
        let is_read = !matches!(self.payload, Payload::Kept(_));
        is_read.then_some(Position { partition: self.partition, offset: self.next })
    }

    /// A batch of documents of an earlier run.
    pub fn kept(documents: Changes) -> Self {
        let records = documents.iter().count() as u64;
        let payload = Payload::Kept(documents);
        Self {
            input: "state".into(),
            partition: 0,
            records,
            next: 0,
            payload,
            letters: Vec::new(),
            seen: None,
        }
    }
}

/// The records in the lines of a batch. The first line has the number `first_line`, the first record the
/// offset `first`.
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

/// Whether a line is blank: it has a number but no offset.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii_start().is_empty()
}

/// The lines of a buffer, each with its line end.
fn split(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let from = rest;
        // `skip_until` on a slice finds the newline with the platform's `memchr`, and cannot fail.
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
        let payload = Payload::Lines { bytes: lines, first_line: 5, first: 10, rules: Arc::default() };
        let batch = Batch {
            input: "x".into(),
            partition: 7,
            records: 3,
            next: 13,
            payload,
            letters: Vec::new(),
            seen: None,
        };
        assert_eq!((batch.bytes(), batch.end()), (19, Some(Position { partition: 7, offset: 13 })));
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
        let batch = Batch {
            input: "x".into(),
            partition: 0,
            records: 3,
            next: 12,
            payload,
            letters: Vec::new(),
            seen: None,
        };
        assert_eq!(batch.bytes(), 5);
    }

    #[test]
    fn parts_have_their_headers() {
        let mut records = Records::default();
        for offset in [3, 5, 8, 9] {
            records.push(KeyedRecord { offset, ts: None, key: Some(b"k"), value: Some(b"v") });
            if offset != 5 {
                records.push_header(1, format!("h{offset}").as_bytes());
                records.push_header(0, b"");
            }
        }
        let told = |part: &Records| {
            let one = |(place, record): (usize, KeyedRecord<'_>)| {
                let headers = part.headers(place).map(|(n, value)| (n, value.to_vec()));
                (record.offset, headers.collect::<Vec<_>>())
            };
            part.iter().enumerate().map(one).collect::<Vec<_>>()
        };
        let whole = told(&records);
        assert_eq!(whole[2], (8, vec![(1, b"h8".to_vec()), (0, Vec::new())]));
        for (line, before) in [(0, 0), (3, 0), (4, 1), (6, 2), (9, 3), (10, 4)] {
            let (head, rest) = records.part(line);
            assert_eq!(
                (told(&head), told(&rest)),
                (whole[..before].to_vec(), whole[before..].to_vec()),
                "{line}"
            );
        }
    }
}
