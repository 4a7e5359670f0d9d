//! The records of a file as they are written there, for a second pass that copies some of them.
//!
//! A file, decompressed -> the bytes of each record, in the order and the number in which the reader of its
//! format returns them: record n here is record n there, a bad or a skipped one too. So a record is chosen by
//! its number, and its bytes are not parsed again.
//!
//! | format | a record is | written with |
//! |---|---|---|
//! | lines | a line that is not blank, without its line end | the line end that it had; LF if it had none |
//! | CSV, TSV | a row | the line end of the first row |
//! | WARC | head and block | two line ends |
//!
//! The page of a revisit is in another record: the revisit is written as that record, with its own id,
//! address and date.
//!
//! The bytes before the first record (the header of a table, with a byte order mark) are the same for every
//! file of one table. What separates records (blank lines) is not copied.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::bad_record::MAX_RECORD_BYTES;
use super::super::csv::{CsvReader, Dialect};
use super::super::layout::WarcId;
use super::super::rows::{ArchiveRole, FileRow, NextRow, RowReader, WantedColumns};
use super::super::warc::{PageMemory, Warc, revisited};

/// Reads the bytes of a file's records.
pub(crate) trait RawReader: Send {
    /// The bytes before the first record, with their line end; empty if there are none.
    fn header(&self) -> &[u8] {
        &[]
    }

    /// Reads the next record with what follows it; `None` at the end of the file. Of a record that could not
    /// be read any bytes may be returned, of a revisit whose page is not found none.
    ///
    /// # Errors
    /// If the file cannot be read where the first pass could.
    fn next(&mut self) -> io::Result<Option<&[u8]>>;
}

/// The lines of a feed.
pub(crate) fn raw_lines(bytes: Box<dyn BufRead + Send>) -> Box<dyn RawReader> {
    Box::new(RawLines { bytes, line: Vec::new(), is_first: true, is_over: false })
}

/// The rows of a table.
///
/// # Errors
/// If its first row cannot be read, or lacks a wanted column.
pub(crate) fn raw_csv(
    bytes: Box<dyn BufRead + Send>,
    dialect: Dialect,
    columns: &WantedColumns,
) -> io::Result<Box<dyn RawReader>> {
    let mut rows = CsvReader::new(bytes, columns, dialect);
    rows.keep_raw().map_err(|damage| io::Error::other(damage.cause.unwrap_or_default()))?;
    let end = rows.line_end();
    let header = if rows.raw().is_empty() { Vec::new() } else { [rows.raw(), end].concat() };
    Ok(Box::new(RawRows { rows, header, end, row: Vec::new(), read: FileRow::default(), is_over: false }))
}

/// Records of the pages to which revisits may refer, in this and in later archives.
pub(crate) type SharedPages = Arc<Mutex<PageMemory>>;

/// The records of a web archive, from its stored bytes.
pub(crate) fn raw_warc(
    bytes: Box<dyn BufRead + Send>,
    columns: &WantedColumns,
    id: WarcId,
    pages: SharedPages,
) -> Box<dyn RawReader> {
    let records = Warc::new(bytes, columns, id).keep_raw();
    Box::new(RawArchive { records, pages, record: Vec::new(), read: FileRow::default(), is_over: false })
}

struct RawLines {
    bytes: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    is_first: bool,
    is_over: bool,
}

impl RawReader for RawLines {
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

struct RawRows {
    rows: CsvReader,
    header: Vec<u8>,
    end: &'static [u8],
    row: Vec<u8>,
    read: FileRow,
    is_over: bool,
}

impl RawReader for RawRows {
    fn header(&self) -> &[u8] {
        &self.header
    }

    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.is_over || self.header.is_empty() {
            return Ok(None);
        }
        match self.rows.next(&mut self.read) {
            Ok(NextRow::End) => return Ok(None),
            Ok(_) => {}
            Err(damage) => self.is_over = damage.ends,
        }
        self.row.clear();
        self.row.extend_from_slice(self.rows.raw());
        self.row.extend_from_slice(self.end);
        Ok(Some(&self.row))
    }
}

struct RawArchive {
    records: Warc,
    pages: SharedPages,
    record: Vec<u8>,
    read: FileRow,
    is_over: bool,
}

impl RawReader for RawArchive {
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.is_over {
            return Ok(None);
        }
        match self.records.next(&mut self.read) {
            Ok(NextRow::End) => return Ok(None),
            Ok(_) => {}
            Err(damage) => self.is_over = damage.ends,
        }
        let mut pages = self.pages.lock();
        self.record.clear();
        match self.read.role {
            ArchiveRole::Revisit { of, .. } => match pages.find(of) {
                Some(page) => self.record.extend(revisited(&page.content, self.records.raw())),
                None => {
                    pages.hold(&self.read, None);
                    return Ok(Some(&[]));
                }
            },
            _ => self.record.extend_from_slice(self.records.raw()),
        }
        pages.hold(&self.read, Some(self.records.raw()));
        self.record.extend_from_slice(b"\r\n\r\n");
        Ok(Some(&self.record))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::samples;
    use super::*;

    fn all(reader: &mut dyn RawReader) -> Vec<String> {
        let mut found = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            found.push(String::from_utf8(record.to_vec()).unwrap());
        }
        assert!(reader.next().unwrap().is_none(), "the end is the end");
        found
    }

    fn columns() -> WantedColumns {
        WantedColumns {
            id: Some("id".to_owned()),
            text: "text".to_owned(),
            ts: "ts".to_owned(),
            op: "op".to_owned(),
            fields: Vec::new(),
            given: None,
        }
    }

    fn table(text: &'static str) -> Box<dyn RawReader> {
        raw_csv(Box::new(text.as_bytes()), b','.into(), &columns()).unwrap()
    }

    #[test]
    fn lines_are_records_unless_they_are_blank() {
        let feed = "\u{feff}{\"a\": 1}\r\n\n \t\n  not json\n{\"日\":2}";
        let found = all(&mut *raw_lines(Box::new(feed.as_bytes())));
        assert_eq!(found, ["{\"a\": 1}\r\n", "  not json\n", "{\"日\":2}\n"]);
        assert_eq!(all(&mut *raw_lines(Box::new(&b" \n "[..]))), [""; 0]);
    }

    #[test]
    fn rows_keep_their_quotes_and_lines() {
        let mut rows = table("\u{feff}id,text\r\na,\"x\r\ny\"\r\n\r\n\"b\", z\r\nbad\r\nc,\"\"");
        assert_eq!(rows.header(), "\u{feff}id,text\r\n".as_bytes());
        assert_eq!(all(&mut *rows), ["a,\"x\r\ny\"\r\n", "\"b\", z\r\n", "bad\r\n", "c,\"\"\r\n"]);
        let mut blank = table("id,text\n\n\na,b\n");
        assert_eq!((blank.header(), all(&mut *table("")).len()), (&b"id,text\n"[..], 0));
        assert_eq!(all(&mut *blank), ["a,b\n"]);
        assert!(raw_csv(Box::new(&b"id,body\n"[..]), b','.into(), &columns()).is_err());
    }

    /// All rows together are the table, however long they are and wherever reads end.
    #[test]
    fn all_rows_are_the_table() {
        let mut out = csv::Writer::from_writer(Vec::new());
        out.write_record(["id", "text"]).unwrap();
        for (n, text) in samples::texts(300, 7).into_iter().enumerate() {
            out.write_record([n.to_string(), text.repeat(1 + n % 7 * n)]).unwrap();
        }
        let table = out.into_inner().unwrap();
        for room in [1, 7, 8192] {
            let bytes = io::BufReader::with_capacity(room, io::Cursor::new(table.clone()));
            let mut rows = raw_csv(Box::new(bytes), b','.into(), &columns()).unwrap();
            let whole =
                [String::from_utf8(rows.header().to_vec()).unwrap()].into_iter().chain(all(&mut *rows));
            assert!(whole.collect::<String>().as_bytes() == table, "reads of {room} bytes");
        }
    }

    #[test]
    fn records_of_an_archive_are_whole() {
        let record = |kind: &str, block: &str| {
            let length = block.len();
            format!("WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n")
        };
        let records =
            [record("warcinfo", "a: b\r\n"), record("conversion", "日本 text"), record("resource", "")];
        let archive = records.concat();
        assert_eq!(
            all(&mut *raw_warc(
                Box::new(io::Cursor::new(archive)),
                &columns(),
                WarcId::Record,
                Arc::default()
            )),
            records
        );
    }
}
