//! `dupflow check`: validates a pipeline, and a deployment file, without running anything.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use super::problems::Problems;
use super::run::{deployment_file, note_conflicts};
use super::{PipelineArgs, counted, plan};
use crate::config::{Deployment, SinkPlace, SourcePlace, TablePlace};
use dupflow_connectors::inputs::Input;
use dupflow_connectors::tables::TableOutput;
use dupflow_connectors::tables::database::DatabaseFailure;

/// What `check` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// A deployment file to validate too, such as config/local.toml.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: Option<PathBuf>,

    /// Also look whether inputs and the folders of outputs are there, and reach what the deployment connects
    /// to: the broker and its topics, databases. Nothing is written.
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

/// What the databases have, a line each.
///
/// # Errors
/// All that is missing or refused.
fn databases(deployment: &Deployment) -> anyhow::Result<String> {
    let table = if let SourcePlace::Table(table) = &deployment.source { Some(table.examine()) } else { None };
    let output = if let SinkPlace::Tables(place) = &deployment.sink { Some(examine(place)) } else { None };
    let (mut found, mut problems) = (String::new(), Vec::new());
    for told in table.into_iter().chain(output) {
        match told {
            Ok(line) => writeln!(found, "  {line}")?,
            Err(failure) => problems.push(failure.to_string()),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(anyhow::anyhow!(problems.join("\n"))) }
}

/// What stands where tables are to be written.
fn examine(place: &TablePlace) -> Result<String, DatabaseFailure> {
    let TablePlace { address, schema, prefix, patience } = place.clone();
    let output =
        TableOutput { address, schema, prefix, patience, deltas: false, causes: false, run: String::new() };
    output.examine()
}

/// Notes files that cannot be made, since the folder that they are to lie in is not there.
fn note_folders(deployment: &Deployment, problems: &mut Problems) {
    let written = [("sink.path", deployment.output()), ("dead_letter.path", deployment.letter_file())];
    for (key, path) in written.into_iter().filter_map(|(key, path)| Some((key, path?))) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            problems.note(format_args!("{key}: there is no folder {folder:?} to write {path:?} in"));
        }
    }
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
        let found = args.connect.then(|| Input::resolve(deployment.inputs(), deployment.layout()));
        let named = || deployment.inputs().iter().map(|path| Input::at(path)).collect();
        let inputs = found.and_then(|found| problems.take(found)).unwrap_or_else(named);
        if args.connect {
            note_folders(deployment, &mut problems);
        }
        let files: Vec<_> =
            args.pipeline.file().into_iter().chain(args.config.as_deref().map(deployment_file)).collect();
        note_conflicts(plan.as_ref(), deployment, &files, &inputs, None, &mut problems);
    }
    let (plan, deployment) = problems.settle(plan.zip(deployment))?;

    let mut report = format!("pipeline {}: ok, scheme {:016x}\n", plan.name, plan.scheme.fingerprint());
    for advice in plan::advice(&plan, plan.documents) {
        writeln!(report, "  ! for {} documents: {advice}", plan.documents)?;
    }
    if let (Some(path), Some(deployment)) = (&args.config, &deployment) {
        let inputs = match &deployment.source {
            SourcePlace::Files { inputs, .. } => counted(inputs.len(), "input"),
            SourcePlace::Kafka { topic, .. } => format!("topic \"{topic}\""),
            SourcePlace::Table(table) => table.name(),
        };
        let workers = deployment
            .workers
            .map_or_else(|| "as many workers as cores".to_owned(), |n| format!("{n} workers"));
        writeln!(report, "deployment {}: ok, {inputs}, {workers}", path.display())?;
    }
    if args.connect {
        let databases = deployment.as_ref().map(databases).transpose()?.unwrap_or_default();
        match deployment.as_ref().filter(|place| place.has_broker()) {
            Some(deployment) => report.push_str(&connected(deployment)?),
            None if databases.is_empty() => {
                report.push_str("connect: nothing to reach, no broker and no database is named\n");
            }
            None => report.push_str("connect: ok\n"),
        }
        report.push_str(&databases);
    }
    super::print(&report)?;
    Ok(ExitCode::SUCCESS)
}
