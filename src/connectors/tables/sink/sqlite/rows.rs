//! Writing the rows of a commit to a SQLite file.

use rusqlite::{CachedStatement, ToSql, Transaction, params};

use crate::tables::database::quoted;
use crate::tables::sink::changes::{PairRow, TableChanges, split_rows};
use crate::tables::sink::progress::Rows;
use dupflow_core::doc::{Facts, Position};
use dupflow_core::pair::{Cause, Evidence};

/// SQL of the present time: UTC in ISO 8601, which SQLite's functions parse.
pub(super) const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

/// Empties the table of deltas; if deltas are kept, fills it with the pairs of the table of pairs.
pub(super) fn begin_deltas(
    transaction: &Transaction<'_>,
    [pairs, _, _, deltas, _]: &[String; 5],
    keeps: bool,
    (causes, shares): (bool, bool),
) -> rusqlite::Result<()> {
    transaction.execute(&format!("DELETE FROM {deltas}"), [])?;
    if keeps {
        let shares = if shares { ", in_a, in_b" } else { "" };
        let sql = format!(
            "INSERT INTO {deltas} (epoch, diff, a, b, similarity, cause, at{shares})
             SELECT epoch, 1, a, b, similarity, ?1, at{shares} FROM {pairs} ORDER BY epoch, a, b"
        );
        transaction.execute(&sql, [causes.then(|| Cause::Correction.name())])?;
    }
    Ok(())
}

/// Writes the changes. Returns how many rows more than before the counted tables have.
pub(super) fn put(
    transaction: &Transaction<'_>,
    changes: &TableChanges,
    [pairs, clusters, documents, deltas, _]: &[String; 5],
    (causes, shares, prefix): (bool, bool, &str),
) -> rusqlite::Result<Rows> {
    let more = [
        put_pairs(transaction, changes, pairs, shares)?,
        put_clusters(transaction, changes, clusters)?,
        put_documents(transaction, changes, documents)?,
    ];
    put_deltas(transaction, changes, deltas, (causes, shares))?;
    put_side(transaction, changes, prefix)?;
    Ok(more)
}

/// Counts the rows of a table that are inserted and deleted.
#[derive(Default)]
struct Counted(i64);

impl Counted {
    fn delete(&mut self, delete: &mut CachedStatement<'_>, key: &[&dyn ToSql]) -> rusqlite::Result<()> {
        self.0 -= i64::from(delete.execute(key)? > 0);
        Ok(())
    }

    /// Writes a row by one of two statements: the first inserts it unless its key is there, the second
    /// replaces it.
    fn put(
        &mut self,
        [insert, replace]: &mut [CachedStatement<'_>; 2],
        row: &[&dyn ToSql],
    ) -> rusqlite::Result<()> {
        if insert.execute(row)? > 0 {
            self.0 += 1;
        } else {
            replace.execute(row)?;
        }
        Ok(())
    }
}

/// The statements of [`Counted::put`], for what follows `INSERT OR …`.
fn inserts<'t>(transaction: &'t Transaction<'_>, row: &str) -> rusqlite::Result<[CachedStatement<'t>; 2]> {
    let statement = |how: &str| transaction.prepare_cached(&format!("INSERT OR {how} {row}"));
    Ok([statement("IGNORE")?, statement("REPLACE")?])
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
) -> rusqlite::Result<i64> {
    let (upserts, deletes) = split_rows(&changes.pairs);
    let mut delete = transaction.prepare_cached(&format!("DELETE FROM {pairs} WHERE a = ?1 AND b = ?2"))?;
    let mut counted = Counted::default();
    for pair in deletes {
        counted.delete(&mut delete, &[&pair.lo().as_str(), &pair.hi().as_str()])?;
    }
    let (names, values) = share_columns(shares, 9);
    let sql = format!(
        "INTO {pairs} (a, b, similarity, epoch, blocks, look, components, standard_error, \
         at{names}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, {NOW}{values})"
    );
    let mut inserts = inserts(transaction, &sql)?;
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
            in_a,
            in_b
        ];
        counted.put(&mut inserts, &row[..if shares { 10 } else { 8 }])?;
    }
    Ok(counted.0)
}

fn put_clusters(
    transaction: &Transaction<'_>,
    changes: &TableChanges,
    clusters: &str,
) -> rusqlite::Result<i64> {
    let (upserts, deletes) = split_rows(&changes.clusters);
    let mut delete = transaction.prepare_cached(&format!("DELETE FROM {clusters} WHERE document = ?1"))?;
    let mut counted = Counted::default();
    for document in deletes {
        counted.delete(&mut delete, &[&document.as_str()])?;
    }
    let mut inserts = inserts(transaction, &format!("INTO {clusters} VALUES (?1, ?2)"))?;
    for (document, cluster) in upserts {
        counted.put(&mut inserts, &[&document.as_str(), &cluster.as_str()])?;
    }
    Ok(counted.0)
}

fn put_documents(
    transaction: &Transaction<'_>,
    changes: &TableChanges,
    documents: &str,
) -> rusqlite::Result<i64> {
    let (upserts, deletes) = split_rows(&changes.documents);
    let mut delete = transaction.prepare_cached(&format!("DELETE FROM {documents} WHERE id = ?1"))?;
    let mut counted = Counted::default();
    for document in deletes {
        counted.delete(&mut delete, &[&document.as_str()])?;
    }
    let mut inserts = inserts(transaction, &format!("INTO {documents} VALUES (?1, ?2, ?3, ?4, ?5)"))?;
    for (document, Facts { ts, bytes, position }) in upserts {
        let Position { partition, offset } = position;
        let row = params![document.as_str(), ts, bytes, partition, offset.cast_signed()];
        counted.put(&mut inserts, row)?;
    }
    Ok(counted.0)
}

fn put_deltas(
    transaction: &Transaction<'_>,
    changes: &TableChanges,
    deltas: &str,
    (causes, shares): (bool, bool),
) -> rusqlite::Result<()> {
    let (names, values) = share_columns(shares, 7);
    let sql = format!(
        "INSERT INTO {deltas} (epoch, diff, a, b, similarity, cause, at{names}) VALUES (?1, ?2, ?3, ?4, ?5, \
         ?6, {NOW}{values})"
    );
    let mut insert = transaction.prepare_cached(&sql)?;
    for (epoch, delta) in &changes.deltas {
        let (a, b) = (delta.pair.pair.lo().as_str(), delta.pair.pair.hi().as_str());
        let cause = causes.then(|| delta.cause.name());
        let diff = if delta.diff > 0 { 1 } else { -1 };
        let similarity = delta.pair.similarity;
        let [in_b, in_a] = similarity.shares();
        let row: &[&dyn ToSql] =
            params![epoch.cast_signed(), diff, a, b, similarity.get(), cause, in_a, in_b];
        insert.execute(&row[..if shares { 8 } else { 6 }])?;
    }
    Ok(())
}

/// Writes the rows of side outputs.
fn put_side(transaction: &Transaction<'_>, changes: &TableChanges, prefix: &str) -> rusqlite::Result<()> {
    for (table, rows) in &changes.side {
        let table = quoted(&format!("{prefix}{table}"));
        let (upserts, deletes) = split_rows(rows);
        let mut delete = transaction.prepare_cached(&format!("DELETE FROM {table} WHERE row = ?1"))?;
        for row in deletes {
            delete.execute([row])?;
        }
        let sql = format!("INSERT OR REPLACE INTO {table} VALUES (?1, ?2, ?3, {NOW})");
        let mut insert = transaction.prepare_cached(&sql)?;
        for (row, (key, epoch)) in upserts {
            insert.execute(params![row, key, epoch.cast_signed()])?;
        }
    }
    Ok(())
}
