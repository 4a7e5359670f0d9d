//! Files in memory, for tests: lost when the process ends.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::{Ownership, Store, Upload, too_short};

/// Files in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl MemoryStore {
    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.lock()
    }
}

impl Store for MemoryStore {
    fn place(&self) -> &str {
        "memory"
    }

    fn create<'s>(&'s self, name: &str) -> io::Result<Box<dyn Upload + 's>> {
        Ok(Box::new(MemoryUpload { store: self, name: name.to_owned(), bytes: Vec::new() }))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let mut files = self.files();
        let is_absent = !files.contains_key(name);
        if is_absent {
            files.insert(name.to_owned(), bytes.to_vec());
        }
        Ok(is_absent)
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        let files = self.files();
        let bytes = files.get(name).ok_or(io::ErrorKind::NotFound)?;
        let place = |at| usize::try_from(at).unwrap_or(usize::MAX);
        let part = bytes.get(place(range.start)..place(range.end));
        part.map(<[u8]>::to_vec).ok_or_else(|| too_short(&range, bytes.len() as u64))
    }

    fn size(&self, name: &str) -> io::Result<u64> {
        let length = self.files().get(name).map(|bytes| bytes.len() as u64);
        Ok(length.ok_or(io::ErrorKind::NotFound)?)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files().keys().cloned().collect())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.files().remove(name);
        Ok(())
    }

    fn own(&self) -> io::Result<Ownership> {
        Ok(Ownership::Unknown)
    }
}

struct MemoryUpload<'s> {
    store: &'s MemoryStore,
    name: String,
    bytes: Vec<u8>,
}

impl Upload for MemoryUpload<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.store.files().insert(self.name, self.bytes);
        Ok(())
    }
}
