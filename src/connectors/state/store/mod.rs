//! Stores of state: a flat set of named files in a folder, in memory, or in an object store.
//!
//! Names consist of letters, digits, `-` and `.`. A file is written once, as a whole, and never changed.

mod folder;
mod memory;
#[cfg(feature = "object-store")]
mod objects;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;

pub use folder::Folder;
pub use memory::MemoryStore;
#[cfg(feature = "object-store")]
pub use objects::Objects;

use super::error::StateError;

/// Named files.
///
/// Contract: once [`Upload::finish`] or [`Self::put_if_absent`] has returned, the file survives a crash of
/// the process and, where the store can ensure it, of the machine. No reader ever sees an incomplete file
/// under its name. A file that one caller has written is visible to all callers from then on, also in
/// [`Self::list`].
pub trait Store: Debug + Send + Sync {
    /// The folder or prefix, for messages.
    fn place(&self) -> &str;

    /// Begins a file. It appears when the upload is finished, and replaces one of the same name.
    ///
    /// # Errors
    /// Any error of the store.
    fn create<'s>(&'s self, name: &str) -> io::Result<Box<dyn Upload + 's>>;

    /// Writes a file.
    ///
    /// # Errors
    /// Any error of the store; no file remains then.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut upload = self.create(name)?;
        upload.write(bytes)?;
        upload.finish()
    }

    /// Writes a file unless one of this name exists; atomic among all callers. Returns whether it was
    /// written.
    ///
    /// # Errors
    /// Any error of the store. The file may exist nevertheless.
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool>;

    /// Exactly the bytes `range` of a file.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such file, [`io::ErrorKind::UnexpectedEof`] if it is
    /// shorter.
    fn get_range(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>>;

    /// Size of a file in bytes.
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

    /// The names of all files in any order, including those of interrupted uploads.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such folder.
    fn list(&self) -> io::Result<Vec<String>>;

    /// The sizes in bytes of the files that [`Self::list`] names.
    ///
    /// # Errors
    /// As [`Self::list`].
    fn sizes(&self) -> io::Result<BTreeMap<String, u64>> {
        let mut sizes = BTreeMap::new();
        for name in self.list()? {
            match self.size(&name) {
                // It was removed since.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                size => drop(sizes.insert(name, size?)),
            }
        }
        Ok(sizes)
    }

    /// Removes a file if it exists.
    ///
    /// # Errors
    /// Any error of the store.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Checks that files can be written, as far as the store can say without locking it.
    ///
    /// # Errors
    /// Any error of the store.
    fn probe(&self) -> io::Result<()> {
        Ok(())
    }

    /// Prepares the store for writing, and locks it against other processes if it has locks.
    ///
    /// # Errors
    /// Any error of the store.
    fn own(&self) -> io::Result<Ownership>;
}

/// A file being written. If it is dropped before [`Self::finish`], no file remains.
pub trait Upload {
    /// Appends.
    ///
    /// # Errors
    /// Any error of the store; the upload must then be dropped.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Completes the file.
    ///
    /// # Errors
    /// Any error of the store; no file remains then.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Whether another process may have the state open.
#[derive(Debug)]
pub enum Ownership {
    /// No other process has. The lock is held until this is dropped.
    Alone(Box<dyn Any + Send + Sync>),
    /// Another process holds the named lock.
    Shared(String),
    /// The store has no locks: the first owner to write the next manifest wins.
    Unknown,
}

/// The store at a location: the path of a folder, a `file://` URL, or, with the feature `object-store`, an
/// `s3://`, `gs://`, `az://` or `memory://` URL with a prefix. Credentials of object stores are read from
/// their usual environment variables.
///
/// # Errors
/// If the location is empty or a URL of another kind.
pub fn at(location: &str) -> Result<Box<dyn Store>, StateError> {
    let refused = |what: String| StateError::Location { location: location.to_owned(), what };
    match location.split_once("://") {
        None if location.is_empty() => Err(refused("expected a path or a URL, found nothing".to_owned())),
        None => Ok(Box::new(Folder::new(location))),
        Some(("file", path)) => Ok(Box::new(Folder::new(path))),
        #[cfg(feature = "object-store")]
        Some(_) => Ok(Box::new(Objects::from_url(location).map_err(|error| refused(error.to_string()))?)),
        #[cfg(not(feature = "object-store"))]
        Some((scheme, _)) => Err(refused(format!(
            "expected a path or \"file://\", found \"{scheme}://\": {}",
            dupflow_run::missing_feature("object stores", "object-store")
        ))),
    }
}

/// The folder at a location, if it is one.
pub fn local_folder(location: &str) -> Option<&Path> {
    match location.split_once("://") {
        None => Some(Path::new(location)),
        Some(("file", path)) => Some(Path::new(path)),
        Some(_) => None,
    }
}

/// Suffix of temporary names.
const PART: &str = ".part";

/// Whether a name is temporary: the file may be incomplete.
pub(super) fn is_part(name: &str) -> bool {
    name.ends_with(PART)
}

/// Writes a file under a temporary name, and removes it.
fn write_probe(store: &dyn Store) -> io::Result<()> {
    let name = format!("manifest-{:016x}{PART}", rand::random::<u64>());
    store.put(&name, b"probe")?;
    if let Err(error) = store.delete(&name) {
        // A publish goes on without this right too, and logs it.
        tracing::warn!(place = store.place(), %error, "files of the state cannot be removed");
    }
    Ok(())
}

/// The error of a read past the end.
fn too_short(range: &Range<u64>, size: u64) -> io::Error {
    let found = format!("expected at least {} bytes, found {size}", range.end);
    io::Error::new(io::ErrorKind::UnexpectedEof, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The behaviour required of every store.
    fn meets_the_contract(store: &dyn Store) {
        store.probe().unwrap();
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

        // A dropped upload leaves no file; a large one is written in parts.
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
        let sizes: Vec<_> = store.sizes().unwrap().into_values().collect();
        assert_eq!(sizes, [10, 3, 5 * piece.len() as u64, 0]);
        store.delete("a").unwrap();
        store.delete("a").unwrap();
        assert_eq!(store.list().unwrap().len(), 3);
        assert_eq!(store.size("a").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn every_store_meets_the_contract() {
        meets_the_contract(&MemoryStore::default());
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("made/when/owned");
        meets_the_contract(&Folder::new(&inner));
        #[cfg(feature = "object-store")]
        {
            use object_store::{local::LocalFileSystem, memory::InMemory, path::Path};
            use std::sync::Arc;
            let local = LocalFileSystem::new_with_prefix(folder.path()).unwrap().with_fsync(true);
            let objects = |store, place: &str| Objects::new(store, Path::from(place), place).unwrap();
            meets_the_contract(&objects(Arc::new(local), "objects"));
            meets_the_contract(&objects(Arc::new(InMemory::new()), "some/prefix"));
            meets_the_contract(at("memory:///prefix").unwrap().as_ref());
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
        assert!(second.list().unwrap().is_empty(), "the lock is not a file of the state");
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
