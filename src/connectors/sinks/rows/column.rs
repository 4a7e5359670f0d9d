//! Columns of an output, and their values.

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Text; never missing.
    Text,
    /// Text, or missing.
    OptionalText,
    /// A signed 64-bit integer; never missing.
    Integer,
    /// A signed 64-bit integer, or missing.
    OptionalInteger,
    /// A 64-bit float; never missing.
    Float,
    /// A 64-bit float, or missing.
    OptionalFloat,
    /// True or false; never missing.
    Flag,
}

/// The value of a row in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OutputCell<'a> {
    /// Missing.
    Missing,
    /// Text.
    Text(&'a str),
    /// An integer.
    Integer(i64),
    /// A float.
    Float(f64),
    /// True or false.
    Flag(bool),
}

/// An integer cell; values above 2^63 - 1 become 2^63 - 1.
pub(in crate::sinks) fn whole<'a>(number: impl TryInto<i64>) -> OutputCell<'a> {
    OutputCell::Integer(number.try_into().unwrap_or(i64::MAX))
}
