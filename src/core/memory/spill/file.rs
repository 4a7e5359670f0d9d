//! The file behind spilled values, and what happens when it fails.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;

use thiserror::Error;

/// A file that is read and written at offsets, by one thread at a time.
pub trait PageFile: fmt::Debug + Send {
    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// If reading fails, or the file ends before.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` from `offset` on. The file grows if it is shorter.
    ///
    /// # Errors
    /// If writing fails, as on a full disk.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

/// Where spilled values are written.
pub trait SpillPlace: fmt::Debug + Send + Sync {
    /// A new, empty file that nothing else reads, and that is gone when it is dropped or the process ends.
    ///
    /// # Errors
    /// If it cannot be created.
    fn open(&self) -> io::Result<Box<dyn PageFile>>;

    /// The name of the place, for messages.
    fn name(&self) -> String;
}

/// A spill file failed. Values of it may be lost, so the run that holds them must end.
#[derive(Debug, Error)]
#[error("spill: a temporary file in \"{place}\" cannot be {action}: {source}")]
pub struct SpillError {
    place: String,
    /// "created", "read" or "written".
    action: &'static str,
    source: io::Error,
}

impl SpillError {
    pub(super) fn new(place: &str, action: &'static str, source: io::Error) -> Self {
        Self { place: place.to_owned(), action, source }
    }

    /// Unwinds the thread with this error as the payload. The panic hook is not called: the error is
    /// reported by what joins the thread.
    pub(super) fn unwind(self) -> ! {
        std::panic::resume_unwind(Box::new(self))
    }
}

/// Files in memory that fail after a number of reads and writes: for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlaceInMemory {
    /// Reads and writes of each file before one fails; `None`: none fails.
    pub passes: Option<u64>,
}

#[derive(Debug)]
struct FileInMemory {
    bytes: RefCell<Vec<u8>>,
    passes: Cell<Option<u64>>,
}

impl SpillPlace for PlaceInMemory {
    fn open(&self) -> io::Result<Box<dyn PageFile>> {
        Ok(Box::new(FileInMemory { bytes: RefCell::default(), passes: Cell::new(self.passes) }))
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}

impl FileInMemory {
    fn pass(&self) -> io::Result<()> {
        let Some(passes) = self.passes.get() else { return Ok(()) };
        self.passes.set(Some(passes.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?));
        Ok(())
    }
}

impl PageFile for FileInMemory {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.pass()?;
        let all = self.bytes.borrow();
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let read = all.get(from..).and_then(|rest| rest.get(..bytes.len()));
        bytes.copy_from_slice(read.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.pass()?;
        let mut all = self.bytes.borrow_mut();
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let end = all.len().max(from + bytes.len());
        all.resize(end, 0);
        all[from..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}
