//! A file of lines with a mark file beside it: exactly once without a broker.
//!
//! ```text
//! deltas.jsonl          lines; the first `length` bytes are durable
//! deltas.jsonl.mark     {"length":…,"end":…,"mark":{…}} and a checksum; replaced as a whole
//! ```
//!
//! A commit appends the lines and syncs them (`fsync`), then replaces the mark: it writes a new file beside
//! the old one, syncs it, renames it, and syncs the folder. So a mark never covers lines that are not in the
//! file. If the process ends between two of these steps, the next run finds the old mark or the new one, and
//! cuts off everything after its length. Before the first lines a mark file without a mark is written, so
//! that lines of an interrupted first commit are cut off too. A run holds a lock on the file; the system
//! releases it however the process ends.
//!
//! A reader that wants whole commits reads up to `length`. A reader that follows the file may see lines of a
//! commit in progress, which a restart removes. Other programs must not write to the file: the lock is
//! advisory and does not prevent it. A restart refuses a file that is shorter than its mark says, or whose
//! last 4 KiB before that length are others (`end`); it does not notice a change before them.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::destination::Destination;
use crate::digest::end_digest;
use crate::failpoint;
use crate::mark::{Mark, Standing};
use dupflow_core::hash;

/// A file whose lines are durable up to its mark.
#[derive(Debug)]
pub struct MarkedFile {
    path: PathBuf,
    mark_path: PathBuf,
    file: File,
    /// Durable bytes.
    length: u64,
    /// Written since the last commit.
    lines: Vec<u8>,
    /// Whether there is no mark file.
    is_unmarked: bool,
}

/// Contents of the mark file.
#[derive(Serialize, Deserialize)]
struct MarkContents {
    length: u64,
    /// The hash of the last durable bytes; `None` in a mark of a version that did not note it.
    #[serde(default)]
    end: Option<String>,
    /// `None` before the first commit.
    mark: Option<Mark>,
}

/// Why a file is not opened.
const WRITTEN: &str = "another run writes to it";

impl MarkedFile {
    /// Suffixes of the files beside the output: the mark, and its replacement while it is written.
    pub const COMPANION_SUFFIXES: [&str; 2] = [".mark", ".mark.new"];

    /// Opens and locks the file; creates it if it is missing. Its contents do not change yet.
    ///
    /// # Errors
    /// If the file cannot be opened for reading and writing; if another run has locked it.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let mark_path = with_suffix(&path, Self::COMPANION_SUFFIXES[0]);
        Self::open_with(path, mark_path)
    }

    /// The same with the mark file at another place.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub fn open_with(path: PathBuf, mark_path: PathBuf) -> io::Result<Self> {
        let file = open_alone(&path, WRITTEN)?;
        Ok(Self { path, mark_path, file, length: 0, lines: Vec::new(), is_unmarked: false })
    }

    /// Checks that no run has locked the file at a path, if there is one. Nothing is created.
    ///
    /// # Errors
    /// If another run has; if the file cannot be opened.
    pub fn check_free(path: &Path) -> io::Result<()> {
        if !path.is_file() {
            return Ok(());
        }
        open_alone(path, WRITTEN).map(drop)
    }

    /// Reads the mark file; `None` if there is none.
    fn mark(&self) -> io::Result<Option<MarkContents>> {
        let bytes = match std::fs::read(&self.mark_path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let damaged = || {
            let what = "is damaged: its checksum is not that of its contents";
            io::Error::new(io::ErrorKind::InvalidData, format!("{} {what}", self.mark_path.display()))
        };
        let (sum, json) = bytes.split_first_chunk::<17>().ok_or_else(damaged)?;
        if *sum != *format!("{} ", checksum(json)).as_bytes() {
            return Err(damaged());
        }
        serde_json::from_slice(json).map(Some).map_err(|_| damaged())
    }

    /// Replaces the mark file.
    fn write_mark(&mut self, length: u64, mark: Option<&Mark>) -> io::Result<()> {
        let end = Some(end_digest(&mut self.file, length)?);
        let json = serde_json::to_string(&MarkContents { length, end, mark: mark.cloned() })?;
        replace(&self.mark_path, format!("{} {json}", checksum(json.as_bytes())).as_bytes())
    }
}

fn checksum(json: &[u8]) -> String {
    format!("{:016x}", hash::bytes(0, json))
}

/// The path with `suffix` appended to the file name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Replaces a file atomically, durably: after an error or a crash it has its old contents or `bytes`.
///
/// # Errors
/// Any error of the file.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = with_suffix(path, ".new");
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    failpoint::reach("mark-written");
    std::fs::rename(&new, path)?;
    failpoint::reach("mark-renamed");
    sync_folder_of(path)
}

/// Opens and locks a file; creates it if it is missing. An empty file may have been created without its name
/// being durable, so its folder is synced.
///
/// # Errors
/// Any error of the file; `locked`, if another run has it open.
pub(crate) fn open_alone(path: &Path, locked: &'static str) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(io::Error::other(locked)),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.len() == 0 {
        sync_folder_of(path)?;
    }
    Ok(file)
}

/// Makes the name of a file durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder)?.sync_all() {
        // A folder of devices cannot be synced.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
        synced => synced?,
    }
    failpoint::reach("folder-synced");
    Ok(())
}

impl Write for MarkedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lines.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Destination for MarkedFile {
    fn take_over(&mut self) -> io::Result<Standing> {
        let size = self.file.metadata()?.len();
        let path = self.path.display().to_string();
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let Some(MarkContents { length, end, mark }) = self.mark()? else {
            return match size {
                0 => {
                    self.is_unmarked = true;
                    Ok(Standing::New)
                }
                _ => Err(invalid(format!(
                    "{path} holds {size} bytes, and no mark beside it says of what: move it away"
                ))),
            };
        };
        if size < length {
            return Err(invalid(format!(
                "{path} holds {size} bytes, and its mark tells of {length}: it has been cut"
            )));
        }
        if end.is_some_and(|end| end_digest(&mut self.file, length).ok() != Some(end)) {
            return Err(invalid(format!(
                "{path} ends with other bytes than its mark tells of: it has been changed"
            )));
        }
        if size > length {
            tracing::info!(bytes = size - length, "cut off what an earlier run wrote after its last commit");
            self.file.set_len(length)?;
            self.file.sync_all()?;
        }
        self.length = length;
        self.file.seek(SeekFrom::Start(length))?;
        Ok(mark.map_or(Standing::New, |mark| Standing::At(Box::new(mark))))
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(BufReader::new(File::open(&self.path)?.take(self.length))))
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        let is_first = std::mem::take(&mut self.is_unmarked);
        if !self.lines.is_empty() {
            if is_first {
                self.write_mark(0, None)?;
            }
            self.file.write_all(&self.lines)?;
            failpoint::reach("lines-written");
            self.file.sync_data()?;
            failpoint::reach("lines-stored");
        }
        let length = self.length + self.lines.len() as u64;
        self.write_mark(length, Some(mark))?;
        self.length = length;
        self.lines.clear();
        self.lines.shrink_to(1 << 20);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::time::Progress;

    fn mark(epoch: u64) -> Mark {
        Mark {
            run: "r".to_owned(),
            progress: Progress { epoch, ..Progress::default() },
            start: [(0, 0)].into(),
            pipeline: String::new(),
            in_correction: false,
            letters: None,
            ..Mark::default()
        }
    }

    /// Opens the file, and tries again while it is locked: a process started by another test holds a copy of
    /// the lock between its fork and its exec.
    fn open(folder: &tempfile::TempDir) -> MarkedFile {
        let opened = || MarkedFile::open(folder.path().join("out"));
        let is_locked = |file: &std::io::Result<MarkedFile>| {
            file.as_ref().is_err_and(|error| error.to_string().contains("another run"))
        };
        let mut tries = std::iter::repeat_with(opened).take(100_000);
        tries.find(|file| !is_locked(file)).expect("the lock is released").unwrap()
    }

    fn read(folder: &tempfile::TempDir) -> String {
        std::fs::read_to_string(folder.path().join("out")).unwrap()
    }

    /// Regression: the first lines after commits without any took the mark of these away.
    #[test]
    fn a_commit_that_fails_leaves_the_mark_of_one_without_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = open(&folder);
        file.take_over().unwrap();
        file.commit(&mark(3)).unwrap();
        file.write_all(b"one\n").unwrap();
        let writable = std::mem::replace(&mut file.file, File::open(folder.path().join("out")).unwrap());
        assert!(file.commit(&mark(4)).is_err());
        drop((file, writable));
        assert_eq!(open(&folder).take_over().unwrap(), Standing::At(Box::new(mark(3))));
    }

    #[test]
    fn lines_of_an_interrupted_first_commit_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = open(&folder);
        assert_eq!(file.take_over().unwrap(), Standing::New);
        file.write_all(b"one\n").unwrap();
        // As if the process had ended after the lines were written.
        file.write_mark(0, None).unwrap();
        file.file.write_all(b"one\n").unwrap();
        drop(file);
        let mut again = open(&folder);
        assert_eq!(again.take_over().unwrap(), Standing::New);
        assert_eq!(read(&folder), "");
        again.write_all(b"two\n").unwrap();
        again.commit(&mark(1)).unwrap();
        drop(again);
        assert_eq!(open(&folder).take_over().unwrap(), Standing::At(Box::new(mark(1))));
        assert_eq!(read(&folder), "two\n");
    }

    #[test]
    fn a_new_run_continues_after_the_last_commit() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = open(&folder);
        assert_eq!(file.take_over().unwrap(), Standing::New);
        file.write_all(b"one\n").unwrap();
        assert_eq!(read(&folder), "", "nothing is written before the commit");
        file.commit(&mark(1)).unwrap();
        file.write_all(b"two\n").unwrap();
        file.commit(&mark(2)).unwrap();
        file.write_all(b"never committed\n").unwrap();
        assert_eq!(read(&folder), "one\ntwo\n");
        drop(file);
        // As if the process had ended between writing the lines and replacing the mark.
        let mut torn = OpenOptions::new().append(true).open(folder.path().join("out")).unwrap();
        torn.write_all(b"thr").unwrap();
        file = open(&folder);
        assert_eq!(file.take_over().unwrap(), Standing::At(Box::new(mark(2))));
        let mut lines = String::new();
        file.lines().unwrap().read_to_string(&mut lines).unwrap();
        assert_eq!(lines, "one\ntwo\n");
        file.write_all(b"three\n").unwrap();
        file.commit(&mark(3)).unwrap();
        assert_eq!(read(&folder), "one\ntwo\nthree\n");
    }

    #[test]
    fn files_of_other_programs_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("out"), "another's\n").unwrap();
        assert!(open(&folder).take_over().unwrap_err().to_string().contains("move it away"));
        assert_eq!(read(&folder), "another's\n");
        let other = tempfile::tempdir().unwrap();
        let mut file = open(&other);
        file.take_over().unwrap();
        file.write_all(b"one\n").unwrap();
        file.commit(&mark(1)).unwrap();
        drop(file);
        std::fs::write(other.path().join("out"), "0ne\nand more\n").unwrap();
        assert!(open(&other).take_over().unwrap_err().to_string().contains("it has been changed"));
        OpenOptions::new().write(true).open(other.path().join("out")).unwrap().set_len(2).unwrap();
        assert!(open(&other).take_over().unwrap_err().to_string().contains("it has been cut"));
        let beside = other.path().join("out.mark");
        let whole = std::fs::read(&beside).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            std::fs::write(&beside, flipped).unwrap();
            let error = open(&other).take_over().unwrap_err().to_string();
            assert!(error.contains("is damaged"), "{at}: {error}");
            std::fs::write(&beside, &whole[..at]).unwrap();
            assert!(open(&other).take_over().unwrap_err().to_string().contains("is damaged"), "{at}");
        }
    }

    #[test]
    fn one_run_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = open(&folder);
        let error = MarkedFile::open(folder.path().join("out")).unwrap_err();
        assert!(error.to_string().contains("another run"));
        drop(file);
        drop(open(&folder));
    }
}
