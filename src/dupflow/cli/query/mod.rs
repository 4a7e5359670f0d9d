//! `dupflow query`: finds the documents of a corpus that given texts would be paired with, best first.
//!
//! Without `--url` the corpus is read as `replay` reads it, and queries run at its end. So the answer is what
//! the pipeline finds, blocking included: nothing is compared that shares no block with a text. Under live
//! weights the corpus is one epoch, weighted by its own document frequencies.
//!
//! With `--url` a running process answers, with its own pipeline (see `ask`).
//!
//! All queries are read first; answers are written in their order, each as soon as it is there.

mod ask;
mod questions;
mod written;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anyhow::{Context, bail};
use indicatif::HumanCount;

use self::questions::UserQuery;
use self::written::QueryAnswer;
use super::arguments;
use super::arguments::inputs::ColumnArgs;
use super::arguments::problems::{Problems, list};
use super::arguments::verbosity::Verbosity;
use super::{PipelineArgs, ReportFormat};
use crate::config::Plan;
use crate::pipeline::{self, RunJob, Summary};
use crate::plural::count;
use dupflow_connectors::inputs::{Files, Input, Staying};
use dupflow_connectors::intake::EpochRule;
use dupflow_core::text;
use dupflow_run::query::{Answer, Query, Refusal};

/// Most queries in progress at a time: enough to keep the workers busy.
const AT_ONCE: usize = 256;

/// Arguments of `query`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    dupflow query --corpus feed.jsonl page.txt             documents that repeat this text\n  \
    dupflow query --url http://127.0.0.1:9600 page.txt     the same of a live run\n  \
    cat page.txt | dupflow query --corpus feed.jsonl -     from standard input")]
pub struct Args {
    /// The pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// The documents: files, folders, or "-", as for "replay".
    ///
    /// May be given several times.
    #[arg(long, value_name = "INPUT", required_unless_present = "url", conflicts_with = "url")]
    pub corpus: Vec<PathBuf>,

    /// Format and fields of the corpus.
    #[command(flatten)]
    pub columns: ColumnArgs,

    /// Query a live run by the address of its page.
    ///
    /// As in http://127.0.0.1:9600. The pipeline is its own.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// A file with the access token of that run.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub token_file: Option<PathBuf>,

    /// Instead of a text: a file with one query per line.
    ///
    /// "-" is standard input. A line has the format of `POST /similar`: {"text":"…","top":20,"id":"…"}; top
    /// and id are optional.
    #[arg(long, value_name = "FILE")]
    pub lines: Option<PathBuf>,

    /// List at most the N most similar documents [default: all].
    ///
    /// All are those that the text would be paired with.
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    /// The format of the answers: text or json.
    ///
    /// json prints one object per document and line, with the name of its query.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ReportFormat,

    /// Worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = arguments::workers)]
    pub workers: Option<NonZeroUsize>,

    /// A file with the text, or "-"; the last argument.
    ///
    /// "-" is standard input. With --url there may be several.
    #[arg(value_name = "TEXTFILE", required_unless_present = "lines")]
    pub texts: Vec<PathBuf>,
}

/// Prints the answers and counts them.
struct AnswerPrinter<'a> {
    args: &'a Args,
    several: bool,
    /// Queries without an answer, and the reasons.
    failed: Vec<String>,
    answered: usize,
    epoch: u64,
    more: usize,
}

impl<'a> AnswerPrinter<'a> {
    fn new(args: &'a Args, questions: &[UserQuery]) -> Self {
        let several = questions.len() > 1 || args.lines.is_some();
        Self { args, several, failed: Vec::new(), answered: 0, epoch: 0, more: 0 }
    }

    /// Prints the next answer.
    fn note(&mut self, question: &UserQuery, answer: Result<QueryAnswer, String>) -> anyhow::Result<()> {
        let answer = answer.and_then(|answer| match answer.empty {
            true => Err("has no token to look for, or no shingle of any weight".to_owned()),
            false => Ok(answer),
        });
        match answer {
            Ok(answer) => {
                self.answered += 1;
                self.epoch = answer.epoch;
                self.more += answer.more;
                super::print(&answer.written(&question.name, self.several, self.args.format)?)?;
            }
            Err(why) => self.failed.push(format!("\"{}\" {why}", question.name)),
        }
        Ok(())
    }

    /// "answered", with the number of texts if there are several.
    fn heading(&self) -> String {
        let texts =
            if self.several { format!("{}, ", count(self.answered as u64, "text")) } else { String::new() };
        format!("answered    {texts}at the end of epoch {}", self.epoch)
    }

    /// The line on documents that were left out, if any.
    fn left_out(&self) -> String {
        let more = self.more as u64;
        if more > 0 { format!("left out    {} less similar\n", HumanCount(more)) } else { String::new() }
    }

    /// # Errors
    /// If a question has no answer.
    fn end(self) -> anyhow::Result<ExitCode> {
        match &self.failed[..] {
            [] => Ok(ExitCode::SUCCESS),
            [only] => bail!("{only}"),
            failed => bail!("{} texts have no answer{}", failed.len(), list(failed)),
        }
    }
}

/// Prints the answers on standard output, and a summary on standard error.
///
/// # Errors
/// All problems of the pipeline; inputs that cannot be read; texts without a token, after all others have
/// been answered.
pub(super) fn run(args: &Args, mut problems: Problems, verbosity: Verbosity) -> anyhow::Result<ExitCode> {
    if let Some(url) = &args.url {
        return ask_run(url, args, problems, verbosity);
    }
    let plan = problems.take(args.pipeline.load_without_reference());
    // clap cannot see where the list of `--corpus` ends: inputs before the text are part of the corpus.
    let (more, texts) = args.texts.split_at(args.texts.len() - usize::from(args.lines.is_none()));
    let questions = questions::read(texts, args.lines.as_deref(), &mut problems);
    let inputs: Vec<_> = args.corpus.iter().chain(more).cloned().collect();
    let inputs = problems.take(Input::resolve(&inputs, args.columns.layout()));
    let ((plan, questions), inputs) = problems.settle(plan.zip(questions).zip(inputs))?;
    let mut answers = AnswerPrinter::new(args, &questions);
    let is_read = |text: &str| plan.scheme.text.given.is_none_or(|given| given.reads(text));
    let has_token = |question: &UserQuery| {
        is_read(&question.text) && !text::tokens(&question.text, &plan.scheme.text).is_empty()
    };
    let (asked, blank): (Vec<_>, Vec<_>) = questions.into_iter().partition(has_token);
    let lacks = match plan.scheme.text.given {
        None => "has no token to look for",
        Some(_) => "has no features to look for, or not as text.features = \"given\" reads them",
    };
    answers.failed.extend(blank.iter().map(|question| format!("\"{}\" {lacks}", question.name)));
    if !asked.is_empty() {
        let summary = ask_corpus(&plan, inputs, args.workers, &asked, &mut answers)?;
        if answers.answered > 0 {
            verbosity.print(&summary_text(&answers, &summary, !plan.scheme.pairs.is_empty()))?;
        }
    }
    answers.end()
}

/// Queries a running process.
fn ask_run(url: &str, args: &Args, mut problems: Problems, verbosity: Verbosity) -> anyhow::Result<ExitCode> {
    let questions = questions::read(&args.texts, args.lines.as_deref(), &mut problems);
    let questions = problems.settle(questions)?;
    let token = ask::token(args.token_file.as_deref())?;
    let mut answers = AnswerPrinter::new(args, &questions);
    ask::ask(url, token.as_ref(), &questions, args.top, |question, answer| {
        answers.note(question, answer.map(QueryAnswer::there))
    })?;
    if answers.answered > 0 {
        verbosity.print(&format!("{}\n{}", answers.heading(), answers.left_out()))?;
    }
    answers.end()
}

/// Reads a corpus, and queries its live documents.
fn ask_corpus(
    plan: &Plan,
    inputs: Vec<Input>,
    workers: Option<NonZeroUsize>,
    questions: &[UserQuery],
    answers: &mut AnswerPrinter<'_>,
) -> anyhow::Result<Summary> {
    let (sender, receiver) = channel();
    let epochs = if plan.scheme.live().is_some() { EpochRule::All } else { EpochRule::default() };
    let files = Files::new(inputs, epochs, plan.scheme.text.columns());
    // There is no receiver if the run has failed meanwhile.
    let source = Staying::new(Box::new(files), move |last| sender.send(last).unwrap_or(()));
    let cores = || thread::available_parallelism().ok();
    let workers = workers.or_else(cores).map_or(1, NonZeroUsize::get);
    let job = RunJob::new(plan, workers, Box::new(source), pipeline::nowhere());
    let queries = Arc::clone(&job.stages.observers.queries);
    let running = pipeline::start(job)?;
    // If the run fails before it has read everything, the sender is dropped.
    let most = answers.args.top;
    let asked = receiver.recv().map(|last| {
        let mut under_way: VecDeque<(&UserQuery, Receiver<Result<Answer, Refusal>>)> = VecDeque::new();
        let mut note = |(question, replied): (&UserQuery, Receiver<Result<Answer, Refusal>>)| {
            let answer = replied.recv().context("the run has ended before it could be asked")??;
            answers.note(question, Ok(QueryAnswer::here(plan, &answer)))
        };
        for question in questions {
            if under_way.len() == AT_ONCE {
                under_way.pop_front().map_or(Ok(()), &mut note)?;
            }
            let (reply, replied) = channel();
            let top = question.top.or(most).unwrap_or(usize::MAX);
            let ask = Query::Text { text: question.text.clone(), top };
            queries.ask_after(last, ask, move |answer| reply.send(answer).unwrap_or(()));
            under_way.push_back((question, replied));
        }
        under_way.into_iter().try_for_each(note)
    });
    running.stopper().stop();
    let summary = running.join()?;
    asked.context("the run has ended before it could be asked")??;
    super::arguments::problems::check_demands(&summary.unmet)?;
    Ok(summary)
}

/// The summary for standard error.
fn summary_text(answers: &AnswerPrinter<'_>, summary: &Summary, is_ruled: bool) -> String {
    let mut text = format!(
        "{}: {} alive, {}, in {:.2} s\n",
        answers.heading(),
        count(summary.documents, "document"),
        count(summary.sketches, "distinct sketch"),
        summary.seconds
    );
    let bad: u64 = summary.bad_records.values().sum();
    if bad > 0 {
        let _ = writeln!(text, "bad         {} of no event", count(bad, "record"));
    }
    if is_ruled {
        text.push_str("note        pairs.where is not applied: a text that is asked has no fields\n");
    }
    text + &answers.left_out()
}
