//! `dupflow run`: events as they come, until the input ends or a signal does; a deployment file says from where and to where.
//!
//! The first SIGINT or SIGTERM ends reading. What has been read is finished and written: whole epochs, the last one with
//! what had come of it. If that takes longer than the deployment allows, the run gives up. A second signal ends the process at once.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::{Context, bail};

use super::problems::Problems;
use super::{PipelineArgs, written};
use crate::config::{Deployment, LogFormat};
use crate::pipeline::{self, Job, RunError, Summary};
use crate::source::Input;
use crate::time::SystemClock;

/// What `run` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// The deployment file, such as config/local.toml: what is read, where results go, how much is logged.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: PathBuf,
}

/// What the run waits for.
enum News {
    /// It has ended.
    Ended(Box<Result<Summary, RunError>>),
    /// A signal has come.
    Signal(i32),
}

/// Runs until the end, and tells on standard error what it came to.
///
/// # Errors
/// Everything that is wrong with the pipeline and the deployment, together; then what the run fails with.
pub(super) fn run(
    args: &Args,
    mut problems: Problems,
    format: Option<LogFormat>,
) -> anyhow::Result<ExitCode> {
    let clock = Arc::new(SystemClock::start());
    let plan = problems.take(args.pipeline.load());
    let environment = |name: &str| std::env::var(name).ok();
    let deployment = problems.take(Deployment::load(&args.config, &environment));
    let inputs = deployment.as_ref().and_then(|place| problems.take(Input::resolve(&place.inputs)));
    if let Some(deployment) = &deployment {
        note_conflicts(deployment, written::standard_output().as_deref(), &mut problems);
    }
    let (plan, (deployment, inputs)) = problems.settle(plan.zip(deployment.zip(inputs)))?;
    let format = format.unwrap_or(deployment.format);
    super::start_logging(format, deployment.level);

    let (tell, news) = channel();
    on_signals(tell.clone()).context("signals cannot be caught")?;
    let job = Job::assemble(&plan, &deployment, inputs, clock)?;
    super::tell_begin("run", &plan, &job);
    let running = pipeline::start(job)?;
    let stopper = running.stopper();
    thread::Builder::new().name("run".to_owned()).spawn(move || {
        // Nobody listens any more once the run has been given up.
        drop(tell.send(News::Ended(Box::new(running.join()))));
    })?;

    let ended = match news.recv()? {
        News::Ended(ended) => ended,
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
    super::tell(format, &super::summary::text(&(*ended)?))?;
    Ok(ExitCode::SUCCESS)
}

/// Notes keys of the deployment that exclude each other; standard output may go to a file.
pub(super) fn note_conflicts(deployment: &Deployment, redirected: Option<&Path>, problems: &mut Problems) {
    if deployment.evidence && !deployment.emit.is_of_pairs() {
        problems.note("sink.evidence: only pairs have evidence, and clusters are to be emitted");
    }
    let output = deployment.output.as_ref().map(|path| ("sink.path", &**path));
    let written = [
        output.or(redirected.map(|path| ("standard output", path))),
        deployment.dead_letter.as_ref().map(|path| ("source.dead_letter", &**path)),
    ];
    written::check(&written.into_iter().flatten().collect::<Vec<_>>(), &deployment.inputs, problems);
}

/// Tells of the first signal; the second one ends the process with 1, whatever it is doing.
#[cfg(unix)]
fn on_signals(tell: Sender<News>) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};

    let armed = Arc::default();
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag down, and puts it up.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&armed))?;
        signal_hook::flag::register(signal, Arc::clone(&armed))?;
    }
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            // Nobody listens any more once the run has ended.
            drop(tell.send(News::Signal(signal)));
        }
    })?;
    Ok(())
}

/// Signals are left as they are: they end the process.
#[cfg(not(unix))]
fn on_signals(_: Sender<News>) -> std::io::Result<()> {
    Ok(())
}
