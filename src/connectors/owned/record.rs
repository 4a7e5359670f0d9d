//! A small file that one run replaces as a whole.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::place::{found_at, is_same, locked, named, replaced, sync_folder_of};

/// A small file that one run replaces as a whole. It may be missing.
#[derive(Debug)]
pub struct OwnedRecord {
    path: PathBuf,
    /// The file at the path as it was found or last replaced, locked, with its bytes.
    held: Option<(File, Vec<u8>)>,
}

impl OwnedRecord {
    /// Opens and locks the file, if there is one.
    ///
    /// # Errors
    /// If it cannot be opened for reading and writing; if another run has locked it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let held = loop {
            let mut file = match locked(path, OpenOptions::new().read(true).write(true)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break None,
                opened => opened.map_err(|error| named(path, &error))?,
            };
            // Its owner may have replaced it between the two calls.
            if found_at(path)?.is_some_and(|there| file.metadata().is_ok_and(|own| is_same(&there, &own))) {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(|error| named(path, &error))?;
                break Some((file, bytes));
            }
        };
        Ok(Self { path: path.to_owned(), held })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes; `None` if there is no such file.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.held.as_ref().map(|(_, bytes)| &**bytes)
    }

    /// Replaces it, as [`replace`](super::replace).
    ///
    /// # Errors
    /// Any error of the file, with its path; that another run has written it.
    pub fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.is_own()?;
        let file = replaced(&self.path, bytes).map_err(|error| named(&self.path, &error))?;
        // It is this run's, also if the folder cannot be synced.
        self.held = Some((file, bytes.to_vec()));
        sync_folder_of(&self.path).map_err(|error| named(&self.path, &error))
    }

    /// Checks that the file at the path is the one that this run has found or written. One that was removed
    /// is written again.
    ///
    /// # Errors
    /// If it is another; any error of the file.
    pub fn check(&mut self) -> io::Result<()> {
        if self.is_own()? {
            return Ok(());
        }
        tracing::warn!(file = %self.path.display(), "a file of this run was removed: it is written again");
        let bytes = self.held.take().map(|(_, bytes)| bytes).unwrap_or_default();
        self.replace(&bytes)
    }

    /// Removes the file.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn remove(&mut self) -> io::Result<()> {
        if self.held.take().is_some() {
            std::fs::remove_file(&self.path).map_err(|error| named(&self.path, &error))?;
        }
        Ok(())
    }

    /// Whether the file at the path is this run's; false if it was removed. Without a file of this run there
    /// must be none.
    fn is_own(&self) -> io::Result<bool> {
        let is_own = match (found_at(&self.path)?, &self.held) {
            (None, held) => return Ok(held.is_none()),
            (Some(_), None) => false,
            (Some(there), Some((own, _))) => is_same(&there, &own.metadata()?),
        };
        if is_own {
            return Ok(true);
        }
        let what = "was replaced while this run had it: another run, or another program, writes to it";
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} {what}", self.path.display())))
    }
}
