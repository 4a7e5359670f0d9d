//! `dupflow calibrate`: draws pairs of a corpus over all similarities, has them judged, and says which
//! threshold has which precision and recall; writes a pipeline file with the one that is chosen.

mod ask;
mod page;
mod pairs;

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::evaluate::TableFormat;
use crate::cli::PipelineArgs;
use crate::cli::arguments::inputs::InputArgs;
use crate::cli::arguments::problems::Problems;
use crate::cli::arguments::{self, at_least_one, written};
use crate::config::{FilterPlan, Plan};
use crate::plural::count;
use dupflow_core::filter::FilterKind;
use dupflow_lab::ResultTable;
use dupflow_lab::calibrate::{Calibration, Draw, Goal, Interval};
use dupflow_lab::truth::JudgedPairs;

/// Arguments of `calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Try:  dupflow calibrate pages.jsonl --labels judged.jsonl -o mine.toml\n\n\
    Answers are kept in the file of --labels as they are given: the same command goes on where it was left.")]
pub struct Args {
    /// The corpus.
    #[command(flatten)]
    pub input: InputArgs,

    /// The pipeline for which a threshold is chosen.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// The least similarity of a pair that is drawn: duplicates below it are not known.
    #[arg(long, value_name = "T", default_value_t = 0.3, value_parser = share)]
    pub from: f64,

    /// Pairs to judge, as many from each band of similarity.
    #[arg(long, value_name = "N", default_value = "200", value_parser = at_least_one)]
    pub pairs: NonZeroUsize,

    /// The file of judged pairs, to which answers are appended.
    ///
    /// A line each: {"a":"…","b":"…","duplicate":true}. It is read if it is there.
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,

    /// Ask although standard input is no terminal.
    ///
    /// It has a line of y, n, s, u or q for each pair.
    #[arg(long, conflicts_with_all = ["page", "unjudged"])]
    pub ask: bool,

    /// Do not ask; write a page that asks.
    ///
    /// It shows the pairs that are not judged, takes the answers, and saves them as a file for --labels. It
    /// needs no network.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,

    /// Write the pairs that are not judged to this file.
    ///
    /// Nothing is asked. They are lines for --labels with their texts, whose "duplicate" is null.
    #[arg(long, value_name = "FILE")]
    pub unjudged: Option<PathBuf>,

    /// Choose the least threshold with at least this precision [default: the greatest F1].
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "recall")]
    pub precision: Option<f64>,

    /// Choose the greatest threshold with at least this recall.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub recall: Option<f64>,

    /// Write the pipeline with the chosen threshold to this file.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// How tables are printed.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub tables: TableFormat,

    /// Another seed draws other pairs.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = arguments::workers)]
    pub workers: Option<NonZeroUsize>,
}

/// A share above 0, at most 1.
fn share(typed: &str) -> Result<f64, String> {
    let share = typed.parse().ok().filter(|share: &f64| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "expected a number above 0, at most 1".to_owned())
}

/// Draws pairs, asks or writes what is to be judged, and prints what the answers say.
///
/// # Errors
/// All problems of the options; an input or a file that cannot be read or written; too few answers for an
/// estimate; no threshold that reaches what is asked for.
pub(in crate::cli) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    let asks = args.page.is_none() && args.unjudged.is_none() && (args.ask || std::io::stdin().is_terminal());
    let wide = problems.take(args.wide());
    let judged = args.judged(asks, &mut problems);
    let inputs = args.input.resolve(&mut problems);
    args.check_written(inputs.as_deref().unwrap_or_default(), &mut problems);
    let ((plan, inputs), mut judged) = problems.settle(wide.zip(inputs).zip(Some(judged)))?;

    let found = pairs::found(&plan, inputs.clone(), args.workers)?;
    let draw = Draw::new(found, args.from, args.pairs.get(), args.seed);
    if draw.bands.is_empty() {
        bail!("no pair of the corpus has a similarity of {} or more: lower --from", args.from);
    }
    let open: Vec<_> =
        draw.in_order(args.seed).into_iter().filter(|one| judged.get(&one.pair).is_none()).collect();
    if !open.is_empty() {
        let texts = pairs::texts(&plan, inputs, &open)?;
        if let Some(path) = args.labels.as_deref().filter(|_| asks) {
            ask::ask(&plan.scheme.text, &open, &texts, path, &mut judged)?;
        }
        for (path, content) in [
            (&args.page, args.page.as_ref().map(|_| page::page(&plan.scheme.text, &open, &texts))),
            (&args.unjudged, args.unjudged.as_ref().map(|_| pairs::lines(&open, &texts))),
        ] {
            let Some((path, content)) = path.as_ref().zip(content) else { continue };
            std::fs::write(path, content).with_context(|| format!("cannot write {path:?}"))?;
        }
    }
    let calibration = Calibration::new(&draw, &judged, args.seed);
    let drawn = draw.bands.iter().map(|band| band.drawn.len()).sum();
    args.report(&calibration, drawn, judged.iter().count())
}

impl Args {
    /// The pipeline at the least similarity.
    ///
    /// # Errors
    /// All problems of the pipeline; one that has no threshold, or a rule on fields, which pairs are not
    /// drawn by.
    fn wide(&self) -> anyhow::Result<Plan> {
        let plan = self.pipeline.load_without_reference()?;
        if matches!(plan.filter, FilterPlan::Sketch(FilterKind::Hamming, _)) {
            bail!(
                "--pipeline: {:?} decides by a distance (blocking.distance) and has no threshold",
                plan.name
            );
        }
        if !plan.scheme.pairs.is_empty() {
            bail!("pairs.where: pairs are drawn without fields of documents; leave it out");
        }
        Ok(self.at(self.from)?)
    }

    fn at(&self, threshold: f64) -> Result<Plan, crate::config::ConfigError> {
        let set = [format!("threshold={threshold}")];
        Plan::load(&self.pipeline.pipeline, &[self.pipeline.overrides(), set.to_vec()].concat())
    }

    /// The answers that are there.
    fn judged(&self, asks: bool, problems: &mut Problems) -> JudgedPairs {
        match &self.labels {
            Some(path) if path.exists() => problems.take(JudgedPairs::read(path)).unwrap_or_default(),
            None if asks => {
                problems
                    .note("--labels: name a file for the answers (or write a page of the pairs with --page)");
                JudgedPairs::default()
            }
            _ => JudgedPairs::default(),
        }
    }

    /// Reports files that cannot be written, or are read.
    fn check_written(&self, inputs: &[dupflow_connectors::inputs::Input], problems: &mut Problems) {
        let named = [
            ("--labels", &self.labels),
            ("--page", &self.page),
            ("--unjudged", &self.unjudged),
            ("-o", &self.output),
        ];
        let named: Vec<_> =
            named.iter().filter_map(|(option, path)| Some((*option, path.as_deref()?))).collect();
        if inputs.iter().any(|input| input.path().is_none()) {
            problems
                .note("a corpus is read twice here: name files or folders, not standard input or addresses");
        }
        written::probe(named.iter().copied(), problems);
        let named: Vec<_> = named.into_iter().map(|(option, path)| (option, path, &[][..])).collect();
        let read: Vec<_> = self.pipeline.file().into_iter().collect();
        written::check(&named, &read, inputs, problems);
    }

    /// Prints both tables and the choice, and writes the pipeline file.
    ///
    /// # Errors
    /// If a band has no judged pair; if no threshold reaches the goal; if the file cannot be written.
    fn report(&self, calibration: &Calibration, drawn: usize, known: usize) -> anyhow::Result<ExitCode> {
        let judged: usize = calibration.bands.iter().map(|band| band.judged).sum();
        let mut counted = self.tables.table(&bands(calibration));
        let _ = writeln!(counted, "\n{judged} of {} judged", count(drawn as u64, "drawn pair"));
        if known > judged {
            let others = count((known - judged) as u64, "judged pair");
            let _ = writeln!(counted, "{others} were not drawn and do not count: they are no random sample");
        }
        crate::cli::print(&counted)?;
        if calibration.thresholds.is_empty() {
            // The pairs to judge are written, which is what was asked for.
            let is_written = self.page.is_some() || self.unjudged.is_some();
            if is_written && self.output.is_none() {
                crate::cli::print("no estimate yet: each band needs a judged pair\n")?;
                return Ok(ExitCode::SUCCESS);
            }
            bail!("no estimate yet: each band needs a judged pair");
        }
        let mut out = format!("\n{}", self.tables.table(&thresholds(calibration)));
        let goal = self.goal();
        let Some(chosen) = calibration.chosen(goal) else {
            crate::cli::print(&out)?;
            // Without a duplicate there is no recall.
            if let Some(all) = calibration.thresholds.first().filter(|all| all.recall.is_none()) {
                bail!(
                    "no threshold: none of {} is a duplicate; of {} from {} on at most the share {:.3} is \
                     (95 %). --pairs asks for more; for duplicates that are less similar lower --from",
                    count(judged as u64, "judged pair"),
                    count(all.pairs as u64, "pair"),
                    self.from,
                    all.precision.high,
                );
            }
            bail!("no threshold from {} on has {}", self.from, self.asked());
        };
        let printed = |of: Interval| format!("{:.3} ({:.3} to {:.3})", of.estimate, of.low, of.high);
        let choice = format!(
            "threshold {}: precision {}, recall {} of the duplicates from {} on, by {judged} judged pairs",
            chosen.threshold,
            printed(chosen.precision),
            chosen.recall.map_or_else(|| "unknown".to_owned(), printed),
            self.from
        );
        let _ = writeln!(out, "\n{choice}; it has {}", self.asked());
        crate::cli::print(&out)?;
        if let Some(path) = &self.output {
            let plan = self.at(chosen.threshold)?;
            let failed = || format!("cannot write {path:?}");
            let (name, settings) = (plan.name.escape_debug(), plan.toml(path).with_context(failed)?);
            let file = format!("# {choice} (dupflow calibrate -p {name}).\n{settings}");
            std::fs::write(path, file).with_context(failed)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn goal(&self) -> Goal {
        match (self.precision, self.recall) {
            (Some(least), _) => Goal::Precision(least),
            (None, Some(least)) => Goal::Recall(least),
            (None, None) => Goal::F1,
        }
    }

    fn asked(&self) -> String {
        match self.goal() {
            Goal::Precision(least) => format!("a precision of {least} or more"),
            Goal::Recall(least) => format!("a recall of {least} or more"),
            Goal::F1 => "the greatest F1".to_owned(),
        }
    }
}

/// The bands with the answers.
fn bands(calibration: &Calibration) -> ResultTable {
    let mut table = ResultTable::new(
        "calibrate_bands",
        "Judged pairs",
        "By similarity, up to the next row.",
        "from | pairs | judged | duplicates",
    );
    for band in &calibration.bands {
        table.push(vec![band.from.into(), band.pairs.into(), band.judged.into(), band.duplicates.into()]);
    }
    table
}

/// What each threshold has.
fn thresholds(calibration: &Calibration) -> ResultTable {
    let mut table = ResultTable::new(
        "calibrate_thresholds",
        "Thresholds",
        "Precision and recall with intervals of 95 %. Recall is of the duplicates among all pairs above: the \
            blocks of a pipeline planned for T lose some of them (`dupflow plan`).",
        "T | pairs | precision | low | high | recall | low | high | F1",
    );
    for one in &calibration.thresholds {
        let recall = |of: fn(&Interval) -> f64| one.recall.as_ref().map(of).into();
        table.push(vec![
            one.threshold.into(),
            one.pairs.into(),
            one.precision.estimate.into(),
            one.precision.low.into(),
            one.precision.high.into(),
            recall(|recall| recall.estimate),
            recall(|recall| recall.low),
            recall(|recall| recall.high),
            one.f1().into(),
        ]);
    }
    table
}
