//! What is at a path: opening it alone, which file it is, and replacing it.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::failpoint;

/// Why a file is not opened.
const WRITTEN: &str = "another run writes to it";

/// Opens a file, and locks it against other runs. Pipes and devices are shared.
pub(super) fn locked(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let file = options.open(path)?;
    if is_checked(path, &file.metadata()?) {
        lock(&file)?;
    }
    Ok(file)
}

/// Whether a file is one run's alone.
pub(super) fn is_checked(path: &Path, found: &Metadata) -> bool {
    found.is_file() && !path.starts_with("/dev")
}

fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(io::Error::other(WRITTEN)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Which file is at a path: device and number, as far as the system has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileNumber(Option<(u64, u64)>);

impl FileNumber {
    /// That of the file at a path; `None` if nothing is there.
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn at(path: &Path) -> io::Result<Option<Self>> {
        Ok(found_at(path)?.map(|found| Self(number(&found))))
    }
}

/// What is at a path; `None` if nothing is.
pub(super) fn found_at(path: &Path) -> io::Result<Option<Metadata>> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some).map_err(|error| named(path, &error)),
    }
}

/// Whether both are of one file. Where the system has no numbers of files, only lengths are compared.
pub(super) fn is_same(a: &Metadata, b: &Metadata) -> bool {
    number(a) == number(b)
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "not all systems have numbers of files")]
fn number(found: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn number(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// An error with the path of its file.
pub(super) fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The path with `suffix` appended to the file name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Replaces a file atomically, durably: after an error or a crash it has its old contents or `bytes`.
///
/// # Errors
/// Any error of the file.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = replaced(path, bytes)?;
    sync_folder_of(path)?;
    drop(file);
    Ok(())
}

/// Replaces a file, and returns the new one, locked. Its name is durable once its folder is synced.
pub(super) fn replaced(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let new = with_suffix(path, ".new");
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&new)?;
    lock(&file)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    failpoint::reach("mark-written");
    std::fs::rename(&new, path)?;
    failpoint::reach("mark-renamed");
    Ok(file)
}

/// Makes the name of a file durable.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder)?.sync_all() {
        // A folder of devices cannot be synced.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
        synced => synced?,
    }
    failpoint::reach("folder-synced");
    Ok(())
}
