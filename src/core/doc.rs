//! Documents and the events that change them.
//!
//! A corpus is what is left after a sequence of events: the last event of an id wins, by its [`Position`].

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a document: UTF-8, 1 to [`DocId::MAX_BYTES`] bytes, kept verbatim from input to output.
///
/// Ordered by bytes. 24 bytes; an id of up to [`DocId::INLINE_BYTES`] bytes is in them, clones of a longer
/// one share its text.
#[derive(Clone)]
pub struct DocId(Text);

#[derive(Clone)]
enum Text {
    /// The length, and the bytes followed by zeros.
    Short(u8, [u8; DocId::INLINE_BYTES]),
    Long(Arc<str>),
}

impl DocId {
    /// The longest id, in bytes, inclusive.
    pub const MAX_BYTES: usize = 1024;

    /// The longest id that takes no memory of its own, in bytes, inclusive.
    pub const INLINE_BYTES: usize = 22;

    /// Accepts an id of 1 to [`Self::MAX_BYTES`] bytes; `None` for any other length.
    pub fn new(id: &str) -> Option<Self> {
        (1..=Self::MAX_BYTES).contains(&id.len()).then(|| Self(Text::of(id)))
    }

    /// The id as it was given.
    ///
    /// # Panics
    /// Never: an id is made of a text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Short(..) => str::from_utf8(self.as_bytes()).expect("an id is made of a text"),
            Text::Long(text) => text,
        }
    }

    /// Its bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Short(len, bytes) => &bytes[..usize::from(*len)],
            Text::Long(text) => text.as_bytes(),
        }
    }
}

impl Text {
    #[inline]
    fn of(id: &str) -> Self {
        match u8::try_from(id.len()) {
            Ok(len) if id.len() <= DocId::INLINE_BYTES => {
                let mut bytes = [0; DocId::INLINE_BYTES];
                bytes[..id.len()].copy_from_slice(id.as_bytes());
                Self::Short(len, bytes)
            }
            _ => Self::Long(id.into()),
        }
    }
}

impl Ord for DocId {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            // Of two that differ in length only by zeros, the shorter one comes first, as it does among
            // slices.
            (Text::Short(len, bytes), Text::Short(len2, bytes2)) => (bytes, len).cmp(&(bytes2, len2)),
            _ => self.as_bytes().cmp(other.as_bytes()),
        }
    }
}

impl PartialOrd for DocId {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for DocId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Text::Short(len, bytes), Text::Short(len2, bytes2)) => len == len2 && bytes == bytes2,
            (Text::Long(text), Text::Long(text2)) => text == text2,
            _ => false,
        }
    }
}

impl Eq for DocId {}

impl Hash for DocId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Borrow<str> for DocId {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl Serialize for DocId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for DocId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Visitor)
    }
}

struct Visitor;

impl serde::de::Visitor<'_> for Visitor {
    type Value = DocId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an id of 1 to {} bytes", DocId::MAX_BYTES)
    }

    fn visit_str<E: serde::de::Error>(self, id: &str) -> Result<DocId, E> {
        DocId::new(id).ok_or_else(|| E::invalid_length(id.len(), &self))
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Where an event stands in its source: a partition, and an offset within it.
///
/// Offsets of a partition ascend in the order of its events and may have gaps; bad records have one too.
/// Between partitions there is no order in time: what counts as the last event of an id is decided within the
/// one partition that the id lives in; which one that is where ids move stands in `dataflow/homes.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The partition. A recorded feed is partition 0, all its inputs together.
    pub partition: u32,
    /// The offset within it. In a recorded feed records are numbered from 0 over all inputs in order, bad
    /// ones included.
    pub offset: u64,
}

/// A record that is no event, on its way to where such records are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    /// The input as the user named it: a file, a topic.
    pub input: Arc<str>,
    /// Where it stands.
    pub position: Position,
    /// Why it is no event, in one word.
    pub reason: Cow<'static, str>,
    /// Its key, if it has one.
    pub key: Option<Vec<u8>>,
    /// Its value or line, as it was read; `None` if it has none.
    pub raw: Option<Vec<u8>>,
}

/// Stands before each further field of an event's text: the record separator of ASCII.
pub const FIELD_SEPARATOR: char = '\u{1e}';

/// A text that has none of [`FIELD_SEPARATOR`], each being replaced by a space: both part tokens, neither is
/// in one.
pub fn without_separators(text: &str) -> Cow<'_, str> {
    if text.contains(FIELD_SEPARATOR) { text.replace(FIELD_SEPARATOR, " ").into() } else { text.into() }
}

/// What is told of a document alive beside its text: of its last event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// When it happened, in unix seconds as the source says; `None` if it does not.
    pub ts: Option<f64>,
    /// The length of the text as it was read, in bytes; 2^32 - 1 stands for that and all above. 0 also for a
    /// document that was kept by a version of the program that did not keep lengths.
    pub bytes: u32,
    /// Where it stands in the source.
    pub position: Position,
}

/// What an epoch has done to a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DocChange {
    /// Whose change it is.
    pub id: DocId,
    /// What holds from now on; `None` if it is not alive any more.
    pub now: Option<Facts>,
}

/// One event, borrowing its text from the buffer that it was read into.
#[derive(Clone, Debug, PartialEq)]
pub struct DocEvent<'a> {
    /// Whose event it is.
    pub id: DocId,
    /// When it happened, in unix seconds as the source says; `None` if it does not.
    pub ts: Option<f64>,
    /// When its record was written, in unix seconds, if it is one of a topic that says so: what decides
    /// between partitions, whatever the payload has for a `ts`.
    pub written: Option<f64>,
    /// The text now in force, or `None` for a delete. Where further fields are read, each follows it after a
    /// [`FIELD_SEPARATOR`], in their order; then none is within a part.
    pub text: Option<Cow<'a, str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_one_to_1024_bytes() {
        assert!(DocId::new("").is_none());
        assert!(DocId::new("a").is_some());
        assert!(DocId::new(&"é".repeat(512)).is_some());
        assert!(DocId::new(&"é".repeat(513)).is_none());
    }

    /// At and beyond the length that is kept inline: as texts are, in every respect.
    #[test]
    fn ids_compare_as_their_texts() {
        assert_eq!(size_of::<Option<DocId>>(), 24);
        let texts: Vec<String> = ["a", "a\0", "a\0\0", "a\0b", "b", "é", "zz"]
            .into_iter()
            .flat_map(|text| [0, 19, 20, 21, 22, 23, 40].map(|more| format!("{text}{}", "a".repeat(more))))
            .chain([21, 22, 23].map(|len| "a\0".repeat(len)))
            .collect();
        let hash = |id: &str| {
            let mut hasher = crate::hash::AsItIs::default();
            id.hash(&mut hasher);
            hasher.finish()
        };
        for a in &texts {
            let id = DocId::new(a).unwrap();
            assert_eq!((id.as_str(), id.as_bytes(), id.to_string()), (a.as_str(), a.as_bytes(), a.clone()));
            let mut hasher = crate::hash::AsItIs::default();
            id.hash(&mut hasher);
            assert_eq!(hasher.finish(), hash(a));
            let json = serde_json::to_string(&id).unwrap();
            assert_eq!(json, serde_json::to_string(a).unwrap());
            assert_eq!(serde_json::from_str::<DocId>(&json).unwrap(), id);
            for b in &texts {
                let other = DocId::new(b).unwrap();
                assert_eq!(id.cmp(&other), a.cmp(b), "{a:?} {b:?}");
                assert_eq!(id == other, a == b);
            }
        }
        assert!(serde_json::from_str::<DocId>("\"\"").is_err());
    }

    #[test]
    fn separators_become_spaces() {
        assert_eq!(without_separators("a\u{1e}\u{1e}b\u{1f}"), "a  b\u{1f}");
        assert!(matches!(without_separators("a b"), Cow::Borrowed("a b")));
    }
}
