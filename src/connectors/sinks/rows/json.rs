//! Rows as JSON Lines: one object a line.

use std::io::{self, BufRead};

use super::format::RowFormat;
use super::row::{OutputRow, RowWriter};
use crate::mark::{Mark, Standing};
use crate::sinks::destination::Destination;

pub(super) const FORMAT: RowFormat = RowFormat {
    name: "jsonl",
    help: "JSON Lines",
    has_columns: false,
    is_of_end: false,
    holds_provenance: true,
    feature: None,
    open: Some(|out, _| Ok(Box::new(JsonLines(out)))),
};

/// Bytes of a line for which there is room at first.
const LINE_BYTES: usize = 256;

/// Writes rows as JSON Lines.
#[derive(Debug)]
pub struct JsonLines<W>(pub W);

impl<W: Destination> RowWriter for JsonLines<W> {
    fn row(&mut self, row: &dyn OutputRow) -> io::Result<()> {
        let mut line = Vec::with_capacity(LINE_BYTES);
        row.write(&mut line)?;
        line.push(b'\n');
        self.0.write_all(&line)
    }

    fn provenance(&mut self, line: &str, _: Option<&str>) -> io::Result<()> {
        writeln!(self.0, "{line}")
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        self.0.take_over()
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        self.0.lines()
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.0.commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
