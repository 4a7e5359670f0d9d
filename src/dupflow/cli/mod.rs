//! The command line: one file for each command, and what they share.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 done, 1 failed while
//! running, 2 wrong usage or configuration. A closed pipe at the output ends a command quietly, with 0.

mod arguments;
mod audit;
pub mod check;
pub mod compare;
pub mod completions;
mod corpus;
pub mod demo;
mod examine;
mod help;
#[cfg(feature = "lab")]
mod lab;
pub mod manual;
pub mod plan;
pub mod query;
pub mod replay;
mod rule_fields;
pub mod run;
pub mod state;
mod summary;
#[cfg(feature = "kafka")]
mod topics;
pub mod trace;
mod units;
pub mod verify;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use tracing::Dispatch;

pub use arguments::{inputs, processes};
#[cfg(feature = "lab")]
pub use lab::{calibrate, evaluate, generate};
#[cfg(feature = "kafka")]
pub use topics::{produce, record};

use arguments::problems::WrongUsage;
use arguments::verbosity::{self, VerbosityArgs};
use arguments::written;

use crate::config::{BUILT_IN, ConfigError, LogFormat, LogLevel, Plan};
use crate::forecast;
use crate::pipeline::{AssembleError, RunError, RunJob};
use dupflow_connectors::intake::SourceError;

/// Finds near-duplicate documents while the corpus changes.
///
/// A feed of upserts and deletes goes in; out comes every pair of documents that becomes near-duplicate ("+")
/// or ceases to be ("-"). The pairs at any time are those that a fresh run on the documents alive would find.
#[derive(Debug, Parser)]
#[command(name = "dupflow", color = verbosity::colours(), disable_help_flag = true)]
#[command(version, long_version = crate::program::LONG_VERSION.as_str())]
#[command(
    after_help = "Start with:  dupflow demo\n       then:  dupflow generate -o feed.jsonl  &&  dupflow \
        replay feed.jsonl\n\n\
    Exit codes:  0 done, 1 failed while running, 2 wrong usage or configuration"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Messages on standard error.
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play a small feed, explain what happens, and show it on a page; it needs no file.
    Demo(demo::Args),
    /// Read a recorded feed and write the changes of its near-duplicate pairs.
    Replay(Box<replay::Args>),
    /// Process the events of the source that a deployment file names, until the input ends or a signal stops
    /// it.
    Run(run::Args),
    /// Compare two texts: whether they are a pair, and why.
    Compare(compare::Args),
    /// Find the documents of a corpus that a text would be paired with, best first.
    Query(query::Args),
    /// Show what a pipeline will do: its parameters and the reasons, its recall, its errors, its memory.
    Plan(plan::Args),
    /// Validate a pipeline and a deployment file without running anything.
    Check(check::Args),
    /// Follow one document of a feed through every stage, with all values.
    Trace(trace::Args),
    /// Repeat the replay that made a report, and say whether the report holds.
    Verify(verify::Args),
    /// Measure what the program promises: filters, estimators, speed, and whole pipelines against the truth;
    /// as tables, plots and a page.
    #[cfg(feature = "lab")]
    Evaluate(evaluate::Args),
    /// Find the threshold that fits your corpus: judge pairs of all similarities, and see which threshold has
    /// which precision and recall.
    #[cfg(feature = "lab")]
    Calibrate(Box<calibrate::Args>),
    /// Describe or verify stored state, or compact it.
    State(state::Args),
    /// Read the topic of a deployment file into a feed, which "replay" plays again.
    #[cfg(feature = "kafka")]
    Record(record::Args),
    /// Write a recorded feed into the topic of a deployment file.
    #[cfg(feature = "kafka")]
    Produce(produce::Args),
    /// Make a feed for experiments: texts in several scripts, with copies, near-duplicates, updates and
    /// deletes.
    #[cfg(feature = "lab")]
    Generate(generate::Args),
    /// Print a script that completes the command line in a shell.
    Completions(completions::Args),
    /// Print the manual page, or write a page for each command.
    Man(manual::Args),
}

/// The pipeline arguments, shared by all commands that need a pipeline.
#[derive(Clone, Debug, clap::Args)]
pub struct PipelineArgs {
    /// A built-in pipeline, or a pipeline file [default: minhash].
    ///
    /// Built in: minhash, exact, simhash, sectional, weighted, onebit, assured, contained, decontaminate,
    /// fingerprint, paper, tour. A file has a "/" or ends in ".toml".
    #[arg(short, long, value_name = "PIPELINE", default_value = BUILT_IN[0].0, hide_default_value = true)]
    pub pipeline: String,

    /// The least similarity of a pair, inclusive, as in 0.7.
    ///
    /// In the place of any other threshold, also of --set [default: that of the pipeline; 0.8 for minhash].
    #[arg(short, long, value_name = "SIMILARITY", allow_negative_numbers = true, overrides_with = "threshold",
        value_parser = arguments::threshold)]
    pub threshold: Option<f64>,

    /// Set one key of the pipeline, as in --set sketch.size=512.
    ///
    /// May be given several times; the last one of a key counts. An empty value, as in
    /// --set blocking.distance=, unsets the key, or all keys of a table.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

impl PipelineArgs {
    /// The plan of the chosen pipeline.
    ///
    /// # Errors
    /// All problems of the pipeline.
    pub fn load(&self) -> Result<Plan, ConfigError> {
        Plan::load(&self.pipeline, &self.overrides())
    }

    /// All settings of the pipeline that were typed; of two of one key the last counts.
    fn overrides(&self) -> Vec<String> {
        arguments::overrides(&self.overrides, self.threshold)
    }

    /// The plan, for a command that compares whole documents.
    ///
    /// # Errors
    /// All problems of the pipeline; one that cuts documents into units.
    fn load_of_documents(&self) -> anyhow::Result<Plan> {
        let plan = self.load()?;
        anyhow::ensure!(plan.scheme.units.is_none(), units::NOT_DOCUMENTS);
        Ok(plan)
    }

    /// The plan, for a command that reads no reference.
    ///
    /// # Errors
    /// As [`Self::load_of_documents`]; one that finds the documents of a reference.
    fn load_without_reference(&self) -> anyhow::Result<Plan> {
        let plan = self.load_of_documents()?;
        anyhow::ensure!(
            !plan.finds_items(),
            "blocking.kind: \"reference\" finds the documents of a replay's --against, or of a run's \
            reference.inputs, and this command takes none"
        );
        Ok(plan)
    }

    /// The pipeline file, if the pipeline is not built in: outputs must not overwrite it.
    fn file(&self) -> Option<written::ReadFile<'static>> {
        Plan::file(&self.pipeline).map(|path| ("the pipeline file", path.to_owned()))
    }
}

/// The format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Aligned text.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Runs the command line `typed`, with the program's name first. Returns the exit code, after its error was
/// printed. `log` receives what writes the log messages, once it is known how.
pub fn main(typed: impl IntoIterator<Item = OsString>, log: &dyn Fn(Dispatch)) -> u8 {
    match run(typed, log) {
        // A command that ends without an error ends with 0 or, for what it has found, with 1.
        Ok(code) => u8::from(code != ExitCode::SUCCESS),
        Err(error) => match error.downcast::<clap::Error>() {
            Ok(error) => {
                // As clap does at an exit: a closed output is ignored. Help is not an error.
                error.print().unwrap_or(());
                u8::try_from(error.exit_code()).unwrap_or(2)
            }
            Err(error) => {
                let code = exit_code(&error);
                if code != 0 {
                    print_error(&error);
                }
                code
            }
        },
    }
}

/// Runs the command line `typed`.
///
/// # Errors
/// clap's own for `--help`, `--version` and a command line that is incomplete; the error of the command.
fn run(typed: impl IntoIterator<Item = OsString>, log: &dyn Fn(Dispatch)) -> anyhow::Result<ExitCode> {
    let (cli, problems) = arguments::read(typed.into_iter().collect())?;
    let verbosity = cli.verbosity.verbosity(LogFormat::default());
    // `run` starts logging later, as its deployment file says.
    match cli.command {
        Command::Run(_) => {}
        // The demo explains on standard output what it does.
        Command::Demo(_) => log(verbosity.messages(LogLevel::Warn)),
        _ => log(verbosity.messages(LogLevel::default())),
    }
    match cli.command {
        Command::Demo(args) => demo::run(&args, problems, verbosity),
        Command::Replay(args) => replay::run(&args, problems, verbosity),
        Command::Run(args) => run::run(&args, problems, cli.verbosity, log),
        Command::Compare(args) => compare::run(&args, problems),
        Command::Query(args) => query::run(&args, problems, verbosity),
        Command::Plan(args) => plan::run(&args, problems),
        Command::Check(args) => check::run(&args, problems),
        Command::Trace(args) => trace::run(&args, problems),
        Command::Verify(args) => verify::run(&args, problems),
        #[cfg(feature = "lab")]
        Command::Evaluate(args) => evaluate::run(&args, problems, verbosity),
        #[cfg(feature = "lab")]
        Command::Calibrate(args) => calibrate::run(&args, problems),
        Command::State(args) => state::run(&args, problems),
        #[cfg(feature = "kafka")]
        Command::Record(args) => record::run(&args, problems, verbosity),
        #[cfg(feature = "kafka")]
        Command::Produce(args) => produce::run(&args, problems, verbosity),
        #[cfg(feature = "lab")]
        Command::Generate(args) => generate::run(&args, problems, verbosity),
        Command::Completions(args) => completions::run(&args, problems),
        Command::Man(args) => manual::run(&args, problems),
    }
}

/// The exit code of a failed command: 2 for a wrong configuration, 0 for a closed pipe at the output,
/// otherwise 1.
fn exit_code(error: &anyhow::Error) -> u8 {
    let is_closed_pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    let is_refused = |source: &SourceError| matches!(source, SourceError::Inputs(_));
    let is_input = match error.downcast_ref() {
        Some(RunError::Source(source)) => is_refused(source),
        _ => error.downcast_ref().is_some_and(is_refused),
    };
    let is_budget = matches!(error.downcast_ref(), Some(AssembleError::Spill { .. }));
    // Beside others a closed output is a failure.
    let is_beside = matches!(error.downcast_ref(), Some(RunError::Output { .. }));
    if error.is::<ConfigError>() || error.is::<WrongUsage>() || is_input || is_budget {
        2
    } else if !is_beside && error.chain().any(|cause| cause.downcast_ref().is_some_and(is_closed_pipe)) {
        0
    } else {
        1
    }
}

/// Prints an error to standard error; a closed standard error is ignored.
fn print_error(error: &anyhow::Error) {
    let line = format!("error: {error:#}\n");
    io::stderr().write_all(line.as_bytes()).unwrap_or(());
}

/// Logs the start of a job, with everything that decides its result.
fn log_start(what: &str, plan: &Plan, job: &RunJob) {
    let scheme = format!("{:016x}", plan.scheme.fingerprint());
    tracing::info!(pipeline = plan.name, scheme, workers = job.workers, "{what}");
    if let Some(loss) = forecast::loss(plan) {
        tracing::warn!("for {} documents: {loss}", plan.documents);
    }
}

/// Writes a report to standard output.
fn print(report: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(report.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::config::OutputAnswer;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_of_replay() {
        let cli = Cli::try_parse_from(["dupflow", "replay", "feed.jsonl"]).unwrap();
        let Command::Replay(args) = cli.command else { panic!("{cli:?}") };
        assert_eq!((args.pipeline.pipeline.as_str(), args.emit), ("minhash", OutputAnswer::default()));
        assert_eq!(
            (args.epoch.to_string().as_str(), args.speed.to_string().as_str()),
            ("events:1000", "max")
        );
        assert_eq!((args.workers, &args.output[..]), (None, &["-".into()][..]));
        assert!(Cli::try_parse_from(["dupflow", "replay"]).is_err(), "an input is required");
        assert!(Cli::try_parse_from(["dupflow", "replay", "--workers", "0", "x"]).is_err());
    }

    #[test]
    fn failures_have_exit_codes() {
        let code = |error: anyhow::Error| exit_code(&error);
        assert_eq!(code(Plan::load("nothing", &[]).unwrap_err().into()), 2);
        assert_eq!(
            code(anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing")),
            0
        );
        assert_eq!(code(anyhow::anyhow!("broken")), 1);
    }
}
