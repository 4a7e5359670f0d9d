//! `dupflow replay`: a recorded feed in, the changes of its near-duplicate pairs out.

use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use indicatif::{HumanCount, HumanFloatCount, ProgressBar};

use super::arguments::at_least_one;
use super::problems::Problems;
use super::{PipelineArgs, written};
use crate::config::{Deployment, EmitKind, LogFormat, LogLevel};
use crate::dataflow::Stages;
use crate::metrics::Counter;
use crate::pipeline::{self, Job};
use crate::source::{EpochRule, Input, Speed};
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

    /// Where the input is cut into epochs: "events:N" after every N events, "every:T" so long after its first event (as in 100ms),
    /// "ts" whenever the time stamp changes, or "all".
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
    let deployment = args.deployment(format);
    if deployment.evidence && !deployment.emit.is_of_pairs() {
        problems.note("--evidence: only pairs have evidence, and clusters are to be emitted");
    }
    let redirected = written::standard_output();
    let output = deployment.output.as_ref().map(|path| ("--output", &**path));
    let written = [
        output.or(redirected.as_ref().map(|path| ("standard output", &**path))),
        args.stats.as_ref().map(|path| ("--stats", &**path)),
        args.dead_letter.as_ref().map(|path| ("--dead-letter", &**path)),
    ];
    written::check(&written.into_iter().flatten().collect::<Vec<_>>(), &args.inputs, &mut problems);
    let (plan, inputs) = problems.settle(plan.zip(inputs))?;

    let job = Job::assemble(&plan, &deployment, inputs, clock)?;
    super::tell_begin("replay", &plan, &job);
    let to_terminal = deployment.output.is_none() && io::stdout().is_terminal();
    let progress = ProgressLine::start(&job.stages, !to_terminal);
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

impl Args {
    /// What was typed, as a deployment file would say it.
    fn deployment(&self, format: LogFormat) -> Deployment {
        Deployment {
            workers: self.workers,
            shutdown: Duration::ZERO,
            inputs: self.inputs.clone(),
            epoch: self.epoch,
            speed: self.speed,
            dead_letter: self.dead_letter.clone(),
            output: Some(self.output.clone()).filter(|path| path != Path::new("-")),
            emit: self.emit,
            evidence: self.evidence,
            level: LogLevel::default(),
            format,
        }
    }
}

/// A line on the terminal that shows how far the run is; nothing where there is no terminal.
struct ProgressLine {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl ProgressLine {
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
                let counts = metrics.counts();
                let events = counts.get(Counter::Events);
                let documents = counts.balance(Counter::Inserted, Counter::Deleted);
                let pairs = counts.balance(Counter::Added, Counter::Removed);
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
