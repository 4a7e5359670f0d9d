//! Writing the rows of a commit to a SQLite file; the row of progress, and counting.

use rusqlite::{
    CachedStatement, Connection, OptionalExtension as _, ToSql, Transaction, params, params_from_iter,
};

use crate::tables::database::{DatabaseFailure, quoted};
use crate::tables::sink::changed_rows::{Action, check_changed};
use crate::tables::sink::changes::{PairRow, SplitChanges, TableChanges, split_changes, split_rows};
use crate::tables::sink::progress::{ProgressRow, Rows};
use dupflow_core::doc::{Facts, Position};
use dupflow_core::pair::{Cause, Evidence};

/// Why rows are not written.
pub(super) enum Unwritten {
    Sqlite(rusqlite::Error),
    Refused(DatabaseFailure),
}

impl From<rusqlite::Error> for Unwritten {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<DatabaseFailure> for Unwritten {
    fn from(failure: DatabaseFailure) -> Self {
        Self::Refused(failure)
    }
}

/// Empties the table of deltas; if deltas are kept, fills it with the pairs of the table of pairs, which has
/// `rows`.
pub(super) fn begin_deltas(
    transaction: &Transaction<'_>,
    [pairs, _, _, deltas, _]: &[String; 5],
    rows: i64,
    keeps: bool,
    causes: bool,
    shares: bool,
) -> Result<(), Unwritten> {
    empty(transaction, deltas)?;
    if keeps {
        let shares = if shares { ", in_a, in_b" } else { "" };
        let sql = format!(
            "INSERT INTO {deltas} (epoch, diff, a, b, similarity, cause, at{shares})
             SELECT epoch, 1, a, b, similarity, ?1, at{shares} FROM {pairs} ORDER BY epoch, a, b"
        );
        let written = transaction.execute(&sql, [causes.then(|| Cause::Correction.name())])?;
        check_changed(deltas, Action::Written, usize::try_from(rows).unwrap_or_default(), signed(written))?;
    }
    Ok(())
}

/// Writes the changes with the time `at`. Returns how many rows more than before the counted tables have.
pub(super) fn put(
    transaction: &Transaction<'_>,
    changes: &TableChanges,
    [pairs, clusters, documents, deltas, _]: &[String; 5],
    causes: bool,
    shares: bool,
    prefix: &str,
    at: &str,
) -> Result<Rows, Unwritten> {
    let more = [
        put_pairs(transaction, changes, pairs, shares, at)?,
        put_clusters(transaction, changes, clusters)?,
        put_documents(transaction, changes, documents)?,
    ];
    put_deltas(transaction, changes, deltas, causes, shares, at)?;
    put_side(transaction, changes, prefix, at)?;
    Ok(more)
}

fn signed(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Deletes all rows of a table.
pub(super) fn empty(transaction: &Transaction<'_>, table: &str) -> Result<(), Unwritten> {
    transaction.execute(&format!("DELETE FROM {table}"), [])?;
    let left: i64 = transaction.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
    Ok(check_changed(table, Action::Deleted, usize::try_from(left).unwrap_or_default(), 0)?)
}

/// Deletes rows by the values of these columns. Returns how many there were.
pub(super) fn delete<'k, const N: usize>(
    transaction: &Transaction<'_>,
    table: &str,
    columns: [&str; N],
    keys: impl Iterator<Item = [&'k str; N]>,
) -> Result<i64, Unwritten> {
    let is = columns.map(|column| format!("{column} = ?")).join(" AND ");
    let mut delete = transaction.prepare_cached(&format!("DELETE FROM {table} WHERE {is}"))?;
    let mut deleted = 0;
    for key in keys {
        let gone = delete.execute(params_from_iter(key))?;
        if gone == 0 {
            // A row that was not there need not be deleted.
            let sql = format!("SELECT count(*) FROM {table} WHERE {is}");
            let left: i64 = transaction.query_row(&sql, params_from_iter(key), |row| row.get(0))?;
            check_changed(table, Action::Deleted, usize::try_from(left).unwrap_or_default(), 0)?;
        }
        deleted += signed(gone);
    }
    Ok(deleted)
}

/// Writes a row by a statement that inserts or replaces it.
pub(super) fn write(
    table: &str,
    statement: &mut CachedStatement<'_>,
    row: &[&dyn ToSql],
) -> Result<(), Unwritten> {
    Ok(check_changed(table, Action::Written, 1, signed(statement.execute(row)?))?)
}

/// Inserts and replaces rows of a table, and counts those inserted.
struct Upserts<'t> {
    table: &'t str,
    /// Inserts a row unless its key is there.
    insert: CachedStatement<'t>,
    replace: CachedStatement<'t>,
    added: i64,
}

impl<'t> Upserts<'t> {
    /// `row` is what follows `INSERT OR … INTO` and the name of the table.
    fn new(transaction: &'t Transaction<'_>, table: &'t str, row: &str) -> rusqlite::Result<Self> {
        let statement =
            |how: &str| transaction.prepare_cached(&format!("INSERT OR {how} INTO {table} {row}"));
        Ok(Self { table, insert: statement("IGNORE")?, replace: statement("REPLACE")?, added: 0 })
    }

    fn put(&mut self, row: &[&dyn ToSql]) -> Result<(), Unwritten> {
        if self.insert.execute(row)? > 0 {
            self.added += 1;
            return Ok(());
        }
        write(self.table, &mut self.replace, row)
    }
}

/// The names of the columns of shares and their parameters, from number `first` on, if there are any.
fn share_columns(shares: bool, first: usize) -> (&'static str, String) {
    if shares { (", in_a, in_b", format!(", ?{first}, ?{}", first + 1)) } else { ("", String::new()) }
}

fn put_pairs(
    transaction: &Transaction<'_>,
    changes: &TableChanges,
    pairs: &str,
    shares: bool,
    at: &str,
) -> Result<i64, Unwritten> {
    let SplitChanges { upserts, new, deletes } = split_changes(&changes.pairs);
    let keys = deletes.iter().map(|pair| [pair.lo().as_str(), pair.hi().as_str()]);
    let gone = delete(transaction, pairs, ["a", "b"], keys)?;
    check_changed(pairs, Action::Deleted, deletes.len(), gone)?;
    let (names, values) = share_columns(shares, 10);
    let sql = format!(
        "(a, b, similarity, epoch, blocks, look, components, standard_error, \
         at{names}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9{values})"
    );
    let mut rows = Upserts::new(transaction, pairs, &sql)?;
    for (pair, PairRow { pair: found, epoch, standard_error }) in upserts {
        let Evidence { blocks, look, components } = found.evidence;
        let has_evidence = standard_error.is_some();
        let [in_b, in_a] = found.similarity.shares();
        let row: &[&dyn ToSql] = params![
            pair.lo().as_str(),
            pair.hi().as_str(),
            found.similarity.get(),
            epoch.cast_signed(),
            has_evidence.then_some(blocks),
            has_evidence.then_some(look),
            has_evidence.then_some(components),
            standard_error,
            at,
            in_a,
            in_b
        ];
        rows.put(&row[..if shares { 11 } else { 9 }])?;
    }
    check_changed(pairs, Action::Added, new, rows.added)?;
    Ok(rows.added - gone)
}

fn put_clusters(
    transaction: &Transaction<'_>,
    changes: &TableChanges,
    clusters: &str,
) -> Result<i64, Unwritten> {
    let SplitChanges { upserts, new, deletes } = split_changes(&changes.clusters);
    let keys = deletes.iter().map(|document| [document.as_str()]);
    let gone = delete(transaction, clusters, ["document"], keys)?;
    check_changed(clusters, Action::Deleted, deletes.len(), gone)?;
    let mut rows = Upserts::new(transaction, clusters, "(document, cluster) VALUES (?1, ?2)")?;
    for (document, cluster) in upserts {
        rows.put(&[&document.as_str(), &cluster.as_str()])?;
    }
    check_changed(clusters, Action::Added, new, rows.added)?;
    Ok(rows.added - gone)
}

fn put_documents(
    transaction: &Transaction<'_>,
    changes: &TableChanges,
    documents: &str,
) -> Result<i64, Unwritten> {
    let (upserts, deletes) = split_rows(&changes.documents);
    let gone = delete(transaction, documents, ["id"], deletes.iter().map(|id| [id.as_str()]))?;
    let columns = "(id, ts, bytes, source_partition, source_offset) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut rows = Upserts::new(transaction, documents, columns)?;
    for (document, Facts { ts, bytes, position }) in upserts {
        let Position { partition, offset } = position;
        rows.put(params![document.as_str(), ts, bytes, partition, offset.cast_signed()])?;
    }
    Ok(rows.added - gone)
}

fn put_deltas(
    transaction: &Transaction<'_>,
    changes: &TableChanges,
    deltas: &str,
    causes: bool,
    shares: bool,
    at: &str,
) -> Result<(), Unwritten> {
    let (names, values) = share_columns(shares, 8);
    let sql = format!(
        "INSERT INTO {deltas} (epoch, diff, a, b, similarity, cause, at{names}) VALUES (?1, ?2, ?3, ?4, ?5, \
         ?6, ?7{values})"
    );
    let mut insert = transaction.prepare_cached(&sql)?;
    for (epoch, delta) in &changes.deltas {
        let (a, b) = (delta.pair.pair.lo().as_str(), delta.pair.pair.hi().as_str());
        let cause = causes.then(|| delta.cause.name());
        let diff = if delta.diff > 0 { 1 } else { -1 };
        let similarity = delta.pair.similarity;
        let [in_b, in_a] = similarity.shares();
        let row: &[&dyn ToSql] =
            params![epoch.cast_signed(), diff, a, b, similarity.get(), cause, at, in_a, in_b];
        write(deltas, &mut insert, &row[..if shares { 9 } else { 7 }])?;
    }
    Ok(())
}

/// Writes the rows of side outputs.
fn put_side(
    transaction: &Transaction<'_>,
    changes: &TableChanges,
    prefix: &str,
    at: &str,
) -> Result<(), Unwritten> {
    for (table, rows) in &changes.side {
        let table = quoted(&format!("{prefix}{table}"));
        let SplitChanges { upserts, deletes, .. } = split_changes(rows);
        delete(transaction, &table, ["row"], deletes.iter().map(|row| [row.as_str()]))?;
        let sql = format!("INSERT OR REPLACE INTO {table} (row, key, epoch, at) VALUES (?1, ?2, ?3, ?4)");
        let mut insert = transaction.prepare_cached(&sql)?;
        for (row, (key, epoch)) in upserts {
            write(&table, &mut insert, params![row, key, epoch.cast_signed(), at])?;
        }
    }
    Ok(())
}

/// The row of progress; default if there is none. `counts` is missing in tables of an earlier version, until
/// a run takes them over.
pub(super) fn progress(connection: &Connection, table: &str) -> rusqlite::Result<ProgressRow> {
    let sql = format!("SELECT * FROM {table} WHERE one = 1");
    let stand = |row: &rusqlite::Row<'_>| {
        let counts = row.as_ref().column_index("counts").map_or(Ok(None), |n| row.get(n))?;
        Ok(ProgressRow { run: row.get("run")?, commits: row.get("commits")?, mark: row.get("mark")?, counts })
    };
    Ok(connection.query_row(&sql, [], stand).optional()?.unwrap_or_default())
}

/// The rows of the counted tables, the first of these.
pub(super) fn count(connection: &Connection, tables: &[String]) -> rusqlite::Result<Rows> {
    let mut counted = Rows::default();
    for (rows, table) in counted.iter_mut().zip(tables) {
        *rows = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
    }
    Ok(counted)
}
