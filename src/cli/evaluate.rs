//! `dupflow evaluate`: studies of what the program promises, as tables, files and one page.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;

use super::arguments::at_least_one;
use super::problems::Problems;
use crate::evaluate::estimators::Estimators;
use crate::evaluate::filter::Filter;
use crate::evaluate::speed::Speed;
use crate::evaluate::{Bench, Findings, Study, Table, folder};
use crate::time::SystemClock;

/// What `evaluate` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Try:  dupflow evaluate filter -o evaluation\n\n\
    The same options give the same numbers, but for times.")]
pub struct Args {
    /// What to measure [default: all that need no corpus, and with --corpus all].
    #[arg(value_name = "STUDY", value_enum)]
    pub studies: Vec<StudyName>,

    /// Also write into this folder: a CSV file for each table, an SVG file for each plot, and index.html with all of it.
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,

    /// How tables are printed.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: TableFormat,

    /// Simulated pairs of each distribution, for the filter.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = at_least_one)]
    pub pairs: NonZeroUsize,

    /// Pairs of texts of each case, for the estimators.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = at_least_one)]
    pub trials: NonZeroUsize,

    /// Another seed draws other pairs and other hash functions.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Threads to simulate with [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub workers: Option<NonZeroUsize>,
}

/// The studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StudyName {
    /// The staged filter on simulated pairs: components read, wrong decisions, time.
    Filter,
    /// The error of every sketch's estimate against theory.
    Estimators,
    /// Sketching time per feature.
    Speed,
}

/// How tables are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Aligned, for a terminal.
    #[default]
    Text,
    /// For a page in Markdown.
    Markdown,
}

impl TableFormat {
    fn heading(self, findings: &Findings) -> String {
        match self {
            Self::Text => format!("{}\n{}\n\n", findings.title, findings.about),
            Self::Markdown => format!("## {}\n\n{}\n\n", findings.title, findings.about),
        }
    }

    fn table(self, table: &Table) -> String {
        match self {
            Self::Text => table.text(),
            Self::Markdown => table.markdown(),
        }
    }
}

/// Runs the studies one after the other, prints each one's tables as soon as it is done, and writes the folder.
///
/// # Errors
/// Everything that is wrong with the options, together; then what a study or a file fails with.
pub(super) fn run(args: &Args, problems: Problems) -> anyhow::Result<ExitCode> {
    let studies = problems.settle(Some(studies(args)))?;
    let clock = SystemClock::start();
    let cores = || std::thread::available_parallelism().ok();
    let threads = args.workers.or_else(cores).map_or(1, NonZeroUsize::get);
    let bench = Bench { clock: &clock, threads, seed: args.seed };
    let mut all = Vec::new();
    for study in studies {
        let findings = study.run(&bench)?;
        let mut text = args.format.heading(&findings);
        text.extend(findings.tables.iter().map(|table| args.format.table(table) + "\n"));
        super::print(&text)?;
        all.push(findings);
    }
    if let Some(output) = &args.output {
        let command: Vec<_> = std::env::args().skip(1).collect();
        folder::write(output, &format!("dupflow {}", command.join(" ")), &all)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What to run, in the order of the names.
fn studies(args: &Args) -> Vec<Box<dyn Study>> {
    let study = |name: &StudyName| -> Box<dyn Study> {
        match name {
            StudyName::Filter => Box::new(Filter { pairs: args.pairs.get() }),
            StudyName::Estimators => Box::new(Estimators { trials: args.trials.get() }),
            StudyName::Speed => Box::new(Speed),
        }
    };
    let wanted = |name: &&StudyName| args.studies.is_empty() || args.studies.contains(name);
    StudyName::value_variants().iter().filter(wanted).map(study).collect()
}
