//! Fields of a document: values that a record has beside its text, such as a host or a language.
//!
//! A list of [rules](FieldRules), and the values of a record -> a [`FieldRow`], one value for each rule in
//! their order. A value is a text; it is empty where the record has none, or none that can be used
//! ([`FieldFlaws`] counts these).
//!
//! | value in the record | value of the field |
//! |---|---|
//! | a text of at most [`MOST_VALUE_BYTES`] bytes | the same; a U+001E inside becomes a space |
//! | a whole number | its decimal digits |
//! | another number | the shortest decimal that reads back as the same number; 1.0 is `1`; `1e300` where digits alone are too long |
//! | `true`, `false` | the word |
//! | absent, `null`, an empty text | empty, counted as missing |
//! | a longer text | empty, counted as too long |
//! | an object, a list, bytes that are not UTF-8 | empty, counted as unusable |
//! | an argument of `host` that is no address | empty, counted as unusable |
//!
//! Rows are interned: equal rows of one process share one text.

mod grammar;
mod interned;
mod row;
mod rules;

pub use grammar::{FieldRule, FieldSyntaxError};
pub use row::FieldRow;
pub use rules::{EventFields, FieldFlaws, FieldRules, MOST_VALUE_BYTES, RawValue};
