//! Errors of archives, before they have a place in the file.

use std::io;

use super::super::bad_record::{BadRecord, RecordPlace};
use super::super::rows::Damage;

/// The reason why a part of an archive cannot be read.
#[derive(Debug)]
pub(super) struct ArchiveError {
    pub(super) reason: BadRecord,
    pub(super) cause: String,
    /// Whether nothing after it can be read either.
    pub(super) ends: bool,
}

impl ArchiveError {
    pub(super) fn new(reason: BadRecord, cause: impl Into<String>) -> Self {
        Self { reason, cause: cause.into(), ends: false }
    }

    pub(super) fn ends(reason: BadRecord, cause: impl Into<String>) -> Self {
        Self { ends: true, ..Self::new(reason, cause) }
    }

    /// The damage at this byte of the file.
    pub(super) fn damage(self, at: u64) -> Damage {
        let Self { reason, cause, ends } = self;
        Damage { reason, cause: Some(cause), place: RecordPlace::Byte(at), head: Vec::new(), ends }
    }
}

/// A read error of the file ends it.
impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> Self {
        Self::ends(BadRecord::Unreadable, error.to_string())
    }
}
