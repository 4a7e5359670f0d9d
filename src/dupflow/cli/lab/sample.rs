//! The sample of `plan`: its arguments, and what the plan does to it.

use std::path::PathBuf;

use anyhow::ensure;

use crate::cli::arguments::inputs::ColumnArgs;
use crate::cli::arguments::problems::Problems;
use crate::config::Plan;
use crate::forecast::sample::{self, SampleReport};
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::inputs::Input;
use dupflow_lab::truth;

/// A sample of the texts that a plan is for.
#[derive(Debug, clap::Args)]
pub struct SampleArgs {
    /// Measure the plan on a sample of the texts too.
    ///
    /// A random sample of those that it is for. Shown are recall and precision with their errors, hot blocks
    /// and candidates at the number of documents. Each document is compared with each, so take at most
    /// 50,000.
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    pub sample: Vec<PathBuf>,

    /// The fields of its records.
    #[command(flatten)]
    pub columns: ColumnArgs,
}

impl SampleArgs {
    /// The inputs, if there are any. Reports a plan that is not measured on a sample.
    pub(in crate::cli) fn inputs(&self, plan: Option<&Plan>, problems: &mut Problems) -> Option<Vec<Input>> {
        let layout = self.columns.layout();
        if self.sample.is_empty() {
            if layout != InputLayout::default() || !self.columns.fields.is_empty() {
                problems.note("--sample: expected, since other options name the fields of its records");
            }
            return None;
        }
        self.columns.check(problems);
        if !self.columns.fields.is_empty() {
            problems.note("--field: has no effect with --sample, which is not measured for pairs.where");
        }
        if let Some(what) = plan.and_then(sample::obstacle) {
            problems.note(format_args!("--sample: not measured for {what}"));
        }
        problems.take(Input::resolve(&self.sample, layout))
    }
}

/// Measures a plan on a sample.
///
/// # Errors
/// If the sample cannot be read, has fewer than two documents, or too many.
pub(in crate::cli) fn measured(
    plan: &Plan,
    inputs: Vec<Input>,
    documents: u64,
    workers: usize,
) -> anyhow::Result<SampleReport> {
    let read = truth::read(inputs, &plan.scheme.text)?;
    let (there, most) = (read.len(), sample::MOST);
    ensure!(there > 1, "--sample: {there} document(s), expected two or more");
    ensure!(there <= most, "--sample: {there} documents, more than {most}: take a random part of them");
    Ok(SampleReport::new(plan, read, documents, workers))
}
