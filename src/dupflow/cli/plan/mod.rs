//! `dupflow plan`: what a pipeline will do, before it does it.

mod banding;
mod hamming;
mod memory;
mod plot;
mod report;
mod retention;
mod text;
mod told;

use std::num::NonZeroUsize;
use std::process::ExitCode;

use super::arguments;
use super::problems::Problems;
use super::{PipelineArgs, ReportFormat};
use crate::config::{BlockingPlan, Plan};
use dupflow_core::block::hamming::DesignUse;
use dupflow_core::block::hamming::optimiser;
use report::Report;
use retention::Retained;
pub(super) use told::Told;

/// What `plan` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// Say what this plan does with so many documents, all different: how full blocks get, what is found,
    /// what it costs [default: blocking.documents].
    #[arg(long, value_name = "N")]
    pub documents: Option<u64>,

    /// Estimate how many documents a retention leaves, for so many events a second; in place of --documents.
    #[arg(long, value_name = "EVENTS_PER_SECOND", value_parser = above_zero)]
    pub rate: Option<f64>,

    /// Estimate the memory for this many worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = arguments::workers)]
    pub workers: Option<NonZeroUsize>,

    /// How the plan is written.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ReportFormat,
}

/// What speaks against a pipeline's blocking for so many documents.
pub(super) fn advice(plan: &Plan, documents: u64) -> Vec<String> {
    let of = |(blocking, _): (&BlockingPlan, usize)| match blocking {
        BlockingPlan::Hamming { design, rule } => {
            let more = optimiser::advice(design, documents, DesignUse::Stream { cap: rule.cap });
            let all = hamming::promise(*rule).into_iter().chain(more);
            all.map(|advice| advice.to_string()).collect()
        }
        BlockingPlan::Banding { design, rule } => {
            banding::advice(plan, design, *rule, documents).into_iter().collect()
        }
        BlockingPlan::Shingles { .. } | BlockingPlan::Scan => Vec::new(),
    };
    plan.blockings().flat_map(of).collect()
}

/// What the blocks of a pipeline lose among the documents that they are planned for.
pub(super) fn loss(plan: &Plan) -> Option<String> {
    let of = |(blocking, _): (&BlockingPlan, usize)| match blocking {
        BlockingPlan::Banding { design, rule } => banding::advice(plan, design, *rule, plan.documents),
        _ => None,
    };
    plan.blockings().find_map(of)
}

/// Prints the plan.
///
/// # Errors
/// Everything that is wrong with the pipeline.
pub(super) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    let plan = problems.take(args.pipeline.load());
    let plan = problems.settle(plan)?;
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let workers = args.workers.unwrap_or_else(cores).get();
    let retained = Retained::of(&plan, args.rate);
    let documents = retained.as_ref().and_then(|retained| retained.documents).filter(|_| args.rate.is_some());
    let report =
        Report::new(&plan, documents.or(args.documents).unwrap_or(plan.documents), workers, retained);
    let written = match args.format {
        ReportFormat::Text => report.to_string(),
        ReportFormat::Json => serde_json::to_string_pretty(&report)? + "\n",
    };
    super::print(&written)?;
    Ok(ExitCode::SUCCESS)
}

/// A number above 0.
fn above_zero(typed: &str) -> Result<f64, String> {
    let number = typed.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "expected a number above 0".to_owned())
}
