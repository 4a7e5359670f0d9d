//! The sink of decisions as JSON Lines.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, BufRead};
use std::sync::Arc;

use super::book::{Book, Decision, DecisionMode, LastDecisions};
use super::contract::Sink;
use super::destination::Destination;
use crate::instant;
use crate::mark::{Mark, Standing};
use dupflow_core::cluster::Clusters;
use dupflow_core::doc::{DocChange, Letter, UpsertedDoc};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::run::metrics::Metrics;
use dupflow_core::time::{Epoch, Progress, unix_milliseconds};

/// Writes decisions epoch by epoch, by id within an epoch. Flushes at each commit, so that a reader sees
/// whole epochs.
pub struct DecisionLines<W> {
    out: W,
    book: Book,
}

impl<W: Destination> DecisionLines<W> {
    /// Writes JSON Lines to `out`, which should be buffered. `clusters` must be empty.
    pub fn new(out: W, mode: DecisionMode, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { out, book: Book::new(clusters).with_decisions(mode, metrics) }
    }

    fn write(&mut self, epoch: Epoch, decisions: &[Decision]) -> io::Result<()> {
        let at = instant::millisecond_of(unix_milliseconds());
        decisions.iter().try_for_each(|decision| {
            decision.write(&mut self.out, epoch, &at)?;
            self.out.write_all(b"\n")
        })
    }
}

impl<W: Destination> Sink for DecisionLines<W> {
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
        self.out.flush()
    }
}

impl<W> fmt::Debug for DecisionLines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionLines").field("book", &self.book).finish_non_exhaustive()
    }
}
