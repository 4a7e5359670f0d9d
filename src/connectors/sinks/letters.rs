//! A file of dead letters: records that are not valid events, each with its position and the reason, as JSON
//! Lines.
//!
//! ```text
//! {"input":"pages","partition":2,"offset":17,"reason":"bad_id","key":"…","raw":"…"}
//! ```
//!
//! `key` and `raw` are texts. Where the bytes are not UTF-8, `key_base64` and `raw_base64` replace them; a
//! record without a key or a value lacks the field. Each mark holds the length of the file, so that a restart
//! cuts off uncommitted letters.
//!
//! A replay has no marks. It writes each record as it was read, one a line; for an unreadable file, an object
//! with its name and the reason.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use dupflow_core::doc::Letter;

/// Appends letters, and cuts off uncommitted ones after a restart.
#[derive(Debug)]
pub struct LetterFile {
    file: File,
    length: u64,
    lines: Vec<u8>,
    /// Whether the records themselves are written, as in a replay, and not JSON objects.
    as_read: bool,
}

impl LetterFile {
    /// Opens the file; creates it if it is missing.
    ///
    /// # Errors
    /// If the file cannot be opened for reading and writing.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file, length, lines: Vec::new(), as_read: false })
    }

    /// Creates or empties the file of a replay.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        File::create(path)?;
        Ok(Self { as_read: true, ..Self::open(path)? })
    }

    /// Opens the file of a replay that is resumed; creates it if it is missing.
    ///
    /// # Errors
    /// If the file cannot be opened for reading and writing.
    pub fn resume(path: &Path) -> io::Result<Self> {
        Ok(Self { as_read: true, ..Self::open(path)? })
    }

    /// Truncates the file to `length` bytes and continues there. A shorter file of a run, whose letters may
    /// have been taken away, is continued at its end.
    ///
    /// # Errors
    /// Any error of the file; if that of a replay, which is part of its result, is shorter.
    pub fn resume_at(&mut self, length: u64) -> io::Result<()> {
        if self.file.metadata()?.is_file() {
            if self.as_read && self.length < length {
                let here = self.length;
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "the file holds {here} bytes, and the replay has written {length}: it has been cut"
                    ),
                ));
            }
            self.length = length.min(self.length);
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::Start(self.length))?;
        }
        Ok(())
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

    /// Writes and syncs the buffered letters. Returns the length of the file in bytes.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn sync(&mut self) -> io::Result<u64> {
        if !self.lines.is_empty() {
            self.file.write_all(&self.lines)?;
            self.file.sync_data()?;
            self.length += self.lines.len() as u64;
            self.lines.clear();
        }
        Ok(self.length)
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
        }
    }

    #[test]
    fn uncommitted_letters_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letters");
        let mut file = LetterFile::open(&path).unwrap();
        file.append(&[letter(3, Some(b"{\"oops")), letter(4, Some(b"\xff\0"))]).unwrap();
        let length = file.sync().unwrap();
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
        file = LetterFile::open(&path).unwrap();
        file.resume_at(length).unwrap();
        assert_eq!(file.sync().unwrap(), length);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
        file.append(&[letter(5, None)]).unwrap();
        file.sync().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{first}{third}"));
    }

    #[test]
    fn letters_of_a_run_may_be_taken_away_and_those_of_a_replay_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letters");
        std::fs::write(&path, "one\n").unwrap();
        let mut run = LetterFile::open(&path).unwrap();
        run.resume_at(9).unwrap();
        assert_eq!(run.sync().unwrap(), 4);
        let cut = LetterFile::resume(&path).unwrap().resume_at(9).unwrap_err();
        assert!(cut.to_string().contains("it has been cut"), "{cut}");
        LetterFile::resume(&path).unwrap().resume_at(4).unwrap();
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
