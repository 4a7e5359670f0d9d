//! The table of decisions in a SQLite file.

use rusqlite::{Connection, ToSql, Transaction, params};

use super::rows::{Unwritten, delete, empty, write};
use crate::sinks::book::LastDecisions;
use crate::tables::database::DatabaseFailure;
use crate::tables::sink::changes::{DecisionRow, TableChanges, split_rows};
use crate::tables::sink::store::{DecisionColumns, id};
use dupflow_core::doc::Position;

/// SQL that creates the table. `index` is the quoted name of its index.
pub(super) fn schema(table: &str, index: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {table} (id TEXT NOT NULL PRIMARY KEY, source_partition INTEGER NOT NULL,
            source_offset INTEGER NOT NULL, epoch INTEGER NOT NULL, at TEXT NOT NULL, ended INTEGER NOT NULL,
            copy INTEGER NOT NULL, \"of\" TEXT, repeats TEXT NOT NULL, pairs INTEGER NOT NULL, cluster TEXT)
            WITHOUT ROWID;
         CREATE INDEX IF NOT EXISTS {index} ON {table} (\"of\");"
    )
}

/// Writes the rows of decisions with the time `at`.
pub(super) fn put(
    transaction: &Transaction<'_>,
    changes: &TableChanges,
    table: &str,
    at: &str,
) -> Result<(), Unwritten> {
    if changes.decisions_anew {
        empty(transaction, table)?;
    }
    let (upserts, deletes) = split_rows(&changes.decisions);
    if upserts.is_empty() && deletes.is_empty() {
        return Ok(());
    }
    delete(transaction, table, ["id"], deletes.iter().map(|document| [document.as_str()]))?;
    let sql = format!(
        "INSERT OR REPLACE INTO {table} (id, source_partition, source_offset, epoch, at, ended, copy, \"of\",
            repeats, pairs, cluster) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
    );
    let mut insert = transaction.prepare_cached(&sql)?;
    for (document, DecisionRow { decision, epoch }) in upserts {
        let Position { partition, offset } = decision.position.unwrap_or_default();
        let columns = DecisionColumns::new(decision);
        let row: &[&dyn ToSql] = params![
            document.as_str(),
            partition,
            offset.cast_signed(),
            epoch.cast_signed(),
            at,
            columns.ended,
            columns.copy,
            columns.of,
            columns.repeats,
            columns.pairs,
            columns.cluster
        ];
        write(table, &mut insert, row)?;
    }
    Ok(())
}

/// The rows of decisions.
pub(super) fn read(connection: &Connection, table: &str) -> rusqlite::Result<Vec<(String, DecisionColumns)>> {
    let sql = format!(
        "SELECT id, source_partition, source_offset, ended, copy, \"of\", repeats, pairs, cluster
         FROM {table}"
    );
    let row = |row: &rusqlite::Row<'_>| {
        let columns = DecisionColumns {
            position: Position { partition: row.get(1)?, offset: row.get::<_, i64>(2)?.cast_unsigned() },
            ended: row.get(3)?,
            copy: row.get(4)?,
            of: row.get(5)?,
            repeats: row.get(6)?,
            pairs: row.get(7)?,
            cluster: row.get(8)?,
        };
        Ok((row.get(0)?, columns))
    };
    connection.prepare(&sql)?.query_map([], row)?.collect()
}

/// The rows as decisions.
pub(super) fn last(rows: Vec<(String, DecisionColumns)>) -> Result<LastDecisions, DatabaseFailure> {
    let decision = |(text, columns): (String, DecisionColumns)| {
        let document = id(&text)?;
        Ok((document.clone(), columns.decision(document)?))
    };
    rows.into_iter().map(decision).collect::<Result<_, _>>().map(LastDecisions)
}
