//! A JSON array of objects as JSON Lines.
//!
//! The bytes of an array, or of several after each other -> a line for each element, so that all rules for
//! lines are those for elements: line n is element n. Only what is between tokens changes: line ends there
//! are blanks. A line end within a string, where JSON has none, becomes a control character, so that the
//! element stays bad and stays one. What is no element where one is expected is a line of its own, and a bad
//! record. An array without its end is damage, as a compressed feed that ends early is.

use std::io::{self, BufRead, Read};

use super::super::format::{FileKind, FormatEntry, OpenedRecords, RawRecords, StoredFile, no_refusal};
use super::super::storage::{FeedReader, READ_BYTES, read_buffered};
use super::format::RawLines;

/// An array of objects.
pub(in crate::formats) const JSON_ARRAY: FormatEntry = FormatEntry {
    name: "json",
    aliases: &[],
    help: "A JSON array of objects",
    file: "a JSON array",
    kind: FileKind::Text,
    endings: &[],
    begins,
    doubt: |beginning| {
        let begin = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
        let why = "it is no JSON array: it begins as JSON Lines do, leave --format out";
        begin.starts_with(b"{").then(|| why.to_owned())
    },
    lacks: None,
    open: |file| Ok(OpenedRecords::Lines(FeedReader { bytes: lines(file)?, compressed: true })),
    refuse: no_refusal,
    copy: |file, _| Ok(RawRecords::Bytes(Box::new(RawLines::new(lines(file)?)))),
};

/// Whether a text begins with an array whose first element, if it has one, is an object, as far as it is
/// known.
fn begins(text: &[u8]) -> bool {
    text.strip_prefix(b"[").is_some_and(|rest| {
        let first = rest.trim_ascii_start();
        // An array without elements is one if nothing follows it.
        first.starts_with(b"{") || first.trim_ascii_end() == b"]" || first.is_empty() && rest.contains(&b'\n')
    })
}

fn lines(file: StoredFile<'_>) -> io::Result<Box<dyn BufRead + Send>> {
    Ok(Box::new(ArrayLines { bytes: file.decoded()?, state: State::Outside, out: Vec::new(), at: 0 }))
}

/// The elements of an array as lines.
struct ArrayLines<R> {
    bytes: R,
    state: State,
    /// Lines that were not all taken yet, from `at` on.
    out: Vec<u8>,
    at: usize,
}

/// What has been read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No array is open.
    Outside,
    /// What an element follows: the begin of the array, or a comma.
    Before,
    /// A byte of an element, inside this many brackets.
    Inside { depth: u32 },
    /// A byte of a string in it; `is_escaped`: the next byte does not end it.
    Text { depth: u32, is_escaped: bool },
}

impl<R: BufRead> ArrayLines<R> {
    /// Reads on until there is a part of a line, or the end.
    fn fill(&mut self) -> io::Result<()> {
        self.out.clear();
        self.at = 0;
        while self.out.is_empty() {
            let Self { bytes, state, out, .. } = self;
            let read = bytes.fill_buf()?;
            let length = read.len().min(READ_BYTES);
            if length == 0 {
                return match state {
                    State::Outside => Ok(()),
                    _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the JSON array has no end")),
                };
            }
            read[..length].iter().for_each(|byte| *state = state.after(*byte, out));
            bytes.consume(length);
        }
        Ok(())
    }
}

impl State {
    /// The state after a byte, which is added to the lines if it belongs to an element.
    fn after(self, byte: u8, out: &mut Vec<u8>) -> Self {
        let is_blank = byte.is_ascii_whitespace();
        match self {
            Self::Text { depth, is_escaped } => {
                out.push(if matches!(byte, b'\n' | b'\r') { 1 } else { byte });
                match byte {
                    b'"' if !is_escaped => Self::Inside { depth },
                    _ => Self::Text { depth, is_escaped: byte == b'\\' && !is_escaped },
                }
            }
            Self::Inside { depth: 0 } if byte == b',' => {
                out.push(b'\n');
                Self::Before
            }
            Self::Inside { depth: 0 } if byte == b']' => {
                out.push(b'\n');
                Self::Outside
            }
            Self::Inside { depth } => {
                out.push(if is_blank { b' ' } else { byte });
                match byte {
                    b'"' => Self::Text { depth, is_escaped: false },
                    b'{' | b'[' => Self::Inside { depth: depth.saturating_add(1) },
                    b'}' | b']' => Self::Inside { depth: depth.saturating_sub(1) },
                    _ => Self::Inside { depth },
                }
            }
            _ if is_blank => self,
            // A byte order mark.
            Self::Outside if matches!(byte, 0xef | 0xbb | 0xbf) => self,
            Self::Outside if byte == b'[' => Self::Before,
            Self::Before if byte == b']' => Self::Outside,
            Self::Before if byte == b',' => {
                out.extend_from_slice(b",\n");
                Self::Before
            }
            Self::Outside | Self::Before => Self::Inside { depth: 0 }.after(byte, out),
        }
    }
}

impl<R: BufRead> Read for ArrayLines<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

impl<R: BufRead> BufRead for ArrayLines<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.out.len() {
            self.fill()?;
        }
        Ok(&self.out[self.at..])
    }

    fn consume(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.out.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines, whatever the lengths of reads are; and whether the array ends.
    fn lines(json: &str) -> (Vec<String>, bool) {
        let read = |room| {
            let bytes = io::BufReader::with_capacity(room, json.as_bytes());
            let mut lines = ArrayLines { bytes, state: State::Outside, out: Vec::new(), at: 0 };
            let mut all = Vec::new();
            let is_whole = lines.read_to_end(&mut all).is_ok();
            let text = String::from_utf8(all).unwrap();
            (text.lines().map(str::to_owned).collect::<Vec<_>>(), is_whole)
        };
        let found = read(1);
        assert_eq!(read(7), found);
        assert_eq!(read(8192), found);
        found
    }

    #[test]
    fn elements_are_lines() {
        for (json, expected) in [
            (r#"[{"id":1},{"id":2}]"#, &[r#"{"id":1}"#, r#"{"id":2}"#][..]),
            ("\u{feff} [\n{\"a\":\n[1,{\"b\":2}]}\r\n]\n", &["{\"a\": [1,{\"b\":2}]}  "]),
            (r#"[{"t":"a,]}\"\\"},{"日":"本"}]"#, &[r#"{"t":"a,]}\"\\"}"#, r#"{"日":"本"}"#]),
            ("[]", &[]),
            ("[{}] [{}]", &["{}", "{}"]),
            ("[{},]", &["{}"]),
            // What is none is a line, which is no JSON or no object.
            ("[{},,{}]", &["{}", ",", "{}"]),
            ("[{}{},5]", &["{}{}", "5"]),
            ("[{\"t\":\"a\nb\"},{}]", &["{\"t\":\"a\u{1}b\"}", "{}"]),
        ] {
            assert_eq!(lines(json), (expected.iter().map(|&line| line.to_owned()).collect(), true), "{json}");
        }
    }

    #[test]
    fn arrays_are_known_by_their_beginning() {
        for (text, is_array) in [
            ("[{\"id\":1}]", true),
            ("[ {", true),
            ("[]", true),
            ("[\n]\n", true),
            ("[\n", true),
            ("[]\n[]\n", false),
            ("[1,2]", false),
            ("[", false),
            ("{\"a\":[]}", false),
        ] {
            assert_eq!(begins(text.as_bytes()), is_array, "{text:?}");
        }
    }

    #[test]
    fn an_array_without_an_end_is_damage() {
        for json in ["[", "[{}", "[{},", "[{\"a", "[{}] x"] {
            assert!(!lines(json).1, "{json}");
        }
        assert_eq!(lines("[{},{\"id\":12").0, ["{}", "{\"id\":12"]);
    }
}
