//! `dupflow query`: the documents of a corpus that a text would be paired with, best first.
//!
//! The corpus is read as `replay` reads it, and at its end a visitor asks: so the answer is what the pipeline finds, blocking included, and
//! nothing is compared that shares no block with the text. Under live weights the corpus is one epoch, weighed by its own frequencies.
//! Or a run that is under way is asked (`--url`, see `ask`), by its own pipeline.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use anyhow::Context;
use indicatif::HumanCount;
use serde::Serialize;

use super::arguments::at_least_one;
use super::problems::Problems;
use super::summary::count;
use super::{PipelineArgs, ReportFormat, ask, compare};
use crate::config::{LogFormat, Plan};
use crate::dataflow::Stages;
use crate::pair::Evidence;
use crate::pipeline::{self, Continuity, Job, Summary};
use crate::source::{BadRecords, EpochRule, Files, Input, Share, Speed, Staying};
use crate::text;
use crate::time::SystemClock;
use crate::visit::{Answer, Question, Similar};

/// What `query` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// Feed files, folders, or "-" for standard input, as for `replay`. More may follow, before the text.
    #[arg(long, value_name = "INPUT", required_unless_present = "url", conflicts_with = "url")]
    pub corpus: Vec<PathBuf>,

    /// Ask the run whose monitor is there, as in http://127.0.0.1:9600, by its own pipeline.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// A file with the token of that run.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub token_file: Option<PathBuf>,

    /// List the N most similar documents at most [default: all that the text would be paired with].
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    /// How the answer is written; as JSON, an object on a line for each document.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ReportFormat,

    /// Worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub workers: Option<NonZeroUsize>,

    /// A file with the text, or "-" for standard input; it comes last.
    #[arg(value_name = "TEXTFILE", required = true)]
    pub text: Vec<PathBuf>,
}

/// Prints the answer, and on standard error what it is of.
///
/// # Errors
/// Everything that is wrong with the pipeline, and inputs that cannot be read; a text that has nothing to look for.
pub(super) fn run(args: &Args, mut problems: Problems, log: LogFormat) -> anyhow::Result<ExitCode> {
    if let Some(url) = &args.url {
        return ask_run(url, args, problems, log);
    }
    let plan = problems.take(args.pipeline.load());
    // One option cannot be told where its list ends: what stands before the last is corpus too.
    let (file, more) = args.text.split_last().expect("one at least is required");
    let text = problems.take(compare::read(file));
    let inputs: Vec<_> = args.corpus.iter().chain(more).cloned().collect();
    let inputs = problems.take(Input::resolve(&inputs));
    let ((plan, text), inputs) = problems.settle(plan.zip(text).zip(inputs))?;
    anyhow::ensure!(
        !text::tokens(&text, &plan.scheme.text).is_empty(),
        "{} has no token to look for",
        quoted(file)
    );
    let question = Question::Text { text, top: args.top.unwrap_or(usize::MAX) };
    let (answer, summary) = ask_corpus(&plan, inputs, args.workers, question)?;
    anyhow::ensure!(answer.sketched, "{} has no shingle of any weight", quoted(file));
    let lines = answer.similar.iter().map(|similar| Line::of(&plan, similar));
    super::print(&written(lines, args.format)?)?;
    super::tell(log, &told(&answer, &summary))?;
    Ok(ExitCode::SUCCESS)
}

/// Asks a run that is under way.
fn ask_run(url: &str, args: &Args, mut problems: Problems, log: LogFormat) -> anyhow::Result<ExitCode> {
    if args.text.len() > 1 {
        problems.note("--url: one text is asked about at a time");
    }
    let file = &args.text[0];
    let text = problems.take(compare::read(file));
    let text = problems.settle(text)?;
    let token = ask::token(args.token_file.as_deref())?;
    let answer = ask::ask(url, token.as_ref(), &text, args.top)?;
    anyhow::ensure!(!answer.empty, "{} has no token to look for, or no shingle of any weight", quoted(file));
    super::print(&written(answer.documents.iter().map(Line::told), args.format)?)?;
    let mut said = format!("answered    at the end of epoch {}\n", answer.epoch);
    if answer.more > 0 {
        let _ = writeln!(said, "left out    {} less similar", HumanCount(answer.more as u64));
    }
    super::tell(log, &said)?;
    Ok(ExitCode::SUCCESS)
}

fn quoted(file: &Path) -> String {
    format!("\"{}\"", file.display())
}

/// Reads a corpus, and asks about what it leaves.
fn ask_corpus(
    plan: &Plan,
    inputs: Vec<Input>,
    workers: Option<NonZeroUsize>,
    question: Question,
) -> anyhow::Result<(Answer, Summary)> {
    let stages = Stages::of(plan, false);
    let (visitors, (reply, replied)) = (Arc::clone(&stages.visitors), channel());
    let epochs = if plan.scheme.live().is_some() { EpochRule::All } else { EpochRule::default() };
    let files = Files { inputs, epochs, speed: Speed::Max, share: Share::ALL, places: Arc::default() };
    let source = Staying::new(Box::new(files), move |last| {
        // Nobody hears it if the run has failed meanwhile.
        visitors.ask_after(last, question, move |answer| reply.send(answer).unwrap_or(()));
    });
    let cores = || thread::available_parallelism().ok();
    let job = Job {
        stages,
        source: Box::new(source),
        first_epoch: 1,
        bad: Arc::new(BadRecords::new(plan.on_error, None)),
        sink: pipeline::nowhere(),
        continuity: Continuity::new(&plan.description()),
        workers: workers.or_else(cores).map_or(1, NonZeroUsize::get),
        most_records: None,
        together: None,
        status: Arc::default(),
        clock: Arc::new(SystemClock::start()),
    };
    let running = pipeline::start(job)?;
    // Nothing comes if it fails before it asks.
    let answer = replied.recv();
    running.stopper().stop();
    let summary = running.join()?;
    let answer = answer.context("the run has ended before it could be asked")??;
    Ok((answer, summary))
}

/// A document that was found, as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    similarity: f64,
    blocks: u16,
    look: u16,
    components: u32,
    standard_error: f64,
}

impl<'a> Line<'a> {
    /// Of an answer of a run in this process.
    fn of(plan: &Plan, similar: &'a Similar) -> Self {
        let Evidence { blocks, look, components } = similar.evidence;
        Self {
            id: similar.id.as_str(),
            similarity: similar.similarity.get(),
            blocks,
            look,
            components,
            standard_error: plan.scheme.standard_error(similar.similarity, similar.evidence),
        }
    }

    /// Of an answer of another one.
    fn told(near: &'a ask::Near) -> Self {
        let ask::Weighed { blocks, look, components, standard_error } = near.evidence;
        Self { id: &near.id, similarity: near.similarity, blocks, look, components, standard_error }
    }
}

fn written<'a>(lines: impl Iterator<Item = Line<'a>>, format: ReportFormat) -> anyhow::Result<String> {
    let mut out = String::new();
    if let ReportFormat::Text = format {
        out.push_str("similarity  standard error  blocks  look  components  id\n");
    }
    for line in lines {
        let Line { id, similarity, blocks, look, components, standard_error } = line;
        match format {
            ReportFormat::Json => {
                out += &serde_json::to_string(&line)?;
                out.push('\n');
            }
            // Nothing has been compared: they have the same sketch.
            ReportFormat::Text if look == 0 => {
                let _ = writeln!(
                    out,
                    "{similarity:>10.4}  {:>14}  {:>6}  {:>4}  {:>10}  {id}",
                    "-", "-", "-", "-"
                );
            }
            ReportFormat::Text => {
                let _ = writeln!(
                    out,
                    "{similarity:>10.4}  {standard_error:>14.4}  {blocks:>6}  {look:>4}  {components:>10}  {id}"
                );
            }
        }
    }
    Ok(out)
}

/// What the answer is of.
fn told(answer: &Answer, summary: &Summary) -> String {
    let mut told = format!(
        "answered    at the end of epoch {}: {} alive, {}, in {:.2} s\n",
        answer.epoch,
        count(summary.documents, "document"),
        count(summary.sketches, "distinct sketch"),
        summary.seconds
    );
    let bad: u64 = summary.bad_records.values().sum();
    if bad > 0 {
        let _ = writeln!(told, "bad         {} of no event", count(bad, "record"));
    }
    if answer.more > 0 {
        let _ = writeln!(told, "left out    {} less similar", HumanCount(answer.more as u64));
    }
    told
}
