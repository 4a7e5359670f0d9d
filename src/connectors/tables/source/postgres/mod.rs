//! A PostgreSQL table.
//!
//! The order is a whole number (`smallint`, `integer`, `bigint`) or a time (`timestamptz`, or `timestamp`
//! interpreted as UTC). Ids and texts have any type that the server can convert to text: `text`, `integer`,
//! `uuid`, ….

mod expressions;
mod look;
mod open;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use postgres::types::ToSql;
use postgres::{Client, Statement};

use super::table::{ColumnLayout, CountBound, OrderKind, RowPage, TableNow, TableRow, TableRows, is_deleted};
use crate::formats::BadRecord;
use crate::tables::database::DatabaseFailure;
use crate::tables::database::postgres::failure;

/// An open table.
pub(super) struct PostgresRows {
    client: Client,
    relation: String,
    order: String,
    kind: OrderKind,
    layout: ColumnLayout,
    /// Rows in a page.
    page: u32,
    from: Statement,
    behind: Statement,
    one: Statement,
    look: Statement,
    below: Statement,
    /// Counts the rows that are not read.
    unseen: String,
    /// What each transaction begins with.
    settings: String,
    /// Whether it is a query, a view or a foreign table, has foreign partitions or other children, or a
    /// policy may decide on its rows.
    is_derived: bool,
    /// The type of the order, and the search path by which a query finds its tables.
    identity: BTreeMap<String, String>,
    /// The encoding of the database, if it is not UTF-8.
    encoding: Option<String>,
    /// Order and id of the last returned row.
    last: Option<(i64, Vec<u8>)>,
    /// The visible transactions at the last check for changes.
    snapshot: Option<String>,
}

/// The encoding of a database that says nothing of its bytes.
const ASCII: &str = "SQL_ASCII";

/// A lock is waited for by trying again.
const READING: &str = "SET LOCAL lock_timeout = '1s'";

impl PostgresRows {
    /// Begins a transaction with its settings; `then` is executed in it.
    fn transaction(&mut self, then: &str) -> Result<(), DatabaseFailure> {
        let begin = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}; {then}", self.settings);
        self.client.batch_execute(&begin).map_err(|error| self.failed(&error))
    }

    fn commit(&mut self) -> Result<(), DatabaseFailure> {
        self.client.batch_execute("COMMIT").map_err(|error| failure(&error))
    }

    /// Explains an error that is caused by row level security.
    fn failed(&self, error: &postgres::Error) -> DatabaseFailure {
        let hidden = error.as_db_error().is_some_and(|error| {
            *error.code() == postgres::error::SqlState::INSUFFICIENT_PRIVILEGE
                && error.message().contains("row-level security")
        });
        match failure(error) {
            DatabaseFailure::Refused(what) if hidden => DatabaseFailure::Refused(format!(
                "{what}: rows may be hidden from this role, which would never be read: let its role bypass \
                 the policy (ALTER ROLE … BYPASSRLS), or set source.row_security to true if the policy is \
                 meant"
            )),
            other => other,
        }
    }

    fn number(&mut self, sql: &str) -> Result<u64, DatabaseFailure> {
        self.transaction("")?;
        let found = self.client.query_one(sql, &[]).and_then(|row| row.try_get(0));
        let found: i64 = found.map_err(|error| self.failed(&error))?;
        self.commit()?;
        Ok(u64::try_from(found).unwrap_or(0))
    }

    fn is_ascii(&self) -> bool {
        self.encoding.as_deref() == Some(ASCII)
    }

    fn row_of(&self, row: &postgres::Row) -> Result<TableRow, postgres::Error> {
        let is_ascii = self.is_ascii();
        let text = |place: usize| {
            if is_ascii {
                return row.try_get::<_, Option<Vec<u8>>>(place);
            }
            row.try_get::<_, Option<String>>(place).map(|text| text.map(String::into_bytes))
        };
        let order: Option<i64> = row.try_get(0)?;
        Ok(TableRow {
            order: order.and_then(|order| u64::try_from(order).ok()),
            id: text(1)?.ok_or(BadRecord::MissingId),
            text: text(2)?,
            deleted: self
                .layout
                .deleted
                .map(text)
                .transpose()?
                .flatten()
                .is_some_and(|flag| is_deleted(&flag)),
            ts: self.layout.ts.map(text).transpose()?.flatten().map(|text| number(&text)),
            fields: self.layout.fields.clone().map(text).collect::<Result<_, _>>()?,
        })
    }
}

/// An order as a parameter of a statement.
enum AtOrder {
    Number(i64),
    Time(SystemTime),
}

impl AtOrder {
    fn new(order: u64, kind: OrderKind) -> Self {
        match kind {
            OrderKind::Number => Self::Number(i64::try_from(order).unwrap_or(i64::MAX)),
            // The server's times end in the year 294276.
            OrderKind::Time => Self::Time(
                SystemTime::UNIX_EPOCH + Duration::from_micros(order.min(9_000_000_000_000_000_000)),
            ),
        }
    }

    fn get(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Number(number) => number,
            Self::Time(time) => time,
        }
    }
}

/// The number of a text. One that is none makes the record a bad one.
fn number(text: &[u8]) -> f64 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.trim().parse().unwrap_or(f64::NAN)
}

impl TableRows for PostgresRows {
    fn order(&self) -> OrderKind {
        self.kind
    }

    fn look(&mut self, bound: CountBound<'_>) -> Result<TableNow, DatabaseFailure> {
        // The rows are counted as of the snapshot that names the open transactions.
        self.transaction("")?;
        let look = self.client.query_one(&self.look.clone(), &[]).map_err(|error| self.failed(&error))?;
        let mut now = self.now(&look).map_err(|error| failure(&error))?;
        if let Some(bound) = bound(&now).map(|bound| AtOrder::new(bound, self.kind)) {
            let counted = self.client.query_one(&self.below.clone(), &[bound.get()]);
            let counted: Result<i64, _> = counted.and_then(|row| row.try_get(0));
            now.below = Some(counted.map_err(|error| self.failed(&error))?.cast_unsigned());
        }
        self.commit()?;
        Ok(now)
    }

    fn is_rewritten(&mut self, up_to: u64, since: u64) -> Result<bool, DatabaseFailure> {
        self.transaction("")?;
        let at = AtOrder::new(up_to.saturating_add(1), self.kind);
        let Self { relation, order, .. } = &*self;
        let cast = if self.kind == OrderKind::Time { "timestamptz" } else { "bigint" };
        // What stays when its storage is written anew, as by VACUUM FULL, keeps the transaction that
        // wrote it.
        let sql = format!(
            "SELECT coalesce(bool_and(age(source.xmin) <= age('{}'::xid)), false) FROM {relation}
             WHERE {order} < $1::{cast}",
            since % (1 << 32)
        );
        let found = self.client.query_one(&sql, &[at.get()]).and_then(|row| row.try_get(0));
        let found = found.map_err(|error| self.failed(&error))?;
        self.commit()?;
        Ok(found)
    }

    fn begin_page(&mut self) -> Result<(), DatabaseFailure> {
        let touch = format!("SELECT FROM {} LIMIT 0", self.relation);
        self.transaction(&touch)
    }

    fn end_page(&mut self) -> Result<(), DatabaseFailure> {
        self.commit()
    }

    fn page(&mut self, from: Option<u64>) -> Result<RowPage, DatabaseFailure> {
        let statement =
            if from.is_none() && self.last.is_some() { self.behind.clone() } else { self.from.clone() };
        let (at, after) = match (from, &self.last) {
            (None, Some((at, after))) => (u64::try_from(*at).unwrap_or(0), Some(after.clone())),
            (from, _) => (from.unwrap_or(0), None),
        };
        let at = AtOrder::new(at, self.kind);
        let text = after.as_deref().map(String::from_utf8_lossy);
        let parameters: Vec<&(dyn ToSql + Sync)> = match (&after, &text) {
            (Some(after), _) if self.is_ascii() => vec![at.get(), after],
            (_, Some(text)) => vec![at.get(), text],
            _ => vec![at.get()],
        };
        let found = self.client.query(&statement, &parameters).map_err(|error| self.failed(&error))?;
        let held = found.first().map(|row| row.try_get::<_, i64>(row.len() - 1)).transpose();
        let held = usize::try_from(held.map_err(|error| failure(&error))?.unwrap_or(0)).unwrap_or(usize::MAX);
        let is_last = held < self.page as usize && found.len() == held;
        let rows = found.iter().map(|row| self.row_of(row)).collect::<Result<Vec<_>, _>>();
        let rows = rows.map_err(|error| failure(&error))?;
        if let Some(TableRow { order: Some(order), id: Ok(id), .. }) = rows.last() {
            self.last = Some((order.cast_signed(), id.clone()));
        }
        Ok(RowPage { rows, is_last })
    }

    fn row(&mut self, id: &str) -> Result<Option<TableRow>, DatabaseFailure> {
        self.transaction("")?;
        let found = self.client.query_opt(&self.one, &[&id]).map_err(|error| self.failed(&error))?;
        self.commit()?;
        found.map(|row| self.row_of(&row)).transpose().map_err(|error| failure(&error))
    }

    fn unseen(&mut self) -> Result<u64, DatabaseFailure> {
        self.number(&self.unseen.clone())
    }

    fn count(&mut self) -> Result<u64, DatabaseFailure> {
        let sql = format!("SELECT count(*) FROM {}", self.relation);
        self.number(&sql)
    }

    fn note(&self) -> Option<String> {
        let encoding = self.encoding.as_ref()?;
        Some(if self.is_ascii() {
            format!("the encoding of the database is {encoding}: a text that is not UTF-8 is a bad record")
        } else {
            format!(
                "the encoding of the database is {encoding}, from which the server converts: a text that it \
                 cannot convert ends the run"
            )
        })
    }

    fn is_derived(&self) -> bool {
        self.is_derived
    }

    /// If no transaction has begun to write or has ended since the last call, nothing has changed. A standby
    /// does not name its open transactions; there, nothing has changed if nothing was replayed.
    fn has_changed(&mut self) -> Result<bool, DatabaseFailure> {
        let row = self.client.query_one(
            "SELECT txid_current_snapshot()::text || coalesce(pg_last_wal_replay_lsn()::text, '')",
            &[],
        );
        let snapshot: String = row.and_then(|row| row.try_get(0)).map_err(|error| failure(&error))?;
        Ok(self.snapshot.replace(snapshot.clone()) != Some(snapshot))
    }
}
