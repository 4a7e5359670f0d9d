//! A side output that is written once, at the end: the final rows as comma-separated values.

use std::cmp::Ordering;
use std::io::{self, Write};

use dupflow_core::reconcile::Reconcile;

/// Adds up changes of rows, and writes the rows that are left, in order, below a line of names.
#[derive(Debug)]
pub struct FinalRows<W: Write> {
    out: W,
    columns: Vec<String>,
    rows: Reconcile<Vec<String>>,
}

impl<W: Write> FinalRows<W> {
    /// Rows with these columns.
    pub fn new(out: W, columns: Vec<String>) -> Self {
        Self { out, columns, rows: Reconcile::default() }
    }

    /// Adds (`diff` 1) or removes (-1) a row.
    pub fn change(&mut self, cells: Vec<String>, diff: isize) {
        self.rows.given(cells, diff);
    }

    /// Writes the rows.
    ///
    /// # Errors
    /// Any error of the output.
    pub fn finish(self) -> io::Result<()> {
        let mut out = csv::Writer::from_writer(self.out);
        out.write_record(&self.columns)?;
        let rows = self.rows.changes(|_, _| Ordering::Equal).into_iter();
        for (cells, _) in rows.filter(|(_, diff)| *diff > 0) {
            out.write_record(cells)?;
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_that_are_left_are_written() {
        let mut out = Vec::new();
        let cells = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let mut rows = FinalRows::new(&mut out, cells(["host", "count"]));
        rows.change(cells(["b, c", "1"]), 1);
        rows.change(cells(["a", "1"]), 1);
        rows.change(cells(["a", "1"]), -1);
        rows.change(cells(["a", "2"]), 1);
        rows.finish().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "host,count\na,2\n\"b, c\",1\n");
    }
}
