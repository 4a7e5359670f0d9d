//! Files that are read at any place: on a disk, in memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::Stored;
use crate::source::metered::InputProgress;

/// A file on a disk. It must not change while it is read.
#[derive(Debug)]
pub(in crate::source) struct OnDisk {
    file: File,
    bytes: u64,
    progress: Arc<InputProgress>,
}

impl OnDisk {
    /// Opens a file; what is read of it is counted.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(in crate::source) fn open(path: &Path, progress: Arc<InputProgress>) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes, progress })
    }
}

impl Stored for OnDisk {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    #[cfg(unix)]
    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        if from.checked_add(buffer.len() as u64).is_none_or(|end| end > self.bytes) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.progress.add(buffer.len() as u64);
        std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, from)
    }

    #[cfg(not(unix))]
    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        use std::io::{Seek, SeekFrom};
        self.progress.add(buffer.len() as u64);
        // A handle of its own has a place of its own.
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(buffer)
    }
}

/// A file in memory: what comes through a pipe cannot be read at any place.
pub(in crate::source) struct InMemory(Arc<[u8]>);

impl InMemory {
    /// These bytes.
    pub(in crate::source) fn of(bytes: Arc<[u8]>) -> Self {
        Self(bytes)
    }

    /// Reads a stream to its end.
    ///
    /// # Errors
    /// Those of the stream.
    pub(in crate::source) fn read(mut stream: impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Ok(Self(bytes.into()))
    }
}

impl Stored for InMemory {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        let found = usize::try_from(from).ok().and_then(|from| self.0.get(from..)?.get(..buffer.len()));
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl std::fmt::Debug for InMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InMemory").field("bytes", &self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_place_is_read_and_none_beyond_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "0123456789").unwrap();
        let progress = Arc::<InputProgress>::default();
        let disk = OnDisk::open(&path, Arc::clone(&progress)).unwrap();
        let memory = InMemory::read(&b"0123456789"[..]).unwrap();
        for stored in [&disk as &dyn Stored, &memory] {
            let mut three = [0; 3];
            stored.read_at(7, &mut three).unwrap();
            assert_eq!((&three, stored.bytes()), (b"789", 10));
            for from in [8, 10, u64::MAX] {
                assert_eq!(
                    stored.read_at(from, &mut three).unwrap_err().kind(),
                    io::ErrorKind::UnexpectedEof,
                    "{from}"
                );
            }
        }
        assert!(progress.read() >= 3);
    }
}
