//! A file of dead letters: records that are no events, with where they stand and why, one JSON object a line.
//!
//! ```text
//! {"input":"pages","partition":2,"offset":17,"reason":"bad_id","key":"…","raw":"…"}
//! ```
//!
//! `key` and `raw` are texts, or, where the bytes are no UTF-8, `key_base64` and `raw_base64`; a record
//! without one has none. The length of the file is a part of each mark, so that a restart cuts off what no
//! commit tells of.
//!
//! A replay, which has no marks, writes records as they were read, one a line; of a file that is none, its
//! name and why.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use dupflow_core::doc::Letter;

/// Appends letters, and cuts off what no commit tells of.
#[derive(Debug)]
pub struct LetterFile {
    file: File,
    length: u64,
    lines: Vec<u8>,
    /// Whether records are written as they were read.
    as_read: bool,
}

impl LetterFile {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file, length, lines: Vec::new(), as_read: false })
    }

    /// Creates or empties the file, for records as they were read.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn create(path: &Path) -> io::Result<Self> {
        File::create(path)?;
        Ok(Self { as_read: true, ..Self::open(path)? })
    }

    /// Cuts off what lies behind a length, and goes on from there; of a file that is shorter, from its end.
    ///
    /// # Errors
    /// Those of the file.
    pub fn go_on_from(&mut self, length: u64) -> io::Result<()> {
        if self.file.metadata()?.is_file() {
            self.length = length.min(self.length);
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::Start(self.length))?;
        }
        Ok(())
    }

    /// Adds letters to those that are stored next.
    ///
    /// # Errors
    /// None: they are kept in memory.
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

    /// Stores what has been added; the length of the file then.
    ///
    /// # Errors
    /// Those of the file.
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

/// A letter as it is written.
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
    fn letters_are_written_whole_and_cut_to_what_was_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letters");
        let mut file = LetterFile::open(&path).unwrap();
        file.append(&[letter(3, Some(b"{\"oops")), letter(4, Some(b"\xff\0"))]).unwrap();
        let length = file.sync().unwrap();
        file.append(&[letter(5, None)]).unwrap();
        file.sync().unwrap();
        let first = r#"{"input":"pages","key":"頁","offset":3,"partition":2,"raw":"{\"oops","reason":"not_json"}
{"input":"pages","key":"頁","offset":4,"partition":2,"raw_base64":"/wA=","reason":"not_json"}
"#;
        let third = r#"{"input":"pages","key":"頁","offset":5,"partition":2,"reason":"not_json"}
"#;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{first}{third}"));
        drop(file);
        file = LetterFile::open(&path).unwrap();
        file.go_on_from(length).unwrap();
        assert_eq!(file.sync().unwrap(), length);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
        file.append(&[letter(5, None)]).unwrap();
        file.sync().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{first}{third}"));
    }

    #[test]
    fn a_replay_writes_what_was_read() {
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
