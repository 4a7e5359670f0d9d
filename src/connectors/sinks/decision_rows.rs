//! The sink of decisions as rows of a file.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, BufRead, Write};
use std::sync::Arc;

use super::book::{Book, Decision, DecisionMode, LastDecisions};
use super::contract::Sink;
use super::destination::Destination;
use super::rows::{JsonLines, OutputCell, OutputRow, RowRecord, RowWriter};
use crate::instant;
use crate::mark::{Mark, Standing};
use dupflow_core::cluster::Clusters;
use dupflow_core::doc::{DocChange, Letter, UpsertedDoc};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{Epoch, Progress, unix_milliseconds};
use dupflow_run::metrics::Metrics;

/// Writes decisions epoch by epoch, by id within an epoch. Flushes at each commit, so that a reader sees
/// whole epochs.
pub struct DecisionRows<R> {
    out: R,
    book: Book,
}

/// Decisions as JSON Lines.
pub type DecisionLines<W> = DecisionRows<JsonLines<W>>;

impl<W: Destination> DecisionLines<W> {
    /// Writes JSON Lines to `out`, which should be buffered. `clusters` must be empty.
    pub fn new(out: W, mode: DecisionMode, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self::with_rows(JsonLines(out), mode, clusters, metrics)
    }
}

impl<R: RowWriter> DecisionRows<R> {
    /// As [`DecisionLines::new`], with rows in any format.
    pub fn with_rows(out: R, mode: DecisionMode, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { out, book: Book::new(clusters).with_decisions(mode, metrics) }
    }

    fn write(&mut self, epoch: Epoch, decisions: &[Decision]) -> io::Result<()> {
        let at = instant::millisecond_of(unix_milliseconds());
        let record = |decision| DecisionRecord { decision, epoch, at: &at };
        decisions.iter().map(record).try_for_each(|record| self.out.row(&OutputRow::Record(&record)))
    }
}

/// A decision as it is written.
struct DecisionRecord<'a> {
    decision: &'a Decision,
    epoch: Epoch,
    at: &'a str,
}

impl RowRecord for DecisionRecord<'_> {
    fn write(&self, mut out: &mut dyn Write) -> io::Result<()> {
        self.decision.write(&mut out, self.epoch, self.at)
    }

    fn cells(&self, each: &mut dyn FnMut(&[OutputCell<'_>]) -> io::Result<()>) -> io::Result<()> {
        let repeats = self.decision.repeats()?;
        each(&self.decision.cells(self.epoch, self.at, repeats.as_deref()))
    }
}

impl<R: RowWriter> Sink for DecisionRows<R> {
    fn take_over(&mut self) -> io::Result<Standing> {
        let standing = self.out.take_over()?;
        if standing == Standing::New {
            // Documents from a state that is there are missing in this new output.
            self.book.correct_decisions(LastDecisions::default());
        }
        Ok(standing)
    }

    /// Always empty: the output holds decisions. They are read here and corrected once all pairs are known.
    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        let mut last = LastDecisions::default();
        for line in self.out.lines()?.lines() {
            last.add(line?.as_bytes())?;
        }
        self.book.correct_decisions(last);
        Ok(BTreeSet::new())
    }

    fn wants_documents(&self) -> bool {
        true
    }

    fn documents(&mut self, changes: &[DocChange], _: bool) -> io::Result<()> {
        self.book.documents(changes);
        Ok(())
    }

    fn wants_upserts(&self) -> bool {
        true
    }

    fn upserts(&mut self, upserts: &[UpsertedDoc]) -> io::Result<()> {
        self.book.upserts(upserts);
        Ok(())
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.book.restored(deltas);
    }

    fn live(&mut self, _: Epoch) {
        self.book.live();
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        let answers = self.book.advance(deltas);
        self.write(progress.epoch, &answers.decisions)
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        let answers = self.book.corrections(mark);
        self.write(mark.progress.epoch, &answers.decisions)?;
        self.out.commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.finish()
    }
}

impl<R> fmt::Debug for DecisionRows<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionRows").field("book", &self.book).finish_non_exhaustive()
    }
}
