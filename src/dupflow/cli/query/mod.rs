//! `dupflow query`: the documents of a corpus that texts would be paired with, best first.
//!
//! The corpus is read as `replay` reads it, and at its end queries ask: so the answer is what the pipeline
//! finds, blocking included, and nothing is compared that shares no block with a text. Under live weights the
//! corpus is one epoch, weighed by its own frequencies. Or a run that is under way is asked (`--url`, see
//! `ask`), by its own pipeline. One text or many, here or there: questions are read first, answered in their
//! order, and written as they are answered.

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

use self::questions::Question;
use self::written::Told;
use super::arguments;
use super::inputs::ColumnArgs;
use super::problems::{Problems, list};
use super::summary::count;
use super::voice::Voice;
use super::{PipelineArgs, ReportFormat};
use crate::config::Plan;
use crate::pipeline::{self, Continuity, Demands, Job, Summary};
use dupflow_connectors::inputs::{Files, Input, Staying};
use dupflow_connectors::intake::{BadRecords, EpochRule};
use dupflow_core::run::query::{Answer, Query, Refusal};
use dupflow_core::text;
use dupflow_core::time::SystemClock;

/// Questions that are under way at a time: enough for the workers never to wait.
const AT_ONCE: usize = 256;

/// What `query` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// Feed files, folders, or "-" for standard input, as for `replay`. More may follow, before the text.
    #[arg(long, value_name = "INPUT", required_unless_present = "url", conflicts_with = "url")]
    pub corpus: Vec<PathBuf>,

    /// How the corpus is understood.
    #[command(flatten)]
    pub columns: ColumnArgs,

    /// Ask the run whose monitor is there, as in http://127.0.0.1:9600, by its own pipeline.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// A file with the token of that run.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub token_file: Option<PathBuf>,

    /// In place of a text: a file, or "-" for standard input, with a question on each line, as `POST
    /// /similar` takes them: {"text":"…","top":20,"id":"…"}; top and id may be absent.
    #[arg(long, value_name = "FILE")]
    pub lines: Option<PathBuf>,

    /// List the N most similar documents at most, for each text [default: all that it would be paired with].
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    /// How answers are written; as JSON, an object on a line for each document, with what was asked about.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ReportFormat,

    /// Worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = arguments::workers)]
    pub workers: Option<NonZeroUsize>,

    /// A file with the text, or "-" for standard input; it comes last. With --url several are as many texts.
    #[arg(value_name = "TEXTFILE", required_unless_present = "lines")]
    pub texts: Vec<PathBuf>,
}

/// What is written and told of the answers so far.
struct Answers<'a> {
    args: &'a Args,
    several: bool,
    /// Questions without an answer, and why.
    failed: Vec<String>,
    answered: usize,
    epoch: u64,
    more: usize,
}

impl<'a> Answers<'a> {
    fn new(args: &'a Args, questions: &[Question]) -> Self {
        let several = questions.len() > 1 || args.lines.is_some();
        Self { args, several, failed: Vec::new(), answered: 0, epoch: 0, more: 0 }
    }

    /// Writes the next answer.
    fn note(&mut self, question: &Question, answer: Result<Told, String>) -> anyhow::Result<()> {
        let answer = answer.and_then(|told| match told.empty {
            true => Err("has no token to look for, or no shingle of any weight".to_owned()),
            false => Ok(told),
        });
        match answer {
            Ok(told) => {
                self.answered += 1;
                self.epoch = told.epoch;
                self.more += told.more;
                super::print(&told.written(&question.name, self.several, self.args.format)?)?;
            }
            Err(why) => self.failed.push(format!("\"{}\" {why}", question.name)),
        }
        Ok(())
    }

    /// "answered", for how many if there are several.
    fn heading(&self) -> String {
        let texts =
            if self.several { format!("{}, ", count(self.answered as u64, "text")) } else { String::new() };
        format!("answered    {texts}at the end of epoch {}", self.epoch)
    }

    /// How many documents were left out, if any.
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

/// Prints the answers, and on standard error what they are of.
///
/// # Errors
/// Everything that is wrong with the pipeline, and inputs that cannot be read; texts that have nothing to
/// look for, after the others have been answered.
pub(super) fn run(args: &Args, mut problems: Problems, voice: Voice) -> anyhow::Result<ExitCode> {
    if let Some(url) = &args.url {
        return ask_run(url, args, problems, voice);
    }
    let plan = problems.take(args.pipeline.load());
    // One option cannot be told where its list ends: what stands before the text is corpus too.
    let (more, texts) = args.texts.split_at(args.texts.len() - usize::from(args.lines.is_none()));
    let questions = questions::read(texts, args.lines.as_deref(), &mut problems);
    let inputs: Vec<_> = args.corpus.iter().chain(more).cloned().collect();
    let inputs = problems.take(Input::resolve(&inputs, args.columns.layout()));
    let ((plan, questions), inputs) = problems.settle(plan.zip(questions).zip(inputs))?;
    let mut answers = Answers::new(args, &questions);
    let has_token = |question: &Question| !text::tokens(&question.text, &plan.scheme.text).is_empty();
    let (asked, blank): (Vec<_>, Vec<_>) = questions.into_iter().partition(has_token);
    answers
        .failed
        .extend(blank.iter().map(|question| format!("\"{}\" has no token to look for", question.name)));
    if !asked.is_empty() {
        let summary = ask_corpus(&plan, inputs, args.workers, &asked, &mut answers)?;
        if answers.answered > 0 {
            voice.tell(&told(&answers, &summary))?;
        }
    }
    answers.end()
}

/// Asks a run that is under way.
fn ask_run(url: &str, args: &Args, mut problems: Problems, voice: Voice) -> anyhow::Result<ExitCode> {
    let questions = questions::read(&args.texts, args.lines.as_deref(), &mut problems);
    let questions = problems.settle(questions)?;
    let token = ask::token(args.token_file.as_deref())?;
    let mut answers = Answers::new(args, &questions);
    ask::ask(url, token.as_ref(), &questions, args.top, |question, answer| {
        answers.note(question, answer.map(Told::there))
    })?;
    if answers.answered > 0 {
        voice.tell(&format!("{}\n{}", answers.heading(), answers.left_out()))?;
    }
    answers.end()
}

/// Reads a corpus, and asks about what it leaves.
fn ask_corpus(
    plan: &Plan,
    inputs: Vec<Input>,
    workers: Option<NonZeroUsize>,
    questions: &[Question],
    answers: &mut Answers<'_>,
) -> anyhow::Result<Summary> {
    let stages = pipeline::stages(plan, false);
    let (queries, (tell, told)) = (Arc::clone(&stages.observers.queries), channel());
    let epochs = if plan.scheme.live().is_some() { EpochRule::All } else { EpochRule::default() };
    let files = Files::new(inputs, epochs, plan.scheme.text.field_names());
    // Nobody hears it if the run has failed meanwhile.
    let source = Staying::new(Box::new(files), move |last| tell.send(last).unwrap_or(()));
    let cores = || thread::available_parallelism().ok();
    let job = Job {
        stages,
        source: Box::new(source),
        first_epoch: 1,
        bad: Arc::new(BadRecords::new(plan.on_error, None)),
        sink: pipeline::nowhere(),
        demands: Demands::default(),
        publication: None,
        continuity: Continuity::new(&plan.description()),
        workers: workers.or_else(cores).map_or(1, NonZeroUsize::get),
        most_records: None,
        together: None,
        status: Arc::default(),
        clock: Arc::new(SystemClock::start()),
    };
    let running = pipeline::start(job)?;
    // Nothing comes if it fails before it has read all.
    let most = answers.args.top;
    let asked = told.recv().map(|last| {
        let mut under_way: VecDeque<(&Question, Receiver<Result<Answer, Refusal>>)> = VecDeque::new();
        let mut note = |(question, replied): (&Question, Receiver<Result<Answer, Refusal>>)| {
            let answer = replied.recv().context("the run has ended before it could be asked")??;
            answers.note(question, Ok(Told::here(plan, &answer)))
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
    super::problems::met(&summary.unmet)?;
    Ok(summary)
}

/// What the answers are of.
fn told(answers: &Answers<'_>, summary: &Summary) -> String {
    let mut told = format!(
        "{}: {} alive, {}, in {:.2} s\n",
        answers.heading(),
        count(summary.documents, "document"),
        count(summary.sketches, "distinct sketch"),
        summary.seconds
    );
    let bad: u64 = summary.bad_records.values().sum();
    if bad > 0 {
        let _ = writeln!(told, "bad         {} of no event", count(bad, "record"));
    }
    told + &answers.left_out()
}
