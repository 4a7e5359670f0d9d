//! Connections to databases, shared by the source, the sink and the commands: SQLite files (feature `sqlite`)
//! and PostgreSQL servers (feature `postgres`).
//!
//! Every error becomes a [`DatabaseFailure`] of one line: retriable or not. No message contains the address
//! of a server, which may contain a password.
//!
//! What it does not do: TLS to a server; connection pools.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use backon::{BlockingRetryable, ConstantBuilder};
use thiserror::Error;

use crate::credential::Credential;
use dupflow_core::time::{Clock, SystemClock};

#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

/// What is added to the path of a SQLite file to read it as one that nothing writes.
const IMMUTABLE: &str = "?immutable=1";

/// Address of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server: its URL, or its `key=value` settings.
    Postgres(Credential),
}

impl Address {
    /// Suffixes of the files that SQLite keeps beside its database file.
    pub const COMPANION_SUFFIXES: [&str; 3] = ["-wal", "-shm", "-journal"];

    /// The SQLite file, without what its path says about how it is read.
    pub fn file(&self) -> Option<&Path> {
        let Self::Sqlite(path) = self else { return None };
        Some(path.to_str().and_then(|path| path.strip_suffix(IMMUTABLE)).map_or(path, Path::new))
    }

    /// Name for messages; never contains a password.
    pub fn name(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(_) => "postgres".to_owned(),
        }
    }
}

/// A failed database operation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DatabaseFailure {
    /// The database is unreachable or busy. Another attempt may succeed.
    #[error("{0}")]
    Away(String),
    /// The database rejects the operation.
    #[error("{0}")]
    Refused(String),
}

impl DatabaseFailure {
    /// Whether another attempt may succeed.
    pub fn is_retriable(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

/// Pause between attempts.
const APART: Duration = Duration::from_millis(500);

/// Calls `operation` until the database is reachable, for up to `most`, or without limit. Logs a line when it
/// becomes unreachable and when it is back.
///
/// # Errors
/// That the database rejects the operation, or is unreachable for longer than `most`.
pub fn retry_until_reachable<T>(
    what: &str,
    most: Option<Duration>,
    operation: impl FnMut() -> Result<T, DatabaseFailure>,
) -> Result<T, DatabaseFailure> {
    let clock = SystemClock::start();
    let mut attempts = 0;
    let ended = operation
        .retry(ConstantBuilder::new().with_delay(APART).without_max_times())
        // No event wakes this thread: only another attempt shows that the database is back.
        .sleep(thread::park_timeout)
        .when(|failure| failure.is_retriable() && most.is_none_or(|most| clock.now() < most))
        .notify(|failure, _| {
            attempts += 1;
            if is_told(attempts) {
                tracing::warn!(attempts, "{what}: {failure}; it is tried again");
            }
        })
        .call();
    if attempts > 0 && ended.is_ok() {
        tracing::info!("{what}: it is reachable again");
    }
    ended
}

/// Whether a failure that passes may be one of every attempt, since `statement_timeout` is too short for the
/// statement. The server's language decides its words, not its code.
pub fn is_of_limit(failure: &DatabaseFailure) -> bool {
    matches!(failure, DatabaseFailure::Away(what) if what.contains("(57014)"))
}

/// Whether so many failed attempts in a row are logged: the first one, and from the sixteenth on each time
/// that they have doubled.
pub fn is_told(attempts: u32) -> bool {
    attempts == 1 || attempts >= 16 && attempts.is_power_of_two()
}

/// Quotes an SQL identifier, with any characters.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes the name of a table, with or without `schema.` before it.
pub fn quoted_path(name: &str) -> String {
    name.split('.').map(quoted).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_databases_are_retried() {
        let mut tries = 0;
        let mut operation = |until: u32| {
            retry_until_reachable("it", Some(Duration::from_secs(60)), || {
                tries += 1;
                if tries < until { Err(DatabaseFailure::Away("down".to_owned())) } else { Ok(tries) }
            })
        };
        assert_eq!(operation(2), Ok(2));
        let no = retry_until_reachable::<()>("it", None, || Err(DatabaseFailure::Refused("no".to_owned())));
        assert_eq!(no, Err(DatabaseFailure::Refused("no".to_owned())));
        let away = retry_until_reachable::<()>("it", Some(Duration::ZERO), || {
            Err(DatabaseFailure::Away("down".to_owned()))
        });
        assert_eq!(away, Err(DatabaseFailure::Away("down".to_owned())));
    }

    #[test]
    fn failures_are_told_now_and_then() {
        let told: Vec<u32> = (1..100).filter(|attempts| is_told(*attempts)).collect();
        assert_eq!(told, [1, 16, 32, 64]);
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a\"b; drop"), "\"a\"\"b; drop\"");
        assert_eq!(quoted_path("web.pages"), "\"web\".\"pages\"");
        let secret = Address::Postgres(Credential::new("postgres://me:hunter2@host/db"));
        assert!(!format!("{secret:?}{}", secret.name()).contains("hunter2"));
    }
}
