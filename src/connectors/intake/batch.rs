//! Batches of raw records, which readers give to workers.

use std::path::PathBuf;
use std::sync::Arc;

use super::events::EventBuffer;
use crate::formats::feed::LineRules;
use crate::formats::{KeyedRecords, line_length};
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::{DocId, Letter, Position};
use dupflow_core::time::LastRecord;
use dupflow_run::watch::WatchChange;

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
    Records(KeyedRecords),
    /// Events that need no decoding.
    Events {
        /// The events.
        events: EventBuffer,
        /// The offset of the first one; the others follow without gaps.
        first: u64,
    },
    /// Documents that an earlier run stored. They have no position in this source.
    Kept(Changes),
    /// Changes of the watch list. They have no position, and count as no records.
    Watched(Vec<WatchChange>),
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
pub(crate) struct RecordLine<'a> {
    pub(crate) offset: u64,
    /// From 1.
    pub(crate) number: u64,
    /// With its line end, if it has one.
    pub(crate) bytes: &'a [u8],
}

impl Batch {
    /// Size for the limits of the queue, in bytes: of the lines and records, or of the named files.
    pub fn bytes(&self) -> u64 {
        match &self.payload {
            Payload::Lines { bytes, .. } => bytes.len() as u64,
            Payload::Files { files, .. } => files.iter().map(|file| file.bytes).sum(),
            Payload::Records(records) => records.bytes() as u64,
            Payload::Events { events, .. } => events.bytes() as u64,
            Payload::Kept(documents) => documents.len_bytes() as u64,
            Payload::Watched(changes) => {
                changes.iter().map(|change| change.text.as_ref().map_or(0, |text| text.len() as u64)).sum()
            }
        }
    }

    /// The position after its last record; `None` for documents of an earlier run, and for watches.
    pub fn end(&self) -> Option<Position> {
        let is_read = !matches!(self.payload, Payload::Kept(_) | Payload::Watched(_));
        is_read.then_some(Position { partition: self.partition, offset: self.next })
    }

    /// Its last record and the partition, if it has records with keys.
    pub fn last_record(&self) -> Option<(u32, LastRecord)> {
        let Payload::Records(records) = &self.payload else { return None };
        records.last().map(|last| (self.partition, last.remembered()))
    }

    /// A batch of documents of an earlier run.
    pub fn kept(documents: Changes) -> Self {
        let records = documents.iter().count() as u64;
        Self::beside("state", records, Payload::Kept(documents))
    }

    /// A batch of changes of the watch list.
    pub fn watched(changes: Vec<WatchChange>) -> Self {
        Self::beside("watch", 0, Payload::Watched(changes))
    }

    /// A batch of something that is not read from the source.
    fn beside(input: &str, records: u64, payload: Payload) -> Self {
        Self { input: input.into(), partition: 0, records, next: 0, payload, letters: Vec::new(), seen: None }
    }
}

/// The records in the lines of a batch. The first line has the number `first_line`, the first record the
/// offset `first`.
pub(crate) fn records(bytes: &[u8], first_line: u64, first: u64) -> impl Iterator<Item = RecordLine<'_>> {
    let (mut offset, mut number) = (first, first_line);
    split(bytes).filter_map(move |bytes| {
        let line = RecordLine { offset, number, bytes };
        let is_record = !is_blank(bytes);
        offset += u64::from(is_record);
        number += 1;
        is_record.then_some(line)
    })
}

/// Whether a line is blank: it has a number but no offset.
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii_start().is_empty()
}

/// The lines of a buffer, each with its line end.
fn split(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let from = rest;
        let length = line_length(from);
        rest = &from[length..];
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
}
