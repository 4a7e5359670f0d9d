//! `dupflow check`: validates a pipeline, and optionally a deployment file, without running anything.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use super::PipelineArgs;
use super::arguments::problems::Problems;
use super::arguments::reference;
use super::arguments::views;
use super::run::{deployment_file, note_conflicts, written_by};
use crate::config::{ConfigFile, DatabaseSource, Deployment, TablesPlace, WatchConfig};
use crate::forecast;
use crate::pipeline;
use crate::plural::counted;
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::inputs::Input;
use dupflow_connectors::sinks::DecisionMode;
use dupflow_connectors::state;
use dupflow_connectors::tables::database::DatabaseFailure;
use dupflow_connectors::tables::{DatabaseTable, TableOutput};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// A deployment file to validate too, such as config/local.toml.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: Option<PathBuf>,

    /// Also look whether what the deployment names is there.
    ///
    /// Inputs, folders, brokers and databases. Nothing is written.
    #[arg(long)]
    pub connect: bool,

    /// Print the JSON Schema of such files instead, for an editor.
    ///
    /// An editor that knows JSON Schemas of TOML files (Taplo, Even Better TOML) then completes keys, shows
    /// their texts and marks what is wrong: a first line `#:schema ./deployment.json` names the schema.
    #[arg(long, value_enum, value_name = "FILE", exclusive = true)]
    pub schema: Option<ConfigFile>,
}

/// Connects to the broker and describes its topics.
///
/// # Errors
/// All that is missing or refused.
#[cfg(feature = "kafka")]
fn connected(deployment: &Deployment) -> anyhow::Result<String> {
    let found = super::topics::connect::report(deployment)
        .map_err(|problems| anyhow::anyhow!(problems.join("\n")))?;
    Ok(format!("connect: ok, {}\n{found}", deployment.kafka.brokers))
}

/// Without the feature `kafka` no valid deployment names a broker.
#[cfg(not(feature = "kafka"))]
fn connected(_: &Deployment) -> anyhow::Result<String> {
    Ok(String::new())
}

/// Describes the databases, one line each.
///
/// # Errors
/// All that is missing or refused.
fn databases(deployment: &Deployment) -> anyhow::Result<String> {
    let source = deployment.source.as_a::<DatabaseSource>().map(|source| &source.0);
    let watches = deployment.watch.as_ref().and_then(|watch| watch.table.as_deref());
    let sides: Vec<_> = deployment.side_names().into_iter().map(|(_, name)| name).collect();
    let outputs = deployment.all_outputs().enumerate().filter_map(|(at, output)| {
        let decisions = Some(output.decisions).filter(|_| output.answer.is_of_decisions());
        // Rows beside the pairs are with the first output.
        let sides = if at == 0 { &*sides } else { &[] };
        Some(examine(output.place.as_a()?, decisions, sides))
    });
    let (mut found, mut problems) = (String::new(), Vec::new());
    let tables = source.into_iter().chain(watches).map(DatabaseTable::examine);
    for result in tables.chain(outputs) {
        match result {
            Ok(line) => writeln!(found, "  {line}")?,
            Err(failure) => problems.push(failure.to_string()),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(anyhow::anyhow!(problems.join("\n"))) }
}

/// Describes the database that tables will be written to, those of rows beside the pairs included.
fn examine(
    place: &TablesPlace,
    decisions: Option<DecisionMode>,
    sides: &[&str],
) -> Result<String, DatabaseFailure> {
    let TablesPlace { address, schema, prefix, patience } = place.clone();
    let output = TableOutput {
        anew: false,
        address,
        schema,
        prefix,
        patience,
        deltas: false,
        causes: false,
        shares: false,
        decisions,
        run: String::new(),
    };
    output.examine(sides)
}

/// Reports output files whose folder does not exist.
fn note_folders(deployment: &Deployment, problems: &mut Problems) {
    let of_outputs = written_by(deployment).into_iter().map(|(key, path, _)| (key, path));
    let letters = deployment.letter_file().map(|path| ("dead_letter.path".to_owned(), path));
    let written = of_outputs.chain(letters);
    let of_watches = deployment.watch.iter().flat_map(WatchConfig::written);
    let of_views = views::files(&deployment.views, false).into_iter().map(|(key, path, _)| (key, path));
    for (key, path) in written.chain(of_views).chain(of_watches.map(|(key, path)| (key.to_owned(), path))) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            problems.note(format_args!("{key}: there is no folder {folder:?} to write {path:?} in"));
        }
    }
}

/// Reports folders of the state and of spilled rows that a run could not use. Creates nothing.
fn note_kept(deployment: &Deployment, problems: &mut Problems) {
    let state = deployment.state.as_ref().and_then(|state| state::local_folder(&state.location));
    if let Some(Err(what)) = state.map(pipeline::check_writable) {
        problems.note(format_args!("state.path: {what}"));
    }
    if let Err(what) = pipeline::check_spill(deployment) {
        problems.note(what);
    }
}

/// Prints what is valid, with warnings marked "!".
///
/// # Errors
/// All problems of the pipeline and the deployment.
pub(super) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    if let Some(file) = args.schema.filter(|_| problems.is_empty()) {
        super::print(&format!("{:#}\n", file.schema()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut plan = problems.take(args.pipeline.load_of_documents());
    let environment = |name: &str| std::env::var(name).ok();
    let deployment = args.config.as_ref().map(|path| Deployment::load(path, &environment)).transpose();
    let deployment = problems.take(deployment);
    if let Some(Some(deployment)) = &deployment {
        reference::apply_frozen(plan.as_mut(), deployment, false, &mut problems);
        let found = args.connect.then(|| deployment.resolve());
        let named = || deployment.inputs().iter().map(|path| Input::at(path)).collect();
        let inputs = found.and_then(|found| problems.take(found)).unwrap_or_else(named);
        if args.connect {
            let lists = deployment.watch.as_ref().map_or(&[][..], |watch| &watch.inputs);
            problems.take(Input::resolve(lists, InputLayout::default()));
            reference::note_missing(deployment, &mut problems);
            note_folders(deployment, &mut problems);
        }
        note_kept(deployment, &mut problems);
        let files: Vec<_> =
            args.pipeline.file().into_iter().chain(args.config.as_deref().map(deployment_file)).collect();
        note_conflicts(plan.as_ref(), deployment, &files, &inputs, None, &mut problems);
    }
    let (plan, deployment) = problems.settle(plan.zip(deployment))?;

    let mut report = format!("pipeline {}: ok, scheme {:016x}\n", plan.name, plan.scheme.fingerprint());
    for advice in forecast::advice(&plan, plan.documents) {
        writeln!(report, "  ! for {} documents: {advice}", plan.documents)?;
    }
    if let (Some(path), Some(deployment)) = (&args.config, &deployment) {
        let inputs = deployment.source.name();
        let workers = deployment
            .workers
            .map_or_else(|| "as many workers as cores".to_owned(), |n| format!("{n} workers"));
        let reference = deployment.reference.as_ref().map_or_else(String::new, |reference| {
            format!(" compared with a reference of {}", counted(reference.inputs.len(), "input"))
        });
        writeln!(report, "deployment {}: ok, {inputs}{reference}, {workers}", path.display())?;
        for output in deployment.all_outputs().filter(|_| !deployment.others.is_empty()) {
            writeln!(report, "  {}: {} to {}", output.table, output.answer, output.place)?;
        }
        if plan.finds_items() {
            writeln!(
                report,
                "  ! output.item_limit is of lists at the end of the input: a run writes all pairs"
            )?;
        }
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
