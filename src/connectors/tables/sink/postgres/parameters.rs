//! Parameters of statements, and the statements that several files use.

use std::borrow::Cow;

use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Transaction};

use crate::tables::database::DatabaseFailure;
use crate::tables::database::postgres::{failure, to_stored_text};
use crate::tables::sink::changed_rows::{Action, check_changed};
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

/// An error of a statement on a table.
pub(super) fn failure_on(table: &str, error: &postgres::Error) -> DatabaseFailure {
    match failure(error) {
        // It says itself what to do.
        DatabaseFailure::Refused(what) if error.code() == Some(&SqlState::UNTRANSLATABLE_CHARACTER) => {
            DatabaseFailure::Refused(format!("the table {table}: {what}. Nothing of this commit is written"))
        }
        DatabaseFailure::Refused(what) => DatabaseFailure::Refused(format!(
            "the table {table}: {what}. Nothing of this commit is written. Undo what refuses it (a \
             constraint, a trigger, a rule, a right), and start again"
        )),
        DatabaseFailure::Away(what) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            DatabaseFailure::Away(format!("the table {table}: another session holds a lock: {what}"))
        }
        away @ DatabaseFailure::Away(_) => away,
    }
}

/// Executes a statement. Returns how many rows it has changed.
pub(super) fn execute(
    transaction: &mut Transaction<'_>,
    table: &str,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<i64, DatabaseFailure> {
    let changed = transaction.execute(sql, parameters).map_err(|error| failure_on(table, &error))?;
    Ok(changed.cast_signed())
}

/// Inserts `sent` rows.
pub(super) fn insert(
    transaction: &mut Transaction<'_>,
    table: &str,
    sql: &str,
    parameters: &[Parameter<'_>],
    sent: usize,
) -> Result<(), DatabaseFailure> {
    check_changed(table, Action::Written, sent, execute(transaction, table, sql, parameters)?)
}

/// Inserts and replaces `sent` rows by a statement, which ends in `ON CONFLICT … DO UPDATE …`. Returns how
/// many it has inserted: those that no transaction has locked before.
pub(super) fn put(
    transaction: &mut Transaction<'_>,
    table: &str,
    sql: &str,
    parameters: &[Parameter<'_>],
    sent: usize,
) -> Result<i64, DatabaseFailure> {
    let counted = format!(
        "WITH put AS ({sql} RETURNING xmax = 0 AS is_new)
         SELECT count(*), count(*) FILTER (WHERE is_new) FROM put"
    );
    let counts = transaction.query_one(&counted, parameters);
    let counts = counts.and_then(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    let (written, added) = counts.map_err(|error| failure_on(table, &error))?;
    check_changed(table, Action::Written, sent, written)?;
    Ok(added)
}

/// Deletes rows by their key. Returns how many there were.
pub(super) fn delete(
    transaction: &mut Transaction<'_>,
    table: &str,
    key: &str,
    deletes: &[&DocId],
) -> Result<i64, DatabaseFailure> {
    let mut deleted = 0;
    for keys in deletes.chunks(ROWS) {
        let ids = texts(keys, |id| id);
        let of_keys = format!("FROM {table} WHERE {key} = ANY ($1::text[])");
        let gone = execute(transaction, table, &format!("DELETE {of_keys}"), &[&ids])?;
        check_gone(transaction, table, &of_keys, &[&ids], keys.len(), gone)?;
        deleted += gone;
    }
    Ok(deleted)
}

/// Deletes all rows of a table.
pub(super) fn empty(transaction: &mut Transaction<'_>, table: &str) -> Result<(), DatabaseFailure> {
    let gone = execute(transaction, table, &format!("DELETE FROM {table}"), &[])?;
    check_gone(transaction, table, &format!("FROM {table}"), &[], usize::MAX, gone)
}

/// Checks, where a statement has deleted fewer rows than were sent, that the others were not there. `of_keys`
/// is SQL from `FROM` on.
pub(super) fn check_gone(
    transaction: &mut Transaction<'_>,
    table: &str,
    of_keys: &str,
    parameters: &[Parameter<'_>],
    sent: usize,
    gone: i64,
) -> Result<(), DatabaseFailure> {
    if usize::try_from(gone).is_ok_and(|gone| gone >= sent) {
        return Ok(());
    }
    let left = transaction.query_one(&format!("SELECT count(*) {of_keys}"), parameters);
    let left: i64 = left.and_then(|row| row.try_get(0)).map_err(|error| failure_on(table, &error))?;
    let there = usize::try_from(gone + left).unwrap_or(usize::MAX);
    check_changed(table, Action::Deleted, there, gone)
}
