//! Where state lies: a flat set of named files, in a folder, in memory, or in an object store.
//!
//! Names are of letters, digits, `-` and `.`; a file is written once, whole, and never changed.

mod folder;
mod memory;
#[cfg(feature = "object-store")]
mod objects;

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::ops::Range;

pub use folder::Folder;
pub use memory::Memory;
#[cfg(feature = "object-store")]
pub use objects::Objects;

use super::error::StateError;

/// Named files.
///
/// The contract: what [`Upload::finish`] or [`Self::put_if_absent`] has returned from is there after a crash
/// of the process and, where the place can promise it, of the machine. Nobody ever sees a part of a file
/// under its name. What one caller has written, all callers see from then on, in [`Self::list`] too.
pub trait Store: Debug + Send + Sync {
    /// The folder or prefix, as messages name it.
    fn place(&self) -> &str;

    /// Begins a file. It is there when the upload is finished, in the place of one of the same name.
    ///
    /// # Errors
    /// What the system says.
    fn create<'s>(&'s self, name: &str) -> io::Result<Box<dyn Upload + 's>>;

    /// Writes a file.
    ///
    /// # Errors
    /// What the system says; then nothing is left behind.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut upload = self.create(name)?;
        upload.write(bytes)?;
        upload.finish()
    }

    /// Writes a file unless there is one of this name, which is decided at one instant for all callers;
    /// whether it was written.
    ///
    /// # Errors
    /// What the system says. The file may be there nevertheless.
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool>;

    /// Exactly these bytes of a file.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such file, [`io::ErrorKind::UnexpectedEof`] if it is
    /// shorter.
    fn get_range(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>>;

    /// Bytes of a file.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such file.
    fn size(&self, name: &str) -> io::Result<u64>;

    /// All bytes of a file.
    ///
    /// # Errors
    /// As [`Self::size`].
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.get_range(name, 0..self.size(name)?)
    }

    /// The names of all files, also of those whose upload was cut off; in any order.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such folder.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Removes a file; nothing if there is none.
    ///
    /// # Errors
    /// What the system says.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Makes the place ready to be written to, and locks it against other processes where it can be locked.
    ///
    /// # Errors
    /// What the system says.
    fn own(&self) -> io::Result<Ownership>;
}

/// A file that is being written. Dropped before it is finished, it leaves nothing behind.
pub trait Upload {
    /// Appends.
    ///
    /// # Errors
    /// What the system says; the upload is then to be dropped.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Ends the file: from here on it is there.
    ///
    /// # Errors
    /// What the system says; then nothing is left behind.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Whether another process may have the state open.
#[derive(Debug)]
pub enum Ownership {
    /// None has: held until this is dropped.
    Alone(Box<dyn Any + Send + Sync>),
    /// The named lock is held by another one.
    Shared(String),
    /// A place without locks: who publishes the next manifest decides.
    Unknown,
}

/// The store of a location: the path of a folder, a `file://` URL, or, with the feature `object-store`, a URL
/// of `s3://`, `gs://`, `az://` or `memory://` with a prefix. Credentials of object stores come from their
/// usual variables of the environment.
///
/// # Errors
/// If it is a URL of another kind.
pub fn at(location: &str) -> Result<Box<dyn Store>, StateError> {
    let refused = |what: String| StateError::Location { location: location.to_owned(), what };
    match location.split_once("://") {
        None if location.is_empty() => Err(refused("expected a path or a URL, found nothing".to_owned())),
        None => Ok(Box::new(Folder::new(location))),
        Some(("file", path)) => Ok(Box::new(Folder::new(path))),
        #[cfg(feature = "object-store")]
        Some(_) => Ok(Box::new(Objects::at(location).map_err(|error| refused(error.to_string()))?)),
        #[cfg(not(feature = "object-store"))]
        Some((scheme, _)) => Err(refused(format!(
            "expected a path or \"file://\", found \"{scheme}://\", which needs the feature \"object-store\""
        ))),
    }
}

/// The end of the names of files that are being written.
const PART: &str = ".part";

/// Whether a file is not whole, and has not its name yet.
pub(super) fn is_part(name: &str) -> bool {
    name.ends_with(PART)
}

/// The error of a read that went past the end.
fn too_short(range: &Range<u64>, size: u64) -> io::Error {
    let found = format!("expected at least {} bytes, found {size}", range.end);
    io::Error::new(io::ErrorKind::UnexpectedEof, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every store does.
    fn complies(store: &dyn Store) {
        drop(store.own().unwrap());
        assert_eq!(store.list().unwrap(), [""; 0]);
        store.put("a", b"first").unwrap();
        store.put("a", b"0123456789").unwrap();
        assert!(store.put_if_absent("b", b"bee").unwrap());
        assert!(!store.put_if_absent("b", b"other").unwrap());
        assert_eq!(store.get("b").unwrap(), b"bee");
        assert_eq!(store.get_range("a", 3..7).unwrap(), b"3456");
        assert_eq!(store.get_range("a", 10..10).unwrap(), b"");
        assert_eq!(store.size("a").unwrap(), 10);
        for range in [5..11, 10..11, 20..30] {
            assert_eq!(store.get_range("a", range).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
        assert_eq!(store.get_range("c", 0..1).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(store.size("c").unwrap_err().kind(), io::ErrorKind::NotFound);

        // Dropped, an upload leaves nothing; large, it is written in parts.
        let mut upload = store.create("d").unwrap();
        upload.write(b"lost").unwrap();
        drop(upload);
        let mut parts = store.create("e").unwrap();
        let piece: Vec<u8> = (0..3_000_000_u32).map(|i| i.to_le_bytes()[0]).collect();
        (0..5).for_each(|_| parts.write(&piece).unwrap());
        parts.finish().unwrap();
        assert!(store.get("e").unwrap() == piece.repeat(5));
        store.put("empty", b"").unwrap();
        assert_eq!(store.get("empty").unwrap(), b"");

        let mut names = store.list().unwrap();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "e", "empty"]);
        store.delete("a").unwrap();
        store.delete("a").unwrap();
        assert_eq!(store.list().unwrap().len(), 3);
        assert_eq!(store.size("a").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn every_store_complies() {
        complies(&Memory::default());
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("made/when/owned");
        complies(&Folder::new(&inner));
        #[cfg(feature = "object-store")]
        {
            use object_store::{local::LocalFileSystem, memory::InMemory, path::Path};
            use std::sync::Arc;
            let local = LocalFileSystem::new_with_prefix(folder.path()).unwrap().with_fsync(true);
            let objects = |store, place: &str| Objects::new(store, Path::from(place), place).unwrap();
            complies(&objects(Arc::new(local), "objects"));
            complies(&objects(Arc::new(InMemory::new()), "some/prefix"));
            complies(at("memory:///prefix").unwrap().as_ref());
        }
    }

    #[test]
    fn a_folder_has_one_owner() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = [(); 2].map(|()| Folder::new(folder.path()));
        let held = first.own().unwrap();
        assert!(matches!(held, Ownership::Alone(_)));
        let lock = folder.path().join("owner.lock").display().to_string();
        assert!(matches!(second.own().unwrap(), Ownership::Shared(found) if found == lock));
        drop(held);
        assert!(matches!(second.own().unwrap(), Ownership::Alone(_)));
        assert!(second.list().unwrap().is_empty(), "the lock is no file of the state");
    }

    #[test]
    fn locations() {
        assert_eq!(at("some/folder").unwrap().place(), "some/folder");
        assert_eq!(at("file:///some/folder").unwrap().place(), "/some/folder");
        assert!(matches!(at(""), Err(StateError::Location { .. })));
        let error = at("ftp://host/x").unwrap_err().to_string();
        assert!(error.starts_with("state location \"ftp://host/x\": "), "{error}");
    }
}
