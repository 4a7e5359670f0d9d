//! `dupflow plan`: prints what a pipeline will do.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use super::arguments;
use super::arguments::problems::Problems;
#[cfg(feature = "lab")]
use super::lab::sample::{SampleArgs, measured};
use super::{PipelineArgs, ReportFormat};
use crate::config::MemoryBudget;
use crate::forecast::{DEFAULT_IOPS, PlanReport, RetentionReport};
use crate::pipeline::budget_bytes;

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    dupflow plan                             what the default pipeline finds, and why\n  \
    dupflow plan -t 0.7 --documents 100M     of so many documents\n  \
    dupflow plan --memory 8GiB               what is in files, and what that costs")]
pub struct Args {
    /// The pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// What the plan does with so many documents, as in 100M.
    ///
    /// They are all different. Shown are sizes of blocks, recall, cost. K, M and G are thousands, millions
    /// and thousand millions [default: blocking.documents].
    #[arg(long, value_name = "N", value_parser = documents)]
    pub documents: Option<u64>,

    /// The same for what a retention leaves of so many events a second.
    ///
    /// Instead of --documents.
    #[arg(long, value_name = "RATE", value_parser = above_zero)]
    pub rate: Option<f64>,

    /// Worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = arguments::workers)]
    pub workers: Option<NonZeroUsize>,

    /// What is in files under this memory budget, as in 8GiB or 60%.
    ///
    /// And what reading the files costs.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<MemoryBudget>,

    /// With --memory: the reads a second that the disk of the files allows.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_IOPS, requires = "memory",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub iops: u64,

    /// A sample of the texts.
    #[cfg(feature = "lab")]
    #[command(flatten)]
    pub sample: SampleArgs,

    /// The format of the report: text or json.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ReportFormat,
}

/// Prints the plan.
///
/// # Errors
/// All problems of the pipeline.
pub(super) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    let plan = problems.take(args.pipeline.load());
    #[cfg(feature = "lab")]
    let sample = args.sample.inputs(plan.as_ref(), &mut problems);
    let budget = args.memory.map(budget_bytes).transpose();
    let budget = budget.inspect_err(|what| problems.note(format_args!("--memory: {what}"))).ok();
    let (plan, budget) = problems.settle(plan.zip(budget))?;
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let workers = args.workers.unwrap_or_else(cores).get();
    let retained = RetentionReport::for_plan(&plan, args.rate);
    let documents =
        retained.as_ref().and_then(|retained| retained.documents()).filter(|_| args.rate.is_some());
    let documents = documents.or(args.documents).unwrap_or(plan.documents);
    let report = PlanReport::new(&plan, documents, workers, retained);
    let report = match budget {
        Some(bytes) => report.under(&plan, bytes, args.iops),
        None => report,
    };
    #[cfg(feature = "lab")]
    let report = match sample {
        Some(inputs) => report.with_sample(measured(&plan, inputs, documents, workers)?),
        None => report,
    };
    let written = match args.format {
        ReportFormat::Text => report.to_string(),
        ReportFormat::Json => serde_json::to_string_pretty(&report)? + "\n",
    };
    super::print(&written)?;
    Ok(ExitCode::SUCCESS)
}

/// A number of documents, in units of K, M or G.
fn documents(typed: &str) -> Result<u64, String> {
    let units = [("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
    let unit = units.iter().find_map(|(unit, times)| Some((typed.strip_suffix(unit)?, *times)));
    let (digits, times) = unit.unwrap_or((typed, 1_u64));
    let number = digits.parse().ok().and_then(|number: u64| number.checked_mul(times));
    number.ok_or_else(|| "expected a number of documents, as in 1000000 or 100M".to_owned())
}

/// A number above 0.
fn above_zero(typed: &str) -> Result<f64, String> {
    let number = typed.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "expected a number above 0".to_owned())
}
