//! A replay into the tables of a database, which it corrects to what its inputs give.

use super::args::Args;
use crate::cli::arguments::problems::Problems;
use crate::cli::run::note_keep;
use crate::config::{Plan, TablesConfig};
use dupflow_connectors::intake::Speed;

/// Reports options that tables have no place for.
pub(super) fn note_conflicts(args: &Args, plan: Option<&Plan>, problems: &mut Problems) {
    const ALL_AT_ONCE: &str = "tables that hold a result are corrected at the end, in one step; `dupflow \
        run` with the tables as [sink] has it";
    let refused = [
        ("--mark", args.documents.mark.is_some(), "tables have no records of documents"),
        ("--shard-size", args.documents.shard_size.is_some(), "tables have no records of documents"),
        ("--output-format", args.output_format.is_some(), "tables have no format of a file"),
        ("--provenance", args.provenance, "a database has no place for it, and --stats has it"),
        ("--times", args.times, TablesConfig::NO_TIMES),
        ("--against", !args.reference.against.is_empty(), TablesConfig::NO_SIDE),
        (
            "--resume",
            args.resume.resume.is_some(),
            "tables need no folder: start the replay again, and it corrects them",
        ),
        ("--speed", args.speed != Speed::Max, ALL_AT_ONCE),
        ("--watch", !args.watch.is_empty(), ALL_AT_ONCE),
        ("--views", args.views.is_some(), ALL_AT_ONCE),
        (
            "--processes",
            args.processes.are_several(),
            "\"dupflow run\" with the tables as [sink] takes several",
        ),
    ];
    for (option, _, why) in refused.iter().filter(|(_, is_set, _)| *is_set) {
        problems.note(format_args!("{option}: not with tables as --output: {why}"));
    }
    if let Some(plan) = plan {
        note_keep(plan, problems);
    }
}
