//! The cursor: how far the file of notices has been delivered.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sinks::replace;

/// How far the file of notices has been delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// Notices that are delivered or refused.
    pub(super) number: u64,
    /// The bytes of their lines.
    pub(super) offset: u64,
}

impl Cursor {
    /// Reads a cursor; the beginning if there is none.
    ///
    /// # Errors
    /// Any error of the files; that the cursor is not at the end of a line of the file.
    pub(super) fn read(path: &Path, notices: &mut File) -> io::Result<Self> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let invalid = |what: &str| {
            let what = format!("{}: {what}; remove it to deliver all notices again", path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        let cursor: Self = serde_json::from_slice(&bytes).map_err(|_| invalid("it is no cursor"))?;
        if cursor.offset > notices.metadata()?.len() {
            return Err(invalid("it is beyond the end of the file of notices, which has been cut"));
        }
        if let Some(last) = cursor.offset.checked_sub(1) {
            let mut byte = [0];
            notices.seek(SeekFrom::Start(last))?;
            notices.read_exact(&mut byte)?;
            if byte != *b"\n" {
                return Err(invalid("it is not at the end of a line: it is of another file of notices"));
            }
        }
        Ok(cursor)
    }

    /// Stores the cursor durably.
    pub(super) fn store(&self, path: &Path) -> io::Result<()> {
        replace(path, &serde_json::to_vec(self)?)
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
        let read = || Cursor::read(&at, &mut File::open(&notices).unwrap());
        assert_eq!(read().unwrap(), Cursor::default());
        for (number, offset) in [(0, 0), (1, 4), (2, 8)] {
            let cursor = Cursor { number, offset };
            cursor.store(&at).unwrap();
            assert_eq!(read().unwrap(), cursor);
        }
        Cursor { number: 1, offset: 3 }.store(&at).unwrap();
        assert!(read().unwrap_err().to_string().contains("not at the end of a line"));
        Cursor { number: 3, offset: 12 }.store(&at).unwrap();
        assert!(read().unwrap_err().to_string().contains("beyond the end"));
        std::fs::write(&at, "{").unwrap();
        assert!(read().unwrap_err().to_string().contains("no cursor"));
    }
}
