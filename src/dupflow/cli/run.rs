//! `dupflow run`: events as they come, until the input ends or a signal does; a deployment file says from
//! where and to where.
//!
//! The first SIGINT or SIGTERM ends reading. What has been read is finished and written: whole epochs, the
//! last one with what had come of it. If that takes longer than the deployment allows, the run gives up. A
//! second signal ends the process at once.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use super::PipelineArgs;
use super::problems::Problems;
use super::together::{self, TogetherArgs};
use super::voice::VoiceArgs;
use super::written::{self, Read};
use crate::config::{Deployment, EmitKind, Plan, SinkPlace};
use crate::pipeline::{self, Job, Mode, RunError, Running, Summary, Together};
use dupflow_connectors::inputs::Input;
use dupflow_core::cluster::{ClusterKind, KeepRule};
use dupflow_core::time::SystemClock;
use dupflow_engine::processes::ConnectSettings;

/// What `run` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// The deployment file, such as config/local.toml: what is read, where results go, how much is logged.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: PathBuf,

    /// Correct an output that was written by another pipeline, or whose state or input is lost: what differs
    /// is written as changes. Without this such a run is refused.
    #[arg(long)]
    pub reconcile: bool,

    /// Read this many records or a few more, print their deltas to standard output, and write and remember
    /// nothing.
    #[arg(long, value_name = "RECORDS", conflicts_with = "reconcile")]
    pub dry_run: Option<NonZeroU64>,

    /// Several processes.
    #[command(flatten)]
    pub together: TogetherArgs,
}

/// What the run waits for.
enum News {
    /// All processes are there, or do not come together.
    Met(anyhow::Result<Together>),
    /// It has begun, or cannot.
    Begun(Box<Result<Running, RunError>>),
    /// It has ended.
    Ended(Box<Result<Summary, RunError>>),
    /// A signal has come.
    Signal(i32),
}

/// Runs until the end, and tells on standard error what it came to.
///
/// # Errors
/// Everything that is wrong with the pipeline and the deployment, together; then what the run fails with.
pub(super) fn run(args: &Args, mut problems: Problems, voice: VoiceArgs) -> anyhow::Result<ExitCode> {
    let clock = Arc::new(SystemClock::start());
    let plan = problems.take(args.pipeline.load());
    let environment = |name: &str| std::env::var(name).ok();
    let mut deployment = problems.take(Deployment::load(&args.config, &environment));
    let resolve = |place: &Deployment| Input::resolve(place.inputs(), place.layout());
    let inputs = deployment.as_ref().and_then(|place| problems.take(resolve(place)));
    let processes = args.together.read(&mut problems);
    if let Some(deployment) = &mut deployment {
        if args.dry_run.is_some() {
            deployment.prints_only();
        } else {
            // The same at the beginning as later on; whoever looks at a dry run waits for an answer.
            deployment.kafka.patience = Duration::MAX;
        }
        if args.together.are_several() && deployment.workers.is_none() {
            problems.note("workers: has to be a number, the same for all processes");
        }
        if args.together.are_several() && args.dry_run.is_some() {
            problems.note("--dry-run: one process shows what a run does");
        }
        let named = || deployment.inputs().iter().map(|path| Input::at(path)).collect();
        let read = inputs.clone().unwrap_or_else(named);
        let files: Vec<_> = args.pipeline.file().into_iter().chain([deployment_file(&args.config)]).collect();
        let redirected = written::standard_output();
        note_conflicts(plan.as_ref(), deployment, &files, &read, redirected.as_deref(), &mut problems);
    }
    let (plan, (deployment, (inputs, processes))) =
        problems.settle(plan.zip(deployment.zip(inputs.zip(processes))))?;
    let voice = voice.voice(deployment.format);
    voice.start_logging(deployment.level);

    let (tell, news) = channel();
    let signalled = tell.clone();
    // Nobody listens any more once the run has ended.
    on_signals(move |signal| drop(signalled.send(News::Signal(signal))))
        .context("signals cannot be caught")?;
    let settings = processes.map(|processes| together::settings(processes, &plan, &deployment, "run"));
    let together = match settings {
        None => None,
        Some(settings) => {
            let Some(together) = meet(settings, &tell, &news)? else { return Ok(ExitCode::SUCCESS) };
            Some(together)
        }
    };
    together::tell_failure(together, |together| {
        if let Some(summary) = go(args, &plan, &deployment, inputs, together, clock, (tell, news))? {
            voice.tell(&super::summary::text(&summary))?;
            super::problems::met(&summary.unmet)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Meets the other processes; none if a signal comes before they are there.
fn meet(
    settings: ConnectSettings,
    tell: &Sender<News>,
    news: &Receiver<News>,
) -> anyhow::Result<Option<Together>> {
    let tell = tell.clone();
    thread::Builder::new().name("meet".to_owned()).spawn(move || {
        // Nobody listens any more once a signal has come.
        drop(tell.send(News::Met(together::meet(&settings))));
    })?;
    match news.recv()? {
        News::Met(together) => together.map(Some),
        News::Signal(signal) => {
            tracing::info!(signal, "ended before all processes were there");
            Ok(None)
        }
        News::Begun(_) | News::Ended(_) => unreachable!("nothing has begun"),
    }
}

/// Runs to the end, or to a signal; none if the signal comes before it has begun.
fn go(
    args: &Args,
    plan: &Plan,
    deployment: &Deployment,
    inputs: Vec<Input>,
    together: Option<Together>,
    started: Arc<SystemClock>,
    (tell, news): (Sender<News>, Receiver<News>),
) -> anyhow::Result<Option<Summary>> {
    let mode = Mode::Run { reconcile: args.reconcile };
    let mut job = Job::assemble(plan, deployment, &mode, inputs, together, started)?;
    job.most_records = args.dry_run;
    let _monitor = super::watch::start(plan, deployment, &mut job)?;
    super::tell_begin("run", plan, &job);
    // It may wait for a broker meanwhile, without end.
    let begun = tell.clone();
    thread::Builder::new().name("begin".to_owned()).spawn(move || {
        // Nobody listens any more once a signal has come.
        drop(begun.send(News::Begun(Box::new(pipeline::start(job)))));
    })?;
    let running = match news.recv()? {
        News::Begun(running) => (*running)?,
        News::Met(_) | News::Ended(_) => unreachable!("nothing has begun"),
        News::Signal(signal) => {
            tracing::info!(
                signal,
                "ended before the run had begun: no records have been read, and no results written"
            );
            return Ok(None);
        }
    };
    let stopper = running.stopper();
    thread::Builder::new().name("run".to_owned()).spawn(move || {
        // Nobody listens any more once the run has been given up.
        drop(tell.send(News::Ended(Box::new(running.join()))));
    })?;

    let ended = match news.recv()? {
        News::Ended(ended) => ended,
        News::Met(_) | News::Begun(_) => unreachable!("it has begun"),
        News::Signal(signal) => {
            let bound = deployment.shutdown;
            tracing::info!(signal, "stopping: what has been read is finished, within {} s", bound.as_secs());
            stopper.stop();
            match news.recv_timeout(bound) {
                Ok(News::Ended(ended)) => ended,
                _ => bail!(
                    "what had been read could not be finished within {} s of the signal (shutdown_seconds); the output is \
                     whole epochs, but for one that was being written",
                    bound.as_secs()
                ),
            }
        }
    };
    Ok(Some((*ended)?))
}

/// The deployment file, as a file that is read.
pub(super) fn deployment_file(path: &Path) -> Read<'static> {
    ("the deployment file", path.to_owned())
}

/// Notes what excludes each other in a deployment, and in it and the pipeline; standard output may go to a
/// file. `files` are those that say what is to be done.
pub(super) fn note_conflicts(
    plan: Option<&Plan>,
    deployment: &Deployment,
    files: &[Read<'_>],
    inputs: &[Input],
    redirected: Option<&Path>,
    problems: &mut Problems,
) {
    if deployment.evidence && !deployment.emit.is_of_pairs() {
        problems.note("sink.evidence: only pairs have evidence, and something else is to be emitted");
    }
    if deployment.causes && deployment.emit != EmitKind::Deltas {
        problems.note("sink.causes: only deltas have causes, and something else is to be emitted");
    }
    let are_tables = matches!(deployment.sink, SinkPlace::Tables(_));
    if let Some(plan) = plan.filter(|_| are_tables) {
        note_keep(plan, problems);
    }
    let tables = deployment.output().filter(|_| are_tables);
    let mut read = files.to_vec();
    read.extend(deployment.files_from().map(|path| ("the list source.files_from", path.to_owned())));
    read.extend(deployment.database_file().into_iter().flat_map(|path| written::database(path, tables)));
    let output = deployment.output().map(|path| ("sink.path", path, deployment.beside_output()));
    let written = [
        output.or(redirected.map(|path| ("standard output", path, &[][..]))),
        deployment.letter_file().map(|path| ("dead_letter.path", path, &[][..])),
    ];
    written::check(&written.into_iter().flatten().collect::<Vec<_>>(), &read, inputs, problems);
}

/// Notes a rule by which the views of tables do not keep documents: they keep the one that names its cluster.
fn note_keep(plan: &Plan, problems: &mut Problems) {
    let instead = match (plan.keep, plan.clusters) {
        (KeepRule::Named, _) | (KeepRule::Smallest, ClusterKind::Components) => return,
        (_, ClusterKind::Components) => "\"smallest\" or \"named\"",
        (_, ClusterKind::Star) => "\"named\"",
    };
    problems.note(format_args!(
        "output.keep: the views kept and removed keep the document that names its cluster, which is not what \"{}\" says: set it to {instead}",
        plan.keep.name()
    ));
}

/// Tells of the first signal; the second one ends the process with 1, whatever it is doing.
#[cfg(unix)]
pub(super) fn on_signals(tell: impl Fn(i32) + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};

    let armed = Arc::default();
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag down, and puts it up.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&armed))?;
        signal_hook::flag::register(signal, Arc::clone(&armed))?;
    }
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        signals.forever().for_each(tell);
    })?;
    Ok(())
}

/// Signals are left as they are: they end the process.
#[cfg(not(unix))]
pub(super) fn on_signals(_: impl Fn(i32) + Send + 'static) -> std::io::Result<()> {
    Ok(())
}
