//! What a server has of an output, and what is wrong with it.

use postgres::{Client, GenericClient};

use super::store::{PostgresStore, progress_row};
use crate::tables::database::postgres::failure;
use crate::tables::database::{DatabaseFailure, quoted};
use crate::tables::sink::shape::{self, FoundTable, SHAPES};
use crate::tables::sink::store::Found;

impl PostgresStore {
    /// What the server has.
    pub(super) fn find(&self, client: &mut impl GenericClient) -> Result<Found, DatabaseFailure> {
        let failed = |error: postgres::Error| failure(&error);
        let tables = self.found_tables(client).map_err(failed)?;
        let other =
            |name: &str| DatabaseFailure::Refused(format!("postgres: {}", shape::not_own(&self.table(name))));
        let mut found = Found { missing: shape::missing_of(&tables).map_err(other)?, ..Found::default() };
        if !found.missing.contains(&"progress") {
            let row = client.query_opt(&self.select_progress(), &[]);
            found.progress = row.and_then(progress_row).map_err(failed)?;
        }
        if !found.is_whole() {
            let tables = tables.iter().map(|table| table.name).filter(|name| *name != "progress");
            for name in tables {
                let sql = format!("SELECT EXISTS (SELECT FROM {})", self.table(name));
                let is_filled = client.query_one(&sql, &[]).and_then(|row| row.try_get::<_, bool>(0));
                if is_filled.map_err(failed)? {
                    found.filled.push(name);
                }
            }
        }
        Ok(found)
    }

    /// The tables that are there. Ids of their names are not looked up, so that no right is needed.
    pub(super) fn found_tables(
        &self,
        client: &mut impl GenericClient,
    ) -> Result<Vec<FoundTable>, postgres::Error> {
        let sql = "SELECT c.relname::text, c.oid::int8, row_security_active(c.oid),
                ARRAY(SELECT attname::text FROM pg_attribute
                    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
                ARRAY(SELECT attname::text FROM pg_attribute
                    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attnotnull
                    AND NOT atthasdef AND attidentity = ''),
                ARRAY(SELECT (SELECT string_agg(attname::text, ' ' ORDER BY attname) FROM pg_attribute
                        WHERE attrelid = c.oid AND attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]))
                    FROM pg_index i WHERE indrelid = c.oid AND indisunique AND indisvalid AND indimmediate
                    AND indpred IS NULL AND indexprs IS NULL)
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = $1 AND c.relname = ANY ($2::name[]) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')";
        let names = SHAPES.each_ref().map(|shape| format!("{}{}", self.prefix, shape.name));
        let mut found = Vec::new();
        for row in client.query(sql, &[&self.schema, &&names[..]])? {
            let name: String = row.try_get(0)?;
            let Some(shape) =
                SHAPES.iter().zip(&names).find_map(|(shape, own)| (*own == name).then_some(shape))
            else {
                continue;
            };
            found.push(FoundTable {
                name: shape.name,
                relation: row.try_get(1)?,
                has_policy: row.try_get(2)?,
                columns: row.try_get(3)?,
                required: row.try_get(4)?,
                keys: row.try_get::<_, Vec<Option<String>>>(5)?.into_iter().flatten().collect(),
            });
        }
        Ok(found)
    }

    /// See [`crate::tables::sink::store::Look::relations`].
    pub(super) fn relations(&self, tables: &[FoundTable]) -> Vec<i64> {
        let needed = shape::needed(self.decisions);
        let found = needed.filter_map(|shape| tables.iter().find(|table| table.name == shape.name));
        found.map(|table| table.relation).collect()
    }

    /// What is wrong with the schema, or with the tables in it.
    pub(super) fn structure(
        &self,
        client: &mut Client,
        tables: &[FoundTable],
    ) -> Result<Vec<String>, DatabaseFailure> {
        let has_schema = client.query_opt("SELECT FROM pg_namespace WHERE nspname = $1", &[&self.schema]);
        if has_schema.map_err(|error| failure(&error))?.is_none() {
            return Ok(vec![format!(
                "the schema {0} is missing: it was dropped or renamed. Rename it back (ALTER SCHEMA … RENAME \
                 TO {0}); without it the next start writes the whole result anew",
                quoted(&self.schema)
            )]);
        }
        Ok(self.faults_of(tables, self.shares))
    }

    /// See [`shape::faults`].
    pub(super) fn faults_of(&self, tables: &[FoundTable], shares: bool) -> Vec<String> {
        shape::faults(tables, self.decisions, shares, |name| self.table(name))
    }

    /// What is wrong with the tables, or else the rights that the role lacks.
    pub(super) fn faults(&self, client: &mut Client, sides: &[&str]) -> Result<Vec<String>, DatabaseFailure> {
        let tables = self.found_tables(client).map_err(|error| failure(&error))?;
        let faults = self.structure(client, &tables)?;
        if !faults.is_empty() {
            return Ok(faults);
        }
        self.rights(client, sides).map(|(_, missing)| missing).map_err(|error| failure(&error))
    }
}
