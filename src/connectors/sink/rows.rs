//! Rows of outputs, and the formats in which they are written.
//!
//! A sink decides what a row is; a format, an implementation of [`Rows`], decides how it is written.
//! [`Lines`] writes one JSON object a line. Formats with columns write [cells](Row::cells) under the column
//! names of a [`RowKind`]. A cluster is one line in JSON, with a list of its members, and one row for each
//! member in a format with columns.

use std::io::{self, BufRead};

use super::Destination;
use super::cluster_changes::{Change, write_change, write_cluster, write_id};
use super::deltas::{StandardError, write_delta, write_pair};
use crate::mark::{Mark, Standing};
use dupflow_core::cluster::Report;
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence};
use dupflow_core::time::Epoch;

/// One row of an output.
#[expect(missing_debug_implementations, reason = "a standard error is a function")]
pub enum Row<'a> {
    /// A change of a pair.
    Delta {
        /// The epoch of the change.
        epoch: Epoch,
        /// The change.
        delta: &'a Delta,
        /// Standard errors, if the row has evidence.
        evidence: Option<&'a StandardError>,
        /// Whether the row has the cause.
        causes: bool,
    },
    /// A pair.
    Pair {
        /// The pair.
        pair: &'a DocPair,
        /// Standard errors, if the row has evidence.
        evidence: Option<&'a StandardError>,
    },
    /// A change of a cluster.
    ClusterChange {
        /// The epoch of the change.
        epoch: Epoch,
        /// The change.
        change: &'a Change,
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
        /// Always a [`Report::Giant`].
        report: &'a Report,
    },
    /// A document to keep.
    Kept {
        /// Its id.
        id: &'a DocId,
    },
    /// A document to remove.
    Removed {
        /// Its id.
        id: &'a DocId,
        /// The document kept in its place.
        kept: &'a DocId,
        /// The cluster of both.
        cluster: &'a DocId,
    },
}

/// The kind of all rows of one output; decides the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// [`Row::Delta`].
    Deltas {
        /// Whether rows have evidence.
        evidence: bool,
        /// Whether rows have causes.
        causes: bool,
    },
    /// [`Row::Pair`].
    Pairs {
        /// Whether rows have evidence.
        evidence: bool,
    },
    /// [`Row::Cluster`] and [`Row::Giant`].
    Clusters,
    /// [`Row::ClusterChange`].
    ClusterDeltas,
    /// [`Row::Kept`].
    Kept,
    /// [`Row::Removed`].
    Removed,
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Text; never missing.
    Text,
    /// Text, or missing.
    MaybeText,
    /// A signed 64-bit integer; never missing.
    Whole,
    /// A signed 64-bit integer, or missing.
    MaybeWhole,
    /// A 64-bit float; never missing.
    Real,
}

/// The value of a row in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Missing.
    Nothing,
    /// Text.
    Text(&'a str),
    /// An integer.
    Whole(i64),
    /// A float.
    Real(f64),
}

/// Writes rows in one format.
///
/// Contract: that of [`Sink`](super::Sink) for the calls of the same names. Rows written between two commits
/// belong to the second one.
pub trait Rows {
    /// Writes a row.
    ///
    /// # Errors
    /// Any error of the destination.
    fn row(&mut self, row: &Row<'_>) -> io::Result<()>;

    /// See [`Sink::take_over`](super::Sink::take_over).
    ///
    /// # Errors
    /// Any error of the destination.
    fn take_over(&mut self) -> io::Result<Standing>;

    /// The durable rows as JSON Lines.
    ///
    /// # Errors
    /// Any error of the destination; [`io::ErrorKind::Unsupported`] if this format cannot be read back.
    fn lines(&mut self) -> io::Result<Box<dyn BufRead>>;

    /// See [`Sink::commit`](super::Sink::commit).
    ///
    /// # Errors
    /// Any error of the destination.
    fn commit(&mut self, mark: &Mark) -> io::Result<()>;

    /// Writes out everything that is still buffered.
    ///
    /// # Errors
    /// Any error of the destination.
    fn finish(&mut self) -> io::Result<()>;
}

/// Writes rows as JSON Lines.
#[derive(Debug)]
pub struct Lines<W>(pub W);

impl<W: Destination> Rows for Lines<W> {
    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let Self(out) = self;
        match *row {
            Row::Delta { epoch, delta, evidence, causes } => {
                write_delta(out, epoch, delta, evidence, causes)?;
            }
            Row::Pair { pair, evidence } => {
                out.write_all(b"{")?;
                write_pair(out, pair, evidence, None)?;
            }
            Row::ClusterChange { epoch, change } => write_change(out, epoch, change)?,
            Row::Cluster { cluster, members } => {
                out.write_all(b"{\"cluster\":")?;
                write_id(out, cluster)?;
                let mut before: &[u8] = b",\"members\":[";
                for member in members {
                    out.write_all(std::mem::replace(&mut before, b","))?;
                    write_id(out, member)?;
                }
                out.write_all(b"]}")?;
            }
            Row::Giant { report } => {
                out.write_all(b"{")?;
                write_cluster(out, report)?;
            }
            Row::Kept { id } => {
                out.write_all(b"{\"id\":")?;
                write_id(out, id)?;
                out.write_all(b"}")?;
            }
            Row::Removed { id, kept, cluster } => {
                out.write_all(b"{\"id\":")?;
                write_id(out, id)?;
                out.write_all(b",\"kept\":")?;
                write_id(out, kept)?;
                out.write_all(b",\"cluster\":")?;
                write_id(out, cluster)?;
                out.write_all(b"}")?;
            }
        }
        out.write_all(b"\n")
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        self.0.take_over()
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        self.0.lines()
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.0.commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl RowKind {
    /// Names and types of the columns, in order. The names are the keys of JSON Lines.
    pub fn columns(self) -> Vec<(&'static str, Holds)> {
        const PAIR: [(&str, Holds); 3] =
            [("a", Holds::Text), ("b", Holds::Text), ("similarity", Holds::Real)];
        const CHANGE: [(&str, Holds); 2] = [("epoch", Holds::Whole), ("diff", Holds::Whole)];
        const EVIDENCE: [(&str, Holds); 4] = [
            ("blocks", Holds::Whole),
            ("look", Holds::Whole),
            ("components", Holds::Whole),
            ("standard_error", Holds::Real),
        ];
        const CLUSTER: [(&str, Holds); 3] =
            [("document", Holds::MaybeText), ("cluster", Holds::Text), ("size", Holds::MaybeWhole)];
        let when = |is: bool, columns: &[(&'static str, Holds)]| {
            columns.iter().copied().filter(move |_| is).collect::<Vec<_>>()
        };
        match self {
            Self::Deltas { evidence, causes } => {
                let cause = [("cause", Holds::Text)];
                [&CHANGE[..], &PAIR, &when(evidence, &EVIDENCE), &when(causes, &cause)].concat()
            }
            Self::Pairs { evidence } => [&PAIR[..], &when(evidence, &EVIDENCE)].concat(),
            Self::Clusters => CLUSTER.to_vec(),
            Self::ClusterDeltas => [&CHANGE[..], &CLUSTER].concat(),
            Self::Kept => vec![("id", Holds::Text)],
            Self::Removed => ["id", "kept", "cluster"].map(|name| (name, Holds::Text)).to_vec(),
        }
    }
}

impl<'a> Row<'a> {
    /// Calls `each` with the cells of the row, in the order of the columns; for a cluster, once for each
    /// member.
    pub(super) fn cells(&self, each: &mut dyn FnMut(&[Cell<'a>]) -> io::Result<()>) -> io::Result<()> {
        let id = |id: &'a DocId| Cell::Text(id.as_str());
        match *self {
            Row::Delta { epoch, delta, evidence, causes } => {
                let mut cells = vec![whole(epoch), whole(delta.diff)];
                pair(&delta.pair, evidence, causes.then_some(delta.cause), &mut cells);
                each(&cells)
            }
            Row::Pair { pair: found, evidence } => {
                let mut cells = Vec::new();
                pair(found, evidence, None, &mut cells);
                each(&cells)
            }
            Row::ClusterChange { epoch, change: (report, diff) } => {
                let [document, cluster, size] = reported(report);
                each(&[whole(epoch), whole(*diff), document, cluster, size])
            }
            Row::Cluster { cluster, members } => {
                members.iter().try_for_each(|member| each(&[id(member), id(cluster), Cell::Nothing]))
            }
            Row::Giant { report } => each(&reported(report)),
            Row::Kept { id: kept } => each(&[id(kept)]),
            Row::Removed { id: gone, kept, cluster } => each(&[id(gone), id(kept), id(cluster)]),
        }
    }
}

/// An integer cell; values above 2^63 - 1 become 2^63 - 1.
fn whole<'a>(number: impl TryInto<i64>) -> Cell<'a> {
    Cell::Whole(number.try_into().unwrap_or(i64::MAX))
}

fn pair<'a>(
    found: &'a DocPair,
    evidence: Option<&StandardError>,
    cause: Option<Cause>,
    cells: &mut Vec<Cell<'a>>,
) {
    let [a, b] = [found.pair.lo(), found.pair.hi()].map(|id| Cell::Text(id.as_str()));
    cells.extend([a, b, Cell::Real(found.similarity.get())]);
    if let Some(standard_error) = evidence {
        let Evidence { blocks, look, components } = found.evidence;
        cells.extend([whole(blocks), whole(look), whole(components), Cell::Real(standard_error(found))]);
    }
    cells.extend(cause.map(|cause| Cell::Text(cause.name())));
}

/// The cells of document, cluster and size.
fn reported(report: &Report) -> [Cell<'_>; 3] {
    match report {
        Report::Member { cluster, document } => {
            [Cell::Text(document.as_str()), Cell::Text(cluster.as_str()), Cell::Nothing]
        }
        Report::Giant { cluster, size } => [Cell::Nothing, Cell::Text(cluster.as_str()), whole(*size)],
    }
}
