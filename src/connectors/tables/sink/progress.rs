//! The row of progress, and how many rows the tables of an output have by it, so that rows that others have
//! deleted or added are noticed.
//!
//! Each commit writes beside its mark how many rows it leaves in each table: those that the commit before
//! left, and what it has inserted and deleted since. Whoever reads both in one snapshot finds them equal, as
//! long as only runs write. Rows that others change in place are not noticed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The tables that are counted. Of the others users may delete old rows.
pub(super) const COUNTED: [&str; 3] = ["pairs", "clusters", "documents"];

/// Rows of each of [`COUNTED`].
pub(super) type Rows = [i64; COUNTED.len()];

/// The row of the table of progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProgressRow {
    pub(super) run: String,
    pub(super) commits: i64,
    pub(super) mark: Option<String>,
    /// The counts of rows, as they are written.
    pub(super) counts: Option<String>,
}

/// The rows after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RowCounts {
    /// Number of the commit. A program that knows of no counts leaves those of an earlier commit.
    commit: i64,
    rows: Rows,
}

impl ProgressRow {
    /// The rows that the last commit has left; `None` if it has not counted them.
    pub(super) fn rows(&self) -> Option<Rows> {
        let counts: RowCounts = serde_json::from_str(self.counts.as_deref()?).ok()?;
        (counts.commit == self.commits).then_some(counts.rows)
    }

    /// The counts to write with the next commit, before which there are `rows`, and `more` after it.
    pub(super) fn next_counts(&self, rows: Rows, more: Rows) -> String {
        let rows = std::array::from_fn(|table| rows[table] + more[table]);
        let counts = RowCounts { commit: self.commits + 1, rows };
        serde_json::to_string(&counts).expect("numbers are JSON")
    }
}

/// A table that another program has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ForeignRows {
    table: String,
    left: i64,
    there: i64,
}

impl ForeignRows {
    /// The first table that has not the rows that were left in it.
    pub(super) fn find(left: Rows, there: Rows, name: impl Fn(&str) -> String) -> Option<Self> {
        let changed = (0..COUNTED.len()).find(|&table| left[table] != there[table])?;
        Some(Self { table: name(COUNTED[changed]), left: left[changed], there: there[changed] })
    }
}

impl fmt::Display for ForeignRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, left, there } = self;
        write!(
            f,
            "the table {table} has {there} rows, and the last commit left {left}: another program has \
             deleted or added some. Start with --reconcile, which corrects the tables"
        )
    }
}
