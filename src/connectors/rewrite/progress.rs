//! How far a copy is, so that a later process can go on with it.
//!
//! A file of notes, one a line: which records are selected; then each file that is complete and synced, with
//! its length, a hash of its last bytes, and where the next file begins; at the end, that all are. So a copy
//! that was killed repeats at most one file. A file that is not as it was noted, and all files after it, are
//! written again. A copy of other records than those that were selected before begins anew.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::selection::Selection;
use crate::digest::end_digest;
use crate::owned::replace;

/// Where a copy is gone on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyResume {
    /// The file that says how far the copy is.
    pub file: PathBuf,
    /// A name that is the same for all processes that go on with the copy, and no other.
    pub name: String,
}

/// How far a copy is, at the end of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CopyProgress {
    /// Inputs that are copied to their ends.
    pub(super) inputs: usize,
    /// The number of the first record that is not in a complete file.
    pub(super) next: u64,
    /// Records and bytes in complete files, and the number of these.
    pub(super) written: u64,
    pub(super) bytes: u64,
    pub(super) files: usize,
}

/// One line of the notes.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CopyNote {
    /// A hash of the selected records and their marks, in hexadecimal digits.
    Selection(String),
    File(CompleteFile),
    /// All files are complete, and only have to be moved to their place.
    Complete,
}

/// A file that is complete.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CompleteFile {
    /// Its path below the folder. It need not be UTF-8.
    path: OsString,
    length: u64,
    /// The hash of its last bytes.
    end: String,
    after: CopyProgress,
}

impl CompleteFile {
    fn new(folder: &Path, path: &Path, after: CopyProgress) -> io::Result<Self> {
        let place = folder.join(path);
        let file = File::open(&place)?;
        file.sync_all()?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.into(), length, end: end_digest(&place, length)?, after })
    }

    /// Whether the file is as it was noted.
    fn is_intact(&self, folder: &Path) -> io::Result<bool> {
        let place = folder.join(&self.path);
        match place.metadata() {
            Ok(found) => Ok(found.len() == self.length && end_digest(&place, self.length)? == self.end),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The notes of a copy in progress.
pub(super) struct CopyNotes {
    file: File,
    folder: PathBuf,
}

impl CopyResume {
    /// What earlier processes have noted. A line that was torn by a kill ends it.
    fn found(&self) -> io::Result<Vec<CopyNote>> {
        let notes = match fs::read(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            notes => notes?,
        };
        let lines = notes.split_inclusive(|byte| *byte == b'\n').take_while(|line| line.ends_with(b"\n"));
        Ok(lines.map_while(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Whether all files are complete and, as they were noted, in this folder.
    pub(super) fn are_in(&self, folder: &Path) -> io::Result<bool> {
        let found = self.found()?;
        let is_intact = |note: &CopyNote| match note {
            CopyNote::File(file) => file.is_intact(folder),
            _ => Ok(true),
        };
        Ok(found.last() == Some(&CopyNote::Complete)
            && found.iter().map(is_intact).collect::<io::Result<Vec<_>>>()?.into_iter().all(|intact| intact))
    }

    /// Goes on with the copy of these records into `folder`, after the complete files of an earlier process
    /// that are as they were noted. All other files there are removed.
    pub(super) fn open(&self, selection: &Selection, folder: &Path) -> io::Result<(CopyNotes, CopyProgress)> {
        let selection = CopyNote::Selection(format!("{:016x}", selection.hash()));
        let mut found = self.found()?.into_iter();
        let is_same = found.next().is_some_and(|before| before == selection);
        let mut notes = vec![selection];
        let (mut progress, mut there) = (CopyProgress::default(), BTreeSet::new());
        for note in found.take_while(|_| is_same) {
            let CopyNote::File(file) = note else { break };
            if !file.is_intact(folder)? {
                tracing::warn!(file = ?file.path, "it is not as it was noted: it is copied again");
                break;
            }
            there.insert(folder.join(&file.path));
            progress = file.after;
            notes.push(CopyNote::File(file));
        }
        for entry in walkdir::WalkDir::new(folder) {
            let entry = entry?;
            if !entry.file_type().is_dir() && !there.contains(entry.path()) {
                fs::remove_file(entry.path())?;
            }
        }
        let mut lines = Vec::new();
        notes.iter().try_for_each(|note| push(note, &mut lines))?;
        replace(&self.file, &lines)?;
        let file = File::options().append(true).open(&self.file)?;
        Ok((CopyNotes { file, folder: folder.to_owned() }, progress))
    }
}

impl CopyNotes {
    /// Syncs and notes a complete file, of this path below the folder, and how far the copy is after it.
    pub(super) fn complete_file(&mut self, path: &Path, after: CopyProgress) -> io::Result<()> {
        self.note(&CopyNote::File(CompleteFile::new(&self.folder, path, after)?))
    }

    /// Notes that all files are complete.
    pub(super) fn complete(&mut self) -> io::Result<()> {
        self.note(&CopyNote::Complete)
    }

    fn note(&mut self, note: &CopyNote) -> io::Result<()> {
        let mut line = Vec::new();
        push(note, &mut line)?;
        self.file.write_all(&line)?;
        self.file.sync_data()
    }
}

fn push(note: &CopyNote, lines: &mut Vec<u8>) -> io::Result<()> {
    serde_json::to_writer(&mut *lines, note)?;
    lines.push(b'\n');
    Ok(())
}
