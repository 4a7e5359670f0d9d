//! Tables of a database as sink, exactly once: the present pairs, clusters and documents, and the position in
//! the input up to which they are complete.
//!
//! ```text
//!  epochs ─▶ Changes ─▶ one transaction ─┬─▶ pairs, clusters, documents   rows to write and to delete
//!            last state   per commit     ├─▶ deltas                       every delta, if requested
//!            of each row                 └─▶ progress                     the mark
//! ```
//!
//! **Why nothing is lost or doubled.** Every transaction first locks the single row of `progress`. It
//! continues only if the row holds the run's own name and the commit number on which the run builds. It
//! writes its mark there and increments the number. So:
//!
//! 1. A run that takes the tables over writes its name there. The run before finds another name at its next
//!    commit, and ends.
//! 2. After a commit with an unknown outcome (the connection was lost), the run reads the row again, once its
//!    lock is free. If the number is one higher, everything was written. If it is unchanged, nothing was, and
//!    the run writes it again.
//!
//! **Deltas add up to pairs**, if they are kept. A run that begins to keep them where an earlier run did not
//! is refused, as a run of another pipeline is. If it reconciles, the first correction empties the table and
//! fills it with the pairs of the table of pairs, in its own transaction.
//!
//! Clusters are written member by member, whatever their size: the views of kept and removed documents need
//! all members.

#![cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    expect(
        dead_code,
        reason = "without a database there are no tables, and a deployment that names some is refused"
    )
)]

mod changes;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use changes::TableChanges;

use super::cluster_changes::ClusterChanges;
use super::{Sink, StandardError};
use crate::failpoint;
use crate::mark::{Mark, Standing};
use crate::tables::database::{Address, DatabaseFailure};
use dupflow_core::cluster::{ClusterKind, ClusterReport, Clusters};
use dupflow_core::description::Description;
use dupflow_core::doc::{DocChange, DocId, Facts, Letter};
use dupflow_core::pair::{Delta, DocPair, Evidence, Pair, Similarity};
use dupflow_core::run::metrics::Metrics;
use dupflow_core::time::Progress;

/// Settings of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOutput {
    /// The database.
    pub address: Address,
    /// Schema on a server; created if it is missing.
    pub schema: String,
    /// Prefix of the name of each table.
    pub prefix: String,
    /// Whether every delta is kept.
    pub deltas: bool,
    /// Whether deltas have causes.
    pub causes: bool,
    /// How long a server may take to answer at the start.
    pub patience: Duration,
    /// Name of the run; unique.
    pub run: String,
}

impl TableOutput {
    /// Name and value of the field that the description in a mark has if the tables keep deltas.
    pub const WITH_DELTAS: (&str, &str) = ("sink.emit", "deltas");

    /// Describes the output in a line, for a check before a run. Writes nothing.
    ///
    /// # Errors
    /// If the database cannot be reached, or its role lacks a right that a run needs.
    pub fn examine(&self) -> Result<String, DatabaseFailure> {
        let name = self.address.name();
        match &self.address {
            #[cfg(feature = "sqlite")]
            Address::Sqlite(path) if path.exists() => {
                sqlite::examine(path).map(|()| format!("writes {name}"))
            }
            Address::Sqlite(_) => Ok(format!("writes {name}: missing, the first run makes it")),
            #[cfg(feature = "postgres")]
            Address::Postgres(url) => postgres::PostgresStore::new(self, url)
                .examine()
                .map(|found| format!("writes {name}, schema \"{}\"{found}", self.schema)),
            #[cfg(not(feature = "postgres"))]
            Address::Postgres(_) => Err(DatabaseFailure::Refused(format!("{name} is not built in"))),
        }
    }
}

/// The tables of one output in one database.
trait TableStore: Send {
    /// The row of progress; default if there are no tables. Changes nothing.
    fn inspect(&self) -> Result<ProgressRow, DatabaseFailure>;

    /// Creates missing tables, writes the run's name, and returns the row of progress found before.
    fn take_over(&mut self) -> Result<ProgressRow, DatabaseFailure>;

    /// Writes the changes and the mark, on commit number `commits`, in one transaction, exactly once.
    fn write(&mut self, changes: &TableChanges, commits: i64, mark: &str) -> Result<(), DatabaseFailure>;

    /// The rows of pairs.
    fn pairs(&mut self) -> Result<BTreeSet<DocPair>, DatabaseFailure>;

    /// The rows of clusters.
    fn clusters(&mut self) -> Result<BTreeSet<ClusterReport>, DatabaseFailure>;

    /// The rows of documents.
    fn documents(&mut self) -> Result<BTreeMap<DocId, Facts>, DatabaseFailure>;
}

/// Version of the tables. Since 2, rows have the time when they were written, and times of documents are
/// timestamps on a server.
const LAYOUT: i64 = 2;

/// Checks that the layout found, at least that of this program, is that of this program.
///
/// # Errors
/// If it is a later one.
fn known_layout(name: &str, found: Option<i64>) -> Result<(), DatabaseFailure> {
    match found.filter(|found| *found != LAYOUT) {
        None => Ok(()),
        Some(found) => Err(DatabaseFailure::Refused(format!(
            "{name}: its tables are of layout {found}, and this dupflow writes layout {LAYOUT}: run the dupflow that made them, or set \
             sink.prefix"
        ))),
    }
}

/// The row of the table of progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ProgressRow {
    run: String,
    commits: i64,
    mark: Option<String>,
}

/// Writes the tables of an output.
pub struct TableSink {
    name: String,
    run: String,
    store: Box<dyn TableStore>,
    evidence: Option<StandardError>,
    clusters: ClusterChanges,
    changes: TableChanges,
    keeps_deltas: bool,
    /// Whether the run before kept deltas.
    kept_deltas: bool,
    /// Number of the last commit.
    commits: i64,
    /// Live documents; present while the table of documents may not match them.
    alive: Option<BTreeMap<DocId, Facts>>,
}

impl TableSink {
    /// Connects to nothing yet. Evidence is written if there is a standard error.
    ///
    /// # Panics
    /// If this program was built without the database.
    pub fn new(
        output: &TableOutput,
        evidence: Option<StandardError>,
        kind: ClusterKind,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            name: output.address.name(),
            run: output.run.clone(),
            store: store(output).expect("a deployment without the feature names no such database"),
            evidence,
            clusters: ClusterChanges::new(Clusters::new(kind, usize::MAX), metrics),
            changes: TableChanges::default(),
            keeps_deltas: output.deltas,
            kept_deltas: output.deltas,
            commits: 0,
            alive: None,
        }
    }

    /// Adds the changes that make the table of documents equal to the live documents.
    fn correct_documents(&mut self) -> io::Result<()> {
        let Some(alive) = self.alive.take() else { return Ok(()) };
        let there = self.store.documents().map_err(io_error)?;
        for (id, facts) in &alive {
            if there.get(id) != Some(facts) {
                self.changes.documents.entry(id.clone()).or_insert(Some(*facts));
            }
        }
        for id in there.into_keys().filter(|id| !alive.contains_key(id)) {
            self.changes.documents.entry(id).or_insert(None);
        }
        Ok(())
    }

    /// Parses the mark of the table.
    fn mark(&self, found: &str) -> io::Result<Box<Mark>> {
        serde_json::from_str(found).map_err(|error| {
            invalid_data(format!("{}: the mark in the table of progress is damaged: {error}", self.name))
        })
    }

    fn write(&mut self, mark: &Mark) -> io::Result<()> {
        let written = serde_json::to_string(mark)?;
        self.store.write(&self.changes, self.commits, &written).map_err(io_error)?;
        failpoint::reach("tables-written");
        self.commits += 1;
        self.changes.clear();
        Ok(())
    }
}

/// Whether the run that wrote this mark kept deltas.
fn kept_deltas(mark: &Mark) -> bool {
    let (key, _) = TableOutput::WITH_DELTAS;
    Description::decode(mark.pipeline.as_bytes())
        .is_ok_and(|described| described.fields().any(|(name, _)| name == key))
}

/// The store of an output; `None` if this program was built without its database.
fn store(output: &TableOutput) -> Option<Box<dyn TableStore>> {
    match &output.address {
        #[cfg(feature = "sqlite")]
        Address::Sqlite(path) => Some(Box::new(sqlite::SqliteStore::new(output, path))),
        #[cfg(feature = "postgres")]
        Address::Postgres(url) => Some(Box::new(postgres::PostgresStore::new(output, url))),
        #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
        _ => None,
    }
}

impl Sink for TableSink {
    fn inspect(&mut self) -> io::Result<Option<Standing>> {
        let found = self.store.inspect().map_err(io_error)?.mark;
        Ok(Some(found.map_or(Ok(Standing::New), |found| self.mark(&found).map(Standing::At))?))
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        let found = self.store.take_over().map_err(io_error)?;
        self.commits = found.commits;
        let Some(found) = found.mark else {
            // Documents from state stored elsewhere are passed as restored, and are missing in these new
            // tables.
            self.alive = Some(BTreeMap::new());
            return Ok(Standing::New);
        };
        let found = self.mark(&found)?;
        self.kept_deltas = kept_deltas(&found);
        self.write(&Mark { run: self.run.clone(), ..(*found).clone() })?;
        Ok(Standing::At(found))
    }

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        let there = self.store.clusters().map_err(io_error)?;
        self.clusters.correct(there);
        self.alive = Some(BTreeMap::new());
        // Without the deltas of the runs in between, the table would not add up to the pairs. It is filled
        // with the first correction, whose mark says that deltas are kept.
        self.changes.deltas_anew = self.keeps_deltas != self.kept_deltas;
        self.store.pairs().map_err(io_error)
    }

    fn wants_documents(&self) -> bool {
        true
    }

    fn documents(&mut self, changes: &[DocChange], restored: bool) -> io::Result<()> {
        if !restored {
            self.changes.documents(changes);
        } else if let Some(alive) = &mut self.alive {
            for DocChange { id, now } in changes {
                match now {
                    Some(facts) => drop(alive.insert(id.clone(), *facts)),
                    None => drop(alive.remove(id)),
                }
            }
        }
        Ok(())
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.clusters.advance(deltas);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        let changed = self.clusters.advance(deltas);
        self.changes.clusters(&changed);
        self.changes.pairs(progress.epoch, deltas, self.evidence.as_ref(), self.keeps_deltas);
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        let corrections = self.clusters.corrections(mark);
        self.changes.clusters(&corrections);
        if !mark.in_correction {
            self.correct_documents()?;
        }
        self.write(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a run that builds on commit number `commits` must write its next commit. If not, an earlier
/// attempt with an unknown outcome has written it.
///
/// # Errors
/// If another run has taken the tables over.
fn must_write(found: &ProgressRow, own: &str, commits: i64) -> Result<bool, DatabaseFailure> {
    match found.commits - commits {
        more @ (0 | 1) if found.run == own => Ok(more == 0),
        _ => Err(DatabaseFailure::Refused(format!(
            "another run ({}) has taken the tables over: this one writes no more",
            found.run
        ))),
    }
}

fn invalid_data(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn io_error(failure: DatabaseFailure) -> io::Error {
    io::Error::other(failure)
}

/// Parses an id of a table.
fn id(text: &str) -> Result<DocId, DatabaseFailure> {
    DocId::new(text)
        .ok_or_else(|| DatabaseFailure::Refused("a table of the output holds an id that is none".to_owned()))
}

/// Builds a pair from the columns of a table.
fn pair(a: &str, b: &str, similarity: f64, evidence: Evidence) -> Result<DocPair, DatabaseFailure> {
    let same = || DatabaseFailure::Refused("a table of the output pairs a document with itself".to_owned());
    let pair = Pair::new(id(a)?, id(b)?).ok_or_else(same)?;
    Ok(DocPair { pair, similarity: Similarity::clamped(similarity), evidence })
}

impl fmt::Debug for TableSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSink")
            .field("name", &self.name)
            .field("commits", &self.commits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
