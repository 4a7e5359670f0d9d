//! Pipelines that cut documents into units, and the options that go with them.

use super::arguments::problems::Problems;
use crate::config::{OutputAnswer, Plan};

/// Why a command takes no pipeline that cuts documents.
pub(super) const NOT_DOCUMENTS: &str = "text.split: this command compares whole documents: leave it \
    out; units are found by `dupflow replay --emit remove`";

/// Reports what has no meaning where documents are cut: `others` are options, each with whether it is set.
pub(super) fn note_conflicts(
    plan: Option<&Plan>,
    answer: OutputAnswer,
    others: &[(&str, bool)],
    problems: &mut Problems,
) {
    let Some(units) = plan.and_then(|plan| plan.scheme.units) else { return };
    let name = units.split.name();
    if !answer.takes_units {
        problems.note(format_args!(
            "--emit: text.split = \"{name}\" finds repeated parts of documents, which are no pairs of \
             documents: take --emit remove or documents"
        ));
    }
    for (option, _) in others.iter().filter(|(_, is_set)| *is_set) {
        problems
            .note(format_args!("{option}: does not go with text.split = \"{name}\": leave one of them out"));
    }
}
