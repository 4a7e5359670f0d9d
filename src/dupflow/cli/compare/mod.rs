//! `dupflow compare`: compares two texts as the pipeline does, and with `--all` by every measure and every
//! sketch.
//!
//! The texts are two files, or two documents of a corpus (`--corpus`). With `--html` the comparison is also
//! written as a page that needs nothing but itself.

mod corpus;
pub(super) mod html;
mod measures;
mod page;
mod passages;
mod report;
mod sketches;
mod subject;
mod texts;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use super::PipelineArgs;
use super::arguments::inputs::LayoutArgs;
use super::arguments::problems::Problems;
use super::arguments::verbosity;
use super::arguments::written;
use super::rule_fields::RuleFields;
use crate::config::Plan;
use dupflow_connectors::formats::{InputLayout, MAX_RECORD_BYTES, text_of_file};
use dupflow_connectors::inputs::Input;
use dupflow_core::time::UnixTime;
#[cfg(feature = "lab")]
pub(super) use passages::{changes_direction, passages_of, put_text, shortened};
use subject::Subject;
pub use texts::{Figures, TextComparison};

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    dupflow compare a.txt b.txt                      are they a pair, and why\n  \
    dupflow compare --corpus feed.jsonl doc-1 doc-2  the same of two documents\n  \
    dupflow compare a.txt b.txt --html page.html     as a page, with what they share")]
pub struct Args {
    /// The pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// A file with the first text, or "-"; with --corpus, its id.
    ///
    /// "-" is standard input.
    #[arg(value_name = "A")]
    pub a: PathBuf,

    /// A file with the second text, or "-"; with --corpus, its id.
    ///
    /// "-" is standard input.
    #[arg(value_name = "B")]
    pub b: PathBuf,

    /// Find A and B in this input, by their ids.
    ///
    /// Their last texts are compared. May be given several times: inputs are read in order, as by "replay".
    #[arg(long, value_name = "INPUT")]
    pub corpus: Vec<PathBuf>,

    /// Leave out events after this time, which is still included.
    ///
    /// In unix seconds, or a date such as
    /// 2026-11-02T12:00:00Z. Events without a time count.
    #[arg(long, value_name = "TIME", value_parser = super::audit::until, requires = "corpus")]
    pub until: Option<UnixTime>,

    /// Print every other measure too, and every sketch beside its exact value.
    #[arg(long)]
    pub all: bool,

    /// Write the comparison to this file as a page.
    ///
    /// It has both texts with what they share, the measures, the evidence and where they are from, and needs
    /// no network and no script.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Format and fields of the corpus.
    #[command(flatten)]
    pub layout: LayoutArgs,
}

/// Prints the comparison, and writes the page if one is asked for.
///
/// # Errors
/// All problems of the pipeline; texts and inputs that cannot be read; documents that are not in the corpus;
/// a page that cannot be written.
pub(super) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    let plan = problems.take(args.pipeline.load_of_documents());
    if args.corpus.is_empty() && args.layout.layout() != InputLayout::default() {
        problems.note("options for records have an effect with --corpus only");
    }
    args.layout.columns.check(&mut problems);
    let fields = args.layout.columns.fields(&mut problems);
    let inputs = problems.take(Input::resolve(&args.corpus, args.layout.layout()));
    let written: Vec<_> = args.html.iter().map(|path| ("--html", &**path, &[][..])).collect();
    written::probe(written.iter().map(|(option, path, _)| (*option, *path)), &mut problems);
    let read: Vec<_> = args.pipeline.file().into_iter().chain(texts(args)).collect();
    written::check(&written, &read, inputs.as_deref().unwrap_or_default(), &mut problems);
    let subject = if args.corpus.is_empty() {
        files(args, plan, problems)?
    } else {
        let fields = RuleFields::new(plan.as_ref(), &fields, &mut problems);
        documents(args, plan.zip(inputs), &fields, problems)?
    };
    let (report, page) =
        (report::report(&subject, args.all), args.html.as_ref().map(|path| (path, page::page(&subject))));
    super::print(&(coloured(report) + &passages::text(&subject)))?;
    if let Some((path, page)) = page {
        std::fs::write(path, page).with_context(|| format!("the page {path:?}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The report, on a terminal with its first line in green for a pair and in red for none.
fn coloured(report: String) -> String {
    if !(std::io::stdout().is_terminal() && verbosity::has_colours()) {
        return report;
    }
    let (answer, rest) = report.split_once('\n').unwrap_or((&report, ""));
    let colour = if answer.contains(": a pair") { 32 } else { 31 };
    format!("\x1b[1;{colour}m{answer}\x1b[0m\n{rest}")
}

/// The files that hold the texts: a page must not overwrite them.
fn texts(args: &Args) -> Vec<written::ReadFile<'static>> {
    let texts = [("the first text", &args.a), ("the second text", &args.b)].into_iter();
    texts.filter(|_| args.corpus.is_empty()).map(|(what, path)| (what, path.clone())).collect()
}

/// The texts of two files.
fn files(args: &Args, plan: Option<Plan>, mut problems: Problems) -> anyhow::Result<Subject> {
    let (a, b) = if args.a == Path::new("-") && args.b == Path::new("-") {
        problems.note("only one of the two texts can be \"-\"");
        (None, None)
    } else {
        (problems.take(read(&args.a)), problems.take(read(&args.b)))
    };
    if let Some(given) = plan.as_ref().and_then(|plan| plan.scheme.text.given) {
        for (path, text) in [(&args.a, &a), (&args.b, &b)] {
            if text.as_ref().is_some_and(|text| !given.reads(text)) {
                problems
                    .note(format_args!("{path:?} has no features as text.features = \"given\" reads them"));
            }
        }
    }
    let (plan, (a, b)) = problems.settle(plan.zip(a.zip(b)))?;
    let name = |path: &Path| path.to_string_lossy().into_owned();
    Ok(Subject::of_texts(plan, [(name(&args.a), a), (name(&args.b), b)]))
}

/// The last texts of two documents of a corpus.
fn documents(
    args: &Args,
    given: Option<(Plan, Vec<Input>)>,
    fields: &RuleFields,
    mut problems: Problems,
) -> anyhow::Result<Subject> {
    let (a, b) = {
        let id = |typed| corpus::id(typed, &args.layout.layout());
        (problems.take(id(&args.a)), problems.take(id(&args.b)))
    };
    let ((plan, inputs), (a, b)) = problems.settle(given.zip(a.zip(b)))?;
    corpus::find(plan, inputs, [&a, &b], args.until, fields)
}

/// Message for a text above the limit for documents.
const TOO_LONG: &str = "it is longer than 64 MiB, which is the most that a document may have";

/// Reads a text without fields, up to the limit for documents.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    read_up_to(path, MAX_RECORD_BYTES)
}

/// Reads a text without fields, of at most `most` bytes.
pub(super) fn read_up_to(path: &Path, most: usize) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let fits = |read| if read > most { Err(invalid(TOO_LONG)) } else { Ok(read) };
    let most = (most as u64).saturating_add(1);
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    let no_text = || invalid("it is no UTF-8");
    let text = read.and_then(fits).and_then(|_| text_of_file(path, &bytes).ok_or_else(no_text));
    let text = text.with_context(|| format!("cannot read \"{}\"", path.display()))?;
    Ok(text.into_owned())
}

fn invalid(why: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, why)
}
