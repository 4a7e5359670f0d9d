//! The comparison of the rows that a statement has changed with those that were sent.
//!
//! A trigger (`RETURN NULL`, `RAISE(IGNORE)`), a rule (`DO INSTEAD`) or a policy may leave rows as they are,
//! and the statement succeeds. The number of changed rows comes with its answer, so the comparison costs no
//! statement. What a trigger writes in place of a value is not noticed.

use crate::tables::database::DatabaseFailure;

/// What a statement does with rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Inserts rows, or replaces those of the same key.
    Written,
    /// Inserts rows whose keys the last commit did not leave.
    Added,
    /// Deletes rows that are there.
    Deleted,
}

/// Compares how many rows of a table a statement has changed with how many were sent.
pub(super) fn check_changed(
    table: &str,
    action: Action,
    sent: usize,
    changed: i64,
) -> Result<(), DatabaseFailure> {
    if usize::try_from(changed) == Ok(sent) {
        return Ok(());
    }
    let done = match action {
        Action::Written => "written",
        Action::Added => "added",
        Action::Deleted => "deleted",
    };
    Err(DatabaseFailure::Refused(format!(
        "the table {table}: of {sent} rows to be {done}, {changed} were {done}. A trigger, a rule or a \
         policy of the table changes what is written, or another program has deleted or added rows. \
         Nothing of this commit is written. Drop what does so, and start with --reconcile, which corrects \
         the tables"
    )))
}
