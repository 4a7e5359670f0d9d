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

use super::PipelineArgs;
use super::arguments;
use super::arguments::documents::DocumentArgs;
use super::arguments::inputs::{InputArgs, STDIN_TWICE, look_at_standard_input};
use super::arguments::memory::MemoryArgs;
use super::arguments::problems::{self, Problems};
use super::arguments::processes::{self, ProcessArgs};
use super::arguments::reference::{ReferenceArgs, check_sides};
use super::arguments::resume::{self, ResumableReplay, ResumeArgs};
use super::arguments::verbosity::Verbosity;
use super::arguments::views;
use super::arguments::written;
use super::audit;
use super::units;
use crate::config::{
    AuditConfig, DECISIONS_ARE_JSON, DeadLetterConfig, Deployment, EmitKind, LogFormat, LogLevel,
    MonitorConfig, OutputFormat, Plan, ProcessConfig, ProvenancePlace, SinkConfig, SourceConfig, ViewConfig,
    WatchConfig, without_monitor,
};
use crate::pipeline::{self, CountsRecord, Mode, Provenance, RunError, RunJob, Summary, missing_fields};
use dupflow_connectors::inputs::{Input, Staying};
use dupflow_connectors::intake::{EpochLimits, EpochRule, Speed};
use dupflow_connectors::kafka::broker::Connection;
use dupflow_connectors::sinks::DecisionMode;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::run::metrics::Counter;
use dupflow_core::time::{SystemClock, UnixTime};
use dupflow_engine::processes::Processes;

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// The file to write the result to; "-" is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// What the result is: "deltas", the changes of pairs in every epoch, or "pairs", all pairs at the end
    /// of the input; "cluster-deltas" and "clusters" are the same for clusters; "keep", one document of
    /// each cluster and all that are in none, and "remove", all others; "decisions", what every epoch
    /// finds of each document that it upserts; "documents", the records of the documents that are kept, as
    /// they were read, in a file or, as in "clean/", in a folder with a file for each input, and
    /// "removed-documents", those of all others; "items", with -p decontaminate, what is found of each item
    /// of --against; "rejected:N", at most N of the candidates that the filter rejects, chosen by a hash of
    /// their sketches, with why.
    #[arg(long, value_parser = arguments::EmitParser, default_value_t, value_name = "WHAT")]
    pub emit: EmitKind,

    /// With --emit decisions: "first", a record for each upsert, or "current", also whenever a document's
    /// record changes later [default: first].
    #[arg(long, value_name = "WHEN")]
    pub decisions: Option<DecisionMode>,

    /// The format of the result [default: by the extension of the output (.csv, .parquet), else JSON Lines].
    /// A Parquet file is complete only at the end of the run.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<OutputFormat>,

    /// Options for records of documents.
    #[command(flatten)]
    pub documents: DocumentArgs,

    /// Where the input is cut into epochs: "events:N" after every N events, "every:T" that long after its
    /// first event (as in 100ms), "events:N,every:T" at the first of both, "ts" whenever the time stamp
    /// changes, or "all". Only the last event of a document in an epoch counts.
    #[arg(long, value_name = "RULE", default_value_t)]
    pub epoch: EpochRule,

    /// Worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = arguments::workers)]
    pub workers: Option<NonZeroUsize>,

    /// How much memory the replay may take.
    #[command(flatten)]
    pub memory: MemoryArgs,

    /// Write the counts of the run and its provenance to this file, as one JSON object.
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,

    /// Write into the output by what it was made and of what: program, pipeline, inputs with digests, counts.
    /// JSON Lines have it in their first and last line, a Parquet file in its metadata, CSV in a file beside
    /// it (.provenance.json). "dupflow verify" repeats the run by it.
    #[arg(long)]
    pub provenance: bool,

    /// Add to each change when it was: the greatest time of the events of its epoch, and the time of day of
    /// its commit.
    #[arg(long)]
    pub times: bool,

    /// Leave out events after this time, inclusive up to it: unix seconds, or a date such as
    /// 2026-11-02T12:00:00Z. Events without a time are applied, and counted.
    #[arg(long, value_name = "TIME", value_parser = audit::until)]
    pub until: Option<UnixTime>,

    /// Add to each pair why it was accepted: blocks shared, components read, the look that decided, the
    /// standard error.
    #[arg(long)]
    pub evidence: bool,

    /// Add to each delta its cause: an insert, an update, a delete, an expiry, …
    #[arg(long)]
    pub causes: bool,

    /// How fast the feed is played by its time stamps: "max", "real" or "Nx", as in 10x.
    #[arg(long, default_value_t)]
    pub speed: Speed,

    /// Keep bad records in this file, as a whole; otherwise they are only counted.
    #[arg(long, value_name = "FILE")]
    pub dead_letter: Option<PathBuf>,

    /// The greatest share of bad records, from 0 to 1, inclusive. With more the run fails, and a result that
    /// is written at the end is not published [default: any; for "keep" and "remove" 0].
    #[arg(long, value_name = "SHARE", value_parser = arguments::share)]
    pub max_bad: Option<f64>,

    /// Watch for documents that resemble those of this file, or folder; may be given several times.
    #[arg(long, value_name = "FILE", requires = "notices")]
    pub watch: Vec<PathBuf>,

    /// The file of what comes of the watches: for each match that begins or ends one line.
    #[arg(long, value_name = "FILE", requires = "watch")]
    pub notices: Option<PathBuf>,

    /// Show the run in a browser, at this loopback address, as in 127.0.0.1:9600 (port 0: any free port). The
    /// page stays until Ctrl-C, and a result that is written at the end is written then.
    #[arg(long, value_name = "ADDRESS")]
    pub monitor: Option<SocketAddr>,

    /// Print how the first records of each input are read, and compare nothing [default of N: 3].
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    pub dry_run: Option<NonZeroU64>,

    /// Keep the views that this TOML file names in `[[view]]` tables: their changes or their final rows
    /// (.csv) are written to the files named there, and shown with --monitor.
    #[arg(long, value_name = "FILE")]
    pub views: Option<PathBuf>,

    /// Options for several processes.
    #[command(flatten)]
    pub processes: ProcessArgs,

    /// Where the replay notes how far it is.
    #[command(flatten)]
    pub resume: ResumeArgs,

    /// The corpus that the inputs are compared with.
    #[command(flatten)]
    pub reference: ReferenceArgs,

    /// The inputs.
    #[command(flatten)]
    pub inputs: InputArgs,
}

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
    if deployment.causes && deployment.emit != EmitKind::Deltas {
        problems.note("--causes: only deltas have causes, and something else is to be emitted");
    }
    let emits_decisions = deployment.emit == EmitKind::Decisions;
    if args.decisions.is_some() && !emits_decisions {
        problems.note("--decisions: has an effect with --emit decisions only");
    }
    if emits_decisions && deployment.output_format != OutputFormat::Jsonl {
        problems.note(format!("--output-format: {DECISIONS_ARE_JSON}"));
    }
    if let Some(path) = deployment.output().filter(|_| args.emit.copied().is_none())
        && let Some(why) = OutputFormat::misnamed(path, args.output_format.is_some())
    {
        problems.note(format!("--output: {why}"));
    }
    if let Some(missing) = deployment.output_format.missing() {
        problems.note(format!("--output-format: {missing}"));
    }
    let sides = (inputs.as_deref().unwrap_or_default(), &*reference);
    check_sides("--against", sides.1, sides.0, &mut problems);
    let are_several = args.processes.are_several();
    if !is_published {
        let of_units = plan.as_ref().is_some_and(|plan| plan.scheme.units.is_some());
        args.documents.note_conflicts(
            (args.emit, &args.output),
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
    let of_views = views::files(&deployment.views, true);
    let written = [
        // A folder of records is checked with the inputs.
        ("--output", deployment.output().filter(|path| args.documents.is_file(args.emit, path))),
        ("standard output", redirected.as_deref().filter(|_| deployment.output().is_none())),
        ("--stats", args.stats.as_deref()),
        ("--dead-letter", args.dead_letter.as_deref()),
        ("--notices", args.notices.as_deref()),
    ];
    let of_views = of_views.iter().map(|(key, path, _)| (&**key, Some(*path)));
    let written: Vec<_> = written.into_iter().chain(of_views).collect();
    // Only process 0 writes.
    if args.processes.process.unwrap_or_default() == 0 && args.dry_run.is_none() {
        // A wrong --shard-size leaves the folder for a file, which seems not to be writable.
        let is_known = |option| option != "--output" || are_understood;
        let files = written.iter().filter(|(option, _)| *option != "standard output" && is_known(*option));
        written::probe(files.filter_map(|(option, path)| Some((*option, (*path)?))), &mut problems);
    }
    if let Some(replay) = &resumable {
        let files = written.iter().filter_map(|(option, path)| Some((*option, (*path)?)));
        let records = args.documents.folder(args.emit, &args.output);
        replay.note_places(files, records.as_deref(), &mut problems);
    }
    // With provenance, a replay writes a file beside a table of comma-separated values.
    let has_companion = args.provenance && deployment.output_format == OutputFormat::Csv;
    let beside = |option| -> &'static [&'static str] {
        if has_companion && option == "--output" { &[audit::COMPANION_SUFFIX] } else { &[] }
    };
    let written = written.into_iter().filter_map(|(option, path)| Some((option, path?, beside(option))));
    let list = deployment.files_from().map(|path| ("the list --files-from", path.to_owned()));
    let views_file = args.views.clone().map(|path| ("the file --views", path));
    let list = list.into_iter().chain(args.watch.iter().map(|path| ("the watch list --watch", path.clone())));
    let all = inputs.clone();
    let all = all.unwrap_or_else(|| args.inputs.inputs.iter().map(|path| Input::at(path)).collect());
    written::check(
        &written.collect::<Vec<_>>(),
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
        let to_terminal = deployment.output().is_none() && io::stdout().is_terminal();
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
        let path = audit::companion(&args.output);
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

impl Args {
    /// The options as a deployment.
    pub(super) fn deployment(&self, fields: FieldRules, format: LogFormat) -> Deployment {
        Deployment {
            workers: self.workers,
            spill: self.memory.config(),
            shutdown: Duration::ZERO,
            source: SourceConfig::Files {
                inputs: self.inputs.inputs.clone(),
                files_from: self.inputs.files_from.clone(),
                layout: self.inputs.layout.layout(),
                epoch: self.epoch,
                speed: self.speed,
                follow: false,
            },
            fields,
            commit: EpochLimits::default(),
            dead_letter: self.dead_letter.clone().map(DeadLetterConfig::File),
            max_bad: self.max_bad,
            sink: SinkConfig::Lines {
                path: Some(self.output.clone()).filter(|path| path != Path::new("-")),
                mark: None,
            },
            emit: self.emit,
            decisions: self.decisions.unwrap_or_default(),
            documents: self.documents.config(),
            reference: None,
            against: 0,
            benchmark: self.reference.benchmark.clone(),
            output_format: self.output_format.unwrap_or_else(|| match self.emit.copied() {
                Some(_) => OutputFormat::default(),
                None => OutputFormat::of_name(Some(&self.output)),
            }),
            evidence: self.evidence,
            causes: self.causes,
            audit: AuditConfig {
                provenance: match (self.provenance, &self.stats) {
                    (true, _) => ProvenancePlace::Output,
                    (false, Some(_)) => ProvenancePlace::Stats,
                    (false, None) => ProvenancePlace::Nowhere,
                },
                times: self.times,
                until: self.until,
            },
            kafka: Connection::default(),
            state: None,
            views: Vec::new(),
            monitor: self.monitor.map(MonitorConfig::at),
            watch: self.notices.clone().map(|path| WatchConfig::of_files(self.watch.clone(), path)),
            processes: ProcessConfig::default(),
            level: LogLevel::default(),
            format,
            shown: BTreeMap::new(),
        }
    }
}

/// A progress line on the terminal; nothing if standard error is no terminal.
struct ProgressLine {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl ProgressLine {
    fn start(job: &RunJob, visible: bool) -> Self {
        let metrics = Arc::clone(&job.stages.observers.metrics);
        let input = job.source.progress();
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            if !visible {
                return;
            }
            // indicatif hides the bar if standard error is no terminal.
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
        // A panic of the progress line is ignored.
        drop(self.thread.join());
    }
}
