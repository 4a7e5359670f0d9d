//! The row of a unit of a document that is removed.

use serde::Serialize;

use super::column::{ColumnType, OutputCell, whole};

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

impl<'a> RemovedUnit<'a> {
    /// Names and types of its columns, in order.
    pub(super) const COLUMNS: [(&'static str, ColumnType); 7] = [
        ("document", ColumnType::Text),
        ("unit", ColumnType::Integer),
        ("from", ColumnType::Integer),
        ("to", ColumnType::Integer),
        ("of_document", ColumnType::Text),
        ("of_unit", ColumnType::Integer),
        ("similarity", ColumnType::OptionalFloat),
    ];

    /// Its cells.
    pub(super) fn cells(&self) -> [OutputCell<'a>; 7] {
        [
            OutputCell::Text(self.document),
            whole(self.unit),
            whole(self.from),
            whole(self.to),
            OutputCell::Text(self.of.document),
            whole(self.of.unit),
            self.similarity.map_or(OutputCell::Missing, OutputCell::Float),
        ]
    }
}
