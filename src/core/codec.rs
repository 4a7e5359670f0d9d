//! Changes of documents in one buffer: how they lie in memory, travel, and stand in the blocks of stored
//! state.
//!
//! Ids and values (or "ended") -> bytes. A record is
//!
//! ```text
//! id length u16 LE | value length u32 LE, or u32::MAX: ended | id | value
//! ```
//!
//! Invariants: the buffer holds whole records, nothing before, between or behind them; what is deserialized
//! is checked for it. What a value holds is the business of whoever puts it.
//!
//! ```
//! use dupflow_core::codec::Changes;
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
/// Where the length of a value would stand: the document has ended.
const ENDED: u32 = u32::MAX;

/// Changes of documents, in order: id and value, or id and nothing (ended). Whoever reads them lets later
/// ones of an id win.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    bytes: Vec<u8>,
}

/// One record of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'b> {
    /// The document's id.
    pub id: &'b [u8],
    /// Its value; `None` if it has ended.
    pub value: Option<&'b [u8]>,
    /// The record as it lies in the buffer.
    pub bytes: &'b [u8],
}

impl Changes {
    /// A document has this value from now on.
    ///
    /// # Panics
    /// If the id is longer than 65,535 bytes, or the value 2^32 - 1 bytes or longer.
    pub fn put(&mut self, id: &[u8], value: &[u8]) {
        self.put_with(id, |bytes| bytes.extend_from_slice(value));
    }

    /// The same, of a value that `write` appends to what is there.
    ///
    /// # Panics
    /// As [`Self::put`], and if `write` takes bytes away.
    pub fn put_with(&mut self, id: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let head = self.begin(id);
        let start = self.bytes.len();
        write(&mut self.bytes);
        let length = self.bytes.len().checked_sub(start).expect("a value is appended");
        let length = u32::try_from(length).ok().filter(|length| *length != ENDED);
        let length = length.expect("a value is shorter than 2^32 - 1 bytes");
        self.bytes[head + 2..head + HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
    }

    /// A document has ended.
    ///
    /// # Panics
    /// If the id is longer than 65,535 bytes.
    pub fn end(&mut self, id: &[u8]) {
        self.begin(id);
    }

    /// Appends the head, as of an ended document, and the id; where the head begins.
    fn begin(&mut self, id: &[u8]) -> usize {
        let head = self.bytes.len();
        let length = u16::try_from(id.len()).expect("an id has at most 65,535 bytes");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&ENDED.to_le_bytes());
        self.bytes.extend_from_slice(id);
        head
    }

    /// Appends a record as it lay in another buffer.
    pub fn copy(&mut self, record: Record<'_>) {
        self.bytes.extend_from_slice(record.bytes);
    }

    /// Ids and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.records().map(|record| (record.id, record.value))
    }

    /// The records, in order.
    pub fn records(&self) -> Records<'_> {
        Records { rest: &self.bytes }
    }

    /// Bytes of all records.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// The records of a buffer. Ends before the first one that is not whole.
#[derive(Clone, Debug)]
pub struct Records<'b> {
    rest: &'b [u8],
}

impl<'b> Records<'b> {
    /// Of bytes that come from elsewhere.
    pub fn of(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes that are not read yet; where the iterator has ended, those that are no whole record.
    pub fn rest(&self) -> &'b [u8] {
        self.rest
    }
}

impl<'b> Iterator for Records<'b> {
    type Item = Record<'b>;

    fn next(&mut self) -> Option<Record<'b>> {
        let (id_length, rest) = self.rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (id, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*id_length)))?;
        let length = Some(u32::from_le_bytes(*length)).filter(|length| *length != ENDED);
        // On a machine of 16 bits no buffer is so long.
        let (value, rest) = rest.split_at_checked(usize::try_from(length.unwrap_or(0)).ok()?)?;
        let bytes = &self.rest[..self.rest.len() - rest.len()];
        self.rest = rest;
        Some(Record { id, value: length.map(|_| value), bytes })
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

/// Takes bytes over, if they are whole records.
struct WholeRecords;

impl<'de> Visitor<'de> for WholeRecords {
    type Value = Changes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes of whole records")
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Changes, E> {
        let mut records = Records::of(&bytes);
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

    /// Stored state holds these bytes: they never change.
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
