//! An SQLite table.
//!
//! SQLite has a type for each value, not for each column. An order is a whole number, or a time as text in
//! the format of SQLite's own functions (`CURRENT_TIMESTAMP`, `datetime('now', 'subsec')`, `strftime` in ISO
//! 8601 with `T` and `Z`): in UTC, beginning with a year of four digits. An id is a text or a whole number; a
//! text is a text.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _};

use super::stamps;
use super::table::{
    ColumnLayout, CountBound, DatabaseTable, OrderKind, PAGE_BYTES, Relation, RowPage, TableNow, TableRow,
    TableRows, is_deleted,
};
use super::transactions::Transactions;
use crate::formats::BadRecord;
use crate::mark::TableLook;
use crate::owned::FileNumber;
use crate::tables::database::{DatabaseFailure, quoted, sqlite};
use dupflow_core::time;

/// An open table.
pub(super) struct SqliteRows {
    connection: Connection,
    path: PathBuf,
    /// The file, and which one it was: another may replace it.
    place: PathBuf,
    number: Option<FileNumber>,
    /// The table or view, if no query is read.
    table: Option<String>,
    relation: String,
    id: String,
    order: String,
    /// The column's name, for messages.
    name: String,
    kind: Option<OrderKind>,
    layout: ColumnLayout,
    list: String,
    page: u32,
    /// Order and id of the last returned row.
    last: Option<(Value, Value)>,
    version: Option<i64>,
}

/// A day in microseconds, and the pattern of a time.
const DAY: u64 = 86_400_000_000;
const A_DAY: &str = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*";

/// A row, with its order and id as stored.
type Placed = (TableRow, (Value, Value));

impl SqliteRows {
    pub(super) fn reach(table: &DatabaseTable, path: &Path) -> Result<Self, DatabaseFailure> {
        let connection = sqlite::reader(path)?;
        let failed = |error: rusqlite::Error| sqlite::failure(path, &error);
        let relation = table.relation();
        let found: Vec<String> = {
            let statement =
                connection.prepare(&format!("SELECT * FROM {relation} LIMIT 0")).map_err(failed)?;
            statement.column_names().map(str::to_owned).collect()
        };
        table.find(&found, str::eq_ignore_ascii_case)?;
        let (id, order) =
            (format!("source.{}", quoted(&table.id)), format!("source.{}", quoted(&table.order)));
        let name = format!("column \"{}\" of {}", table.order, table.name());
        let (names, layout) = table.layout();
        let list =
            names.iter().map(|column| format!("source.{}", quoted(column))).collect::<Vec<_>>().join(", ");
        let place = table.address.file().unwrap_or(path).to_owned();
        let number = which(&place)?;
        let named = if let Relation::Table(named) = &table.relation { Some(named.clone()) } else { None };
        let mut reached = Self {
            connection,
            path: path.to_owned(),
            place,
            number,
            table: named,
            relation,
            id,
            order,
            name,
            kind: None,
            layout,
            list,
            page: table.page,
            last: None,
            version: None,
        };
        reached.kind = reached.find_kind()?;
        Ok(reached)
    }

    /// The type of the order; `None` while the table is empty.
    fn find_kind(&self) -> Result<Option<OrderKind>, DatabaseFailure> {
        let Self { relation, order, .. } = self;
        let greatest = |what: &str| {
            let sql = format!("SELECT {order} FROM {relation} WHERE {what} ORDER BY {order} DESC LIMIT 1");
            let found = self.connection.query_row(&sql, [], |row| row.get(0)).optional();
            found.map_err(|error| self.failed(&error))
        };
        // Decided by the greatest valid value: a row with an invalid one must not prevent reading the others.
        let sound = greatest(&format!(
            "typeof({order}) = 'integer' OR typeof({order}) = 'text' AND {order} GLOB '{A_DAY}'"
        ))?;
        match sound.map_or_else(|| greatest(&format!("{order} IS NOT NULL")), |sound| Ok(Some(sound)))? {
            None => Ok(None),
            Some(Value::Integer(_)) => Ok(Some(OrderKind::Number)),
            Some(Value::Text(text)) if text.as_bytes().get(4) == Some(&b'-') => Ok(Some(OrderKind::Time)),
            Some(other) => Err(DatabaseFailure::Refused(format!(
                "source.order: {} holds {}, expected whole numbers, or times in UTC as \"2026-01-31 \
                 23:59:59.125\"",
                self.name,
                type_words(&other)
            ))),
        }
    }

    fn kind(&self) -> OrderKind {
        self.kind.unwrap_or(OrderKind::Time)
    }

    fn failed(&self, error: &rusqlite::Error) -> DatabaseFailure {
        sqlite::failure(&self.path, error)
    }

    /// Reads the rows of a query, at most one page; also returns whether these were all.
    fn rows(&self, sql: &str, parameters: &[Value]) -> rusqlite::Result<(Vec<Placed>, bool)> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(parameters))?;
        let (mut found, mut bytes) = (Vec::new(), 0);
        while bytes < PAGE_BYTES {
            let Some(row) = rows.next()? else { return Ok((found, true)) };
            let read = self.row_of(row)?;
            bytes += read.bytes();
            found.push((read, (row.get(0)?, row.get(1)?)));
        }
        Ok((found, false))
    }

    fn row_of(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<TableRow> {
        let order = match row.get_ref(0)? {
            ValueRef::Integer(number) if self.kind() == OrderKind::Number => u64::try_from(number).ok(),
            ValueRef::Text(text) if self.kind() == OrderKind::Time => {
                std::str::from_utf8(text).ok().and_then(stamps::micros)
            }
            _ => None,
        };
        let id = match row.get_ref(1)? {
            ValueRef::Integer(number) => Ok(number.to_string().into_bytes()),
            ValueRef::Text(text) => Ok(text.to_vec()),
            ValueRef::Null => Err(BadRecord::MissingId),
            ValueRef::Real(_) | ValueRef::Blob(_) => Err(BadRecord::BadId),
        };
        let deleted = match self.layout.deleted.map(|place| row.get_ref(place)).transpose()? {
            None | Some(ValueRef::Null) => false,
            Some(ValueRef::Integer(number)) => number != 0,
            Some(ValueRef::Real(number)) => number != 0.0,
            Some(ValueRef::Text(value) | ValueRef::Blob(value)) => is_deleted(value),
        };
        let ts = match self.layout.ts.map(|place| row.get_ref(place)).transpose()? {
            None | Some(ValueRef::Null) => None,
            Some(ValueRef::Integer(number)) => Some(float(number)),
            Some(ValueRef::Real(number)) => Some(number),
            // A text that is no time makes the record a bad one.
            Some(ValueRef::Text(text)) => {
                let micros = std::str::from_utf8(text).ok().and_then(stamps::micros);
                Some(micros.map_or(f64::NAN, |micros| float(micros.cast_signed()) / 1e6))
            }
            Some(ValueRef::Blob(_)) => Some(f64::NAN),
        };
        let fields = self.layout.fields.clone().map(|place| Ok(scalar(row.get_ref(place)?)));
        Ok(TableRow {
            order,
            id,
            text: text(row.get_ref(2)?),
            deleted,
            ts,
            fields: fields.collect::<rusqlite::Result<_>>()?,
        })
    }

    /// The greatest order, or 0.
    fn newest(&self) -> Result<u64, DatabaseFailure> {
        let Self { relation, order, .. } = self;
        let last =
            |what: &str| format!("SELECT {order} FROM {relation} WHERE {what} ORDER BY {order} DESC LIMIT 1");
        if self.kind() == OrderKind::Number {
            return self
                .number(&format!("SELECT coalesce(({}), 0)", last(&format!("typeof({order}) = 'integer'"))));
        }
        let sql = last(&format!("typeof({order}) = 'text' AND {order} GLOB '{A_DAY}'"));
        let found: Option<String> = self
            .connection
            .query_row(&sql, [], |row| row.get(0))
            .optional()
            .map_err(|error| self.failed(&error))?;
        Ok(found.and_then(|text| stamps::micros(&text)).unwrap_or(0))
    }

    /// The number of rows below a bound, without those whose time is none. Texts of times are sorted by their
    /// days only: those of the last day are compared as times.
    fn below(&self, bound: u64) -> Result<u64, DatabaseFailure> {
        let Self { relation, order, id, .. } = self;
        if self.kind() == OrderKind::Time && !bound.is_multiple_of(DAY) {
            let day = bound - bound % DAY;
            let sql = format!(
                "SELECT {order} FROM {relation}
                 WHERE {order} >= ?1 AND {order} < ?2 AND {id} IS NOT NULL AND typeof({order}) = 'text'"
            );
            let failed = |error: rusqlite::Error| self.failed(&error);
            let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
            let mut rows = statement.query([self.at(day), self.at(day + DAY)]).map_err(failed)?;
            let mut found = self.below(day)?;
            while let Some(row) = rows.next().map_err(failed)? {
                let time = row.get_ref(0).map_err(failed)?.as_bytes().ok();
                let time = time.and_then(|text| std::str::from_utf8(text).ok()).and_then(stamps::micros);
                found += u64::from(time.is_some_and(|time| time < bound));
            }
            return Ok(found);
        }
        let (is_order, first) = match self.kind() {
            OrderKind::Number => (format!("typeof({order}) = 'integer'"), Value::Integer(0)),
            OrderKind::Time => {
                let zone = "*[+-][0-9][0-9]:[0-9][0-9]";
                let is_day = format!("date({order}) = substr({order}, 1, 10)");
                (format!("{is_day} AND {order} NOT GLOB '{zone}'"), Value::Text("1970".to_owned()))
            }
        };
        let sql = format!(
            "SELECT count(*) FROM {relation}
             WHERE {order} >= ?1 AND {order} < ?2 AND {id} IS NOT NULL AND {is_order}"
        );
        let found: Result<i64, _> =
            self.connection.query_row(&sql, [first, self.at(bound)], |row| row.get(0));
        found.map(i64::cast_unsigned).map_err(|error| self.failed(&error))
    }

    /// An order as a parameter: rows at it have values from it on.
    fn at(&self, order: u64) -> Value {
        match self.kind() {
            OrderKind::Number => Value::Integer(i64::try_from(order).unwrap_or(i64::MAX)),
            OrderKind::Time => Value::Text(stamps::at_most(order)),
        }
    }

    /// What the table is: the definition of a view, the type of the order, and the numbers in the head of the
    /// file that grow with its changes. A log (WAL) takes the changes before the file does.
    fn identity(&mut self) -> Result<TableLook, DatabaseFailure> {
        let mut look = TableLook::default();
        if let Some(kind) = self.kind {
            look.identity.insert("type of order".to_owned(), kind.name().to_owned());
        }
        if let Some(name) = &self.table {
            let query = "SELECT type, sql FROM sqlite_schema WHERE lower(name) = lower(?1)";
            let found: Option<(String, Option<String>)> = self
                .connection
                .query_row(query, [name], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
                .map_err(|error| self.failed(&error))?;
            if let Some((kind, sql)) = found {
                let definition = sql.filter(|_| kind == "view").unwrap_or_default();
                look.identity.insert("definition".to_owned(), format!("{kind} {definition}"));
            }
        }
        let mut head = [0; 44];
        if File::open(&self.place).and_then(|mut file| file.read_exact(&mut head)).is_ok() {
            let number = |at: usize| {
                u64::from(u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]))
            };
            look.counters.insert("change counter".to_owned(), number(24));
            look.counters.insert("schema cookie".to_owned(), number(40));
        }
        Ok(look)
    }

    fn number(&self, sql: &str) -> Result<u64, DatabaseFailure> {
        let found: Result<i64, _> = self.connection.query_row(sql, [], |row| row.get(0));
        found.map(|number| u64::try_from(number).unwrap_or(0)).map_err(|error| self.failed(&error))
    }
}

/// Which file is at a path.
fn which(path: &Path) -> Result<Option<FileNumber>, DatabaseFailure> {
    FileNumber::at(path).map_err(|error| DatabaseFailure::Away(error.to_string()))
}

/// The text of an id, compared by its bytes: ids may be equal as their column compares them (`NOCASE`, or 1
/// and 1.0), and are not the same.
fn text_of(id: &str) -> String {
    format!("CAST({id} AS TEXT) COLLATE BINARY")
}

/// A text, or a number as text; `None` for other values.
fn scalar(value: ValueRef<'_>) -> Option<Vec<u8>> {
    match value {
        ValueRef::Integer(number) => Some(number.to_string().into_bytes()),
        ValueRef::Real(number) => Some(number.to_string().into_bytes()),
        other => text(other),
    }
}

fn text(value: ValueRef<'_>) -> Option<Vec<u8>> {
    if let ValueRef::Text(text) = value { Some(text.to_vec()) } else { None }
}

fn type_words(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Integer(_) => "whole numbers",
        Value::Real(_) => "numbers with fractions",
        Value::Text(_) => "texts that are no times",
        Value::Blob(_) => "blobs",
    }
}

#[expect(clippy::cast_precision_loss, reason = "times in seconds and microseconds fit a float's 53 bits")]
fn float(number: i64) -> f64 {
    number as f64
}

impl TableRows for SqliteRows {
    fn order(&self) -> OrderKind {
        self.kind()
    }

    fn look(&mut self, bound: CountBound<'_>) -> Result<TableNow, DatabaseFailure> {
        self.begin_page()?;
        let newest = self.newest()?;
        let look = self.identity()?;
        let latest = match self.kind() {
            OrderKind::Number => newest,
            // SQLite has no clock of its own: the database is a file on this machine.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "microseconds since 1970 fit"
            )]
            OrderKind::Time => (time::unix_seconds() * 1e6) as u64,
        };
        let mut now = TableNow { look, latest, newest, below: None, transactions: Transactions::default() };
        now.below = bound(&now).map(|bound| self.below(bound)).transpose()?;
        self.end_page()?;
        Ok(now)
    }

    /// Texts of times are sorted by their days only.
    fn sorted(&self, order: u64) -> u64 {
        if self.kind == Some(OrderKind::Time) { order - order % DAY } else { order }
    }

    fn begin_page(&mut self) -> Result<(), DatabaseFailure> {
        let begin = "BEGIN; SELECT count(*) FROM sqlite_schema WHERE rowid = 1";
        self.connection.execute_batch(begin).map_err(|error| self.failed(&error))
    }

    fn end_page(&mut self) -> Result<(), DatabaseFailure> {
        self.connection.execute_batch("COMMIT").map_err(|error| self.failed(&error))
    }

    fn page(&mut self, from: Option<u64>) -> Result<RowPage, DatabaseFailure> {
        let Self { list, relation, order, id, page, .. } = &*self;
        let (behind, parameters) = match (from, &self.last) {
            (None, Some((at, after))) => {
                let behind = format!("({order}, {id}, {}) > (?1, ?2, CAST(?2 AS TEXT))", text_of(id));
                (behind, vec![at.clone(), after.clone()])
            }
            (from, _) => (format!("{order} >= ?1"), vec![self.at(from.unwrap_or(0))]),
        };
        let sql = format!(
            "SELECT {list} FROM {relation} WHERE {behind} AND {id} IS NOT NULL ORDER BY {order}, {id}, {} \
             LIMIT {page}",
            text_of(id)
        );
        let (found, is_all) = self.rows(&sql, &parameters).map_err(|error| self.failed(&error))?;
        let is_last = is_all && found.len() < *page as usize;
        let (rows, mut places): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        if let Some(last) = places.pop() {
            self.last = Some(last);
        }
        Ok(RowPage { rows, is_last })
    }

    fn row(&mut self, id: &str) -> Result<Option<TableRow>, DatabaseFailure> {
        let Self { list, relation, id: column, .. } = &*self;
        let sql = format!(
            "SELECT {list} FROM {relation} WHERE {column} = ?1 AND {} = CAST(?1 AS TEXT)",
            text_of(column)
        );
        let rows = |key: Value| self.rows(&sql, &[key]).map(|(found, _)| found);
        let mut found = rows(Value::Text(id.to_owned())).map_err(|error| self.failed(&error))?;
        if found.is_empty()
            && let Ok(number) = id.parse::<i64>()
        {
            // In the result of a query, a number does not equal its text.
            found = rows(Value::Integer(number)).map_err(|error| self.failed(&error))?;
        }
        Ok(found.into_iter().map(|(row, _)| row).max_by_key(|row| row.order))
    }

    fn unseen(&mut self) -> Result<u64, DatabaseFailure> {
        let Self { relation, order, id, .. } = &*self;
        let is_order = match self.kind() {
            OrderKind::Number => format!("typeof({order}) = 'integer' AND {order} >= 0"),
            OrderKind::Time => format!("typeof({order}) = 'text' AND {order} >= '1970'"),
        };
        self.number(&format!(
            "SELECT count(*) FROM {relation} WHERE {id} IS NULL OR NOT coalesce({is_order}, 0)"
        ))
    }

    fn count(&mut self) -> Result<u64, DatabaseFailure> {
        self.number(&format!("SELECT count(*) FROM {}", self.relation))
    }

    fn is_derived(&self) -> bool {
        let Some(table) = &self.table else { return true };
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE";
        self.connection.query_row(sql, [table], |row| row.get(0)) != Ok(1)
    }

    fn has_changed(&mut self) -> Result<bool, DatabaseFailure> {
        if which(&self.place)? != self.number {
            return Err(DatabaseFailure::Away(format!("{} was replaced", self.path.display())));
        }
        if self.kind.is_none() {
            self.kind = self.find_kind()?;
        }
        let version = self.connection.pragma_query_value(None, "data_version", |row| row.get(0));
        let version: i64 = version.map_err(|error| self.failed(&error))?;
        Ok(self.version.replace(version) != Some(version))
    }
}
