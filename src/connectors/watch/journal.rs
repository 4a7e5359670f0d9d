//! The journal of posted watches: JSON Lines, one for each change.
//!
//! ```text
//! {"id":"press-17","text":"…"}      the watch begins, or has another text
//! {"id":"press-17"}                 it has ended
//! ```
//!
//! A change is durable when [`WatchJournal::append`] returns. A line without its end, as a crash leaves it,
//! was never confirmed, and is cut off. The journal is written anew when it is opened, if half of its lines
//! or more are of the past.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failpoint;
use crate::sinks::{open_alone, replace};
use dupflow_core::doc::DocId;

/// The file of posted watches; one run at a time has it open.
#[derive(Debug)]
pub struct WatchJournal {
    path: PathBuf,
    file: File,
    length: u64,
}

#[derive(Serialize, Deserialize)]
struct JournalLine<'a> {
    id: DocId,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    text: Option<std::borrow::Cow<'a, str>>,
}

impl WatchJournal {
    /// Opens the file, or creates it, and returns the posted watches with their texts.
    ///
    /// # Errors
    /// Any error of the file; that another run has it open; that it is not a journal.
    pub fn open(path: &Path) -> io::Result<(Self, BTreeMap<DocId, String>)> {
        let file = open_alone(path, "another run has it open")?;
        let mut journal = Self { path: path.to_owned(), file, length: 0 };
        let (posted, lines) = journal.read()?;
        if lines > 2 * posted.len() {
            journal.compact(&posted)?;
        }
        journal.file.set_len(journal.length)?;
        // An earlier process may have ended before its last line was durable.
        journal.file.sync_data()?;
        failpoint::reach("watches-synced");
        journal.file.seek(SeekFrom::Start(journal.length))?;
        Ok((journal, posted))
    }

    fn read(&mut self) -> io::Result<(BTreeMap<DocId, String>, usize)> {
        let (mut posted, mut lines) = (BTreeMap::new(), 0);
        let mut reader = BufReader::new(File::open(&self.path)?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            lines += 1;
            let read: JournalLine<'_> = serde_json::from_slice(&line).map_err(|error| {
                let what = format!("line {lines} is no change of a watch ({error}): move the file away");
                io::Error::new(io::ErrorKind::InvalidData, what)
            })?;
            match read.text {
                Some(text) => drop(posted.insert(read.id, text.into_owned())),
                None => drop(posted.remove(&read.id)),
            }
            self.length += line.len() as u64;
            line.clear();
        }
        Ok((posted, lines))
    }

    /// Writes the file anew, with the present watches only.
    fn compact(&mut self, posted: &BTreeMap<DocId, String>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (id, text) in posted {
            push_line(&mut bytes, id, Some(text))?;
        }
        replace(&self.path, &bytes)?;
        // The lock is of the old file, which no longer has a name.
        self.file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        self.file.try_lock().map_err(io::Error::other)?;
        self.length = bytes.len() as u64;
        Ok(())
    }

    /// Stores a change durably; `None` ends the watch. After an error the file is as before.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn append(&mut self, id: &DocId, text: Option<&str>) -> io::Result<()> {
        let mut line = Vec::new();
        push_line(&mut line, id, text)?;
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A later line must not follow a part of this one.
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::Start(self.length))?;
            return Err(error);
        }
        self.length += line.len() as u64;
        Ok(())
    }
}

fn push_line(out: &mut Vec<u8>, id: &DocId, text: Option<&str>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &JournalLine { id: id.clone(), text: text.map(Into::into) })?;
    out.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> DocId {
        DocId::new(name).unwrap()
    }

    /// Opens the journal, and tries again while a process that another test has just started holds the lock.
    fn open(path: &Path) -> (WatchJournal, BTreeMap<DocId, String>) {
        let tries = std::iter::repeat_with(|| WatchJournal::open(path)).take(100_000);
        let is_locked = |result: &io::Result<_>| {
            result.as_ref().is_err_and(|error: &io::Error| error.to_string().contains("another run"))
        };
        tries.into_iter().find(|result| !is_locked(result)).expect("the lock is released").unwrap()
    }

    #[test]
    fn confirmed_changes_are_read_back_and_a_torn_one_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watches");
        let (mut journal, mut posted) = open(&path);
        assert!(posted.is_empty());
        assert_eq!(failpoint::passed::take(), ["folder-synced", "watches-synced"], "its name is durable");
        assert!(WatchJournal::open(&path).unwrap_err().to_string().contains("another run"));
        journal.append(&id("a"), Some("one \"text\"\nof two lines")).unwrap();
        journal.append(&id("b"), Some("two")).unwrap();
        journal.append(&id("a"), None).unwrap();
        journal.append(&id("c"), Some("three")).unwrap();
        drop(journal);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"id\":\"d\",\"te").unwrap();
        let expected = BTreeMap::from([(id("b"), "two".to_owned()), (id("c"), "three".to_owned())]);
        (journal, posted) = open(&path);
        assert_eq!(posted, expected);
        assert_eq!(failpoint::passed::take(), ["watches-synced"]);
        // After the torn line that was cut off.
        journal.append(&id("b"), None).unwrap();
        journal.append(&id("d"), None).unwrap();
        drop(journal);
        (journal, posted) = open(&path);
        assert_eq!(posted.keys().map(DocId::as_str).collect::<Vec<_>>(), ["c"]);
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"id\":\"c\",\"text\":\"three\"}\n",
            "compacted"
        );
        journal.append(&id("e"), Some("five")).unwrap();
        drop(journal);
        assert_eq!(open(&path).1.len(), 2);
        std::fs::write(&path, "another's\n").unwrap();
        assert!(WatchJournal::open(&path).unwrap_err().to_string().contains("move the file away"));
    }
}
