//! The tables on a server of PostgreSQL.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use postgres::types::ToSql;
use postgres::{Client, Transaction};

use super::changes::{Changes, parted};
use super::{Stand, Store, TableOutput, has_to_write, id, pair};
use crate::broker::Secret;
use crate::cluster::Report;
use crate::database::postgres::{connect, failure, restored, stored};
use crate::database::{Failure, patiently, quoted};
use crate::doc::{DocId, Facts, Position};
use crate::failpoint;
use crate::pair::{Cause, DocPair, Evidence};

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
                PRIMARY KEY (a, b));
             CREATE INDEX ON {pairs} (b);
             CREATE TABLE {clusters} (document text COLLATE \"C\" PRIMARY KEY, cluster text COLLATE \"C\" NOT NULL);
             CREATE INDEX ON {clusters} (cluster);
             CREATE TABLE {documents} (id text COLLATE \"C\" PRIMARY KEY, ts float8, bytes bigint NOT NULL,
                source_partition bigint NOT NULL, source_offset bigint NOT NULL);
             CREATE TABLE {deltas} (n bigserial PRIMARY KEY, epoch bigint NOT NULL, diff smallint NOT NULL,
                a text COLLATE \"C\" NOT NULL, b text COLLATE \"C\" NOT NULL, similarity float8 NOT NULL, cause text);
             CREATE TABLE {progress} (one integer PRIMARY KEY CHECK (one = 1), run text NOT NULL,
                commits bigint NOT NULL DEFAULT 0, epoch bigint, mark text);
             CREATE VIEW {kept} AS SELECT d.id FROM {documents} d LEFT JOIN {clusters} c ON c.document = d.id
                WHERE c.cluster IS NULL OR c.cluster = d.id;
             CREATE VIEW {removed} AS SELECT document AS id, cluster AS kept FROM {clusters} WHERE cluster <> document;",
            deltas = name("deltas"),
            progress = name("progress"),
            kept = name("kept"),
            removed = name("removed"),
        )
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
        let found = self.begin(&mut transaction).map_err(|error| match failure(&error) {
            Failure::Refused(what) => Failure::Refused(format!(
                "{what}: the tables cannot be made in the schema \"{}\"; sink.schema and sink.prefix say where they are",
                self.schema
            )),
            away @ Failure::Away(_) => away,
        })?;
        transaction.commit().map_err(failed)?;
        Ok((client, found))
    }

    /// Takes the tables over in one transaction. Two runs that begin at once wait for each other.
    fn begin(&self, transaction: &mut Transaction<'_>) -> Result<Stand, postgres::Error> {
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
        let found = self.progress(transaction)?;
        let sql = format!(
            "INSERT INTO {progress} (one, run) VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET run = $1"
        );
        transaction.execute(&sql, &[&self.run])?;
        Ok(found)
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
                "INSERT INTO {deltas} (epoch, diff, a, b, similarity, cause)
                 SELECT epoch, 1, a, b, similarity, $1::text FROM {pairs} ORDER BY epoch, a, b"
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
                "INSERT INTO {} AS p SELECT * FROM unnest($1::text[], $2::text[], $3::float8[], $4::int8[], $5::int4[], $6::int4[],
                    $7::int8[], $8::float8[])
                 ON CONFLICT (a, b) DO UPDATE SET similarity = excluded.similarity, epoch = excluded.epoch, blocks = excluded.blocks,
                    look = excluded.look, components = excluded.components, standard_error = excluded.standard_error",
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
                "INSERT INTO {} SELECT * FROM unnest($1::text[], $2::float8[], $3::int8[], $4::int8[], $5::int8[])
                 ON CONFLICT (id) DO UPDATE SET ts = excluded.ts, bytes = excluded.bytes,
                    source_partition = excluded.source_partition, source_offset = excluded.source_offset",
                table("documents")
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
    /// At the beginning a server that is away is not waited for without end.
    fn take_over(&mut self) -> Result<Stand, Failure> {
        let (client, found) = patiently("output postgres", Some(self.patience), || self.taken_over())?;
        self.client = Some(client);
        Ok(found)
    }

    fn write(&mut self, changes: &Changes, commits: i64, mark: &str) -> Result<(), Failure> {
        let update = format!(
            "UPDATE {} SET commits = commits + 1, epoch = ($1::text::json -> 'progress' ->> 'epoch')::bigint, mark = $1::text WHERE one = 1",
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

    fn clusters(&mut self) -> Result<BTreeSet<Report>, Failure> {
        let sql = format!("SELECT document, cluster FROM {}", self.table("clusters"));
        let rows: Vec<(String, String)> = self.rows(&sql, |row| Ok((row.try_get(0)?, row.try_get(1)?)))?;
        let member = |(document, cluster): (String, String)| {
            Ok(Report::Member { cluster: id(&restored(&cluster))?, document: id(&restored(&document))? })
        };
        rows.into_iter().map(member).collect()
    }

    fn documents(&mut self) -> Result<BTreeMap<DocId, Facts>, Failure> {
        let sql =
            format!("SELECT id, ts, bytes, source_partition, source_offset FROM {}", self.table("documents"));
        let rows = self.rows(&sql, |row| {
            let partition = u32::try_from(row.try_get::<_, i64>(3)?).unwrap_or(u32::MAX);
            let position = Position { partition, offset: row.try_get::<_, i64>(4)?.cast_unsigned() };
            let bytes = u32::try_from(row.try_get::<_, i64>(2)?).unwrap_or(u32::MAX);
            Ok((row.try_get::<_, String>(0)?, Facts { ts: row.try_get(1)?, bytes, position }))
        })?;
        rows.into_iter().map(|(text, facts)| Ok((id(&restored(&text))?, facts))).collect()
    }
}
