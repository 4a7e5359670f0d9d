//! Further fields of a document, beside its text.
//!
//! A text with the fields behind it, each after a [`FIELD_SEPARATOR`] and in the order of the rules -> its
//! parts. Every part is shingled by itself, so that no shingle crosses from one to the next. What stands in a
//! field of weight w counts w times, what stands in the text once; a set takes no notice of that.
//!
//! A text without separators has the text alone, and rules without fields take any text for that.

use serde::Serialize;

use super::TextRules;
use crate::doc::FIELD_SEPARATOR;

/// A further field of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Its name in a record.
    pub name: String,
    /// How many times its shingles count, from 1 to [`Self::MOST`] inclusive.
    pub weight: u32,
}

impl Field {
    /// The largest weight.
    pub const MOST: u32 = 100;
}

impl TextRules {
    /// The names of the further fields, in the order in which they follow the text.
    pub fn field_names(&self) -> Vec<String> {
        self.fields.iter().map(|field| field.name.clone()).collect()
    }

    /// The text, then its fields. Without fields in the rules there is no search for them.
    pub(super) fn parts<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'t> {
        text.splitn(1 + self.fields.len(), FIELD_SEPARATOR)
    }

    /// How many times the shingles of a part count.
    pub(super) fn times(&self, part: usize) -> u32 {
        part.checked_sub(1).map_or(1, |field| self.fields[field].weight)
    }
}
