//! The binary encoding of document changes, in memory, between processes and in the blocks of stored state.
//!
//! In: ids with values or "ended". Out: bytes. A record is
//!
//! ```text
//! id length u16 LE | value length u32 LE, or u32::MAX: ended | id | value
//! ```
//!
//! Invariant: the buffer holds whole records and nothing else; deserialization checks this. The contents of
//! values are not interpreted here.
//!
//! ```
//! use dupflow_core::doc::changes::Changes;
//!
//! let mut changes = Changes::default();
//! changes.put(b"a", b"first");
//! changes.end(b"a");
//! assert_eq!(changes.iter().collect::<Vec<_>>(), [(&b"a"[..], Some(&b"first"[..])), (b"a", None)]);
//! ```

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes before the id of a record.
const HEAD_BYTES: usize = 6;
/// In place of the length of a value: the document has ended.
const ENDED: u32 = u32::MAX;

/// Changes of documents, in order: id and value, or id and nothing (ended). A later change of an id replaces
/// earlier ones; the reader applies this rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    bytes: Vec<u8>,
}

/// One record of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRecord<'b> {
    /// The document's id.
    pub id: &'b [u8],
    /// Its value; `None` if it has ended.
    pub value: Option<&'b [u8]>,
    /// The encoded record.
    pub bytes: &'b [u8],
}

impl Changes {
    /// Appends a document's new value.
    ///
    /// # Panics
    /// If the id is longer than 65,535 bytes, or the value 2^32 - 1 bytes or longer.
    pub fn put(&mut self, id: &[u8], value: &[u8]) {
        self.put_with(id, |bytes| bytes.extend_from_slice(value));
    }

    /// Appends a document's new value, which `write` appends to the buffer.
    ///
    /// # Panics
    /// As [`Self::put`], and if `write` removes bytes.
    pub fn put_with(&mut self, id: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let head = self.begin(id);
        let start = self.bytes.len();
        write(&mut self.bytes);
        let length = self.bytes.len().checked_sub(start).expect("a value is appended");
        let length = u32::try_from(length).ok().filter(|length| *length != ENDED);
        let length = length.expect("a value is shorter than 2^32 - 1 bytes");
        self.bytes[head + 2..head + HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
    }

    /// Appends the end of a document.
    ///
    /// # Panics
    /// If the id is longer than 65,535 bytes.
    pub fn end(&mut self, id: &[u8]) {
        self.begin(id);
    }

    /// Appends the head of an ended document and the id; returns the position of the head.
    fn begin(&mut self, id: &[u8]) -> usize {
        let head = self.bytes.len();
        let length = u16::try_from(id.len()).expect("an id has at most 65,535 bytes");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&ENDED.to_le_bytes());
        self.bytes.extend_from_slice(id);
        head
    }

    /// Appends a record of another buffer.
    pub fn copy(&mut self, record: ChangeRecord<'_>) {
        self.bytes.extend_from_slice(record.bytes);
    }

    /// Ids and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.records().map(|record| (record.id, record.value))
    }

    /// The records, in order.
    pub fn records(&self) -> ChangeRecords<'_> {
        ChangeRecords { rest: &self.bytes }
    }

    /// Length of the buffer in bytes.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Iterator over the records of a buffer. It ends before the first incomplete record.
#[derive(Clone, Debug)]
pub struct ChangeRecords<'b> {
    rest: &'b [u8],
}

impl<'b> ChangeRecords<'b> {
    /// The records of unchecked bytes.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not yet read; after the end of the iterator, those that are not a whole record.
    pub fn rest(&self) -> &'b [u8] {
        self.rest
    }
}

impl<'b> Iterator for ChangeRecords<'b> {
    type Item = ChangeRecord<'b>;

    fn next(&mut self) -> Option<ChangeRecord<'b>> {
        let (id_length, rest) = self.rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (id, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*id_length)))?;
        let length = Some(u32::from_le_bytes(*length)).filter(|length| *length != ENDED);
        // The conversion fails only on 16-bit machines, where no buffer is that long.
        let (value, rest) = rest.split_at_checked(usize::try_from(length.unwrap_or(0)).ok()?)?;
        let bytes = &self.rest[..self.rest.len() - rest.len()];
        self.rest = rest;
        Some(ChangeRecord { id, value: length.map(|_| value), bytes })
    }
}

impl Serialize for Changes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.bytes)
    }
}

impl<'de> Deserialize<'de> for Changes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_byte_buf(WholeRecords)
    }
}

/// Accepts bytes that are whole records.
struct WholeRecords;

impl<'de> Visitor<'de> for WholeRecords {
    type Value = Changes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes of whole records")
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Changes, E> {
        let mut records = ChangeRecords::new(&bytes);
        records.by_ref().for_each(drop);
        match records.rest().len() {
            0 => Ok(Changes { bytes }),
            left => {
                Err(E::custom(format_args!("expected whole records, found {left} bytes of none at the end")))
            }
        }
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Changes, E> {
        self.visit_byte_buf(bytes.to_vec())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Changes, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        self.visit_byte_buf(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Changes {
        let mut changes = Changes::default();
        changes.put(b"ab", b"xyz");
        changes.end(b"c");
        changes.put_with(b"", |bytes| bytes.push(7));
        changes.put(b"d", b"");
        changes
    }

    /// Stored state holds these bytes: they must never change.
    #[test]
    fn golden_bytes() {
        let expected = b"\x02\0\x03\0\0\0abxyz\x01\0\xff\xff\xff\xffc\0\0\x01\0\0\0\x07\x01\0\0\0\0\0d";
        assert_eq!(example().bytes, expected);
        assert_eq!(example().len_bytes(), expected.len());
    }

    #[test]
    fn records_come_back_in_order() {
        let changes = example();
        let expected: [(&[u8], Option<&[u8]>); 4] =
            [(b"ab", Some(b"xyz")), (b"c", None), (b"", Some(&[7])), (b"d", Some(b""))];
        assert_eq!(changes.iter().collect::<Vec<_>>(), expected);
        let mut copied = Changes::default();
        changes.records().for_each(|record| copied.copy(record));
        assert_eq!(copied, changes);
        assert!(Changes::default().is_empty() && Changes::default().iter().next().is_none());
    }

    #[test]
    fn the_longest_id() {
        let id = vec![1; 65_535];
        let mut changes = Changes::default();
        changes.put(&id, b"v");
        assert_eq!(changes.iter().next(), Some((&id[..], Some(&b"v"[..]))));
    }

    #[test]
    fn only_whole_records_are_taken_over() {
        let json = serde_json::to_string(&example()).unwrap();
        assert_eq!(serde_json::from_str::<Changes>(&json).unwrap(), example());
        let bytes = example().bytes;
        let whole = (0..=bytes.len())
            .filter(|end| WholeRecords.visit_bytes::<serde::de::value::Error>(&bytes[..*end]).is_ok());
        assert_eq!(whole.collect::<Vec<_>>(), [0, 11, 18, 25, 32]);
    }
}
