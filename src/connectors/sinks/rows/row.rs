//! A row of an output, and the trait of the formats.

use std::io::{self, BufRead};

use super::column::{ColumnType, OutputCell};
use crate::mark::{Mark, Standing};

/// Names and types of the columns of all rows of an output, in order. The names are the keys of JSON Lines.
pub type Columns = Vec<(&'static str, ColumnType)>;

/// Takes the cells of a row.
pub type EachCells<'a> = dyn FnMut(&[OutputCell<'_>]) -> io::Result<()> + 'a;

/// One row of an output. What it has is decided by its [answer](crate::sinks::answers), how it is written by
/// a format.
pub trait OutputRow {
    /// Appends it as one JSON object, without a line break.
    ///
    /// # Errors
    /// None but those of a value that is no JSON.
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()>;

    /// Calls `each` with its cells, in the order of the columns; for a cluster, once for each member.
    ///
    /// # Errors
    /// As [`Self::write`], and any error of `each`.
    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()>;
}

/// Writes rows in one format.
///
/// Contract: that of [`Sink`](crate::sinks::Sink) for the calls of the same names. Rows written between two
/// commits belong to the second one.
pub trait RowWriter {
    /// Writes a row.
    ///
    /// # Errors
    /// Any error of the destination.
    fn row(&mut self, row: &dyn OutputRow) -> io::Result<()>;

    /// Writes what the output was made by and of: the part that is known by now as one JSON object, and all
    /// of it at the end. A format that has no place for it leaves it out.
    ///
    /// # Errors
    /// Any error of the destination.
    fn provenance(&mut self, _line: &str, _whole: Option<&str>) -> io::Result<()> {
        Ok(())
    }

    /// See [`Sink::take_over`](crate::sinks::Sink::take_over). A format whose file is whole at its end only
    /// keeps no marks.
    ///
    /// # Errors
    /// Any error of the destination.
    fn take_over(&mut self) -> io::Result<Standing> {
        Ok(Standing::Forgets)
    }

    /// The durable rows as JSON Lines.
    ///
    /// # Errors
    /// Any error of the destination; [`io::ErrorKind::Unsupported`] if this format cannot be read back.
    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "rows of this format are not read back"))
    }

    /// See [`Sink::commit`](crate::sinks::Sink::commit). Of a file that is whole at its end no row can be
    /// read before.
    ///
    /// # Errors
    /// Any error of the destination.
    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    /// Writes out everything that is still buffered.
    ///
    /// # Errors
    /// Any error of the destination.
    fn finish(&mut self) -> io::Result<()>;
}

impl<R: RowWriter + ?Sized> RowWriter for Box<R> {
    fn row(&mut self, row: &dyn OutputRow) -> io::Result<()> {
        (**self).row(row)
    }

    fn provenance(&mut self, line: &str, whole: Option<&str>) -> io::Result<()> {
        (**self).provenance(line, whole)
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        (**self).take_over()
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        (**self).lines()
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        (**self).commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        (**self).finish()
    }
}
