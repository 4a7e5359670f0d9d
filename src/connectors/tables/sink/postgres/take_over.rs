//! Taking the tables over: what is there, what is made, and whose the tables are then.

use postgres::{Client, Transaction};

use super::parameters::insert;
use super::rights::encoding_note;
use super::store::{PostgresStore, WRITER, begin_writing};
use crate::tables::database::postgres::failure;
use crate::tables::database::{DatabaseFailure, quoted};
use crate::tables::sink::shape;
use crate::tables::sink::store::{Found, LAYOUT, known_layout};

impl PostgresStore {
    /// Connects and takes the tables over. Returns the connection, what was there before, and whether there
    /// are columns of shares.
    pub(super) fn connect_and_take_over(&self) -> Result<(Client, Found, bool), DatabaseFailure> {
        let mut client = self.connect()?;
        let failed = |error: postgres::Error| failure(&error);
        let mut transaction = begin_writing(&mut client)?;
        let (found, shares) = self.take_over_in(&mut transaction)?;
        transaction.commit().map_err(failed)?;
        self.warn_of_triggers(&mut client, &found.relations).map_err(failed)?;
        if let Some(note) = encoding_note(&mut client).map_err(failed)? {
            tracing::warn!("output postgres: {note}");
        }
        Ok((client, found, shares))
    }

    /// Takes the tables over in one transaction. A lock makes two runs that start at the same time wait for
    /// each other.
    fn take_over_in(&self, transaction: &mut Transaction<'_>) -> Result<(Found, bool), DatabaseFailure> {
        let failed = |error: postgres::Error| failure(&error);
        let progress = self.table("progress");
        let lock = format!("dupflow {progress}");
        transaction.execute("SELECT pg_advisory_xact_lock(hashtext($1))", &[&lock]).map_err(failed)?;
        let before = self.find(transaction)?;
        let made = self.make(transaction, &before.missing);
        let (layout, shares) = made.map_err(|error| match failure(&error) {
            DatabaseFailure::Refused(what) => DatabaseFailure::Refused(format!(
                "{what}: the tables cannot be made in the schema \"{}\"; sink.schema and sink.prefix say \
                 where they are",
                self.schema
            )),
            away @ DatabaseFailure::Away(_) => away,
        })?;
        known_layout("output postgres", layout)?;
        self.add_columns(transaction)?;
        let tables = self.found_tables(transaction).map_err(failed)?;
        let faults = self.faults_of(&tables, shares);
        if !faults.is_empty() {
            return Err(DatabaseFailure::Refused(format!("postgres: {}", faults.join("\n"))));
        }
        let found = Found {
            progress: self.lock_progress(transaction)?,
            relations: self.relations(&tables),
            ..before
        };
        self.claim(transaction, &found.progress.run)?;
        if found.lost().is_some() {
            insert(transaction, &progress, &format!("UPDATE {progress} SET mark = NULL"), &[], 1)?;
        }
        Ok((found, shares))
    }

    /// Makes missing tables and views, and changes those of earlier versions. Returns the layout, if any
    /// other than that of this version is found, and whether there are columns of shares.
    fn make(
        &self,
        transaction: &mut Transaction<'_>,
        missing: &[&str],
    ) -> Result<(Option<i64>, bool), postgres::Error> {
        let has_schema = "SELECT count(*) > 0 FROM pg_namespace WHERE nspname = $1";
        if !transaction.query_one(has_schema, &[&self.schema])?.try_get::<_, bool>(0)? {
            transaction.batch_execute(&format!("CREATE SCHEMA {}", quoted(&self.schema)))?;
        }
        for shape in shape::needed(self.decisions).filter(|shape| missing.contains(&shape.name)) {
            transaction.batch_execute(&self.create(shape.name))?;
        }
        let layout = if missing.contains(&"progress") { None } else { self.migrate(transaction)? };
        let shares = self.add_shares(transaction)?;
        // A view follows a table that is renamed.
        let is_made = ["clusters", "documents"].iter().any(|table| missing.contains(table));
        if is_made || self.lacks_views(transaction)? {
            transaction.batch_execute(&self.views())?;
        }
        Ok((layout, shares))
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

    /// Adds the columns of the table of progress that earlier versions have not made.
    fn add_columns(&self, transaction: &mut Transaction<'_>) -> Result<(), DatabaseFailure> {
        if !self.lacks_columns(transaction).map_err(|error| failure(&error))? {
            return Ok(());
        }
        let sql = self.missing_columns();
        transaction.batch_execute(&sql).map_err(|error| match failure(&error) {
            DatabaseFailure::Refused(what) => {
                DatabaseFailure::Refused(format!("{what}: {}", Self::by_owner(&sql)))
            }
            away @ DatabaseFailure::Away(_) => away,
        })
    }

    /// Writes the name of this run and its connection into the row of progress. Refused, for now, while the
    /// run before is connected.
    fn claim(&self, transaction: &mut Transaction<'_>, before: &str) -> Result<(), DatabaseFailure> {
        let failed = |error: postgres::Error| failure(&error);
        let progress = self.table("progress");
        let connected = format!(
            "SELECT pid FROM pg_stat_activity, {progress} WHERE one = 1 AND run <> $1
             AND writer = pid || ' ' || backend_start"
        );
        let connected = transaction.query_opt(&connected, &[&self.run]).map_err(failed)?;
        if let Some(row) = connected {
            let pid: i32 = row.try_get(0).map_err(failed)?;
            return Err(DatabaseFailure::Away(format!(
                "another run ({before}) writes to the tables: stop it, or set sink.prefix. Its connection is \
                 process {pid} of the server; if its machine is gone, or a pooler keeps the connection of a \
                 run that was killed: SELECT pg_terminate_backend({pid})"
            )));
        }
        let sql = format!(
            "INSERT INTO {progress} (one, run, writer) VALUES (1, $1, {WRITER})
             ON CONFLICT (one) DO UPDATE SET run = excluded.run, writer = excluded.writer"
        );
        insert(transaction, &progress, &sql, &[&self.run], 1)
    }

    /// Logs triggers that may change rows before they are written.
    fn warn_of_triggers(&self, client: &mut Client, relations: &[i64]) -> Result<(), postgres::Error> {
        // Bits 1 and 2 of the type: for each row, before it.
        let sql = "SELECT tgname::text, tgrelid::regclass::text FROM pg_trigger
            WHERE NOT tgisinternal AND tgenabled <> 'D' AND tgtype & 3 = 3 AND tgrelid::int8 = ANY ($1)";
        for row in client.query(sql, &[&relations])? {
            shape::warn_of_trigger(row.try_get(0)?, row.try_get(1)?);
        }
        Ok(())
    }
}
