//! Opening, taking over, committing and reading back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior, params};

use super::decisions;
use super::owned_database::OwnedDatabase;
use super::rows::{Unwritten, begin_deltas, count, progress, put, write};
use crate::failpoint;
use crate::instant;
use crate::owned::{OwnedFile, with_suffix};
use crate::sinks::book::LastDecisions;
use crate::sinks::side::SideRow;
use crate::tables::database::{DatabaseFailure, quoted, retry_until_reachable, sqlite};
use crate::tables::sink::changes::TableChanges;
use crate::tables::sink::progress::{COUNTED, ForeignRows};
use crate::tables::sink::store::{
    Found, Look, SimilarityColumns, TableOutput, TableStore, id, must_write, pair, side_row, sums_of,
};
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::{DocId, Facts, Position};
use dupflow_core::pair::{DocPair, Evidence};
use dupflow_core::time::unix_milliseconds;

/// Tables in a file.
pub(in crate::tables::sink) struct SqliteStore {
    pub(super) path: PathBuf,
    pub(super) run: String,
    pub(super) prefix: String,
    deltas: bool,
    causes: bool,
    /// Whether pairs and deltas have shares, or had them in an earlier run.
    pub(super) shares: bool,
    /// Whether this run writes shares.
    pub(super) is_directed: bool,
    pub(super) decisions: bool,
    connection: Option<Connection>,
    /// The file that the connection has open, and the lock of the tables in it.
    owned: Option<OwnedDatabase>,
}

impl SqliteStore {
    pub(in crate::tables::sink) fn new(output: &TableOutput, path: &Path) -> Self {
        let TableOutput { prefix, run, deltas, causes, shares, .. } = output.clone();
        let decisions = output.decisions.is_some();
        Self {
            path: path.to_owned(),
            run,
            prefix,
            deltas,
            causes,
            shares,
            is_directed: shares,
            decisions,
            connection: None,
            owned: None,
        }
    }

    pub(super) fn table(&self, name: &str) -> String {
        quoted(&format!("{}{name}", self.prefix))
    }

    fn connection(&mut self) -> Result<&mut Connection, DatabaseFailure> {
        let absent = self.absent();
        self.connection.as_mut().ok_or(absent)
    }

    fn absent(&self) -> DatabaseFailure {
        DatabaseFailure::Refused(format!("{}: it has not been taken over", self.path.display()))
    }

    /// Writes a commit, unless an earlier attempt has written it.
    fn write_with(
        &self,
        connection: &mut Connection,
        changes: &TableChanges,
        commits: i64,
        mark: &str,
    ) -> Result<(), DatabaseFailure> {
        let failed = |error: rusqlite::Error| sqlite::failure(&self.path, &error);
        let tables = ["pairs", "clusters", "documents", "deltas", "progress"].map(|name| self.table(name));
        let (causes, shares) = (self.causes, self.shares);
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let found = progress(&transaction, &tables[4]).map_err(failed)?;
        if !must_write(&found, &self.run, commits)? {
            return Ok(());
        }
        let at = instant::millisecond_of(unix_milliseconds());
        let put_all = || {
            let known = found.rows().map_or_else(|| count(&transaction, &tables), Ok)?;
            if changes.deltas_anew {
                begin_deltas(&transaction, &tables, known[0], self.deltas, causes, shares)?;
            }
            let more = put(&transaction, changes, &tables, causes, shares, &self.prefix, &at)?;
            decisions::put(&transaction, changes, &self.table("decisions"), &at)?;
            let sql = format!(
                "UPDATE {} SET commits = commits + 1, epoch = json_extract(?1, '$.progress.epoch'), mark = \
                 ?1, at = ?3, counts = ?2",
                tables[4]
            );
            let mut update = transaction.prepare_cached(&sql)?;
            write(&tables[4], &mut update, params![mark, found.next_counts(known, more), at])
        };
        put_all().map_err(|unwritten| match unwritten {
            Unwritten::Sqlite(error) => failed(error),
            Unwritten::Refused(failure) => failure,
        })?;
        failpoint::reach("tables-sent");
        transaction.commit().map_err(failed)
    }

    /// The failure, with what is wrong with the tables, if something is.
    fn explained(&self, failure: DatabaseFailure) -> DatabaseFailure {
        let DatabaseFailure::Refused(what) = failure else { return failure };
        let reader = sqlite::reader(&self.path).ok();
        let faults = reader.and_then(|reader| self.faults(&reader, self.shares).ok());
        let all: Vec<_> = [what].into_iter().chain(faults.unwrap_or_default()).collect();
        DatabaseFailure::Refused(all.join(". "))
    }

    /// Runs a query and parses its rows.
    fn rows<T>(
        &mut self,
        sql: &str,
        each: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, DatabaseFailure> {
        let path = self.path.clone();
        let connection = self.connection()?;
        let read = || connection.prepare(sql)?.query_map([], each)?.collect::<Result<Vec<T>, _>>();
        read().map_err(|error| sqlite::failure(&path, &error))
    }
}

impl TableStore for SqliteStore {
    fn inspect(&self) -> Result<Found, DatabaseFailure> {
        if self.path.exists() { self.find(&sqlite::reader(&self.path)?) } else { Ok(Found::default()) }
    }

    fn take_over(&mut self) -> Result<Found, DatabaseFailure> {
        let path = self.path.clone();
        // One file may have several names, of which links are followed.
        let lock = with_suffix(
            &path.canonicalize().unwrap_or_else(|_| path.clone()),
            &format!("-{}owner.lock", self.prefix),
        );
        let not_locked =
            |error: std::io::Error| DatabaseFailure::Refused(format!("{}: {error}", lock.display()));
        let lock = OwnedFile::open(&lock).map_err(not_locked)?;
        let mut connection = sqlite::writer(&path)?;
        let owned = OwnedDatabase::new(&path, lock)?;
        let (found, shares) = self.take_over_in(&mut connection)?;
        self.shares = shares;
        self.connection = Some(connection);
        self.owned = Some(owned);
        Ok(found)
    }

    fn write(&mut self, changes: &TableChanges, commits: i64, mark: &str) -> Result<(), DatabaseFailure> {
        self.check()?;
        let mut connection = self.connection.take().ok_or_else(|| self.absent())?;
        // Wait while another process writes to the file.
        let written = retry_until_reachable(&format!("output {}", self.path.display()), None, || {
            self.write_with(&mut connection, changes, commits, mark)
        });
        self.connection = Some(connection);
        written.map_err(|failure| self.explained(failure))
    }

    fn check(&mut self) -> Result<(), DatabaseFailure> {
        self.owned.as_ref().map_or(Ok(()), |owned| owned.check(&self.path))
    }

    fn look(&self) -> Result<Look, DatabaseFailure> {
        let mut connection = sqlite::reader(&self.path)?;
        let mut look = || {
            let snapshot = connection.transaction()?;
            let faults = self.faults(&snapshot, self.shares)?;
            if !faults.is_empty() {
                return Ok(Look { faults, ..Look::default() });
            }
            let progress = progress(&snapshot, &self.table("progress"))?;
            let tables = COUNTED.map(|name| self.table(name));
            let name = |table: &str| format!("{}{table}", self.prefix);
            let foreign = match progress.rows() {
                Some(left) => ForeignRows::find(left, count(&snapshot, &tables)?, name),
                None => None,
            };
            Ok(Look { progress, foreign, ..Look::default() })
        };
        look().map_err(|error| sqlite::failure(&self.path, &error))
    }

    fn forget_counts(&mut self) -> Result<(), DatabaseFailure> {
        let (path, sql) = (self.path.clone(), format!("UPDATE {} SET counts = NULL", self.table("progress")));
        self.connection()?.execute(&sql, []).map(drop).map_err(|error| sqlite::failure(&path, &error))
    }

    fn deltas_add_up(&mut self) -> Result<bool, DatabaseFailure> {
        let sums: Vec<bool> =
            self.rows(&sums_of(&self.table("deltas"), &self.table("pairs")), |row| row.get(0))?;
        Ok(sums == [true])
    }

    fn pairs(&mut self) -> Result<BTreeSet<DocPair>, DatabaseFailure> {
        let (shares, pairs) = (if self.shares { "in_a, in_b" } else { "NULL, NULL" }, self.table("pairs"));
        let sql = format!("SELECT a, b, similarity, blocks, look, components, {shares} FROM {pairs}");
        let rows = self.rows(&sql, |row| {
            let ends: (String, String) = (row.get(0)?, row.get(1)?);
            let evidence = Evidence {
                blocks: row.get::<_, Option<u16>>(3)?.unwrap_or_default(),
                look: row.get::<_, Option<u16>>(4)?.unwrap_or_default(),
                components: row.get::<_, Option<u32>>(5)?.unwrap_or_default(),
            };
            Ok((ends, (row.get(2)?, row.get(6)?, row.get(7)?), evidence))
        })?;
        let one = |((a, b), similarity, evidence): ((String, String), SimilarityColumns, Evidence)| {
            pair(&a, &b, similarity, evidence)
        };
        rows.into_iter().map(one).collect()
    }

    fn clusters(&mut self) -> Result<BTreeSet<ClusterReport>, DatabaseFailure> {
        let sql = format!("SELECT document, cluster FROM {}", self.table("clusters"));
        let rows: Vec<(String, String)> = self.rows(&sql, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let member = |(document, cluster): (String, String)| {
            Ok(ClusterReport::Member { cluster: id(&cluster)?, document: id(&document)? })
        };
        rows.into_iter().map(member).collect()
    }

    fn side_rows(&mut self, table: &str) -> Result<Vec<SideRow>, DatabaseFailure> {
        let (path, table) = (self.path.clone(), self.table(table));
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS {table} (row TEXT NOT NULL PRIMARY KEY, key TEXT NOT NULL,
                epoch INTEGER NOT NULL, at TEXT) WITHOUT ROWID"
        );
        self.connection()?.execute(&sql, []).map_err(|error| sqlite::failure(&path, &error))?;
        let rows =
            self.rows(&format!("SELECT key, row FROM {table}"), |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.into_iter().map(|(key, row): (String, String)| side_row(key, &row)).collect()
    }

    fn documents(&mut self) -> Result<BTreeMap<DocId, Facts>, DatabaseFailure> {
        let sql =
            format!("SELECT id, ts, bytes, source_partition, source_offset FROM {}", self.table("documents"));
        let rows = self.rows(&sql, |row| {
            let position = Position { partition: row.get(3)?, offset: row.get::<_, i64>(4)?.cast_unsigned() };
            Ok((row.get::<_, String>(0)?, Facts { ts: row.get(1)?, bytes: row.get(2)?, position }))
        })?;
        rows.into_iter().map(|(text, facts)| Ok((id(&text)?, facts))).collect()
    }

    fn decisions(&mut self) -> Result<LastDecisions, DatabaseFailure> {
        let (path, table) = (self.path.clone(), self.table("decisions"));
        let rows = decisions::read(self.connection()?, &table);
        decisions::last(rows.map_err(|error| sqlite::failure(&path, &error))?)
    }
}
