//! Opening, taking over, committing and reading back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};

use super::decisions;
use super::owned_database::OwnedDatabase;
use super::rows::{NOW, begin_deltas, put};
use crate::failpoint;
use crate::owned::{OwnedFile, with_suffix};
use crate::sinks::decisions::LastDecisions;
use crate::sinks::side::SideRow;
use crate::tables::database::{DatabaseFailure, quoted, retry_until_reachable, sqlite};
use crate::tables::sink::changes::TableChanges;
use crate::tables::sink::progress::{COUNTED, ForeignRows, ProgressRow, Rows};
use crate::tables::sink::store::{
    LAYOUT, SimilarityColumns, TableOutput, TableStore, id, known_layout, must_write, no_rows, pair, side_row,
};
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::{DocId, Facts, Position};
use dupflow_core::pair::{DocPair, Evidence};

/// Tables in a file.
pub(in crate::tables::sink) struct SqliteStore {
    path: PathBuf,
    run: String,
    prefix: String,
    deltas: bool,
    causes: bool,
    /// Whether pairs and deltas have shares, or had them in an earlier run.
    shares: bool,
    /// Whether this run writes shares.
    is_directed: bool,
    decisions: bool,
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

    fn table(&self, name: &str) -> String {
        quoted(&format!("{}{name}", self.prefix))
    }

    fn connection(&mut self) -> Result<&mut Connection, DatabaseFailure> {
        let absent =
            || DatabaseFailure::Refused(format!("{}: it has not been taken over", self.path.display()));
        self.connection.as_mut().ok_or_else(absent)
    }

    /// SQL that creates the tables and views.
    fn schema(&self) -> String {
        let name = |name| self.table(name);
        let (pairs, clusters, documents) = (name("pairs"), name("clusters"), name("documents"));
        format!(
            "CREATE TABLE {pairs} (a TEXT NOT NULL, b TEXT NOT NULL, similarity REAL NOT NULL, epoch INTEGER \
             NOT NULL,
                blocks INTEGER, look INTEGER, components INTEGER, standard_error REAL, at TEXT, PRIMARY KEY \
                (a, b)) WITHOUT ROWID;
             CREATE INDEX {pairs_b} ON {pairs} (b);
             CREATE INDEX {pairs_similarity} ON {pairs} (similarity);
             CREATE TABLE {clusters} (document TEXT NOT NULL PRIMARY KEY, cluster TEXT NOT NULL) WITHOUT \
             ROWID;
             CREATE INDEX {clusters_cluster} ON {clusters} (cluster);
             CREATE TABLE {documents} (id TEXT NOT NULL PRIMARY KEY, ts REAL, bytes INTEGER NOT NULL,
                source_partition INTEGER NOT NULL, source_offset INTEGER NOT NULL) WITHOUT ROWID;
             CREATE TABLE {deltas} (n INTEGER PRIMARY KEY AUTOINCREMENT, epoch INTEGER NOT NULL, diff \
             INTEGER NOT NULL,
                a TEXT NOT NULL, b TEXT NOT NULL, similarity REAL NOT NULL, cause TEXT, at TEXT);
             CREATE TABLE {progress} (one INTEGER PRIMARY KEY CHECK (one = 1), run TEXT NOT NULL,
                commits INTEGER NOT NULL DEFAULT 0, epoch INTEGER, mark TEXT, at TEXT, layout INTEGER NOT \
                NULL DEFAULT {LAYOUT}, counts TEXT);
             {views}",
            pairs_b = name("pairs_b"),
            pairs_similarity = name("pairs_similarity"),
            clusters_cluster = name("clusters_cluster"),
            deltas = name("deltas"),
            progress = name("progress"),
            views = self.views(),
        )
    }

    /// SQL that creates the views of kept and removed documents, if they are missing. Clusters of containment
    /// do not say what may be removed: then SQL that deletes them.
    fn views(&self) -> String {
        let [clusters, documents, kept, removed] =
            ["clusters", "documents", "kept", "removed"].map(|name| self.table(name));
        if self.is_directed {
            return format!("DROP VIEW IF EXISTS {kept}; DROP VIEW IF EXISTS {removed};");
        }
        format!(
            "CREATE VIEW IF NOT EXISTS {kept} AS SELECT d.id FROM {documents} d LEFT JOIN {clusters} c ON \
             c.document = d.id
                WHERE c.cluster IS NULL OR c.cluster = d.id;
             CREATE VIEW IF NOT EXISTS {removed} AS SELECT document AS id, cluster AS kept FROM {clusters} \
             WHERE cluster <> document;"
        )
    }

    fn has_column(&self, transaction: &Transaction<'_>, table: &str, column: &str) -> rusqlite::Result<bool> {
        let sql = "SELECT count(*) > 0 FROM pragma_table_info(?1) WHERE name = ?2";
        transaction.query_row(sql, [&format!("{}{table}", self.prefix), column], |row| row.get(0))
    }

    /// Adds the columns of shares if this run writes shares and they are missing. Returns whether there are
    /// such columns.
    fn add_shares(&self, transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
        let has_shares = self.has_column(transaction, "pairs", "in_a")?;
        if self.is_directed && !has_shares {
            for table in [self.table("pairs"), self.table("deltas")] {
                transaction.execute_batch(&format!(
                    "ALTER TABLE {table} ADD COLUMN in_a REAL; ALTER TABLE {table} ADD COLUMN in_b REAL;"
                ))?;
            }
        }
        if self.is_directed != has_shares {
            transaction.execute_batch(&self.views())?;
        }
        Ok(self.is_directed || has_shares)
    }

    /// SQL that changes tables of layout 1 into layout 2. The times at which old rows were written are
    /// unknown.
    fn migration(&self) -> String {
        let [pairs, deltas, progress, index] =
            ["pairs", "deltas", "progress", "pairs_similarity"].map(|name| self.table(name));
        format!(
            "ALTER TABLE {pairs} ADD COLUMN at TEXT; ALTER TABLE {deltas} ADD COLUMN at TEXT;
             ALTER TABLE {progress} ADD COLUMN at TEXT; ALTER TABLE {progress} ADD COLUMN layout INTEGER NOT \
             NULL DEFAULT {LAYOUT};
             CREATE INDEX {index} ON {pairs} (similarity);"
        )
    }

    /// Changes tables of layout 1 to this layout; refuses later ones.
    fn migrate(&self, transaction: &Transaction<'_>) -> Result<(), DatabaseFailure> {
        let failed = |error: rusqlite::Error| sqlite::failure(&self.path, &error);
        let table = self.table("progress");
        if !self.has_column(transaction, "progress", "counts").map_err(failed)? {
            let sql = format!("ALTER TABLE {table} ADD COLUMN counts TEXT");
            transaction.execute(&sql, []).map_err(failed)?;
        }
        if !self.has_column(transaction, "progress", "layout").map_err(failed)? {
            tracing::info!(
                "{}: tables of the layout before are changed to layout {LAYOUT}",
                self.path.display()
            );
            return transaction.execute_batch(&self.migration()).map_err(failed);
        }
        let sql = format!("SELECT layout FROM {table} WHERE one = 1");
        let found = transaction.query_row(&sql, [], |row| row.get(0)).optional().map_err(failed)?;
        known_layout(&self.path.display().to_string(), found)
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

/// Checks that an existing file can be written to, and that tables of these names hold rows of side outputs
/// if they exist. Writes nothing.
pub(in crate::tables::sink) fn examine(
    path: &Path,
    sides: impl Iterator<Item = String>,
) -> Result<(), DatabaseFailure> {
    let connection = sqlite::reader(path)?;
    let failed = |error: rusqlite::Error| sqlite::failure(path, &error);
    let refused =
        |what: String| DatabaseFailure::Refused(format!("{}: it cannot be written: {what}", path.display()));
    if connection.is_readonly("main").map_err(failed)? {
        return Err(refused("it is read-only".to_owned()));
    }
    for table in sides {
        let sql = "SELECT count(*), count(*) FILTER (WHERE name IN ('row', 'key', 'epoch')) \
                   FROM pragma_table_info(?1)";
        let columns = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let (all, own) = connection.query_row(sql, [&table], columns).map_err(failed)?;
        if all > 0 && own < 3 {
            return Err(refused(no_rows(&table)));
        }
    }
    std::fs::OpenOptions::new().write(true).open(path).map(drop).map_err(|error| refused(error.to_string()))
}

/// The row of progress; default if there is none. `counts` is missing in tables of an earlier version, until
/// a run takes them over.
fn progress(connection: &Connection, table: &str) -> rusqlite::Result<ProgressRow> {
    let sql = format!("SELECT * FROM {table} WHERE one = 1");
    let stand = |row: &rusqlite::Row<'_>| {
        let counts = row.as_ref().column_index("counts").map_or(Ok(None), |n| row.get(n))?;
        Ok(ProgressRow { run: row.get("run")?, commits: row.get("commits")?, mark: row.get("mark")?, counts })
    };
    Ok(connection.query_row(&sql, [], stand).optional()?.unwrap_or_default())
}

/// The rows of the counted tables, the first of these.
fn count(connection: &Connection, tables: &[String]) -> rusqlite::Result<Rows> {
    let mut counted = Rows::default();
    for (rows, table) in counted.iter_mut().zip(tables) {
        *rows = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
    }
    Ok(counted)
}

impl TableStore for SqliteStore {
    fn inspect(&self) -> Result<ProgressRow, DatabaseFailure> {
        if !self.path.exists() {
            return Ok(ProgressRow::default());
        }
        let connection = sqlite::reader(&self.path)?;
        let table = format!("{}progress", self.prefix);
        let is_there = connection.table_exists(None, &*table);
        let found = is_there.and_then(|is_there| match is_there {
            true => progress(&connection, &self.table("progress")),
            false => Ok(ProgressRow::default()),
        });
        found.map_err(|error| sqlite::failure(&self.path, &error))
    }

    fn take_over(&mut self) -> Result<ProgressRow, DatabaseFailure> {
        let path = self.path.clone();
        let failed = |error: rusqlite::Error| sqlite::failure(&path, &error);
        let lock = with_suffix(&path, &format!("-{}owner.lock", self.prefix));
        let not_locked =
            |error: std::io::Error| DatabaseFailure::Refused(format!("{}: {error}", lock.display()));
        let lock = OwnedFile::open(&lock).map_err(not_locked)?;
        let mut connection = sqlite::writer(&path)?;
        let owned = OwnedDatabase::new(&path, lock)?;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let is_there = |name: &str| {
            let sql = "SELECT count(*) > 0 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE";
            transaction
                .query_row(sql, [format!("{}{name}", self.prefix)], |row| row.get::<_, bool>(0))
                .map_err(failed)
        };
        if !is_there("progress")? {
            let decisions = self.decisions.then_some("decisions");
            let names = ["pairs", "clusters", "documents", "deltas", "kept", "removed"];
            for name in names.into_iter().chain(decisions) {
                if is_there(name)? {
                    return Err(DatabaseFailure::Refused(format!(
                        "{}: there is a table {}{name} that no run has made: set sink.prefix, or take \
                         another file",
                        path.display(),
                        self.prefix
                    )));
                }
            }
            transaction.execute_batch(&self.schema()).map_err(failed)?;
        } else {
            self.migrate(&transaction)?;
        }
        self.shares = self.add_shares(&transaction).map_err(failed)?;
        if self.decisions {
            let schema = decisions::schema(&self.table("decisions"), &self.table("decisions_of"));
            transaction.execute_batch(&schema).map_err(failed)?;
        }
        let table = self.table("progress");
        let found = progress(&transaction, &table).map_err(failed)?;
        let sql =
            format!("INSERT INTO {table} (one, run) VALUES (1, ?1) ON CONFLICT (one) DO UPDATE SET run = ?1");
        transaction.execute(&sql, [&self.run]).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        self.connection = Some(connection);
        self.owned = Some(owned);
        Ok(found)
    }

    fn write(&mut self, changes: &TableChanges, commits: i64, mark: &str) -> Result<(), DatabaseFailure> {
        let (path, run, keeps, causes) = (self.path.clone(), self.run.clone(), self.deltas, self.causes);
        let shares = self.shares;
        let prefix = self.prefix.clone();
        let decisions = self.table("decisions");
        let tables = ["pairs", "clusters", "documents", "deltas", "progress"].map(|name| self.table(name));
        self.check()?;
        let open = self.connection()?;
        let write_once = |connection: &mut Connection| -> Result<(), DatabaseFailure> {
            let failed = |error: rusqlite::Error| sqlite::failure(&path, &error);
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
            let found = progress(&transaction, &tables[4]).map_err(failed)?;
            if !must_write(&found, &run, commits)? {
                return Ok(());
            }
            if changes.deltas_anew {
                begin_deltas(&transaction, &tables, keeps, (causes, shares)).map_err(failed)?;
            }
            let known = found.rows().map_or_else(|| count(&transaction, &tables), Ok).map_err(failed)?;
            let more = put(&transaction, changes, &tables, (causes, shares, &prefix)).map_err(failed)?;
            decisions::put(&transaction, changes, &decisions, NOW).map_err(failed)?;
            let sql = format!(
                "UPDATE {} SET commits = commits + 1, epoch = json_extract(?1, '$.progress.epoch'), mark = \
                 ?1, at = {NOW}, counts = ?2",
                tables[4]
            );
            transaction.execute(&sql, [mark, &found.next_counts(known, more)]).map_err(failed)?;
            failpoint::reach("tables-sent");
            transaction.commit().map_err(failed)
        };
        // Wait while another process writes to the file.
        retry_until_reachable(&format!("output {}", path.display()), None, || write_once(open))
    }

    fn check(&mut self) -> Result<(), DatabaseFailure> {
        self.owned.as_ref().map_or(Ok(()), |owned| owned.check(&self.path))
    }

    fn foreign_rows(&self) -> Result<Option<ForeignRows>, DatabaseFailure> {
        let failed = |error: rusqlite::Error| sqlite::failure(&self.path, &error);
        let mut connection = sqlite::reader(&self.path)?;
        let snapshot = connection.transaction().map_err(failed)?;
        let Some(left) = progress(&snapshot, &self.table("progress")).map_err(failed)?.rows() else {
            return Ok(None);
        };
        let there = count(&snapshot, &COUNTED.map(|name| self.table(name))).map_err(failed)?;
        Ok(ForeignRows::find(left, there, |table| format!("{}{table}", self.prefix)))
    }

    fn forget_counts(&mut self) -> Result<(), DatabaseFailure> {
        let (path, sql) = (self.path.clone(), format!("UPDATE {} SET counts = NULL", self.table("progress")));
        self.connection()?.execute(&sql, []).map(drop).map_err(|error| sqlite::failure(&path, &error))
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
