//! `dupflow replay`: a recorded feed in, the changes of its near-duplicate pairs out.

mod args;
mod corrected;
mod progress_line;

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;

use anyhow::Context;

pub use self::args::Args;
use self::progress_line::ProgressLine;
use super::arguments::inputs::{STDIN_TWICE, look_at_standard_input};
use super::arguments::problems::{self, Problems};
use super::arguments::processes;
use super::arguments::reference::check_sides;
use super::arguments::resume::{self, ResumableReplay};
use super::arguments::verbosity::Verbosity;
use super::arguments::views;
use super::arguments::written;
use super::audit;
use super::units;
use crate::config::{
    Deployment, EmitKind, OutputFormat, Plan, ProvenancePlace, SinkConfig, ViewConfig, without_monitor,
};
use crate::pipeline::{self, CountsRecord, Mode, Provenance, RunError, RunJob, Summary, missing_fields};
use dupflow_connectors::inputs::{Input, Staying};
use dupflow_connectors::intake::Speed;
use dupflow_core::time::SystemClock;
use dupflow_engine::processes::Processes;

/// Replays the inputs, prints a summary on standard error, and writes the counts if requested.
///
/// # Errors
/// All problems of the pipeline and the inputs; then the error of the run.
pub(super) fn run(args: &Args, mut problems: Problems, verbosity: Verbosity) -> anyhow::Result<ExitCode> {
    let clock = Arc::new(SystemClock::start());
    let are_understood = problems.is_empty();
    let mut plan = problems.take(args.pipeline.load());
    let inputs = args.inputs.resolve(&mut problems);
    let reference = args.reference.resolve(args.inputs.layout.layout(), &mut problems);
    if reference.iter().any(Input::is_stdin)
        && (args.inputs.lists_stdin() || inputs.iter().flatten().any(Input::is_stdin))
    {
        problems.note(STDIN_TWICE);
    }
    let fields = args.inputs.layout.columns.fields(&mut problems);
    let mut deployment = args.deployment(fields, verbosity.format);
    let outputs = args.outputs();
    if let Err(what) = &outputs {
        problems.note(format_args!("--output: {what}"));
    }
    let outputs = outputs.unwrap_or_default();
    corrected::note_conflicts(args, &outputs, plan.as_ref(), &mut problems);
    // One that cannot be read is a problem of its own.
    deployment.against = reference.len().max(usize::from(!args.reference.against.is_empty()));
    let others = [
        ("--mark", args.documents.mark.is_some() && !plan.as_ref().is_some_and(Plan::finds_items)),
        ("several processes", args.processes.are_several()),
        ("--monitor", args.monitor.is_some()),
        ("--watch", !args.watch.is_empty()),
        ("--views", args.views.is_some()),
    ];
    args.reference.apply(plan.as_mut(), args.emit, &others, &mut problems);
    let not_of_units =
        [("--against", !args.reference.against.is_empty()), ("--resume", args.resume.resume.is_some())];
    units::note_conflicts(
        plan.as_ref(),
        args.emit,
        &[&not_of_units[..], &others[1..]].concat(),
        &mut problems,
    );
    let mut resumable = args.resume.open(&mut problems);
    let mut is_published = false;
    if let Some(replay) = &resumable {
        replay.place(&mut deployment, &mut problems);
        let read = [&*reference, inputs.as_deref().unwrap_or_default()].concat();
        let set = [
            ("several processes", args.processes.are_several()),
            ("--monitor", args.monitor.is_some()),
            ("--watch", !args.watch.is_empty()),
            ("--views", args.views.is_some()),
            ("--provenance", args.provenance),
            ("--speed", args.speed != Speed::Max),
            ("several --output", args.output.len() > 1),
            ("--emit rejected", matches!(args.emit, EmitKind::Rejected(_))),
            ("a pipeline that finds items", plan.as_ref().is_some_and(Plan::finds_items)),
        ];
        replay.note_conflicts(&deployment, args.epoch, &read, &set, &mut problems);
        if let Some(plan) = &plan {
            replay.note_differences(&resume::settings(plan, &deployment, &read), &mut problems);
        }
        is_published = problems.is_empty() && replay.is_published(&deployment, &mut problems);
    }
    if args.processes.are_several() && inputs.iter().flatten().any(Input::is_folder) {
        // The documents of a folder are digested by all processes, and only process 0 may have --stats.
        deployment.audit.provenance = deployment.audit.provenance.max(ProvenancePlace::Stats);
    }
    if let Some(path) = &args.views {
        deployment.views = problems.take(ViewConfig::load(path, &deployment.fields)).unwrap_or_default();
    }
    views::note_conflicts(plan.as_ref(), &deployment, true, &mut problems);
    if deployment.evidence && !deployment.emit.is_of_pairs() {
        problems.note("--evidence: only pairs have evidence, and something else is to be emitted");
    }
    plan.iter().flat_map(|plan| missing_fields(plan, &deployment)).for_each(|missing| problems.note(missing));
    if deployment.causes && args.emit != EmitKind::Deltas {
        problems.note("--causes: only deltas have causes, and something else is to be emitted");
    }
    if args.decisions.is_some() && deployment.emit != EmitKind::Decisions {
        problems.note("--decisions: has an effect with --emit decisions only");
    }
    for output in &outputs {
        let is_file = !output.is_corrected();
        let refusing = if is_file { "--output-format" } else { "--emit" };
        if let Some(what) = output.emit.refusal(output.place(), true) {
            problems.note(format!("{refusing}: {what}"));
        }
        if let SinkConfig::Lines { path: Some(path), .. } = &output.sink
            && args.emit.copied().is_none()
            && let Some(why) = OutputFormat::misnamed(path, args.output_format.is_some())
        {
            problems.note(format!("--output: {why}"));
        }
        if let Some(missing) = output.format.missing().filter(|_| is_file) {
            problems.note(format!("--output-format: {missing}"));
        }
    }
    if args.provenance && outputs.len() > 1 {
        problems.note("--provenance: it is written into one output; --stats has it");
    }
    let sides = (inputs.as_deref().unwrap_or_default(), &*reference);
    check_sides("--against", sides.1, sides.0, &mut problems);
    let are_several = args.processes.are_several();
    if !is_published && outputs.iter().all(|output| !output.is_corrected()) {
        let of_units = plan.as_ref().is_some_and(|plan| plan.scheme.units.is_some());
        args.documents.note_conflicts(
            (args.emit, &args.output[0]),
            sides,
            (are_several, of_units),
            &mut problems,
        );
    }
    if args.output_format.is_some() && args.emit.copied().is_some() {
        problems.note("--output-format: records are written in the format of their input");
    }
    args.memory.note_conflicts(&mut problems);
    audit::note_conflicts(&deployment, args.processes.are_several(), plan.as_ref(), &mut problems);
    let redirected = written::standard_output();
    let all_outputs = deployment.outputs();
    let is_stdout = deployment.sinks().any(|(_, sink)| matches!(sink, SinkConfig::Lines { path: None, .. }));
    let processes = args.processes.read(&mut problems);
    if args.processes.are_several() {
        if inputs.iter().flatten().any(Input::is_stdin) {
            problems.note("standard input \"-\": each process reads the inputs, which have to be files");
        }
        if matches!(deployment.emit, EmitKind::Rejected(_)) {
            problems.note("--emit: one process writes rejected candidates, and has only its own sketches");
        }
        if args.workers.is_none() {
            problems.note("--workers: has to be given, and be the same for all processes");
        }
    }
    if let Some(address) = args.monitor.filter(|address| !address.ip().is_loopback()) {
        problems.note(format!(
            "--monitor: {address} is no loopback address, such as 127.0.0.1:9600; `run` takes any, with a \
            token"
        ));
    }
    if args.monitor.is_some() && !cfg!(feature = "monitor") {
        problems.note(format_args!("--monitor: {}", without_monitor()));
    }
    if args.monitor.is_some() && args.processes.are_several() {
        problems.note("--monitor: one process shows a replay");
    }
    // With provenance, a replay writes a file beside a table of comma-separated values.
    let has_companion = args.provenance && !deployment.output_format.holds_provenance;
    let beside = |output: &Deployment| -> &'static [&'static str] {
        match output.sink {
            SinkConfig::Lines { .. } if has_companion => &[audit::COMPANION_SUFFIX],
            SinkConfig::Lines { .. } => &[],
            _ => output.beside_output(),
        }
    };
    // A folder of records is checked with the inputs.
    let is_file = |path: &&Path| args.documents.is_file(args.emit, path);
    let outputs_of = |output| Some(("--output", Deployment::output(output).filter(is_file)?, beside(output)));
    let besides = [
        ("standard output", redirected.as_deref().filter(|_| is_stdout)),
        ("--stats", args.stats.as_deref()),
        ("--dead-letter", args.dead_letter.as_deref()),
        ("--notices", args.notices.as_deref()),
    ];
    let none: &'static [&'static str] = &[];
    let besides = besides.into_iter().filter_map(|(option, path)| Some((option, path?, none)));
    let of_views = views::files(&deployment.views, true);
    let of_views = of_views.iter().map(|(key, path, _)| (&**key, *path, none));
    let written: Vec<_> = all_outputs.iter().filter_map(outputs_of).chain(besides).chain(of_views).collect();
    // Only process 0 writes.
    if args.processes.process.unwrap_or_default() == 0 && args.dry_run.is_none() {
        // A wrong --shard-size leaves the folder for a file, which seems not to be writable.
        let is_known = |option| option != "--output" || are_understood;
        let files = written.iter().filter(|(option, ..)| *option != "standard output" && is_known(*option));
        written::probe(files.map(|(option, path, _)| (*option, *path)), &mut problems);
    }
    if let Some(replay) = &resumable {
        let files = written.iter().map(|(option, path, _)| (*option, *path));
        let records = args.documents.folder(args.emit, &args.output[0]);
        replay.note_places(files, records.as_deref(), &mut problems);
    }
    let list = deployment.files_from().map(|path| ("the list --files-from", path.to_owned()));
    let views_file = args.views.clone().map(|path| ("the file --views", path));
    let list = list.into_iter().chain(args.watch.iter().map(|path| ("the watch list --watch", path.clone())));
    let all = inputs.clone();
    let all = all.unwrap_or_else(|| args.inputs.inputs.iter().map(|path| Input::at(path)).collect());
    written::check(
        &written,
        &args.pipeline.file().into_iter().chain(list).chain(views_file).collect::<Vec<_>>(),
        &[&*reference, &all].concat(),
        &mut problems,
    );
    // With a page the run begins before there is any input. An unsupported format is then refused during the
    // run.
    if args.monitor.is_none()
        && problems.is_empty()
        && inputs.iter().flatten().chain(&reference).any(Input::is_stdin)
    {
        look_at_standard_input(&args.inputs.layout.layout(), &mut problems);
    }
    let (plan, (inputs, processes)) = problems.settle(plan.zip(inputs.zip(processes)))?;
    let inputs: Vec<Input> = reference.into_iter().chain(inputs).collect();

    if let Some(events) = args.dry_run {
        super::print(&super::run::look::look(&plan, inputs, deployment.fields, events)?)?;
        return Ok(ExitCode::SUCCESS);
    }

    let bad_items = if plan.finds_items() && !is_published {
        args.reference.check_items(&plan, &deployment.fields, &inputs[..deployment.against])?
    } else {
        0
    };
    if let Some(replay) = resumable.take_if(|_| is_published) {
        tracing::info!("an earlier process has written the result already");
        let lost = args.stats.as_ref().filter(|_| !replay.has_ended());
        replay.end()?;
        if let Some(path) = lost {
            anyhow::bail!(
                "the result is written, and its counts for {path:?} were lost with an earlier process"
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(replay) = &mut resumable {
        replay.begin(resume::settings(&plan, &deployment, &inputs), &deployment)?;
    }

    // Process 0 has the counts of all processes.
    let index = processes.as_ref().map_or(0, Processes::index);
    let settings = processes.map(|processes| processes::settings(processes, &plan, &deployment, "replay"));
    let provenance = Provenance::begin(&plan, &deployment, &inputs);
    let together = settings.as_ref().map(processes::connect).transpose()?;
    let summary = processes::report_failure(together, |together| {
        let mut job = RunJob::assemble(&plan, &deployment, &Mode::Replay, inputs, together, clock)?;
        job.demands.bad_items = bad_items;
        let monitor = super::run::monitor::start(&plan, &deployment, &mut job)?;
        if let Some(monitor) = &monitor {
            job = stay(job, monitor.address());
        }
        super::log_start("replay", &plan, &job);
        let to_terminal = is_stdout && io::stdout().is_terminal();
        let progress = ProgressLine::start(&job, verbosity.shows_progress() && !to_terminal);
        let summary = if monitor.is_some() { run_until_signalled(job, false)? } else { pipeline::run(job) };
        progress.end();
        Ok(summary?)
    })?;
    let provenance = provenance.ended(summary.inputs.clone(), CountsRecord::from(&summary));
    if let Some(path) = args.stats.as_ref().filter(|_| index == 0) {
        let stats = audit::StatsReport { summary: &summary, provenance: &provenance };
        let stats = serde_json::to_vec_pretty(&stats).map_err(io::Error::from);
        stats
            .and_then(|stats| std::fs::write(path, stats))
            .with_context(|| format!("the stats file {path:?}"))?;
    }
    if has_companion && summary.unmet.is_empty() {
        let path = audit::companion(&args.output[0]);
        std::fs::write(&path, provenance.to_json() + "\n").with_context(|| format!("the file {path:?}"))?;
    }
    verbosity.print(&super::summary::text(&summary, deployment.emit))?;
    problems::check_demands(&summary.unmet)?;
    resumable.map_or(Ok(()), ResumableReplay::end)?;
    Ok(ExitCode::SUCCESS)
}

/// Keeps the run alive after its input has ended, so that the page can query it.
fn stay(mut job: RunJob, address: SocketAddr) -> RunJob {
    let (status, clock) = (Arc::clone(&job.status), Arc::clone(&job.clock));
    job.source = Box::new(Staying::new(job.source, move |last| {
        status.reading().end(clock.unix());
        tracing::info!(%address, epoch = last, "all is read; the monitor stays until Ctrl-C");
    }));
    job
}

/// Runs a job. A signal stops reading; what has been read is finished.
pub(super) fn run_until_signalled(job: RunJob, hangs_up: bool) -> anyhow::Result<Result<Summary, RunError>> {
    let (send, signalled) = channel();
    // There is no receiver after the run has ended.
    super::run::on_signals(hangs_up, move |signal| send.send(signal).unwrap_or(()))
        .context("signals cannot be caught")?;
    let running = pipeline::start(job)?;
    let stopper = running.stopper();
    // This thread ends with the process.
    std::thread::Builder::new().name("stop".to_owned()).spawn(move || {
        if signalled.recv().is_ok() {
            stopper.stop();
        }
    })?;
    Ok(running.join())
}
