//! An output that appears completely, or not at all.
//!
//! The bytes are held back until [`Publication::publish`]: those of a file in a hidden file beside it, which
//! then replaces it; those of a stream in memory. A [`Publication`] dropped before that removes the hidden
//! file, and the old contents of the file stay.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::destination::Destination;

/// A writer whose bytes are held back until they are published. The user of the writer must flush it at the
/// end.
#[derive(Debug)]
pub struct DeferredWriter(SharedBytes);

/// Publishes the bytes written to its [`DeferredWriter`].
#[derive(Debug)]
pub struct Publication(SharedBytes);

type SharedBytes = Arc<Mutex<DeferredBytes>>;

/// Where the bytes are held, and where they go.
enum DeferredBytes {
    /// Bytes are in the file `beside`, created with the first byte, which will be renamed to `path`.
    File { beside: PathBuf, path: PathBuf, open: Option<File> },
    /// Bytes are in memory and will be written to the stream.
    Memory(Vec<u8>, Box<dyn Write + Send>),
    /// They have been published.
    Published,
}

impl DeferredWriter {
    /// Holds back the contents of a file. `run` must be unique to the run.
    ///
    /// # Errors
    /// If no file can be created beside it.
    pub fn for_file(path: &Path, run: &str) -> io::Result<(Self, Publication)> {
        // Follow a symbolic link to its target.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        let beside = path.with_file_name(format!(".{name}.{run}.part"));
        // Fail here, before the run, and not after it.
        File::create(&beside)?;
        fs::remove_file(&beside)?;
        Ok(shared(DeferredBytes::File { beside, path, open: None }))
    }

    /// Holds back what is written to a stream.
    pub fn for_stream(out: Box<dyn Write + Send>) -> (Self, Publication) {
        shared(DeferredBytes::Memory(Vec::new(), out))
    }
}

fn shared(place: DeferredBytes) -> (DeferredWriter, Publication) {
    let place = Arc::new(Mutex::new(place));
    (DeferredWriter(Arc::clone(&place)), Publication(place))
}

impl Write for DeferredWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.0.lock() {
            DeferredBytes::File { beside, open, .. } => match open {
                Some(file) => file.write(bytes),
                None => open.insert(File::create(beside)?).write(bytes),
            },
            DeferredBytes::Memory(buffer, _) => buffer.write(bytes),
            DeferredBytes::Published => Err(io::Error::other("the output has been published")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Destination for DeferredWriter {}

impl Publication {
    /// Publishes the bytes. Later calls do nothing.
    ///
    /// # Errors
    /// Any error of the destination. A file keeps its old contents then.
    pub fn publish(&self) -> io::Result<()> {
        let mut place = self.0.lock();
        match &mut *place {
            DeferredBytes::File { beside, path, open } => {
                let file = open.take().map_or_else(|| File::create(&*beside), Ok)?;
                if let Ok(before) = path.metadata() {
                    file.set_permissions(before.permissions())?;
                }
                file.sync_all()?;
                fs::rename(beside, path)?;
            }
            DeferredBytes::Memory(buffer, out) => {
                out.write_all(buffer)?;
                out.flush()?;
            }
            DeferredBytes::Published => {}
        }
        *place = DeferredBytes::Published;
        Ok(())
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        let place = self.0.lock();
        if let DeferredBytes::File { beside, .. } = &*place {
            // The file may not exist yet.
            fs::remove_file(beside).unwrap_or(());
        }
    }
}

impl std::fmt::Debug for DeferredBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { path, .. } => f.debug_tuple("File").field(path).finish(),
            Self::Memory(buffer, _) => f.debug_tuple("Memory").field(&buffer.len()).finish(),
            Self::Published => f.write_str("Published"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_completely_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "before").unwrap();
        let found = || (fs::read_to_string(&path).unwrap(), fs::read_dir(folder.path()).unwrap().count());
        let write = |text: &str, publishes: bool| {
            let (mut writer, publication) = DeferredWriter::for_file(&path, "r").unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            let meanwhile = found();
            if publishes {
                publication.publish().unwrap();
            }
            meanwhile
        };
        let is = |text: &str, files| (text.to_owned(), files);
        assert_eq!((write("after", false), found()), (is("before", 2), is("before", 1)));
        assert_eq!((write("after", true), found()), (is("before", 2), is("after", 1)));
        // An empty output is published too.
        assert_eq!((write("", true), found().0), (is("after", 1), String::new()));
        assert!(DeferredWriter::for_file(Path::new("/nowhere/at/all"), "r").is_err());
    }
}
