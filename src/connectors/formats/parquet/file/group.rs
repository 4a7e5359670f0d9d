//! The rows of a row group.

use std::fmt;
use std::sync::Arc;

use parquet::errors::{ParquetError, Result};

use super::super::super::bad_record::{BadRecord, RecordPlace};
use super::super::super::columns::{self, KeptRow, ReadColumns};
use super::super::super::part::TablePart;
use super::super::super::rows::{Damage, FileRow, NextRow, RowReader};
use super::column::LeafColumn;

/// The rows of one row group. A bad row is reported by its number in the file, from 0.
pub(crate) struct GroupRows {
    pub(super) columns: ReadColumns<LeafColumn>,
    /// Unread rows, according to the footer.
    pub(super) left: u64,
    /// The number of the next row in the file, from 0.
    pub(super) row: u64,
    /// What a table says of the file.
    pub(super) part: Option<Arc<TablePart>>,
}

impl fmt::Debug for GroupRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupRows").field("row", &self.row).field("left", &self.left).finish_non_exhaustive()
    }
}

impl RowReader for GroupRows {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        *row = FileRow::default();
        if self.left == 0 {
            return Ok(NextRow::End);
        }
        match caught(|| self.advance()) {
            Ok(true) => {}
            Ok(false) => {
                let cause = format!("its row group ends {} rows early", self.left);
                return Err(self.damage(BadRecord::Truncated, cause));
            }
            Err(cause) => return Err(self.damage(BadRecord::Unreadable, cause)),
        }
        self.left -= 1;
        let number = self.row;
        self.row += 1;
        if self.part.as_ref().is_some_and(|part| part.deleted.has(number)) {
            return Ok(NextRow::Skipped("deleted"));
        }
        self.columns.read(row, number).map(|()| NextRow::Row)
    }
}

impl GroupRows {
    /// The damage where no further row can be read.
    fn damage(&self, reason: BadRecord, cause: String) -> Damage {
        let head = KeptRow::new(Some(self.row), reason, Some(&cause)).line();
        Damage { reason, cause: Some(cause), place: RecordPlace::From(self.row), head, ends: true }
    }

    /// Moves all columns to the next row; false if there is none.
    fn advance(&mut self) -> Result<bool> {
        if !self.columns.text.advance(self.left)? {
            return Ok(false);
        }
        for column in self.columns.others() {
            if !column.advance(self.left)? {
                return Err(ParquetError::General("a column ends before that of the texts".to_owned()));
            }
        }
        Ok(true)
    }
}

/// The result of the crate's function; an error or a panic becomes a message.
pub(super) fn caught<T>(read: impl FnOnce() -> Result<T>) -> std::result::Result<T, String> {
    columns::caught("Parquet", read)?.map_err(|error| error.to_string())
}
