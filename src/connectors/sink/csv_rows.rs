//! Rows as comma-separated values: RFC 4180, but that lines end with a newline alone.
//!
//! A header with the names of the columns comes first, also where there is no row. Ids stand as they are, in
//! quotes where a comma, a quote or an end of line is in them; numbers have the digits that they have in JSON
//! Lines. A cell of nothing is empty.

use std::fmt;
use std::io::{self, BufRead};

use csv::{ByteRecord, Writer};

use super::Destination;
use super::rows::{Cell, Row, RowKind, Rows};
use crate::mark::{Mark, Standing};

/// Rows as comma-separated values, with a header.
pub struct Csv<W: io::Write> {
    /// None only while a commit is under way.
    writer: Option<Writer<W>>,
    kind: RowKind,
    has_header: bool,
}

impl<W: Destination> Csv<W> {
    /// Writes rows of a kind.
    pub fn new(out: W, kind: RowKind) -> Self {
        Self { writer: Some(Writer::from_writer(out)), kind, has_header: false }
    }

    /// The writer, once the header has been written.
    fn writer(&mut self) -> io::Result<&mut Writer<W>> {
        let Self { writer, kind, has_header } = self;
        let writer = writer.as_mut().ok_or_else(|| io::Error::other("an earlier commit has failed"))?;
        if !std::mem::replace(has_header, true) {
            writer.write_record(kind.columns().iter().map(|(name, _)| name)).map_err(told)?;
        }
        Ok(writer)
    }

    /// Does something with the destination, to which everything has been written.
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

/// What the destination says, of its kind: whoever writes has to know that nobody reads on.
fn told(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}")),
    }
}

impl<W: Destination> Rows for Csv<W> {
    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let writer = self.writer()?;
        row.cells(&mut |cells| {
            let mut record = ByteRecord::new();
            for cell in cells {
                match cell {
                    Cell::Nothing => record.push_field(b""),
                    Cell::Text(text) => record.push_field(text.as_bytes()),
                    Cell::Whole(number) => record.push_field(number.to_string().as_bytes()),
                    Cell::Real(number) => record.push_field(&serde_json::to_vec(number)?),
                }
            }
            writer.write_byte_record(&record).map_err(told)
        })
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        let standing = self.with(Destination::take_over)?;
        // The first commit has written it, with rows or without.
        self.has_header = matches!(standing, Standing::At(_));
        Ok(standing)
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "an output of comma-separated values is not read back: take JSON Lines for one that is to be corrected",
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

impl<W: io::Write> fmt::Debug for Csv<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Csv").field("kind", &self.kind).finish_non_exhaustive()
    }
}
