//! Files in a folder.
//!
//! A file is written under a temporary name, synced, and renamed to its name (or hard-linked, where it must
//! not replace another); then the folder is synced. So an incomplete file never has its final name. A
//! completed file survives a power failure as far as the file system keeps what it has synced. The file
//! system must support hard links.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Ownership, PART, Store, Upload, too_short, write_probe};

/// Locked by the owner.
const LOCK: &str = "owner.lock";

/// A folder, created by [`Store::own`] and by [`Store::probe`].
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    place: String,
}

impl Folder {
    /// A store in the folder at `path`.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self { path: path.to_owned(), place: path.display().to_string() }
    }

    /// Syncs the names in the folder.
    fn sync(&self) -> io::Result<()> {
        sync_folder(&self.path)
    }

    /// Creates the folder if it is missing.
    fn prepare(&self) -> io::Result<()> {
        if !self.path.is_dir() {
            fs::create_dir_all(&self.path)?;
            let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            sync_folder(parent.unwrap_or(Path::new(".")))?;
        }
        Ok(())
    }

    fn create_temporary<'s>(&'s self, name: &str) -> io::Result<TemporaryFile<'s>> {
        // Another owner may be writing a file of the same name.
        let path = self.path.join(format!("{name}.{:016x}{PART}", rand::random::<u64>()));
        let file = File::create_new(&path)?;
        Ok(TemporaryFile { folder: self, name: name.to_owned(), path, file, is_placed: false })
    }
}

/// Windows cannot sync a folder.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

impl Store for Folder {
    fn place(&self) -> &str {
        &self.place
    }

    fn create<'s>(&'s self, name: &str) -> io::Result<Box<dyn Upload + 's>> {
        Ok(Box::new(self.create_temporary(name)?))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let mut part = self.create_temporary(name)?;
        part.write(bytes)?;
        part.file.sync_all()?;
        match fs::hard_link(&part.path, self.path.join(name)) {
            Ok(()) => {
                fs::remove_file(&part.path)?;
                part.is_placed = true;
                self.sync()?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.path.join(name))?;
        let size = file.metadata()?.len();
        if range.end > size {
            return Err(too_short(&range, size));
        }
        file.seek(SeekFrom::Start(range.start))?;
        let length = range.end.saturating_sub(range.start);
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        file.take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(too_short(&range, size)) }
    }

    fn size(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.path.join(name))?.len())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                // Another store, such as that of the history.
                continue;
            }
            // A name that is not UTF-8 is not a file of a store.
            names.extend(entry.file_name().into_string().ok().filter(|name| name != LOCK));
        }
        Ok(names)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn probe(&self) -> io::Result<()> {
        self.prepare()?;
        // The lock is a file too, of which an earlier run of another user may be the owner.
        File::options().create(true).truncate(false).write(true).open(self.path.join(LOCK))?;
        write_probe(self)
    }

    fn own(&self) -> io::Result<Ownership> {
        self.prepare()?;
        let path = self.path.join(LOCK);
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Ownership::Alone(Box::new(Locked(file)))),
            Err(TryLockError::WouldBlock) => Ok(Ownership::Shared(path.display().to_string())),
            // Some network file systems have no locks.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                Ok(Ownership::Unknown)
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A file that is locked until this is dropped. Closing the file is not enough: a process that was forked
/// meanwhile has it open too.
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // The system releases the lock of a file that nobody has open any more.
        self.0.unlock().unwrap_or(());
    }
}

/// A file under its temporary name.
struct TemporaryFile<'s> {
    folder: &'s Folder,
    name: String,
    path: PathBuf,
    file: File,
    /// Whether it has its final name, so that no file needs to be removed.
    is_placed: bool,
}

impl Upload for TemporaryFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, self.folder.path.join(&self.name))?;
        self.is_placed = true;
        self.folder.sync()
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            // If it cannot be removed now, the next owner removes it.
            drop(fs::remove_file(&self.path));
        }
    }
}
