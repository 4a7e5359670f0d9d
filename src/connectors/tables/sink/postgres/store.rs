//! Connecting, committing, looking and reading back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use postgres::{Client, IsolationLevel, Transaction};

use super::parameters::{each, failure_on, insert, is_true};
use crate::credential::Credential;
use crate::failpoint;
use crate::sinks::book::LastDecisions;
use crate::sinks::side::SideRow;
use crate::tables::database::postgres::{
    connect, failure, from_stored_json, from_stored_text, to_stored_json,
};
use crate::tables::database::{self, DatabaseFailure, retry_until_reachable};
use crate::tables::sink::changes::TableChanges;
use crate::tables::sink::progress::{COUNTED, ForeignRows, ProgressRow, Rows};
use crate::tables::sink::store::{
    Found, Look, SimilarityColumns, TableOutput, TableStore, id, must_write, pair, side_row, sums_of,
};
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::{DocId, Facts, Position};
use dupflow_core::pair::{DocPair, Evidence};

/// SQL that names the connection: no other one of the server ever has this name.
pub(super) const WRITER: &str =
    "(SELECT pid || ' ' || backend_start FROM pg_stat_get_activity(pg_backend_pid()))";

/// Where a policy would hide rows from a statement, it fails. A lock is waited for in turns, so that the wait
/// is logged. A commit is on disk when it returns.
const WRITING: &str = "SET LOCAL row_security = off; SET LOCAL lock_timeout = '10s';
    SELECT set_config('synchronous_commit', 'local', true)
    WHERE current_setting('synchronous_commit') = 'off'";

/// Begins a transaction.
pub(super) fn begin_writing(client: &mut Client) -> Result<Transaction<'_>, DatabaseFailure> {
    database::postgres::begin(client.build_transaction(), WRITING)
}

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

    /// Calls `operation` with a connection; drops the connection if that fails.
    fn with<T>(
        &mut self,
        operation: impl FnOnce(&mut Client) -> Result<T, DatabaseFailure>,
    ) -> Result<T, DatabaseFailure> {
        let mut client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => self.connect()?,
        };
        let ended = operation(&mut client)?;
        self.client = Some(client);
        Ok(ended)
    }

    pub(super) fn connect(&self) -> Result<Client, DatabaseFailure> {
        connect(&self.url, self.patience)
    }

    /// SQL that reads the row of progress. `counts` is missing in tables of an earlier version, until a run
    /// takes them over.
    pub(super) fn select_progress(&self) -> String {
        format!(
            "SELECT run, commits, mark, to_jsonb(p) ->> 'counts' FROM {} p WHERE one = 1",
            self.table("progress")
        )
    }

    /// The row of progress, locked until the transaction ends.
    pub(super) fn lock_progress(
        &self,
        transaction: &mut Transaction<'_>,
    ) -> Result<ProgressRow, DatabaseFailure> {
        let row = transaction.query_opt(&format!("{} FOR UPDATE", self.select_progress()), &[]);
        row.and_then(progress_row).map_err(|error| failure_on(&self.table("progress"), &error))
    }

    /// The rows of the counted tables.
    fn count(&self, transaction: &mut Transaction<'_>) -> Result<Rows, postgres::Error> {
        let tables = COUNTED.map(|name| format!("(SELECT count(*) FROM {})", self.table(name)));
        let row = transaction.query_one(&format!("SELECT ARRAY[{}]", tables.join(", ")), &[])?;
        let mut rows = Rows::default();
        rows.copy_from_slice(&row.try_get::<_, Vec<i64>>(0)?);
        Ok(rows)
    }

    /// See [`TableStore::look`].
    fn look_with(&self, client: &mut Client) -> Result<Look, DatabaseFailure> {
        let tables = self.found_tables(client).map_err(|error| failure(&error))?;
        let faults = self.structure(client, &tables)?;
        if !faults.is_empty() {
            return Ok(Look { faults, ..Look::default() });
        }
        let mut look = Look { relations: self.relations(&tables), ..Look::default() };
        let snapshot = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
        let mut snapshot = database::postgres::begin(snapshot.read_only(true), WRITING)?;
        let read = || {
            look.progress = progress_row(snapshot.query_opt(&self.select_progress(), &[])?)?;
            if let Some(left) = look.progress.rows() {
                let there = self.count(&mut snapshot)?;
                look.foreign = ForeignRows::find(left, there, |table| self.table(table));
            }
            Ok(look)
        };
        read().map_err(|error: postgres::Error| failure(&error))
    }

    /// Writes a commit, unless an earlier attempt has written it.
    fn write_with(
        &self,
        client: &mut Client,
        changes: &TableChanges,
        commits: i64,
        mark: &str,
    ) -> Result<(), DatabaseFailure> {
        let failed = |error: postgres::Error| failure(&error);
        let progress = self.table("progress");
        let mut transaction = begin_writing(client)?;
        let found = self.lock_progress(&mut transaction)?;
        if !must_write(&found, &self.run, commits)? {
            return transaction.rollback().map_err(failed);
        }
        let rows = found.rows().map_or_else(|| self.count(&mut transaction), Ok).map_err(failed)?;
        let more = self.put(&mut transaction, changes, rows)?;
        let update = format!(
            "UPDATE {progress} SET commits = commits + 1, epoch = ($1::text::json -> 'progress' ->> \
             'epoch')::bigint, mark = $1::text, at = now(), counts = $2::text, writer = {WRITER}
             WHERE one = 1"
        );
        insert(&mut transaction, &progress, &update, &[&mark, &found.next_counts(rows, more)], 1)?;
        failpoint::reach("tables-sent");
        transaction.commit().map_err(failed)
    }

    /// The failure, with what is wrong with the tables, if something is.
    fn explained(&self, failure: DatabaseFailure, sides: &[&str]) -> DatabaseFailure {
        let DatabaseFailure::Refused(what) = failure else { return failure };
        let faults = self.connect().and_then(|mut client| self.faults(&mut client, sides));
        let all: Vec<_> = [what].into_iter().chain(faults.unwrap_or_default()).collect();
        DatabaseFailure::Refused(all.join(". "))
    }

    /// Rewrites the rows of a side output, key and row, in which an earlier version wrote U+0000 as it is.
    fn respell(&mut self, table: &str, rows: &[(String, String)]) -> Result<(), DatabaseFailure> {
        let stored = |json: &String| to_stored_json(&from_stored_json(json)).into_owned();
        let older: Vec<_> = rows.iter().filter(|(_, row)| stored(row) != *row).collect();
        if older.is_empty() {
            return Ok(());
        }
        let was = each(&older, |(_, row)| row.as_str());
        let (key, row) = (each(&older, |(key, _)| stored(key)), each(&older, |(_, row)| stored(row)));
        let sql = format!(
            "UPDATE {table} AS t SET row = now.row, key = now.key
             FROM unnest($1::text[], $2::text[], $3::text[]) AS now (was, key, row) WHERE t.row = now.was"
        );
        retry_until_reachable("output postgres", None, || {
            self.with(|client| {
                let mut transaction = begin_writing(client)?;
                let written = transaction.execute(&sql, &[&was, &key, &row]);
                written.and_then(|_| transaction.commit()).map_err(|error| failure(&error))
            })
        })
    }

    /// Runs a query and parses its rows; waits for an unreachable server.
    pub(super) fn rows<T>(
        &mut self,
        sql: &str,
        read: impl Fn(&postgres::Row) -> Result<T, postgres::Error>,
    ) -> Result<Vec<T>, DatabaseFailure> {
        retry_until_reachable("output postgres", None, || {
            self.with(|client| {
                let found = begin_writing(client)?.query(sql, &[]).map_err(|error| failure(&error))?;
                found.iter().map(&read).collect::<Result<_, _>>().map_err(|error| failure(&error))
            })
        })
    }
}

/// Leaves the tables to the next run at once. A pooler keeps the connection that is noted, and may use
/// another one for this.
impl Drop for PostgresStore {
    fn drop(&mut self) {
        let (progress, run) = (self.table("progress"), self.run.replace('\'', "''"));
        let sql = format!("UPDATE {progress} SET writer = NULL WHERE run = '{run}'");
        if let Some(mut client) = self.client.take().filter(|client| !client.is_closed()) {
            drop(execute(&mut client, &sql));
        }
    }
}

/// Executes statements in a transaction.
fn execute(client: &mut Client, sql: &str) -> Result<(), DatabaseFailure> {
    let mut transaction = begin_writing(client)?;
    let executed = transaction.batch_execute(sql).and_then(|()| transaction.commit());
    executed.map_err(|error| failure(&error))
}

/// Parses the row of progress; default if there is none.
pub(super) fn progress_row(row: Option<postgres::Row>) -> Result<ProgressRow, postgres::Error> {
    let Some(row) = row else { return Ok(ProgressRow::default()) };
    Ok(ProgressRow {
        run: row.try_get(0)?,
        commits: row.try_get(1)?,
        mark: row.try_get(2)?,
        counts: row.try_get(3)?,
    })
}

impl TableStore for PostgresStore {
    fn inspect(&self) -> Result<Found, DatabaseFailure> {
        retry_until_reachable("output postgres", Some(self.patience), || {
            self.find(&mut begin_writing(&mut self.connect()?)?)
        })
    }

    /// A server that is unreachable at the start is waited for only as long as `patience`.
    fn take_over(&mut self) -> Result<Found, DatabaseFailure> {
        let (client, found, shares) =
            retry_until_reachable("output postgres", Some(self.patience), || self.connect_and_take_over())?;
        self.client = Some(client);
        self.shares = shares;
        Ok(found)
    }

    fn write(&mut self, changes: &TableChanges, commits: i64, mark: &str) -> Result<(), DatabaseFailure> {
        let written = retry_until_reachable("output postgres", None, || {
            let mut client = match self.client.take().filter(|client| !client.is_closed()) {
                Some(client) => client,
                None => self.connect()?,
            };
            self.write_with(&mut client, changes, commits, mark)?;
            self.client = Some(client);
            Ok(())
        });
        let sides: Vec<&str> = changes.side.keys().map(String::as_str).collect();
        written.map_err(|failure| self.explained(failure, &sides))
    }

    fn look(&self) -> Result<Look, DatabaseFailure> {
        self.look_with(&mut self.connect()?).map_err(|failure| self.explained(failure, &[]))
    }

    fn forget_counts(&mut self) -> Result<(), DatabaseFailure> {
        let sql = format!("UPDATE {} SET counts = NULL", self.table("progress"));
        retry_until_reachable("output postgres", None, || self.with(|client| execute(client, &sql)))
    }

    fn deltas_add_up(&mut self) -> Result<bool, DatabaseFailure> {
        let sums: Vec<bool> =
            self.rows(&sums_of(&self.table("deltas"), &self.table("pairs")), |row| row.try_get(0))?;
        Ok(sums == [true])
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
                if is_there.map_err(|error| failure(&error))? { Ok(()) } else { execute(client, &create) }
            })
        })?;
        let select = format!("SELECT key, row FROM {table}");
        let rows: Vec<(String, String)> = self.rows(&select, |row| Ok((row.try_get(0)?, row.try_get(1)?)))?;
        self.respell(&table, &rows)?;
        let read = |(key, row): &(String, String)| {
            side_row(from_stored_json(key).into_owned(), &from_stored_json(row))
        };
        rows.iter().map(read).collect()
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
