//! Parameters of statements, and the statements that several files use.

use std::borrow::Cow;

use postgres::types::ToSql;
use postgres::{Client, Transaction};

use crate::tables::database::postgres::to_stored_text;
use dupflow_core::doc::DocId;

/// Rows sent in one statement.
pub(super) const ROWS: usize = 10_000;

/// A parameter of a statement.
pub(super) type Parameter<'a> = &'a (dyn ToSql + Sync);

/// The boolean that a query returns; NULL is `false`.
pub(super) fn is_true(
    client: &mut Client,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<bool, postgres::Error> {
    Ok(client.query_one(sql, parameters)?.try_get::<_, Option<bool>>(0)?.unwrap_or(false))
}

/// A column of ids, as stored on the server.
pub(super) fn texts<'r, T>(rows: &'r [T], of: impl Fn(&'r T) -> &'r DocId) -> Vec<Cow<'r, str>> {
    let text = |row| {
        let id = of(row).as_str();
        if id.contains(['\0', '\u{1a}']) { Cow::Owned(to_stored_text(id)) } else { Cow::Borrowed(id) }
    };
    rows.iter().map(text).collect()
}

/// A column of values.
pub(super) fn each<'r, T, V>(rows: &'r [T], of: impl Fn(&'r T) -> V) -> Vec<V> {
    rows.iter().map(of).collect()
}

/// Executes a statement. Returns how many rows it has changed.
pub(super) fn execute(
    transaction: &mut Transaction<'_>,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<i64, postgres::Error> {
    transaction.execute(sql, parameters).map(u64::cast_signed)
}

/// Inserts and replaces rows by a statement, which ends in `ON CONFLICT … DO UPDATE …`. Returns how many it
/// has inserted: those that no transaction has locked before.
pub(super) fn put(
    transaction: &mut Transaction<'_>,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<i64, postgres::Error> {
    let counted = format!(
        "WITH put AS ({sql} RETURNING xmax = 0 AS is_new) SELECT count(*) FILTER (WHERE is_new) FROM put"
    );
    transaction.query_one(&counted, parameters)?.try_get(0)
}

/// Deletes rows by their key. Returns how many there were.
pub(super) fn delete(
    transaction: &mut Transaction<'_>,
    table: &str,
    key: &str,
    deletes: &[&DocId],
) -> Result<i64, postgres::Error> {
    let mut deleted = 0;
    for keys in deletes.chunks(ROWS) {
        let ids = texts(keys, |id| id);
        deleted +=
            execute(transaction, &format!("DELETE FROM {table} WHERE {key} = ANY ($1::text[])"), &[&ids])?;
    }
    Ok(deleted)
}
