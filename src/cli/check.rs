//! `dupflow check`: validates a pipeline, and a deployment file, without running anything.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use super::problems::Problems;
use super::run::note_conflicts;
use super::{PipelineArgs, counted, plan};
use crate::config::{Deployment, SourcePlace};

/// What `check` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// A deployment file to validate too, such as config/local.toml.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: Option<PathBuf>,

    /// Also reach what the deployment connects to: the broker and its topics. Nothing is written.
    #[arg(long)]
    pub connect: bool,
}

/// What the broker has.
///
/// # Errors
/// All that is missing or refused.
#[cfg(feature = "kafka")]
fn connected(deployment: &Deployment) -> anyhow::Result<String> {
    let found =
        super::connect::report(deployment).map_err(|problems| anyhow::anyhow!(problems.join("\n")))?;
    Ok(format!("connect: ok, {}\n{found}", deployment.kafka.brokers))
}

/// Without the feature `kafka` no deployment names a broker.
#[cfg(not(feature = "kafka"))]
fn connected(_: &Deployment) -> anyhow::Result<String> {
    Ok(String::new())
}

/// Says what is fine and, of what is, what speaks against it ("!"); or everything that is wrong.
///
/// # Errors
/// The problems of the pipeline and of the deployment, together.
pub(super) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    let plan = problems.take(args.pipeline.load());
    let environment = |name: &str| std::env::var(name).ok();
    let deployment = args.config.as_ref().map(|path| Deployment::load(path, &environment)).transpose();
    let deployment = problems.take(deployment);
    if let Some(Some(deployment)) = &deployment {
        note_conflicts(deployment, None, &mut problems);
    }
    let (plan, deployment) = problems.settle(plan.zip(deployment))?;

    let mut report = format!("pipeline {}: ok, scheme {:016x}\n", plan.name, plan.scheme.fingerprint());
    for advice in plan::advice(&plan, plan::DOCUMENTS) {
        writeln!(report, "  ! for {} documents: {advice}", plan::DOCUMENTS)?;
    }
    if let (Some(path), Some(deployment)) = (&args.config, &deployment) {
        let inputs = match &deployment.source {
            SourcePlace::Files { inputs, .. } => counted(inputs.len(), "input"),
            SourcePlace::Kafka { topic, .. } => format!("topic \"{topic}\""),
        };
        let workers = deployment
            .workers
            .map_or_else(|| "as many workers as cores".to_owned(), |n| format!("{n} workers"));
        writeln!(report, "deployment {}: ok, {inputs}, {workers}", path.display())?;
    }
    if args.connect {
        match deployment.as_ref().filter(|place| place.has_broker()) {
            Some(deployment) => report.push_str(&connected(deployment)?),
            None => report.push_str("connect: nothing to reach, no broker is named\n"),
        }
    }
    super::print(&report)?;
    Ok(ExitCode::SUCCESS)
}
