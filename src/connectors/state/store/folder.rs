//! Files in a folder.
//!
//! A file is written beside its place, synced, and then renamed (or linked, where it must not replace
//! another) to its name; then the folder is synced. So a name never stands for a part, and a file that was
//! acknowledged outlives a power cut as far as the file system keeps what it has synced. The folder must be
//! on a file system with hard links.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Ownership, PART, Store, Upload, too_short};

/// The file that the owner holds locked.
const LOCK: &str = "owner.lock";

/// A folder. Nothing is made before [`Store::own`].
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    place: String,
}

impl Folder {
    /// At a path.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self { path: path.to_owned(), place: path.display().to_string() }
    }

    /// Makes durable which names there are.
    fn sync(&self) -> io::Result<()> {
        sync_folder(&self.path)
    }

    fn part<'s>(&'s self, name: &str) -> io::Result<Part<'s>> {
        // Another owner may be writing a file of this name.
        let path = self.path.join(format!("{name}.{:016x}{PART}", rand::random::<u64>()));
        let file = File::create_new(&path)?;
        Ok(Part { folder: self, name: name.to_owned(), path, file, is_placed: false })
    }
}

/// Windows has no such thing.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

impl Store for Folder {
    fn place(&self) -> &str {
        &self.place
    }

    fn create<'s>(&'s self, name: &str) -> io::Result<Box<dyn Upload + 's>> {
        Ok(Box::new(self.part(name)?))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let mut part = self.part(name)?;
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
            // What is no text was not written here.
            names.extend(entry?.file_name().into_string().ok().filter(|name| name != LOCK));
        }
        Ok(names)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn own(&self) -> io::Result<Ownership> {
        if !self.path.is_dir() {
            fs::create_dir_all(&self.path)?;
            let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            sync_folder(parent.unwrap_or(Path::new(".")))?;
        }
        let path = self.path.join(LOCK);
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Ownership::Alone(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(Ownership::Shared(path.display().to_string())),
            // As on some network file systems.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                Ok(Ownership::Unknown)
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A file beside its place.
struct Part<'s> {
    folder: &'s Folder,
    name: String,
    path: PathBuf,
    file: File,
    /// Whether it has its name, and there is nothing to remove.
    is_placed: bool,
}

impl Upload for Part<'_> {
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

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            // What cannot be removed now is removed by the next owner.
            drop(fs::remove_file(&self.path));
        }
    }
}
