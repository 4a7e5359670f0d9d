//! The state of a file on a disk, by which a later change is noticed without reading it.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::input::Input;
use super::reread::files_of;
use dupflow_core::hash;

/// The state of a file: its length in bytes, when it was modified, and which file it is. A change that leaves
/// all of these as they were is not noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device and number of the file, where the system has them.
    file: Option<(u64, u64)>,
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

/// The present state of an input as text, by which a later process notices a change: of a file its length
/// and when it was modified, of a folder also its names. `None` if it has none: standard input, a pipe, an
/// address.
pub fn stamp(input: &Input) -> Option<String> {
    let path = input.path()?;
    let of = |found: &Metadata| {
        let modified =
            found.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        (found.len(), modified.map_or(0, |time| time.as_nanos()))
    };
    if !input.is_folder() {
        let found = path.metadata().ok().filter(Metadata::is_file)?;
        let (bytes, modified) = of(&found);
        let of_table = input.part_tag().map(|tag| format!(", as {tag} of a table")).unwrap_or_default();
        return Some(format!("{bytes} bytes, modified at {modified}{of_table}"));
    }
    let (mut files, mut all) = (0_u64, 0);
    for file in files_of(std::slice::from_ref(input)) {
        let place = file.path()?;
        let (bytes, modified) = of(&place.metadata().ok()?);
        files += 1;
        all = hash::bytes(all, format!("{} {bytes} {modified}", place.display()).as_bytes());
    }
    Some(format!("{files} files, {all:016x}"))
}

/// Device and number of the file at a path, which all its names share; `None` if there is no file, or the
/// system has no numbers.
pub fn file_number(path: &Path) -> Option<(u64, u64)> {
    number(&path.metadata().ok()?)
}

/// The numbers of all files of the inputs, those of folders too.
pub fn file_numbers(inputs: &[Input]) -> BTreeSet<(u64, u64)> {
    files_of(inputs).iter().filter_map(|file| file_number(file.path()?)).collect()
}

#[cfg(unix)]
pub(super) fn number(found: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
pub(super) fn number(_: &Metadata) -> Option<(u64, u64)> {
    None
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

    #[test]
    fn a_folder_has_the_stamps_and_names_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a.jsonl", "b.jsonl"].map(|name| folder.path().join(name));
        let of = |path: &Path| stamp(&Input::at(path));
        assert_eq!(of(&a), None);
        std::fs::write(&a, "one").unwrap();
        assert!(of(&a).unwrap().starts_with("3 bytes, modified at 1"));
        let one = of(folder.path());
        assert_eq!(one, of(folder.path()));
        std::fs::rename(&a, &b).unwrap();
        let renamed = of(folder.path());
        assert_ne!(one, renamed);
        std::fs::write(&a, "two").unwrap();
        let two = of(folder.path()).unwrap();
        assert!(two.starts_with("2 files, ") && Some(two) != renamed);
    }
}
