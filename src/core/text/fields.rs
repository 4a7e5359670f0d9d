//! Further fields of a document, besides its text.
//!
//! A text followed by its fields, each after a [`FIELD_SEPARATOR`] and in the order of the rules -> its
//! parts. Every part is shingled separately, so no shingle crosses from one part to the next. Features of a
//! field of weight w count w times, features of the text once. Weights have no effect on sets.
//!
//! A text without separators has no fields. If the rules have no fields, a separator is an ordinary character
//! of the text.

use serde::Serialize;

use super::TextRules;
use crate::doc::FIELD_SEPARATOR;

/// A further field of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Its key in an input record.
    pub name: String,
    /// How many times its shingles count, from 1 to [`Self::MOST`] inclusive.
    pub weight: u32,
}

impl Field {
    /// The largest allowed weight, inclusive.
    pub const MOST: u32 = 100;
}

impl TextRules {
    /// The names of the further fields, in the order in which they follow the text.
    pub fn field_names(&self) -> Vec<String> {
        self.fields.iter().map(|field| field.name.clone()).collect()
    }

    /// Splits a text into its own part and its fields. If the rules have no fields, the text is not searched
    /// for separators.
    pub(super) fn parts<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'t> {
        text.splitn(1 + self.fields.len(), FIELD_SEPARATOR)
    }

    /// How many times the shingles of a part count; part 0 is the text.
    pub(super) fn times(&self, part: usize) -> u32 {
        part.checked_sub(1).map_or(1, |field| self.fields[field].weight)
    }
}
