//! CSV and TSV as formats of inputs.

use std::io::{self, BufRead};

use super::super::dialect::Dialect;
use super::super::format::{
    FileKind, FormatEntry, OpenedRecords, RawReader, RawRecords, RecordParts, StoredFile, any_beginning,
    no_doubt,
};
use super::super::layout::{CsvQuote, InputLayout};
use super::super::rows::{FileRow, NextRow, RowReader as _, WantedColumns};
use super::reader::CsvReader;

/// A table with commas.
pub(in crate::formats) const CSV: FormatEntry = FormatEntry {
    name: "csv",
    aliases: &[],
    help: "Comma-separated values, with a header",
    file: "CSV",
    kind: FileKind::Table,
    endings: &["csv"],
    begins: any_beginning,
    doubt: no_doubt,
    lacks: None,
    open: |file| open(file, b','),
    refuse: |file| lack(file, b','),
    copy: |file, _| copy(file, b','),
};

/// A table with tabs.
pub(in crate::formats) const TSV: FormatEntry = FormatEntry {
    name: "tsv",
    help: "Tab-separated values, with a header",
    file: "TSV",
    endings: &["tsv", "tab"],
    open: |file| open(file, b'\t'),
    refuse: |file| lack(file, b'\t'),
    copy: |file, _| copy(file, b'\t'),
    ..CSV
};

fn open(file: StoredFile<'_>, usual: u8) -> io::Result<OpenedRecords> {
    let dialect = dialect(file.layout, usual);
    if dialect.escape.is_none() && dialect.quote.is_some() && has_escapes(file.beginning, dialect.delimiter) {
        tracing::warn!(
            input = file.name,
            "there are backslashes before quotes, as pandas and Spark may write them: then --csv-escape '\\' \
             reads the table"
        );
    }
    let columns = file.columns;
    Ok(OpenedRecords::Rows(Box::new(CsvReader::new(file.decoded()?, columns, dialect))))
}

/// Which wanted column the table lacks.
fn lack(file: StoredFile<'_>, usual: u8) -> Option<String> {
    let (dialect, columns) = (dialect(file.layout, usual), file.columns);
    CsvReader::new(file.decoded().ok()?, columns, dialect).lacks()
}

fn copy(file: StoredFile<'_>, usual: u8) -> io::Result<RawRecords> {
    let (dialect, columns) = (dialect(file.layout, usual), file.columns);
    Ok(RawRecords::Bytes(Box::new(RawRows::new(file.decoded()?, dialect, columns)?)))
}

/// How a table is written, by the settings; `usual` separates cells where they do not say.
fn dialect(layout: &InputLayout, usual: u8) -> Dialect {
    let quote = match layout.csv_quote {
        CsvQuote::Usual => Some(b'"'),
        CsvQuote::Named(quote) => Some(quote),
        CsvQuote::None => None,
    };
    Dialect {
        delimiter: layout.csv_delimiter.unwrap_or(usual),
        quote,
        escape: layout.csv_escape,
        is_examined: layout.csv_quote == CsvQuote::Usual,
    }
}

/// Whether quotes are escaped by backslashes: a cell continues after `\"`.
fn has_escapes(beginning: &[u8], delimiter: u8) -> bool {
    let goes_on = |byte: u8| byte != delimiter && !matches!(byte, b'"' | b'\r' | b'\n');
    beginning.windows(3).any(|three| three.starts_with(b"\\\"") && goes_on(three[2]))
}

/// The rows, each with the line end of the first one. What separates them (blank lines) is left out.
struct RawRows {
    rows: CsvReader,
    dialect: Dialect,
    /// With its line end; the same for every file of one table.
    header: Vec<u8>,
    end: &'static [u8],
    row: Vec<u8>,
    read: FileRow,
    is_over: bool,
}

impl RawRows {
    /// The rows of a table.
    ///
    /// # Errors
    /// If its first row cannot be read, or lacks a wanted column.
    fn new(bytes: Box<dyn BufRead + Send>, dialect: Dialect, columns: &WantedColumns) -> io::Result<Self> {
        let mut rows = CsvReader::new(bytes, columns, dialect);
        rows.keep_raw().map_err(|damage| io::Error::other(damage.cause.unwrap_or_default()))?;
        let end = rows.line_end();
        let header = if rows.raw().is_empty() { Vec::new() } else { [rows.raw(), end].concat() };
        Ok(Self { rows, dialect, header, end, row: Vec::new(), read: FileRow::default(), is_over: false })
    }
}

impl RawReader for RawRows {
    fn parts(&self) -> RecordParts<'_> {
        RecordParts::Cells(&self.header, self.dialect)
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

#[cfg(test)]
mod tests {
    use super::super::super::samples::{self, columns, raw_records};
    use super::*;

    fn table(text: &'static str) -> io::Result<RawRows> {
        RawRows::new(Box::new(text.as_bytes()), b','.into(), &columns(&[]))
    }

    #[test]
    fn rows_keep_their_quotes_and_lines() {
        let mut rows = table("\u{feff}id,text\r\na,\"x\r\ny\"\r\n\r\n\"b\", z\r\nbad\r\nc,\"\"").unwrap();
        assert_eq!(rows.parts().header(), "\u{feff}id,text\r\n".as_bytes());
        assert_eq!(raw_records(&mut rows), ["a,\"x\r\ny\"\r\n", "\"b\", z\r\n", "bad\r\n", "c,\"\"\r\n"]);
        let mut blank = table("id,text\n\n\na,b\n").unwrap();
        assert_eq!(
            (blank.parts().header(), raw_records(&mut table("").unwrap()).len()),
            (&b"id,text\n"[..], 0)
        );
        assert_eq!(raw_records(&mut blank), ["a,b\n"]);
        assert!(table("id,body\n").is_err());
    }

    /// All rows together are the table, however long they are and wherever reads end.
    #[test]
    fn all_rows_are_the_table() {
        let mut out = ::csv::Writer::from_writer(Vec::new());
        out.write_record(["id", "text"]).unwrap();
        for (n, text) in samples::texts(300, 7).into_iter().enumerate() {
            out.write_record([n.to_string(), text.repeat(1 + n % 7 * n)]).unwrap();
        }
        let table = out.into_inner().unwrap();
        for room in [1, 7, 8192] {
            let bytes = io::BufReader::with_capacity(room, io::Cursor::new(table.clone()));
            let mut rows = RawRows::new(Box::new(bytes), b','.into(), &columns(&[])).unwrap();
            let whole = [String::from_utf8(rows.parts().header().to_vec()).unwrap()]
                .into_iter()
                .chain(raw_records(&mut rows));
            assert!(whole.collect::<String>().as_bytes() == table, "reads of {room} bytes");
        }
    }
}
