//! The row of an item of a reference.

use std::io;

use serde::Serialize;

use super::column::{ColumnType, OutputCell, whole};
use super::row::{EachCells, OutputRow};

/// What is found of an item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundItem {
    /// Its id.
    pub id: String,
    /// The benchmark that it is of.
    pub benchmark: String,
    /// Its distinct shingles; 0 if it is too short to have one.
    pub shingles: usize,
    /// The number of pages in which it lies.
    pub pages: u64,
    /// Its greatest share in a page; `None` if it lies in none.
    pub share: Option<f64>,
    /// Of the pages in which it lies, the one with the least id.
    pub page: Option<String>,
    /// Whether it has too few words to be found.
    pub too_short: bool,
    /// Whether it lies in more pages than are reported.
    pub above_limit: bool,
}

impl FoundItem {
    /// Names and types of its columns, in order.
    pub(in crate::sinks) const COLUMNS: [(&'static str, ColumnType); 8] = [
        ("id", ColumnType::Text),
        ("benchmark", ColumnType::Text),
        ("shingles", ColumnType::Integer),
        ("pages", ColumnType::Integer),
        ("share", ColumnType::OptionalFloat),
        ("page", ColumnType::OptionalText),
        ("too_short", ColumnType::Flag),
        ("above_limit", ColumnType::Flag),
    ];
}

impl OutputRow for FoundItem {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        Ok(serde_json::to_writer(out, self)?)
    }

    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()> {
        each(&[
            OutputCell::Text(&self.id),
            OutputCell::Text(&self.benchmark),
            whole(self.shingles),
            whole(self.pages),
            self.share.map_or(OutputCell::Missing, OutputCell::Float),
            self.page.as_deref().map_or(OutputCell::Missing, OutputCell::Text),
            OutputCell::Flag(self.too_short),
            OutputCell::Flag(self.above_limit),
        ])
    }
}
