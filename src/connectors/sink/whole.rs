//! An output that is there as a whole, or not at all.
//!
//! What is written is held back until it is [published](Publication::publish): of a file, in another one
//! beside it, which takes its place then; of a stream, in memory. A [`Publication`] that is dropped leaves
//! nothing behind, and what a file held before stays.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Destination;

/// What is written and not published yet. Whoever writes to it flushes it at the end.
#[derive(Debug)]
pub struct Held(Shared);

/// Publishes what is held.
#[derive(Debug)]
pub struct Publication(Shared);

type Shared = Arc<Mutex<Place>>;

/// Where it is held, and where it is to be.
enum Place {
    /// In a file, made with the first byte, which is to be the other one.
    File { beside: PathBuf, path: PathBuf, open: Option<File> },
    /// In memory, to be written there.
    Memory(Vec<u8>, Box<dyn Write + Send>),
    /// It has been published.
    Published,
}

impl Held {
    /// Holds back the contents of a file. `run` is a name that no other run has.
    ///
    /// # Errors
    /// If no file can be made beside it.
    pub fn of_file(path: &Path, run: &str) -> io::Result<(Self, Publication)> {
        // Where it is a link, the file that it leads to.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        let beside = path.with_file_name(format!(".{name}.{run}.part"));
        // Found before the run, and not after it.
        File::create(&beside)?;
        fs::remove_file(&beside)?;
        Ok(shared(Place::File { beside, path, open: None }))
    }

    /// Holds back what is to be written to a stream.
    pub fn of_stream(out: Box<dyn Write + Send>) -> (Self, Publication) {
        shared(Place::Memory(Vec::new(), out))
    }
}

fn shared(place: Place) -> (Held, Publication) {
    let place = Arc::new(Mutex::new(place));
    (Held(Arc::clone(&place)), Publication(place))
}

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.0.lock() {
            Place::File { beside, open, .. } => match open {
                Some(file) => file.write(bytes),
                None => open.insert(File::create(beside)?).write(bytes),
            },
            Place::Memory(held, _) => held.write(bytes),
            Place::Published => Err(io::Error::other("the output has been published")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Destination for Held {}

impl Publication {
    /// Puts what is held in its place.
    ///
    /// # Errors
    /// Those of the destination; of a file, what it held before is still there.
    pub fn publish(&self) -> io::Result<()> {
        let mut place = self.0.lock();
        match &mut *place {
            Place::File { beside, path, open } => {
                let file = open.take().map_or_else(|| File::create(&*beside), Ok)?;
                if let Ok(before) = path.metadata() {
                    file.set_permissions(before.permissions())?;
                }
                file.sync_all()?;
                fs::rename(beside, path)?;
            }
            Place::Memory(held, out) => {
                out.write_all(held)?;
                out.flush()?;
            }
            Place::Published => {}
        }
        *place = Place::Published;
        Ok(())
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        let place = self.0.lock();
        if let Place::File { beside, .. } = &*place {
            // It may never have been made.
            fs::remove_file(beside).unwrap_or(());
        }
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { path, .. } => f.debug_tuple("File").field(path).finish(),
            Self::Memory(held, _) => f.debug_tuple("Memory").field(&held.len()).finish(),
            Self::Published => f.write_str("Published"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "before").unwrap();
        let found = || (fs::read_to_string(&path).unwrap(), fs::read_dir(folder.path()).unwrap().count());
        let write = |text: &str, publishes: bool| {
            let (mut held, publication) = Held::of_file(&path, "r").unwrap();
            held.write_all(text.as_bytes()).unwrap();
            let meanwhile = found();
            if publishes {
                publication.publish().unwrap();
            }
            meanwhile
        };
        let is = |text: &str, files| (text.to_owned(), files);
        assert_eq!((write("after", false), found()), (is("before", 2), is("before", 1)));
        assert_eq!((write("after", true), found()), (is("before", 2), is("after", 1)));
        // Of nothing, nothing is published all the same.
        assert_eq!((write("", true), found().0), (is("after", 1), String::new()));
        assert!(Held::of_file(Path::new("/nowhere/at/all"), "r").is_err());
    }
}
