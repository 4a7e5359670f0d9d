//! The journal of posted watches: JSON Lines, one for each change.
//!
//! ```text
//! {"id":"press-17","text":"…"}      the watch begins, or has another text
//! {"id":"press-17"}                 it has ended
//! ```
//!
//! A change is durable when [`WatchJournal::append`] returns. A line without its end, as a crash leaves it,
//! was never confirmed, and is cut off. The journal is written anew when it is opened, if half of its lines
//! or more are of the past. The file is the only copy: a run whose journal was removed or changed by others
//! ends.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failpoint;
use crate::owned::OwnedFile;
use dupflow_core::doc::DocId;

/// The file of posted watches; one run at a time has it open.
#[derive(Debug)]
pub struct WatchJournal(OwnedFile);

/// The beginning of each line.
const BEGINNING: &[u8] = b"{\"id\":";

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
        let mut file = OwnedFile::open(path)?;
        let (posted, lines, length) = read(&file)?;
        if lines > 2 * posted.len() {
            let mut bytes = Vec::new();
            for (id, text) in &posted {
                push_line(&mut bytes, id, Some(text))?;
            }
            file.replace(&bytes)?;
        } else {
            file.take(length)?;
            file.cut()?;
        }
        // An earlier process may have ended before its last line was durable.
        file.sync()?;
        failpoint::reach("watches-synced");
        Ok((Self(file), posted))
    }

    /// Stores a change durably; `None` ends the watch. After an error the file is as before.
    ///
    /// # Errors
    /// Any error of the file; that it is not this run's any more.
    pub fn append(&mut self, id: &DocId, text: Option<&str>) -> io::Result<()> {
        let mut line = Vec::new();
        push_line(&mut line, id, text)?;
        self.0.append_durably(&line)
    }

    /// Checks that the file is still this run's.
    ///
    /// # Errors
    /// If it is not; what to do.
    pub fn check(&self) -> io::Result<()> {
        self.0.check().map_err(|error| {
            let what =
                format!("{error}; put it back: it is the only copy of what was posted; then start again");
            io::Error::new(error.kind(), what)
        })
    }
}

/// The posted watches, the number of lines, and their bytes.
fn read(file: &OwnedFile) -> io::Result<(BTreeMap<DocId, String>, usize, u64)> {
    let (mut posted, mut lines, mut length) = (BTreeMap::new(), 0, 0);
    for line in file.whole_lines(BEGINNING)? {
        let line = line?;
        lines += 1;
        let read: JournalLine<'_> = serde_json::from_slice(&line).map_err(|error| {
            let what = format!("line {lines} is no change of a watch ({error}): move the file away");
            io::Error::new(io::ErrorKind::InvalidData, what)
        })?;
        match read.text {
            Some(text) => drop(posted.insert(read.id, text.into_owned())),
            None => drop(posted.remove(&read.id)),
        }
        length += line.len() as u64;
    }
    Ok((posted, lines, length))
}

fn push_line(out: &mut Vec<u8>, id: &DocId, text: Option<&str>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &JournalLine { id: id.clone(), text: text.map(Into::into) })?;
    out.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

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
