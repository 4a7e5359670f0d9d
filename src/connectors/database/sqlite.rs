//! Connections to a file of SQLite.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::Failure;

/// How long another writer of the file is waited for within one statement.
const BUSY: Duration = Duration::from_secs(5);

/// A connection that only reads. The file must be there.
///
/// # Errors
/// That it is not, or is no database.
pub fn reader(path: &Path) -> Result<Connection, Failure> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .and_then(|connection| {
            connection.pragma_update(None, "query_only", true)?;
            Ok(connection)
        })
        .map_err(|error| failure(path, &error))
}

/// A connection that writes; the file is made if it is missing. A commit is on the disk when it returns, and
/// readers of the file hold it up as little as it does them.
///
/// # Errors
/// That it is no database, or cannot be written.
pub fn writer(path: &Path) -> Result<Connection, Failure> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
        .and_then(|connection| {
            // The mode stays with the file.
            connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
            // With less, the last commits may be gone after the machine has lost its power, and what is kept
            // for a restart is ahead.
            connection.pragma_update(None, "synchronous", "full")?;
            Ok(connection)
        })
        .map_err(|error| failure(path, &error))
}

fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(32);
    // It is read here that this is a database.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// What an error means.
pub fn failure(path: &Path, error: &rusqlite::Error) -> Failure {
    let what = format!("{}: {error}", path.display());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::Away(what),
        _ => Failure::Refused(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        assert!(!reader(&path).unwrap_err().is_retriable(), "a reader makes none");
        assert!(!path.exists());
        let first = writer(&path).unwrap();
        first.execute_batch("CREATE TABLE t (x); BEGIN IMMEDIATE").unwrap();
        assert!(reader(&path).unwrap().execute("INSERT INTO t VALUES (1)", []).is_err(), "it only reads");
        let second = writer(&path).unwrap();
        second.busy_timeout(Duration::from_millis(1)).unwrap();
        let busy = second.execute("INSERT INTO t VALUES (1)", []).unwrap_err();
        assert!(failure(&path, &busy).is_retriable());
        std::fs::write(folder.path().join("text"), "not at all a database".repeat(100)).unwrap();
        let told = reader(&folder.path().join("text")).unwrap_err();
        assert!(told.to_string().contains("not a database"), "{told}");
    }
}
