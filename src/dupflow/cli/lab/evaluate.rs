//! `dupflow evaluate`: runs studies of the program's promises; the results are tables, files and one page.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use crate::cli::arguments::inputs::ColumnArgs;
use crate::cli::arguments::problems::Problems;
use crate::cli::arguments::verbosity::Verbosity;
use crate::cli::arguments::written;
use crate::cli::arguments::{self, at_least_one};
use crate::cli::corpus;
use crate::config::{BUILT_IN, ConfigError, Draft, FilterPlan, FrozenTables, Plan};
use dupflow_connectors::inputs::Input;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::filter::FilterKind;
use dupflow_core::text::{Featurizer, IdfTable};
use dupflow_core::time::SystemClock;
use dupflow_lab::estimators::Estimators;
use dupflow_lab::filter::Filter;
use dupflow_lab::paper::{ITEMS, Item, LabelledFiles, Paper, PaperSource, SEEDS};
use dupflow_lab::pipelines::{Pipelines, TruthFrom};
use dupflow_lab::scripts::Scripts;
use dupflow_lab::search::Search;
use dupflow_lab::speed::SketchSpeed;
use dupflow_lab::{Findings, Planner, ResultTable, StudiedPlan, Study, StudyContext, folder};

/// Arguments of `evaluate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Try:  dupflow evaluate filter -o evaluation\n\
    or:   dupflow evaluate pipelines --corpus feed.jsonl --truth truth.tsv -p exact -p minhash\n\n\
    The same options give the same numbers, but for times and memory.")]
pub struct Args {
    /// What to measure [default: every study that needs no corpus, and with --corpus pipelines too; but not
    /// scripts and paper]. After paper: a source from 000 to 004, an item such as 003-T1, or all [default:
    /// all].
    #[arg(value_name = "STUDY", value_parser = StudyArgParser)]
    pub studies: Vec<StudyArg>,

    /// Also write the results into this folder: a CSV file for each table, an SVG file for each plot, and
    /// index.html with everything.
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,

    /// Also write each study as a Markdown page into this folder: the papers as 000.md to 004.md.
    #[arg(long, value_name = "FOLDER")]
    pub pages: Option<PathBuf>,

    /// How tables are printed.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: TableFormat,

    /// Simulated pairs per distribution, for the study filter.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = at_least_one)]
    pub pairs: NonZeroUsize,

    /// Pairs of texts per case, for the study estimators.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = at_least_one)]
    pub trials: NonZeroUsize,

    /// Random fingerprints of 64 bits, for the study search; as many of 400 bits, but at most 300000.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = at_least_one)]
    pub documents: NonZeroUsize,

    /// Random queries, and as many with a neighbour to find, for the study search.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = at_least_one)]
    pub queries: NonZeroUsize,

    /// Size of the studies paper and scripts as a share of the full size; above 0.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    pub scale: f64,

    /// Another seed gives other pairs and other hash functions.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Seeds of each verdict of the study paper, from --seed on; at least 2.
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = several)]
    pub seeds: usize,

    /// Threads to simulate with [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = arguments::workers)]
    pub workers: Option<NonZeroUsize>,

    /// Options of the study `pipelines`.
    #[command(flatten)]
    pub whole: PipelineStudyArgs,
}

/// Options of the study `pipelines`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Whole pipelines")]
pub struct PipelineStudyArgs {
    /// The corpus: a feed, or a folder of documents.
    ///
    /// A feed is .jsonl, also compressed. May be given several times: inputs are read in order.
    #[arg(long, value_name = "INPUT")]
    pub corpus: Vec<PathBuf>,

    /// Where a record of the corpus has its id and text.
    #[command(flatten)]
    pub columns: ColumnArgs,

    /// The true similar pairs at the end of the corpus. Lines of "id_a id_b similarity", or of "seq op id_a
    /// id_b similarity" for a feed, separated by tabs [default: all documents are compared].
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Lines of "id label", separated by a tab: documents with the same label are duplicates.
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,

    /// Pairs judged by `calibrate`, in its format: precision and recall are those of these pairs, and others
    /// do not count. They are not weighted: by band of similarity they are not as frequent as in the corpus.
    #[arg(long, value_name = "FILE")]
    pub judged: Option<PathBuf>,

    /// Most documents that are compared all with all: to find the true pairs, and for each pipeline's own
    /// measure.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub brute_force_limit: usize,

    /// Write the document frequencies of the corpus to this file, for `text.idf`, and do nothing else. The
    /// text rules are those of the pipeline [default: weighted].
    #[arg(long, value_name = "FILE", conflicts_with = "studies")]
    pub write_idf: Option<PathBuf>,

    /// A pipeline to run, by name or path; repeatable [default: all built-in ones except contained,
    /// decontaminate, fingerprint and tour].
    #[arg(short, long = "pipeline", value_name = "PIPELINE")]
    pub pipelines: Vec<String>,

    /// Override one setting of all pipelines, or unset it with an empty value; repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,

    /// Run each pipeline at each of these thresholds.
    #[arg(long, value_name = "T,...", value_delimiter = ',', default_values_t = [0.5, 0.6, 0.7, 0.8, 0.9])]
    pub thresholds: Vec<f64>,
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
    /// Searches by Hamming distance: probes and time of each design, and a check that none misses a
    /// neighbour.
    Search,
    /// Precision, recall and cost of whole pipelines on a corpus with truth.
    Pipelines,
    /// Scripts without spaces: what each rule of text.spaceless finds, beside the same text with spaces.
    Scripts,
    /// The tables and figures of the papers: printed values beside measured ones.
    Paper,
}

/// One argument of `evaluate`.
#[derive(Clone, Debug, PartialEq)]
pub enum StudyArg {
    /// A study; for the papers, all of them.
    Study(StudyName),
    /// All sources of the papers.
    All,
    /// One source.
    PaperSource(PaperSource),
    /// One item of a source.
    Item(Item),
}

/// Parses [`StudyArg`], and lists the studies in the help.
#[derive(Clone, Debug)]
struct StudyArgParser;

impl TypedValueParser for StudyArgParser {
    type Value = StudyArg;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<StudyArg, clap::Error> {
        StringValueParser::new().try_map(|typed| wanted(&typed)).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(StudyName::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}

fn wanted(typed: &str) -> Result<StudyArg, String> {
    if typed == "all" {
        return Ok(StudyArg::All);
    }
    let source =
        PaperSource::ALL.into_iter().find(|source| source.name() == typed).map(StudyArg::PaperSource);
    let item = || ITEMS.iter().find(|item| item.id.eq_ignore_ascii_case(typed)).copied().map(StudyArg::Item);
    let study = || StudyName::from_str(typed, false).ok().map(StudyArg::Study);
    source.or_else(item).or_else(study).ok_or_else(|| {
        let names = StudyName::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<_> = names.map(|name| name.get_name().to_owned()).collect();
        format!("expected one of {}, 000 to 004, an item of them such as 003-T1, all", names.join(", "))
    })
}

fn share(typed: &str) -> Result<f64, String> {
    let share = typed.parse().ok().filter(|share: &f64| share.is_finite() && *share > 0.0);
    share.ok_or_else(|| "expected a number above 0".to_owned())
}

fn several(typed: &str) -> Result<usize, String> {
    let seeds = typed.parse().ok().filter(|seeds: &usize| *seeds >= 2);
    seeds.ok_or_else(|| "expected a whole number of at least 2: one seed has no interval".to_owned())
}

/// How tables are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Aligned, for a terminal.
    #[default]
    Text,
    /// As Markdown.
    Markdown,
}

impl TableFormat {
    fn heading(self, findings: &Findings) -> String {
        match self {
            Self::Text => format!("{}\n{}\n\n", findings.title, findings.about),
            Self::Markdown => format!("## {}\n\n{}\n\n", findings.title, findings.about),
        }
    }

    pub(super) fn table(self, table: &ResultTable) -> String {
        match self {
            Self::Text => table.text(),
            Self::Markdown => table.markdown(),
        }
    }
}

/// A pipeline with a rule on fields, which studies do not read.
#[derive(Debug, thiserror::Error)]
#[error("pairs.where: a study reads no fields of documents; leave it out")]
struct RuledPipeline;

/// Plans pipelines for the studies; reads each table of document frequencies once.
#[derive(Debug, Default)]
pub struct Planned(Mutex<FrozenTables>);

impl Planner for Planned {
    fn plan(&self, pipeline: &str, overrides: &[String]) -> Result<StudiedPlan, dupflow_lab::PlannerError> {
        let read = |draft: Draft| {
            let by_distance = matches!(draft.filter(), FilterPlan::Sketch(FilterKind::Hamming, _));
            let Plan { scheme, threshold, .. } = draft.read(&mut self.0.lock())?;
            Ok(StudiedPlan { scheme, threshold, by_distance })
        };
        let plan = Draft::load(pipeline, overrides).and_then(read).map_err(dupflow_lab::PlannerError::new)?;
        if plan.scheme.pairs.is_empty() {
            Ok(plan)
        } else {
            Err(dupflow_lab::PlannerError::new(RuledPipeline))
        }
    }
}

/// Runs the studies one after the other, prints the tables of each as soon as it is done, and writes the
/// folder.
///
/// # Errors
/// All problems of the options; then the error of a study or of a file.
pub(in crate::cli) fn run(
    args: &Args,
    mut problems: Problems,
    verbosity: Verbosity,
) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.whole.write_idf {
        return args.whole.write_idf(path, problems);
    }
    let program = std::env::current_exe().context("the program's own path")?;
    let studies = studies(args, program, &mut problems);
    // A folder is created only for a command that is valid.
    let folders = [("--output", &args.output, "index.html"), ("--pages", &args.pages, "000.md")];
    for (option, folder, file) in folders {
        let Some(folder) = folder.as_ref().filter(|_| problems.is_empty()) else { continue };
        match std::fs::create_dir_all(folder) {
            Ok(()) => written::probe([(option, folder.join(file).as_path())], &mut problems),
            Err(error) => {
                problems.note(format_args!("{option}: a folder is to be made, or to be there: {error}"));
            }
        }
    }
    let studies = problems.settle(Some(studies))?;
    let clock = SystemClock::start();
    let cores = || std::thread::available_parallelism().ok();
    let threads = args.workers.or_else(cores).map_or(1, NonZeroUsize::get);
    let bar = progress(verbosity);
    let progress = |what: &str| {
        bar.set_message(what.to_owned());
        tracing::info!(what, "measuring");
    };
    let planner = Planned::default();
    let bench =
        StudyContext { clock: &clock, threads, seed: args.seed, planner: &planner, progress: &progress };
    let command: Vec<_> = std::env::args().skip(1).collect();
    let command = format!("dupflow {}", command.join(" "));
    let mut all = Vec::new();
    for study in studies {
        let findings = study.run(&bench);
        bar.reset();
        let findings = findings?;
        let mut text = args.format.heading(&findings);
        text.extend(findings.tables.iter().map(|table| args.format.table(table) + "\n"));
        crate::cli::print(&text)?;
        if let Some(pages) = &args.pages {
            folder::write_page(pages, &command, &findings)?;
        }
        all.push(findings);
    }
    if let Some(output) = &args.output {
        folder::write(output, &command, &all)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A progress line with the current measurement and its time; hidden if progress is off.
fn progress(verbosity: Verbosity) -> ProgressBar {
    if !verbosity.shows_progress() || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {elapsed_precise}  {msg}").expect("a fixed template");
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The studies to run, in the order of their names; reports problems with them.
fn studies(args: &Args, program: PathBuf, problems: &mut Problems) -> Vec<Box<dyn Study>> {
    let is_named = |name: StudyName| args.studies.contains(&StudyArg::Study(name));
    let is_wanted = |name: &&StudyName| match name {
        StudyName::Paper => false,
        StudyName::Scripts => is_named(**name),
        StudyName::Pipelines if args.studies.is_empty() => !args.whole.corpus.is_empty(),
        name => args.studies.is_empty() || is_named(**name),
    };
    let wanted: Vec<&StudyName> = StudyName::value_variants().iter().filter(is_wanted).collect();
    let papers = args.papers(&program);
    let whole = args.whole.study(program);
    if wanted.contains(&&StudyName::Pipelines) {
        args.whole.check(&whole, problems);
    }
    let study = |name: &StudyName| -> Box<dyn Study> {
        match name {
            StudyName::Filter => Box::new(Filter { pairs: args.pairs.get() }),
            StudyName::Estimators => Box::new(Estimators { trials: args.trials.get() }),
            StudyName::Speed => Box::new(SketchSpeed),
            StudyName::Search => {
                Box::new(Search { documents: args.documents.get(), queries: args.queries.get() })
            }
            StudyName::Pipelines => Box::new(whole.clone()),
            StudyName::Scripts => Box::new(Scripts { scale: args.scale, program: whole.program.clone() }),
            StudyName::Paper => unreachable!("the papers are studies of their own"),
        }
    };
    wanted
        .into_iter()
        .map(study)
        .chain(papers.into_iter().map(|paper| Box::new(paper) as Box<dyn Study>))
        .collect()
}

impl Args {
    /// The studies of papers: all, or those named, in their order.
    fn papers(&self, program: &Path) -> Vec<Paper> {
        let is_named = self.studies.contains(&StudyArg::Study(StudyName::Paper));
        let mut wanted: Vec<(PaperSource, Option<Item>)> = Vec::new();
        for what in &self.studies {
            match what {
                StudyArg::All => wanted.extend(PaperSource::ALL.map(|source| (source, None))),
                StudyArg::PaperSource(source) => wanted.push((*source, None)),
                StudyArg::Item(item) => wanted.push((item.source, Some(*item))),
                StudyArg::Study(_) => {}
            }
        }
        if wanted.is_empty() && is_named {
            wanted.extend(PaperSource::ALL.map(|source| (source, None)));
        }
        wanted.sort_by_key(|(source, _)| *source);
        let labelled = self.whole.labels.as_ref().map(|labels| LabelledFiles {
            corpus: self.whole.corpus.clone(),
            layout: self.whole.columns.layout(),
            labels: labels.clone(),
        });
        let paper = |(source, item)| Paper {
            source,
            item,
            program: program.to_owned(),
            scale: self.scale,
            seeds: self.seeds,
            labelled: labelled.clone(),
        };
        wanted.into_iter().map(paper).collect()
    }
}

impl PipelineStudyArgs {
    /// Counts document frequencies of the corpus and writes the table.
    fn write_idf(&self, path: &Path, mut problems: Problems) -> anyhow::Result<ExitCode> {
        let pipeline = self.pipelines.first().map_or("weighted", String::as_str);
        let plan = problems.take(Plan::load(pipeline, &self.overrides));
        let inputs = problems.take(Input::resolve(&self.corpus, self.columns.layout()));
        self.check_columns(&mut problems);
        if self.corpus.is_empty() {
            problems.note("--write-idf needs documents: name a feed or a folder with --corpus");
        }
        written::probe([("--write-idf", path)], &mut problems);
        let (mut plan, inputs) = problems.settle(plan.zip(inputs))?;
        let rules = plan.scheme.text.clone();
        let mut featurizer = Featurizer::new(rules.clone());
        let alive = corpus::read(inputs, &mut plan, &FieldRules::default(), |_, _| {})?;
        let table = IdfTable::count(alive.values().map(|own| featurizer.terms(&own.text).to_owned().ids));
        let file = File::create(path).with_context(|| format!("cannot create \"{}\"", path.display()))?;
        let mut file = BufWriter::new(file);
        table
            .write(&rules, &mut file)
            .and_then(|()| file.flush())
            .with_context(|| format!("cannot write \"{}\"", path.display()))?;
        tracing::info!(documents = table.documents(), features = table.len(), "document frequencies written");
        Ok(ExitCode::SUCCESS)
    }

    fn study(&self, program: PathBuf) -> Pipelines {
        // The truth is by Jaccard, which containment is not meant to find, and of texts.
        let is_studied = |name: &&str| !["contained", "decontaminate", "fingerprint", "tour"].contains(name);
        let built_in = || BUILT_IN.iter().map(|(name, _)| *name).filter(is_studied).map(str::to_owned);
        let pipelines = if self.pipelines.is_empty() { built_in().collect() } else { self.pipelines.clone() };
        let truth = match (&self.truth, &self.labels, &self.judged) {
            (Some(pairs), ..) => TruthFrom::Pairs(pairs.clone()),
            (None, Some(labels), _) => TruthFrom::Labels(labels.clone()),
            (None, None, Some(judged)) => TruthFrom::Judged(judged.clone()),
            (None, None, None) => TruthFrom::BruteForce,
        };
        Pipelines {
            pipelines,
            overrides: self.overrides.clone(),
            thresholds: self.thresholds.clone(),
            corpus: self.corpus.clone(),
            layout: self.columns.layout(),
            truth,
            limit: self.brute_force_limit,
            program,
        }
    }

    /// Reports options of columns without effect.
    fn check_columns(&self, problems: &mut Problems) {
        self.columns.check(problems);
        if !self.columns.fields.is_empty() {
            problems.note("--field: a study reads no fields of documents");
        }
    }

    /// Reports what would fail later: pipelines at the thresholds, inputs, and files.
    fn check(&self, study: &Pipelines, problems: &mut Problems) {
        let planner = Planned::default();
        for pipeline in &study.pipelines {
            // One threshold is enough: most problems occur at all of them.
            let plan = |threshold: &f64| study.plan(&planner, pipeline, *threshold).err();
            let error = study.thresholds.iter().find_map(plan);
            if let Some(Ok(error)) = error.map(|error| error.into_inner().downcast::<ConfigError>()) {
                problems.take::<Plan>(Err(*error));
            }
        }
        self.check_columns(problems);
        if self.corpus.is_empty() {
            problems.note("the study \"pipelines\" needs documents: name a feed or a folder with --corpus");
        }
        if self.corpus.iter().any(|input| input == Path::new("-")) {
            problems.note("--corpus: \"-\" is read once, and the corpus is needed once for each pipeline");
        } else {
            problems.take(Input::resolve(&self.corpus, self.columns.layout()));
        }
        let named = [("--truth", &self.truth), ("--labels", &self.labels), ("--judged", &self.judged)];
        let mut given = named.iter().filter(|(_, path)| path.is_some());
        if let Some((first, _)) = given.next() {
            given.for_each(|(option, _)| {
                problems.note(format_args!("{option}: the truth is named by {first} already"));
            });
        }
        for (option, path) in named {
            if let Some(Err(error)) = path.as_ref().map(std::fs::File::open) {
                problems.note(format_args!(
                    "{option}: cannot read {:?}: {error}",
                    path.as_deref().unwrap_or(Path::new(""))
                ));
            }
        }
    }
}
