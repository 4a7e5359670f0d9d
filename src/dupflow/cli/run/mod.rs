//! `dupflow run`: processes events until the input ends or a signal stops it; a deployment file names inputs
//! and outputs.
//!
//! The first SIGINT or SIGTERM stops reading. Open epochs are finished and written, the last one with the
//! records read so far. If that takes longer than the deployment allows, the run gives up. A second signal
//! ends the process at once.

#[cfg(feature = "monitor")]
mod history;
pub(super) mod look;
#[cfg(feature = "monitor")]
pub(super) mod monitor;
#[cfg(not(feature = "monitor"))]
#[path = "no_monitor.rs"]
pub(super) mod monitor;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use tracing::Dispatch;

use super::PipelineArgs;
use super::arguments::problems::Problems;
use super::arguments::processes::{self, ProcessArgs};
use super::arguments::reference;
use super::arguments::verbosity::VerbosityArgs;
use super::arguments::views;
use super::arguments::written::{self, ReadFile};
use crate::config::{Deployment, OutputConfig, Plan, TablesPlace, WatchConfig};
use crate::pipeline::{
    self, FailureSender, Mode, ProcessGroup, RunError, RunJob, Running, Summary, missing_fields,
};
use dupflow_connectors::inputs::Input;
use dupflow_connectors::intake::OnError;
use dupflow_connectors::sinks::LetterFile;
use dupflow_core::cluster::{ClusterKind, KeepRule};
use dupflow_core::time::SystemClock;
use dupflow_engine::processes::ConnectSettings;

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    dupflow check -c run.toml --connect    look whether all is there\n  \
    dupflow run -c run.toml                until the input ends, or Ctrl-C\n  \
    dupflow run -c run.toml --reconcile    after a change of the pipeline")]
pub struct Args {
    /// The pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// The deployment file: inputs, outputs and logging.
    ///
    /// As config/local.toml, which explains every key.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: PathBuf,

    /// Correct an output that this run cannot continue.
    ///
    /// It was written by another pipeline, or its input or its state is lost. The differences are written as
    /// changes. Without this option such a run is refused.
    #[arg(long)]
    pub reconcile: bool,

    /// Print the deltas of so many records, and write nothing.
    ///
    /// A few more may be read. The deltas go to standard output, and nothing is stored.
    #[arg(long, value_name = "RECORDS", conflicts_with = "reconcile")]
    pub dry_run: Option<NonZeroU64>,

    /// Options for several processes.
    #[command(flatten)]
    pub processes: ProcessArgs,
}

/// An event that the main thread waits for.
enum RunEvent {
    /// All processes are connected, or one cannot be reached.
    Connected(anyhow::Result<ProcessGroup>),
    /// The run has begun, or cannot begin.
    Begun(Box<Result<Running, RunError>>),
    /// The run has ended.
    Ended(Box<Result<Summary, RunError>>),
    /// A signal was received.
    Signal(i32),
}

/// Where the threads of a run send its events, and the main thread receives them.
struct RunEvents {
    sender: Sender<RunEvent>,
    received: Receiver<RunEvent>,
}

/// Runs to the end, and prints a summary on standard error.
///
/// # Errors
/// All problems of the pipeline and the deployment; then the error of the run.
pub(super) fn run(
    args: &Args,
    mut problems: Problems,
    verbosity: VerbosityArgs,
    log: &dyn Fn(Dispatch),
) -> anyhow::Result<ExitCode> {
    let clock = Arc::new(SystemClock::start());
    let mut plan = problems.take(args.pipeline.load_of_documents());
    let environment = |name: &str| std::env::var(name).ok();
    let mut deployment = problems.take(Deployment::load(&args.config, &environment));
    let inputs = deployment.as_ref().and_then(|place| problems.take(place.resolve()));
    let processes = args.processes.read(&mut problems);
    if let Some(deployment) = &mut deployment {
        if args.dry_run.is_some() {
            deployment.prints_only();
        } else {
            // A run waits for its broker without limit, at the start as later. A dry run does not: its user
            // waits for the answer.
            deployment.kafka.patience = Duration::MAX;
        }
        if args.processes.are_several() && deployment.workers.is_none() {
            problems.note("workers: has to be a number, the same for all processes");
        }
        if args.processes.are_several() && deployment.follows_tables() {
            problems.note("source.follow: one process follows a table: start it without --processes");
        }
        if deployment.follows_tables() && deployment.all_outputs().any(|output| output.place.is_printed()) {
            problems.note(
                "source.follow: each new version of a table corrects what is there, and standard output \
                 cannot be corrected: name a file (sink.path), or set sink.kind",
            );
        }
        if args.processes.are_several() && args.dry_run.is_some() {
            problems.note("--dry-run: one process shows what a run does");
        }
        reference::apply_frozen(plan.as_mut(), deployment, args.processes.are_several(), &mut problems);
        reference::note_missing(deployment, &mut problems);
        let named = || deployment.inputs().iter().map(|path| Input::at(path)).collect();
        let read = inputs.clone().unwrap_or_else(named);
        let files: Vec<_> = args.pipeline.file().into_iter().chain([deployment_file(&args.config)]).collect();
        let redirected = written::standard_output();
        note_conflicts(plan.as_ref(), deployment, &files, &read, redirected.as_deref(), &mut problems);
    }
    let (plan, (mut deployment, (mut inputs, processes))) =
        problems.settle(plan.zip(deployment.zip(inputs.zip(processes))))?;
    let verbosity = verbosity.verbosity(deployment.format);
    log(verbosity.messages(deployment.level));

    let (sender, received) = channel();
    let events = RunEvents { sender, received };
    let signalled = events.sender.clone();
    // There is no receiver after the run has ended.
    on_signals(false, move |signal| drop(signalled.send(RunEvent::Signal(signal))))
        .context("signals cannot be caught")?;
    let settings = processes.map(|processes| processes::settings(processes, &plan, &deployment, "run"));
    let together = match settings {
        None => None,
        Some(settings) => {
            let Some(together) = connect(settings, &events)? else { return Ok(ExitCode::SUCCESS) };
            Some(together)
        }
    };
    processes::report_failure(together, |mut together| {
        let mut mode = Mode::Run { reconcile: args.reconcile };
        loop {
            let others = together.as_ref().map(ProcessGroup::failure_sender);
            let job = RunJob::assemble(
                &plan,
                &deployment,
                &mode,
                inputs,
                together.take(),
                Arc::clone(&clock) as _,
            )?;
            let job = RunJob { most_records: args.dry_run, ..job };
            let (summary, ended) = match run_to_end(job, &plan, &deployment, others.as_ref(), &events)? {
                RunEnd::BeforeBegin => {
                    // A run that begins at this moment would be waited for with the channel that it is in.
                    std::mem::forget(events);
                    return Ok(ExitCode::SUCCESS);
                }
                RunEnd::Stopped(summary) => (summary, true),
                RunEnd::Ended(summary) => (summary, !deployment.follows_tables() || args.dry_run.is_some()),
            };
            if ended {
                verbosity.print(&super::summary::text(&summary, deployment.output.answer))?;
            }
            super::arguments::problems::check_demands(&summary.unmet)?;
            if ended {
                return Ok(ExitCode::SUCCESS);
            }
            tracing::info!("a table that is followed has another version: the run goes on with it");
            // What is wrong with it is no error of usage any more.
            deployment.follow_on().map_err(anyhow::Error::msg)?;
            inputs = deployment.resolve().map_err(|error| anyhow::anyhow!("{error}"))?;
            mode = Mode::Run { reconcile: false };
        }
    })
}

/// How a run has ended.
enum RunEnd {
    /// By a signal, before it had begun.
    BeforeBegin,
    /// By a signal.
    Stopped(Box<Summary>),
    /// By itself.
    Ended(Box<Summary>),
}

/// Connects to the other processes; `None` if a signal arrives first.
fn connect(settings: ConnectSettings, events: &RunEvents) -> anyhow::Result<Option<ProcessGroup>> {
    let sender = events.sender.clone();
    thread::Builder::new().name("meet".to_owned()).spawn(move || {
        // There is no receiver after a signal.
        drop(sender.send(RunEvent::Connected(processes::connect(&settings))));
    })?;
    match events.received.recv()? {
        RunEvent::Connected(together) => together.map(Some),
        RunEvent::Signal(signal) => {
            tracing::info!(signal, "ended before all processes were there");
            Ok(None)
        }
        RunEvent::Begun(_) | RunEvent::Ended(_) => unreachable!("nothing has begun"),
    }
}

/// Runs to the end or to a signal.
fn run_to_end(
    mut job: RunJob,
    plan: &Plan,
    deployment: &Deployment,
    others: Option<&FailureSender>,
    RunEvents { sender, received: events }: &RunEvents,
) -> anyhow::Result<RunEnd> {
    let _monitor = monitor::start(plan, deployment, &mut job)?;
    super::log_start("run", plan, &job);
    // Starting may wait for a broker without limit, so another thread does it.
    let begun = sender.clone();
    thread::Builder::new().name("begin".to_owned()).spawn(move || {
        // There is no receiver after a signal.
        drop(begun.send(RunEvent::Begun(Box::new(pipeline::start(job)))));
    })?;
    let (running, stopped) = match events.recv()? {
        RunEvent::Begun(running) => ((*running)?, None),
        RunEvent::Connected(_) | RunEvent::Ended(_) => unreachable!("nothing has begun"),
        RunEvent::Signal(signal) => {
            if let Ok(RunEvent::Begun(running)) = events.try_recv() {
                // It has begun just now.
                ((*running)?, Some(signal))
            } else {
                tracing::info!(
                    signal,
                    "ended before the run had begun: no records have been read, and no results written"
                );
                others.iter().for_each(|others| others.fail("it was stopped before the run had begun"));
                return Ok(RunEnd::BeforeBegin);
            }
        }
    };
    let (stopper, sender) = (running.stopper(), sender.clone());
    thread::Builder::new().name("run".to_owned()).spawn(move || {
        // There is no receiver after the run has given up.
        drop(sender.send(RunEvent::Ended(Box::new(running.join()))));
    })?;

    let event = stopped.map_or_else(|| events.recv(), |signal| Ok(RunEvent::Signal(signal)));
    match event? {
        RunEvent::Ended(ended) => Ok(RunEnd::Ended(Box::new((*ended)?))),
        RunEvent::Connected(_) | RunEvent::Begun(_) => unreachable!("it has begun"),
        RunEvent::Signal(signal) => {
            let bound = deployment.shutdown;
            tracing::info!(signal, "stopping: what has been read is finished, within {} s", bound.as_secs());
            stopper.stop();
            match events.recv_timeout(bound) {
                Ok(RunEvent::Ended(ended)) => Ok(RunEnd::Stopped(Box::new((*ended)?))),
                _ => bail!(
                    "what had been read could not be finished within {} s of the signal (shutdown_seconds); \
                    the output has whole epochs, except one that was being written",
                    bound.as_secs()
                ),
            }
        }
    }
}

/// The deployment file: outputs must not overwrite it.
pub(super) fn deployment_file(path: &Path) -> ReadFile<'static> {
    ("the deployment file", path.to_owned())
}

/// Reports settings of a deployment that exclude each other or do not fit the pipeline, and outputs that
/// would overwrite `files` or inputs. Standard output is included if it is a file.
pub(super) fn note_conflicts(
    plan: Option<&Plan>,
    deployment: &Deployment,
    files: &[ReadFile<'_>],
    inputs: &[Input],
    redirected: Option<&Path>,
    problems: &mut Problems,
) {
    plan.iter().flat_map(|plan| missing_fields(plan, deployment)).for_each(|missing| problems.note(missing));
    let outputs = || deployment.all_outputs();
    if deployment.evidence && !deployment.output.answer.is_of_pairs() {
        problems.note(format_args!(
            "{}.evidence: only pairs have evidence, and something else is to be emitted",
            deployment.output.table
        ));
    }
    if deployment.posted().is_some() && plan.is_some_and(|plan| plan.on_error == OnError::Fail) {
        problems.note(
            "output.on_error: \"fail\" does not go with source.kind = \"http\": a bad line of any client \
             would end the run, and each start after it; it is answered with its reason",
        );
    }
    outputs().for_each(|output| note_output(plan, output, problems));
    let tables: Vec<_> =
        outputs().filter_map(|output| output.place.as_a::<TablesPlace>()?.address.file()).collect();
    let mut read = files.to_vec();
    read.extend(deployment.files_from().map(|path| ("the list source.files_from", path.to_owned())));
    read.extend(deployment.posted().map(|(path, _)| ("the journal source.journal", path.to_owned())));
    read.extend(deployment.database_file().into_iter().flat_map(|path| written::database(path, &tables)));
    let of_outputs = written_by(deployment);
    views::note_conflicts(plan, deployment, false, problems);
    let of_views = views::files(&deployment.views, false);
    let watches = deployment.watch.iter().flat_map(|watch| &watch.inputs);
    read.extend(watches.map(|path| ("the watch list watch.inputs", path.clone())));
    let of_outputs = of_outputs.iter().map(|(key, path, beside)| (&**key, *path, *beside));
    let is_printed = outputs().any(|output| output.place.is_printed());
    let written = [
        redirected.filter(|_| is_printed).map(|path| ("standard output", path, &[][..])),
        deployment.letter_file().map(|path| ("dead_letter.path", path, &LetterFile::COMPANION_SUFFIXES[..])),
    ];
    let of_views = of_views.iter().map(|(key, path, beside)| (&**key, *path, *beside));
    let of_watches =
        deployment.watch.iter().flat_map(WatchConfig::written).map(|(key, path)| (key, path, &[][..]));
    let written = of_outputs.chain(written.into_iter().flatten());
    let written: Vec<_> = written.chain(of_views).chain(of_watches).collect();
    // What is missing is reported where the reference is.
    let of_reference = deployment.reference.as_ref();
    let of_reference = of_reference.and_then(|of| Input::resolve(&of.inputs, of.layout.clone()).ok());
    let of_reference = of_reference.unwrap_or_default();
    reference::check_sides("reference.inputs", &of_reference, inputs, problems);
    let inputs = [inputs, &of_reference].concat();
    written::check(&written, &read, &inputs, problems);
    if let Some(state) = &deployment.state {
        written::check_folder("state.path", Path::new(&state.location), &inputs, problems);
    }
}

/// Reports settings of an output that exclude each other or do not fit the pipeline.
fn note_output(plan: Option<&Plan>, output: &OutputConfig, problems: &mut Problems) {
    let OutputConfig { table, place, answer, causes, times, .. } = output;
    if *causes && !answer.takes_causes() {
        problems.note(format_args!(
            "{table}.causes: only deltas have causes, and something else is to be emitted"
        ));
    }
    if *times && !answer.takes_times() {
        problems.note(format_args!(
            "{table}.times: only changes have times, and something else is to be emitted"
        ));
    }
    let are_tables = place.as_a::<TablesPlace>().is_some();
    if *times && are_tables {
        problems.note(format_args!("{table}.times: {}", TablesPlace::NO_TIMES));
    }
    if plan.is_some_and(|plan| plan.keep == KeepRule::SourceOrder) && answer.is_list() {
        problems.note(
            "output.keep: \"source-order\" is for a replay: a run that starts again may read the same \
             documents at other positions",
        );
    }
    if let Some(plan) = plan.filter(|_| are_tables) {
        note_keep(plan, problems);
    }
}

/// The files of outputs, each with its key and the suffixes of those beside it.
pub(super) fn written_by(deployment: &Deployment) -> Vec<(String, &Path, &'static [&'static str])> {
    let file = |output: &OutputConfig| format!("{}.path", output.table);
    let outputs = deployment.all_outputs();
    outputs.filter_map(|of| Some((file(of), of.place.file()?, of.place.beside(of.answer)))).collect()
}

/// Reports a rule of `output.keep` that tables cannot apply: their views always keep the document that names
/// its cluster.
pub(super) fn note_keep(plan: &Plan, problems: &mut Problems) {
    if plan.scheme.sketch.scaled().is_some() {
        // Clusters of containment do not say what may be removed: there are no such views.
        return;
    }
    let instead = match (&plan.keep, plan.clusters) {
        (KeepRule::Named, _) | (KeepRule::Smallest, ClusterKind::Components) => return,
        (_, ClusterKind::Components) => "\"smallest\" or \"named\"",
        (_, ClusterKind::Star) => "\"named\"",
    };
    problems.note(format_args!(
        "output.keep: the views kept and removed keep the document that names its cluster, which is not \
        what \"{}\" says: set it to {instead}",
        plan.keep
    ));
}

/// Calls back on the first SIGINT or SIGTERM, or SIGHUP if `hangs_up`; the second one ends the process with
/// exit code 1 at once.
#[cfg(unix)]
pub(super) fn on_signals(hangs_up: bool, on_signal: impl Fn(i32) + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let all = [SIGINT, SIGTERM, SIGHUP];
    let stops = if hangs_up { &all[..] } else { &all[..2] };
    let armed = Arc::default();
    for &signal in stops {
        // The order matters: the first signal finds the flag unset, and then sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&armed))?;
        signal_hook::flag::register(signal, Arc::clone(&armed))?;
    }
    let mut signals = signal_hook::iterator::Signals::new(stops)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        signals.forever().for_each(on_signal);
    })?;
    Ok(())
}

/// Other systems: signals keep their default action and end the process.
#[cfg(not(unix))]
pub(super) fn on_signals(_: bool, _: impl Fn(i32) + Send + 'static) -> std::io::Result<()> {
    Ok(())
}
