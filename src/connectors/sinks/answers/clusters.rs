//! The answer "clusters": the final clusters, by id, each with its members in order; then giants by id.
//!
//! ```text
//! {"cluster":"…","members":["…","…"]}
//! {"cluster":"…","size":123456,"giant":true}     a giant
//! ```

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use super::answer::{Answer, Subject, Written};
use crate::sinks::book::count;
use crate::sinks::contract::EndList;
use crate::sinks::rows::cluster_json::{write_cluster, write_id};
use crate::sinks::rows::{ColumnType, EachCells, OutputCell, OutputRow, RowWriter, whole};
use dupflow_core::cluster::{ClusterReport, Clusters};
use dupflow_core::doc::DocId;
use dupflow_core::pair::Delta;
use dupflow_run::metrics::Metrics;

pub(super) const ANSWER: Answer = Answer {
    name: "clusters",
    help: "All clusters at the end of the input",
    written: Written::AtEnd(|of, rows| {
        Box::new(ClusterLines::with_rows(rows, of.clusters(), of.counted().clusters))
    }),
    columns: |_| CLUSTER.to_vec(),
    sized: None,
    about: Subject::Clusters,
    adds_up: Some("cluster-deltas"),
    takes_units: false,
};

/// The columns of a member, or of a giant.
pub(super) const CLUSTER: [(&str, ColumnType); 3] = [
    ("document", ColumnType::OptionalText),
    ("cluster", ColumnType::Text),
    ("size", ColumnType::OptionalInteger),
];

/// The cells of [`CLUSTER`].
pub(super) fn reported(report: &ClusterReport) -> [OutputCell<'_>; 3] {
    match report {
        ClusterReport::Member { cluster, document } => {
            [OutputCell::Text(document.as_str()), OutputCell::Text(cluster.as_str()), OutputCell::Missing]
        }
        ClusterReport::Giant { cluster, size } => {
            [OutputCell::Missing, OutputCell::Text(cluster.as_str()), whole(*size)]
        }
    }
}

/// A cluster with all its members, sorted.
struct ClusterRow<'a> {
    cluster: &'a DocId,
    members: Vec<&'a DocId>,
}

impl OutputRow for ClusterRow<'_> {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        out.extend_from_slice(b"{\"cluster\":");
        write_id(out, self.cluster)?;
        let mut before: &[u8] = b",\"members\":[";
        for member in &self.members {
            out.extend_from_slice(std::mem::replace(&mut before, b","));
            write_id(out, member)?;
        }
        out.extend_from_slice(b"]}");
        Ok(())
    }

    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()> {
        self.members.iter().try_for_each(|member| {
            let [member, cluster] = [*member, self.cluster].map(|id| id.as_str());
            each(&[OutputCell::Text(member), OutputCell::Text(cluster), OutputCell::Missing])
        })
    }
}

/// A cluster above the cluster limit: only its size is written.
struct GiantRow<'a>(&'a ClusterReport);

impl OutputRow for GiantRow<'_> {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        out.push(b'{');
        write_cluster(out, self.0, None)
    }

    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()> {
        each(&reported(self.0))
    }
}

/// Keeps the clusters that the changes accumulate to, and writes them at the end, sorted.
#[derive(Debug)]
pub struct ClusterLines<R> {
    out: R,
    clusters: Clusters,
    metrics: Arc<Metrics>,
    alive: BTreeSet<ClusterReport>,
}

impl<R: RowWriter> ClusterLines<R> {
    /// Rows in one format. `clusters` must be empty.
    pub fn with_rows(out: R, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { out, clusters, metrics, alive: BTreeSet::new() }
    }
}

impl<R: RowWriter> EndList for ClusterLines<R> {
    fn follow(&mut self, deltas: &[Delta]) {
        let changes = self.clusters.advance(deltas);
        count(&changes, &self.metrics);
        for (report, diff) in changes {
            let changed = if diff > 0 { self.alive.insert(report) } else { self.alive.remove(&report) };
            debug_assert!(changed, "every report accumulates to 0 or 1");
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let mut reports = self.alive.iter().peekable();
        while let Some(report) = reports.next() {
            let ClusterReport::Member { cluster, document } = report else {
                self.out.row(&GiantRow(report))?;
                continue;
            };
            let mut members = vec![document];
            let is_here = |next: &&ClusterReport| match next {
                ClusterReport::Member { cluster: other, .. } => other == cluster,
                ClusterReport::Giant { .. } => false,
            };
            while let Some(ClusterReport::Member { document: next, .. }) = reports.next_if(is_here) {
                members.push(next);
            }
            self.out.row(&ClusterRow { cluster, members })?;
        }
        self.out.finish()
    }
}
