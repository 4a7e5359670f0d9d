//! Further fields of a document, besides its text.
//!
//! A text followed by its fields, each after a
//! [`FIELD_SEPARATOR`](crate::doc::FIELD_SEPARATOR) and in the order of the rules -> its
//! parts. Every part is shingled separately, so no shingle crosses from one part to the next. Features of a
//! field of weight w count w times, features of the text once. Weights have no effect on sets.
//!
//! A text without separators has no fields. If the rules have no fields, a separator is an ordinary character
//! of the text.

use serde::Serialize;

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
