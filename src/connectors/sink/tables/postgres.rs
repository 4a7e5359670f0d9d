//! The tables on a server of PostgreSQL.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use postgres::types::ToSql;
use postgres::{Client, Transaction};

use super::changes::{Changes, parted};
use super::{LAYOUT, Stand, Store, TableOutput, has_to_write, id, known_layout, pair};
use crate::broker::Secret;
use crate::database::postgres::{connect, failure, restored, stored};
use crate::database::{Failure, patiently, quoted};
use crate::failpoint;
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::{DocId, Facts, Position};
use dupflow_core::pair::{Cause, DocPair, Evidence};

/// Rows that are sent at once.
const ROWS: usize = 10_000;

/// The tables.
pub(super) struct PostgresStore {
    url: Secret,
    schema: String,
    prefix: String,
    run: String,
    deltas: bool,
    causes: bool,
    patience: Duration,
    /// There while the server is.
    client: Option<Client>,
}

/// A parameter.
type Parameter<'a> = &'a (dyn ToSql + Sync);

impl PostgresStore {
    pub(super) fn new(output: &TableOutput, url: &Secret) -> Self {
        let TableOutput { schema, prefix, run, deltas, causes, patience, .. } = output.clone();
        Self { url: url.clone(), schema, prefix, run, deltas, causes, patience, client: None }
    }

    fn table(&self, name: &str) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&format!("{}{name}", self.prefix)))
    }

    /// Tables and views, in the words of the server. Ids are compared by their bytes.
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

    /// What makes tables of the layout before into those of this one. When old rows were written is not
    /// known.
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

    /// Brings tables that are there to this layout; the one that they have, if it is another one.
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

    /// What a run would find, behind the name of the schema; or all that the role may not do. Nothing is
    /// written.
    pub(super) fn examine(&self) -> Result<String, Failure> {
        let mut client = connect(&self.url, self.patience)?;
        let (found, missing) = self.rights(&mut client).map_err(|error| failure(&error))?;
        if missing.is_empty() { Ok(found) } else { Err(Failure::Refused(missing.join("\n"))) }
    }

    /// What is there, and what a run would be refused.
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
            // Where the tables are there, none is made.
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

    /// Whether a run has made its tables.
    fn is_made(&self, client: &mut Client) -> Result<bool, postgres::Error> {
        // By the catalog, since a name is looked up only by a role that may use its schema.
        let sql = "SELECT count(*) > 0 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = $1 AND c.relname = $2";
        client.query_one(sql, &[&self.schema, &format!("{}progress", self.prefix)])?.try_get(0)
    }

    /// Does something with the server; a connection that has failed is given up.
    fn with<T>(&mut self, go: impl FnOnce(&mut Client) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => connect(&self.url, self.patience)?,
        };
        let ended = go(&mut client)?;
        self.client = Some(client);
        Ok(ended)
    }

    /// A connection, and what stood there.
    fn taken_over(&self) -> Result<(Client, Stand), Failure> {
        let mut client = connect(&self.url, self.patience)?;
        let failed = |error: postgres::Error| failure(&error);
        let mut transaction = client.transaction().map_err(failed)?;
        let (found, layout) = self.begin(&mut transaction).map_err(|error| match failure(&error) {
            Failure::Refused(what) => Failure::Refused(format!(
                "{what}: the tables cannot be made in the schema \"{}\"; sink.schema and sink.prefix say where they are",
                self.schema
            )),
            away @ Failure::Away(_) => away,
        })?;
        known_layout("output postgres", layout)?;
        transaction.commit().map_err(failed)?;
        Ok((client, found))
    }

    /// Takes the tables over in one transaction. Two runs that begin at once wait for each other.
    fn begin(&self, transaction: &mut Transaction<'_>) -> Result<(Stand, Option<i64>), postgres::Error> {
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

    /// What stands in the table of progress, if there is one.
    fn seen(&self, client: &mut Client) -> Result<Stand, postgres::Error> {
        if !self.is_made(client)? {
            return Ok(Stand::default());
        }
        let sql = format!("SELECT run, commits, mark FROM {} WHERE one = 1", self.table("progress"));
        let Some(row) = client.query_opt(&sql, &[])? else { return Ok(Stand::default()) };
        Ok(Stand { run: row.try_get(0)?, commits: row.try_get(1)?, mark: row.try_get(2)? })
    }

    /// What stands in the table of progress, which nobody else changes until the transaction ends.
    fn progress(&self, transaction: &mut Transaction<'_>) -> Result<Stand, postgres::Error> {
        let sql =
            format!("SELECT run, commits, mark FROM {} WHERE one = 1 FOR UPDATE", self.table("progress"));
        let Some(row) = transaction.query_opt(&sql, &[])? else { return Ok(Stand::default()) };
        Ok(Stand { run: row.try_get(0)?, commits: row.try_get(1)?, mark: row.try_get(2)? })
    }

    /// Writes rows.
    fn put(&self, transaction: &mut Transaction<'_>, changes: &Changes) -> Result<(), postgres::Error> {
        if changes.deltas_anew {
            self.begin_deltas(transaction)?;
        }
        self.put_pairs(transaction, changes)?;
        self.put_clusters(transaction, changes)?;
        self.put_documents(transaction, changes)?;
        self.put_deltas(transaction, changes)
    }

    /// Has the table of deltas begin with the pairs that are there, or with nothing.
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

    fn put_pairs(&self, transaction: &mut Transaction<'_>, changes: &Changes) -> Result<(), postgres::Error> {
        let table = |name| self.table(name);
        let (come, go) = parted(&changes.pairs);
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
            let told = each(rows, |(_, row)| row.standard_error.map(|_| row.pair.evidence));
            let blocks = each(&told, |told| told.map(|told| i32::from(told.blocks)));
            let look = each(&told, |told| told.map(|told| i32::from(told.look)));
            let components = each(&told, |told| told.map(|told| i64::from(told.components)));
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
        changes: &Changes,
    ) -> Result<(), postgres::Error> {
        let table = |name| self.table(name);
        let (come, go) = parted(&changes.clusters);
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
        changes: &Changes,
    ) -> Result<(), postgres::Error> {
        let table = |name| self.table(name);
        let (come, go) = parted(&changes.documents);
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
        changes: &Changes,
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

    /// Reads rows, waiting for the server.
    fn rows<T>(
        &mut self,
        sql: &str,
        read: impl Fn(&postgres::Row) -> Result<T, postgres::Error>,
    ) -> Result<Vec<T>, Failure> {
        patiently("output postgres", None, || {
            self.with(|client| {
                let found = client.query(sql, &[]).map_err(|error| failure(&error))?;
                found.iter().map(&read).collect::<Result<_, _>>().map_err(|error| failure(&error))
            })
        })
    }
}

/// Unix seconds as a time of the server, to the microsecond; NULL where it has none: before the year 1 and
/// from 10000 on.
fn time_of(seconds: &str) -> String {
    format!("CASE WHEN {seconds} BETWEEN -62135596800 AND 253402300799 THEN to_timestamp({seconds}) END")
}

/// The one truth that a query gives; NULL is none.
fn is_true(client: &mut Client, sql: &str, parameters: &[Parameter<'_>]) -> Result<bool, postgres::Error> {
    Ok(client.query_one(sql, parameters)?.try_get::<_, Option<bool>>(0)?.unwrap_or(false))
}

/// A column of ids.
fn texts<'r, T>(rows: &'r [T], of: impl Fn(&'r T) -> &'r DocId) -> Vec<Cow<'r, str>> {
    let text = |row| {
        let id = of(row).as_str();
        if id.contains(['\0', '\u{1a}']) { Cow::Owned(stored(id)) } else { Cow::Borrowed(id) }
    };
    rows.iter().map(text).collect()
}

/// A column.
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

impl Store for PostgresStore {
    fn look(&self) -> Result<Stand, Failure> {
        patiently("output postgres", Some(self.patience), || {
            let mut client = connect(&self.url, self.patience)?;
            self.seen(&mut client).map_err(|error| failure(&error))
        })
    }

    /// At the beginning a server that is away is not waited for without end.
    fn take_over(&mut self) -> Result<Stand, Failure> {
        let (client, found) = patiently("output postgres", Some(self.patience), || self.taken_over())?;
        self.client = Some(client);
        Ok(found)
    }

    fn write(&mut self, changes: &Changes, commits: i64, mark: &str) -> Result<(), Failure> {
        let update = format!(
            "UPDATE {} SET commits = commits + 1, epoch = ($1::text::json -> 'progress' ->> 'epoch')::bigint, mark = $1::text, at = now() WHERE one = 1",
            self.table("progress")
        );
        let failed = |error: postgres::Error| failure(&error);
        patiently("output postgres", None, || {
            let mut client = match self.client.take().filter(|client| !client.is_closed()) {
                Some(client) => client,
                None => connect(&self.url, self.patience)?,
            };
            let mut transaction = client.transaction().map_err(failed)?;
            let found = self.progress(&mut transaction).map_err(failed)?;
            if has_to_write(&found, &self.run, commits)? {
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

    fn pairs(&mut self) -> Result<BTreeSet<DocPair>, Failure> {
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
            pair(&restored(&a), &restored(&b), similarity, evidence)
        };
        rows.into_iter().map(one).collect()
    }

    fn clusters(&mut self) -> Result<BTreeSet<ClusterReport>, Failure> {
        let sql = format!("SELECT document, cluster FROM {}", self.table("clusters"));
        let rows: Vec<(String, String)> = self.rows(&sql, |row| Ok((row.try_get(0)?, row.try_get(1)?)))?;
        let member = |(document, cluster): (String, String)| {
            Ok(ClusterReport::Member {
                cluster: id(&restored(&cluster))?,
                document: id(&restored(&document))?,
            })
        };
        rows.into_iter().map(member).collect()
    }

    fn documents(&mut self) -> Result<BTreeMap<DocId, Facts>, Failure> {
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
        rows.into_iter().map(|(text, facts)| Ok((id(&restored(&text))?, facts))).collect()
    }
}
