//! The sink that writes to the tables of a database.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::changes::TableChanges;
use super::open::open_store;
use super::shape;
use super::store::{Found, Look, TableOutput, TableStore, check_held, is_kept, must_write};
use crate::failpoint;
use crate::mark::{Mark, Standing};
use crate::sinks::BookMetrics;
use crate::sinks::book::{Book, BookChanges, LastDecisions};
use crate::sinks::side::SideDelta;
use crate::sinks::{DecisionMode, OutputGuard, Sink, StandardError};
use crate::tables::database::{DatabaseFailure, retry_until_reachable};
use dupflow_core::cluster::{ClusterKind, Clusters};
use dupflow_core::doc::{DocChange, DocId, Facts, Letter, UpsertedDoc};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::reconcile::Reconcile;

use dupflow_core::time::{Clock as _, Epoch, Progress, SystemClock};

/// Least time between two looks at the rows of the tables.
const LOOKS_APART: Duration = Duration::from_secs(5);

/// How many times longer than a look the pause is that follows it.
const LOOKS_SHARE: u32 = 200;

/// Writes the tables of an output.
pub struct TableSink {
    output: TableOutput,
    store: Box<dyn TableStore>,
    evidence: Option<StandardError>,
    book: Book,
    changes: TableChanges,
    /// Whether the run before wrote decisions.
    kept_decisions: bool,
    /// Whether the run before kept deltas.
    kept_deltas: bool,
    /// Number of the last commit, for the thread that looks at the tables too.
    commits: Arc<AtomicI64>,
    /// The tables as they were taken over, see [`Look::relations`].
    relations: Vec<i64>,
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
        counted: BookMetrics,
    ) -> Self {
        let mut book = Book::new(Clusters::new(kind, usize::MAX)).with_clusters(counted.clusters);
        if let Some(mode) = output.decisions {
            book = book.with_decisions(mode, counted.decisions);
        }
        Self {
            book,
            kept_decisions: output.decisions.is_some(),
            output: output.clone(),
            store: open_store(output).expect("a deployment without the feature names no such database"),
            evidence,
            changes: TableChanges::default(),
            kept_deltas: output.deltas,
            commits: Arc::default(),
            relations: Vec::new(),
            alive: None,
        }
    }

    /// Parses the mark of the table.
    fn mark(&self, found: &str) -> io::Result<Box<Mark>> {
        serde_json::from_str(found).map_err(|error| {
            invalid_data(format!(
                "{}: the mark in the table of progress is damaged: {error}",
                self.output.address.name()
            ))
        })
    }

    /// What tables stand for.
    fn standing(&self, found: &Found) -> io::Result<Standing> {
        let name = |table| self.output.table_name(table);
        if let Some(lost) = found.lost() {
            return Ok(Standing::Unmarked(shape::missing(&name(lost))));
        }
        match (&found.progress.mark, found.filled.first()) {
            (Some(mark), _) => self.mark(mark).map(Standing::At),
            (None, Some(filled)) => Ok(Standing::Unmarked(format!(
                "the table {} holds rows, and the table {} no mark that says of which input: the row of \
                 progress was deleted. Put it back, or drop all tables of the output, and the next run \
                 writes its whole result anew",
                name(filled),
                name("progress")
            ))),
            (None, None) => Ok(Standing::New),
        }
    }

    /// Adds answers to the changes of the next commit.
    fn add(&mut self, epoch: Epoch, BookChanges { clusters, decisions }: BookChanges) {
        self.changes.clusters(&clusters);
        let is_current = self.book.decides() == Some(DecisionMode::Current);
        self.changes.decisions(epoch, decisions, is_current);
    }

    fn write(&mut self, mark: &Mark) -> io::Result<()> {
        let written = serde_json::to_string(mark)?;
        for (table, is_emptied) in [
            ("deltas", self.changes.deltas_anew && !self.output.deltas),
            ("decisions", self.changes.decisions_anew && self.book.decides().is_none()),
        ] {
            if is_emptied {
                let name = self.output.table_name(table);
                tracing::warn!("the table {name} is emptied: no more {table} are kept");
            }
        }
        let commits = self.commits.load(Ordering::Relaxed);
        self.store.write(&self.changes, commits, &written).map_err(io_error)?;
        failpoint::reach("tables-written");
        self.commits.store(commits + 1, Ordering::Release);
        self.changes.clear();
        Ok(())
    }
}

impl Sink for TableSink {
    fn inspect(&mut self) -> io::Result<Option<Standing>> {
        let found = self.store.inspect().map_err(io_error)?;
        self.standing(&found).map(Some)
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        let found = self.store.take_over().map_err(io_error)?;
        self.commits.store(found.progress.commits, Ordering::Release);
        let standing = self.standing(&found)?;
        match &standing {
            Standing::At(mark) => {
                self.kept_deltas = is_kept(mark, TableOutput::WITH_DELTAS);
                self.kept_decisions = is_kept(mark, TableOutput::WITH_DECISIONS);
                self.write(&Mark { run: self.output.run.clone(), ..(**mark).clone() })?;
            }
            Standing::Unmarked(_) => {
                self.kept_deltas = found.filled.contains(&"deltas");
                self.kept_decisions = found.filled.contains(&"decisions");
            }
            _ => {
                // Documents from state stored elsewhere are passed as restored, and are missing in these new
                // tables.
                self.alive = Some(BTreeMap::new());
                self.book.correct_decisions(LastDecisions::default());
            }
        }
        self.relations = found.relations;
        Ok(standing)
    }

    fn check_held(&mut self) -> io::Result<()> {
        let found = self.store.inspect().map_err(io_error)?.progress;
        let commits = self.commits.load(Ordering::Relaxed);
        must_write(&found, &self.output.run, commits).map(drop).map_err(io_error)
    }

    fn check_unchanged(&mut self) -> io::Result<()> {
        let name = &self.output.address.name();
        let look = retry_until_reachable(name, None, || self.store.look()).map_err(io_error)?;
        let commits = self.commits.load(Ordering::Relaxed);
        check_look(&self.output, &look, commits, &self.relations)
    }

    fn guard(&self) -> Option<OutputGuard> {
        let (store, output) = (open_store(&self.output)?, self.output.clone());
        let (commits, relations) = (Arc::clone(&self.commits), self.relations.clone());
        let clock = SystemClock::start();
        Some(Box::new(move || {
            let (begun, commits) = (clock.now(), commits.load(Ordering::Acquire));
            // Without an answer, the tables are looked at the next time; a commit says what is wrong.
            let look = store.look().ok();
            look.map_or(Ok(()), |look| check_look(&output, &look, commits, &relations))?;
            Ok(LOOKS_APART.max((clock.now() - begun) * LOOKS_SHARE))
        }))
    }

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        self.store.forget_counts().map_err(io_error)?;
        let stored = self.store.clusters().map_err(io_error)?;
        self.book.correct_clusters(stored);
        self.alive = Some(BTreeMap::new());
        // Without the deltas of the runs in between, or of other programs that changed pairs, the table would
        // not add up to the pairs. It is filled with the first correction, whose mark says that deltas are
        // kept.
        let adds_up = !self.output.deltas || self.store.deltas_add_up().map_err(io_error)?;
        self.changes.deltas_anew = self.output.deltas != self.kept_deltas || !adds_up;
        let decides = self.book.decides().is_some();
        // Positions of another reading do not say which documents are decided.
        let is_first = self.output.anew && self.book.decides() == Some(DecisionMode::First);
        self.changes.decisions_anew = decides != self.kept_decisions || is_first;
        if decides {
            let is_there = self.kept_decisions && !is_first;
            let there =
                if is_there { self.store.decisions().map_err(io_error)? } else { LastDecisions::default() };
            self.book.correct_decisions(there);
        }
        self.store.pairs().map_err(io_error)
    }

    fn wants_documents(&self) -> bool {
        true
    }

    fn wants_upserts(&self) -> bool {
        self.book.decides().is_some()
    }

    fn upserts(&mut self, upserts: &[UpsertedDoc]) -> io::Result<()> {
        self.book.upserts(upserts);
        Ok(())
    }

    fn live(&mut self, _: Epoch) {
        self.book.live();
    }

    fn documents(&mut self, changes: &[DocChange], restored: bool) -> io::Result<()> {
        self.book.documents(changes);
        if !restored {
            self.changes.documents(changes);
        } else if let Some(alive) = &mut self.alive {
            for DocChange { id, now, .. } in changes {
                match now {
                    Some(facts) => drop(alive.insert(id.clone(), *facts)),
                    None => drop(alive.remove(id)),
                }
            }
        }
        Ok(())
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.book.restored(deltas);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        let answers = self.book.advance(deltas);
        self.add(progress.epoch, answers);
        self.changes.pairs(progress.epoch, deltas, self.evidence.as_ref(), self.output.deltas);
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        let answers = self.book.corrections(mark);
        self.add(mark.progress.epoch, answers);
        if !mark.in_correction
            && let Some(alive) = self.alive.take()
        {
            let mut documents = Reconcile::default();
            alive.into_iter().for_each(|live| documents.given(live, 1));
            self.store.documents().map_err(io_error)?.into_iter().for_each(|row| documents.held(row, 1));
            for (id, row) in documents.rows(|(id, _)| id.clone()) {
                // What this commit changes is newer.
                self.changes.documents.entry(id).or_insert(row.map(|(_, facts)| facts));
            }
        }
        self.write(mark)
    }

    fn side_rows(&mut self, name: &str, each: &mut dyn FnMut(SideDelta)) -> io::Result<()> {
        let rows = self.store.side_rows(name).map_err(io_error)?;
        rows.into_iter().for_each(|row| each(SideDelta { row, diff: 1 }));
        Ok(())
    }

    fn side(&mut self, name: &str, epoch: Epoch, deltas: &[SideDelta]) -> io::Result<()> {
        self.changes.side(name, epoch, deltas);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.store.check().map_err(io_error)?;
        self.check_unchanged()
    }
}

/// Checks that tables are those of a run, as its commit number `commits` or a later one left them.
fn check_look(output: &TableOutput, look: &Look, commits: i64, relations: &[i64]) -> io::Result<()> {
    let name = output.address.name();
    let changed = |what: &dyn fmt::Display| Err(invalid_data(format!("output {name}: {what}")));
    if let Some(fault) = look.faults.first() {
        return changed(fault);
    }
    if let Err(failure) = check_held(&look.progress, &output.run, commits) {
        return changed(&failure);
    }
    if look.relations != relations {
        return changed(
            &"a table was put in another one's place while this run wrote to it. Put it back, or \
                         start with --reconcile, which corrects the tables",
        );
    }
    look.foreign.as_ref().map_or(Ok(()), |foreign| changed(foreign))
}

fn invalid_data(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn io_error(failure: DatabaseFailure) -> io::Error {
    io::Error::other(failure)
}

impl fmt::Debug for TableSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSink")
            .field("name", &self.output.address.name())
            .field("commits", &self.commits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "decisions_tests.rs"]
mod decisions_tests;

#[cfg(test)]
#[path = "tests/mod.rs"]
mod tests;
