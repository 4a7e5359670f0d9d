//! What cannot be read of a file.

use std::io;

use crate::feed::BadRecord;
use crate::source::Place;
use crate::source::formats::Damage;

/// What cannot be read.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) reason: BadRecord,
    pub(super) cause: String,
    /// Nothing behind it can be read either.
    pub(super) ends: bool,
}

impl Broken {
    pub(super) fn new(reason: BadRecord, cause: impl Into<String>) -> Self {
        Self { reason, cause: cause.into(), ends: false }
    }

    pub(super) fn ends(reason: BadRecord, cause: impl Into<String>) -> Self {
        Self { ends: true, ..Self::new(reason, cause) }
    }

    /// The damage that it is to the file, from this byte on.
    pub(super) fn damage(self, at: u64) -> Damage {
        let Self { reason, cause, ends } = self;
        Damage { reason, cause: Some(cause), place: Place::Byte(at), head: Vec::new(), ends }
    }
}

/// The file itself cannot be read on.
impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::ends(BadRecord::Unreadable, error.to_string())
    }
}
