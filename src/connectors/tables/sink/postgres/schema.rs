//! SQL of the tables and views, and of their migration.

use postgres::GenericClient;

use super::store::PostgresStore;
use crate::tables::database::quoted;
use crate::tables::sink::store::LAYOUT;

impl PostgresStore {
    /// Quoted name of a table, with its schema.
    pub(super) fn table(&self, name: &str) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&format!("{}{name}", self.prefix)))
    }

    /// SQL that creates a table. Ids are compared by their bytes.
    pub(super) fn create(&self, name: &str) -> String {
        let table = self.table(name);
        match name {
            "pairs" => format!(
                "CREATE TABLE {table} (a text COLLATE \"C\" NOT NULL, b text COLLATE \"C\" NOT NULL,
                    similarity float8 NOT NULL, epoch bigint NOT NULL, blocks integer, look integer,
                    components bigint, standard_error float8, at timestamptz DEFAULT now(),
                    PRIMARY KEY (a, b));
                 CREATE INDEX ON {table} (b);
                 CREATE INDEX ON {table} (similarity);"
            ),
            "clusters" => format!(
                "CREATE TABLE {table} (document text COLLATE \"C\" PRIMARY KEY,
                    cluster text COLLATE \"C\" NOT NULL);
                 CREATE INDEX ON {table} (cluster);"
            ),
            "documents" => format!(
                "CREATE TABLE {table} (id text COLLATE \"C\" PRIMARY KEY, ts timestamptz,
                    bytes bigint NOT NULL, source_partition bigint NOT NULL, source_offset bigint NOT NULL);"
            ),
            "deltas" => format!(
                "CREATE TABLE {table} (n bigserial PRIMARY KEY, epoch bigint NOT NULL, diff smallint NOT NULL,
                    a text COLLATE \"C\" NOT NULL, b text COLLATE \"C\" NOT NULL, similarity float8 NOT NULL,
                    cause text, at timestamptz DEFAULT now());"
            ),
            "progress" => format!(
                "CREATE TABLE {table} (one integer PRIMARY KEY CHECK (one = 1), run text NOT NULL,
                    commits bigint NOT NULL DEFAULT 0, epoch bigint, mark text, at timestamptz,
                    layout integer NOT NULL DEFAULT {LAYOUT}, counts text, writer text);"
            ),
            "decisions" => self.decisions_table(),
            other => unreachable!("no run makes a table {other}"),
        }
    }

    /// SQL that creates the views of kept and removed documents. Clusters of containment do not say what may
    /// be removed: then SQL that deletes them.
    pub(super) fn views(&self) -> String {
        let [clusters, documents, kept, removed] =
            ["clusters", "documents", "kept", "removed"].map(|name| self.table(name));
        if self.is_directed {
            return format!("DROP VIEW IF EXISTS {kept}; DROP VIEW IF EXISTS {removed};");
        }
        format!(
            "CREATE OR REPLACE VIEW {kept} AS SELECT d.id FROM {documents} d
                LEFT JOIN {clusters} c ON c.document = d.id WHERE c.cluster IS NULL OR c.cluster = d.id;
             CREATE OR REPLACE VIEW {removed} AS SELECT document AS id, cluster AS kept FROM {clusters}
                WHERE cluster <> document;"
        )
    }

    /// Whether a view is missing, and the role may make it.
    pub(super) fn lacks_views(&self, client: &mut impl GenericClient) -> Result<bool, postgres::Error> {
        let sql = "SELECT (to_regclass($1) IS NULL OR to_regclass($2) IS NULL)
            AND has_schema_privilege($3, 'CREATE')";
        let names = (self.table("kept"), self.table("removed"));
        let lacks: bool = client.query_one(sql, &[&names.0, &names.1, &self.schema])?.try_get(0)?;
        Ok(lacks && !self.is_directed)
    }

    /// Whether the table of progress, which exists, has not yet all columns.
    pub(super) fn lacks_columns(&self, client: &mut impl GenericClient) -> Result<bool, postgres::Error> {
        let sql = "SELECT count(*) < 2 FROM pg_attribute WHERE attrelid = to_regclass($1)
             AND attname IN ('counts', 'writer') AND NOT attisdropped";
        client.query_one(sql, &[&self.table("progress")])?.try_get(0)
    }

    /// SQL that adds them.
    pub(super) fn missing_columns(&self) -> String {
        format!(
            "ALTER TABLE {} ADD COLUMN IF NOT EXISTS counts text, ADD COLUMN IF NOT EXISTS writer text",
            self.table("progress")
        )
    }

    /// That only the owner of a table can execute a statement.
    pub(super) fn by_owner(sql: &str) -> String {
        format!("this version of dupflow has more columns there, which the owner of the table adds: {sql}")
    }

    /// SQL that adds the columns of shares.
    pub(super) fn more_columns(&self) -> String {
        let [pairs, deltas] = ["pairs", "deltas"].map(|name| self.table(name));
        format!(
            "ALTER TABLE {pairs} ADD COLUMN in_a float8, ADD COLUMN in_b float8;
             ALTER TABLE {deltas} ADD COLUMN in_a float8, ADD COLUMN in_b float8;"
        )
    }

    /// SQL that changes tables of layout 1 into layout 2. The times at which old rows were written are
    /// unknown.
    pub(super) fn migration(&self) -> String {
        let [pairs, documents, deltas, progress] =
            ["pairs", "documents", "deltas", "progress"].map(|name| self.table(name));
        let ts = time_of("ts");
        format!(
            "ALTER TABLE {pairs} ADD COLUMN at timestamptz;
             ALTER TABLE {pairs} ALTER COLUMN at SET DEFAULT now();
             ALTER TABLE {deltas} ADD COLUMN at timestamptz;
             ALTER TABLE {deltas} ALTER COLUMN at SET DEFAULT now();
             ALTER TABLE {documents} ALTER COLUMN ts TYPE timestamptz USING {ts};
             ALTER TABLE {progress} ADD COLUMN at timestamptz,
                ADD COLUMN layout integer NOT NULL DEFAULT {LAYOUT};
             CREATE INDEX ON {pairs} (similarity);"
        )
    }
}

/// SQL that converts Unix seconds to a timestamp, to the microsecond; NULL before the year 1 and from 10000
/// on.
pub(super) fn time_of(seconds: &str) -> String {
    format!("CASE WHEN {seconds} BETWEEN -62135596800 AND 253402300799 THEN to_timestamp({seconds}) END")
}
