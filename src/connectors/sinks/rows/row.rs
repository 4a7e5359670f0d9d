//! A row of an output, its columns, and the trait of the formats.

use std::io::{self, BufRead, Write};

use super::cluster_json::ReportChange;
use super::column::{ColumnType, OutputCell, whole};
use super::found_item::FoundItem;
use super::pair_json::{PairStyle, StandardError};
use super::removed_unit::RemovedUnit;
use crate::mark::{Mark, Standing};
use dupflow_core::cluster::ClusterReport;
use dupflow_core::detect::RejectedPair;
use dupflow_core::doc::DocId;
use dupflow_core::filter::{Agreeing, Rejection};
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence};
use dupflow_core::time::{Epoch, EpochTimes};

/// One row of an output.
#[expect(missing_debug_implementations, reason = "a standard error is a function")]
pub enum OutputRow<'a> {
    /// A change of a pair.
    Delta {
        /// The epoch of the change.
        epoch: Epoch,
        /// The change.
        delta: &'a Delta,
        /// What the row has of the pair.
        style: PairStyle,
        /// Standard errors, if the row has evidence.
        evidence: Option<&'a StandardError>,
        /// Whether the row has the cause.
        causes: bool,
        /// The times of the epoch, if the row has them.
        times: Option<EpochTimes>,
    },
    /// A pair.
    Pair {
        /// The pair.
        pair: &'a DocPair,
        /// What the row has of the pair.
        style: PairStyle,
        /// Standard errors, if the row has evidence.
        evidence: Option<&'a StandardError>,
    },
    /// A change of a cluster.
    ClusterChange {
        /// The epoch of the change.
        epoch: Epoch,
        /// The change.
        change: &'a ReportChange,
        /// The times of the epoch, if the row has them.
        times: Option<EpochTimes>,
    },
    /// A cluster with all its members, sorted.
    Cluster {
        /// Its name.
        cluster: &'a DocId,
        /// Its members.
        members: &'a [&'a DocId],
    },
    /// A cluster above the cluster limit: only its size is written.
    Giant {
        /// Always a [`ClusterReport::Giant`].
        report: &'a ClusterReport,
    },
    /// A document to keep.
    Kept {
        /// Its id.
        id: &'a str,
    },
    /// A document to remove.
    Removed {
        /// Its id.
        id: &'a str,
        /// The document kept in its place.
        kept: &'a str,
        /// The cluster of both.
        cluster: &'a str,
        /// In a corpus that is compared with a reference: whether the kept document is of it.
        old: Option<bool>,
    },
    /// A unit of a document to remove.
    RemovedUnit {
        /// The unit.
        removed: &'a RemovedUnit<'a>,
    },
    /// A candidate that the filter has rejected.
    Rejected {
        /// The pair, and why.
        rejected: &'a RejectedPair,
        /// The least similarity of an accepted pair, inclusive.
        threshold: f64,
    },
    /// A record of a sink's own.
    Record(&'a dyn RowRecord),
    /// An item of a reference.
    Item {
        /// What is found of it.
        found: &'a FoundItem,
    },
    /// What the output was made by and of. It is no row of a table: CSV and Arrow leave it out, a Parquet
    /// file has `whole` in its metadata.
    Provenance {
        /// The part that is known by now, as one JSON object.
        line: &'a str,
        /// All of it, as one JSON object; `None` before the end.
        whole: Option<&'a str>,
    },
}

/// A record that a sink writes itself.
pub trait RowRecord {
    /// Writes it as one JSON object.
    ///
    /// # Errors
    /// Any error of the destination.
    fn write(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Calls `each` with its cells, in the order of the columns.
    ///
    /// # Errors
    /// Any error of `each`.
    fn cells(&self, each: &mut dyn FnMut(&[OutputCell<'_>]) -> io::Result<()>) -> io::Result<()>;
}

/// The kind of all rows of one output; decides the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// [`OutputRow::Delta`].
    Deltas {
        /// What rows have of pairs.
        style: PairStyle,
        /// Whether rows have evidence.
        evidence: bool,
        /// Whether rows have causes.
        causes: bool,
        /// Whether rows have times.
        times: bool,
    },
    /// [`OutputRow::Pair`].
    Pairs {
        /// What rows have of pairs.
        style: PairStyle,
        /// Whether rows have evidence.
        evidence: bool,
    },
    /// [`OutputRow::Cluster`] and [`OutputRow::Giant`].
    Clusters,
    /// [`OutputRow::ClusterChange`].
    ClusterDeltas {
        /// Whether rows have times.
        times: bool,
    },
    /// [`OutputRow::Kept`].
    Kept,
    /// [`OutputRow::Record`], with these columns.
    Records(&'static [(&'static str, ColumnType)]),
    /// [`OutputRow::Removed`].
    Removed {
        /// Whether the corpus is compared with a reference.
        old: bool,
    },
    /// [`OutputRow::RemovedUnit`].
    RemovedUnits,
    /// [`OutputRow::Rejected`].
    Rejected,
    /// [`OutputRow::Item`].
    Items,
}

/// Writes rows in one format.
///
/// Contract: that of [`Sink`](crate::sinks::Sink) for the calls of the same names. Rows written between two
/// commits belong to the second one.
pub trait RowWriter {
    /// Writes a row.
    ///
    /// # Errors
    /// Any error of the destination.
    fn row(&mut self, row: &OutputRow<'_>) -> io::Result<()>;

    /// See [`Sink::take_over`](crate::sinks::Sink::take_over). A format whose file is whole at its end only
    /// keeps no marks.
    ///
    /// # Errors
    /// Any error of the destination.
    fn take_over(&mut self) -> io::Result<Standing> {
        Ok(Standing::Forgets)
    }

    /// The durable rows as JSON Lines.
    ///
    /// # Errors
    /// Any error of the destination; [`io::ErrorKind::Unsupported`] if this format cannot be read back.
    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "rows of this format are not read back"))
    }

    /// See [`Sink::commit`](crate::sinks::Sink::commit). Of a file that is whole at its end no row can be
    /// read before.
    ///
    /// # Errors
    /// Any error of the destination.
    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    /// Writes out everything that is still buffered.
    ///
    /// # Errors
    /// Any error of the destination.
    fn finish(&mut self) -> io::Result<()>;
}

impl<R: RowWriter + ?Sized> RowWriter for Box<R> {
    fn row(&mut self, row: &OutputRow<'_>) -> io::Result<()> {
        (**self).row(row)
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        (**self).take_over()
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        (**self).lines()
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        (**self).commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        (**self).finish()
    }
}

impl RowKind {
    /// Names and types of the columns, in order. The names are the keys of JSON Lines.
    pub fn columns(self) -> Vec<(&'static str, ColumnType)> {
        const PAIR: [(&str, ColumnType); 3] =
            [("a", ColumnType::Text), ("b", ColumnType::Text), ("similarity", ColumnType::Float)];
        const SHARES: [(&str, ColumnType); 2] = [("in_a", ColumnType::Float), ("in_b", ColumnType::Float)];
        const CHANGE: [(&str, ColumnType); 2] =
            [("epoch", ColumnType::Integer), ("diff", ColumnType::Integer)];
        const EVIDENCE: [(&str, ColumnType); 4] = [
            ("blocks", ColumnType::Integer),
            ("look", ColumnType::Integer),
            ("components", ColumnType::Integer),
            ("standard_error", ColumnType::Float),
        ];
        const CLUSTER: [(&str, ColumnType); 3] = [
            ("document", ColumnType::OptionalText),
            ("cluster", ColumnType::Text),
            ("size", ColumnType::OptionalInteger),
        ];
        const TIMES: [(&str, ColumnType); 2] =
            [("event_time", ColumnType::OptionalFloat), ("committed", ColumnType::Float)];
        const OLD: [(&str, ColumnType); 1] = [("old", ColumnType::Flag)];
        let when = |is: bool, columns: &[(&'static str, ColumnType)]| {
            columns.iter().copied().filter(move |_| is).collect::<Vec<_>>()
        };
        match self {
            Self::Deltas { style, evidence, causes, times } => {
                let pair = Self::Pairs { style, evidence }.columns();
                let cause = [("cause", ColumnType::Text)];
                [&CHANGE[..], &pair, &when(causes, &cause), &when(times, &TIMES)].concat()
            }
            Self::Pairs { style: PairStyle { shares, sides }, evidence } => {
                [&PAIR[..], &when(shares, &SHARES), &when(evidence, &EVIDENCE), &when(sides, &OLD)].concat()
            }
            Self::Clusters => CLUSTER.to_vec(),
            Self::ClusterDeltas { times } => [&CHANGE[..], &CLUSTER, &when(times, &TIMES)].concat(),
            Self::Kept => vec![("id", ColumnType::Text)],
            Self::Rejected => vec![
                ("a", ColumnType::Text),
                ("b", ColumnType::Text),
                ("by", ColumnType::Text),
                ("look", ColumnType::Integer),
                ("components", ColumnType::Integer),
                ("agree", ColumnType::OptionalInteger),
                ("needed", ColumnType::OptionalInteger),
                ("similarity", ColumnType::Float),
                ("threshold", ColumnType::Float),
                ("blocks", ColumnType::Integer),
                ("pairs", ColumnType::Integer),
            ],
            Self::Items => FoundItem::COLUMNS.to_vec(),
            Self::Records(columns) => columns.to_vec(),
            Self::RemovedUnits => RemovedUnit::COLUMNS.to_vec(),
            Self::Removed { old } => {
                let texts = ["id", "kept", "cluster"].map(|name| (name, ColumnType::Text));
                [&texts[..], &when(old, &OLD)].concat()
            }
        }
    }
}

impl<'a> OutputRow<'a> {
    /// Calls `each` with the cells of the row, in the order of the columns; for a cluster, once for each
    /// member.
    pub(super) fn cells(&self, each: &mut dyn FnMut(&[OutputCell<'_>]) -> io::Result<()>) -> io::Result<()> {
        let id = |id: &'a DocId| OutputCell::Text(id.as_str());
        match *self {
            OutputRow::Delta { epoch, delta, style, evidence, causes, times } => {
                let mut cells = vec![whole(epoch), whole(delta.diff)];
                pair(&delta.pair, style, evidence, causes.then_some(delta.cause), &mut cells);
                cells.extend(times.into_iter().flat_map(timed));
                each(&cells)
            }
            OutputRow::Pair { pair: found, style, evidence } => {
                let mut cells = Vec::new();
                pair(found, style, evidence, None, &mut cells);
                each(&cells)
            }
            OutputRow::ClusterChange { epoch, change: (report, diff), times } => {
                let [document, cluster, size] = reported(report);
                let mut cells = vec![whole(epoch), whole(*diff), document, cluster, size];
                cells.extend(times.into_iter().flat_map(timed));
                each(&cells)
            }
            OutputRow::Provenance { .. } => Ok(()),
            OutputRow::Cluster { cluster, members } => {
                members.iter().try_for_each(|member| each(&[id(member), id(cluster), OutputCell::Missing]))
            }
            OutputRow::Giant { report } => each(&reported(report)),
            OutputRow::Kept { id: kept } => each(&[OutputCell::Text(kept)]),
            OutputRow::Rejected { rejected, threshold } => each(&turned_down(rejected, threshold)),
            OutputRow::Item { found } => each(&found.cells()),
            OutputRow::Record(record) => record.cells(each),
            OutputRow::RemovedUnit { removed } => each(&removed.cells()),
            OutputRow::Removed { id: removed, kept, cluster, old } => {
                let mut cells = [removed, kept, cluster].map(OutputCell::Text).to_vec();
                cells.extend(old.map(OutputCell::Flag));
                each(&cells)
            }
        }
    }
}

/// The cells of the times of an epoch.
fn timed<'a>(EpochTimes { event, committed }: EpochTimes) -> [OutputCell<'a>; 2] {
    let event = event.map_or(OutputCell::Missing, |event| OutputCell::Float(event.seconds()));
    [event, OutputCell::Float(committed)]
}

fn pair<'a>(
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

/// The cells of a candidate that is rejected.
fn turned_down(rejected: &RejectedPair, threshold: f64) -> [OutputCell<'_>; 11] {
    let RejectedPair { pair, pairs, blocks, rejection } = rejected;
    let Rejection { by, look, components, agreeing, similarity } = *rejection;
    let [agree, needed] =
        agreeing.map_or([OutputCell::Missing; 2], |Agreeing { found, needed }| [found, needed].map(whole));
    [
        OutputCell::Text(pair.lo().as_str()),
        OutputCell::Text(pair.hi().as_str()),
        OutputCell::Text(by.name()),
        whole(look),
        whole(components),
        agree,
        needed,
        OutputCell::Float(similarity.get()),
        OutputCell::Float(threshold),
        whole(*blocks),
        whole(*pairs),
    ]
}

/// The cells of document, cluster and size.
fn reported(report: &ClusterReport) -> [OutputCell<'_>; 3] {
    match report {
        ClusterReport::Member { cluster, document } => {
            [OutputCell::Text(document.as_str()), OutputCell::Text(cluster.as_str()), OutputCell::Missing]
        }
        ClusterReport::Giant { cluster, size } => {
            [OutputCell::Missing, OutputCell::Text(cluster.as_str()), whole(*size)]
        }
    }
}
