//! The row of a unit of a document that is removed.

use std::io;

use serde::Serialize;

use super::column::{ColumnType, OutputCell, whole};
use super::row::{EachCells, OutputRow};

/// A unit to remove, and the one that stays in its place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RemovedUnit<'a> {
    /// Its document.
    pub document: &'a str,
    /// The number of units before it in the document.
    pub unit: u32,
    /// Its first byte in the text as it was read.
    pub from: u64,
    /// The byte behind it.
    pub to: u64,
    /// The unit that stays.
    pub of: UnitName<'a>,
    /// The similarity of the two; `None` if only a chain of pairs connects them.
    pub similarity: Option<f64>,
}

/// A unit by its document and its place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UnitName<'a> {
    /// Its document.
    pub document: &'a str,
    /// The number of units before it in the document.
    pub unit: u32,
}

impl RemovedUnit<'_> {
    /// Names and types of its columns, in order.
    pub(in crate::sinks) const COLUMNS: [(&'static str, ColumnType); 7] = [
        ("document", ColumnType::Text),
        ("unit", ColumnType::Integer),
        ("from", ColumnType::Integer),
        ("to", ColumnType::Integer),
        ("of_document", ColumnType::Text),
        ("of_unit", ColumnType::Integer),
        ("similarity", ColumnType::OptionalFloat),
    ];
}

impl OutputRow for RemovedUnit<'_> {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        Ok(serde_json::to_writer(out, self)?)
    }

    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()> {
        each(&[
            OutputCell::Text(self.document),
            whole(self.unit),
            whole(self.from),
            whole(self.to),
            OutputCell::Text(self.of.document),
            whole(self.of.unit),
            self.similarity.map_or(OutputCell::Missing, OutputCell::Float),
        ])
    }
}
