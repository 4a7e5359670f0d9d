//! What can be wrong with stored state.

use std::io;

use thiserror::Error;

/// Why state was not read or written. Each names the file, what was found there and what was expected.
#[derive(Debug, Error)]
pub enum StateError {
    /// The folder or object store refuses.
    #[error("state file \"{file}\"")]
    Io {
        /// Where it lies.
        file: String,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file is not what was written.
    #[error("state file \"{file}\" is damaged: {what}")]
    Damaged {
        /// Where it lies.
        file: String,
        /// What was expected and what was found.
        what: String,
    },
    /// The file is whole, and of another version of the program.
    #[error("state file \"{file}\" has format version {found}, expected {expected}")]
    Version {
        /// Where it lies.
        file: String,
        /// The version that the file says.
        found: u32,
        /// The version that this program reads and writes.
        expected: u32,
    },
    /// Another run has opened the state since: this one writes no more.
    #[error(
        "another run has taken over the state: expected \"{file}\" to be free, found one of another owner"
    )]
    TakenOver {
        /// The manifest that is the other's.
        file: String,
    },
    /// Another process has the state open.
    #[error("a run owns the state: \"{file}\" is locked")]
    Owned {
        /// The lock.
        file: String,
    },
    /// There is nothing to read.
    #[error("no state in \"{place}\": expected a file \"manifest-…\"")]
    Missing {
        /// The folder or the prefix.
        place: String,
    },
    /// A table of document frequencies is in force that was never put here.
    #[error("no table {fingerprint:016x} in \"{place}\", which the saved progress names")]
    NoTable {
        /// The folder or the prefix.
        place: String,
        /// Of the table's contents.
        fingerprint: u64,
    },
    /// A location that nothing can be opened from.
    #[error("state location \"{location}\": {what}")]
    Location {
        /// As it was given.
        location: String,
        /// What is wrong with it.
        what: String,
    },
}

impl StateError {
    /// Whether the file is gone, as when its owner has replaced it.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
