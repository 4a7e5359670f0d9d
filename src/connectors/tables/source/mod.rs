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
//! first round begins at the last pushed [position](super::Batch::next), minus the overlap. That position is
//! the greatest order of the rows before it, so it is at most M too; otherwise the row is beyond it and still
//! to be read.
//!
//! **Why none is doubled.** An event of a later epoch replaces the document, with any offset, so reading a
//! row again changes nothing. A round ends its epoch, and reads each row once. The rows of the overlap that
//! were pushed are stored as hashes, and an unchanged row is skipped.
//!
//! A time in the future does not count as the greatest order either; such a row is read in each round.
//!
//! The previous state of a table cannot be read again ([`Look::repeats`] is false).
//!
//! What is not seen: deleted rows without a column that marks them; rows without an id or an order.

#![cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    expect(
        dead_code,
        reason = "without a database there are no tables, and a deployment that names some is refused"
    )
)]

#[cfg(feature = "postgres")]
mod postgres;
mod reader;
mod seen;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod stamps;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use reader::TableReader;

use crate::formats::{BadRecord, Format, Shape};
use crate::intake::{EpochLimits, FoundText, Look, NoText, Reader, Source, SourceError, Texts};
use crate::tables::database::{Address, DatabaseFailure, retry_until_reachable};
use dupflow_core::doc::{DocId, FIELD_SEPARATOR, Position, without_separators};
use dupflow_core::time::Offsets;

/// What is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// A table or a view, optionally with its schema.
    Table(String),
    /// A query, whose rows are read like those of a table.
    Query(String),
}

/// A table as source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The database.
    pub address: Address,
    /// What is read.
    pub relation: Relation,
    /// The column of ids.
    pub id: String,
    /// The column of texts.
    pub text: String,
    /// The growing column.
    pub order: String,
    /// The column that marks deleted rows.
    pub deleted: Option<String>,
    /// The column of times.
    pub ts: Option<String>,
    /// Columns of further fields.
    pub fields: Vec<String>,
    /// Rows in a page, at least 1.
    pub page: u32,
    /// Time between the end of a round and the beginning of the next one.
    pub poll: Duration,
    /// How far before the greatest order a round begins.
    pub overlap: Overlap,
    /// Whether reading continues after the last row.
    pub follow: bool,
    /// How long the source waits for the server at the beginning.
    pub patience: Duration,
    /// Limits at which epochs are cut, in addition to the ends of rounds.
    pub limits: EpochLimits,
    /// Whether this process reads the table; only one of several does.
    pub is_here: bool,
}

/// How far before the greatest order a round begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// If the order is a time.
    pub time: Duration,
    /// If the order is a number.
    pub number: u64,
}

/// The type of the growing column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderKind {
    /// Whole numbers.
    Number,
    /// Times; offsets are microseconds.
    Time,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// `None`: the value is no valid order.
    pub(super) order: Option<u64>,
    /// The document's id, or the reason why there is none.
    pub(super) id: Result<Vec<u8>, BadRecord>,
    /// `None`: NULL, or no text.
    pub(super) text: Option<Vec<u8>>,
    pub(super) deleted: bool,
    pub(super) ts: Option<f64>,
    /// In the order of [`Table::fields`]; `None`: NULL.
    pub(super) fields: Vec<Option<Vec<u8>>>,
}

/// Maximum of bytes of texts and fields in a page, except for its last row.
pub(super) const PAGE_BYTES: usize = 16 << 20;

/// Rows that are read at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Page {
    pub(super) rows: Vec<Row>,
    /// Whether the table ends with this page.
    pub(super) is_last: bool,
}

impl Row {
    /// Approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let id = self.id.as_ref().map_or(0, Vec::len);
        let texts = self.fields.iter().chain([&self.text]).flatten();
        id + texts.map(Vec::len).sum::<usize>()
    }
}

/// An open table.
pub(super) trait Rows: Send {
    /// The type of the growing column.
    fn order(&self) -> OrderKind;

    /// The greatest order that counts. For times, the present time by the clock of the database; for numbers,
    /// the greatest in the table, or 0 if it is empty.
    fn latest(&mut self) -> Result<u64, DatabaseFailure>;

    /// The next rows by (order, id): at most one page, and at most [`PAGE_BYTES`] except for the last row;
    /// empty at the end of the table. With `from`, the rows from that order on, otherwise the rows after the
    /// last returned one.
    fn page(&mut self, from: Option<u64>) -> Result<Page, DatabaseFailure>;

    /// The row with this id, if there is one.
    fn row(&mut self, id: &str) -> Result<Option<Row>, DatabaseFailure>;

    /// Number of rows that are not seen: without an id or an order, or with an order before 0.
    fn unseen(&mut self) -> Result<u64, DatabaseFailure>;

    /// Number of rows.
    fn count(&mut self) -> Result<u64, DatabaseFailure>;

    /// Whether the table may have changed since the last call.
    fn has_changed(&mut self) -> Result<bool, DatabaseFailure>;
}

/// The indices of the optional columns in the selected list, after order, id and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) deleted: Option<usize>,
    pub(super) ts: Option<usize>,
    pub(super) fields: Range<usize>,
}

impl Table {
    /// The columns that are read, with the settings that name them.
    fn columns(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let must = [("source.order", &self.order), ("source.id", &self.id), ("source.text", &self.text)];
        let may = [("source.deleted", &self.deleted), ("source.ts", &self.ts)];
        let may = may.into_iter().filter_map(|(key, name)| Some((key, name.as_deref()?)));
        let fields = self.fields.iter().map(|name| ("source.fields", name.as_str()));
        must.into_iter().map(|(key, name)| (key, name.as_str())).chain(may).chain(fields)
    }

    /// The same in the order of selection, with the indices of the optional ones.
    fn layout(&self) -> (Vec<&str>, Layout) {
        let names: Vec<&str> = self.columns().map(|(_, name)| name).collect();
        let deleted = self.deleted.as_ref().map(|_| 3);
        let ts = self.ts.as_ref().map(|_| 3 + usize::from(deleted.is_some()));
        let fields = names.len() - self.fields.len()..names.len();
        (names, Layout { deleted, ts, fields })
    }

    /// An error that names all columns that are not in `found`.
    fn find(&self, found: &[String], same: impl Fn(&str, &str) -> bool) -> Result<(), DatabaseFailure> {
        let missing = self.columns().filter(|(_, name)| !found.iter().any(|there| same(there, name)));
        let one = |(key, name)| {
            format!("{key}: {} has no column \"{name}\", its columns are {}", self.name(), found.join(", "))
        };
        let missing: Vec<String> = missing.map(one).collect();
        if missing.is_empty() { Ok(()) } else { Err(DatabaseFailure::Refused(missing.join("\n"))) }
    }

    /// The text after FROM; its rows are named `source`.
    fn relation(&self) -> String {
        match &self.relation {
            Relation::Table(name) => format!("{} AS source", crate::tables::database::quoted_path(name)),
            Relation::Query(query) => format!("({}) AS source", query.trim().trim_end_matches(';')),
        }
    }

    /// The name for messages.
    pub fn name(&self) -> String {
        match &self.relation {
            Relation::Table(name) => format!("table \"{name}\" of {}", self.address.name()),
            Relation::Query(_) => format!("the query of {}", self.address.name()),
        }
    }

    /// Opens the table, and checks its columns.
    fn reach(&self) -> Result<Box<dyn Rows>, DatabaseFailure> {
        match &self.address {
            #[cfg(feature = "sqlite")]
            Address::Sqlite(path) => Ok(Box::new(sqlite::SqliteRows::reach(self, path)?)),
            #[cfg(feature = "postgres")]
            Address::Postgres(url) => Ok(Box::new(postgres::PostgresRows::reach(self, url)?)),
            #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
            _ => Err(DatabaseFailure::Refused("this dupflow was built without this database".to_owned())),
        }
    }

    /// Describes the table in one line, for a check before a run.
    ///
    /// # Errors
    /// If it cannot be read as it is configured.
    pub fn examine(&self) -> Result<String, DatabaseFailure> {
        let mut rows = self.reach()?;
        let (count, unseen) = (rows.count()?, rows.unseen()?);
        let order = match rows.order() {
            OrderKind::Number => "numbers",
            OrderKind::Time => "times",
        };
        let seen = if unseen == 0 { String::new() } else { format!(", {unseen} of them {UNSEEN}") };
        Ok(format!("reads {}: {count} rows, in order of {order}{seen}", self.name()))
    }

    fn failed(&self, failure: &DatabaseFailure) -> SourceError {
        SourceError::Failed { input: self.name().into(), what: failure.to_string() }
    }

    /// How far before the greatest order a round begins, as a difference of offsets.
    fn overlap(&self, order: OrderKind) -> u64 {
        match order {
            OrderKind::Number => self.overlap.number,
            OrderKind::Time => u64::try_from(self.overlap.time.as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// The shape of its records.
    fn shape(&self) -> Arc<Shape> {
        Arc::new(Shape { format: Format::Row, headers: self.fields.clone(), ..Shape::default() })
    }
}

/// Message for rows that are not seen.
const UNSEEN: &str =
    "not read, since they have no id, or no order that is a number or a time from 0 (1970) on";

impl Source for Table {
    fn epochs(&self) -> EpochLimits {
        self.limits
    }

    fn look(&mut self) -> Result<Look, SourceError> {
        Ok(Look { repeats: false, ..Look::default() })
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

    fn texts(&self, fields: &[String]) -> Option<Box<dyn Texts>> {
        Some(Box::new(TableTexts { table: self.clone(), fields: fields.to_vec(), rows: None }))
    }

    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn Reader>> {
        let begin = begin.get(&0).copied().unwrap_or(0);
        vec![Box::new(TableReader::new(*self, begin))]
    }
}

/// Reads texts back by id.
struct TableTexts {
    table: Table,
    /// Names of further fields, in the order of the pipeline.
    fields: Vec<String>,
    /// The open table: from the first call on, until a call fails.
    rows: Option<Box<dyn Rows>>,
}

impl TableTexts {
    fn of(&self, id: &DocId, position: Position, row: Option<Row>) -> Result<FoundText, NoText> {
        let name = self.table.name();
        let gone = |what: &str| Err(NoText::Gone(format!("{name}: {what}")));
        match row {
            None => gone(&format!("no row has the id \"{id}\" any more")),
            Some(Row { deleted: true, .. }) => gone("the row is deleted by now"),
            Some(Row { order, .. }) if order != Some(position.offset) => {
                gone("the row has changed since it was read")
            }
            Some(Row { text, fields, .. }) => {
                let text = text.and_then(|text| String::from_utf8(text).ok());
                let Some(text) = text else { return gone("the row holds no text any more") };
                let further = |field: &String| {
                    let at = self.table.fields.iter().position(|column| column == field)?;
                    fields.get(at)?.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                };
                let further: Vec<String> =
                    self.fields.iter().map(|field| further(field).unwrap_or_default()).collect();
                if further.iter().all(String::is_empty) {
                    return Ok(FoundText::of(&text));
                }
                let parts = std::iter::once(&text).chain(&further).map(|part| without_separators(part));
                let parts: Vec<_> = parts.collect();
                Ok(FoundText::of(&parts.join(&FIELD_SEPARATOR.to_string())))
            }
        }
    }
}

impl Texts for TableTexts {
    fn text(&mut self, id: &DocId, position: Position) -> Result<FoundText, NoText> {
        let failed = |failure: DatabaseFailure| NoText::Failed(failure.to_string());
        let mut rows = match self.rows.take() {
            Some(rows) => rows,
            None => self.table.reach().map_err(failed)?,
        };
        let row = rows.row(id.as_str()).map_err(failed)?;
        self.rows = Some(rows);
        self.of(id, position, row)
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests;
