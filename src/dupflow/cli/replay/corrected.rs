//! A replay into places that it corrects to what its inputs give: the tables of a database, a topic.

use super::args::Args;
use crate::cli::arguments::problems::Problems;
use crate::cli::run::note_keep;
use crate::config::{OutputConfig, Place, Plan, TablesPlace, TopicPlace};
use dupflow_connectors::intake::Speed;
use dupflow_connectors::sinks::DecisionMode;

/// Reports options for which these outputs have no place.
pub(super) fn note_conflicts(
    args: &Args,
    outputs: &[OutputConfig],
    plan: Option<&Plan>,
    problems: &mut Problems,
) {
    const ALL_AT_ONCE: &str = "what is there is corrected at the end, in one step; `dupflow run` with it as \
        [sink] writes it epoch by epoch";
    let has_file = outputs.iter().any(|output| !output.place.is_corrected());
    let tables = [
        ("--times", args.times, TablesPlace::NO_TIMES),
        ("--against", !args.reference.against.is_empty(), TablesPlace::NO_SIDE),
    ];
    let finds_items = plan.is_some_and(Plan::finds_items);
    let all = [
        (
            "--against",
            !args.reference.against.is_empty() && finds_items && has::<TopicPlace>(outputs),
            "items are looked for at the end of the input, and a topic is told of changes",
        ),
        ("--mark", args.documents.mark.is_some(), "there are no records of documents"),
        ("--shard-size", args.documents.shard_size.is_some(), "there are no records of documents"),
        ("--output-format", args.output_format.is_some() && !has_file, "there is no format of a file"),
        ("--provenance", args.provenance, "there is no place for it, and --stats has it"),
        (
            "--resume",
            args.resume.resume.is_some(),
            "no folder is needed: start the replay again, and it corrects them",
        ),
        ("--speed", args.speed != Speed::Max, ALL_AT_ONCE),
        ("--watch", !args.watch.is_empty(), ALL_AT_ONCE),
        ("--views", args.views.is_some(), ALL_AT_ONCE),
        ("--processes", args.processes.are_several(), "`dupflow run` with it as [sink] takes several"),
    ];
    let has_topic = has::<TopicPlace>(outputs);
    let has_tables = has::<TablesPlace>(outputs);
    for (are_tables, name, _) in
        [(true, "tables", has_tables), (false, "a topic", has_topic)].into_iter().filter(|place| place.2)
    {
        let of_tables = tables.iter().filter(|_| are_tables);
        for (option, _, why) in of_tables.chain(&all).filter(|(_, is_set, _)| *is_set) {
            problems.note(format_args!("{option}: not with {name} as --output: {why}"));
        }
    }
    if has_topic && args.decisions == Some(DecisionMode::First) {
        problems.note(
            "--decisions: a topic keeps the decisions of earlier upserts, which this replay does not know: \
             leave it out, or take \"current\"",
        );
    }
    if let Some(plan) = plan.filter(|_| has_tables) {
        note_keep(plan, problems);
    }
}

/// Whether one of the outputs is of this kind.
fn has<P: Place>(outputs: &[OutputConfig]) -> bool {
    outputs.iter().any(|output| output.place.as_a::<P>().is_some())
}
