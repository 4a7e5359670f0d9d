//! Finds the columns of a table, and prepares the statements that read it.

use std::collections::BTreeMap;

use postgres::Client;
use postgres::types::Type;

use super::expressions::{flag, list_named, literal, offset, seconds, type_name};
use super::look::look_query;
use super::{ASCII, PostgresRows, READING};
use crate::credential::Credential;
use crate::tables::database::postgres::{SETTINGS, connect, failure, other_encoding};
use crate::tables::database::{DatabaseFailure, quoted, quoted_path};
use crate::tables::source::table::{DatabaseTable, OrderKind, PAGE_BYTES, Relation};

impl PostgresRows {
    pub(crate) fn reach(table: &DatabaseTable, url: &Credential) -> Result<Self, DatabaseFailure> {
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
        let position = offset(&order, kind);
        let unseen =
            format!("SELECT count(*) FROM {relation} WHERE {id} IS NULL OR coalesce({position}, -1) < 0");
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
            order,
            kind,
            layout,
            page: table.page,
            from,
            behind,
            one,
            look,
            below,
            unseen,
            settings,
            is_derived,
            identity,
            encoding,
            last: None,
            snapshot: None,
        })
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
