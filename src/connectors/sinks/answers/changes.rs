//! An answer that is written change by change, and the sink that writes it to rows of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, BufRead};
use std::ops::DerefMut;

use crate::mark::{Mark, Standing};
use crate::sinks::contract::Sink;
use crate::sinks::rows::pair_json::PairStyle;
use crate::sinks::rows::{OutputRow, RowWriter};
use dupflow_core::doc::{DocChange, DocId, Letter, UpsertedDoc};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{Epoch, EpochTimes, Progress};

/// What the records of a place are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordForm {
    /// Changes, as rows of a file.
    Rows,
    /// Changes, as records of a topic.
    Deltas,
    /// What is in force of each key, as records of a topic.
    Present,
}

/// What a record of a topic is about: records with one key are in order there.
#[derive(Clone, Copy, Debug)]
pub enum RecordKey<'a> {
    /// A pair, by what is written of it.
    Pair(&'a DocPair, PairStyle),
    /// A document, or the cluster that it names.
    Document(&'a DocId),
}

/// Takes a record: `None` says that what the key is about has ended. Lines always have a row.
pub type EachRecord<'a> = dyn FnMut(RecordKey<'_>, Option<&dyn OutputRow>) -> io::Result<()> + 'a;

/// Takes a record of a place, key and value; no value is an end.
pub type EachRead<'a> = dyn FnMut(Option<&[u8]>, Option<&[u8]>) -> io::Result<()> + 'a;

/// Passes all records of a place, those of one key in their order. Lines have no key.
pub type ReadBack<'a> = dyn FnMut(&mut EachRead<'_>) -> io::Result<()> + 'a;

/// What each key holds by its last record.
pub(super) fn last_of_each<R>(
    records: &mut ReadBack<'_>,
    mut read: impl FnMut(&[u8], &[u8]) -> io::Result<R>,
) -> io::Result<BTreeMap<Vec<u8>, R>> {
    let mut now = BTreeMap::new();
    records(&mut |key, value| {
        let key = key.unwrap_or_default();
        match value {
            Some(value) => drop(now.insert(key.to_vec(), read(key, value)?)),
            None => drop(now.remove(key)),
        }
        Ok(())
    })?;
    Ok(now)
}

/// An answer that is written change by change. The calls are those of [`Sink`], in its order.
pub trait Changes {
    /// Takes what a place holds of the answer, which is to be corrected. Returns the pairs that it adds up
    /// to: the caller passes what they lack as deltas. Of an answer that holds no pairs there are none, all
    /// pairs are passed, and [`Self::corrections`] says at the end what the place lacks.
    ///
    /// # Errors
    /// Any error of the place; that it holds something else.
    fn read_back(&mut self, form: RecordForm, records: &mut ReadBack<'_>) -> io::Result<BTreeSet<DocPair>>;

    /// The place is new: documents from a state that is there are missing in it.
    fn begin(&mut self) {}

    /// Takes the times of the next epoch.
    fn times(&mut self, _: EpochTimes) {}

    /// Whether changes and upserts of documents are to be passed.
    fn wants_documents(&self) -> bool {
        false
    }

    /// Takes the changes of documents of an epoch.
    fn documents(&mut self, _: &[DocChange]) {}

    /// Takes the upserts of an epoch.
    fn upserts(&mut self, _: &[UpsertedDoc]) {}

    /// Takes deltas that the place already holds.
    fn restored(&mut self, _: &[Delta]) {}

    /// The run is live.
    fn live(&mut self) {}

    /// Passes the records of an epoch.
    ///
    /// # Errors
    /// Any error of `each`.
    fn epoch(
        &mut self,
        form: RecordForm,
        epoch: Epoch,
        deltas: &[Delta],
        each: &mut EachRecord<'_>,
    ) -> io::Result<()>;

    /// Passes the records that a commit with this mark has besides: those that correct the place.
    ///
    /// # Errors
    /// Any error of `each`.
    fn corrections(&mut self, _: RecordForm, _: &Mark, _: &mut EachRecord<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the changes of an answer as rows, epoch by epoch. Flushes at each commit, so that a reader sees
/// whole epochs.
pub struct RowSink<C, R> {
    changes: C,
    out: R,
}

impl<C: DerefMut<Target: Changes>, R: RowWriter> RowSink<C, R> {
    /// Rows in one format.
    pub fn with_rows(changes: C, out: R) -> Self {
        Self { changes, out }
    }
}

impl<C: DerefMut<Target: Changes>, R: RowWriter> Sink for RowSink<C, R> {
    fn take_over(&mut self) -> io::Result<Standing> {
        let standing = self.out.take_over()?;
        if standing == Standing::New {
            self.changes.begin();
        }
        Ok(standing)
    }

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        let mut lines = self.out.lines()?;
        let mut line = Vec::new();
        self.changes.read_back(RecordForm::Rows, &mut |each| {
            while lines.read_until(b'\n', &mut line)? > 0 {
                each(None, Some(line.strip_suffix(b"\n").unwrap_or(&line)))?;
                line.clear();
            }
            Ok(())
        })
    }

    fn wants_documents(&self) -> bool {
        self.changes.wants_documents()
    }

    fn documents(&mut self, changes: &[DocChange], _: bool) -> io::Result<()> {
        self.changes.documents(changes);
        Ok(())
    }

    fn wants_upserts(&self) -> bool {
        self.changes.wants_documents()
    }

    fn upserts(&mut self, upserts: &[UpsertedDoc]) -> io::Result<()> {
        self.changes.upserts(upserts);
        Ok(())
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.changes.restored(deltas);
    }

    fn live(&mut self, _: Epoch) {
        self.changes.live();
    }

    fn times(&mut self, times: EpochTimes) {
        self.changes.times(times);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        let Self { changes, out } = self;
        changes.epoch(RecordForm::Rows, progress.epoch, deltas, &mut |_, row| {
            row.map_or(Ok(()), |row| out.row(row))
        })
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        let Self { changes, out } = self;
        changes.corrections(RecordForm::Rows, mark, &mut |_, row| row.map_or(Ok(()), |row| out.row(row)))?;
        out.commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.finish()
    }
}

impl<C, R> fmt::Debug for RowSink<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowSink").finish_non_exhaustive()
    }
}
