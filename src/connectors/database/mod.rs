//! The way to a database: what source, sink and commands share. SQLite is a file (feature `sqlite`),
//! PostgreSQL a server (feature `postgres`).
//!
//! Every error becomes a [`Failure`]: worth another try, or the end, in one line. No message holds the
//! address of a server, which may hold a password.
//!
//! What it does not do: TLS to a server; a pool of connections.

use std::mem;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use backon::{BlockingRetryable, ConstantBuilder};
use thiserror::Error;

use crate::broker::Secret;
use dupflow_core::time::{Clock, SystemClock};

#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

/// Which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A file.
    Sqlite(PathBuf),
    /// A server, by its URL or its `key=value` settings.
    Postgres(Secret),
}

impl Address {
    /// What stands behind the name of a file of SQLite in the names of those that it keeps beside it.
    pub const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

    /// For a message: never what may hold a password.
    pub fn name(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(_) => "postgres".to_owned(),
        }
    }
}

/// Why a database has not done what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// It is away, or busy: another time it may.
    #[error("{0}")]
    Away(String),
    /// It says no.
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    /// Whether another try may help.
    pub fn is_retriable(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

/// How long after a try another one is made.
const APART: Duration = Duration::from_millis(500);

/// Does something until the database is no longer away: for so long, or without end; with a line in the log
/// when it goes and when it is back.
///
/// # Errors
/// That it says no, or is away for too long.
pub fn patiently<T>(
    what: &str,
    most: Option<Duration>,
    go: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let clock = SystemClock::start();
    let mut was_away = false;
    let ended = go
        .retry(ConstantBuilder::new().with_delay(APART).without_max_times())
        // Nothing wakes this thread: a database says by nothing but an answer that it is back.
        .sleep(thread::park_timeout)
        .when(|failure| failure.is_retriable() && most.is_none_or(|most| clock.now() < most))
        .notify(|failure, _| {
            if !mem::replace(&mut was_away, true) {
                tracing::warn!("{what}: {failure}; it is tried again");
            }
        })
        .call();
    if was_away && ended.is_ok() {
        tracing::info!("{what}: it is there again");
    }
    ended
}

/// A name in SQL: of a table, of a column, whatever it holds.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A name that may have the name of its schema before it, with a point between them.
pub fn quoted_path(name: &str) -> String {
    name.split('.').map(quoted).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_away_is_tried_again() {
        let mut tries = 0;
        let mut go = |until: u32| {
            patiently("it", Some(Duration::from_secs(60)), || {
                tries += 1;
                if tries < until { Err(Failure::Away("gone".to_owned())) } else { Ok(tries) }
            })
        };
        assert_eq!(go(2), Ok(2));
        let no = patiently::<()>("it", None, || Err(Failure::Refused("no".to_owned())));
        assert_eq!(no, Err(Failure::Refused("no".to_owned())));
        let away = patiently::<()>("it", Some(Duration::ZERO), || Err(Failure::Away("gone".to_owned())));
        assert_eq!(away, Err(Failure::Away("gone".to_owned())));
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a\"b; drop"), "\"a\"\"b; drop\"");
        assert_eq!(quoted_path("web.pages"), "\"web\".\"pages\"");
        let secret = Address::Postgres(Secret::new("postgres://me:hunter2@host/db"));
        assert!(!format!("{secret:?}{}", secret.name()).contains("hunter2"));
    }
}
