//! The tables as statements need them: names, keys and columns, and what is wrong with those found.

/// A table of an output.
pub(super) struct Shape {
    pub(super) name: &'static str,
    /// The columns by which its rows are unique; empty if nothing depends on that.
    key: &'static [&'static str],
    /// The columns that are written.
    columns: &'static [&'static str],
    /// Whether it has shares where an output has them.
    may_have_shares: bool,
}

/// The tables. That of decisions is there only if they are written.
pub(super) const SHAPES: [Shape; 6] = [
    Shape {
        name: "pairs",
        key: &["a", "b"],
        columns: &["a", "b", "similarity", "epoch", "blocks", "look", "components", "standard_error", "at"],
        may_have_shares: true,
    },
    Shape { name: "clusters", key: &["document"], columns: &["document", "cluster"], may_have_shares: false },
    Shape {
        name: "documents",
        key: &["id"],
        columns: &["id", "ts", "bytes", "source_partition", "source_offset"],
        may_have_shares: false,
    },
    Shape {
        name: "deltas",
        key: &[],
        columns: &["epoch", "diff", "a", "b", "similarity", "cause", "at"],
        may_have_shares: true,
    },
    Shape {
        name: "progress",
        key: &["one"],
        columns: &["one", "run", "commits", "epoch", "mark", "at", "counts"],
        may_have_shares: false,
    },
    Shape {
        name: "decisions",
        key: &["id"],
        columns: &[
            "id",
            "source_partition",
            "source_offset",
            "epoch",
            "at",
            "ended",
            "copy",
            "of",
            "repeats",
            "pairs",
            "cluster",
        ],
        may_have_shares: false,
    },
];

/// A table as a database describes it.
#[derive(Clone, Debug)]
pub(super) struct FoundTable {
    pub(super) name: &'static str,
    pub(super) columns: Vec<String>,
    /// The columns to which every new row must give a value.
    pub(super) required: Vec<String>,
    /// For each constraint or index that makes rows unique, its columns in the order of their names.
    pub(super) keys: Vec<String>,
    /// Whether a policy decides which rows the role reads and writes.
    pub(super) has_policy: bool,
    /// See [`super::store::Look::relations`].
    pub(super) relation: i64,
}

impl FoundTable {
    /// What keeps statements from writing to it, `name` in messages.
    fn misfit(&self, shares: bool, name: &str) -> Option<String> {
        let shape = SHAPES.iter().find(|shape| shape.name == self.name)?;
        let more: &[&str] = if shares && shape.may_have_shares { &["in_a", "in_b"] } else { &[] };
        let written = || shape.columns.iter().chain(more);
        let is_there = |column: &&&str| self.columns.iter().any(|found| found == **column);
        if let Some(column) = written().find(|column| !is_there(column)) {
            return Some(format!("the table {name} has no column \"{column}\": put it back"));
        }
        if let Some(column) = self.required.iter().find(|found| written().all(|column| found != column)) {
            return Some(format!(
                "the table {name} has a column \"{column}\" that must have a value, and none is written to \
                 it: drop it, or let it be NULL"
            ));
        }
        let key = shape.key.join(", ");
        let has_key = key.is_empty() || self.keys.contains(&shape.key.join(" "));
        (!has_key).then(|| format!("the table {name} has no primary key ({key}): add it"))
    }

    /// What is wrong with it, with the way out.
    pub(super) fn fault(&self, shares: bool, name: &str) -> Option<String> {
        if let Some(misfit) = self.misfit(shares, name) {
            return Some(format!(
                "{misfit}, or drop the table; then start with --reconcile, which makes a missing table and \
                 corrects all"
            ));
        }
        self.has_policy.then(|| {
            format!(
                "a policy (row level security) of the table {name} decides which rows the role of this run \
                 reads and writes: give the role BYPASSRLS, or disable row level security for the table; \
                 then start with --reconcile, which corrects all"
            )
        })
    }
}

/// The tables that an output needs.
pub(super) fn needed(decisions: bool) -> impl Iterator<Item = &'static Shape> {
    SHAPES.iter().filter(move |shape| decisions || shape.name != "decisions")
}

/// What is wrong with the tables that an output needs, each as a message with the way out; `name` of a table
/// in messages.
pub(super) fn faults(
    found: &[FoundTable],
    decisions: bool,
    shares: bool,
    name: impl Fn(&str) -> String,
) -> Vec<String> {
    let is_missing = |shape: &&Shape| found.iter().all(|found| found.name != shape.name);
    let missing = needed(decisions).filter(is_missing).map(|shape| {
        let missing = missing(&name(shape.name));
        format!("{missing}, or start with --reconcile, which makes it and corrects all")
    });
    missing.chain(found.iter().filter_map(|found| found.fault(shares, &name(found.name)))).collect()
}

/// That a table is not there.
pub(super) fn missing(name: &str) -> String {
    format!("the table {name} is missing: it was dropped or renamed. Put it back")
}

/// The names of the tables that are not there. Without a row of progress, tables of another shape are not
/// those of an output: then the name of the first one.
pub(super) fn missing_of(found: &[FoundTable]) -> Result<Vec<&'static str>, &'static str> {
    let is_there = |name: &str| found.iter().any(|table| table.name == name);
    let missing: Vec<_> = SHAPES.iter().map(|shape| shape.name).filter(|name| !is_there(name)).collect();
    let is_other = |table: &&FoundTable| table.misfit(false, "").is_some();
    match found.iter().find(is_other).filter(|_| missing.contains(&"progress")) {
        Some(other) => Err(other.name),
        None => Ok(missing),
    }
}

/// That a table has the name of one of an output, and another shape.
pub(super) fn not_own(name: &str) -> String {
    format!("there is a table {name} that no run has made: set sink.prefix, or take another place")
}

/// Logs a trigger that may change rows before they are written.
pub(super) fn warn_of_trigger(trigger: &str, table: &str) {
    tracing::warn!(
        "the trigger {trigger} of the table {table} may change what is written to it: a row that is not \
         written ends the run, another value is not noticed"
    );
}
