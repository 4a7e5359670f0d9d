//! `dupflow replay`: a recorded feed in, the changes of its near-duplicate pairs out.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use indicatif::{HumanCount, HumanFloatCount, ProgressBar};

use super::PipelineArgs;
use super::arguments::at_least_one;
use super::problems::Problems;
use crate::cluster::Clusters;
use crate::config::{EmitKind, LogFormat, Plan};
use crate::dataflow::Stages;
use crate::metrics::Counter;
use crate::pipeline::{self, Job};
use crate::sink::{ClusterDeltaLines, ClusterLines, DeltaLines, PairLines, Sink, StandardError};
use crate::sketch::estimate::standard_error;
use crate::source::{BadRecords, DeadLetter, EpochRule, Files, Input, Speed};
use crate::time::SystemClock;

/// What `replay` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// Where the result goes; "-" is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// What the result is: "deltas", the changes of pairs in every epoch, or "pairs", all pairs at the end of the input;
    /// "cluster-deltas" and "clusters" are the same of clusters.
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub emit: EmitKind,

    /// Where the input is cut into epochs: "events:N" after every N events, "ts" whenever the time stamp changes, or "all".
    /// Inside an epoch only the last event of a document counts.
    #[arg(long, value_name = "RULE", default_value_t)]
    pub epoch: EpochRule,

    /// Worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub workers: Option<NonZeroUsize>,

    /// Write the counts of the run to this file, as one JSON object.
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,

    /// Say for each pair why it was accepted: blocks shared, components read, the look that decided, the standard error.
    #[arg(long)]
    pub evidence: bool,

    /// How fast the feed is played by its time stamps: "max", "real" or "Nx", as in 10x.
    #[arg(long, default_value_t)]
    pub speed: Speed,

    /// Keep records that are no events in this file, whole; otherwise they are only counted.
    #[arg(long, value_name = "FILE")]
    pub dead_letter: Option<PathBuf>,

    /// Feed files (.jsonl, also compressed with zstd or gzip), folders whose files are documents, or "-" for standard input;
    /// several are read in order.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,
}

/// Replays the inputs, tells on standard error what it came to, and writes the counts if asked.
///
/// # Errors
/// Everything that is wrong with the pipeline and the inputs, together; then what the run fails with.
pub(super) fn run(args: &Args, mut problems: Problems, format: LogFormat) -> anyhow::Result<ExitCode> {
    let clock = Arc::new(SystemClock::start());
    let plan = problems.take(args.pipeline.load());
    let inputs = problems.take(Input::resolve(&args.inputs));
    if args.evidence && !args.emit.is_of_pairs() {
        problems.note("--evidence: only pairs have evidence, and clusters are to be emitted");
    }
    overwritten(args, &mut problems);
    let (plan, inputs) = problems.settle(plan.zip(inputs))?;
    let dead_letter = args.dead_letter.clone().map(DeadLetter::create).transpose()?;
    let stages = Stages::of(&plan, args.evidence);
    let workers =
        args.workers.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    tracing::info!(
        pipeline = plan.name,
        scheme = format!("{:016x}", plan.scheme.fingerprint()),
        workers,
        "replay"
    );

    let progress = Progress::start(&stages, !(is_stdout(&args.output) && io::stdout().is_terminal()));
    let job = Job {
        files: Files { inputs, epochs: args.epoch, speed: args.speed },
        bad: Arc::new(BadRecords::new(plan.on_error, dead_letter)),
        sink: sink(args, &plan, &stages)?,
        workers,
        clock,
        stages,
    };
    let summary = pipeline::run(job);
    progress.end();
    let summary = summary?;
    if let Some(path) = &args.stats {
        let stats = serde_json::to_vec_pretty(&summary).map_err(io::Error::from);
        stats
            .and_then(|stats| std::fs::write(path, stats))
            .with_context(|| format!("the stats file {path:?}"))?;
    }
    super::tell(format, &super::summary::text(&summary))?;
    Ok(ExitCode::SUCCESS)
}

/// Notes the files that would be lost: inputs that are also written to, and files that are written to twice.
fn overwritten(args: &Args, problems: &mut Problems) {
    let same =
        |a: &Path, b: &Path| a == b || a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b));
    let written = [
        ("--output", Some(&args.output).filter(|path| !is_stdout(path))),
        ("--stats", args.stats.as_ref()),
        ("--dead-letter", args.dead_letter.as_ref()),
    ];
    let written: Vec<_> = written
        .into_iter()
        .filter_map(|(option, path)| Some((option, path?)))
        // A device or a pipe loses nothing.
        .filter(|(_, path)| path.metadata().map_or(true, |file| file.is_file()))
        .collect();
    for (n, (option, path)) in written.iter().enumerate() {
        if args.inputs.iter().any(|input| same(input, path)) {
            problems.note(format_args!("{option}: {path:?} is an input and would be lost"));
        }
        for (other, _) in written[..n].iter().filter(|(_, other)| same(other, path)) {
            problems.note(format_args!("{option}: {path:?} is written to by {other}"));
        }
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Where the result goes, and in which form.
fn sink(args: &Args, plan: &Plan, stages: &Stages) -> anyhow::Result<Box<dyn Sink + Send>> {
    let out: Box<dyn Write + Send> = if is_stdout(&args.output) {
        Box::new(io::stdout())
    } else {
        let file =
            File::create(&args.output).with_context(|| format!("the output file {:?}", args.output))?;
        Box::new(file)
    };
    let out = BufWriter::with_capacity(1 << 16, out);
    let (size, bits, exact) = (plan.scheme.sketch.size, plan.scheme.sketch.bits, plan.scheme.exact);
    let standard_error: StandardError = Box::new(move |pair| {
        // Copies and exact similarities are no estimates.
        let similarity = pair.similarity.get();
        if exact || pair.evidence.look == 0 { 0.0 } else { standard_error(similarity, size, bits) }
    });
    let evidence = args.evidence.then_some(standard_error);
    let clusters = || Clusters::new(plan.clusters, plan.cluster_limit);
    let metrics = || Arc::clone(&stages.metrics);
    Ok(match args.emit {
        EmitKind::Deltas => Box::new(DeltaLines::new(out, evidence)),
        EmitKind::Pairs => Box::new(PairLines::new(out, evidence)),
        EmitKind::Clusters => Box::new(ClusterLines::new(out, clusters(), metrics())),
        EmitKind::ClusterDeltas => Box::new(ClusterDeltaLines::new(out, clusters(), metrics())),
    })
}

/// A line on the terminal that shows how far the run is; nothing where there is no terminal.
struct Progress {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Progress {
    fn start(stages: &Stages, visible: bool) -> Self {
        let metrics = Arc::clone(&stages.metrics);
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            if !visible {
                return;
            }
            // Hides itself if standard error is no terminal.
            let bar = ProgressBar::new_spinner();
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(Duration::from_millis(100)) {
                let events = metrics.get(Counter::Events);
                let documents = metrics.get(Counter::Inserted) - metrics.get(Counter::Deleted);
                let pairs = metrics.get(Counter::Added).saturating_sub(metrics.get(Counter::Removed));
                let rate = events as f64 / bar.elapsed().as_secs_f64();
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
