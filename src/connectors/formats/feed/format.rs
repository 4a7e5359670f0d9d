//! JSON Lines as a format of inputs.

use std::io::{self, BufRead, Read as _};

use super::super::bad_record::MAX_RECORD_BYTES;
use super::super::format::{
    FileKind, FormatEntry, OpenedRecords, RawReader, RawRecords, RecordParts, no_doubt, no_refusal,
};
use super::super::storage::FeedReader;

/// One object a line.
pub(in crate::formats) const JSON_LINES: FormatEntry = FormatEntry {
    name: "jsonl",
    aliases: &[],
    help: "JSON Lines: one object per line",
    file: "JSON Lines",
    kind: FileKind::Text,
    endings: &["jsonl", "ndjson", "json", "jsonlines", "ldjson"],
    begins: |beginning| beginning.starts_with(b"{"),
    doubt: no_doubt,
    lacks: None,
    open: |file| {
        let compressed = file.is_compressed();
        Ok(OpenedRecords::Lines(FeedReader { bytes: file.decoded()?, compressed }))
    },
    refuse: no_refusal,
    copy: |file, _| Ok(RawRecords::Bytes(Box::new(RawLines::new(file.decoded()?)))),
};

/// The lines that are not blank, each with the line end that it has; the last one with LF if it has none.
pub(super) struct RawLines {
    bytes: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    is_first: bool,
    is_over: bool,
}

impl RawLines {
    pub(super) fn new(bytes: Box<dyn BufRead + Send>) -> Self {
        Self { bytes, line: Vec::new(), is_first: true, is_over: false }
    }
}

impl RawReader for RawLines {
    fn parts(&self) -> RecordParts<'_> {
        RecordParts::Members
    }

    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        while !self.is_over {
            self.line.clear();
            // The longest line, and its end.
            let mut part = (&mut self.bytes).take(MAX_RECORD_BYTES as u64 + 1);
            if part.read_until(b'\n', &mut self.line).is_err() {
                // The first pass counts what is read of a line, or the error itself, as one record.
                self.is_over = true;
                return Ok(Some(&[]));
            }
            if self.line.is_empty() {
                self.is_over = true;
                break;
            }
            if std::mem::take(&mut self.is_first) && self.line.starts_with(b"\xef\xbb\xbf") {
                self.line.drain(..3);
            }
            if self.line.ends_with(b"\n") {
                if self.line.trim_ascii_start().is_empty() {
                    continue;
                }
            } else if self.line.len() > MAX_RECORD_BYTES {
                self.is_over = self.bytes.skip_until(b'\n').is_err();
            } else if self.line.trim_ascii_start().is_empty() {
                continue;
            } else {
                self.line.push(b'\n');
            }
            return Ok(Some(&self.line));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::raw_records;
    use super::*;

    #[test]
    fn lines_are_records_unless_they_are_blank() {
        let feed = "\u{feff}{\"a\": 1}\r\n\n \t\n  not json\n{\"日\":2}";
        let found = raw_records(&mut RawLines::new(Box::new(feed.as_bytes())));
        assert_eq!(found, ["{\"a\": 1}\r\n", "  not json\n", "{\"日\":2}\n"]);
        assert_eq!(raw_records(&mut RawLines::new(Box::new(&b" \n "[..]))), [""; 0]);
    }
}
