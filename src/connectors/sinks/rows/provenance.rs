//! Rows with their provenance: what is known at the beginning before the first row, the rest after the last.

use std::io::{self, BufRead};

use super::row::{OutputRow, RowWriter};
use crate::mark::{Mark, Standing};

/// Says by what and of what an output was made. Each text is one JSON object without a line break.
pub trait OutputProvenance: Send {
    /// What is known before the first row.
    fn first(&self) -> String;

    /// What is known after the last row, and not before.
    fn last(&self) -> String;

    /// All of it, after the last row.
    fn whole(&self) -> String;
}

/// Writes rows between the two parts of their provenance.
#[expect(missing_debug_implementations, reason = "a provenance is any object")]
pub struct WithProvenance<R> {
    rows: R,
    provenance: Box<dyn OutputProvenance>,
    has_begun: bool,
}

impl<R: RowWriter> WithProvenance<R> {
    /// Rows with this provenance, for an output that begins empty.
    pub fn new(rows: R, provenance: Box<dyn OutputProvenance>) -> Self {
        Self { rows, provenance, has_begun: false }
    }

    /// The rows; writes the first part of the provenance if it is not written yet.
    fn rows(&mut self) -> io::Result<&mut R> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.rows.provenance(&self.provenance.first(), None)?;
        }
        Ok(&mut self.rows)
    }
}

impl<R: RowWriter> RowWriter for WithProvenance<R> {
    fn row(&mut self, row: &dyn OutputRow) -> io::Result<()> {
        self.rows()?.row(row)
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        self.rows.take_over()
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        self.rows.lines()
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.rows()?.commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        let (line, whole) = (self.provenance.last(), self.provenance.whole());
        self.rows()?.provenance(&line, Some(&whole))?;
        self.rows.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::rows::JsonLines;

    struct Parts;

    impl OutputProvenance for Parts {
        fn first(&self) -> String {
            "{\"provenance\":1}".to_owned()
        }

        fn last(&self) -> String {
            "{\"provenance_end\":2}".to_owned()
        }

        fn whole(&self) -> String {
            "{\"provenance\":12}".to_owned()
        }
    }

    #[test]
    fn an_output_without_rows_has_both_parts() {
        let mut out = Vec::new();
        let mut rows = WithProvenance::new(JsonLines(&mut out), Box::new(Parts));
        rows.commit(&Mark::default()).unwrap();
        rows.finish().unwrap();
        drop(rows);
        assert_eq!(String::from_utf8(out).unwrap(), "{\"provenance\":1}\n{\"provenance_end\":2}\n");
    }
}
