//! What a reader hands to the workers.

use std::io::BufRead;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::{LineRules, Place, Shape};
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::{DocId, Letter, Position};

/// Records of one input and one partition, in order of offset, not yet looked into.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The input as the user named it, for messages.
    pub input: Arc<str>,
    /// The partition of all its records.
    pub partition: u32,
    /// Number of records.
    pub records: u64,
    /// The offset after its last record: whoever goes on from there misses nothing and repeats nothing. A
    /// batch without records says only this, where a partition was read on and nothing is to be handed over.
    pub next: u64,
    /// The records.
    pub payload: Payload,
    /// Records before [`Self::next`] that the reader found to be bad, if they are kept with their epoch.
    pub letters: Vec<Letter>,
    /// Where each of several processes reads all: a hash of what the batch was for all of them.
    pub seen: Option<u64>,
}

/// The records of a [`Batch`].
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Lines of a feed, whole as they were read, with their ends (the last line of an input may have none);
    /// some may be blank, which are no records.
    Lines {
        /// The lines.
        bytes: Vec<u8>,
        /// The number of the first one in the input, from 1, blank lines included.
        first_line: u64,
        /// The offset of the first record; the others follow without gaps.
        first: u64,
        /// How they are understood.
        rules: Arc<LineRules>,
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
    /// Documents as an earlier run kept them: they stand in no partition.
    Kept(Changes),
}

/// Records with keys, and the [`Shape`] in which their values hold documents; by default the key is the
/// document's id, the value its text, and no value or an empty one ends the document.
///
/// All bytes lie in one buffer, so that a batch is two or three allocations however many records it has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    shape: Arc<Shape>,
    /// The offset of the first record of their file, if they are of one.
    file: Option<u64>,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Headers: the record's place in `entries`, which of the shape's headers, the value; in order of record.
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

/// One record with a key, borrowed from where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyedRecord<'a> {
    /// Its offset in its partition; offsets ascend and may have gaps. Records of several documents may share
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
    /// No records, of this shape.
    pub fn of(shape: Arc<Shape>) -> Self {
        Self { shape, ..Self::default() }
    }

    /// No records, of a file whose first record has this offset.
    pub(super) fn of_file(shape: Arc<Shape>, first: u64) -> Self {
        Self { shape, file: Some(first), ..Self::default() }
    }

    /// Where the record at an offset stands, for messages.
    pub(super) fn place(&self, offset: u64) -> Place {
        self.file.map_or(Place::Offset(offset), |first| Place::Record(offset - first))
    }

    /// In which shape their values are.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// Appends a record, whose offset must not be less than those before.
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

    /// Gives the last record a header: `which` of those that the shape names.
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

    /// The headers of the record at this place, from 0: which of those that the shape names, and its value.
    pub fn headers(&self, place: usize) -> impl Iterator<Item = (usize, &[u8])> + Clone {
        let from = self.headers.partition_point(|(entry, ..)| *entry < place);
        let own = self.headers[from..].iter().take_while(move |(entry, ..)| *entry == place);
        own.map(|(_, which, value)| (*which, &self.bytes[value.clone()]))
    }

    /// Parts them: those before an offset, and the rest.
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

    /// None, of the same shape and file.
    pub(super) fn emptied(&self) -> Self {
        Self { shape: Arc::clone(&self.shape), file: self.file, ..Self::default() }
    }

    /// Forgets them.
    pub(super) fn clear(&mut self) {
        *self = self.emptied();
    }

    /// Bytes of keys, values and headers.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
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
            Payload::Records(records) => records.bytes() as u64,
            Payload::Kept(documents) => documents.len_bytes() as u64,
        }
    }

    /// The position after its last record; none if its documents are those of an earlier run.
    pub fn end(&self) -> Option<Position> {
        let is_read = !matches!(self.payload, Payload::Kept(_));
        is_read.then_some(Position { partition: self.partition, offset: self.next })
    }

    /// Documents of an earlier run.
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

/// The records among the lines of a batch whose first line has the number `first_line`, and its first record
/// the offset `first`.
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
