//! A file of dead letters: records that are not valid events, each with its position and the reason, as JSON
//! Lines.
//!
//! ```text
//! {"input":"pages","partition":2,"offset":17,"reason":"bad_id","key":"…","raw":"…"}
//! ```
//!
//! `key` and `raw` are texts. Where the bytes are not UTF-8, `key_base64` and `raw_base64` replace them; a
//! record without a key or a value lacks the field.
//!
//! Each mark holds the length of the file and the digest of its bytes, so that a restart cuts off uncommitted
//! letters, and only these. Before the first mark a note beside the file says that no letter counts yet. A
//! file that neither knows of is not this run's: it is refused, not cut.
//!
//! A replay has no marks. It writes each record as it was read, one a line; for an unreadable file, an object
//! with its name and the reason.

use std::io::{self, BufRead, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::mark::Mark;
use crate::owned::{OwnedFile, OwnedRecord, with_suffix};
use dupflow_core::doc::Letter;

/// The beginning of each letter.
const BEGINNING: &[u8] = b"{\"input\":";

/// Appends letters, and cuts off uncommitted ones after a restart.
#[derive(Debug)]
pub struct LetterFile {
    file: OwnedFile,
    /// While no mark knows the file: how many of its bytes count, as text.
    note: OwnedRecord,
    /// Whether a mark knows the file.
    is_marked: bool,
    lines: Vec<u8>,
    /// Whether the records themselves are written, as in a replay, and not JSON objects.
    as_read: bool,
}

impl LetterFile {
    /// Suffixes of the files beside the letters: the note, and its replacement while it is written.
    pub const COMPANION_SUFFIXES: [&str; 2] = [".begun", ".begun.new"];

    /// Opens and locks the file; creates it if it is missing.
    ///
    /// # Errors
    /// If the file cannot be opened for reading and writing; if another run has locked it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let note = OwnedRecord::open(&with_suffix(path, Self::COMPANION_SUFFIXES[0]))?;
        Ok(Self { file: OwnedFile::open(path)?, note, is_marked: false, lines: Vec::new(), as_read: false })
    }

    /// Creates or empties the file of a replay.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut letters = Self::resume(path)?;
        letters.file.cut()?;
        Ok(letters)
    }

    /// Opens the file of a replay that is resumed; creates it if it is missing.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub fn resume(path: &Path) -> io::Result<Self> {
        Ok(Self { as_read: true, is_marked: true, ..Self::open(path)? })
    }

    /// Truncates the file to what a mark holds, and continues there; `None`: no mark knows the file, and no
    /// letter counts. A shorter file of a run, whose letters may have been taken away, is continued at its
    /// end.
    ///
    /// # Errors
    /// Any error of the file; if it is not this run's; if that of a replay, which is part of its result, is
    /// shorter.
    pub fn resume_at(&mut self, mark: Option<&Mark>) -> io::Result<()> {
        if !self.file.is_file() {
            return Ok(());
        }
        let (size, noted) = (self.file.size()?, self.noted()?);
        let (length, digest) = match mark.and_then(|mark| Some((mark.letters?, mark.letters_digest.as_ref())))
        {
            Some(known) => {
                self.is_marked = true;
                known
            }
            None if self.as_read => (0, None),
            None => (noted.unwrap_or(0), None),
        };
        if self.as_read && size < length {
            return Err(self.file.changed(&format!(
                "holds {size} bytes, and the replay has written {length}: it has been cut"
            )));
        }
        self.file.take(length.min(size)).map_err(|error| self.with_remedy(error))?;
        let is_other = match digest {
            Some(digest) if size >= length => *digest != self.file.digest(),
            // Letters of an earlier version, or letters that were taken away in part.
            _ if self.is_marked => !self.as_read && !self.holds_letters()?,
            _ => noted.is_none() && size > 0,
        };
        if is_other {
            let what = format!("holds {size} bytes that this run has not written");
            return Err(self.with_remedy(self.file.changed(&what)));
        }
        if size < length && !self.ends_line()? {
            let what =
                format!("holds {size} bytes of {length}, and ends in the middle of a letter: it was cut");
            return Err(self.with_remedy(self.file.changed(&what)));
        }
        if !self.as_read && !self.file.has_own_tail(&[BEGINNING])? {
            let what = format!("holds {} bytes, and a part after the first {length} is no dead letter", size);
            return Err(self.with_remedy(self.file.changed(&what)));
        }
        self.file.cut()?;
        if self.is_marked { self.note.remove() } else { Ok(()) }
    }

    /// Continues at the end of the file, of which no mark knows: that of an output that keeps none.
    ///
    /// # Errors
    /// Any error of the file; if it holds something else than letters.
    pub fn resume_at_end(&mut self) -> io::Result<()> {
        self.is_marked = true;
        self.begin_at(self.file.size()?)
    }

    /// Empties the file, whose letters are all written again: that of an output that keeps no marks.
    ///
    /// # Errors
    /// As of [`Self::resume_at_end`].
    pub fn begin_anew(&mut self) -> io::Result<()> {
        self.is_marked = true;
        self.begin_at(0)
    }

    fn begin_at(&mut self, length: u64) -> io::Result<()> {
        if !self.file.is_file() {
            return Ok(());
        }
        if !self.holds_letters()? {
            let what = "holds something else than dead letters";
            return Err(self.with_remedy(self.file.changed(what)));
        }
        self.file.take(length)?;
        self.file.cut()
    }

    /// Whether the file is empty, or begins with a letter.
    fn holds_letters(&self) -> io::Result<bool> {
        let mut lines = std::io::BufReader::new(std::fs::File::open(self.file.path())?);
        let beginning = lines.fill_buf()?;
        let length = beginning.len().min(BEGINNING.len());
        Ok(beginning[..length] == BEGINNING[..length])
    }

    /// Whether the file is empty, or its last letter is whole.
    fn ends_line(&self) -> io::Result<bool> {
        let mut file = std::fs::File::open(self.file.path())?;
        let mut last = [b'\n'];
        if file.metadata()?.len() > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        Ok(last[0] == b'\n')
    }

    /// How many bytes count by the note.
    fn noted(&self) -> io::Result<Option<u64>> {
        let Some(bytes) = self.note.bytes() else { return Ok(None) };
        let number = str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok());
        let what = || format!("{} is no note of dead letters: move it away", self.note.path().display());
        number.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, what()))
    }

    fn with_remedy(&self, error: io::Error) -> io::Error {
        if error.kind() != io::ErrorKind::InvalidData || self.as_read {
            return error;
        }
        io::Error::new(error.kind(), format!("{error}; move it away, or set another dead_letter.path"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes of the letters that count.
    pub fn length(&self) -> u64 {
        self.file.length()
    }

    /// The digest of these letters.
    pub fn digest(&self) -> String {
        self.file.digest()
    }

    /// Checks that the file is still this run's.
    ///
    /// # Errors
    /// If it is not; what to do.
    pub fn check(&self) -> io::Result<()> {
        self.file.check().map_err(|error| {
            let what = format!("{error}; start again: letters that were taken away count as written");
            io::Error::new(error.kind(), what)
        })
    }

    /// Buffers letters until the next [`Self::sync`].
    ///
    /// # Errors
    /// None: letters stay in memory.
    pub fn append(&mut self, letters: &[Letter]) -> io::Result<()> {
        for letter in letters {
            match &letter.raw {
                Some(raw) if self.as_read => self.lines.extend_from_slice(raw),
                None if self.as_read => {
                    let line = serde_json::json!({ "file": &*letter.input, "reason": &*letter.reason });
                    serde_json::to_writer(&mut self.lines, &line)?;
                }
                _ => serde_json::to_writer(&mut self.lines, &line(letter))?,
            }
            self.lines.push(b'\n');
        }
        Ok(())
    }

    /// Writes and syncs the buffered letters.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        if !self.is_marked && self.note.bytes().is_none() {
            self.note.replace(self.file.length().to_string().as_bytes())?;
        }
        self.file.append(&self.lines)?;
        self.lines.clear();
        self.file.sync()
    }

    /// A mark with the length of the file is durable.
    ///
    /// # Errors
    /// Any error of the note.
    pub fn committed(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_marked, true) { Ok(()) } else { self.note.remove() }
    }
}

/// The JSON object of a letter.
fn line(letter: &Letter) -> Value {
    let mut line = Map::new();
    line.insert("input".to_owned(), (*letter.input).into());
    line.insert("partition".to_owned(), letter.position.partition.into());
    line.insert("offset".to_owned(), letter.position.offset.into());
    line.insert("reason".to_owned(), (*letter.reason).into());
    let mut bytes = |name: &str, bytes: Option<&[u8]>| match bytes.map(str::from_utf8) {
        Some(Ok(text)) => drop(line.insert(name.to_owned(), text.into())),
        Some(Err(_)) => {
            drop(line.insert(format!("{name}_base64"), STANDARD.encode(bytes.unwrap_or_default()).into()));
        }
        None => {}
    };
    bytes("key", letter.key.as_deref());
    bytes("raw", letter.raw.as_deref());
    line.into()
}

#[cfg(test)]
#[expect(clippy::shadow_unrelated, reason = "a test is a sequence of small cases")]
mod tests {
    use super::*;
    use dupflow_core::doc::Position;

    fn letter(offset: u64, raw: Option<&[u8]>) -> Letter {
        Letter {
            input: "pages".into(),
            position: Position { partition: 2, offset },
            reason: "not_json".into(),
            key: Some("頁".into()),
            raw: raw.map(<[u8]>::to_vec),
            hides_records: false,
        }
    }

    fn marked(file: &LetterFile) -> Mark {
        Mark { letters: Some(file.length()), letters_digest: Some(file.digest()), ..Mark::default() }
    }

    /// Opens the file, and tries again while a process that another test has just started holds the lock.
    fn open(path: &Path) -> LetterFile {
        let is_locked = |file: &io::Result<LetterFile>| {
            file.as_ref().is_err_and(|error| error.to_string().contains("another run"))
        };
        let mut tries = std::iter::repeat_with(|| LetterFile::open(path)).take(100_000);
        tries.find(|file| !is_locked(file)).expect("the lock is released").unwrap()
    }

    #[test]
    fn uncommitted_letters_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letters");
        let mut file = open(&path);
        file.resume_at(None).unwrap();
        file.append(&[letter(3, Some(b"{\"oops")), letter(4, Some(b"\xff\0"))]).unwrap();
        file.sync().unwrap();
        let mark = marked(&file);
        file.append(&[letter(5, None)]).unwrap();
        file.sync().unwrap();
        let first = [
            r#"{"input":"pages","key":"頁","offset":3,"partition":2,"raw":"{\"oops","reason":"not_json"}"#,
            r#"{"input":"pages","key":"頁","offset":4,"partition":2,"raw_base64":"/wA=","reason":"not_json"}"#,
            "",
        ]
        .join("\n");
        let third = r#"{"input":"pages","key":"頁","offset":5,"partition":2,"reason":"not_json"}
"#;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{first}{third}"));
        drop(file);
        file = open(&path);
        file.resume_at(Some(&mark)).unwrap();
        assert_eq!((file.length(), file.digest()), (mark.letters.unwrap(), mark.letters_digest.unwrap()));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a mark needs no note");
        file.append(&[letter(5, None)]).unwrap();
        file.sync().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{first}{third}"));
    }

    /// The process ends between the letters and the first mark.
    #[test]
    fn letters_before_the_first_mark_are_cut_off_and_those_of_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letters");
        let mut file = open(&path);
        file.resume_at(None).unwrap();
        file.append(&[letter(3, None)]).unwrap();
        file.sync().unwrap();
        drop(file);
        file = open(&path);
        file.resume_at(None).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "", "no letter counts yet");
        file.append(&[letter(3, None)]).unwrap();
        file.sync().unwrap();
        let mark = marked(&file);
        file.committed().unwrap();
        drop(file);
        // The output is new, and knows of none; or the file was exchanged for another.
        let whole = std::fs::read_to_string(&path).unwrap();
        let not_own = "that this run has not written; move it away";
        let error = open(&path).resume_at(None).unwrap_err().to_string();
        assert!(error.contains(not_own), "{error}");
        for other in [whole.replace("not_json", "not_text"), "notes\n".to_owned(), "notes\n".repeat(99)] {
            std::fs::write(&path, &other).unwrap();
            let error = open(&path).resume_at(Some(&mark)).unwrap_err().to_string();
            assert!(error.contains(not_own), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
        }
    }

    #[test]
    fn letters_of_a_run_may_be_taken_away_and_those_of_a_replay_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letters");
        let one = "{\"input\":1}\n";
        std::fs::write(&path, one).unwrap();
        let of_length = |length| Mark { letters: Some(length), ..Mark::default() };
        let mut run = open(&path);
        run.resume_at(Some(&of_length(99))).unwrap();
        assert_eq!(run.length(), one.len() as u64);
        drop(run);
        let resume = || LetterFile { as_read: true, ..open(&path) };
        let cut = resume().resume_at(Some(&of_length(99))).unwrap_err();
        assert!(cut.to_string().contains("it has been cut"), "{cut}");
        resume().resume_at(Some(&of_length(one.len() as u64))).unwrap();
    }

    /// An output that keeps no marks.
    #[test]
    fn only_letters_are_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letters");
        std::fs::write(&path, "notes\n").unwrap();
        assert!(open(&path).begin_anew().unwrap_err().to_string().contains("something else"));
        assert!(open(&path).resume_at_end().unwrap_err().to_string().contains("something else"));
        std::fs::write(&path, "{\"input\":1}\n").unwrap();
        open(&path).resume_at_end().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"input\":1}\n");
        open(&path).begin_anew().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    }

    #[test]
    fn a_replay_writes_the_records_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letters");
        std::fs::write(&path, "of an earlier one").unwrap();
        let mut file = LetterFile::create(&path).unwrap();
        file.append(&[letter(3, Some(b"{\"oops")), letter(4, Some(b"\xff")), letter(5, None)]).unwrap();
        file.sync().unwrap();
        let expected = b"{\"oops\n\xff\n{\"file\":\"pages\",\"reason\":\"not_json\"}\n";
        assert_eq!(std::fs::read(&path).unwrap(), expected);
    }
}
