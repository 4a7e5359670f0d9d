//! Rows as comma-separated values: RFC 4180, except that lines end with `\n` instead of `\r\n`.
//!
//! The first line holds the column names, also where there is no row. An id is written unchanged, in quotes
//! where it has a comma, a quote or a line break. Numbers have the same digits as in JSON Lines. A missing
//! value is an empty cell.

use std::fmt;
use std::io::{self, BufRead};

use csv::{ByteRecord, Writer};

use super::column::OutputCell;
use super::format::RowFormat;
use super::row::{Columns, OutputRow, RowWriter};
use crate::mark::{Mark, Standing};
use crate::sinks::destination::Destination;

pub(super) const FORMAT: RowFormat = RowFormat {
    name: "csv",
    help: "Comma-separated values with a header line",
    has_columns: true,
    is_of_end: false,
    holds_provenance: false,
    feature: None,
    open: Some(|out, columns| Ok(Box::new(CsvRows::new(out, columns)))),
};

/// Writes rows as comma-separated values, with a header.
pub struct CsvRows<W: io::Write> {
    /// `None` only during a commit, and after one that failed.
    writer: Option<Writer<W>>,
    columns: Columns,
    has_header: bool,
}

impl<W: Destination> CsvRows<W> {
    /// Rows with these columns.
    pub fn new(out: W, columns: Columns) -> Self {
        Self { writer: Some(Writer::from_writer(out)), columns, has_header: false }
    }

    /// The CSV writer; writes the header first if it is not written yet.
    fn writer(&mut self) -> io::Result<&mut Writer<W>> {
        let Self { writer, columns, has_header } = self;
        let writer = writer.as_mut().ok_or_else(|| io::Error::other("an earlier commit has failed"))?;
        if !std::mem::replace(has_header, true) {
            writer.write_record(columns.iter().map(|(name, _)| name)).map_err(io_error)?;
        }
        Ok(writer)
    }

    /// Calls `what` with the destination, after all buffered rows are written to it.
    fn with<T>(&mut self, what: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        let Some(writer) = self.writer.take() else {
            return Err(io::Error::other("an earlier commit has failed"));
        };
        let mut out = writer.into_inner().map_err(|error| {
            let error = error.error();
            io::Error::new(error.kind(), error.to_string())
        })?;
        let done = what(&mut out);
        self.writer = Some(Writer::from_writer(out));
        done
    }
}

/// Keeps the kind of an I/O error: the caller must recognize a closed pipe.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}")),
    }
}

impl<W: Destination> RowWriter for CsvRows<W> {
    fn row(&mut self, row: &dyn OutputRow) -> io::Result<()> {
        let writer = self.writer()?;
        row.cells(&mut |cells| {
            let mut record = ByteRecord::new();
            for cell in cells {
                match cell {
                    OutputCell::Missing => record.push_field(b""),
                    OutputCell::Text(text) => record.push_field(text.as_bytes()),
                    OutputCell::Integer(number) => record.push_field(number.to_string().as_bytes()),
                    OutputCell::Float(number) => record.push_field(&serde_json::to_vec(number)?),
                    OutputCell::Flag(is) => record.push_field(if *is { b"true" } else { b"false" }),
                }
            }
            writer.write_byte_record(&record).map_err(io_error)
        })
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        let standing = self.with(Destination::take_over)?;
        // The first commit writes the header even without rows.
        self.has_header = matches!(standing, Standing::At(_));
        Ok(standing)
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "an output of comma-separated values is not read back, so it cannot be corrected: move it and \
             its .mark away, and the next run writes its whole result anew, or take JSON Lines",
        ))
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.writer()?;
        self.with(|out| out.commit(mark))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer()?.flush()
    }
}

impl<W: io::Write> fmt::Debug for CsvRows<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvRows").field("columns", &self.columns).finish_non_exhaustive()
    }
}
