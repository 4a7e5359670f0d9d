//! A table of a database as source: its rows by a column that grows, page by page, and again what may have
//! changed since.
//!
//! ```text
//!  round:   from (greatest order so far - overlap)      to the last row
//!           ├── rows that were read before: passed by ──┼── new rows ──┤
//!           a page is `ORDER BY order, id LIMIT page`, and the next one begins behind its last row
//! ```
//!
//! A row is the document that it names, as it is now. Its offset in partition 0 is the value of its order
//! column: a whole number from 0 on, or the microseconds since 1970. Rows of one offset are told apart by
//! their ids.
//!
//! **Why no row is lost.** A row whose transaction commits late has an order that lies before rows that have
//! been read. Claim: a row that is committed while the greatest order in the table is M, with an order of M -
//! overlap or later, is read. For the round that begins next begins at the greatest order of the round
//! before, less the overlap, and that was M or less: rows that came while that round ran do not count. After
//! a restart the first round begins at what had been [said](super::Batch::next) to be read, less the overlap:
//! that is the greatest order of the rows before it, so it was M or less too, or the row lies further on and
//! is still to come.
//!
//! **Why none is doubled.** An event of a later epoch replaces the document, whatever its offset; so a row
//! that is read again changes nothing. A round ends its epoch, and has each row once. What was pushed of the
//! rows of the overlap is remembered, as hashes: such a row is passed by while it is as it was.
//!
//! A time that lies in the future does not count as the greatest order either: it is read with each round.
//!
//! What a table held is gone once it has changed: it cannot be read again as it was ([`Look::repeats`]).
//!
//! What is not seen: a row that is deleted, if no column says so; a row without an id or an order.

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

use super::texts::FoundText;
use super::{EpochLimits, Format, Look, NoText, Reader, Shape, Source, SourceError, Texts};
use crate::database::{Address, Failure, patiently};
use crate::feed::BadRecord;
use dupflow_core::doc::{DocId, FIELD_SEPARATOR, Position, without_separators};
use dupflow_core::time::Offsets;

/// What is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// A table or a view, perhaps with its schema before it.
    Table(String),
    /// A query, whose rows are those of a table.
    Query(String),
}

/// A table as source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Where it is.
    pub address: Address,
    /// What is read.
    pub relation: Relation,
    /// The column of ids.
    pub id: String,
    /// The column of texts.
    pub text: String,
    /// The column that grows.
    pub order: String,
    /// The column that says that a row is deleted.
    pub deleted: Option<String>,
    /// The column of times.
    pub ts: Option<String>,
    /// Columns of further fields.
    pub fields: Vec<String>,
    /// Rows in a page, 1 or more.
    pub page: u32,
    /// How long after the end of a round the next one begins.
    pub poll: Duration,
    /// How far before the greatest order a round begins.
    pub overlap: Overlap,
    /// Whether reading goes on behind the last row.
    pub follow: bool,
    /// How long a server may take to answer at the beginning.
    pub patience: Duration,
    /// Where epochs are cut, beside the ends of rounds.
    pub limits: EpochLimits,
    /// Whether the table is read here: by one of several processes.
    pub is_here: bool,
}

/// How far before the greatest order a round begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Where the order is a time.
    pub time: Duration,
    /// Where it is a number.
    pub number: u64,
}

/// What a column that grows holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderKind {
    /// Whole numbers.
    Number,
    /// Times; their offsets are microseconds.
    Time,
}

/// What stands where a document is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// `None`: what is there is no order.
    pub(super) order: Option<u64>,
    /// The document's id, or why it is none.
    pub(super) id: Result<Vec<u8>, BadRecord>,
    /// `None`: NULL, or of a type that is no text.
    pub(super) text: Option<Vec<u8>>,
    pub(super) deleted: bool,
    pub(super) ts: Option<f64>,
    /// In the order of [`Table::fields`]; `None`: NULL.
    pub(super) fields: Vec<Option<Vec<u8>>>,
}

/// Bytes of texts and fields after which a page takes no further row.
pub(super) const PAGE_BYTES: usize = 16 << 20;

/// Rows that are read at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Page {
    pub(super) rows: Vec<Row>,
    /// Whether the table ends with it.
    pub(super) is_last: bool,
}

impl Row {
    /// Bytes of what is read, about.
    pub(super) fn bytes(&self) -> usize {
        let id = self.id.as_ref().map_or(0, Vec::len);
        let texts = self.fields.iter().chain([&self.text]).flatten();
        id + texts.map(Vec::len).sum::<usize>()
    }
}

/// A table, reached.
pub(super) trait Rows: Send {
    /// What the column that grows holds.
    fn order(&self) -> OrderKind;

    /// The greatest order that counts: of times, the time by the clock of the database; of numbers, the
    /// greatest in the table, 0 if there is none.
    fn latest(&mut self) -> Result<u64, Failure>;

    /// The next rows by (order, id), at most as many as a page has, and at most [`PAGE_BYTES`] but for the
    /// last of them; none where the table has ended. With `from` those from there on, without those behind
    /// the last one that was given.
    fn page(&mut self, from: Option<u64>) -> Result<Page, Failure>;

    /// The row of an id, if there is one.
    fn row(&mut self, id: &str) -> Result<Option<Row>, Failure>;

    /// How many rows are not seen: without an id or an order, or with one from before 0.
    fn unseen(&mut self) -> Result<u64, Failure>;

    /// How many rows there are.
    fn count(&mut self) -> Result<u64, Failure>;

    /// Whether anything may have changed since the last call.
    fn has_changed(&mut self) -> Result<bool, Failure>;
}

/// Where the columns that need not be there stand among those that are selected, behind order, id and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) deleted: Option<usize>,
    pub(super) ts: Option<usize>,
    pub(super) fields: Range<usize>,
}

impl Table {
    /// The columns that are read, by the keys that name them.
    fn columns(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let must = [("source.order", &self.order), ("source.id", &self.id), ("source.text", &self.text)];
        let may = [("source.deleted", &self.deleted), ("source.ts", &self.ts)];
        let may = may.into_iter().filter_map(|(key, name)| Some((key, name.as_deref()?)));
        let fields = self.fields.iter().map(|name| ("source.fields", name.as_str()));
        must.into_iter().map(|(key, name)| (key, name.as_str())).chain(may).chain(fields)
    }

    /// The same in the order in which they are selected, with where they stand.
    fn layout(&self) -> (Vec<&str>, Layout) {
        let names: Vec<&str> = self.columns().map(|(_, name)| name).collect();
        let deleted = self.deleted.as_ref().map(|_| 3);
        let ts = self.ts.as_ref().map(|_| 3 + usize::from(deleted.is_some()));
        let fields = names.len() - self.fields.len()..names.len();
        (names, Layout { deleted, ts, fields })
    }

    /// All columns that are not among those that are there.
    fn find(&self, found: &[String], same: impl Fn(&str, &str) -> bool) -> Result<(), Failure> {
        let missing = self.columns().filter(|(_, name)| !found.iter().any(|there| same(there, name)));
        let one = |(key, name)| {
            format!("{key}: {} has no column \"{name}\", its columns are {}", self.name(), found.join(", "))
        };
        let missing: Vec<String> = missing.map(one).collect();
        if missing.is_empty() { Ok(()) } else { Err(Failure::Refused(missing.join("\n"))) }
    }

    /// What stands behind FROM; its rows are called `source`.
    fn relation(&self) -> String {
        match &self.relation {
            Relation::Table(name) => format!("{} AS source", crate::database::quoted_path(name)),
            Relation::Query(query) => format!("({}) AS source", query.trim().trim_end_matches(';')),
        }
    }

    /// For messages.
    pub fn name(&self) -> String {
        match &self.relation {
            Relation::Table(name) => format!("table \"{name}\" of {}", self.address.name()),
            Relation::Query(_) => format!("the query of {}", self.address.name()),
        }
    }

    /// Reaches it, and looks whether its columns are what they have to be.
    fn reach(&self) -> Result<Box<dyn Rows>, Failure> {
        match &self.address {
            #[cfg(feature = "sqlite")]
            Address::Sqlite(path) => Ok(Box::new(sqlite::SqliteRows::reach(self, path)?)),
            #[cfg(feature = "postgres")]
            Address::Postgres(url) => Ok(Box::new(postgres::PostgresRows::reach(self, url)?)),
            #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
            _ => Err(Failure::Refused("this dupflow was built without this database".to_owned())),
        }
    }

    /// What is there, in a line: for whoever looks before a run does.
    ///
    /// # Errors
    /// That it cannot be read, or not as it is configured.
    pub fn examine(&self) -> Result<String, Failure> {
        let mut rows = self.reach()?;
        let (count, unseen) = (rows.count()?, rows.unseen()?);
        let order = match rows.order() {
            OrderKind::Number => "numbers",
            OrderKind::Time => "times",
        };
        let seen = if unseen == 0 { String::new() } else { format!(", {unseen} of them {UNSEEN}") };
        Ok(format!("reads {}: {count} rows, in order of {order}{seen}", self.name()))
    }

    fn failed(&self, failure: &Failure) -> SourceError {
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

/// What is said of rows that are not seen.
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
        let unseen =
            patiently(&self.name(), Some(self.patience), look).map_err(|failure| self.failed(&failure))?;
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

/// Reads texts by id.
struct TableTexts {
    table: Table,
    /// Further fields, in the order of the pipeline.
    fields: Vec<String>,
    /// There once a text has been asked for, and until a call fails.
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
        let failed = |failure: Failure| NoText::Failed(failure.to_string());
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
