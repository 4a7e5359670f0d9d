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
//! A server names the transactions that are open at a look ([`Begun`](transactions::Begun)). What one of them
//! writes has an order of at least the greatest when it began, minus the overlap, which stands for clocks and
//! for the time between `BEGIN` and the first write. When it has ended, the next round begins there. A row
//! that is committed later is found by the count of rows below a bound ([`Frontier`](frontier::Frontier)).
//!
//! **Regression.** After a restore, the promotion of a standby, TRUNCATE, or the restart of a sequence, rows
//! below the position would never be read, and rows that were read may no longer exist. Each round looks at
//! what stays the same, at the greatest order, and at that count ([`TableLook`]). The mark stores the look
//! for the next run. A regression, or a row that was committed too late, ends the run; a start is refused, or
//! reads everything again.
//!
//! **Why none is doubled.** An event of a later epoch replaces the document, with any offset, so reading a
//! row again changes nothing. A round ends its epoch, and reads each row once. The rows of the overlap that
//! were pushed are stored as hashes, and an unchanged row is skipped.
//!
//! **Rows that change without a write**, as those of a view by the time of day, may have any order. Such a
//! table is read as a whole when a run begins, and now and then ([`POLLS`](reader)): the documents that it
//! has given before and does not give any more end.
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

mod frontier;
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
mod transactions;

use std::sync::Arc;

use open::UNSEEN;
use reader::{TableReader, TableReading, arrived, difference, regression};
use table::TableRows;
use texts::TableTexts;

use crate::intake::{
    EpochLimits, PastInputs, Resumption, Source, SourceError, SourceInfo, SourceReader, TableLog, Texts,
};
use crate::mark::TableLook;
use crate::tables::database::{DatabaseFailure, retry_until_reachable};
use dupflow_core::text::TextColumns;
use dupflow_core::time::Offsets;
use dupflow_run::backlog::Backlog;

pub use table::{DatabaseTable, Regression, Relation, RoundOverlap};

/// A table as the source of a run.
#[derive(Debug)]
pub struct TableSource {
    table: DatabaseTable,
    /// What the table was at the last look of the run that is continued.
    past: Option<TableLook>,
    log: Arc<TableLog>,
    /// Says whether the database can be read.
    backlog: Arc<Backlog>,
}

impl TableSource {
    /// The rows of a table.
    pub fn new(table: DatabaseTable) -> Self {
        Self { table, past: None, log: Arc::default(), backlog: Arc::default() }
    }

    /// Asks the table something, at the beginning of a run.
    fn ask<T>(
        &self,
        mut what: impl FnMut(&mut dyn TableRows) -> Result<T, DatabaseFailure>,
    ) -> Result<T, SourceError> {
        let table = &self.table;
        let look = || table.reach().and_then(|mut rows| what(&mut *rows));
        retry_until_reachable(&table.name(), Some(table.patience), look).map_err(|why| table.failed(&why))
    }
}

impl Source for TableSource {
    fn epochs(&self) -> EpochLimits {
        self.table.limits
    }

    fn inspect(&mut self) -> Result<SourceInfo, SourceError> {
        Ok(SourceInfo { repeats: false, ..SourceInfo::default() })
    }

    /// A run that reconciles reads the table from its beginning: what an earlier one has read of it may be
    /// wrong, for instance after its database was restored.
    fn resume(&mut self, past: &PastInputs) -> Result<Resumption, SourceError> {
        self.past = None;
        if past.reconcile {
            return Ok(Resumption::Anew);
        }
        let Some(was) = past.table.clone().filter(|_| past.has_documents) else {
            return Ok(Resumption::AsRead);
        };
        let difference = self.ask(|rows| {
            let now = rows.look(&mut |_| (was.below > 0).then_some(was.below))?;
            let more = now.below.map_or(0, |found| found.saturating_sub(was.rows));
            let another = difference(rows, &was, &now)?.or_else(|| regression(rows, &was, &now));
            // A run begins with all rows of a table that may change without a write.
            Ok(another.or_else(|| arrived(more).filter(|_| !rows.is_derived())))
        })?;
        match (difference, self.table.regression) {
            (None, _) => {
                self.past = Some(was);
                Ok(Resumption::AsRead)
            }
            (Some(what), Regression::ReadAgain) => {
                let table = self.table.name();
                tracing::warn!("{table}: {what}: it is read from its beginning, and the output is corrected");
                Ok(Resumption::Anew)
            }
            (Some(what), Regression::Refuse) => Err(self.table.regressed(&what)),
        }
    }

    fn backlog(&self) -> Option<Arc<Backlog>> {
        Some(Arc::clone(&self.backlog))
    }

    fn table_log(&self) -> Option<Arc<TableLog>> {
        Some(Arc::clone(&self.log))
    }

    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError> {
        let (unseen, note) = self.ask(|rows| Ok((rows.unseen()?, rows.note())))?;
        if let Some(note) = note {
            tracing::warn!("{}: {note}", self.table.name());
        }
        if unseen > 0 {
            tracing::warn!(rows = unseen, "{}: rows are {UNSEEN}", self.table.name());
        }
        Ok([(0, from.and_then(|from| from.get(&0)).copied().unwrap_or(0))].into())
    }

    fn texts(&self, columns: &TextColumns) -> Option<Box<dyn Texts>> {
        Some(Box::new(TableTexts { table: self.table.clone(), fields: columns.to_vec(), rows: None }))
    }

    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn SourceReader>> {
        let begin = begin.get(&0).copied().unwrap_or(0);
        // Without the documents of a state all is read from the beginning.
        let past = self.past.filter(|_| begin > 0);
        let reading = TableReading::new(self.table, begin, past, self.log);
        vec![Box::new(TableReader { reading, backlog: self.backlog })]
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests;
