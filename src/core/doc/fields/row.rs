//! The values of a document's fields.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::interned::interned;
use crate::doc::FIELD_SEPARATOR;

/// The values of a document's fields, in the order of the [rules](super::FieldRules). 16 bytes; clones and
/// equal rows share one text.
///
/// Invariant: a row whose values are all empty is the default row, whatever their number.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldRow(Option<Arc<str>>);

impl FieldRow {
    /// The row of these values. Separators inside them become spaces.
    ///
    /// ```
    /// use dupflow_core::doc::fields::FieldRow;
    ///
    /// let row = FieldRow::new(["example.org", "", "de"]);
    /// assert_eq!((row.get(0), row.get(1), row.get(2)), ("example.org", "", "de"));
    /// assert_eq!(FieldRow::new(["", ""]), FieldRow::default());
    /// ```
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let mut joined = String::new();
        for (place, value) in values.into_iter().enumerate() {
            if place > 0 {
                joined.push(FIELD_SEPARATOR);
            }
            joined.push_str(&crate::doc::without_separators(value));
        }
        Self::from_joined(&joined)
    }

    /// The row with this text: its values with a [`FIELD_SEPARATOR`] between any two.
    pub fn from_joined(joined: &str) -> Self {
        let is_empty = joined.chars().all(|c| c == FIELD_SEPARATOR);
        Self((!is_empty).then(|| interned(joined)))
    }

    /// The text of [`Self::from_joined`]; empty if all values are.
    pub fn joined(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The value at a place; empty if the row has none there.
    pub fn get(&self, place: usize) -> &str {
        self.joined().split(FIELD_SEPARATOR).nth(place).unwrap_or_default()
    }

    /// Whether all values are empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for FieldRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.joined().split(FIELD_SEPARATOR)).finish()
    }
}

impl Serialize for FieldRow {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.as_deref().serialize(to)
    }
}

impl<'de> Deserialize<'de> for FieldRow {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let joined = Option::<String>::deserialize(from)?;
        Ok(joined.map_or_else(Self::default, |joined| Self::from_joined(&joined)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_their_values() {
        assert_eq!(size_of::<FieldRow>(), 16);
        let row = FieldRow::new(["a\u{1e}b", "", "日本"]);
        assert_eq!(["a b", "", "日本", ""], [0, 1, 2, 3].map(|place| row.get(place)));
        assert_eq!(FieldRow::from_joined(row.joined()), row);
        assert_ne!(FieldRow::new(["a", ""]), FieldRow::new(["", "a"]));
        for none in [FieldRow::new([]), FieldRow::new([""]), FieldRow::from_joined("\u{1e}\u{1e}")] {
            assert!(none.is_empty());
            assert_eq!((none.get(1), &none), ("", &FieldRow::default()));
        }
    }

    #[test]
    fn rows_travel_as_texts() {
        for row in [FieldRow::default(), FieldRow::new(["x", "\"é"])] {
            let json = serde_json::to_string(&row).unwrap();
            assert_eq!(serde_json::from_str::<FieldRow>(&json).unwrap(), row, "{json}");
        }
    }
}
