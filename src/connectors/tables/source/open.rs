//! Opens a table in its database.

#[cfg(feature = "postgres")]
use super::postgres;
#[cfg(feature = "sqlite")]
use super::sqlite;
use super::table::{DatabaseTable, OrderKind, TableRows};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
use crate::tables::database::Address;
use crate::tables::database::DatabaseFailure;

/// Message for rows that are not seen.
pub(super) const UNSEEN: &str =
    "not read, since they have no id, or no order that is a number or a time from 0 (1970) on";

impl DatabaseTable {
    /// Opens the table, and checks its columns.
    pub(super) fn reach(&self) -> Result<Box<dyn TableRows>, DatabaseFailure> {
        match &self.address {
            #[cfg(feature = "sqlite")]
            Address::Sqlite(path) => Ok(Box::new(sqlite::SqliteRows::reach(self, path)?)),
            #[cfg(feature = "postgres")]
            Address::Postgres(url) => Ok(Box::new(postgres::PostgresRows::reach(self, url)?)),
            #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
            _ => Err(DatabaseFailure::Refused("this dupflow was built without this database".to_owned())),
        }
    }

    /// Describes the table in one line, for a check before a run.
    ///
    /// # Errors
    /// If it cannot be read as it is configured.
    pub fn examine(&self) -> Result<String, DatabaseFailure> {
        let mut rows = self.reach()?;
        let (count, unseen) = (rows.count()?, rows.unseen()?);
        let order = match rows.order() {
            OrderKind::Number => "numbers",
            OrderKind::Time => "times",
        };
        let seen = if unseen == 0 { String::new() } else { format!(", {unseen} of them {UNSEEN}") };
        let note = rows.note().map(|note| format!("; {note}")).unwrap_or_default();
        Ok(format!("reads {}: {count} rows, in order of {order}{seen}{note}", self.name()))
    }
}
