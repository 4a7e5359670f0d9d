//! How far a copy is, so that a later process can go on with it.
//!
//! After each file that is complete and synced, a file beside the copy is replaced by one that says where the
//! next file begins. So a copy that was killed repeats at most one file. A copy of other records than those
//! that were selected before begins anew.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::selection::Selection;
use crate::sinks::replace;

/// Where a copy is gone on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyResume {
    /// The file that says how far the copy is.
    pub file: PathBuf,
    /// A name that is the same for all processes that go on with the copy, and no other.
    pub name: String,
}

/// How far a copy is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CopyProgress {
    /// A hash of the selected records and their marks, in hexadecimal digits.
    pub(super) selection: String,
    /// Inputs that are copied to their ends.
    pub(super) inputs: usize,
    /// The number of the first record that is not in a complete file.
    pub(super) next: u64,
    /// Records and bytes in complete files, and the number of these.
    pub(super) written: u64,
    pub(super) bytes: u64,
    pub(super) files: usize,
    /// Whether all files are complete, and only have to be moved to their place.
    pub(super) is_complete: bool,
}

impl CopyResume {
    /// How far an earlier process has come with the copy of any records; the beginning if there was none.
    pub(super) fn found(&self) -> io::Result<CopyProgress> {
        match fs::read(&self.file) {
            Ok(json) => Ok(serde_json::from_slice(&json)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(CopyProgress::default()),
            Err(error) => Err(error),
        }
    }

    /// How far an earlier process has come with the copy of these records; the beginning if it has copied
    /// others, or if fewer files are `there` than it had completed.
    pub(super) fn progress(&self, selection: &Selection, there: usize) -> io::Result<CopyProgress> {
        let selection = format!("{:016x}", selection.hash());
        let found = self.found()?;
        let goes_on = found.selection == selection && found.files <= there;
        Ok(if goes_on { found } else { CopyProgress { selection, ..CopyProgress::default() } })
    }

    pub(super) fn store(&self, progress: &CopyProgress) -> io::Result<()> {
        replace(&self.file, serde_json::to_string(progress)?.as_bytes())
    }
}
