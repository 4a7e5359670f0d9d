//! Tables of a database as sink, exactly once: pairs, clusters and documents as they are, and with them how
//! far they stand for the input.
//!
//! ```text
//!  epochs ─▶ Changes ─▶ one transaction ─┬─▶ pairs, clusters, documents   rows that come, change and go
//!            the last of  per commit     ├─▶ deltas                       every change of a pair, if they are asked for
//!            each row                    └─▶ progress                     the mark
//! ```
//!
//! **Why nothing is lost or doubled.** Every transaction first locks the one row of `progress`, and goes on
//! only if it holds the run's own name and the number of the commit on which the run builds; it writes its
//! mark there, and one more. So:
//!
//! 1. A run that takes the tables over writes its name there. Whoever had them before finds another name at
//!    its next commit, and ends.
//! 2. A commit whose outcome nobody knows (the server was lost) is looked up in the same row, once the lock
//!    on it is free: the number is one more, and all was written; it is as before, and nothing was, and it is
//!    written again.
//!
//! **Deltas add up to pairs**, if they are kept. A run that begins to keep them, where another one has not,
//! is refused as one of another pipeline; if it reconciles, the table begins anew with the pairs that are
//! there, in the transaction of the first correction.
//!
//! Each cluster is told member by member, whatever its size: the views that tell who is kept need all of
//! them.

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

use changes::Changes;

use super::cluster_changes::ClusterChanges;
use super::{Sink, StandardError};
use crate::database::{Address, Failure};
use crate::failpoint;
use crate::mark::{Mark, Standing};
use dupflow_core::cluster::{ClusterKind, ClusterReport, Clusters};
use dupflow_core::description::Description;
use dupflow_core::doc::{DocChange, DocId, Facts, Letter};
use dupflow_core::pair::{Delta, DocPair, Evidence, Pair, Similarity};
use dupflow_core::run::metrics::Metrics;
use dupflow_core::time::Progress;

/// Where tables are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOutput {
    /// In which database.
    pub address: Address,
    /// In which schema of a server, made if it is missing.
    pub schema: String,
    /// What stands before each table's name.
    pub prefix: String,
    /// Whether every change of a pair is kept.
    pub deltas: bool,
    /// Whether those say their causes.
    pub causes: bool,
    /// How long a server may take to answer at the beginning.
    pub patience: Duration,
    /// The name of the run, which no other one has.
    pub run: String,
}

impl TableOutput {
    /// What the description in a mark says of tables that keep every change of a pair.
    pub const WITH_DELTAS: (&str, &str) = ("sink.emit", "deltas");

    /// What is there, in a line: for whoever looks before a run does. Nothing is written.
    ///
    /// # Errors
    /// That it cannot be reached, or that its role may not do what a run does there.
    pub fn examine(&self) -> Result<String, Failure> {
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
            Address::Postgres(_) => Err(Failure::Refused(format!("{name} is not built in"))),
        }
    }
}

/// The tables of one output.
trait Store: Send {
    /// How far the tables have got, which stay as they are; nothing if there are none.
    fn look(&self) -> Result<Stand, Failure>;

    /// Makes what is missing, writes the run's name, and tells what was there.
    fn take_over(&mut self) -> Result<Stand, Failure>;

    /// Writes all this and the mark, behind so many commits, in one transaction; whatever happens meanwhile,
    /// once.
    fn write(&mut self, changes: &Changes, commits: i64, mark: &str) -> Result<(), Failure>;

    /// The pairs that are there.
    fn pairs(&mut self) -> Result<BTreeSet<DocPair>, Failure>;

    /// The members of clusters that are there.
    fn clusters(&mut self) -> Result<BTreeSet<ClusterReport>, Failure>;

    /// The documents that are there.
    fn documents(&mut self) -> Result<BTreeMap<DocId, Facts>, Failure>;
}

/// What the tables look like: 2 since rows say when they were written, and since the times of documents are
/// times on a server.
const LAYOUT: i64 = 2;

/// Whether a program that knows this layout may write tables of the one that was found, which is not an older
/// one.
///
/// # Errors
/// That it is a later one.
fn known_layout(name: &str, found: Option<i64>) -> Result<(), Failure> {
    match found.filter(|found| *found != LAYOUT) {
        None => Ok(()),
        Some(found) => Err(Failure::Refused(format!(
            "{name}: its tables are of layout {found}, and this dupflow writes layout {LAYOUT}: run the dupflow that made them, or set \
             sink.prefix"
        ))),
    }
}

/// How far tables have got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stand {
    run: String,
    commits: i64,
    mark: Option<String>,
}

/// Keeps the tables of an output.
pub struct TableSink {
    name: String,
    run: String,
    store: Box<dyn Store>,
    evidence: Option<StandardError>,
    clusters: ClusterChanges,
    changes: Changes,
    keeps_deltas: bool,
    /// Whether the run before has kept them.
    kept_deltas: bool,
    /// How many commits the tables have seen.
    commits: i64,
    /// The documents alive, while what the table holds may be others.
    alive: Option<BTreeMap<DocId, Facts>>,
}

impl TableSink {
    /// A sink that has reached nothing yet; with evidence if there is a standard error to give. Clusters are
    /// of this kind.
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
            changes: Changes::default(),
            keeps_deltas: output.deltas,
            kept_deltas: output.deltas,
            commits: 0,
            alive: None,
        }
    }

    /// The table of documents is to be that of those alive.
    fn correct_documents(&mut self) -> io::Result<()> {
        let Some(alive) = self.alive.take() else { return Ok(()) };
        let there = self.store.documents().map_err(told)?;
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

    /// A mark as the table has it.
    fn mark(&self, found: &str) -> io::Result<Box<Mark>> {
        serde_json::from_str(found).map_err(|error| {
            wrong(format!("{}: the mark in the table of progress is damaged: {error}", self.name))
        })
    }

    fn write(&mut self, mark: &Mark) -> io::Result<()> {
        let written = serde_json::to_string(mark)?;
        self.store.write(&self.changes, self.commits, &written).map_err(told)?;
        failpoint::reach("tables-written");
        self.commits += 1;
        self.changes.clear();
        Ok(())
    }
}

/// Whether the run that wrote a mark has kept every change of a pair.
fn kept_deltas(mark: &Mark) -> bool {
    let (key, _) = TableOutput::WITH_DELTAS;
    Description::decode(mark.pipeline.as_bytes())
        .is_ok_and(|described| described.fields().any(|(name, _)| name == key))
}

/// The tables; `None` if this program was built without their database.
fn store(output: &TableOutput) -> Option<Box<dyn Store>> {
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
    fn look(&mut self) -> io::Result<Option<Standing>> {
        let found = self.store.look().map_err(told)?.mark;
        Ok(Some(found.map_or(Ok(Standing::New), |found| self.mark(&found).map(Standing::At))?))
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        let found = self.store.take_over().map_err(told)?;
        self.commits = found.commits;
        let Some(found) = found.mark else {
            // What was kept elsewhere may come as restored, and is not here.
            self.alive = Some(BTreeMap::new());
            return Ok(Standing::New);
        };
        let found = self.mark(&found)?;
        self.kept_deltas = kept_deltas(&found);
        self.write(&Mark { run: self.run.clone(), ..(*found).clone() })?;
        Ok(Standing::At(found))
    }

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        let there = self.store.clusters().map_err(told)?;
        self.clusters.correct(there);
        self.alive = Some(BTreeMap::new());
        // Without what has changed meanwhile they would add up to something else. With the first correction,
        // since its mark says what they are.
        self.changes.deltas_anew = self.keeps_deltas != self.kept_deltas;
        self.store.pairs().map_err(told)
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

/// Whether a run that builds on so many commits has to write what comes next; if not, it has, without
/// knowing.
///
/// # Errors
/// That another run has the tables.
fn has_to_write(found: &Stand, own: &str, commits: i64) -> Result<bool, Failure> {
    match found.commits - commits {
        more @ (0 | 1) if found.run == own => Ok(more == 0),
        _ => Err(Failure::Refused(format!(
            "another run ({}) has taken the tables over: this one writes no more",
            found.run
        ))),
    }
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn told(failure: Failure) -> io::Error {
    io::Error::other(failure)
}

/// An id as a table holds it.
fn id(text: &str) -> Result<DocId, Failure> {
    DocId::new(text)
        .ok_or_else(|| Failure::Refused("a table of the output holds an id that is none".to_owned()))
}

/// A pair as a table holds it.
fn pair(a: &str, b: &str, similarity: f64, evidence: Evidence) -> Result<DocPair, Failure> {
    let same = || Failure::Refused("a table of the output pairs a document with itself".to_owned());
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
