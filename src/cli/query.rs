//! `dupflow query`: the documents of a corpus that are similar to one text, best first.
//!
//! Best by what the pipeline would report: the exact similarity where it verifies exactly, otherwise the estimate; documents of equal
//! similarity by their ids. Every document is sketched and compared, whatever blocks it is in: the answer has the filter's errors and the estimate's, but none
//! of blocking.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use super::examine::Examiner;
use super::problems::Problems;
use super::{PipelineArgs, ReportFormat, compare, corpus};
use crate::doc::DocId;
use crate::source::Input;

/// What `query` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// Feed files, folders, or "-" for standard input, as for `replay`; they are held in memory. More may follow, before the
    /// text.
    #[arg(long, value_name = "INPUT", required = true)]
    pub corpus: Vec<PathBuf>,

    /// List the N most similar documents [default: all at or above the pipeline's threshold, inclusive].
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    /// How the answer is written; as JSON, an object on a line for each document.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ReportFormat,

    /// A file with the text, or "-" for standard input; it comes last.
    #[arg(value_name = "TEXTFILE", required = true)]
    pub text: Vec<PathBuf>,
}

/// A document, as similar as it is by what the pipeline measures.
#[derive(Debug, PartialEq, Serialize)]
struct Found {
    id: DocId,
    /// What the pipeline would report of a pair: the exact one where it verifies exactly, otherwise the estimate.
    similarity: f64,
    /// By the sketches, within 0 and 1.
    estimate: f64,
    /// By the texts.
    exact: f64,
    /// Whether the filter would call it a pair.
    accepted: bool,
}

/// Prints the answer.
///
/// # Errors
/// Everything that is wrong with the pipeline, and inputs that cannot be read.
pub(super) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    let plan = problems.take(args.pipeline.load());
    // One option cannot be told where its list ends: what stands before the last is corpus too.
    let (file, more) = args.text.split_last().expect("one at least is required");
    let text = problems.take(compare::read(file));
    let inputs: Vec<_> = args.corpus.iter().chain(more).cloned().collect();
    let inputs = problems.take(Input::resolve(&inputs));
    let ((mut plan, text), inputs) = problems.settle(plan.zip(text).zip(inputs))?;
    let alive = corpus::read(inputs, &mut plan, |_, _| {})?;
    let mut examiner = Examiner::new(&plan);
    let asked = examiner.examine(&text);
    anyhow::ensure!(!asked.tokens.is_empty(), "\"{}\" has no token to look for", file.display());
    anyhow::ensure!(asked.sketched.is_some(), "\"{}\" has no shingle of any weight", file.display());
    let mut found: Vec<Found> = Vec::new();
    for (id, alive_text) in alive {
        let other = examiner.examine(&alive_text);
        let (Some(a), Some(b)) = (&asked.sketched, &other.sketched) else { continue };
        let compared = examiner.compare(a, b);
        let accepted = a.id == b.id || compared.verdict.accepted.is_some();
        let exact = examiner.exact(&asked, &other);
        let similarity = examiner.reported(exact, &compared);
        found.push(Found { id, similarity, estimate: compared.estimate, exact, accepted });
    }
    found.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then_with(|| a.id.cmp(&b.id)));
    match args.top {
        Some(top) => found.truncate(top),
        // What is accepted is at the threshold, whatever rounding makes of it.
        None => found.retain(|document| document.accepted || document.similarity >= plan.threshold),
    }
    super::print(&written(&found, args.format)?)?;
    Ok(ExitCode::SUCCESS)
}

fn written(found: &[Found], format: ReportFormat) -> anyhow::Result<String> {
    let mut out = String::new();
    match format {
        ReportFormat::Json => {
            for document in found {
                out += &serde_json::to_string(document)?;
                out.push('\n');
            }
        }
        ReportFormat::Text => {
            let _ = writeln!(out, "estimate   exact  id");
            for Found { id, estimate, exact, accepted, .. } in found {
                let note = if *accepted { "" } else { "  (rejected by the filter)" };
                let _ = writeln!(out, "{estimate:>8.4}  {exact:>6.4}  {id}{note}");
            }
        }
    }
    Ok(out)
}
