//! A replay whose arguments have no problem: its run, and what is said of it.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;

use anyhow::Context;

use super::args::Args;
use super::progress_line::ProgressLine;
use super::report;
use crate::cli::arguments::problems;
use crate::cli::arguments::processes;
use crate::cli::arguments::resume::{self, ResumableReplay};
use crate::cli::arguments::verbosity::Verbosity;
use crate::cli::audit;
use crate::config::{Deployment, Plan};
use crate::pipeline::{self, CountsRecord, Mode, Provenance, RunError, RunJob, Summary};
use dupflow_connectors::inputs::{Input, Staying};
use dupflow_core::time::SystemClock;
use dupflow_engine::processes::Processes;

/// Ends a replay whose result an earlier process has written.
pub(super) fn end_published(args: &Args, resumable: Option<ResumableReplay>) -> anyhow::Result<ExitCode> {
    tracing::info!("an earlier process has written the result already");
    let Some(replay) = resumable else { return Ok(ExitCode::SUCCESS) };
    let lost = args.stats.as_ref().filter(|_| !replay.has_ended());
    replay.end()?;
    if let Some(path) = lost {
        anyhow::bail!("the result is written, and its counts for {path:?} were lost with an earlier process");
    }
    Ok(ExitCode::SUCCESS)
}

/// A replay whose arguments have no problem.
pub(super) struct Replay {
    pub(super) plan: Plan,
    pub(super) deployment: Deployment,
    /// Those of the reference first.
    pub(super) inputs: Vec<Input>,
    pub(super) processes: Option<Processes>,
    pub(super) resumable: Option<ResumableReplay>,
    /// Whether an earlier process has written the result.
    pub(super) is_published: bool,
}

impl Replay {
    /// The bad records of items of a reference.
    pub(super) fn check_items(&self, args: &Args) -> anyhow::Result<u64> {
        let Self { plan, deployment, inputs, .. } = self;
        if !plan.finds_items() {
            return Ok(0);
        }
        args.reference.check_items(plan, &deployment.fields, &inputs[..deployment.against])
    }

    /// Runs it, and writes what is said of it.
    pub(super) fn run(
        self,
        args: &Args,
        bad_items: u64,
        clock: Arc<SystemClock>,
        verbosity: Verbosity,
    ) -> anyhow::Result<ExitCode> {
        let Self { plan, deployment, inputs, processes, mut resumable, .. } = self;
        let again = inputs.clone();
        if let Some(replay) = &mut resumable {
            replay.begin(resume::settings(&plan, &deployment, &inputs), &deployment)?;
        }
        // Process 0 has the counts of all processes.
        let index = processes.as_ref().map_or(0, Processes::index);
        let settings =
            processes.map(|processes| processes::settings(processes, &plan, &deployment, "replay"));
        let provenance = Provenance::begin(&plan, &deployment, &inputs);
        let together = settings.as_ref().map(processes::connect).transpose()?;
        let is_printed = deployment.all_outputs().any(|output| output.place.is_printed());
        let summary = processes::report_failure(together, |together| {
            let mut job = RunJob::assemble(&plan, &deployment, &Mode::Replay, inputs, together, clock)?;
            job.demands.bad_items = bad_items;
            let monitor = crate::cli::run::monitor::start(&plan, &deployment, &mut job)?;
            if let Some(monitor) = &monitor {
                job = stay(job, monitor.address());
            }
            crate::cli::log_start("replay", &plan, &job);
            let to_terminal = is_printed && io::stdout().is_terminal();
            let progress = ProgressLine::start(&job, verbosity.shows_progress() && !to_terminal);
            let summary =
                if monitor.is_some() { run_until_signalled(job, false)? } else { pipeline::run(job) };
            progress.end();
            Ok(summary?)
        })?;
        let provenance = provenance.ended(summary.inputs.clone(), CountsRecord::from(&summary));
        if let Some(path) = args.stats.as_ref().filter(|_| index == 0) {
            let stats = audit::StatsReport { summary: &summary, provenance: &provenance };
            let stats = serde_json::to_vec_pretty(&stats).map_err(io::Error::from);
            let written = stats.and_then(|stats| std::fs::write(path, stats));
            written.with_context(|| format!("the stats file {path:?}"))?;
        }
        if args.has_companion(&deployment) && summary.unmet.is_empty() {
            let path = audit::companion(&args.output[0]);
            std::fs::write(&path, provenance.to_json() + "\n")
                .with_context(|| format!("the file {path:?}"))?;
        }
        if let Some(path) = args.report.as_ref().filter(|_| summary.unmet.is_empty()) {
            report::write(path, &plan, &deployment, &again, &summary)?;
        }
        verbosity.print(&crate::cli::summary::text(&summary, deployment.output.answer))?;
        problems::check_demands(&summary.unmet)?;
        resumable.map_or(Ok(()), ResumableReplay::end)?;
        Ok(ExitCode::SUCCESS)
    }
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
pub(in crate::cli) fn run_until_signalled(
    job: RunJob,
    hangs_up: bool,
) -> anyhow::Result<Result<Summary, RunError>> {
    let (send, signalled) = channel();
    // There is no receiver after the run has ended.
    crate::cli::run::on_signals(hangs_up, move |signal| send.send(signal).unwrap_or(()))
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
