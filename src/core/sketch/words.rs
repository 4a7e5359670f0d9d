//! Serializes words as one block of little-endian bytes: bincode takes ten times as long for single elements.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

pub(super) fn serialize<S: Serializer>(words: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    if cfg!(target_endian = "little") {
        serializer.serialize_bytes(bytemuck::cast_slice(words))
    } else {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        serializer.serialize_bytes(&bytes)
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[u64]>, D::Error> {
    struct WordsVisitor;
    impl Visitor<'_> for WordsVisitor {
        type Value = Box<[u64]>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes, eight to a word")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
            let (words, rest) = bytes.as_chunks();
            if rest.is_empty() {
                Ok(words.iter().map(|w| u64::from_le_bytes(*w)).collect())
            } else {
                Err(E::invalid_length(bytes.len(), &self))
            }
        }
    }
    deserializer.deserialize_bytes(WordsVisitor)
}
