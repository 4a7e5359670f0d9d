//! The tables of one output: settings, the contract of a database, and what the databases share.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::changes::TableChanges;
use super::progress::{COUNTED, ForeignRows, ProgressRow};
use crate::mark::Mark;
use crate::sinks::book::LastDecisions;
use crate::sinks::side::SideRow;
use crate::sinks::{Decision, DecisionMode, Repetition};
use crate::tables::database::{Address, DatabaseFailure};
use dupflow_core::cluster::ClusterReport;
use dupflow_core::description::Description;
use dupflow_core::doc::{DocId, Facts, Position};
use dupflow_core::pair::{DocPair, Evidence, Pair, Similarity};

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
    /// Whether pairs and deltas have the shares of their similarities.
    pub shares: bool,
    /// When decisions of a document are written, if they are.
    pub decisions: Option<DecisionMode>,
    /// How long a server may take to answer at the start.
    pub patience: Duration,
    /// Whether no mark counts: the tables are corrected to what the inputs give.
    pub anew: bool,
    /// Name of the run; unique.
    pub run: String,
}

impl TableOutput {
    /// The names of the sink's own tables, views and indices, without the prefix.
    pub const NAMES: [&str; 12] = [
        "pairs",
        "documents",
        "clusters",
        "deltas",
        "progress",
        "kept",
        "removed",
        "decisions",
        "decisions_of",
        "pairs_b",
        "pairs_similarity",
        "clusters_cluster",
    ];

    /// The name of a table in messages.
    pub(super) fn table_name(&self, table: &str) -> String {
        let schema = match self.address {
            Address::Sqlite(_) => String::new(),
            Address::Postgres(_) => format!("{}.", self.schema),
        };
        format!("{schema}{}{table}", self.prefix)
    }

    /// Name and value of the field that the description in a mark has if the tables keep deltas.
    pub const WITH_DELTAS: (&str, &str) = ("sink.emit", "deltas");

    /// The same of decisions.
    pub const WITH_DECISIONS: (&str, &str) = ("sink.emit", "decisions");
}

/// What a database has of an output.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) progress: ProgressRow,
    /// The tables that are not there.
    pub(super) missing: Vec<&'static str>,
    /// The tables that hold rows; known where no mark stands for all of them.
    pub(super) filled: Vec<&'static str>,
    /// See [`Look::relations`]; known of tables that are taken over.
    pub(super) relations: Vec<i64>,
}

impl Found {
    /// The first table that the mark stands for, and that is not there.
    pub(super) fn lost(&self) -> Option<&'static str> {
        let mark: Mark = serde_json::from_str(self.progress.mark.as_deref()?).ok()?;
        let kept_deltas = is_kept(&mark, TableOutput::WITH_DELTAS);
        let kept_decisions = is_kept(&mark, TableOutput::WITH_DECISIONS);
        self.missing.iter().copied().find(|table| match *table {
            "deltas" => kept_deltas,
            "decisions" => kept_decisions,
            table => COUNTED.contains(&table),
        })
    }

    /// Whether a mark stands for all tables.
    pub(super) fn is_whole(&self) -> bool {
        self.progress.mark.is_some() && self.lost().is_none()
    }
}

/// Whether the run that wrote this mark kept a table besides, by the field of its description.
pub(super) fn is_kept(mark: &Mark, (key, value): (&str, &str)) -> bool {
    let wanted = Description::new().with(key, value);
    let is_wanted = |field: &(&str, String)| wanted.fields().any(|wanted| wanted == *field);
    Description::decode(mark.pipeline.as_bytes())
        .is_ok_and(|described| described.fields().any(|field| is_wanted(&field)))
}

/// A look at the tables of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) progress: ProgressRow,
    pub(super) foreign: Option<ForeignRows>,
    /// What is wrong with the tables themselves; then nothing else is known.
    pub(super) faults: Vec<String>,
    /// Numbers of the tables, of which no other table of a server ever has one.
    pub(super) relations: Vec<i64>,
}

/// The tables of one output in one database.
pub(super) trait TableStore: Send {
    /// What the database has; changes nothing.
    fn inspect(&self) -> Result<Found, DatabaseFailure>;

    /// Creates missing tables and views, writes the run's name, and returns what the database had before. A
    /// mark that stands for a table that was missing is deleted.
    fn take_over(&mut self) -> Result<Found, DatabaseFailure>;

    /// Writes the changes and the mark, on commit number `commits`, in one transaction, exactly once.
    fn write(&mut self, changes: &TableChanges, commits: i64, mark: &str) -> Result<(), DatabaseFailure>;

    /// Checks that what a connection has open is still where readers look.
    fn check(&mut self) -> Result<(), DatabaseFailure> {
        Ok(())
    }

    /// Looks at the tables with a connection of its own, in one snapshot.
    fn look(&self) -> Result<Look, DatabaseFailure>;

    /// Forgets how many rows the last commit has left: the next one counts them.
    fn forget_counts(&mut self) -> Result<(), DatabaseFailure>;

    /// Whether the deltas add up to the pairs, as far as the table says: not if the first ones were deleted.
    fn deltas_add_up(&mut self) -> Result<bool, DatabaseFailure>;

    /// The rows of pairs.
    fn pairs(&mut self) -> Result<BTreeSet<DocPair>, DatabaseFailure>;

    /// The rows of clusters.
    fn clusters(&mut self) -> Result<BTreeSet<ClusterReport>, DatabaseFailure>;

    /// The rows of a side output, key and row; creates its table if it is missing.
    fn side_rows(&mut self, table: &str) -> Result<Vec<SideRow>, DatabaseFailure>;

    /// The rows of documents.
    fn documents(&mut self) -> Result<BTreeMap<DocId, Facts>, DatabaseFailure>;

    /// The rows of decisions.
    fn decisions(&mut self) -> Result<LastDecisions, DatabaseFailure>;
}

/// The columns of a decision, except its id, epoch and time.
#[derive(Clone, Debug)]
pub(super) struct DecisionColumns {
    pub(super) position: Position,
    pub(super) ended: bool,
    pub(super) copy: bool,
    pub(super) of: Option<String>,
    /// A list as JSON.
    pub(super) repeats: String,
    pub(super) pairs: i64,
    pub(super) cluster: Option<String>,
}

impl DecisionColumns {
    /// The columns of a decision.
    pub(super) fn new(decision: &Decision) -> Self {
        let repetition = decision.repetition.clone().unwrap_or_default();
        let mut repeats = Vec::new();
        repetition.write_repeats(&mut repeats).expect("memory takes every byte");
        let Repetition { of, cluster, pairs, .. } = repetition;
        Self {
            position: decision.position.unwrap_or_default(),
            ended: decision.repetition.is_none(),
            copy: decision.is_copy(),
            of: of.map(|of| of.to_string()),
            repeats: String::from_utf8_lossy(&repeats).into_owned(),
            pairs: i64::try_from(pairs).unwrap_or(i64::MAX),
            cluster: cluster.map(|cluster| cluster.to_string()),
        }
    }

    /// The decision of a document.
    pub(super) fn decision(self, document: DocId) -> Result<Decision, DatabaseFailure> {
        let damaged =
            || DatabaseFailure::Refused("a table of the output holds a decision that is none".to_owned());
        let maybe = |text: Option<String>| text.as_deref().map(id).transpose();
        let repetition = Repetition {
            of: maybe(self.of)?,
            cluster: maybe(self.cluster)?,
            is_giant: false,
            repeats: Repetition::read_repeats(&self.repeats).ok_or_else(damaged)?,
            pairs: usize::try_from(self.pairs).map_err(|_| damaged())?,
        };
        let repetition = Some(repetition).filter(|_| !self.ended);
        Ok(Decision { id: document, position: Some(self.position), repetition })
    }
}

/// Version of the tables. Since 2, rows have the time when they were written, and times of documents are
/// timestamps on a server.
pub(super) const LAYOUT: i64 = 2;

/// Checks that the layout found, after any migration, is that of this program.
///
/// # Errors
/// If it is another one.
pub(super) fn known_layout(name: &str, found: Option<i64>) -> Result<(), DatabaseFailure> {
    match found.filter(|found| *found != LAYOUT) {
        None => Ok(()),
        Some(found) => Err(DatabaseFailure::Refused(format!(
            "{name}: its tables are of layout {found}, and this dupflow writes layout {LAYOUT}: run the \
             dupflow that made them, or set \
             sink.prefix"
        ))),
    }
}

/// Whether a run that builds on commit number `commits` must write its next commit. If not, an earlier
/// attempt with an unknown outcome has written it.
///
/// # Errors
/// If the tables are no longer those that this run has written.
pub(super) fn must_write(found: &ProgressRow, own: &str, commits: i64) -> Result<bool, DatabaseFailure> {
    check_held(found, own, commits)?;
    match found.commits - commits {
        0 => Ok(true),
        1 => Ok(false),
        more => Err(DatabaseFailure::Refused(format!(
            "the table of progress counts {more} commits that this run has not written: another program \
             writes to it, and this run writes no more"
        ))),
    }
}

/// Checks that the tables belong to a run and hold its commits up to number `commits`.
///
/// # Errors
/// Why they do not.
pub(super) fn check_held(found: &ProgressRow, own: &str, commits: i64) -> Result<(), DatabaseFailure> {
    let refused = |what: String| Err(DatabaseFailure::Refused(what));
    if found.run.is_empty() {
        return refused(
            "the row of the table of progress was deleted, or the table made anew, while this run wrote to \
             it. Put it back, or start with --reconcile, which corrects the tables"
                .to_owned(),
        );
    }
    if found.commits < commits {
        let of = if found.run == own { String::new() } else { format!(", as run {} left it", found.run) };
        return refused(format!(
            "the output has lost commits {} to {commits}: its tables were restored from a backup{of}, or its \
             server was replaced by one without these commits. Start with --reconcile, which writes what \
             they lack",
            found.commits + 1
        ));
    }
    if found.run != own {
        return refused(format!(
            "another run ({}) has taken the tables over: this one writes no more",
            found.run
        ));
    }
    Ok(())
}

/// SQL of [`TableStore::deltas_add_up`].
pub(super) fn sums_of(deltas: &str, pairs: &str) -> String {
    format!(
        "SELECT NOT EXISTS (SELECT 1 FROM {deltas} WHERE n = 1) OR NOT EXISTS (
            SELECT 1 FROM (SELECT a, b, similarity, diff FROM {deltas}
                UNION ALL SELECT a, b, similarity, -1 FROM {pairs}) AS changes
            GROUP BY a, b, similarity HAVING sum(diff) <> 0)"
    )
}

/// That a table cannot be that of a side output.
pub(super) fn no_rows(table: &str) -> String {
    format!("the table {table} has not the columns of rows of views or notices: name another one")
}

/// A row of a side output, from the object in a table.
pub(super) fn side_row(key: String, object: &str) -> Result<SideRow, DatabaseFailure> {
    let members = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let json = members.ok_or_else(|| {
        DatabaseFailure::Refused(format!("a table of the output holds a row that is no object: {object}"))
    })?;
    Ok(SideRow { key, json: json.to_owned() })
}

/// Parses an id of a table.
pub(super) fn id(text: &str) -> Result<DocId, DatabaseFailure> {
    DocId::new(text)
        .ok_or_else(|| DatabaseFailure::Refused("the output table holds an invalid id".to_owned()))
}

/// The columns of a similarity: its value, then the share of b's features that a has, and of a's that b has.
pub(super) type SimilarityColumns = (f64, Option<f64>, Option<f64>);

/// Builds a pair from the columns of a table.
pub(super) fn pair(
    a: &str,
    b: &str,
    (similarity, in_a, in_b): SimilarityColumns,
    evidence: Evidence,
) -> Result<DocPair, DatabaseFailure> {
    let same = || DatabaseFailure::Refused("a table of the output pairs a document with itself".to_owned());
    let pair = Pair::new(id(a)?, id(b)?).ok_or_else(same)?;
    Ok(DocPair { pair, similarity: Similarity::read_beside(similarity, in_b, in_a), evidence })
}
