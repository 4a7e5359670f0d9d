//! A database table as source: its rows in the order of a growing column, page by page, and again the rows
//! that may have changed since.
//!
//! ```text
//!  round:   from (greatest order so far - overlap)      to the last row
//!           ├── rows that were read before: skipped ────┼── new rows ──┤
//!           a page is `ORDER BY order, id LIMIT page`, and the next one begins after its last row
//! ```
//!
//! A row is the document with its id, in its present state. Its offset in partition 0 is the value of its
//! order column: a whole number from 0, or microseconds since 1970. Rows with the same offset are
//! distinguished by their ids.
//!
//! **Why no row is lost.** A row whose transaction commits late has an order below rows that have been read.
//! Claim: a row is read if it is committed while the greatest order in the table is M, with an order of at
//! least M - overlap. The next round begins at the greatest order of the previous round, minus the overlap.
//! That greatest order is at most M, since rows that arrive during a round do not count. After a restart the
//! first round begins at the last pushed [position](crate::intake::Batch::next), minus the overlap. That
//! position is the greatest order of the rows before it, so it is at most M too; otherwise the row is beyond
//! it and still to be read.
//!
//! **Why none is doubled.** An event of a later epoch replaces the document, with any offset, so reading a
//! row again changes nothing. A round ends its epoch, and reads each row once. The rows of the overlap that
//! were pushed are stored as hashes, and an unchanged row is skipped.
//!
//! A time in the future does not count as the greatest order either; such a row is read in each round.
//!
//! The previous state of a table cannot be read again ([`SourceInfo::repeats`] is false).
//!
//! What is not seen: deleted rows without a column that marks them; rows without an id or an order.

#![cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    expect(
        dead_code,
        reason = "without a database there are no tables, and a deployment that names some is refused"
    )
)]

mod open;
#[cfg(feature = "postgres")]
mod postgres;
mod reader;
mod seen;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod stamps;

mod table;
mod texts;

use open::UNSEEN;
use reader::TableReader;
use texts::TableTexts;

use crate::intake::{EpochLimits, Source, SourceError, SourceInfo, SourceReader, Texts};
use crate::tables::database::retry_until_reachable;
use dupflow_core::text::TextColumns;
use dupflow_core::time::Offsets;

pub use table::{DatabaseTable, Relation, RoundOverlap};

impl Source for DatabaseTable {
    fn epochs(&self) -> EpochLimits {
        self.limits
    }

    fn inspect(&mut self) -> Result<SourceInfo, SourceError> {
        Ok(SourceInfo { repeats: false, ..SourceInfo::default() })
    }

    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError> {
        let look = || self.reach().and_then(|mut rows| rows.unseen());
        let unseen = retry_until_reachable(&self.name(), Some(self.patience), look)
            .map_err(|failure| self.failed(&failure))?;
        if unseen > 0 {
            tracing::warn!(rows = unseen, "{}: rows are {UNSEEN}", self.name());
        }
        Ok([(0, from.and_then(|from| from.get(&0)).copied().unwrap_or(0))].into())
    }

    fn texts(&self, columns: &TextColumns) -> Option<Box<dyn Texts>> {
        Some(Box::new(TableTexts { table: self.clone(), fields: columns.to_vec(), rows: None }))
    }

    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn SourceReader>> {
        let begin = begin.get(&0).copied().unwrap_or(0);
        vec![Box::new(TableReader::new(*self, begin))]
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests;
