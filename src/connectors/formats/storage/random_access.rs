//! Random access to files on a disk and in memory.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::metered::InputProgress;

/// Random access to the stored bytes of an input, from several threads.
pub(crate) trait RandomAccess: Send + Sync + fmt::Debug {
    /// Its length in bytes.
    fn bytes(&self) -> u64;

    /// Fills a buffer with the bytes from `from` on.
    ///
    /// # Errors
    /// If they cannot be read, or the input has fewer bytes.
    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// A file on a disk. It must not change while it is read.
#[derive(Debug)]
pub(crate) struct OnDisk {
    file: File,
    bytes: u64,
    progress: Arc<InputProgress>,
}

impl OnDisk {
    /// Opens a file, and counts the bytes that are read.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn open(path: &Path, progress: Arc<InputProgress>) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes, progress })
    }
}

impl RandomAccess for OnDisk {
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
        self.progress.add(buffer.len() as u64);
        // A separate handle, since the position of a handle is shared.
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(buffer)
    }
}

/// A file in memory, for streams without random access.
pub(crate) struct InMemory(Arc<[u8]>);

impl InMemory {
    /// A file of these bytes.
    pub(crate) fn new(bytes: Arc<[u8]>) -> Self {
        Self(bytes)
    }

    /// Reads a stream to its end.
    ///
    /// # Errors
    /// A read error of the stream.
    pub(crate) fn read(mut stream: impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Ok(Self(bytes.into()))
    }
}

impl RandomAccess for InMemory {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        let found = usize::try_from(from).ok().and_then(|from| self.0.get(from..)?.get(..buffer.len()));
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl fmt::Debug for InMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemory").field("bytes", &self.0.len()).finish()
    }
}

/// Reads a range of a file, in order or after a seek; offsets are within the range.
#[derive(Debug)]
pub(crate) struct FileRange {
    file: Arc<dyn RandomAccess>,
    from: u64,
    at: u64,
    to: u64,
}

impl FileRange {
    /// The part of a range that the file has.
    pub(crate) fn new(file: Arc<dyn RandomAccess>, range: Range<u64>) -> Self {
        let to = range.end.min(file.bytes());
        Self { file, from: range.start, at: range.start, to }
    }

    /// The bytes from an offset on.
    pub(crate) fn from_offset(file: &Arc<dyn RandomAccess>, from: u64) -> Self {
        Self::new(Arc::clone(file), from..u64::MAX)
    }
}

impl Read for FileRange {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.to.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = out.len().min(left);
        self.file.read_at(self.at, &mut out[..length])?;
        self.at += length as u64;
        Ok(length)
    }
}

impl Seek for FileRange {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => self.from.checked_add(at),
            SeekFrom::End(by) => self.to.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.filter(|at| *at >= self.from).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at - self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_anywhere_but_not_beyond_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "0123456789").unwrap();
        let progress = Arc::<InputProgress>::default();
        let disk = OnDisk::open(&path, Arc::clone(&progress)).unwrap();
        let memory = InMemory::read(&b"0123456789"[..]).unwrap();
        for stored in [&disk as &dyn RandomAccess, &memory] {
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
