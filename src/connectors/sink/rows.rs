//! What outputs are made of: rows, and the forms in which they are written.
//!
//! A sink says what each row is; a form says how it is written. [`Lines`] writes one JSON object a line.
//! Forms of columns write [cells](Row::cells) under the names that the [kind](RowKind) of an output gives
//! them; a cluster that is one line with a list of its members is one row for each member there.

use std::io::{self, BufRead};

use super::Destination;
use super::cluster_changes::{Change, write_change, write_cluster, write_id};
use super::deltas::{StandardError, write_delta, write_pair};
use crate::mark::{Mark, Standing};
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence};
use dupflow_core::time::Epoch;

/// One row of an output.
#[expect(missing_debug_implementations, reason = "a standard error is a function")]
pub enum Row<'a> {
    /// A change of a pair; with its evidence if there is a standard error to give, and its cause if that is
    /// told.
    Delta {
        /// The epoch of the change.
        epoch: Epoch,
        /// The change.
        delta: &'a Delta,
        /// The standard error, if evidence is told.
        evidence: Option<&'a StandardError>,
        /// Whether the cause is told.
        causes: bool,
    },
    /// A pair.
    Pair {
        /// The pair.
        pair: &'a DocPair,
        /// The standard error, if evidence is told.
        evidence: Option<&'a StandardError>,
    },
    /// A change of a cluster.
    ClusterChange {
        /// The epoch of the change.
        epoch: Epoch,
        /// The change.
        change: &'a Change,
    },
    /// A cluster, with all its members, sorted.
    Cluster {
        /// Its name.
        cluster: &'a DocId,
        /// Its members.
        members: &'a [&'a DocId],
    },
    /// A cluster that is told by its size.
    Giant {
        /// What is told: a [`ClusterReport::Giant`].
        report: &'a ClusterReport,
    },
    /// A document that stays.
    Kept {
        /// Its id.
        id: &'a DocId,
    },
    /// A document that goes.
    Removed {
        /// Its id.
        id: &'a DocId,
        /// The document that stays for it.
        kept: &'a DocId,
        /// The cluster that both are in.
        cluster: &'a DocId,
    },
}

/// What the rows of an output are: all of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// [`Row::Delta`].
    Deltas {
        /// Whether evidence is told.
        evidence: bool,
        /// Whether causes are told.
        causes: bool,
    },
    /// [`Row::Pair`].
    Pairs {
        /// Whether evidence is told.
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

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Text, in every row.
    Text,
    /// Text, or nothing.
    MaybeText,
    /// A whole number of 64 bits, in every row.
    Whole,
    /// A whole number of 64 bits, or nothing.
    MaybeWhole,
    /// A number of 64 bits with a fraction, in every row.
    Real,
}

/// What a row has in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Nothing,
    /// Text.
    Text(&'a str),
    /// A whole number.
    Whole(i64),
    /// A number with a fraction.
    Real(f64),
}

/// Where rows are written to, in one form.
///
/// Contract: as [`Sink`](super::Sink), of which calls are handed on; rows between two commits belong to the
/// second one.
pub trait Rows {
    /// Writes a row.
    ///
    /// # Errors
    /// Those of the destination.
    fn row(&mut self, row: &Row<'_>) -> io::Result<()>;

    /// See [`Sink::take_over`](super::Sink::take_over).
    ///
    /// # Errors
    /// Those of the destination.
    fn take_over(&mut self) -> io::Result<Standing>;

    /// The durable rows as JSON Lines.
    ///
    /// # Errors
    /// Those of the destination; that rows of this form are not read back.
    fn lines(&mut self) -> io::Result<Box<dyn BufRead>>;

    /// See [`Sink::commit`](super::Sink::commit).
    ///
    /// # Errors
    /// Those of the destination.
    fn commit(&mut self, mark: &Mark) -> io::Result<()>;

    /// Writes out everything that is still held.
    ///
    /// # Errors
    /// Those of the destination.
    fn finish(&mut self) -> io::Result<()>;
}

/// JSON Lines.
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
    /// The columns of its rows, in order: names as they are the keys of JSON Lines.
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
    /// The cells of a row, in the order of its columns: of a cluster, those of one row for each member.
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

/// A number that is counted, and is no more than 2^63 - 1.
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

/// Document, cluster and size.
fn reported(report: &ClusterReport) -> [Cell<'_>; 3] {
    match report {
        ClusterReport::Member { cluster, document } => {
            [Cell::Text(document.as_str()), Cell::Text(cluster.as_str()), Cell::Nothing]
        }
        ClusterReport::Giant { cluster, size } => [Cell::Nothing, Cell::Text(cluster.as_str()), whole(*size)],
    }
}
