//! `dupflow replay`: a recorded feed in, the changes of its near-duplicate pairs out.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use indicatif::{HumanCount, HumanFloatCount, ProgressBar, ProgressStyle};

use super::arguments;
use super::inputs::{InputArgs, look_at_standard_input};
use super::problems::{self, Problems};
use super::together::{self, TogetherArgs};
use super::voice::Voice;
use super::{PipelineArgs, written};
use crate::config::{
    Deployment, EmitKind, LetterPlace, LogFormat, LogLevel, MonitorPlace, OutputFormat, ProcessSettings,
    SinkPlace, SourcePlace, WITHOUT_MONITOR,
};
use crate::pipeline::{self, Job, Mode, RunError, Summary};
use dupflow_connectors::inputs::{Input, Staying};
use dupflow_connectors::intake::{EpochLimits, EpochRule, Speed};
use dupflow_connectors::kafka::broker::Connection;
use dupflow_core::run::metrics::Counter;
use dupflow_core::time::SystemClock;
use dupflow_engine::processes::Processes;

/// What `replay` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// Where the result goes; "-" is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// What the result is: "deltas", the changes of pairs in every epoch, or "pairs", all pairs at the end of
    /// the input; "cluster-deltas" and "clusters" are the same of clusters; "keep", one document of each
    /// cluster and all that are in none, and "remove", all others.
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub emit: EmitKind,

    /// How the result is written; as the name of the output ends if this is not given (.csv, .parquet), else
    /// as JSON Lines. A Parquet file is whole at the end of the run only.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<OutputFormat>,

    /// Where the input is cut into epochs: "events:N" after every N events, "every:T" so long after its first
    /// event (as in 100ms), "events:N,every:T" by whichever is first, "ts" whenever the time stamp changes,
    /// or "all". Inside an epoch only the last event of a document counts.
    #[arg(long, value_name = "RULE", default_value_t)]
    pub epoch: EpochRule,

    /// Worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = arguments::workers)]
    pub workers: Option<NonZeroUsize>,

    /// Write the counts of the run to this file, as one JSON object.
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,

    /// Say for each pair why it was accepted: blocks shared, components read, the look that decided, the
    /// standard error.
    #[arg(long)]
    pub evidence: bool,

    /// Say for each delta what caused it: an insert, an update, a delete, an expiry, …
    #[arg(long)]
    pub causes: bool,

    /// How fast the feed is played by its time stamps: "max", "real" or "Nx", as in 10x.
    #[arg(long, default_value_t)]
    pub speed: Speed,

    /// Keep records that are no events in this file, whole; otherwise they are only counted.
    #[arg(long, value_name = "FILE")]
    pub dead_letter: Option<PathBuf>,

    /// The greatest share of records that may be bad, from 0 to 1, inclusive; with more the run fails, and
    /// what is written at the end is not [default: any; of "keep" and "remove" 0].
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_bad: Option<f64>,

    /// Show the run in a browser, at this address of the loopback, as in 127.0.0.1:9600 (port 0: one that is
    /// free). It stays there until Ctrl-C, and what is written at the end is written then.
    #[arg(long, value_name = "ADDRESS")]
    pub monitor: Option<SocketAddr>,

    /// Print the first records of each input as they are understood, and compare nothing [default of N: 3].
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    pub dry_run: Option<NonZeroU64>,

    /// Several processes.
    #[command(flatten)]
    pub together: TogetherArgs,

    /// What is read.
    #[command(flatten)]
    pub inputs: InputArgs,
}

/// Replays the inputs, tells on standard error what it came to, and writes the counts if asked.
///
/// # Errors
/// Everything that is wrong with the pipeline and the inputs, together; then what the run fails with.
pub(super) fn run(args: &Args, mut problems: Problems, voice: Voice) -> anyhow::Result<ExitCode> {
    let clock = Arc::new(SystemClock::start());
    let plan = problems.take(args.pipeline.load());
    let inputs = args.inputs.resolve(&mut problems);
    let deployment = args.deployment(voice.format);
    if deployment.evidence && !deployment.emit.is_of_pairs() {
        problems.note("--evidence: only pairs have evidence, and something else is to be emitted");
    }
    if deployment.causes && deployment.emit != EmitKind::Deltas {
        problems.note("--causes: only deltas have causes, and something else is to be emitted");
    }
    if let Some(missing) = deployment.output_format.is_missing() {
        problems.note(format!("--output-format: {missing}"));
    }
    let redirected = written::standard_output();
    let processes = args.together.read(&mut problems);
    if args.together.are_several() {
        if inputs.iter().flatten().any(Input::is_stdin) {
            problems.note("standard input \"-\": each process reads the inputs, which have to be files");
        }
        if args.workers.is_none() {
            problems.note("--workers: has to be given, and be the same for all processes");
        }
    }
    if let Some(address) = args.monitor.filter(|address| !address.ip().is_loopback()) {
        problems.note(format!(
            "--monitor: {address} is no loopback address, such as 127.0.0.1:9600; `run` takes any, with a token"
        ));
    }
    if args.monitor.is_some() && !cfg!(feature = "monitor") {
        problems.note(format_args!("--monitor: {WITHOUT_MONITOR}"));
    }
    if args.monitor.is_some() && args.together.are_several() {
        problems.note("--monitor: one process shows a replay");
    }
    let written = [
        ("--output", deployment.output()),
        ("standard output", redirected.as_deref().filter(|_| deployment.output().is_none())),
        ("--stats", args.stats.as_deref()),
        ("--dead-letter", args.dead_letter.as_deref()),
    ];
    // Of several processes the first one writes.
    if args.together.process.unwrap_or_default() == 0 && args.dry_run.is_none() {
        let files = written.iter().filter(|(option, _)| option.starts_with("--"));
        written::probe(files.filter_map(|(option, path)| Some((*option, (*path)?))), &mut problems);
    }
    // A replay keeps nothing beside what it writes.
    let written = written.into_iter().filter_map(|(option, path)| Some((option, path?, &[][..])));
    let list = deployment.files_from().map(|path| ("the list --files-from", path.to_owned()));
    written::check(
        &written.collect::<Vec<_>>(),
        &args.pipeline.file().into_iter().chain(list).collect::<Vec<_>>(),
        &inputs.clone().unwrap_or_else(|| args.inputs.inputs.iter().map(|path| Input::at(path)).collect()),
        &mut problems,
    );
    // With a page, the run begins before there is any input; then a foreign one is refused where it is read.
    if args.monitor.is_none() && problems.is_empty() && inputs.iter().flatten().any(Input::is_stdin) {
        look_at_standard_input(&args.inputs.layout.layout(), &mut problems);
    }
    let (plan, (inputs, processes)) = problems.settle(plan.zip(inputs.zip(processes)))?;

    if let Some(events) = args.dry_run {
        super::print(&super::look::look(&plan, inputs, events)?)?;
        return Ok(ExitCode::SUCCESS);
    }

    // Which of several processes this is: the counts of all are those of the first one.
    let index = processes.as_ref().map_or(0, Processes::index);
    let settings = processes.map(|processes| together::settings(processes, &plan, &deployment, "replay"));
    let together = settings.as_ref().map(together::meet).transpose()?;
    let summary = together::tell_failure(together, |together| {
        let mut job = Job::assemble(&plan, &deployment, &Mode::Replay, inputs, together, clock)?;
        let monitor = super::watch::start(&plan, &deployment, &mut job)?;
        if let Some(monitor) = &monitor {
            job = stay(job, monitor.address());
        }
        super::tell_begin("replay", &plan, &job);
        let to_terminal = deployment.output().is_none() && io::stdout().is_terminal();
        let progress = ProgressLine::start(&job, voice.shows_progress() && !to_terminal);
        let summary = if monitor.is_some() { run_until_signalled(job)? } else { pipeline::run(job) };
        progress.end();
        Ok(summary?)
    })?;
    if let Some(path) = args.stats.as_ref().filter(|_| index == 0) {
        let stats = serde_json::to_vec_pretty(&summary).map_err(io::Error::from);
        stats
            .and_then(|stats| std::fs::write(path, stats))
            .with_context(|| format!("the stats file {path:?}"))?;
    }
    voice.tell(&super::summary::text(&summary))?;
    problems::met(&summary.unmet)?;
    Ok(ExitCode::SUCCESS)
}

/// A share, from 0 to 1.
fn share(typed: &str) -> Result<f64, String> {
    let share = typed.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Has the run go on after its input, so that it can be asked.
fn stay(mut job: Job, address: SocketAddr) -> Job {
    job.source = Box::new(Staying::new(job.source, move |last| {
        tracing::info!(%address, epoch = last, "all is read; the monitor stays until Ctrl-C");
    }));
    job
}

/// Runs a job until a signal; then what has been read is finished.
pub(super) fn run_until_signalled(job: Job) -> anyhow::Result<Result<Summary, RunError>> {
    let (tell, signalled) = channel();
    // Nobody listens any more once the run has ended.
    super::run::on_signals(move |signal| tell.send(signal).unwrap_or(()))
        .context("signals cannot be caught")?;
    let running = pipeline::start(job)?;
    let stopper = running.stopper();
    // It ends with the process.
    std::thread::Builder::new().name("stop".to_owned()).spawn(move || {
        if signalled.recv().is_ok() {
            stopper.stop();
        }
    })?;
    Ok(running.join())
}

impl Args {
    /// What was typed, as a deployment file would say it.
    fn deployment(&self, format: LogFormat) -> Deployment {
        Deployment {
            workers: self.workers,
            shutdown: Duration::ZERO,
            source: SourcePlace::Files {
                inputs: self.inputs.inputs.clone(),
                files_from: self.inputs.files_from.clone(),
                layout: self.inputs.layout.layout(),
                epoch: self.epoch,
                speed: self.speed,
                follow: false,
            },
            commit: EpochLimits::default(),
            dead_letter: self.dead_letter.clone().map(LetterPlace::File),
            max_bad: self.max_bad,
            sink: SinkPlace::Lines { path: Some(self.output.clone()).filter(|path| path != Path::new("-")) },
            emit: self.emit,
            output_format: self.output_format.unwrap_or_else(|| OutputFormat::of_name(Some(&self.output))),
            evidence: self.evidence,
            causes: self.causes,
            kafka: Connection::default(),
            state: None,
            monitor: self.monitor.map(MonitorPlace::at),
            processes: ProcessSettings::default(),
            level: LogLevel::default(),
            format,
            shown: BTreeMap::new(),
        }
    }
}

/// A line on the terminal that shows how far the run is; nothing where there is no terminal.
struct ProgressLine {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl ProgressLine {
    fn start(job: &Job, visible: bool) -> Self {
        let metrics = Arc::clone(&job.stages.observers.metrics);
        let input = job.source.progress();
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            if !visible {
                return;
            }
            // Hides itself if standard error is no terminal.
            let total = input.as_ref().and_then(|input| input.total());
            let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
            if total.is_some() {
                let style = "{wide_bar} {bytes}/{total_bytes}, {eta} left\n{msg}";
                bar.set_style(
                    ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
                );
            }
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(Duration::from_millis(100)) {
                let counts = metrics.counts();
                let events = counts.get(Counter::Events);
                let documents = counts.documents();
                let pairs = counts.balance(Counter::Added, Counter::Removed);
                let rate = events as f64 / bar.elapsed().as_secs_f64();
                bar.set_position(input.as_ref().map_or(0, |input| input.read()));
                bar.set_message(format!(
                    "{} events, {} a second, {} documents, {} pairs",
                    HumanCount(events),
                    HumanFloatCount(rate.round()),
                    HumanCount(documents),
                    HumanCount(pairs)
                ));
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self { end, thread }
    }

    fn end(self) {
        drop(self.end);
        // A progress line that failed is no reason to fail.
        drop(self.thread.join());
    }
}
