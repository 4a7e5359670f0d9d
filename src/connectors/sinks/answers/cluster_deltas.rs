//! The answer "cluster-deltas": every change of clusters.
//!
//! ```text
//! {"epoch":7,"diff":1,"document":"…","cluster":"…"}              a change of a membership
//! {"epoch":7,"diff":1,"cluster":"…","size":123456,"giant":true}  a change of a giant
//! ```
//!
//! Epochs ascend. Within an epoch, members by (document, diff), then giants by (cluster, diff), by bytes. As
//! what is in force of a document or a giant, without `diff`. Clusters and giants are defined in
//! [`dupflow_core::cluster`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use super::answer::{Answer, Subject, Written};
use super::changes::{Changes, EachRecord, ReadBack, RecordForm, RecordKey, last_of_each};
use super::clusters::{CLUSTER, reported};
use super::deltas::{CHANGE, TIMES, timed};
use crate::mark::Mark;
use crate::sinks::book::Book;
use crate::sinks::rows::cluster_json::{ReportChange, ReportSums, read_present, write_change, write_present};
use crate::sinks::rows::{EachCells, OutputRow, whole};
use dupflow_core::cluster::{ClusterReport, Clusters};
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{Epoch, EpochTimes};
use dupflow_run::metrics::Metrics;

pub(super) const ANSWER: Answer = Answer {
    name: "cluster-deltas",
    help: "The changes of clusters in every epoch",
    written: Written::Changes(|of| {
        Box::new(ClusterDeltas::new(of.clusters(), of.counted().clusters).with_times(of.has_times()))
    }),
    columns: |of| {
        let times = TIMES.iter().filter(|_| of.has_times());
        CHANGE.iter().chain(&CLUSTER).chain(times).copied().collect()
    },
    sized: None,
    about: Subject::Clusters,
    adds_up: None,
    takes_units: false,
};

/// A change of a cluster, or what is in force after its epoch.
struct ReportRow<'a> {
    epoch: Epoch,
    report: &'a ClusterReport,
    /// `None` of what is in force.
    diff: Option<isize>,
    times: Option<EpochTimes>,
}

impl OutputRow for ReportRow<'_> {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let Self { epoch, report, diff, times } = *self;
        match diff {
            Some(diff) => write_change(out, epoch, report, diff, times),
            None => write_present(out, epoch, report, times),
        }
    }

    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()> {
        let mut cells = vec![whole(self.epoch), whole(self.diff.unwrap_or(1))];
        cells.extend(reported(self.report));
        cells.extend(self.times.into_iter().flat_map(timed));
        each(&cells)
    }
}

/// Every change of clusters.
#[derive(Debug)]
pub struct ClusterDeltas {
    book: Book,
    /// The times of the next epoch, if changes have them.
    times: Option<EpochTimes>,
}

impl ClusterDeltas {
    /// `clusters` must be empty.
    pub fn new(clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { book: Book::new(clusters).with_clusters(metrics), times: None }
    }

    /// Sets whether each change has the times of its epoch.
    #[must_use]
    pub fn with_times(self, times: bool) -> Self {
        Self { times: times.then(EpochTimes::default), ..self }
    }

    /// Passes changes. The key is the document; of a giant, the cluster.
    fn pass(
        &self,
        form: RecordForm,
        epoch: Epoch,
        changes: &[ReportChange],
        each: &mut EachRecord<'_>,
    ) -> io::Result<()> {
        let times = self.times;
        if form != RecordForm::Present {
            return changes.iter().try_for_each(|(report, diff)| {
                let row = ReportRow { epoch, report, diff: Some(*diff), times };
                each(RecordKey::Document(report.subject().1), Some(&row))
            });
        }
        // Each key gets one record: of a document that names a giant, only that of the giant.
        let mut now: BTreeMap<&DocId, Option<&ClusterReport>> = BTreeMap::new();
        for (report, diff) in changes {
            let value = now.entry(report.subject().1).or_default();
            if *diff > 0 {
                *value = Some(report);
            }
        }
        now.into_iter().try_for_each(|(subject, report)| {
            let row = report.map(|report| ReportRow { epoch, report, diff: None, times });
            each(RecordKey::Document(subject), row.as_ref().map(|row| row as &dyn OutputRow))
        })
    }
}

impl Changes for ClusterDeltas {
    fn read_back(&mut self, form: RecordForm, records: &mut ReadBack<'_>) -> io::Result<BTreeSet<DocPair>> {
        let reports = match form {
            RecordForm::Present => last_of_each(records, read_present)?.into_values().collect(),
            RecordForm::Rows | RecordForm::Deltas => summed(records)?,
        };
        self.book.correct_clusters(reports);
        Ok(BTreeSet::new())
    }

    fn times(&mut self, times: EpochTimes) {
        self.times = self.times.map(|_| times);
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.book.restored(deltas);
    }

    fn epoch(
        &mut self,
        form: RecordForm,
        epoch: Epoch,
        deltas: &[Delta],
        each: &mut EachRecord<'_>,
    ) -> io::Result<()> {
        let answers = self.book.advance(deltas);
        self.pass(form, epoch, &answers.clusters, each)
    }

    fn corrections(&mut self, form: RecordForm, mark: &Mark, each: &mut EachRecord<'_>) -> io::Result<()> {
        let answers = self.book.corrections(mark);
        self.pass(form, mark.progress.epoch, &answers.clusters, each)
    }
}

/// The reports that changes add up to, in any order.
fn summed(records: &mut ReadBack<'_>) -> io::Result<BTreeSet<ClusterReport>> {
    let mut sum = ReportSums::default();
    records(&mut |_, value| sum.add(value.unwrap_or_default()))?;
    sum.reports()
}

#[cfg(test)]
#[path = "tests/clusters.rs"]
mod tests;
