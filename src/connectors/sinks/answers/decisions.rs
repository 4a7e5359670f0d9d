//! The answer "decisions": in every epoch, what is found of each document that it upserts, by id.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use super::answer::{Answer, Subject, Written};
use super::changes::{Changes, EachRecord, ReadBack, RecordForm, RecordKey, RowSink};
use crate::instant;
use crate::mark::Mark;
use crate::sinks::book::{Book, Decision, DecisionMode, LastDecisions};
use crate::sinks::destination::Destination;
use crate::sinks::rows::{EachCells, JsonLines, OutputRow};
use dupflow_core::cluster::Clusters;
use dupflow_core::doc::{DocChange, UpsertedDoc};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{Epoch, unix_milliseconds};
use dupflow_run::metrics::Metrics;

pub(super) const ANSWER: Answer = Answer {
    name: "decisions",
    help: "In every epoch, what is found of each document that it upserts",
    written: Written::Changes(|of| {
        Box::new(DecisionChanges::new(of.decisions(), of.clusters(), of.counted().decisions))
    }),
    columns: |_| Decision::COLUMNS.to_vec(),
    sized: None,
    about: Subject::Decisions,
    adds_up: None,
    takes_units: false,
};

/// A decision as it is written.
struct DecisionRow<'a> {
    decision: &'a Decision,
    epoch: Epoch,
    at: &'a str,
}

impl OutputRow for DecisionRow<'_> {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        self.decision.write(out, self.epoch, self.at)
    }

    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()> {
        let repeats = self.decision.repeats()?;
        each(&self.decision.cells(self.epoch, self.at, repeats.as_deref()))
    }
}

/// The decisions of every epoch.
#[derive(Debug)]
pub struct DecisionChanges {
    book: Book,
}

impl DecisionChanges {
    /// `clusters` must be empty.
    pub fn new(mode: DecisionMode, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { book: Book::new(clusters).with_decisions(mode, metrics) }
    }

    /// Passes decisions. The key is the document, whose end has no value. An upsert of a document that is not
    /// alive has its decision, and then the end.
    fn pass(
        &self,
        form: RecordForm,
        epoch: Epoch,
        decisions: &[Decision],
        each: &mut EachRecord<'_>,
    ) -> io::Result<()> {
        let at = instant::millisecond_of(unix_milliseconds());
        let is_line = form == RecordForm::Rows;
        let is_current = self.book.decides() == Some(DecisionMode::Current);
        for decision in decisions {
            let key = RecordKey::Document(&decision.id);
            if is_line || decision.position.is_some() {
                each(key, Some(&DecisionRow { decision, epoch, at: &at }))?;
            }
            if !is_line && is_current && decision.repetition.is_none() {
                each(key, None)?;
            }
        }
        Ok(())
    }
}

impl Changes for DecisionChanges {
    fn read_back(&mut self, _: RecordForm, records: &mut ReadBack<'_>) -> io::Result<BTreeSet<DocPair>> {
        let mut last = LastDecisions::default();
        records(&mut |key, value| match value {
            Some(value) => last.add(value),
            None => {
                last.end(key.unwrap_or_default());
                Ok(())
            }
        })?;
        self.book.correct_decisions(last);
        Ok(BTreeSet::new())
    }

    fn begin(&mut self) {
        self.book.correct_decisions(LastDecisions::default());
    }

    fn wants_documents(&self) -> bool {
        true
    }

    fn documents(&mut self, changes: &[DocChange]) {
        self.book.documents(changes);
    }

    fn upserts(&mut self, upserts: &[UpsertedDoc]) {
        self.book.upserts(upserts);
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.book.restored(deltas);
    }

    fn live(&mut self) {
        self.book.live();
    }

    fn epoch(
        &mut self,
        form: RecordForm,
        epoch: Epoch,
        deltas: &[Delta],
        each: &mut EachRecord<'_>,
    ) -> io::Result<()> {
        let answers = self.book.advance(deltas);
        self.pass(form, epoch, &answers.decisions, each)
    }

    fn corrections(&mut self, form: RecordForm, mark: &Mark, each: &mut EachRecord<'_>) -> io::Result<()> {
        let answers = self.book.corrections(mark);
        self.pass(form, mark.progress.epoch, &answers.decisions, each)
    }
}

/// Decisions as JSON Lines.
pub type DecisionLines<W> = RowSink<Box<DecisionChanges>, JsonLines<W>>;

impl<W: Destination> DecisionLines<W> {
    /// Writes to `out`, which should be buffered. `clusters` must be empty.
    pub fn new(out: W, mode: DecisionMode, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self::with_rows(Box::new(DecisionChanges::new(mode, clusters, metrics)), JsonLines(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::Repetition;
    use dupflow_core::cluster::ClusterKind;
    use dupflow_core::doc::{DocId, Position};

    #[test]
    fn a_decision_has_a_value_and_an_end_has_none() {
        let id = |name: &str| DocId::new(name).unwrap();
        let position = Some(Position { partition: 1, offset: 2 });
        let decisions = [
            Decision { id: id("a"), position, repetition: Some(Repetition::default()) },
            Decision { id: id("b"), position, repetition: None },
            Decision { id: id("c"), position: None, repetition: None },
        ];
        let lines = &[("a", true), ("b", true), ("c", true)][..];
        for (form, mode, expected) in [
            (
                RecordForm::Deltas,
                DecisionMode::Current,
                &[("a", true), ("b", true), ("b", false), ("c", false)][..],
            ),
            (RecordForm::Present, DecisionMode::First, &[("a", true), ("b", true)]),
            (RecordForm::Rows, DecisionMode::First, lines),
            (RecordForm::Rows, DecisionMode::Current, lines),
        ] {
            let clusters = Clusters::new(ClusterKind::Components, 3);
            let answer = DecisionChanges::new(mode, clusters, Arc::new(Metrics::new(0)));
            let mut found = Vec::new();
            let mut each = |key: RecordKey<'_>, row: Option<&dyn OutputRow>| {
                let RecordKey::Document(key) = key else { panic!("{key:?}") };
                found.push((key.to_string(), row.is_some()));
                Ok(())
            };
            answer.pass(form, 7, &decisions, &mut each).unwrap();
            let expected = expected.iter().map(|(key, has_value)| ((*key).to_owned(), *has_value));
            assert_eq!(found, expected.collect::<Vec<_>>(), "{form:?} {mode:?}");
        }
    }
}
