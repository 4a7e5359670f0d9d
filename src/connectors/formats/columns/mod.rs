//! Rows of files that are stored by column: the values of a row as a record.

mod caught;
mod given;
mod row;
mod value;

pub(super) use caught::caught;
pub(super) use given::GivenColumn;
pub(super) use row::{ColumnCursor, KeptRow, ReadColumns};
pub(super) use value::CellValue;

/// Names of the schema levels between a list and its elements, which a path may omit.
pub(super) const LIST_LEVELS: &[&str] = &["list", "element", "item", "bag", "array", "array_element"];
