//! CSV and TSV tables: how they are written, their rows, and what is said of them.

mod dialect;
mod findings;
mod reader;

pub(crate) use dialect::Dialect;
pub(crate) use reader::CsvReader;
