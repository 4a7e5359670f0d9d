//! The id of a document.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The first byte of ids of a reference, and of those of the corpus that begin with it too. It is the
/// smallest byte, so that ids of the reference sort before those of the corpus.
const SIDE: u8 = 0;
/// The second byte of ids of a reference.
const REFERENCE: u8 = b'o';
/// The second byte of ids of the corpus that begin with [`SIDE`]; greater than [`REFERENCE`].
const BESIDE: u8 = b'p';
/// Bytes that the id of a unit has behind that of its document: two numbers in hexadecimal.
const UNIT_BYTES: usize = 16 + 8;

/// The id of a document: UTF-8, 1 to [`DocId::MAX_BYTES`] bytes, unchanged from input to output.
///
/// Ordered by bytes. 24 bytes in memory; an id of up to [`DocId::INLINE_BYTES`] bytes is stored inside them,
/// clones of a longer id share its text.
#[derive(Clone)]
pub struct DocId(IdText);

#[derive(Clone)]
enum IdText {
    /// The length, and the bytes followed by zeros.
    Short(u8, [u8; DocId::INLINE_BYTES]),
    Long(Arc<str>),
}

impl DocId {
    /// The longest id, in bytes, inclusive.
    pub const MAX_BYTES: usize = 1024;

    /// The longest id that is stored without an allocation, in bytes, inclusive.
    pub const INLINE_BYTES: usize = 22;

    /// Accepts an id of 1 to [`Self::MAX_BYTES`] bytes; `None` for any other length.
    pub fn new(id: &str) -> Option<Self> {
        (1..=Self::MAX_BYTES).contains(&id.len()).then(|| Self(IdText::new(id)))
    }

    /// The id as text.
    ///
    /// # Panics
    /// Never: an id is constructed from valid UTF-8.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            IdText::Short(..) => str::from_utf8(self.as_bytes()).expect("an id is made of a text"),
            IdText::Long(text) => text,
        }
    }

    /// The id in a corpus that is compared with a reference: as it is, unless it begins as those of the
    /// [reference](Self::in_reference) do.
    #[must_use]
    pub fn beside_reference(self) -> Self {
        if self.as_bytes().first() == Some(&SIDE) { self.sided(BESIDE) } else { self }
    }

    /// The id of a document of a reference, which is no id of the corpus and sorts before all of them. The id
    /// of a longer text than [`Self::MAX_BYTES`] - 2 is shortened, and ends with a hash of it.
    #[must_use]
    pub fn in_reference(self) -> Self {
        self.sided(REFERENCE)
    }

    /// Whether it is an id of a reference, in a corpus that is compared with one.
    pub fn is_of_reference(&self) -> bool {
        self.as_bytes().starts_with(&[SIDE, REFERENCE])
    }

    /// The id as it was read, in a corpus that is compared with a reference.
    pub fn without_side(&self) -> &str {
        let text = self.as_str();
        text.strip_prefix(char::from(SIDE)).and_then(|rest| rest.get(1..)).unwrap_or(text)
    }

    /// The id as it was read and, in a corpus that is compared with a reference, true of a document of the
    /// reference.
    pub fn shown(&self, has_reference: bool) -> (&str, Option<bool>) {
        if has_reference {
            (self.without_side(), self.is_of_reference().then_some(true))
        } else {
            (self.as_str(), None)
        }
    }

    fn sided(self, side: u8) -> Self {
        let text = self.as_str();
        let prefix = String::from_utf8_lossy(&[SIDE, side]).into_owned();
        Self::new(&(prefix.clone() + text)).unwrap_or_else(|| {
            let most = text.floor_char_boundary(Self::MAX_BYTES - 2 - 16);
            let hash = crate::hash::bytes(u64::from(side), text.as_bytes());
            Self(IdText::new(&format!("{prefix}{}{hash:016x}", &text[..most])))
        })
    }

    /// The id of a unit of this document: by the hash of its content, and the number of units before it with
    /// that content. It may be longer than [`Self::MAX_BYTES`], and
    /// then stays in its process.
    #[must_use]
    pub fn of_unit(&self, content: u64, occurrence: u32) -> Self {
        Self(IdText::new(&format!("{self}{content:016x}{occurrence:08x}")))
    }

    /// The document of an id [of a unit](Self::of_unit).
    pub fn document_of_unit(&self) -> &str {
        self.parts_of_unit()[0]
    }

    /// What an id [of a unit](Self::of_unit) is made of: its document, and in hexadecimal the hash of its
    /// content and the number of units before it with that content.
    pub fn parts_of_unit(&self) -> [&str; 3] {
        let text = self.as_str();
        let (document, unit) = text.split_at(text.len() - UNIT_BYTES);
        let (content, occurrence) = unit.split_at(16);
        [document, content, occurrence]
    }

    /// Words of an id that is stored without an allocation.
    pub const WORDS: usize = 3;

    /// The id as words, the last byte of which is 0; `None` if it is longer than [`Self::INLINE_BYTES`].
    pub fn to_words(&self) -> Option<[u64; Self::WORDS]> {
        let IdText::Short(len, text) = &self.0 else { return None };
        let mut bytes = [0; 8 * Self::WORDS];
        bytes[0] = *len;
        bytes[1..=Self::INLINE_BYTES].copy_from_slice(text);
        Some(bytemuck::cast(bytes))
    }

    /// The id of [words](Self::to_words); the last byte is ignored.
    pub fn from_words(words: [u64; Self::WORDS]) -> Self {
        let bytes: [u8; 8 * Self::WORDS] = bytemuck::cast(words);
        let mut text = [0; Self::INLINE_BYTES];
        text.copy_from_slice(&bytes[1..=Self::INLINE_BYTES]);
        Self(IdText::Short(bytes[0], text))
    }

    /// The bytes of the id.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            IdText::Short(len, bytes) => &bytes[..usize::from(*len)],
            IdText::Long(text) => text.as_bytes(),
        }
    }
}

impl IdText {
    #[inline]
    fn new(id: &str) -> Self {
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
            // If one id is the other followed by zeros, the shorter one is less, as with slices.
            (IdText::Short(len, bytes), IdText::Short(len2, bytes2)) => (bytes, len).cmp(&(bytes2, len2)),
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
            (IdText::Short(len, bytes), IdText::Short(len2, bytes2)) => len == len2 && bytes == bytes2,
            (IdText::Long(text), IdText::Long(text2)) => text == text2,
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
        deserializer.deserialize_str(DocIdVisitor)
    }
}

struct DocIdVisitor;

impl serde::de::Visitor<'_> for DocIdVisitor {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_reference_are_told_apart() {
        let id = |text: &str| DocId::new(text).unwrap();
        let greatest = id("\u{10ffff}").in_reference();
        for text in ["a", "\0", "\0o", "\0p", "\u{1}", &"日".repeat(341), &"x".repeat(1022)] {
            let (old, new) = (id(text).in_reference(), id(text).beside_reference());
            assert!(old.is_of_reference() && !new.is_of_reference() && greatest < new, "{text:?}");
            assert_eq!(new.without_side(), text);
            assert_eq!(new.shown(true), (text, None));
            assert_eq!(old.shown(true), (old.without_side(), Some(true)));
            assert_eq!(old.shown(false), (old.as_str(), None), "without a reference ids are as they are");
            assert!(text.len() > 1022 || old.without_side() == text, "{text:?}");
        }
        assert_eq!(id("a").beside_reference(), id("a"));
        let long = ["x".repeat(1024), "x".repeat(1023) + "y"].map(|text| id(&text).in_reference());
        assert!(long[0] != long[1] && long[0].as_str().len() <= DocId::MAX_BYTES);
    }

    #[test]
    fn ids_of_units_have_their_document() {
        for text in ["a", "日", &"x".repeat(1024)] {
            let document = DocId::new(text).unwrap();
            let unit = document.of_unit(0xab, 7);
            assert_eq!(unit.document_of_unit(), text);
            assert_eq!(unit.parts_of_unit()[1..], ["00000000000000ab", "00000007"]);
            assert!(unit != document.of_unit(0xab, 8) && unit != document.of_unit(0xac, 7));
        }
    }

    #[test]
    fn ids_are_one_to_1024_bytes() {
        assert!(DocId::new("").is_none());
        assert!(DocId::new("a").is_some());
        assert!(DocId::new(&"é".repeat(512)).is_some());
        assert!(DocId::new(&"é".repeat(513)).is_none());
    }

    /// Ids of inline and of greater length compare, hash and serialize like their texts.
    #[test]
    fn ids_compare_as_their_texts() {
        assert_eq!(size_of::<Option<DocId>>(), 24);
        let texts: Vec<String> = ["a", "a\0", "a\0\0", "a\0b", "b", "é", "zz"]
            .into_iter()
            .flat_map(|text| [0, 19, 20, 21, 22, 23, 40].map(|more| format!("{text}{}", "a".repeat(more))))
            .chain([21, 22, 23].map(|len| "a\0".repeat(len)))
            .collect();
        let hash = |id: &str| {
            let mut hasher = crate::hash::IdentityHasher::default();
            id.hash(&mut hasher);
            hasher.finish()
        };
        for a in &texts {
            let id = DocId::new(a).unwrap();
            assert_eq!((id.as_str(), id.as_bytes(), id.to_string()), (a.as_str(), a.as_bytes(), a.clone()));
            let mut hasher = crate::hash::IdentityHasher::default();
            id.hash(&mut hasher);
            assert_eq!(hasher.finish(), hash(a));
            let json = serde_json::to_string(&id).unwrap();
            assert_eq!(json, serde_json::to_string(a).unwrap());
            assert_eq!(serde_json::from_str::<DocId>(&json).unwrap(), id);
            let words = id.to_words();
            assert_eq!(words.map(DocId::from_words), (a.len() <= DocId::INLINE_BYTES).then(|| id.clone()));
            for b in &texts {
                let other = DocId::new(b).unwrap();
                assert_eq!(id.cmp(&other), a.cmp(b), "{a:?} {b:?}");
                assert_eq!(id == other, a == b);
            }
        }
        assert!(serde_json::from_str::<DocId>("\"\"").is_err());
    }
}
