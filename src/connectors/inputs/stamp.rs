//! The state of a file on a disk, by which a later change is noticed without reading it.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// The state of a file: its length in bytes, when it was modified, and which file it is. A change that leaves
/// all of these as they were is not noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device and number of the file, where the system has them.
    file: (u64, u64),
}

impl FileStamp {
    /// The present state of a file.
    ///
    /// # Errors
    /// If it cannot be examined.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let found = path.metadata()?;
        Ok(Self { bytes: found.len(), modified: found.modified().ok(), file: number(&found) })
    }
}

#[cfg(unix)]
fn number(found: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

#[cfg(not(unix))]
fn number(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    #[test]
    fn another_length_time_or_file_is_another_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let first = FileStamp::read(&path).unwrap();
        assert_eq!(FileStamp::read(&path).unwrap(), first);
        let later = first.modified.unwrap() + Duration::from_nanos(1_000);
        File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
        let second = FileStamp::read(&path).unwrap();
        assert_ne!(second, first);
        std::fs::write(&path, "three").unwrap();
        File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
        assert_ne!(FileStamp::read(&path).unwrap(), second);
        assert!(FileStamp::read(&folder.path().join("b")).is_err());
    }
}
