//! The tables on a PostgreSQL server.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use postgres::types::ToSql;
use postgres::{Client, Transaction};

use super::changes::{TableChanges, split_rows};
use super::{LAYOUT, ProgressRow, TableOutput, TableStore, id, known_layout, must_write, pair};
use crate::credential::Credential;
use crate::failpoint;
use crate::tables::database::postgres::{connect, failure, from_stored_text, to_stored_text};
use crate::tables::database::{DatabaseFailure, quoted, retry_until_reachable};
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::{DocId, Facts, Position};
use dupflow_core::pair::{Cause, DocPair, Evidence};

/// Rows sent in one statement.
const ROWS: usize = 10_000;

/// Tables on a server, in one schema.
pub(super) struct PostgresStore {
    url: Credential,
    schema: String,
    prefix: String,
    run: String,
    deltas: bool,
    causes: bool,
    patience: Duration,
    /// Present while connected.
    client: Option<Client>,
}

/// A parameter of a statement.
type Parameter<'a> = &'a (dyn ToSql + Sync);

impl PostgresStore {
    pub(super) fn new(output: &TableOutput, url: &Credential) -> Self {
        let TableOutput { schema, prefix, run, deltas, causes, patience, .. } = output.clone();
        Self { url: url.clone(), schema, prefix, run, deltas, causes, patience, client: None }
    }

    fn table(&self, name: &str) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&format!("{}{name}", self.prefix)))
    }

    /// SQL that creates the tables and views. Ids are compared by their bytes.
    fn tables(&self) -> String {
        let name = |name| self.table(name);
        let (pairs, clusters, documents) = (name("pairs"), name("clusters"), name("documents"));
        format!(
            "CREATE TABLE {pairs} (a text COLLATE \"C\" NOT NULL, b text COLLATE \"C\" NOT NULL, similarity float8 NOT NULL,
                epoch bigint NOT NULL, blocks integer, look integer, components bigint, standard_error float8,
                at timestamptz DEFAULT now(), PRIMARY KEY (a, b));
             CREATE INDEX ON {pairs} (b);
             CREATE INDEX ON {pairs} (similarity);
             CREATE TABLE {clusters} (document text COLLATE \"C\" PRIMARY KEY, cluster text COLLATE \"C\" NOT NULL);
             CREATE INDEX ON {clusters} (cluster);
             CREATE TABLE {documents} (id text COLLATE \"C\" PRIMARY KEY, ts timestamptz, bytes bigint NOT NULL,
                source_partition bigint NOT NULL, source_offset bigint NOT NULL);
             CREATE TABLE {deltas} (n bigserial PRIMARY KEY, epoch bigint NOT NULL, diff smallint NOT NULL,
                a text COLLATE \"C\" NOT NULL, b text COLLATE \"C\" NOT NULL, similarity float8 NOT NULL, cause text,
                at timestamptz DEFAULT now());
             CREATE TABLE {progress} (one integer PRIMARY KEY CHECK (one = 1), run text NOT NULL,
                commits bigint NOT NULL DEFAULT 0, epoch bigint, mark text, at timestamptz, layout integer NOT NULL DEFAULT {LAYOUT});
             CREATE VIEW {kept} AS SELECT d.id FROM {documents} d LEFT JOIN {clusters} c ON c.document = d.id
                WHERE c.cluster IS NULL OR c.cluster = d.id;
             CREATE VIEW {removed} AS SELECT document AS id, cluster AS kept FROM {clusters} WHERE cluster <> document;",
            deltas = name("deltas"),
            progress = name("progress"),
            kept = name("kept"),
            removed = name("removed"),
        )
    }

    /// SQL that changes tables of layout 1 into layout 2. The times at which old rows were written are
    /// unknown.
    fn migration(&self) -> String {
        let [pairs, documents, deltas, progress] =
            ["pairs", "documents", "deltas", "progress"].map(|name| self.table(name));
        let ts = time_of("ts");
        format!(
            "ALTER TABLE {pairs} ADD COLUMN at timestamptz; ALTER TABLE {pairs} ALTER COLUMN at SET DEFAULT now();
             ALTER TABLE {deltas} ADD COLUMN at timestamptz; ALTER TABLE {deltas} ALTER COLUMN at SET DEFAULT now();
             ALTER TABLE {documents} ALTER COLUMN ts TYPE timestamptz USING {ts};
             ALTER TABLE {progress} ADD COLUMN at timestamptz, ADD COLUMN layout integer NOT NULL DEFAULT {LAYOUT};
             CREATE INDEX ON {pairs} (similarity);"
        )
    }

    /// Changes tables of layout 1 to this layout. Returns the layout of any others.
    fn migrate(&self, transaction: &mut Transaction<'_>) -> Result<Option<i64>, postgres::Error> {
        let progress = self.table("progress");
        let has_layout =
            "SELECT count(*) > 0 FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'layout'
             AND NOT attisdropped";
        if !transaction.query_one(has_layout, &[&progress])?.try_get::<_, bool>(0)? {
            tracing::info!("output postgres: tables of the layout before are changed to layout {LAYOUT}");
            transaction.batch_execute(&self.migration())?;
            return Ok(None);
        }
        let found = transaction.query_opt(&format!("SELECT layout FROM {progress} WHERE one = 1"), &[])?;
        found.map(|row| row.try_get::<_, i32>(0).map(i64::from)).transpose()
    }

    /// Describes the output, to follow the name of the schema; the error lists every right that the role
    /// lacks. Writes nothing.
    pub(super) fn examine(&self) -> Result<String, DatabaseFailure> {
        let mut client = connect(&self.url, self.patience)?;
        let (found, missing) = self.rights(&mut client).map_err(|error| failure(&error))?;
        if missing.is_empty() { Ok(found) } else { Err(DatabaseFailure::Refused(missing.join("\n"))) }
    }

    /// A description of the output, and the rights that a run would lack, each as a message.
    fn rights(&self, client: &mut Client) -> Result<(String, Vec<String>), postgres::Error> {
        let mut missing = Vec::new();
        let (role, database, read_only): (String, String, bool) = {
            let row = client.query_one(
                "SELECT current_user::text, current_database()::text, current_setting('transaction_read_only') = 'on'",
                &[],
            )?;
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)
        };
        if read_only {
            missing.push(
                "postgres: the server takes no writes (transaction_read_only is on): a standby?".to_owned(),
            );
        }
        let schema = &self.schema;
        if !is_true(client, "SELECT count(*) > 0 FROM pg_namespace WHERE nspname = $1", &[schema])? {
            if !is_true(client, "SELECT has_database_privilege(current_database(), 'CREATE')", &[])? {
                missing.push(format!(
                    "postgres: there is no schema \"{schema}\", and the role \"{role}\" may make none: CREATE SCHEMA {0} AUTHORIZATION {1}, \
                     or GRANT CREATE ON DATABASE {2} TO {1}",
                    quoted(schema),
                    quoted(&role),
                    quoted(&database)
                ));
            }
            return Ok((": missing, the first run makes it".to_owned(), missing));
        }
        for right in ["USAGE", "CREATE"] {
            // Existing tables need no right to create any.
            let is_needed = right == "USAGE" || !self.is_made(client)?;
            if is_needed && !is_true(client, "SELECT has_schema_privilege($1, $2)", &[schema, &right])? {
                let (schema, role) = (quoted(schema), quoted(&role));
                missing.push(format!(
                    "postgres: the role {role} has no right to {right} in the schema {schema}: GRANT {right} ON SCHEMA {schema} TO {role}"
                ));
            }
        }
        if !missing.is_empty() || !self.is_made(client)? {
            return Ok((": the first run makes its tables".to_owned(), missing));
        }
        for name in ["pairs", "clusters", "documents", "deltas", "progress"] {
            let table = self.table(name);
            let mut rights = Vec::new();
            for right in ["SELECT", "INSERT", "UPDATE", "DELETE"] {
                let sql = "SELECT to_regclass($1) IS NOT NULL AND has_table_privilege(to_regclass($1), $2)";
                if !is_true(client, sql, &[&table, &right])? {
                    rights.push(right);
                }
            }
            if !rights.is_empty() {
                let rights = rights.join(", ");
                missing.push(format!(
                    "postgres: the role {0} has no right to {rights} in {table}: GRANT {rights} ON {table} TO {0}",
                    quoted(&role)
                ));
            }
        }
        Ok((String::new(), missing))
    }

    /// Whether the tables exist.
    fn is_made(&self, client: &mut Client) -> Result<bool, postgres::Error> {
        // From the catalog: only a role with USAGE on the schema can look up a name in it.
        let sql = "SELECT count(*) > 0 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = $1 AND c.relname = $2";
        client.query_one(sql, &[&self.schema, &format!("{}progress", self.prefix)])?.try_get(0)
    }

    /// Calls `go` with a connection; drops the connection if that fails.
    fn with<T>(
        &mut self,
        go: impl FnOnce(&mut Client) -> Result<T, DatabaseFailure>,
    ) -> Result<T, DatabaseFailure> {
        let mut client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => connect(&self.url, self.patience)?,
        };
        let ended = go(&mut client)?;
        self.client = Some(client);
        Ok(ended)
    }

    /// Connects and takes the tables over. Returns the connection and the row of progress found before.
    fn taken_over(&self) -> Result<(Client, ProgressRow), DatabaseFailure> {
        let mut client = connect(&self.url, self.patience)?;
        let failed = |error: postgres::Error| failure(&error);
        let mut transaction = client.transaction().map_err(failed)?;
        let (found, layout) = self.begin(&mut transaction).map_err(|error| match failure(&error) {
            DatabaseFailure::Refused(what) => DatabaseFailure::Refused(format!(
                "{what}: the tables cannot be made in the schema \"{}\"; sink.schema and sink.prefix say where they are",
                self.schema
            )),
            away @ DatabaseFailure::Away(_) => away,
        })?;
        known_layout("output postgres", layout)?;
        transaction.commit().map_err(failed)?;
        Ok((client, found))
    }

    /// Takes the tables over in one transaction. A lock makes two runs that start at the same time wait for
    /// each other.
    fn begin(
        &self,
        transaction: &mut Transaction<'_>,
    ) -> Result<(ProgressRow, Option<i64>), postgres::Error> {
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
        let layout = if is_there { self.migrate(transaction)? } else { None };
        let found = self.progress(transaction)?;
        let sql = format!(
            "INSERT INTO {progress} (one, run) VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET run = $1"
        );
        transaction.execute(&sql, &[&self.run])?;
        Ok((found, layout))
    }

    /// The row of progress; default if there is none.
    fn seen(&self, client: &mut Client) -> Result<ProgressRow, postgres::Error> {
        if !self.is_made(client)? {
            return Ok(ProgressRow::default());
        }
        let sql = format!("SELECT run, commits, mark FROM {} WHERE one = 1", self.table("progress"));
        let Some(row) = client.query_opt(&sql, &[])? else { return Ok(ProgressRow::default()) };
        Ok(ProgressRow { run: row.try_get(0)?, commits: row.try_get(1)?, mark: row.try_get(2)? })
    }

    /// The row of progress, locked until the transaction ends.
    fn progress(&self, transaction: &mut Transaction<'_>) -> Result<ProgressRow, postgres::Error> {
        let sql =
            format!("SELECT run, commits, mark FROM {} WHERE one = 1 FOR UPDATE", self.table("progress"));
        let Some(row) = transaction.query_opt(&sql, &[])? else { return Ok(ProgressRow::default()) };
        Ok(ProgressRow { run: row.try_get(0)?, commits: row.try_get(1)?, mark: row.try_get(2)? })
    }

    /// Writes the changes.
    fn put(&self, transaction: &mut Transaction<'_>, changes: &TableChanges) -> Result<(), postgres::Error> {
        if changes.deltas_anew {
            self.begin_deltas(transaction)?;
        }
        self.put_pairs(transaction, changes)?;
        self.put_clusters(transaction, changes)?;
        self.put_documents(transaction, changes)?;
        self.put_deltas(transaction, changes)
    }

    /// Empties the table of deltas; if deltas are kept, fills it with the pairs of the table of pairs.
    fn begin_deltas(&self, transaction: &mut Transaction<'_>) -> Result<(), postgres::Error> {
        let (pairs, deltas) = (self.table("pairs"), self.table("deltas"));
        execute(transaction, &format!("DELETE FROM {deltas}"), &[])?;
        if self.deltas {
            let sql = format!(
                "INSERT INTO {deltas} (epoch, diff, a, b, similarity, cause, at)
                 SELECT epoch, 1, a, b, similarity, $1::text, at FROM {pairs} ORDER BY epoch, a, b"
            );
            let cause = self.causes.then(|| Cause::Correction.name());
            execute(transaction, &sql, &[&cause])?;
        }
        Ok(())
    }

    fn put_pairs(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<(), postgres::Error> {
        let table = |name| self.table(name);
        let (come, go) = split_rows(&changes.pairs);
        for keys in go.chunks(ROWS) {
            let (a, b) = (texts(keys, |pair| pair.lo()), texts(keys, |pair| pair.hi()));
            let sql = format!(
                "DELETE FROM {} p USING unnest($1::text[], $2::text[]) AS gone (a, b) WHERE p.a = gone.a AND p.b = gone.b",
                table("pairs")
            );
            execute(transaction, &sql, &[&a, &b])?;
        }
        for rows in come.chunks(ROWS) {
            let (a, b) = (texts(rows, |(pair, _)| pair.lo()), texts(rows, |(pair, _)| pair.hi()));
            let similarity = each(rows, |(_, row)| row.pair.similarity.get());
            let epoch = each(rows, |(_, row)| row.epoch.cast_signed());
            let evidence = each(rows, |(_, row)| row.standard_error.map(|_| row.pair.evidence));
            let blocks = each(&evidence, |shown| shown.map(|shown| i32::from(shown.blocks)));
            let look = each(&evidence, |shown| shown.map(|shown| i32::from(shown.look)));
            let components = each(&evidence, |shown| shown.map(|shown| i64::from(shown.components)));
            let standard_error = each(rows, |(_, row)| row.standard_error);
            let sql = format!(
                "INSERT INTO {} AS p (a, b, similarity, epoch, blocks, look, components, standard_error)
                 SELECT * FROM unnest($1::text[], $2::text[], $3::float8[], $4::int8[], $5::int4[], $6::int4[],
                    $7::int8[], $8::float8[])
                 ON CONFLICT (a, b) DO UPDATE SET similarity = excluded.similarity, epoch = excluded.epoch, blocks = excluded.blocks,
                    look = excluded.look, components = excluded.components, standard_error = excluded.standard_error, at = now()",
                table("pairs")
            );
            let parameters: [Parameter<'_>; 8] =
                [&a, &b, &similarity, &epoch, &blocks, &look, &components, &standard_error];
            execute(transaction, &sql, &parameters)?;
        }
        Ok(())
    }

    fn put_clusters(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<(), postgres::Error> {
        let table = |name| self.table(name);
        let (come, go) = split_rows(&changes.clusters);
        delete(transaction, &table("clusters"), "document", &go)?;
        for rows in come.chunks(ROWS) {
            let (document, cluster) =
                (texts(rows, |(document, _)| document), texts(rows, |(_, cluster)| cluster));
            let sql = format!(
                "INSERT INTO {} SELECT * FROM unnest($1::text[], $2::text[])
                 ON CONFLICT (document) DO UPDATE SET cluster = excluded.cluster",
                table("clusters")
            );
            execute(transaction, &sql, &[&document, &cluster])?;
        }
        Ok(())
    }

    fn put_documents(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<(), postgres::Error> {
        let table = |name| self.table(name);
        let (come, go) = split_rows(&changes.documents);
        delete(transaction, &table("documents"), "id", &go)?;
        for rows in come.chunks(ROWS) {
            let document = texts(rows, |(document, _)| document);
            let ts = each(rows, |(_, facts)| facts.ts);
            let bytes = each(rows, |(_, facts)| i64::from(facts.bytes));
            let partition = each(rows, |(_, facts)| i64::from(facts.position.partition));
            let offset = each(rows, |(_, facts)| facts.position.offset.cast_signed());
            let sql = format!(
                "INSERT INTO {} (id, ts, bytes, source_partition, source_offset)
                 SELECT id, {}, bytes, source_partition, source_offset FROM unnest($1::text[], $2::float8[], $3::int8[], $4::int8[], $5::int8[])
                    AS come (id, ts, bytes, source_partition, source_offset)
                 ON CONFLICT (id) DO UPDATE SET ts = excluded.ts, bytes = excluded.bytes,
                    source_partition = excluded.source_partition, source_offset = excluded.source_offset",
                table("documents"),
                time_of("ts")
            );
            execute(transaction, &sql, &[&document, &ts, &bytes, &partition, &offset])?;
        }
        Ok(())
    }

    fn put_deltas(
        &self,
        transaction: &mut Transaction<'_>,
        changes: &TableChanges,
    ) -> Result<(), postgres::Error> {
        let table = |name| self.table(name);
        for rows in changes.deltas.chunks(ROWS) {
            let epoch = each(rows, |(epoch, _)| epoch.cast_signed());
            let diff = each(rows, |(_, delta)| if delta.diff > 0 { 1_i16 } else { -1 });
            let (a, b) = (
                texts(rows, |(_, delta)| delta.pair.pair.lo()),
                texts(rows, |(_, delta)| delta.pair.pair.hi()),
            );
            let similarity = each(rows, |(_, delta)| delta.pair.similarity.get());
            let cause = each(rows, |(_, delta)| self.causes.then(|| delta.cause.name()));
            let sql = format!(
                "INSERT INTO {} (epoch, diff, a, b, similarity, cause)
                 SELECT * FROM unnest($1::int8[], $2::int2[], $3::text[], $4::text[], $5::float8[], $6::text[])",
                table("deltas")
            );
            execute(transaction, &sql, &[&epoch, &diff, &a, &b, &similarity, &cause])?;
        }
        Ok(())
    }

    /// Runs a query and parses its rows; waits for an unreachable server.
    fn rows<T>(
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

/// SQL that converts Unix seconds to a timestamp, to the microsecond; NULL before the year 1 and from 10000 on.
fn time_of(seconds: &str) -> String {
    format!("CASE WHEN {seconds} BETWEEN -62135596800 AND 253402300799 THEN to_timestamp({seconds}) END")
}

/// The boolean that a query returns; NULL is `false`.
fn is_true(client: &mut Client, sql: &str, parameters: &[Parameter<'_>]) -> Result<bool, postgres::Error> {
    Ok(client.query_one(sql, parameters)?.try_get::<_, Option<bool>>(0)?.unwrap_or(false))
}

/// A column of ids, as stored on the server.
fn texts<'r, T>(rows: &'r [T], of: impl Fn(&'r T) -> &'r DocId) -> Vec<Cow<'r, str>> {
    let text = |row| {
        let id = of(row).as_str();
        if id.contains(['\0', '\u{1a}']) { Cow::Owned(to_stored_text(id)) } else { Cow::Borrowed(id) }
    };
    rows.iter().map(text).collect()
}

/// A column of values.
fn each<'r, T, V>(rows: &'r [T], of: impl Fn(&'r T) -> V) -> Vec<V> {
    rows.iter().map(of).collect()
}

fn execute(
    transaction: &mut Transaction<'_>,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<(), postgres::Error> {
    transaction.execute(sql, parameters).map(drop)
}

/// Deletes rows by their key.
fn delete(
    transaction: &mut Transaction<'_>,
    table: &str,
    key: &str,
    gone: &[&DocId],
) -> Result<(), postgres::Error> {
    for keys in gone.chunks(ROWS) {
        let ids = texts(keys, |id| id);
        execute(transaction, &format!("DELETE FROM {table} WHERE {key} = ANY ($1::text[])"), &[&ids])?;
    }
    Ok(())
}

impl TableStore for PostgresStore {
    fn inspect(&self) -> Result<ProgressRow, DatabaseFailure> {
        retry_until_reachable("output postgres", Some(self.patience), || {
            let mut client = connect(&self.url, self.patience)?;
            self.seen(&mut client).map_err(|error| failure(&error))
        })
    }

    /// A server that is unreachable at the start is waited for only as long as `patience`.
    fn take_over(&mut self) -> Result<ProgressRow, DatabaseFailure> {
        let (client, found) =
            retry_until_reachable("output postgres", Some(self.patience), || self.taken_over())?;
        self.client = Some(client);
        Ok(found)
    }

    fn write(&mut self, changes: &TableChanges, commits: i64, mark: &str) -> Result<(), DatabaseFailure> {
        let update = format!(
            "UPDATE {} SET commits = commits + 1, epoch = ($1::text::json -> 'progress' ->> 'epoch')::bigint, mark = $1::text, at = now() WHERE one = 1",
            self.table("progress")
        );
        let failed = |error: postgres::Error| failure(&error);
        retry_until_reachable("output postgres", None, || {
            let mut client = match self.client.take().filter(|client| !client.is_closed()) {
                Some(client) => client,
                None => connect(&self.url, self.patience)?,
            };
            let mut transaction = client.transaction().map_err(failed)?;
            let found = self.progress(&mut transaction).map_err(failed)?;
            if must_write(&found, &self.run, commits)? {
                self.put(&mut transaction, changes).map_err(failed)?;
                transaction.execute(&update, &[&mark]).map_err(failed)?;
                failpoint::reach("tables-sent");
                transaction.commit().map_err(failed)?;
            } else {
                transaction.rollback().map_err(failed)?;
            }
            self.client = Some(client);
            Ok(())
        })
    }

    fn pairs(&mut self) -> Result<BTreeSet<DocPair>, DatabaseFailure> {
        let sql = format!("SELECT a, b, similarity, blocks, look, components FROM {}", self.table("pairs"));
        let rows = self.rows(&sql, |row| {
            let ends: (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let (blocks, look): (Option<i32>, Option<i32>) = (row.try_get(3)?, row.try_get(4)?);
            let (blocks, look) =
                [blocks, look].map(|n| n.and_then(|n| u16::try_from(n).ok()).unwrap_or_default()).into();
            let components: Option<i64> = row.try_get(5)?;
            let components = components.and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
            Ok((ends, row.try_get::<_, f64>(2)?, Evidence { blocks, look, components }))
        })?;
        let one = |((a, b), similarity, evidence): ((String, String), f64, Evidence)| {
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
}
