//! The answer "pairs": the final pairs, sorted.
//!
//! ```text
//! {"a":"…","b":"…","similarity":0.912109375}
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use super::answer::{Answer, Subject, Written};
use crate::sinks::contract::EndList;
use crate::sinks::rows::pair_json::{PairStyle, StandardError, write_pair};
use crate::sinks::rows::{ColumnType, Columns, EachCells, OutputCell, OutputRow, RowWriter, whole};
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence};

pub(super) const ANSWER: Answer = Answer {
    name: "pairs",
    help: "All pairs at the end of the input",
    written: Written::AtEnd(|of, rows| {
        Box::new(PairLines::with_rows(rows, of.evidence()).with_style(of.style()))
    }),
    columns: |of| columns(of.style(), of.evidence().is_some()),
    sized: None,
    about: Subject::Pairs,
    adds_up: Some("deltas"),
    takes_units: false,
};

/// The columns of a pair.
pub(super) fn columns(PairStyle { shares, sides }: PairStyle, evidence: bool) -> Columns {
    let mut columns =
        vec![("a", ColumnType::Text), ("b", ColumnType::Text), ("similarity", ColumnType::Float)];
    if shares {
        columns.extend([("in_a", ColumnType::Float), ("in_b", ColumnType::Float)]);
    }
    if evidence {
        columns.extend(["blocks", "look", "components"].map(|name| (name, ColumnType::Integer)));
        columns.push(("standard_error", ColumnType::Float));
    }
    if sides {
        columns.push(("old", ColumnType::Flag));
    }
    columns
}

/// The cells of a pair, with its cause if it is given.
pub(super) fn cells<'a>(
    found: &'a DocPair,
    style: PairStyle,
    evidence: Option<&StandardError>,
    cause: Option<Cause>,
    cells: &mut Vec<OutputCell<'a>>,
) {
    let (ids, old) = style.ids(&found.pair);
    let [a, b] = ids.map(OutputCell::Text);
    cells.extend([a, b, OutputCell::Float(found.similarity.get())]);
    let [in_b, in_a] = found.similarity.shares().map(OutputCell::Float);
    cells.extend([in_a, in_b].into_iter().filter(|_| style.shares));
    if let Some(standard_error) = evidence {
        let Evidence { blocks, look, components } = found.evidence;
        cells.extend([
            whole(blocks),
            whole(look),
            whole(components),
            OutputCell::Float(standard_error(found)),
        ]);
    }
    cells.extend(old.map(OutputCell::Flag));
    cells.extend(cause.map(|cause| OutputCell::Text(cause.name())));
}

/// A pair.
struct PairRow<'a> {
    pair: &'a DocPair,
    style: PairStyle,
    evidence: Option<&'a StandardError>,
}

impl OutputRow for PairRow<'_> {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        out.push(b'{');
        write_pair(out, self.pair, self.style, self.evidence, None, None)
    }

    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()> {
        let mut row = Vec::new();
        cells(self.pair, self.style, self.evidence, None, &mut row);
        each(&row)
    }
}

/// Keeps the pairs that the deltas accumulate to, and writes them at the end, sorted.
pub struct PairLines<R> {
    out: R,
    style: PairStyle,
    evidence: Option<StandardError>,
    alive: BTreeSet<DocPair>,
}

impl<R: RowWriter> PairLines<R> {
    /// Rows in one format, with evidence if there is a standard error.
    pub fn with_rows(out: R, evidence: Option<StandardError>) -> Self {
        Self { out, style: PairStyle::default(), evidence, alive: BTreeSet::new() }
    }

    /// Sets what each row has of its pair.
    #[must_use]
    pub fn with_style(self, style: PairStyle) -> Self {
        Self { style, ..self }
    }
}

impl<R: RowWriter> EndList for PairLines<R> {
    fn follow(&mut self, deltas: &[Delta]) {
        for Delta { pair, diff, .. } in deltas {
            let changed = if *diff > 0 { self.alive.insert(pair.clone()) } else { self.alive.remove(pair) };
            debug_assert!(changed, "every pair accumulates to 0 or 1");
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let Self { out, style, evidence, alive } = self;
        let row = |pair| PairRow { pair, style: *style, evidence: evidence.as_ref() };
        alive.iter().map(row).try_for_each(|row| out.row(&row))?;
        out.finish()
    }
}

impl<W> fmt::Debug for PairLines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairLines").field("alive", &self.alive.len()).finish_non_exhaustive()
    }
}
