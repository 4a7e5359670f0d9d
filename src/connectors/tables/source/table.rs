//! A table that is read: its settings, its rows and pages, and what every database has to do.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::transactions::Transactions;
use crate::formats::{BadRecord, RecordShape, ValueFormat};
use crate::intake::{EpochLimits, SourceError};
use crate::mark::TableLook;
use crate::tables::database::{Address, DatabaseFailure};

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
pub struct DatabaseTable {
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
    pub overlap: RoundOverlap,
    /// Whether reading continues after the last row.
    pub follow: bool,
    /// How long the source waits for the server at the beginning.
    pub patience: Duration,
    /// Limits at which epochs are cut, in addition to the ends of rounds.
    pub limits: EpochLimits,
    /// Whether this process reads the table; only one of several does.
    pub is_here: bool,
    /// What a start does if the order has regressed.
    pub regression: Regression,
    /// Whether row level security may hide rows; otherwise that is refused.
    pub row_security: bool,
}

/// What a start does if the order of a table has regressed since it was read, or it is another table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Regression {
    /// It is refused.
    #[default]
    Refuse,
    /// It reads the table from its beginning, and corrects the output.
    ReadAgain,
}

/// How far before the greatest order a round begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundOverlap {
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

impl OrderKind {
    /// The name of an order of this type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Time => "time (in microseconds)",
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TableRow {
    /// `None`: the value is no valid order.
    pub(super) order: Option<u64>,
    /// The document's id, or the reason why there is none.
    pub(super) id: Result<Vec<u8>, BadRecord>,
    /// `None`: NULL, or no text.
    pub(super) text: Option<Vec<u8>>,
    pub(super) deleted: bool,
    pub(super) ts: Option<f64>,
    /// In the order of [`DatabaseTable::fields`]; `None`: NULL.
    pub(super) fields: Vec<Option<Vec<u8>>>,
}

/// Whether a value marks its row as deleted, by its text: it is not empty, no 0 in any notation of numbers,
/// no "false" or "no" as PostgreSQL accepts them, and no infinite time, which is never reached.
pub(super) fn is_deleted(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return true };
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    let is_no = ["", "f", "false", "n", "no", "off", "null", "infinity"]
        .iter()
        .any(|no| text.eq_ignore_ascii_case(no));
    !is_no && text.parse() != Ok(0.0)
}

/// Maximum of bytes of texts and fields in a page, except for its last row.
pub(super) const PAGE_BYTES: usize = 16 << 20;

/// Rows that are read at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RowPage {
    pub(super) rows: Vec<TableRow>,
    /// Whether the table ends with this page.
    pub(super) is_last: bool,
}

impl TableRow {
    /// Approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let id = self.id.as_ref().map_or(0, Vec::len);
        let texts = self.fields.iter().chain([&self.text]).flatten();
        id + texts.map(Vec::len).sum::<usize>()
    }
}

/// An open table.
pub(super) trait TableRows: Send {
    /// The type of the growing column.
    fn order(&self) -> OrderKind;

    /// Looks at the table in one transaction, and counts the rows below a bound that depends on what is seen,
    /// if there is one.
    fn look(&mut self, bound: CountBound<'_>) -> Result<TableNow, DatabaseFailure>;

    /// Whether all rows up to an order were written anew since the first transaction `since` began, where
    /// that is known.
    fn is_rewritten(&mut self, _order: u64, _since: u64) -> Result<bool, DatabaseFailure> {
        Ok(false)
    }

    /// An order rounded down to what rows are sorted by.
    fn sorted(&self, order: u64) -> u64 {
        order
    }

    /// Begins a page: waits for locks on the table.
    fn begin_page(&mut self) -> Result<(), DatabaseFailure>;

    /// Ends a page.
    fn end_page(&mut self) -> Result<(), DatabaseFailure>;

    /// The next rows by (order, id): at most one page, and at most [`PAGE_BYTES`] except for the last row;
    /// empty at the end of the table. With `from`, the rows from that order on, otherwise the rows after the
    /// last returned one.
    fn page(&mut self, from: Option<u64>) -> Result<RowPage, DatabaseFailure>;

    /// The row with this id, if there is one.
    fn row(&mut self, id: &str) -> Result<Option<TableRow>, DatabaseFailure>;

    /// Number of rows that are not seen: without an id or an order, or with an order before 0.
    fn unseen(&mut self) -> Result<u64, DatabaseFailure>;

    /// Number of rows.
    fn count(&mut self) -> Result<u64, DatabaseFailure>;

    /// What a user should know of its database before a run, for a message.
    fn note(&self) -> Option<String> {
        None
    }

    /// Whether rows may change, appear and vanish without a write that [`Self::has_changed`] sees, and
    /// without a greater order: those of a query, a view or a foreign table, or of a table with a policy.
    fn is_derived(&self) -> bool;

    /// Whether the table may have changed since the last call.
    fn has_changed(&mut self) -> Result<bool, DatabaseFailure>;
}

/// The order below which rows are counted, by what else is seen.
pub(super) type CountBound<'a> = &'a mut dyn FnMut(&TableNow) -> Option<u64>;

/// The table at a look.
#[derive(Clone, Debug, Default)]
pub(super) struct TableNow {
    /// What it is; of its rows nothing is known here.
    pub(super) look: TableLook,
    /// The greatest order that counts. For times, the present time by the clock of the database; for numbers,
    /// the greatest in the table, or 0 if it is empty.
    pub(super) latest: u64,
    /// The greatest order in the table, or 0 if it is empty.
    pub(super) newest: u64,
    /// The number of rows below the bound.
    pub(super) below: Option<u64>,
    pub(super) transactions: Transactions,
}

/// The indices of the optional columns in the selected list, after order, id and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnLayout {
    pub(super) deleted: Option<usize>,
    pub(super) ts: Option<usize>,
    pub(super) fields: Range<usize>,
}

impl DatabaseTable {
    /// The columns that are read, with the settings that name them.
    pub(super) fn columns(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let must = [("source.order", &self.order), ("source.id", &self.id), ("source.text", &self.text)];
        let may = [("source.deleted", &self.deleted), ("source.ts", &self.ts)];
        let may = may.into_iter().filter_map(|(key, name)| Some((key, name.as_deref()?)));
        let fields = self.fields.iter().map(|name| ("source.fields", name.as_str()));
        must.into_iter().map(|(key, name)| (key, name.as_str())).chain(may).chain(fields)
    }

    /// The same in the order of selection, with the indices of the optional ones.
    pub(super) fn layout(&self) -> (Vec<&str>, ColumnLayout) {
        let names: Vec<&str> = self.columns().map(|(_, name)| name).collect();
        let deleted = self.deleted.as_ref().map(|_| 3);
        let ts = self.ts.as_ref().map(|_| 3 + usize::from(deleted.is_some()));
        let fields = names.len() - self.fields.len()..names.len();
        (names, ColumnLayout { deleted, ts, fields })
    }

    /// An error that names all columns that are not in `found`.
    pub(super) fn find(
        &self,
        found: &[String],
        same: impl Fn(&str, &str) -> bool,
    ) -> Result<(), DatabaseFailure> {
        let missing = self.columns().filter(|(_, name)| !found.iter().any(|there| same(there, name)));
        let one = |(key, name)| {
            format!("{key}: {} has no column \"{name}\", its columns are {}", self.name(), found.join(", "))
        };
        let missing: Vec<String> = missing.map(one).collect();
        if missing.is_empty() { Ok(()) } else { Err(DatabaseFailure::Refused(missing.join("\n"))) }
    }

    /// The text after FROM; its rows are named `source`.
    pub(super) fn relation(&self) -> String {
        match &self.relation {
            Relation::Table(name) => format!("{} AS source", crate::tables::database::quoted_path(name)),
            // A query may end with a comment, up to the end of its line.
            Relation::Query(query) => format!("({}\n) AS source", query.trim().trim_end_matches(';')),
        }
    }

    /// The name for messages.
    pub fn name(&self) -> String {
        match &self.relation {
            Relation::Table(name) => format!("table \"{name}\" of {}", self.address.name()),
            Relation::Query(_) => format!("the query of {}", self.address.name()),
        }
    }

    pub(super) fn failed(&self, failure: &DatabaseFailure) -> SourceError {
        SourceError::Failed { input: self.name().into(), what: failure.to_string() }
    }

    /// The error for a table whose order has regressed, or that is another table.
    pub(super) fn regressed(&self, what: &str) -> SourceError {
        SourceError::Changed(format!(
            "{}: {what}: rows that were read may be gone, and rows that are there may not be read; start \
             with --reconcile, which reads the table from its beginning and corrects the output, or set \
             source.regression to \"read_again\", with which each such start does so",
            self.name()
        ))
    }

    /// How far before the greatest order a round begins, as a difference of offsets.
    pub(super) fn overlap(&self, order: OrderKind) -> u64 {
        match order {
            OrderKind::Number => self.overlap.number,
            OrderKind::Time => u64::try_from(self.overlap.time.as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// The shape of its records.
    pub(super) fn shape(&self) -> Arc<RecordShape> {
        Arc::new(RecordShape {
            format: ValueFormat::Row,
            headers: self.fields.clone(),
            ..RecordShape::default()
        })
    }
}
