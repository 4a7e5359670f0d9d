//! Connections to a SQLite file.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{DatabaseFailure, IMMUTABLE};

/// How long a statement waits for another writer of the file.
const BUSY: Duration = Duration::from_secs(5);

/// A read-only connection to an existing file.
///
/// # Errors
/// If the file is missing or not a database.
pub fn reader(path: &Path) -> Result<Connection, DatabaseFailure> {
    let opened = match immutable(path) {
        Some(_) if let Some(suffix) = journal(path) => {
            return Err(DatabaseFailure::Refused(format!(
                "{}: there is a journal beside it (\"{suffix}\"), without which it lacks changes or has some \
                 in part, and which would not be read: open it once where it can be written to, as sqlite3 \
                 DATABASE 'pragma wal_checkpoint(truncate)' does",
                path.display()
            )));
        }
        Some(uri) => open(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI),
        None => open(path, OpenFlags::SQLITE_OPEN_READ_WRITE),
    };
    opened
        .and_then(|connection| {
            connection.pragma_update(None, "query_only", true)?;
            Ok(connection)
        })
        .map_err(|error| match error.sqlite_error_code() {
            // Readers write the index of a log, "-shm", into the folder of the database too.
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) if path.is_file() => {
                DatabaseFailure::Refused(format!(
                    "{}: {error}: a database whose journal is a log (WAL) needs write permission for its \
                     folder, also to be read: allow that, copy the database, or add {IMMUTABLE} to its path, \
                     which is wrong while others write to it",
                    path.display()
                ))
            }
            _ => failure(path, &error),
        })
}

/// The suffix of the journal beside a database that is read as one that nothing writes: a log with changes
/// after those in the file, or the pages before changes that are not committed.
fn journal(path: &Path) -> Option<&'static str> {
    let file = path.to_str()?.strip_suffix(IMMUTABLE)?;
    let is_there = |suffix: &&str| fs::metadata(format!("{file}{suffix}")).is_ok_and(|found| found.len() > 0);
    ["-wal", "-journal"].into_iter().find(is_there)
}

/// The address of a database that is read as one that nothing writes, if its path ends so.
fn immutable(path: &Path) -> Option<String> {
    let path = path.to_str()?.strip_suffix(IMMUTABLE)?;
    let escaped = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Some(format!("file:{escaped}{IMMUTABLE}"))
}

/// A connection for writing; creates the file if it is missing. A commit is on disk when it returns. Readers
/// and the writer do not block each other (WAL mode).
///
/// # Errors
/// If the file is not a database, or cannot be written.
pub fn writer(path: &Path) -> Result<Connection, DatabaseFailure> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
        .and_then(|connection| {
            // The mode is stored in the file.
            connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
            // With a lower level, a power failure may lose the last commits, and the stored state would be
            // ahead of the output.
            connection.pragma_update(None, "synchronous", "full")?;
            Ok(connection)
        })
        .map_err(|error| failure(path, &error))
}

fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(32);
    // SQLite reads the file only now, and finds out whether it is a database.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// Classifies an error.
pub fn failure(path: &Path, error: &rusqlite::Error) -> DatabaseFailure {
    let what = format!("{}: {error}", path.display());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DatabaseFailure::Away(what),
        _ => DatabaseFailure::Refused(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_read_as_one_that_nothing_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a %3f#.db");
        writer(&path).unwrap().execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (7)").unwrap();
        let fixed = folder.path().join(format!("a %3f#.db{IMMUTABLE}"));
        let connection = reader(&fixed).unwrap();
        let found: i64 = connection.query_row("SELECT x FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(found, 7);
        assert!(connection.execute("INSERT INTO t VALUES (1)", []).is_err());
        assert!(!folder.path().join("a %3f#.db-shm").exists(), "nothing is written beside it");
        for suffix in ["-wal", "-journal"] {
            let journal = folder.path().join(format!("a %3f#.db{suffix}"));
            fs::write(&journal, b"").unwrap();
            assert!(reader(&fixed).is_ok(), "{suffix}: it is empty");
            fs::write(&journal, b"x").unwrap();
            let refused = reader(&fixed).unwrap_err().to_string();
            assert!(refused.contains(&format!("a journal beside it (\"{suffix}\")")), "{refused}");
            fs::remove_file(&journal).unwrap();
        }
    }

    #[test]
    fn other_files_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        assert!(!reader(&path).unwrap_err().is_retriable(), "a reader creates no file");
        assert!(!path.exists());
        let first = writer(&path).unwrap();
        first.execute_batch("CREATE TABLE t (x); BEGIN IMMEDIATE").unwrap();
        assert!(reader(&path).unwrap().execute("INSERT INTO t VALUES (1)", []).is_err(), "it only reads");
        let second = writer(&path).unwrap();
        second.busy_timeout(Duration::from_millis(1)).unwrap();
        let busy = second.execute("INSERT INTO t VALUES (1)", []).unwrap_err();
        assert!(failure(&path, &busy).is_retriable());
        std::fs::write(folder.path().join("text"), "not at all a database".repeat(100)).unwrap();
        let message = reader(&folder.path().join("text")).unwrap_err();
        assert!(message.to_string().contains("not a database"), "{message}");
    }
}
