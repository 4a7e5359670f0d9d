//! Selects the database of an output.

#[cfg(feature = "postgres")]
use super::postgres;
#[cfg(feature = "sqlite")]
use super::sqlite;
use super::store::{TableOutput, TableStore};
use crate::tables::database::{Address, DatabaseFailure};

impl TableOutput {
    /// Describes the output in a line, for a check before a run. `sides` are the names of the tables of side
    /// outputs. Writes nothing.
    ///
    /// # Errors
    /// If the database cannot be reached, or its role lacks a right that a run needs; if a table of this name
    /// holds something else than rows.
    pub fn examine(&self, sides: &[&str]) -> Result<String, DatabaseFailure> {
        #[cfg(not(any(feature = "postgres", feature = "sqlite")))]
        let _ = sides;
        let name = self.address.name();
        match &self.address {
            #[cfg(feature = "sqlite")]
            Address::Sqlite(path) if path.exists() => {
                let tables = sides.iter().map(|side| format!("{}{side}", self.prefix));
                sqlite::examine(path, tables).map(|()| format!("writes {name}"))
            }
            Address::Sqlite(_) => Ok(format!("writes {name}: missing, the first run makes it")),
            #[cfg(feature = "postgres")]
            Address::Postgres(url) => postgres::PostgresStore::new(self, url)
                .examine(sides)
                .map(|found| format!("writes {name}, schema \"{}\"{found}", self.schema)),
            #[cfg(not(feature = "postgres"))]
            Address::Postgres(_) => Err(DatabaseFailure::Refused(format!("{name} is not built in"))),
        }
    }
}

/// The store of an output; `None` if this program was built without its database.
pub(super) fn open_store(output: &TableOutput) -> Option<Box<dyn TableStore>> {
    match &output.address {
        #[cfg(feature = "sqlite")]
        Address::Sqlite(path) => Some(Box::new(sqlite::SqliteStore::new(output, path))),
        #[cfg(feature = "postgres")]
        Address::Postgres(url) => Some(Box::new(postgres::PostgresStore::new(output, url))),
        #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
        _ => None,
    }
}
