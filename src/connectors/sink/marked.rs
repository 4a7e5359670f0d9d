//! A file of lines with a mark beside it: exactly once without a broker.
//!
//! ```text
//! deltas.jsonl          lines; the first `length` bytes are durable
//! deltas.jsonl.mark     {"length":…,"mark":{…}} and a checksum; replaced as a whole
//! ```
//!
//! A commit appends the lines, has the system store them (`fsync`), and then replaces the mark: written
//! beside, stored, renamed, the folder stored. So a mark never tells of lines that are not there. Whatever
//! ends the process between two of these steps, the next run finds the old mark or the new one, and cuts off
//! what lies behind its length. The file is locked while a run has it; the system gives the lock back however
//! the process ends.
//!
//! A reader that wants whole commits only reads up to `length`; one that follows the file may see lines of a
//! commit that is under way, and which a restart takes back. It does not protect against somebody who writes
//! to the file beside.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Destination;
use crate::failpoint;
use crate::mark::{Mark, Standing};
use dupflow_core::hash;

/// A file whose lines are durable up to its mark.
#[derive(Debug)]
pub struct MarkedFile {
    path: PathBuf,
    mark_path: PathBuf,
    file: File,
    /// Bytes that are durable.
    length: u64,
    /// What is written since the last commit.
    lines: Vec<u8>,
}

/// What stands beside the file.
#[derive(Serialize, Deserialize)]
struct Beside {
    length: u64,
    mark: Mark,
}

impl MarkedFile {
    /// What stands behind the name of the file in the names of those beside it: the mark, and the one that is
    /// to replace it.
    pub const BESIDE: [&str; 2] = [".mark", ".mark.new"];

    /// Opens the file, or makes it, and locks it. Nothing of it changes yet.
    ///
    /// # Errors
    /// If it cannot be opened for reading and writing; if another run has it.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another run writes to it")),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mark_path = beside(&path, Self::BESIDE[0]);
        Ok(Self { path, mark_path, file, length: 0, lines: Vec::new() })
    }

    /// The mark beside the file, if there is one.
    fn mark(&self) -> io::Result<Option<Beside>> {
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
}

fn checksum(json: &[u8]) -> String {
    format!("{:016x}", hash::bytes(0, json))
}

/// The path with more behind its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Replaces a file by another one that holds these bytes, or leaves it as it is.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = beside(path, ".new");
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    failpoint::reach("mark-written");
    std::fs::rename(&new, path)?;
    failpoint::reach("mark-renamed");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
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
        let held = self.file.metadata()?.len();
        let path = self.path.display();
        let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let Some(Beside { length, mark }) = self.mark()? else {
            return match held {
                0 => Ok(Standing::New),
                _ => Err(wrong(format!(
                    "{path} holds {held} bytes, and no mark beside it says of what: move it away"
                ))),
            };
        };
        if held < length {
            return Err(wrong(format!(
                "{path} holds {held} bytes, and its mark tells of {length}: it has been cut"
            )));
        }
        if held > length {
            tracing::info!(bytes = held - length, "cut off what an earlier run wrote after its last commit");
            self.file.set_len(length)?;
            self.file.sync_all()?;
        }
        self.length = length;
        self.file.seek(SeekFrom::Start(length))?;
        Ok(Standing::At(Box::new(mark)))
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(BufReader::new(File::open(&self.path)?.take(self.length))))
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        if !self.lines.is_empty() {
            self.file.write_all(&self.lines)?;
            failpoint::reach("lines-written");
            self.file.sync_data()?;
            failpoint::reach("lines-stored");
        }
        let length = self.length + self.lines.len() as u64;
        let json = serde_json::to_string(&Beside { length, mark: mark.clone() })?;
        replace(&self.mark_path, format!("{} {json}", checksum(json.as_bytes())).as_bytes())?;
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

    /// Opens it. A process that another test starts has the lock of the file before, from its fork until its
    /// exec.
    fn open(folder: &tempfile::TempDir) -> MarkedFile {
        let opened = || MarkedFile::open(folder.path().join("out"));
        let is_locked = |file: &std::io::Result<MarkedFile>| {
            file.as_ref().is_err_and(|error| error.to_string().contains("another run"))
        };
        let mut tries = std::iter::repeat_with(opened).take(100_000);
        tries.find(|file| !is_locked(file)).expect("the lock is given back").unwrap()
    }

    fn read(folder: &tempfile::TempDir) -> String {
        std::fs::read_to_string(folder.path().join("out")).unwrap()
    }

    #[test]
    fn a_new_run_goes_on_behind_the_last_commit() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = open(&folder);
        assert_eq!(file.take_over().unwrap(), Standing::New);
        file.write_all(b"one\n").unwrap();
        assert_eq!(read(&folder), "", "nothing is there before the commit");
        file.commit(&mark(1)).unwrap();
        file.write_all(b"two\n").unwrap();
        file.commit(&mark(2)).unwrap();
        file.write_all(b"never committed\n").unwrap();
        assert_eq!(read(&folder), "one\ntwo\n");
        drop(file);
        // As if the process had ended between the lines and the mark.
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
    fn what_is_not_of_a_run_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("out"), "somebody's\n").unwrap();
        assert!(open(&folder).take_over().unwrap_err().to_string().contains("move it away"));
        assert_eq!(read(&folder), "somebody's\n");
        let other = tempfile::tempdir().unwrap();
        let mut file = open(&other);
        file.take_over().unwrap();
        file.write_all(b"one\n").unwrap();
        file.commit(&mark(1)).unwrap();
        drop(file);
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
