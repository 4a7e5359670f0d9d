//! A PostgreSQL table.
//!
//! The order is a whole number (`smallint`, `integer`, `bigint`) or a time (`timestamptz`, or `timestamp`
//! interpreted as UTC). Ids and texts have any type that the server can convert to text: `text`, `integer`,
//! `uuid`, ….

use std::time::{Duration, SystemTime};

use postgres::types::{ToSql, Type};
use postgres::{Client, Statement};

use super::table::{ColumnLayout, DatabaseTable, OrderKind, PAGE_BYTES, RowPage, TableRow, TableRows};
use crate::formats::BadRecord;
use crate::tables::database::postgres::{connect, failure};
use crate::tables::database::{DatabaseFailure, quoted};

/// An open table.
pub(super) struct PostgresRows {
    client: Client,
    relation: String,
    id: String,
    order: String,
    kind: OrderKind,
    layout: ColumnLayout,
    /// Rows in a page.
    page: u32,
    from: Statement,
    behind: Statement,
    one: Statement,
    /// Order and id of the last returned row.
    last: Option<(i64, String)>,
    /// The visible transactions at the last check for changes.
    snapshot: Option<String>,
}

impl PostgresRows {
    pub(super) fn reach(table: &DatabaseTable, url: &Credential) -> Result<Self, DatabaseFailure> {
        let failed = |error: postgres::Error| failure(&error);
        let mut client = connect(url, table.patience)?;
        // Read-only; each page is a transaction of its own.
        client.batch_execute("SET default_transaction_read_only = on").map_err(failed)?;
        let relation = table.relation();
        let described = client.prepare(&format!("SELECT * FROM {relation} LIMIT 0")).map_err(failed)?;
        let columns: Vec<(String, Type)> = described
            .columns()
            .iter()
            .map(|column| (column.name().to_owned(), column.type_().clone()))
            .collect();
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        table.find(&names, |there, wanted| there == wanted)?;
        let type_of = |name: &str| columns.iter().find(|(there, _)| there == name).map(|(_, of)| of.clone());
        let order_type = type_of(&table.order).unwrap_or(Type::UNKNOWN);
        let kind = match order_type {
            Type::INT2 | Type::INT4 | Type::INT8 => OrderKind::Number,
            Type::TIMESTAMPTZ | Type::TIMESTAMP => OrderKind::Time,
            other => {
                return Err(DatabaseFailure::Refused(format!(
                    "source.order: column \"{}\" of {} is of type {other}, expected smallint, integer, \
                     bigint, timestamptz or timestamp",
                    table.order,
                    table.name()
                )));
            }
        };
        let (selected, layout) = table.layout();
        let id_type = type_of(&table.id).unwrap_or(Type::TEXT);
        // In the order of selection: order, id, text, optional columns.
        let expression = |(place, name): (usize, &&str)| {
            let column = format!("source.{}", quoted(name));
            match place {
                0 => offset(&column, kind),
                _ if Some(place) == layout.deleted => flag(&column, &type_of(name).unwrap_or(Type::UNKNOWN)),
                _ if Some(place) == layout.ts => seconds(&column, &type_of(name).unwrap_or(Type::UNKNOWN)),
                _ => format!("{column}::text"),
            }
        };
        let expressions: Vec<String> = selected.iter().enumerate().map(expression).collect();
        let list = expressions.join(", ");
        let (id, order) =
            (format!("source.{}", quoted(&table.id)), format!("source.{}", quoted(&table.order)));
        let at = match order_type {
            Type::TIMESTAMPTZ => "$1::timestamptz",
            Type::TIMESTAMP => "$1::timestamp",
            _ => "$1::bigint",
        };
        let finite = if kind == OrderKind::Time { format!(" AND isfinite({order})") } else { String::new() };
        let cast = type_name(&id_type);
        // Each row also has the number of rows in its page. The server omits rows after the size limit, which
        // would otherwise be sent only to be dropped.
        let sql = |behind: &str| {
            let page = table.page;
            let named: Vec<String> = (0..selected.len()).map(|place| format!("c{place}")).collect();
            let given = list_named(&expressions, &named);
            let texts = [1, 2].into_iter().chain(layout.fields.clone());
            let bytes: Vec<String> =
                texts.map(|place| format!("coalesce(octet_length(c{place}), 0)::bigint")).collect();
            let (named, bytes) = (named.join(", "), bytes.join(" + "));
            format!(
                "SELECT {named}, held FROM (
                    SELECT *, count(*) OVER () AS held,
                        sum({bytes}) OVER (ORDER BY at, key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 \
                 PRECEDING) AS before
                    FROM (SELECT {given}, {order} AS at, {id} AS key FROM {relation}
                        WHERE {behind} AND {id} IS NOT NULL{finite} ORDER BY {order}, {id} LIMIT {page}) AS \
                 page
                 ) AS sized WHERE before IS NULL OR before < {PAGE_BYTES} ORDER BY at, key"
            )
        };
        let from = client.prepare(&sql(&format!("{order} >= {at}"))).map_err(failed)?;
        let behind =
            client.prepare(&sql(&format!("({order}, {id}) > ({at}, $2::text::{cast})"))).map_err(failed)?;
        let one = format!(
            "SELECT {list} FROM {relation} WHERE {id} = $1::text::{cast} ORDER BY {order} DESC LIMIT 1"
        );
        let one = client.prepare(&one).map_err(failed)?;
        let page = table.page;
        let (last, snapshot) = (None, None);
        Ok(Self { client, relation, id, order, kind, layout, page, from, behind, one, last, snapshot })
    }

    fn number(&mut self, sql: &str) -> Result<u64, DatabaseFailure> {
        let found: i64 =
            self.client.query_one(sql, &[]).and_then(|row| row.try_get(0)).map_err(|e| failure(&e))?;
        Ok(u64::try_from(found).unwrap_or(0))
    }

    fn row_of(&self, row: &postgres::Row) -> Result<TableRow, postgres::Error> {
        let text =
            |place: usize| row.try_get::<_, Option<String>>(place).map(|text| text.map(String::into_bytes));
        let order: Option<i64> = row.try_get(0)?;
        let flag = |place: usize| row.try_get::<_, Option<bool>>(place);
        Ok(TableRow {
            order: order.and_then(|order| u64::try_from(order).ok()),
            id: text(1)?.ok_or(BadRecord::MissingId),
            text: text(2)?,
            deleted: self.layout.deleted.map(flag).transpose()?.flatten().unwrap_or(false),
            ts: self.layout.ts.map(|place| row.try_get(place)).transpose()?.flatten(),
            fields: self.layout.fields.clone().map(text).collect::<Result<_, _>>()?,
        })
    }
}

/// Expressions with column names.
fn list_named(expressions: &[String], names: &[String]) -> String {
    let named = expressions.iter().zip(names).map(|(expression, name)| format!("{expression} AS {name}"));
    named.collect::<Vec<_>>().join(", ")
}

/// The expression of an order as a number; NULL for an infinite time.
fn offset(column: &str, kind: OrderKind) -> String {
    match kind {
        OrderKind::Number => format!("{column}::bigint"),
        OrderKind::Time => {
            // Computed in two parts: older servers compute the whole as a float, which cannot represent
            // present times to the microsecond.
            let seconds =
                format!("floor(extract(epoch FROM date_trunc('second', {column})))::bigint * 1000000");
            let rest = format!("(extract(microseconds FROM {column})::bigint % 1000000)");
            format!("CASE WHEN isfinite({column}) THEN {seconds} + {rest} END")
        }
    }
}

/// The expression that is true if a column marks its row as deleted.
fn flag(column: &str, of: &Type) -> String {
    match *of {
        Type::BOOL => format!("coalesce({column}, false)"),
        Type::INT2 | Type::INT4 | Type::INT8 => format!("coalesce({column} <> 0, false)"),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR => format!("coalesce({column} <> '', false)"),
        _ => format!("({column} IS NOT NULL)"),
    }
}

/// The expression of a time in unix seconds.
fn seconds(column: &str, of: &Type) -> String {
    match *of {
        Type::TIMESTAMPTZ | Type::TIMESTAMP | Type::DATE => format!("extract(epoch FROM {column})::float8"),
        _ => format!("{column}::float8"),
    }
}

/// The name of a type in a cast.
fn type_name(of: &Type) -> String {
    match *of {
        // Without its length, which would truncate values.
        Type::BPCHAR => "text".to_owned(),
        _ => format!("{}.{}", quoted(of.schema()), quoted(of.name())),
    }
}

impl TableRows for PostgresRows {
    fn order(&self) -> OrderKind {
        self.kind
    }

    fn latest(&mut self) -> Result<u64, DatabaseFailure> {
        if self.kind == OrderKind::Number {
            let Self { relation, order, .. } = &*self;
            return self.number(&format!("SELECT coalesce(max({order}), 0)::bigint FROM {relation}"));
        }
        self.number(&format!("SELECT {}", offset("clock_timestamp()", OrderKind::Time)))
    }

    fn page(&mut self, from: Option<u64>) -> Result<RowPage, DatabaseFailure> {
        let statement =
            if from.is_none() && self.last.is_some() { self.behind.clone() } else { self.from.clone() };
        let (at, after) = match (from, &self.last) {
            (None, Some((at, after))) => (*at, Some(after.clone())),
            (from, _) => (i64::try_from(from.unwrap_or(0)).unwrap_or(i64::MAX), None),
        };
        let micros = u64::try_from(at).unwrap_or(0);
        // The server's times end in the year 294276.
        let time = SystemTime::UNIX_EPOCH + Duration::from_micros(micros.min(9_000_000_000_000_000_000));
        let at: &(dyn ToSql + Sync) = if self.kind == OrderKind::Time { &time } else { &at };
        let parameters: Vec<&(dyn ToSql + Sync)> = match &after {
            Some(after) => vec![at, after],
            None => vec![at],
        };
        let found = self.client.query(&statement, &parameters).map_err(|error| failure(&error))?;
        let held = found.first().map(|row| row.try_get::<_, i64>(row.len() - 1)).transpose();
        let held = usize::try_from(held.map_err(|error| failure(&error))?.unwrap_or(0)).unwrap_or(usize::MAX);
        let is_last = held < self.page as usize && found.len() == held;
        let rows = found.iter().map(|row| self.row_of(row)).collect::<Result<Vec<_>, _>>();
        let rows = rows.map_err(|error| failure(&error))?;
        if let Some(TableRow { order: Some(order), id: Ok(id), .. }) = rows.last() {
            let id = String::from_utf8_lossy(id).into_owned();
            self.last = Some((order.cast_signed(), id));
        }
        Ok(RowPage { rows, is_last })
    }

    fn row(&mut self, id: &str) -> Result<Option<TableRow>, DatabaseFailure> {
        let found = self.client.query_opt(&self.one, &[&id]).map_err(|error| failure(&error))?;
        found.map(|row| self.row_of(&row)).transpose().map_err(|error| failure(&error))
    }

    fn unseen(&mut self) -> Result<u64, DatabaseFailure> {
        let Self { relation, id, order, .. } = &*self;
        let offset = offset(order, self.kind);
        let sql = format!("SELECT count(*) FROM {relation} WHERE {id} IS NULL OR coalesce({offset}, -1) < 0");
        self.number(&sql)
    }

    fn count(&mut self) -> Result<u64, DatabaseFailure> {
        let sql = format!("SELECT count(*) FROM {}", self.relation);
        self.number(&sql)
    }

    /// If no transaction has begun to write or has ended since the last call, nothing has changed.
    fn has_changed(&mut self) -> Result<bool, DatabaseFailure> {
        let row = self.client.query_one("SELECT txid_current_snapshot()::text", &[]);
        let snapshot: String = row.and_then(|row| row.try_get(0)).map_err(|error| failure(&error))?;
        Ok(self.snapshot.replace(snapshot.clone()) != Some(snapshot))
    }
}
