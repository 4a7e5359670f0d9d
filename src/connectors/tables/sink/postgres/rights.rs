//! The check of an output before a run: what exists, and which rights the role lacks.

use postgres::Client;

use super::parameters::is_true;
use super::store::PostgresStore;
use crate::tables::database::postgres::{connect, failure};
use crate::tables::database::{DatabaseFailure, quoted};

impl PostgresStore {
    /// Describes the output, to follow the name of the schema; the error lists every right that the role
    /// lacks. Writes nothing.
    pub(in crate::tables::sink) fn examine(&self) -> Result<String, DatabaseFailure> {
        let mut client = connect(&self.url, self.patience)?;
        let (found, missing) = self.rights(&mut client).map_err(|error| failure(&error))?;
        if missing.is_empty() { Ok(found) } else { Err(DatabaseFailure::Refused(missing.join("\n"))) }
    }

    /// A description of the output, and the rights that a run would lack, each as a message.
    fn rights(&self, client: &mut Client) -> Result<(String, Vec<String>), postgres::Error> {
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
        for right in ["USAGE", "CREATE"] {
            // Existing tables need no right to create any.
            let is_needed = right == "USAGE" || !self.is_made(client)?;
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
        self.table_rights(client, &role, &mut missing)?;
        Ok((String::new(), missing))
    }

    /// Adds the rights on existing tables that the role lacks.
    fn table_rights(
        &self,
        client: &mut Client,
        role: &str,
        missing: &mut Vec<String>,
    ) -> Result<(), postgres::Error> {
        let decisions = self.decisions.then_some("decisions");
        for name in ["pairs", "clusters", "documents", "deltas", "progress"].into_iter().chain(decisions) {
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
        // From the catalog: only a role with USAGE on the schema can look up a name in it.
        let sql = "SELECT count(*) > 0 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = $1 AND c.relname = $2";
        client.query_one(sql, &[&self.schema, &format!("{}progress", self.prefix)])?.try_get(0)
    }
}
