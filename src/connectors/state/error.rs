//! Errors of stored state.

use std::error::Error as _;
use std::io;

use thiserror::Error;

/// Why state was not read or written. Each message names the file, what was expected and what was found.
#[derive(Debug, Error)]
pub enum StateError {
    /// The file system or object store failed.
    #[error("state file \"{file}\"")]
    Io {
        /// Full name of the file.
        file: String,
        /// Its error.
        #[source]
        source: io::Error,
    },
    /// The file is not what was written.
    #[error("state file \"{file}\" is damaged: {what}")]
    Damaged {
        /// Full name of the file.
        file: String,
        /// What was expected and what was found.
        what: String,
    },
    /// The file is undamaged, but of another version of the program.
    #[error("state file \"{file}\" has format version {found}, expected {expected}")]
    Version {
        /// Full name of the file.
        file: String,
        /// Version in the file.
        found: u32,
        /// Version that this program reads and writes.
        expected: u32,
    },
    /// Another run has opened the state since. This one can no longer publish.
    #[error(
        "another run has taken over the state: expected \"{file}\" to be free, found one of another owner"
    )]
    TakenOver {
        /// The manifest of the other run.
        file: String,
    },
    /// Another process has the state open.
    #[error("a run owns the state: \"{file}\" is locked")]
    Owned {
        /// The lock file.
        file: String,
    },
    /// There is no state to read.
    #[error("no state in \"{place}\": expected a file \"manifest-…\"")]
    Missing {
        /// The folder or the prefix.
        place: String,
    },
    /// The table of document frequencies in force was never stored here.
    #[error("no table {fingerprint:016x} in \"{place}\", which the saved progress names")]
    NoTable {
        /// The folder or the prefix.
        place: String,
        /// Fingerprint of the table.
        fingerprint: u64,
    },
    /// The state in a place is not that of process 0.
    #[error("state file \"{file}\" is of another state than that of process 0")]
    AnotherState {
        /// The manifest.
        file: String,
    },
    /// A process has stored a file in another place.
    #[error(
        "{writer} has stored \"{file}\", which is not there for process 0: `state.path` has to name the same \
         folder or bucket for all processes, or one that exists for process 0 only"
    )]
    NotShared {
        /// The process.
        writer: String,
        /// The file, as process 0 would reach it.
        file: String,
    },
    /// The run has failed before a process has stored its changes.
    #[error("{writer} has not stored its share of the state: the run has failed")]
    NoReply {
        /// The process.
        writer: String,
    },
    /// The location is not valid.
    #[error("state location \"{location}\": {what}")]
    Location {
        /// The location as given.
        location: String,
        /// The problem.
        what: String,
    },
}

impl StateError {
    /// The message, with the reason that the system gives, for the log.
    pub(super) fn in_full(&self) -> String {
        let reason = self.source().map(|source| format!(": {source}")).unwrap_or_default();
        format!("{self}{reason}")
    }

    /// Whether a disk or a quota is full.
    pub(super) fn is_full(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether the file is missing, for example because its owner has replaced it.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_in_full_has_the_reason() {
        let source = io::Error::new(io::ErrorKind::StorageFull, "no room");
        let error = StateError::Io { file: "a/b".to_owned(), source };
        assert_eq!(error.in_full(), "state file \"a/b\": no room");
        let damaged = StateError::Damaged { file: "a".to_owned(), what: "torn".to_owned() };
        assert_eq!(damaged.in_full(), damaged.to_string());
    }
}
