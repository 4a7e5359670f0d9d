//! Taking the tables of a file over: what is there, what is made, and whose the tables are then.

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};

use super::decisions;
use super::store::SqliteStore;
use crate::tables::database::{DatabaseFailure, sqlite};
use crate::tables::sink::changed_rows::{Action, check_changed};
use crate::tables::sink::shape;
use crate::tables::sink::store::{Found, LAYOUT, known_layout};

impl SqliteStore {
    /// Takes the tables over in one transaction. Returns what was there before, and whether there are columns
    /// of shares.
    pub(super) fn take_over_in(&self, connection: &mut Connection) -> Result<(Found, bool), DatabaseFailure> {
        let failed = |error: rusqlite::Error| sqlite::failure(&self.path, &error);
        let refused = |what: &str| DatabaseFailure::Refused(format!("{}: {what}", self.path.display()));
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let found = self.find(&transaction)?;
        let is_missing = |table: &str| found.missing.contains(&table);
        if !is_missing("progress") {
            self.migrate(&transaction)?;
        }
        transaction.execute_batch(&self.schema()).map_err(failed)?;
        let shares = self.add_shares(&transaction).map_err(failed)?;
        if self.decisions {
            let schema = decisions::schema(&self.table("decisions"), &self.table("decisions_of"));
            transaction.execute_batch(&schema).map_err(failed)?;
        }
        // A view follows a table that is renamed.
        if is_missing("clusters") || is_missing("documents") {
            transaction.execute_batch(&self.without_views()).map_err(failed)?;
        }
        transaction.execute_batch(&self.views()).map_err(failed)?;
        let faults = self.faults(&transaction, shares).map_err(failed)?;
        if !faults.is_empty() {
            return Err(refused(&faults.join("\n")));
        }
        let table = self.table("progress");
        let row = "(one, run) VALUES (1, ?1) ON CONFLICT (one) DO UPDATE SET run = ?1";
        let mark = if found.lost().is_some() { ", mark = NULL" } else { "" };
        let sql = format!("INSERT INTO {table} {row}{mark}");
        let claimed = transaction.execute(&sql, [&self.run]).map_err(failed)?;
        check_changed(&table, Action::Written, 1, i64::from(claimed == 1))?;
        self.warn_of_triggers(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok((found, shares))
    }

    /// SQL that creates the tables that are missing.
    fn schema(&self) -> String {
        let name = |name| self.table(name);
        let (pairs, clusters, documents) = (name("pairs"), name("clusters"), name("documents"));
        format!(
            "CREATE TABLE IF NOT EXISTS {pairs} (a TEXT NOT NULL, b TEXT NOT NULL,
                similarity REAL NOT NULL, epoch INTEGER NOT NULL, blocks INTEGER, look INTEGER,
                components INTEGER, standard_error REAL, at TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
             CREATE INDEX IF NOT EXISTS {pairs_b} ON {pairs} (b);
             CREATE INDEX IF NOT EXISTS {pairs_similarity} ON {pairs} (similarity);
             CREATE TABLE IF NOT EXISTS {clusters} (document TEXT NOT NULL PRIMARY KEY,
                cluster TEXT NOT NULL) WITHOUT ROWID;
             CREATE INDEX IF NOT EXISTS {clusters_cluster} ON {clusters} (cluster);
             CREATE TABLE IF NOT EXISTS {documents} (id TEXT NOT NULL PRIMARY KEY, ts REAL,
                bytes INTEGER NOT NULL, source_partition INTEGER NOT NULL,
                source_offset INTEGER NOT NULL) WITHOUT ROWID;
             CREATE TABLE IF NOT EXISTS {deltas} (n INTEGER PRIMARY KEY AUTOINCREMENT,
                epoch INTEGER NOT NULL, diff INTEGER NOT NULL, a TEXT NOT NULL, b TEXT NOT NULL,
                similarity REAL NOT NULL, cause TEXT, at TEXT);
             CREATE TABLE IF NOT EXISTS {progress} (one INTEGER PRIMARY KEY CHECK (one = 1),
                run TEXT NOT NULL, commits INTEGER NOT NULL DEFAULT 0, epoch INTEGER, mark TEXT,
                at TEXT, layout INTEGER NOT NULL DEFAULT {LAYOUT}, counts TEXT);",
            pairs_b = name("pairs_b"),
            pairs_similarity = name("pairs_similarity"),
            clusters_cluster = name("clusters_cluster"),
            deltas = name("deltas"),
            progress = name("progress"),
        )
    }

    /// SQL that creates the views of kept and removed documents, if they are missing. Clusters of containment
    /// do not say what may be removed: then SQL that deletes them.
    fn views(&self) -> String {
        let [clusters, documents, kept, removed] =
            ["clusters", "documents", "kept", "removed"].map(|name| self.table(name));
        if self.is_directed {
            return self.without_views();
        }
        format!(
            "CREATE VIEW IF NOT EXISTS {kept} AS SELECT d.id FROM {documents} d LEFT JOIN {clusters} c ON \
             c.document = d.id
                WHERE c.cluster IS NULL OR c.cluster = d.id;
             CREATE VIEW IF NOT EXISTS {removed} AS SELECT document AS id, cluster AS kept FROM {clusters} \
             WHERE cluster <> document;"
        )
    }

    /// SQL that deletes the views.
    fn without_views(&self) -> String {
        format!("DROP VIEW IF EXISTS {}; DROP VIEW IF EXISTS {};", self.table("kept"), self.table("removed"))
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
    pub(super) fn migrate(&self, transaction: &Transaction<'_>) -> Result<(), DatabaseFailure> {
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

    /// Logs triggers, which may change rows.
    fn warn_of_triggers(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE";
        for shape in shape::needed(self.decisions) {
            let table = format!("{}{}", self.prefix, shape.name);
            let mut triggers = transaction.prepare(sql)?;
            for trigger in triggers.query_map([&table], |row| row.get::<_, String>(0))? {
                shape::warn_of_trigger(&trigger?, &table);
            }
        }
        Ok(())
    }
}
