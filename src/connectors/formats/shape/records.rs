//! Records with keys, as a log has them.

use std::ops::Range;
use std::sync::Arc;

use super::super::bad_record::RecordPlace;
use super::settings::RecordShape;
use dupflow_core::hash;
use dupflow_core::time::LastRecord;

/// Records with keys, and the [`RecordShape`] of their values. By default the key is the document's id, the
/// value is its text, and a missing or empty value deletes the document.
///
/// All bytes are in one buffer, so a batch takes two or three allocations for any number of records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyedRecords {
    shape: Arc<RecordShape>,
    /// If the records are from a file: the offset of its first record.
    file: Option<u64>,
    bytes: Vec<u8>,
    entries: Vec<RecordEntry>,
    /// Headers: the index of the record in `entries`, the index of the header in the shape, and the value; in
    /// order of record.
    headers: Vec<(usize, usize, Range<usize>)>,
}

/// One record of [`KeyedRecords`].
#[derive(Clone, Debug, PartialEq)]
struct RecordEntry {
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

impl KeyedRecord<'_> {
    /// What is remembered of the record.
    pub fn remembered(&self) -> LastRecord {
        // A missing part differs from an empty one.
        let part = |seed: u64, part: Option<&[u8]>| part.map_or(!seed, |bytes| hash::bytes(seed, bytes));
        let time = self.ts.map(|ts| ts.to_bits().to_le_bytes());
        let digest = part(part(part(0, self.key), self.value), time.as_ref().map(|time| &time[..]));
        LastRecord { offset: self.offset, digest }
    }
}

impl KeyedRecords {
    /// An empty list with this shape.
    pub fn with_shape(shape: Arc<RecordShape>) -> Self {
        Self { shape, ..Self::default() }
    }

    /// An empty list for a file whose first record has the offset `first`.
    pub(crate) fn for_file(shape: Arc<RecordShape>, first: u64) -> Self {
        Self { shape, file: Some(first), ..Self::default() }
    }

    /// Where the record at an offset is, for messages.
    pub(crate) fn place(&self, offset: u64) -> RecordPlace {
        self.file.map_or(RecordPlace::Offset(offset), |first| RecordPlace::Record(offset - first))
    }

    /// The shape of the values.
    pub fn shape(&self) -> &Arc<RecordShape> {
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
        self.entries.push(RecordEntry { offset: record.offset, ts: record.ts, key, value });
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
        self.entries.iter().map(|entry| self.record(entry))
    }

    /// The last record.
    pub(crate) fn last(&self) -> Option<KeyedRecord<'_>> {
        self.entries.last().map(|entry| self.record(entry))
    }

    fn record(&self, entry: &RecordEntry) -> KeyedRecord<'_> {
        let part = |range: &Range<usize>| &self.bytes[range.clone()];
        let (key, value) = (entry.key.as_ref().map(part), entry.value.as_ref().map(part));
        KeyedRecord { offset: entry.offset, ts: entry.ts, key, value }
    }

    /// The headers of the record at index `place`: the index of each in the shape, and its value.
    pub fn headers(&self, place: usize) -> impl Iterator<Item = (usize, &[u8])> + Clone {
        let from = self.headers.partition_point(|(entry, ..)| *entry < place);
        let own = self.headers[from..].iter().take_while(move |(entry, ..)| *entry == place);
        own.map(|(_, which, value)| (*which, &self.bytes[value.clone()]))
    }

    /// Splits the list: the records before an offset, and the rest.
    #[cfg(any(feature = "kafka", test))]
    pub(crate) fn part(&self, offset: u64) -> (Self, Self) {
        let (mut before, mut rest) = (self.emptied(), self.emptied());
        for (place, record) in self.iter().enumerate() {
            let part = if record.offset < offset { &mut before } else { &mut rest };
            part.push(record);
            self.headers(place).for_each(|(which, value)| part.push_header(which, value));
        }
        (before, rest)
    }

    /// An empty list with the same shape and file.
    pub(crate) fn emptied(&self) -> Self {
        Self { shape: Arc::clone(&self.shape), file: self.file, ..Self::default() }
    }

    /// Removes all records.
    pub(crate) fn clear(&mut self) {
        *self = self.emptied();
    }

    /// Bytes of keys, values and headers.
    pub(crate) fn bytes(&self) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_differ_in_every_part() {
        let of = |key: Option<&str>, value: Option<&str>, ts| {
            let (key, value) = (key.map(str::as_bytes), value.map(str::as_bytes));
            KeyedRecord { offset: 7, ts, key, value }.remembered()
        };
        let mut all = vec![
            of(None, None, None),
            of(Some(""), None, None),
            of(None, Some(""), None),
            of(None, None, Some(0.0)),
            of(Some("a"), Some("b"), Some(1.5)),
            of(Some("a"), Some("b"), Some(1.501)),
            of(Some("ab"), Some(""), Some(1.5)),
            of(Some("b"), Some("a"), Some(1.5)),
        ];
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!(of(Some("a"), None, Some(2.0)), of(Some("a"), None, Some(2.0)));
        assert_eq!(all[0].offset, 7);
    }

    #[test]
    fn records_are_returned_as_pushed() {
        let given = [
            KeyedRecord { offset: 3, ts: Some(1.5), key: Some(b"a"), value: Some(b"text") },
            KeyedRecord { offset: 4, ts: None, key: None, value: Some(b"") },
            KeyedRecord { offset: 9, ts: None, key: Some(b""), value: None },
        ];
        let mut records = KeyedRecords::default();
        assert!(records.is_empty());
        given.iter().for_each(|record| records.push(*record));
        assert_eq!((records.len(), records.iter().collect::<Vec<_>>()), (3, given.to_vec()));
        assert_eq!(records.bytes(), 5);
    }

    #[test]
    fn split_records_keep_their_headers() {
        let mut records = KeyedRecords::default();
        for offset in [3, 5, 8, 9] {
            records.push(KeyedRecord { offset, ts: None, key: Some(b"k"), value: Some(b"v") });
            if offset != 5 {
                records.push_header(1, format!("h{offset}").as_bytes());
                records.push_header(0, b"");
            }
        }
        let summary = |part: &KeyedRecords| {
            let one = |(place, record): (usize, KeyedRecord<'_>)| {
                let headers = part.headers(place).map(|(n, value)| (n, value.to_vec()));
                (record.offset, headers.collect::<Vec<_>>())
            };
            part.iter().enumerate().map(one).collect::<Vec<_>>()
        };
        let whole = summary(&records);
        assert_eq!(whole[2], (8, vec![(1, b"h8".to_vec()), (0, Vec::new())]));
        for (line, before) in [(0, 0), (3, 0), (4, 1), (6, 2), (9, 3), (10, 4)] {
            let (head, rest) = records.part(line);
            assert_eq!(
                (summary(&head), summary(&rest)),
                (whole[..before].to_vec(), whole[before..].to_vec()),
                "{line}"
            );
        }
    }
}
