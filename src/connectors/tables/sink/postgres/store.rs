//! Connecting, taking over, committing and reading back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use postgres::{Client, IsolationLevel, Transaction};

use super::parameters::is_true;
use crate::credential::Credential;
use crate::failpoint;
use crate::sinks::decisions::LastDecisions;
use crate::sinks::side::SideRow;
use crate::tables::database::postgres::{connect, failure, from_stored_text};
use crate::tables::database::{DatabaseFailure, quoted, retry_until_reachable};
use crate::tables::sink::changes::TableChanges;
use crate::tables::sink::progress::{COUNTED, ForeignRows, ProgressRow, Rows};
use crate::tables::sink::store::{
    LAYOUT, SimilarityColumns, TableOutput, TableStore, id, known_layout, must_write, pair, side_row,
};
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::{DocId, Facts, Position};
use dupflow_core::pair::{DocPair, Evidence};

/// SQL that names the connection: no other one of the server ever has this name.
const WRITER: &str = "(SELECT pid || ' ' || backend_start FROM pg_stat_get_activity(pg_backend_pid()))";

/// Tables on a server, in one schema.
pub(in crate::tables::sink) struct PostgresStore {
    pub(super) url: Credential,
    pub(super) schema: String,
    pub(super) prefix: String,
    pub(super) run: String,
    pub(super) deltas: bool,
    pub(super) causes: bool,
    /// Whether pairs and deltas have shares, or had them in an earlier run.
    pub(super) shares: bool,
    /// Whether this run writes shares.
    pub(super) is_directed: bool,
    /// Whether decisions are written.
    pub(super) decisions: bool,
    pub(super) patience: Duration,
    /// Present while connected.
    pub(super) client: Option<Client>,
}

impl PostgresStore {
    pub(in crate::tables::sink) fn new(output: &TableOutput, url: &Credential) -> Self {
        let TableOutput { schema, prefix, run, deltas, causes, shares, patience, .. } = output.clone();
        Self {
            url: url.clone(),
            schema,
            prefix,
            run,
            deltas,
            causes,
            shares,
            is_directed: shares,
            decisions: output.decisions.is_some(),
            patience,
            client: None,
        }
    }

    /// Changes tables of layout 1 to this layout. Returns the layout of any others.
    fn migrate(&self, transaction: &mut Transaction<'_>) -> Result<Option<i64>, postgres::Error> {
        let progress = self.table("progress");
        let has_layout =
            "SELECT count(*) > 0 FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'layout'
             AND NOT attisdropped";
        let has_layout = transaction.query_one(has_layout, &[&progress])?.try_get::<_, bool>(0)?;
        if !has_layout {
            tracing::info!("output postgres: tables of the layout before are changed to layout {LAYOUT}");
            transaction.batch_execute(&self.migration())?;
            return Ok(None);
        }
        let found = transaction.query_opt(&format!("SELECT layout FROM {progress} WHERE one = 1"), &[])?;
        found.map(|row| row.try_get::<_, i32>(0).map(i64::from)).transpose()
    }

    /// Adds the columns of shares if this run writes shares and they are missing. Returns whether there are
    /// such columns.
    fn add_shares(&self, transaction: &mut Transaction<'_>) -> Result<bool, postgres::Error> {
        let has_shares =
            "SELECT count(*) > 0 FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'in_a'
             AND NOT attisdropped";
        let has_shares = transaction.query_one(has_shares, &[&self.table("pairs")])?.try_get::<_, bool>(0)?;
        if self.is_directed && !has_shares {
            transaction.batch_execute(&self.more_columns())?;
        }
        if self.is_directed != has_shares {
            transaction.batch_execute(&self.views())?;
        }
        Ok(self.is_directed || has_shares)
    }

    /// Calls `operation` with a connection; drops the connection if that fails.
    fn with<T>(
        &mut self,
        operation: impl FnOnce(&mut Client) -> Result<T, DatabaseFailure>,
    ) -> Result<T, DatabaseFailure> {
        let mut client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => connect(&self.url, self.patience)?,
        };
        let ended = operation(&mut client)?;
        self.client = Some(client);
        Ok(ended)
    }

    /// Connects and takes the tables over. Returns the connection, the row of progress found before, and
    /// whether there are columns of shares.
    fn connect_and_take_over(&self) -> Result<(Client, ProgressRow, bool), DatabaseFailure> {
        let mut client = connect(&self.url, self.patience)?;
        let failed = |error: postgres::Error| failure(&error);
        let mut transaction = client.transaction().map_err(failed)?;
        let taken = self.take_over_in(&mut transaction);
        let (found, layout, shares) = taken.map_err(|error| match failure(&error) {
            DatabaseFailure::Refused(what) => DatabaseFailure::Refused(format!(
                "{what}: the tables cannot be made in the schema \"{}\"; sink.schema and sink.prefix say \
                 where they are",
                self.schema
            )),
            away @ DatabaseFailure::Away(_) => away,
        })?;
        known_layout("output postgres", layout)?;
        self.claim(&mut transaction, &found.run)?;
        transaction.commit().map_err(failed)?;
        Ok((client, found, shares))
    }

    /// Takes the tables over in one transaction. A lock makes two runs that start at the same time wait for
    /// each other.
    fn take_over_in(
        &self,
        transaction: &mut Transaction<'_>,
    ) -> Result<(ProgressRow, Option<i64>, bool), postgres::Error> {
        let progress = self.table("progress");
        let lock = format!("dupflow {progress}");
        transaction.execute("SELECT pg_advisory_xact_lock(hashtext($1))", &[&lock])?;
        let is_there: bool =
            transaction.query_one("SELECT to_regclass($1) IS NOT NULL", &[&progress])?.try_get(0)?;
        if !is_there {
            let has_schema = "SELECT count(*) > 0 FROM pg_namespace WHERE nspname = $1";
            if !transaction.query_one(has_schema, &[&self.schema])?.try_get::<_, bool>(0)? {
                transaction.batch_execute(&format!("CREATE SCHEMA {}", quoted(&self.schema)))?;
            }
            transaction.batch_execute(&self.tables())?;
        }
        if self.decisions {
            transaction.batch_execute(&self.decisions_table())?;
        }
        let layout = if is_there { self.migrate(transaction)? } else { None };
        let shares = self.add_shares(transaction)?;
        let found = self.lock_progress(transaction)?;
        Ok((found, layout, shares))
    }

    /// Writes the name of this run and its connection into the row of progress. Refused, for now, while the
    /// run before is connected.
    fn claim(&self, transaction: &mut Transaction<'_>, before: &str) -> Result<(), DatabaseFailure> {
        let failed = |error: postgres::Error| failure(&error);
        let progress = self.table("progress");
        if self.lacks_columns(transaction).map_err(failed)? {
            let sql = self.missing_columns();
            transaction.batch_execute(&sql).map_err(|error| match failure(&error) {
                DatabaseFailure::Refused(what) => {
                    DatabaseFailure::Refused(format!("{what}: {}", Self::by_owner(&sql)))
                }
                away @ DatabaseFailure::Away(_) => away,
            })?;
        }
        let connected = format!(
            "SELECT pid FROM pg_stat_activity, {progress} WHERE one = 1 AND run <> $1
             AND writer = pid || ' ' || backend_start"
        );
        let connected = transaction.query_opt(&connected, &[&self.run]).map_err(failed)?;
        if let Some(row) = connected {
            let pid: i32 = row.try_get(0).map_err(failed)?;
            return Err(DatabaseFailure::Away(format!(
                "another run ({before}) writes to the tables: stop it, or set sink.prefix. Its connection is \
                 process {pid} of the server; if its machine is gone: SELECT pg_terminate_backend({pid})"
            )));
        }
        let sql = format!(
            "INSERT INTO {progress} (one, run, writer) VALUES (1, $1, {WRITER})
             ON CONFLICT (one) DO UPDATE SET run = excluded.run, writer = excluded.writer"
        );
        transaction.execute(&sql, &[&self.run]).map(drop).map_err(failed)
    }

    /// The row of progress; default if there is none.
    fn read_progress(&self, client: &mut Client) -> Result<ProgressRow, postgres::Error> {
        if !self.is_made(client)? {
            return Ok(ProgressRow::default());
        }
        progress_row(client.query_opt(&self.select_progress(), &[])?)
    }

    /// SQL that reads the row of progress. `counts` is missing in tables of an earlier version, until a run
    /// takes them over.
    fn select_progress(&self) -> String {
        format!(
            "SELECT run, commits, mark, to_jsonb(p) ->> 'counts' FROM {} p WHERE one = 1",
            self.table("progress")
        )
    }

    /// The row of progress, locked until the transaction ends.
    fn lock_progress(&self, transaction: &mut Transaction<'_>) -> Result<ProgressRow, postgres::Error> {
        progress_row(transaction.query_opt(&format!("{} FOR UPDATE", self.select_progress()), &[])?)
    }

    /// The rows of the counted tables.
    fn count(&self, transaction: &mut Transaction<'_>) -> Result<Rows, postgres::Error> {
        let tables = COUNTED.map(|name| format!("(SELECT count(*) FROM {})", self.table(name)));
        let row = transaction.query_one(&format!("SELECT ARRAY[{}]", tables.join(", ")), &[])?;
        let mut rows = Rows::default();
        rows.copy_from_slice(&row.try_get::<_, Vec<i64>>(0)?);
        Ok(rows)
    }

    /// See [`TableStore::foreign_rows`].
    fn foreign(&self, client: &mut Client) -> Result<Option<ForeignRows>, postgres::Error> {
        let snapshot = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
        let mut snapshot = snapshot.read_only(true).start()?;
        let Some(left) = progress_row(snapshot.query_opt(&self.select_progress(), &[])?)?.rows() else {
            return Ok(None);
        };
        let there = self.count(&mut snapshot)?;
        Ok(ForeignRows::find(left, there, |table| self.table(table)))
    }

    /// Runs a query and parses its rows; waits for an unreachable server.
    pub(super) fn rows<T>(
        &mut self,
        sql: &str,
        read: impl Fn(&postgres::Row) -> Result<T, postgres::Error>,
    ) -> Result<Vec<T>, DatabaseFailure> {
        retry_until_reachable("output postgres", None, || {
            self.with(|client| {
                let found = client.query(sql, &[]).map_err(|error| failure(&error))?;
                found.iter().map(&read).collect::<Result<_, _>>().map_err(|error| failure(&error))
            })
        })
    }
}

/// Leaves the tables to the next run at once, also where a pooler keeps the connection.
impl Drop for PostgresStore {
    fn drop(&mut self) {
        let sql = format!("UPDATE {} SET writer = NULL WHERE writer = {WRITER}", self.table("progress"));
        if let Some(mut client) = self.client.take().filter(|client| !client.is_closed()) {
            drop(client.batch_execute(&sql));
        }
    }
}

/// Parses the row of progress; default if there is none.
fn progress_row(row: Option<postgres::Row>) -> Result<ProgressRow, postgres::Error> {
    let Some(row) = row else { return Ok(ProgressRow::default()) };
    Ok(ProgressRow {
        run: row.try_get(0)?,
        commits: row.try_get(1)?,
        mark: row.try_get(2)?,
        counts: row.try_get(3)?,
    })
}

impl TableStore for PostgresStore {
    fn inspect(&self) -> Result<ProgressRow, DatabaseFailure> {
        retry_until_reachable("output postgres", Some(self.patience), || {
            let mut client = connect(&self.url, self.patience)?;
            self.read_progress(&mut client).map_err(|error| failure(&error))
        })
    }

    /// A server that is unreachable at the start is waited for only as long as `patience`.
    fn take_over(&mut self) -> Result<ProgressRow, DatabaseFailure> {
        let (client, found, shares) =
            retry_until_reachable("output postgres", Some(self.patience), || self.connect_and_take_over())?;
        self.client = Some(client);
        self.shares = shares;
        Ok(found)
    }

    fn write(&mut self, changes: &TableChanges, commits: i64, mark: &str) -> Result<(), DatabaseFailure> {
        let update = format!(
            "UPDATE {} SET commits = commits + 1, epoch = ($1::text::json -> 'progress' ->> \
             'epoch')::bigint, mark = $1::text, at = now(), counts = $2::text, writer = {WRITER}
             WHERE one = 1",
            self.table("progress")
        );
        let failed = |error: postgres::Error| failure(&error);
        retry_until_reachable("output postgres", None, || {
            let mut client = match self.client.take().filter(|client| !client.is_closed()) {
                Some(client) => client,
                None => connect(&self.url, self.patience)?,
            };
            let mut transaction = client.transaction().map_err(failed)?;
            let found = self.lock_progress(&mut transaction).map_err(failed)?;
            if must_write(&found, &self.run, commits)? {
                let rows = found.rows().map_or_else(|| self.count(&mut transaction), Ok).map_err(failed)?;
                let more = self.put(&mut transaction, changes).map_err(failed)?;
                transaction.execute(&update, &[&mark, &found.next_counts(rows, more)]).map_err(failed)?;
                failpoint::reach("tables-sent");
                transaction.commit().map_err(failed)?;
            } else {
                transaction.rollback().map_err(failed)?;
            }
            self.client = Some(client);
            Ok(())
        })
    }

    fn foreign_rows(&self) -> Result<Option<ForeignRows>, DatabaseFailure> {
        let mut client = connect(&self.url, self.patience)?;
        self.foreign(&mut client).map_err(|error| failure(&error))
    }

    fn forget_counts(&mut self) -> Result<(), DatabaseFailure> {
        let sql = format!("UPDATE {} SET counts = NULL", self.table("progress"));
        retry_until_reachable("output postgres", None, || {
            self.with(|client| client.batch_execute(&sql).map_err(|error| failure(&error)))
        })
    }

    fn pairs(&mut self) -> Result<BTreeSet<DocPair>, DatabaseFailure> {
        let shares = if self.shares { "in_a, in_b" } else { "NULL::float8, NULL::float8" };
        let pairs = self.table("pairs");
        let sql = format!("SELECT a, b, similarity, blocks, look, components, {shares} FROM {pairs}");
        let rows = self.rows(&sql, |row| {
            let ends: (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let (blocks, look): (Option<i32>, Option<i32>) = (row.try_get(3)?, row.try_get(4)?);
            let (blocks, look) =
                [blocks, look].map(|n| n.and_then(|n| u16::try_from(n).ok()).unwrap_or_default()).into();
            let components: Option<i64> = row.try_get(5)?;
            let components = components.and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
            let similarity: SimilarityColumns = (row.try_get(2)?, row.try_get(6)?, row.try_get(7)?);
            Ok((ends, similarity, Evidence { blocks, look, components }))
        })?;
        let one = |((a, b), similarity, evidence): ((String, String), SimilarityColumns, Evidence)| {
            pair(&from_stored_text(&a), &from_stored_text(&b), similarity, evidence)
        };
        rows.into_iter().map(one).collect()
    }

    fn clusters(&mut self) -> Result<BTreeSet<ClusterReport>, DatabaseFailure> {
        let sql = format!("SELECT document, cluster FROM {}", self.table("clusters"));
        let rows: Vec<(String, String)> = self.rows(&sql, |row| Ok((row.try_get(0)?, row.try_get(1)?)))?;
        let member = |(document, cluster): (String, String)| {
            Ok(ClusterReport::Member {
                cluster: id(&from_stored_text(&cluster))?,
                document: id(&from_stored_text(&document))?,
            })
        };
        rows.into_iter().map(member).collect()
    }

    fn side_rows(&mut self, table: &str) -> Result<Vec<SideRow>, DatabaseFailure> {
        let table = self.table(table);
        // A row may be longer than other indexes accept.
        let create = format!(
            "CREATE TABLE {table} (row text COLLATE \"C\" NOT NULL, key text COLLATE \"C\" NOT NULL,
                epoch bigint NOT NULL, at timestamptz DEFAULT now());
             CREATE INDEX ON {table} USING hash (row)"
        );
        retry_until_reachable("output postgres", None, || {
            self.with(|client| {
                let is_there = is_true(client, "SELECT to_regclass($1) IS NOT NULL", &[&table]);
                let made = is_there.and_then(|is_there| match is_there {
                    true => Ok(()),
                    false => client.batch_execute(&create),
                });
                made.map_err(|error| failure(&error))
            })
        })?;
        let select = format!("SELECT key, row FROM {table}");
        let rows: Vec<(String, String)> = self.rows(&select, |row| Ok((row.try_get(0)?, row.try_get(1)?)))?;
        rows.into_iter().map(|(key, row)| side_row(key, &row)).collect()
    }

    fn documents(&mut self) -> Result<BTreeMap<DocId, Facts>, DatabaseFailure> {
        let sql = format!(
            "SELECT id, extract(epoch FROM ts)::float8, bytes, source_partition, source_offset FROM {}",
            self.table("documents")
        );
        let rows = self.rows(&sql, |row| {
            let partition = u32::try_from(row.try_get::<_, i64>(3)?).unwrap_or(u32::MAX);
            let position = Position { partition, offset: row.try_get::<_, i64>(4)?.cast_unsigned() };
            let bytes = u32::try_from(row.try_get::<_, i64>(2)?).unwrap_or(u32::MAX);
            Ok((row.try_get::<_, String>(0)?, Facts { ts: row.try_get(1)?, bytes, position }))
        })?;
        rows.into_iter().map(|(text, facts)| Ok((id(&from_stored_text(&text))?, facts))).collect()
    }

    fn decisions(&mut self) -> Result<LastDecisions, DatabaseFailure> {
        self.read_decisions()
    }
}
