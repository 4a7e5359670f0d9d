//! `dupflow replay`: a recorded feed in, the changes of its near-duplicate pairs out.

mod args;
mod corrected;
mod execute;
mod progress_line;
mod report;
mod request;

use std::process::ExitCode;
use std::sync::Arc;

pub use self::args::Args;
use self::execute::end_published;
pub(super) use self::execute::run_until_signalled;
use self::request::Request;
use super::arguments::problems::Problems;
use super::arguments::verbosity::Verbosity;
use dupflow_core::time::SystemClock;

/// Replays the inputs, prints a summary on standard error, and writes the counts if requested.
///
/// # Errors
/// All problems of the pipeline and the inputs; then the error of the run.
pub(super) fn run(args: &Args, mut problems: Problems, verbosity: Verbosity) -> anyhow::Result<ExitCode> {
    let clock = Arc::new(SystemClock::start());
    let mut request = Request::read(args, verbosity, &mut problems);
    request.note_reference(&mut problems);
    request.open_folder(&mut problems);
    request.note_views(&mut problems);
    request.note_answers(&mut problems);
    request.note_outputs(&mut problems);
    request.note_records(&mut problems);
    request.note_processes(&mut problems);
    request.note_monitor(&mut problems);
    request.note_written(&mut problems);
    request.look_at_standard_input(&mut problems);
    let replay = request.settle(problems)?;

    if let Some(events) = args.dry_run {
        let fields = replay.deployment.fields;
        super::print(&super::run::look::look(&replay.plan, replay.inputs, fields, events)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if replay.is_published {
        return end_published(args, replay.resumable);
    }
    let bad_items = replay.check_items(args)?;
    replay.run(args, bad_items, clock, verbosity)
}
