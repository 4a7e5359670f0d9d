//! The cursor: how far the file of notices has been delivered.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::digest::end_digest;
use crate::owned::OwnedRecord;

/// How far the file of notices has been delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// Notices that are delivered or refused.
    pub(super) number: u64,
    /// The bytes of their lines.
    pub(super) offset: u64,
}

/// The file of the cursor, which one run has at a time.
#[derive(Debug)]
pub(super) struct CursorFile {
    file: OwnedRecord,
    notices: PathBuf,
}

/// The contents of the file.
#[derive(Serialize, Deserialize)]
struct StoredCursor {
    #[serde(flatten)]
    cursor: Cursor,
    /// The hash of the last bytes that were delivered. Earlier versions did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<String>,
}

impl CursorFile {
    /// Opens the file of the cursor, if there is one, and locks it.
    ///
    /// # Errors
    /// Any error of the file; that another run has it.
    pub(super) fn open(path: &Path, notices: &Path) -> io::Result<Self> {
        Ok(Self { file: OwnedRecord::open(path)?, notices: notices.to_owned() })
    }

    /// The stored cursor; the beginning if there is none.
    ///
    /// # Errors
    /// Any error of the file of notices; that the cursor is not at the end of a line of it.
    pub(super) fn read(&self) -> io::Result<Cursor> {
        let Some(bytes) = self.file.bytes() else { return Ok(Cursor::default()) };
        let invalid = |what: &str| {
            let what =
                format!("{}: {what}; remove it to deliver all notices again", self.file.path().display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        let StoredCursor { cursor, end } =
            serde_json::from_slice(bytes).map_err(|_| invalid("it is no cursor"))?;
        if cursor.offset > self.notices.metadata()?.len() {
            return Err(invalid("it is beyond the end of the file of notices, which has been cut"));
        }
        let is_end = match end {
            Some(end) => end_digest(&self.notices, cursor.offset)? == end,
            None => self.is_line_end(cursor.offset)?,
        };
        if !is_end {
            return Err(invalid("it is not at the end of a line: it is of another file of notices"));
        }
        Ok(cursor)
    }

    /// Whether a line of the file of notices ends there.
    fn is_line_end(&self, offset: u64) -> io::Result<bool> {
        use std::io::{Read, Seek, SeekFrom};

        let Some(last) = offset.checked_sub(1) else { return Ok(true) };
        let (mut file, mut byte) = (std::fs::File::open(&self.notices)?, [0]);
        file.seek(SeekFrom::Start(last))?;
        file.read_exact(&mut byte)?;
        Ok(byte == *b"\n")
    }

    /// Stores the cursor durably.
    ///
    /// # Errors
    /// Any error of the files; that the file of the cursor is not this run's any more.
    pub(super) fn store(&mut self, cursor: Cursor) -> io::Result<()> {
        let end = Some(end_digest(&self.notices, cursor.offset)?);
        self.file.replace(&serde_json::to_vec(&StoredCursor { cursor, end })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_at_the_end_of_a_line_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let (at, notices) = (folder.path().join("cursor"), folder.path().join("notices"));
        std::fs::write(&notices, "one\ntwo\n").unwrap();
        // Another test may hold a copy of the lock between its fork and its exec.
        let open = || {
            let mut tries = std::iter::repeat_with(|| CursorFile::open(&at, &notices)).take(100_000);
            tries.find_map(Result::ok).expect("the lock is released")
        };
        assert_eq!(open().read().unwrap(), Cursor::default());
        for (number, offset) in [(0, 0), (1, 4), (2, 8)] {
            let cursor = Cursor { number, offset };
            let mut file = open();
            file.store(cursor).unwrap();
            assert!(CursorFile::open(&at, &notices).unwrap_err().to_string().contains("another run"));
            drop(file);
            assert_eq!(open().read().unwrap(), cursor);
        }
        // Of another file of notices.
        std::fs::write(&notices, "one\nTwo\n").unwrap();
        assert!(open().read().unwrap_err().to_string().contains("of another file of notices"));
        let refused = |stored: &str| {
            std::fs::write(&at, stored).unwrap();
            open().read().unwrap_err().to_string()
        };
        // As earlier versions stored it.
        assert!(refused("{\"number\":1,\"offset\":3}").contains("not at the end of a line"));
        assert!(refused("{\"number\":3,\"offset\":12}").contains("beyond the end"));
        assert!(refused("{").contains("no cursor"));
        std::fs::write(&at, "{\"number\":1,\"offset\":4}").unwrap();
        assert_eq!(open().read().unwrap(), Cursor { number: 1, offset: 4 });
    }
}
