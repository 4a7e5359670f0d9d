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
//! advisory and does not prevent it. A run ends before the next commit if the file is not its own any more
//! ([`OwnedFile::check`]). A restart reads the whole file, and refuses one that is shorter than its mark
//! says, or whose bytes up to there are others (`digest`; in marks of older versions the last 4 KiB only,
//! `end`).

use std::io::{self, BufRead, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::destination::Destination;
use crate::digest::end_digest;
use crate::failpoint;
use crate::mark::{Mark, Standing};
use crate::owned::{OwnedFile, OwnedRecord, with_suffix};
use dupflow_core::hash;

/// A file whose lines are durable up to its mark.
#[derive(Debug)]
pub struct MarkedFile {
    file: OwnedFile,
    mark: OwnedRecord,
    /// Written since the last commit.
    lines: Vec<u8>,
    /// Whether the file is this run's; before, it may have any length.
    is_taken: bool,
}

/// Contents of the mark file.
#[derive(Serialize, Deserialize)]
struct MarkContents {
    length: u64,
    /// The digest of the durable bytes; `None` in a mark of a version that did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// The hash of the last durable bytes, in marks of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    /// `None` before the first commit.
    mark: Option<Mark>,
}

impl MarkedFile {
    /// Suffixes of the files beside the output: the mark, and its replacement while it is written.
    pub const COMPANION_SUFFIXES: [&str; 2] = [".mark", ".mark.new"];

    /// Opens and locks the file; creates it if it is missing. Its contents do not change yet.
    ///
    /// # Errors
    /// If the file cannot be opened for reading and writing; if another run has locked it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, &with_suffix(path, Self::COMPANION_SUFFIXES[0]))
    }

    /// The same with the mark file at another place.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub fn open_with(path: &Path, mark: &Path) -> io::Result<Self> {
        Ok(Self {
            file: OwnedFile::open(path)?,
            mark: OwnedRecord::open(mark)?,
            lines: Vec::new(),
            is_taken: false,
        })
    }

    /// Parses the mark file; `None` if there is none.
    fn contents(&self) -> io::Result<Option<MarkContents>> {
        let Some(bytes) = self.mark.bytes() else { return Ok(None) };
        let damaged = || {
            let what = "is damaged: its checksum is not that of its contents";
            io::Error::new(io::ErrorKind::InvalidData, format!("{} {what}", self.mark.path().display()))
        };
        let (sum, json) = bytes.split_first_chunk::<17>().ok_or_else(damaged)?;
        if *sum != *format!("{} ", checksum(json)).as_bytes() {
            return Err(damaged());
        }
        serde_json::from_slice(json).map(Some).map_err(|_| damaged())
    }

    /// Whether what follows the durable bytes can be lines of a run, as far as the first line of an object
    /// says: a commit that did not end.
    fn has_own_tail(&self) -> io::Result<bool> {
        let mut first = Vec::new();
        self.file.lines()?.read_until(b'\n', &mut first)?;
        let name = first.iter().position(|byte| *byte == b':').filter(|_| first.starts_with(b"{"));
        let Some(name) = name else { return Ok(true) };
        self.file.has_own_tail(&[&first[..=name], b"{\"epoch\":", b"{\"provenance"])
    }

    /// Replaces the mark file: by one of all that was written.
    fn write_mark(&mut self, mark: Option<&Mark>) -> io::Result<()> {
        let (length, digest) = (self.file.length(), Some(self.file.digest()));
        let json = serde_json::to_string(&MarkContents { length, digest, end: None, mark: mark.cloned() })?;
        self.mark.replace(format!("{} {json}", checksum(json.as_bytes())).as_bytes())
    }

    /// An error with what to do, if the file is not as it was written.
    fn with_remedy(&self, error: io::Error) -> io::Error {
        if error.kind() != io::ErrorKind::InvalidData {
            return error;
        }
        let mark = self.mark.path().display();
        let what = format!(
            "{error}; put back the file as it was, or move it and {mark} away: then the next run writes its \
             whole result anew"
        );
        io::Error::new(error.kind(), what)
    }
}

fn checksum(json: &[u8]) -> String {
    format!("{:016x}", hash::bytes(0, json))
}

impl Write for MarkedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lines.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Checks that the file and its mark are this run's, once it was taken over. Lines are written by a
    /// commit.
    fn flush(&mut self) -> io::Result<()> {
        if !self.is_taken {
            return Ok(());
        }
        self.file.check().map_err(|error| self.with_remedy(error))?;
        self.mark.check()
    }
}

impl Destination for MarkedFile {
    fn take_over(&mut self) -> io::Result<Standing> {
        let size = self.file.size()?;
        let Some(MarkContents { length, digest, end, mark }) = self.contents()? else {
            if size == 0 {
                self.is_taken = true;
                return Ok(Standing::New);
            }
            let what = format!("holds {size} bytes, and no mark beside it says of what: move it away");
            return Err(self.file.changed(&what));
        };
        if size < length {
            let how = if size == 0 { "removed or emptied" } else { "cut" };
            let what = format!("holds {size} bytes, and its mark holds {length}: it has been {how}");
            return Err(self.with_remedy(self.file.changed(&what)));
        }
        let taken = self.file.take(length);
        taken.map_err(|error| self.with_remedy(error))?;
        let is_same = digest.as_ref().is_none_or(|digest| *digest == self.file.digest())
            && end.is_none_or(|end| end_digest(self.file.path(), length).is_ok_and(|found| found == end));
        if !is_same || (digest.is_none() && self.file.has_hole()?) {
            let what = match self.file.has_hole()? {
                true => "has a hole, bytes without a value: it was cut while a run wrote to it",
                false => "holds other bytes than its mark holds: it has been changed",
            };
            return Err(self.with_remedy(self.file.changed(what)));
        }
        if size > length {
            if !self.has_own_tail()? {
                let what = format!(
                    "holds {size} bytes, and what follows the {length} that its mark holds was not written \
                     by a run: take it out of the file"
                );
                return Err(self.file.changed(&what));
            }
            tracing::info!(bytes = size - length, "cut off what an earlier run wrote after its last commit");
        }
        self.file.cut()?;
        self.is_taken = true;
        Ok(mark.map_or(Standing::New, |mark| Standing::At(Box::new(mark))))
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(self.file.lines()?))
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.flush()?;
        if !self.lines.is_empty() {
            if self.mark.bytes().is_none() {
                self.write_mark(None)?;
            }
            self.file.append(&self.lines)?;
            failpoint::reach("lines-written");
            self.file.sync()?;
            failpoint::reach("lines-stored");
        }
        self.write_mark(Some(mark))?;
        self.lines.clear();
        self.lines.shrink_to(1 << 20);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

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
        let opened = || MarkedFile::open(&folder.path().join("out"));
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
        // The mark is not the first, so only its replacement fails, after the lines.
        std::fs::create_dir(folder.path().join("out.mark.new")).unwrap();
        assert!(file.commit(&mark(4)).is_err());
        drop(file);
        std::fs::remove_dir(folder.path().join("out.mark.new")).unwrap();
        assert_eq!(open(&folder).take_over().unwrap(), Standing::At(Box::new(mark(3))));
    }

    #[test]
    fn lines_of_an_interrupted_first_commit_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = open(&folder);
        assert_eq!(file.take_over().unwrap(), Standing::New);
        file.write_all(b"one\n").unwrap();
        // As if the process had ended after the lines were written.
        file.write_mark(None).unwrap();
        file.file.append(b"one\n").unwrap();
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
        let error = MarkedFile::open(&folder.path().join("out")).unwrap_err();
        assert!(error.to_string().contains("another run"));
        drop(file);
        drop(open(&folder));
    }
}
