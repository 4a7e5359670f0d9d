//! A PostgreSQL table.
//!
//! The order is a whole number (`smallint`, `integer`, `bigint`) or a time (`timestamptz`, or `timestamp`
//! interpreted as UTC). Ids and texts have any type that the server can convert to text: `text`, `integer`,
//! `uuid`, ….

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use postgres::types::{ToSql, Type};
use postgres::{Client, Statement};

use super::table::{
    ColumnLayout, CountBound, DatabaseTable, OrderKind, PAGE_BYTES, Relation, RowPage, TableNow, TableRow,
    TableRows, is_deleted,
};
use super::transactions::Transactions;
use crate::credential::Credential;
use crate::formats::BadRecord;
use crate::mark::TableLook;
use crate::tables::database::postgres::{SETTINGS, connect, failure, other_encoding};
use crate::tables::database::{DatabaseFailure, quoted, quoted_path};

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
    look: Statement,
    below: Statement,
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
    pub(super) fn reach(table: &DatabaseTable, url: &Credential) -> Result<Self, DatabaseFailure> {
        let failed = |error: postgres::Error| failure(&error);
        let mut client = connect(url, table.patience)?;
        let begun = format!("BEGIN READ ONLY; {SETTINGS}; {READING}");
        client.batch_execute(&begun).map_err(failed)?;
        let path: String = client
            .query_one("SELECT current_setting('search_path')", &[])
            .and_then(|row| row.try_get(0))
            .map_err(failed)?;
        let encoding = other_encoding(&mut client).map_err(failed)?;
        let is_ascii = encoding.as_deref() == Some(ASCII);
        let security = if table.row_security { "on" } else { "off" };
        // As a value: a path is not written as it is shown, as `my-schema`.
        let settings = format!(
            "{SETTINGS}; {READING}; SELECT set_config('search_path', {}, true); \
             SET LOCAL row_security = {security}",
            literal(&path)
        );
        let (relation, resolved, is_derived) = resolve(&mut client, table).map_err(failed)?;
        let is_derived = is_derived || table.row_security;
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
            let text = match place {
                0 => return offset(&column, kind),
                _ if Some(place) == layout.ts => seconds(&column, &type_of(name).unwrap_or(Type::UNKNOWN)),
                _ if Some(place) == layout.deleted => flag(&column, &type_of(name).unwrap_or(Type::UNKNOWN)),
                _ => format!("{column}::text"),
            };
            // The server would refuse to send a text that is not UTF-8.
            if is_ascii { format!("convert_to({text}, '{ASCII}')") } else { text }
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
        // Ids may be equal as their type compares them, and have different texts.
        let is_exact = is_exact(&mut client, &relation, &id, &id_type).map_err(failed)?;
        let text_of_id = format!("{id}::text COLLATE \"C\"");
        let last_id = if is_ascii { "convert_from($2::bytea, 'SQL_ASCII')" } else { "$2::text" };
        let (by, by_text, after, same) = if is_exact {
            (String::new(), String::new(), String::new(), String::new())
        } else {
            (
                ", key::text COLLATE \"C\"".to_owned(),
                format!(", {text_of_id}"),
                format!(", {last_id}"),
                format!(" AND {text_of_id} = $1::text"),
            )
        };
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
                        sum({bytes}) OVER (ORDER BY at, key{by} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 \
                 PRECEDING) AS before
                    FROM (SELECT {given}, {order} AS at, {id} AS key FROM {relation}
                        WHERE {behind} AND {id} IS NOT NULL{finite} ORDER BY {order}, {id}{by_text} LIMIT \
                 {page}) AS page
                 ) AS sized WHERE before IS NULL OR before < {PAGE_BYTES} ORDER BY at, key{by}"
            )
        };
        let from = client.prepare(&sql(&format!("{order} >= {at}"))).map_err(failed)?;
        let behind = format!("({order}, {id}{by_text}) > ({at}, {last_id}::{cast}{after})");
        let behind = client.prepare(&sql(&behind)).map_err(failed)?;
        let one = format!(
            "SELECT {list} FROM {relation} WHERE {id} = $1::text::{cast}{same} ORDER BY {order} DESC LIMIT 1"
        );
        let one = client.prepare(&one).map_err(failed)?;
        let zero = if kind == OrderKind::Time { "'epoch'" } else { "0" };
        let below = format!(
            "SELECT count(*) FROM {relation} WHERE {order} >= {zero} AND {order} < {at} AND {id} IS NOT NULL"
        );
        let below = client.prepare(&below).map_err(failed)?;
        let newest = format!(
            "(SELECT {} FROM {relation} WHERE {order} IS NOT NULL{finite})",
            offset(&format!("max({order})"), kind)
        );
        let look = look_query(&mut client, table, resolved.is_some(), &newest).map_err(failed)?;
        let look = client.prepare(&look).map_err(failed)?;
        client.batch_execute("COMMIT").map_err(failed)?;
        let mut identity = BTreeMap::from([("type of order".to_owned(), order_type.name().to_owned())]);
        identity.insert("row security".to_owned(), security.to_owned());
        match resolved {
            Some(name) => identity.insert("name".to_owned(), name),
            None => identity.insert("search path".to_owned(), path),
        };
        Ok(Self {
            client,
            relation,
            id,
            order,
            kind,
            layout,
            page: table.page,
            from,
            behind,
            one,
            look,
            below,
            settings,
            is_derived,
            identity,
            encoding,
            last: None,
            snapshot: None,
        })
    }

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

    /// Reads the answer of a [`look_query`].
    fn now(&self, row: &postgres::Row) -> Result<TableNow, postgres::Error> {
        let (snapshot, is_standby): (&str, bool) = (row.try_get(0)?, row.try_get(1)?);
        let number = |place: usize| row.try_get::<_, Option<i64>>(place);
        let order =
            |place: usize| Ok(number(place)?.and_then(|order| u64::try_from(order).ok()).unwrap_or(0));
        let next = u32::try_from(number(11)?.unwrap_or(0) % (1 << 32)).unwrap_or(0);
        let transactions = Transactions::parse(snapshot, next, is_standby).unwrap_or_default();
        let (newest, clock) = (order(2)?, order(3)?);
        let storage = number(4)?.map(|storage| (storage.cast_unsigned(), transactions.oldest()));
        let mut identity = self.identity.clone();
        for (place, name) in (5..).zip(IDENTITY) {
            if let Some(value) = row.try_get::<_, Option<String>>(place)? {
                identity.insert(name.to_owned(), value);
            }
        }
        let latest = if self.kind == OrderKind::Time { clock } else { newest };
        let counters = [("position in the log (LSN)".to_owned(), order(12)?)].into();
        let look = TableLook { identity, counters, storage, ..TableLook::default() };
        Ok(TableNow { look, latest, newest, below: None, transactions })
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

/// The text after FROM, for a table its name with its schema, and whether it [is
/// derived](TableRows::is_derived). Found once, so that a search path that changes finds no other one.
fn resolve(
    client: &mut Client,
    table: &DatabaseTable,
) -> Result<(String, Option<String>, bool), postgres::Error> {
    let Relation::Table(name) = &table.relation else { return Ok((table.relation(), None, true)) };
    let found = client.query_opt(
        "WITH RECURSIVE part AS (
            SELECT to_regclass($1)::oid AS oid
            UNION SELECT inhrelid FROM pg_inherits JOIN part ON inhparent = part.oid)
         SELECT nspname, relname, EXISTS (
            SELECT FROM pg_class JOIN part USING (oid) WHERE relkind IN ('v', 'f'))
         FROM pg_class c JOIN pg_namespace ON pg_namespace.oid = c.relnamespace
         WHERE c.oid = to_regclass($1)",
        &[&quoted_path(name)],
    )?;
    let Some(row) = found else { return Ok((table.relation(), None, true)) };
    let full = format!("{}.{}", quoted(row.try_get(0)?), quoted(row.try_get(1)?));
    Ok((format!("{full} AS source"), Some(full), row.try_get(2)?))
}

/// What stays the same, in the order of a [`look_query`], as far as the role may see it.
const IDENTITY: [&str; 6] = [
    "system identifier",
    "timeline",
    "identity (oid)",
    "order column",
    "definition (with views)",
    "database",
];

/// The query of a look: the snapshot, whether the server is a standby, the newest order, the clock, where the
/// rows are stored, the [`IDENTITY`], the next transaction, whose number is counted from the third, and how
/// far the log is durable: after a crash no number of a transaction need stay as it was.
fn look_query(
    client: &mut Client,
    table: &DatabaseTable,
    is_named: bool,
    newest: &str,
) -> Result<String, postgres::Error> {
    let may = "SELECT has_function_privilege('pg_control_system()', 'execute')
        AND has_function_privilege('pg_control_checkpoint()', 'execute')";
    let (system, checkpoint) = if client.query_one(may, &[])?.try_get(0)? {
        (
            "(SELECT system_identifier::text FROM pg_control_system())",
            "(SELECT timeline_id FROM pg_control_checkpoint())",
        )
    } else {
        ("NULL::text", "NULL::integer")
    };
    // A standby that was promoted has a new timeline before its first checkpoint.
    let timeline = format!(
        "(CASE WHEN pg_is_in_recovery() THEN {checkpoint}
          ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer END)::text"
    );
    let log =
        "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END";
    let of_table = match &table.relation {
        Relation::Table(name) if is_named => {
            let oid = format!("to_regclass({})", literal(&quoted_path(name)));
            let of = |what: &str| format!("(SELECT {what} FROM pg_class WHERE oid = {oid})");
            [
                of("CASE WHEN relkind = 'r' THEN pg_relation_filenode(oid)::bigint END"),
                of("oid::text"),
                format!(
                    "(SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = {oid} AND \
                     attname = {} AND NOT attisdropped)",
                    literal(&table.order)
                ),
                definitions(&oid),
            ]
        }
        _ => ["NULL::bigint", "NULL::text", "NULL::text", "NULL::text"].map(str::to_owned),
    };
    let clock = offset("clock_timestamp()", OrderKind::Time);
    let [storage, oid, order, definition] = of_table;
    Ok(format!(
        "SELECT txid_current_snapshot()::text, pg_is_in_recovery(), {newest}, {clock}, {storage}, {system}, \
         {timeline}, {oid}, {order}, {definition}, current_database()::text, 3 + age('3'::xid)::bigint, \
         ({log} - '0/0'::pg_lsn)::bigint"
    ))
}

/// The expression of the definitions of a view, and of all views that it reads; NULL for a table. As the
/// server stores them, with identities instead of names: their texts depend on the search path. Where their
/// parts were written in a statement does not count.
fn definitions(oid: &str) -> String {
    format!(
        "(WITH RECURSIVE read AS (
            SELECT {oid}::oid AS view
            UNION SELECT refobjid FROM read JOIN pg_rewrite ON ev_class = view JOIN pg_depend ON
                classid = 'pg_catalog.pg_rewrite'::regclass AND objid = pg_rewrite.oid AND
                refclassid = 'pg_catalog.pg_class'::regclass)
          SELECT md5(string_agg(regexp_replace(ev_action::text,
                ':(location|stmt_location|stmt_len) -?[0-9]+', '', 'g'), ' ' ORDER BY view))
          FROM read JOIN pg_rewrite ON ev_class = view WHERE rulename = '_RETURN')"
    )
}

/// A text as a literal of SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
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

/// The expression of a time in unix seconds, as a text. What the server cannot convert in one row would end
/// the run: it is read here.
fn seconds(column: &str, of: &Type) -> String {
    match *of {
        Type::TIMESTAMPTZ | Type::TIMESTAMP | Type::DATE => {
            format!("extract(epoch FROM {column})::float8::text")
        }
        Type::NUMERIC | Type::TEXT | Type::VARCHAR | Type::BPCHAR => format!("{column}::text"),
        _ => format!("{column}::float8::text"),
    }
}

/// The expression of a mark of deletion, as a text that [`is_deleted`] reads.
fn flag(column: &str, of: &Type) -> String {
    match *of {
        Type::MONEY => format!("{column}::numeric::text"),
        Type::INTERVAL => format!("extract(epoch FROM {column})::text"),
        // The characters of its bytes.
        Type::BYTEA => format!("replace(encode({column}, 'escape'), '\\000', '')"),
        _ => format!("{column}::text"),
    }
}

/// The number of a text. One that is none makes the record a bad one.
fn number(text: &[u8]) -> f64 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.trim().parse().unwrap_or(f64::NAN)
}

/// Whether ids that are equal as their type compares them have equal texts: not `numeric`, whose 1 and 1.0
/// are equal, nor texts that are compared without case.
fn is_exact(client: &mut Client, relation: &str, id: &str, of: &Type) -> Result<bool, postgres::Error> {
    match *of {
        Type::TEXT | Type::VARCHAR | Type::BPCHAR => {
            // The collation of the column, without reading it.
            let sql = format!(
                "SELECT coalesce((SELECT collisdeterministic FROM pg_collation WHERE oid = to_regcollation(
                    pg_collation_for(coalesce((SELECT {id} FROM {relation} WHERE false), '')))), false)"
            );
            client.query_one(&sql, &[])?.try_get(0)
        }
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::BOOL | Type::CHAR | Type::NAME => Ok(true),
        Type::UUID | Type::BYTEA | Type::DATE | Type::TIMESTAMP | Type::TIMESTAMPTZ => Ok(true),
        _ => Ok(false),
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
        let Self { relation, id, order, .. } = &*self;
        let offset = offset(order, self.kind);
        let sql = format!("SELECT count(*) FROM {relation} WHERE {id} IS NULL OR coalesce({offset}, -1) < 0");
        self.number(&sql)
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
