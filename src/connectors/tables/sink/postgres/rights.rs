//! The check of an output before a run: what exists, and which rights the role lacks.

use postgres::Client;

use super::parameters::is_true;
use super::store::{PostgresStore, begin_writing};
use crate::tables::database::postgres::{failure, other_encoding};
use crate::tables::database::{DatabaseFailure, quoted};
use crate::tables::sink::shape::{self, FoundTable};
use crate::tables::sink::store::no_rows;

/// What a user should know of the encoding of the database before a run.
pub(super) fn encoding_note(client: &mut Client) -> Result<Option<String>, postgres::Error> {
    let note = |encoding: String| {
        (encoding != "SQL_ASCII").then(|| {
            format!(
                "the encoding of the database is {encoding}: an id with a character that it has not ends the \
                 run; use a database whose encoding is UTF8"
            )
        })
    };
    Ok(other_encoding(client)?.and_then(note))
}

impl PostgresStore {
    /// Describes the output, to follow the name of the schema; the error lists every right that the role
    /// lacks. Writes nothing.
    pub(in crate::tables::sink) fn examine(&self, sides: &[&str]) -> Result<String, DatabaseFailure> {
        let mut client = self.connect()?;
        let failed = |error: postgres::Error| failure(&error);
        let (found, mut missing) = self.rights(&mut client, sides).map_err(failed)?;
        if missing.is_empty() && self.is_made(&mut client).map_err(failed)? {
            missing.extend(self.wrong_tables(&mut client)?);
        }
        if !missing.is_empty() {
            return Err(DatabaseFailure::Refused(missing.join("\n")));
        }
        let encoding = encoding_note(&mut client).map_err(failed)?;
        Ok(found + &encoding.map(|note| format!("; {note}")).unwrap_or_default())
    }

    /// What is wrong with tables that a run does not make or change itself.
    fn wrong_tables(&self, client: &mut Client) -> Result<Vec<String>, DatabaseFailure> {
        let is_older = self.lacks_columns(client).map_err(|error| failure(&error))?;
        let lost =
            self.find(&mut begin_writing(client)?)?.lost().map(|name| shape::missing(&self.table(name)));
        let tables = self.found_tables(client).map_err(|error| failure(&error))?;
        let fault = |table: &FoundTable| table.fault(false, &self.table(table.name));
        let faults = tables.iter().filter(|_| !is_older).filter_map(fault);
        Ok(lost.into_iter().chain(faults).map(|what| format!("postgres: {what}")).collect())
    }

    /// A description of the output, and the rights that a run would lack, each as a message.
    pub(super) fn rights(
        &self,
        client: &mut Client,
        sides: &[&str],
    ) -> Result<(String, Vec<String>), postgres::Error> {
        let mut missing = Vec::new();
        let (role, database, read_only): (String, String, bool) = {
            let row = client.query_one(
                "SELECT current_user::text, current_database()::text, \
                 current_setting('transaction_read_only') = 'on'",
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
                    "postgres: there is no schema \"{schema}\", and the role \"{role}\" may make none: \
                     CREATE SCHEMA {0} AUTHORIZATION {1}, \
                     or GRANT CREATE ON DATABASE {2} TO {1}",
                    quoted(schema),
                    quoted(&role),
                    quoted(&database)
                ));
            }
            return Ok((": missing, the first run makes it".to_owned(), missing));
        }
        let mut are_made = self.is_made(client)?;
        for side in sides {
            are_made &= self.has_table(client, side)?;
        }
        for right in ["USAGE", "CREATE"] {
            // Existing tables need no right to create any.
            let is_needed = right == "USAGE" || !are_made;
            if is_needed && !is_true(client, "SELECT has_schema_privilege($1, $2)", &[schema, &right])? {
                let (schema, role) = (quoted(schema), quoted(&role));
                missing.push(format!(
                    "postgres: the role {role} has no right to {right} in the schema {schema}: GRANT {right} \
                     ON SCHEMA {schema} TO {role}"
                ));
            }
        }
        if !missing.is_empty() || !self.is_made(client)? {
            return Ok((": the first run makes its tables".to_owned(), missing));
        }
        self.table_rights(client, &role, sides, &mut missing)?;
        Ok((String::new(), missing))
    }

    /// Adds the rights on existing tables that the role lacks.
    fn table_rights(
        &self,
        client: &mut Client,
        role: &str,
        sides: &[&str],
        missing: &mut Vec<String>,
    ) -> Result<(), postgres::Error> {
        let own = ["pairs", "clusters", "documents", "deltas", "progress"];
        let decisions = self.decisions.then_some("decisions");
        let mut names: Vec<&str> = own.into_iter().chain(decisions).collect();
        for side in sides {
            // A missing one is made by the run.
            if !self.has_table(client, side)? {
                continue;
            }
            let columns = "SELECT count(*) = 3 FROM pg_attribute WHERE attrelid = to_regclass($1)
                 AND attname IN ('row', 'key', 'epoch') AND NOT attisdropped";
            let table = self.table(side);
            if is_true(client, columns, &[&table])? {
                names.push(side);
            } else {
                missing.push(format!("postgres: {}", no_rows(&table)));
            }
        }
        let owner = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass($1)";
        if self.lacks_columns(client)? && !is_true(client, owner, &[&self.table("progress")])? {
            missing.push(format!("postgres: {}", Self::by_owner(&self.missing_columns())));
        }
        for name in names {
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
                    "postgres: the role {0} has no right to {rights} in {table}: GRANT {rights} ON {table} \
                     TO {0}",
                    quoted(role)
                ));
            }
        }
        Ok(())
    }

    /// Whether the tables exist.
    pub(super) fn is_made(&self, client: &mut Client) -> Result<bool, postgres::Error> {
        self.has_table(client, "progress")
    }

    fn has_table(&self, client: &mut Client, name: &str) -> Result<bool, postgres::Error> {
        // From the catalog: only a role with USAGE on the schema can look up a name in it.
        let sql = "SELECT count(*) > 0 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = $1 AND c.relname = $2";
        client.query_one(sql, &[&self.schema, &format!("{}{name}", self.prefix)])?.try_get(0)
    }
}
