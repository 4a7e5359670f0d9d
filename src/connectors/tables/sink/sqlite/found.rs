//! What a file has of an output, and what is wrong with it.

use std::path::Path;

use rusqlite::Connection;

use super::rows::progress;
use super::store::SqliteStore;
use crate::tables::database::{DatabaseFailure, sqlite};
use crate::tables::sink::shape::{self, FoundTable, SHAPES};
use crate::tables::sink::store::{Found, no_rows};

impl SqliteStore {
    /// What the file has.
    pub(super) fn find(&self, connection: &Connection) -> Result<Found, DatabaseFailure> {
        let failed = |error: rusqlite::Error| sqlite::failure(&self.path, &error);
        let other = |name: &str| {
            let name = format!("{}{name}", self.prefix);
            DatabaseFailure::Refused(format!("{}: {}", self.path.display(), shape::not_own(&name)))
        };
        let tables = self.found_tables(connection).map_err(failed)?;
        let mut found = Found { missing: shape::missing_of(&tables).map_err(other)?, ..Found::default() };
        if tables.is_empty() {
            for view in ["kept", "removed"] {
                if connection.table_exists(None, &*format!("{}{view}", self.prefix)).map_err(failed)? {
                    return Err(other(view));
                }
            }
        }
        if !found.missing.contains(&"progress") {
            found.progress = progress(connection, &self.table("progress")).map_err(failed)?;
        }
        if !found.is_whole() {
            for name in tables.iter().map(|table| table.name).filter(|name| *name != "progress") {
                let sql = format!("SELECT EXISTS (SELECT 1 FROM {})", self.table(name));
                if connection.query_row(&sql, [], |row| row.get(0)).map_err(failed)? {
                    found.filled.push(name);
                }
            }
        }
        Ok(found)
    }

    /// The tables that are there.
    fn found_tables(&self, connection: &Connection) -> rusqlite::Result<Vec<FoundTable>> {
        let names = |sql: &str, table: &str| -> rusqlite::Result<Vec<String>> {
            connection.prepare(sql)?.query_map([table], |row| row.get(0))?.collect()
        };
        let mut found = Vec::new();
        for name in SHAPES.iter().map(|shape| shape.name) {
            let table = format!("{}{name}", self.prefix);
            let columns = names("SELECT name FROM pragma_table_info(?1)", &table)?;
            if columns.is_empty() {
                continue;
            }
            let required = "SELECT name FROM pragma_table_info(?1) WHERE \"notnull\" AND dflt_value IS NULL";
            let unique = "SELECT group_concat(name, ' ') FROM
                (SELECT i.name AS key, c.name FROM pragma_index_list(?1) i, pragma_index_info(i.name) c
                 WHERE i.\"unique\" AND NOT i.partial
                 UNION ALL SELECT NULL, name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY 1, 2)
                GROUP BY key";
            found.push(FoundTable {
                name,
                required: names(required, &table)?,
                keys: names(unique, &table)?,
                columns,
                has_policy: false,
                relation: 0,
            });
        }
        Ok(found)
    }

    /// See [`shape::faults`].
    pub(super) fn faults(&self, connection: &Connection, shares: bool) -> rusqlite::Result<Vec<String>> {
        let tables = self.found_tables(connection)?;
        Ok(shape::faults(&tables, self.decisions, shares, |name| format!("{}{name}", self.prefix)))
    }
}

/// Checks that an existing file can be written to, and that tables of these names hold rows of side outputs
/// if they exist. Writes nothing.
pub(in crate::tables::sink) fn examine(
    path: &Path,
    sides: impl Iterator<Item = String>,
) -> Result<(), DatabaseFailure> {
    let connection = sqlite::reader(path)?;
    let failed = |error: rusqlite::Error| sqlite::failure(path, &error);
    let refused =
        |what: String| DatabaseFailure::Refused(format!("{}: it cannot be written: {what}", path.display()));
    if connection.is_readonly("main").map_err(failed)? {
        return Err(refused("it is read-only".to_owned()));
    }
    for table in sides {
        let sql = "SELECT count(*), count(*) FILTER (WHERE name IN ('row', 'key', 'epoch')) \
                   FROM pragma_table_info(?1)";
        let columns = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let (all, own) = connection.query_row(sql, [&table], columns).map_err(failed)?;
        if all > 0 && own < 3 {
            return Err(refused(no_rows(&table)));
        }
    }
    std::fs::OpenOptions::new().write(true).open(path).map(drop).map_err(|error| refused(error.to_string()))
}
