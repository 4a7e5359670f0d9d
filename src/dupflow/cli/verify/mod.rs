//! `dupflow verify`: repeats the replay that made a report, and says whether the report holds.
//!
//! ```text
//! report ─ provenance ─▶ pipeline, options ─▶ replay of the feed ─▶ provenance, records
//!    └──── records ───────────────────────────────────────────────▶ compared, one by one
//! ```
//!
//! The report holds if this program, with the pipeline and the options that the report names, reads the same
//! bytes and writes the same records and counts. Everything that is not so is one finding. The replay writes
//! into a temporary folder, about as much as the report has.

mod compared;
mod findings;
mod records;
mod report;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use serde_json::Value as Json;

use super::arguments;
use super::arguments::problems::Problems;
use super::replay;
use super::{Cli, Command};
use crate::config::{Deployment, LogFormat, Plan, ProvenancePlace};
use crate::pipeline::{
    self, CountsRecord, Mode, PipelineRecord, Provenance, RunJob, Summary, missing_fields,
};
use compared::RecordRule;
use dupflow_connectors::inputs::Input;
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::time::SystemClock;
use findings::VerifyFindings;
use report::Report;

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The report: an output with provenance, or its counts.
    ///
    /// An output of "replay --provenance" in any format, or the file of "replay --stats" together with
    /// --output.
    #[arg(value_name = "REPORT")]
    pub report: PathBuf,

    /// The inputs that the report was made of, in the same order.
    #[arg(value_name = "FEED", required = true)]
    pub feed: Vec<PathBuf>,

    /// The output of the run whose --stats file REPORT is.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The pipeline that the report should be made by, by name or path [default: the one that the report
    /// names].
    #[arg(short, long, value_name = "PIPELINE")]
    pub pipeline: Option<String>,

    /// The least similarity of a pair by that pipeline.
    #[arg(short, long, value_name = "SIMILARITY", allow_negative_numbers = true, requires = "pipeline",
        value_parser = arguments::threshold)]
    pub threshold: Option<f64>,

    /// Set one key of that pipeline; repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "pipeline")]
    pub overrides: Vec<String>,

    /// Worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = super::arguments::workers)]
    pub workers: Option<NonZeroUsize>,
}

/// Prints what was compared and every finding; exit code 1 if there is one.
///
/// # Errors
/// A report that cannot be read; all problems of its pipeline and of the inputs; the error of the replay.
pub(super) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    let report = problems.take(Report::read(&args.report, args.output.as_deref()));
    let expected = args
        .pipeline
        .as_ref()
        .map(|name| Plan::load(name, &arguments::overrides(&args.overrides, args.threshold)))
        .transpose();
    let expected = problems.take(expected);
    let (report, expected) = problems.settle(report.zip(expected))?;
    let repeated = Repeated::run(&report, args)?;
    let findings = findings(&report, expected.as_ref(), &repeated)?;
    super::print(&findings.text(&args.report))?;
    Ok(if findings.holds() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// All findings, in the order of what they are about.
fn findings(report: &Report, expected: Option<&Plan>, repeated: &Repeated) -> anyhow::Result<VerifyFindings> {
    let (there, here) = (&report.provenance, &repeated.provenance);
    let mut findings = VerifyFindings::default();
    if let Some(what) = &report.cut {
        findings.differs(what);
    }
    findings.inputs(&there.inputs, &here.inputs);
    findings.program(&there.program, &here.program);
    findings.pipeline(&there.pipeline, &here.pipeline, "here");
    if let Some(plan) = expected {
        findings.pipeline(&there.pipeline, &PipelineRecord::new(plan), "in the pipeline that was named");
    }
    if there.scheme != here.scheme {
        findings.differs(format_args!("scheme: {} there, {} here", there.scheme, here.scheme));
    }
    for problem in &repeated.summary.unmet {
        findings.differs(format_args!("the replay fails: {problem}"));
    }
    let rule = repeated.rule;
    if repeated.summary.unmet.is_empty() {
        let (theirs, ours) = (records::read(&report.output)?, records::read(&repeated.output)?);
        findings.records(&compared::compare(theirs, ours, rule)?, rule);
    }
    findings.counts(there.counts.as_ref(), here.counts.as_ref(), rule);
    Ok(findings)
}

/// The replay that a report describes.
struct Repeated {
    provenance: Provenance,
    summary: Summary,
    output: PathBuf,
    rule: RecordRule,
    /// Holds the output.
    _folder: TemporaryFolder,
}

impl Repeated {
    /// Replays the feed by the pipeline and the options of the report.
    fn run(report: &Report, args: &Args) -> anyhow::Result<Self> {
        let Provenance { pipeline, options, .. } = &report.provenance;
        let mut problems = Problems::default();
        let plan = problems.take(Plan::from_settings(&pipeline.name, &pipeline.settings));
        if plan.as_ref().is_some_and(|plan| plan.retention.follows(RetentionClock::Wall)) {
            problems.note(
                "documents of this report expire by the time of day (retention.clock = \"wall\"): no replay \
                repeats it",
            );
        }
        let folder = TemporaryFolder::create()?;
        let output = folder.0.join("output");
        let replay = problems.take(replay_args(options, &output, args));
        let inputs = replay.as_ref().and_then(|replay| replay.inputs.resolve(&mut problems));
        let deployment = replay.map(|replay| {
            let fields = replay.inputs.layout.columns.fields(&mut problems);
            replay.deployment(fields, LogFormat::default())
        });
        if let (Some(plan), Some(deployment)) = (&plan, &deployment) {
            missing_fields(plan, deployment).into_iter().for_each(|missing| problems.note(missing));
            if deployment.output.answer.copied().is_some() {
                problems
                    .note("the report is of records that were copied: only lists and changes are verified");
            }
            if deployment.output.answer.is_of_decisions() && compared::is_by_clock(deployment) {
                problems.note(
                    "the epochs of this report were cut by the clock, and a decision is of its epoch: no \
                    replay repeats it",
                );
            }
        }
        let (plan, (mut deployment, inputs)) = problems.settle(plan.zip(deployment.zip(inputs)))?;
        deployment.audit.provenance = ProvenancePlace::Stats;
        let rule = RecordRule::new(&plan, &deployment);
        let (provenance, summary) = repeat(&plan, &deployment, inputs)?;
        Ok(Self { provenance, summary, output, rule, _folder: folder })
    }
}

/// Replays; returns the provenance and the summary.
fn repeat(plan: &Plan, deployment: &Deployment, inputs: Vec<Input>) -> anyhow::Result<(Provenance, Summary)> {
    let begun = Provenance::begin(plan, deployment, &inputs);
    let clock = Arc::new(SystemClock::start());
    let job = RunJob::assemble(plan, deployment, &Mode::Replay, inputs, None, clock)?;
    let summary = pipeline::run(job)?;
    Ok((begun.ended(summary.inputs.clone(), CountsRecord::from(&summary)), summary))
}

/// The arguments of the replay that made a report, with other inputs and another output.
fn replay_args(options: &BTreeMap<String, Json>, output: &Path, args: &Args) -> anyhow::Result<replay::Args> {
    let mut typed = vec!["dupflow".into(), "replay".into(), "--output".into(), output.as_os_str().to_owned()];
    for (name, value) in options {
        if name == "against" {
            anyhow::bail!(
                "the report is of a replay with --against, which is not verified: verify reads no corpus to \
                 compare with"
            );
        }
        // Others have paths: a report may come from someone else, and must not say what is read and written.
        if !Provenance::OPTIONS.contains(&name.as_str()) {
            anyhow::bail!("the report has the option {name:?}, which decides no result");
        }
        match value {
            _ if name == "max-bad" => {}
            Json::Bool(true) => typed.push(format!("--{name}").into()),
            Json::Bool(false) | Json::Null => {}
            Json::Array(each) => typed.extend(each.iter().map(|one| typed_option(name, one))),
            one => typed.push(typed_option(name, one)),
        }
    }
    // More bad records than the first run had are a finding, and no failure.
    typed.push("--max-bad=1".into());
    typed.extend(args.workers.map(|workers| format!("--workers={workers}").into()));
    typed.push("--".into());
    typed.extend(args.feed.iter().map(|path| path.as_os_str().to_owned()));
    let cli = Cli::try_parse_from(typed).map_err(|error| {
        anyhow::anyhow!("the options of the report are not those of this program: {error}")
    })?;
    match cli.command {
        Command::Replay(replay) => Ok(*replay),
        other => anyhow::bail!("the report is of another command: {other:?}"),
    }
}

/// An option with its value.
fn typed_option(name: &str, value: &Json) -> OsString {
    value.as_str().map_or_else(|| format!("--{name}={value}"), |text| format!("--{name}={text}")).into()
}

/// A folder that is removed with everything in it.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn create() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("dupflow-verify-{:016x}", rand::random::<u64>()));
        fs::create_dir(&path).with_context(|| format!("the temporary folder {path:?}"))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        fs::remove_dir_all(&self.0).unwrap_or(());
    }
}
