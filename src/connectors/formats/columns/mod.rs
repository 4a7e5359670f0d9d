//! Rows of files that are stored by column: the values of a row as a record.

mod given;
mod row;
mod value;

pub(super) use given::GivenColumn;
pub(super) use row::{ColumnCursor, KeptRow, ReadColumns};
pub(super) use value::CellValue;
