//! Files in an object store, with the crate `object_store`.
//!
//! [`Store::put_if_absent`] is a conditional put (`If-None-Match: *`). An object store that ignores the
//! condition does not prevent two owners. Those of Amazon, Google and Azure, R2 and MinIO honour it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use tokio::runtime::{Builder, Runtime};

use super::{Ownership, Store, Upload, too_short, write_probe};
use crate::store_address::{store_at, url_of};

/// Bytes of each part of a large file. Amazon accepts up to 10,000 parts of at least 5 MiB.
const PART_BYTES: usize = 8 << 20;

/// The objects below a prefix.
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    place: String,
    /// Runs one request at a time; the caller blocks on it.
    runtime: Runtime,
}

impl Objects {
    /// A store of the objects below `prefix`; `place` names it in messages.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path, place: &str) -> io::Result<Self> {
        let mut threads = Builder::new_multi_thread();
        let runtime = threads.worker_threads(1).thread_name("state-objects").enable_all().build()?;
        Ok(Self { store, prefix, place: place.trim_end_matches('/').to_owned(), runtime })
    }

    /// The store at an address, whose key is literal; settings that it lacks are read from the environment.
    pub(super) fn from_url(location: &str) -> io::Result<Self> {
        let url = url_of(location).map_err(io::Error::other)?;
        let (store, prefix) = store_at(&url).map_err(io::Error::other)?;
        Self::new(store, prefix, location)
    }

    fn path(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }

    fn wait<T>(&self, request: impl Future<Output = object_store::Result<T>>) -> io::Result<T> {
        self.runtime.block_on(request).map_err(|error| {
            let kind = match &error {
                Error::NotFound { .. } => io::ErrorKind::NotFound,
                Error::AlreadyExists { .. } | Error::Precondition { .. } => io::ErrorKind::AlreadyExists,
                _ => io::ErrorKind::Other,
            };
            io::Error::new(kind, error)
        })
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Store for Objects {
    fn place(&self) -> &str {
        &self.place
    }

    fn create<'s>(&'s self, name: &str) -> io::Result<Box<dyn Upload + 's>> {
        Ok(Box::new(MultipartFile {
            objects: self,
            path: self.path(name),
            buffer: Vec::new(),
            multipart: None,
        }))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let payload = PutPayload::from(bytes.to_vec());
        let path = self.path(name);
        match self.wait(self.store.put_opts(&path, payload, PutMode::Create.into())) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        let length = range.end.saturating_sub(range.start);
        let path = self.path(name);
        // Most object stores reject an empty range.
        let found = match length {
            0 => Ok(Vec::new()),
            _ => self.wait(self.store.get_range(&path, range.clone())).map(Vec::from),
        };
        match found {
            Ok(bytes) if length > 0 && bytes.len() as u64 == length => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
            // Object stores differ in their answer to a range past the end.
            found => match self.size(name)? {
                size if size < range.end => Err(too_short(&range, size)),
                _ => found,
            },
        }
    }

    fn size(&self, name: &str) -> io::Result<u64> {
        Ok(self.wait(self.store.head(&self.path(name)))?.size)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.sizes()?.into_keys().collect())
    }

    fn sizes(&self) -> io::Result<BTreeMap<String, u64>> {
        let found = self.wait(self.store.list_with_delimiter(Some(&self.prefix)))?;
        let sized = |object: ObjectMeta| Some((object.location.filename()?.to_owned(), object.size));
        Ok(found.objects.into_iter().filter_map(sized).collect())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        match self.wait(self.store.delete(&self.path(name))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn probe(&self) -> io::Result<()> {
        write_probe(self)
    }

    fn own(&self) -> io::Result<Ownership> {
        Ok(Ownership::Unknown)
    }
}

/// A file being uploaded: in one request if it is small, otherwise in parts.
struct MultipartFile<'s> {
    objects: &'s Objects,
    path: Path,
    buffer: Vec<u8>,
    multipart: Option<Box<dyn MultipartUpload>>,
}

impl MultipartFile<'_> {
    /// Uploads the buffer as a part.
    fn put_part(&mut self) -> io::Result<()> {
        let multipart = match &mut self.multipart {
            Some(multipart) => multipart,
            none => none.insert(self.objects.wait(self.objects.store.put_multipart(&self.path))?),
        };
        let part = PutPayload::from(mem::take(&mut self.buffer));
        self.objects.wait(multipart.put_part(part))
    }
}

impl Upload for MultipartFile<'_> {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        // Some object stores require all parts except the last to have the same size.
        while self.buffer.len() + bytes.len() >= PART_BYTES {
            let (head, rest) = bytes.split_at(PART_BYTES - self.buffer.len());
            self.buffer.extend_from_slice(head);
            self.put_part()?;
            bytes = rest;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if self.multipart.is_none() {
            let payload = PutPayload::from(mem::take(&mut self.buffer));
            self.objects.wait(self.objects.store.put(&self.path, payload))?;
            return Ok(());
        }
        if !self.buffer.is_empty() {
            self.put_part()?;
        }
        if let Some(multipart) = &mut self.multipart {
            self.objects.wait(multipart.complete())?;
        }
        self.multipart = None;
        Ok(())
    }
}

impl Drop for MultipartFile<'_> {
    fn drop(&mut self) {
        if let Some(multipart) = &mut self.multipart {
            // If it cannot be aborted now, a lifecycle rule of the bucket must remove it.
            drop(self.objects.wait(multipart.abort()));
        }
    }
}
