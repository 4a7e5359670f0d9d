//! The file of a database that a run has open: which one it is, and the lock of its tables.

use std::path::Path;

use crate::owned::{FileNumber, OwnedFile};
use crate::tables::database::DatabaseFailure;

/// A file of SQLite. The system lets a program write to a file that was removed or replaced, so the one at
/// the path is compared with it before each commit. It is never opened beside the connection: closing it
/// would end the locks of SQLite.
pub(super) struct OwnedDatabase {
    number: FileNumber,
    /// Tables of one prefix have one run at a time.
    _lock: OwnedFile,
}

impl OwnedDatabase {
    /// The file at this path, which a connection has just opened.
    pub(super) fn new(path: &Path, lock: OwnedFile) -> Result<Self, DatabaseFailure> {
        let number = FileNumber::at(path).map_err(|error| refused(path, &error.to_string()))?;
        let number = number.ok_or_else(|| refused(path, "was removed"))?;
        Ok(Self { number, _lock: lock })
    }

    /// Checks that the file at this path is the one that the connection has open.
    pub(super) fn check(&self, path: &Path) -> Result<(), DatabaseFailure> {
        let name = path.display();
        let remedy = format!(
            "while this run wrote to it; put it back as it was, or move it, {name}-wal and {name}-shm away: \
             then the next run writes its whole result anew"
        );
        match FileNumber::at(path) {
            Ok(Some(there)) if there == self.number => Ok(()),
            Ok(Some(_)) => Err(refused(path, &format!("was replaced by another file {remedy}"))),
            Ok(None) => Err(refused(path, &format!("was removed or renamed {remedy}"))),
            Err(error) => Err(refused(path, &error.to_string())),
        }
    }
}

fn refused(path: &Path, what: &str) -> DatabaseFailure {
    DatabaseFailure::Refused(format!("{} {what}", path.display()))
}
