//! Whole pipelines on a corpus, held against the truth about it: precision, recall, and what it took.
//!
//! Each pipeline runs at each threshold for itself, since its blocks and its filter are made for the threshold, and as a process of
//! its own (`dupflow replay`), so that its time and its memory are its own too. A pair is right iff its true similarity is at least
//! the threshold: *precision* is the share of right pairs among those found, *recall* the share of those found among the right ones,
//! F1 their harmonic mean.

mod outcome;
mod report;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::truth::Truth;
use super::{Bench, EvaluateError, Findings, Study};
use crate::config::{Draft, FilterPlan, PlanError};
use crate::doc::DocId;
use crate::filter::FilterKind;
use crate::pair::Pair;
use crate::source::Input;
use crate::text::TextRules;
use outcome::Outcome;

/// Where the truth comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TruthFrom {
    /// A file of pairs or deltas.
    Pairs(PathBuf),
    /// A file of labels.
    Labels(PathBuf),
    /// All documents compared with each other, by each pipeline's text rules.
    BruteForce {
        /// The most documents that this is done for.
        limit: usize,
    },
}

/// The study of whole pipelines.
#[derive(Clone, Debug)]
pub struct Pipelines {
    /// What to run: names or paths of pipelines.
    pub pipelines: Vec<String>,
    /// Overrides for all of them.
    pub overrides: Vec<String>,
    /// Thresholds to run them at; they have been tried with every pipeline.
    pub thresholds: Vec<f64>,
    /// The corpus or feed; no standard input, since it is read more than once.
    pub corpus: Vec<PathBuf>,
    /// What is right.
    pub truth: TruthFrom,
    /// The program itself.
    pub program: PathBuf,
}

/// What one pipeline found at one threshold, and what that took.
struct Ran {
    pipeline: String,
    threshold: f64,
    counts: Counts,
    outcome: Outcome,
}

/// The stats of a run that are reported.
#[derive(Clone, Debug, Deserialize)]
struct Counts {
    events: u64,
    documents: u64,
    pairs: u64,
    candidates: u64,
    compared_by_stage: Vec<u64>,
    components_compared: u64,
    seconds: f64,
    peak_rss_bytes: u64,
}

/// A line of the result.
#[derive(Deserialize)]
struct Found {
    a: DocId,
    b: DocId,
}

impl Study for Pipelines {
    fn run(&self, bench: &Bench<'_>) -> Result<Findings, EvaluateError> {
        let mut truths = Truths { study: self, known: Vec::new() };
        let mut ran = Vec::new();
        for pipeline in &self.pipelines {
            let truth = truths.of(pipeline)?;
            for &threshold in &self.thresholds {
                let (found, counts) = self.replay(pipeline, threshold, bench.threads)?;
                let outcome = Outcome::of(truth, threshold, &found);
                ran.push(Ran { pipeline: pipeline.clone(), threshold, counts, outcome });
            }
        }
        let graded = truths.known.iter().all(|(_, truth)| truth.graded);
        let corpus: Vec<_> = self.corpus.iter().filter_map(|path| path.file_name()).collect();
        let mut tables = vec![report::quality(&ran), report::cost(&ran)];
        let mut plots = vec![];
        if graded {
            tables.insert(1, report::by_band(&ran));
            plots.extend(
                self.thresholds.iter().map(|threshold| report::found_by_similarity(&ran, *threshold)),
            );
        }
        let truth = match &self.truth {
            TruthFrom::Pairs(path) | TruthFrom::Labels(path) => {
                format!("{:?}", path.file_name().unwrap_or_default())
            }
            TruthFrom::BruteForce { .. } => "all documents compared".to_owned(),
        };
        Ok(Findings {
            title: "Pipelines".to_owned(),
            about: format!(
                "Corpus {corpus:?}, {} events that leave {} documents; truth: {truth}. Each pipeline at each threshold is a run of \
                 its own in a process of its own, {} workers.{}",
                ran.first().map_or(0, |ran| ran.counts.events),
                ran.first().map_or(0, |ran| ran.counts.documents),
                bench.threads,
                self.overrides.iter().map(|set| format!(" --set {set}")).collect::<String>(),
            ),
            tables,
            plots,
        })
    }
}

impl Pipelines {
    /// The pipeline of one run, checked.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn draft(&self, pipeline: &str, threshold: f64) -> Result<Draft, PlanError> {
        Draft::load(pipeline, &self.overrides(pipeline, threshold))
    }

    /// A pipeline that decides by Hamming distance has no threshold to set: it is judged at each of them as it is.
    fn overrides(&self, pipeline: &str, threshold: f64) -> Vec<String> {
        let by_distance = Draft::load(pipeline, &self.overrides)
            .is_ok_and(|draft| matches!(draft.filter(), FilterPlan::Sketch(FilterKind::Hamming, _)));
        let set = (!by_distance).then(|| format!("threshold={threshold}"));
        self.overrides.iter().cloned().chain(set).collect()
    }

    /// Runs a pipeline as a process; the pairs at the end, and the stats.
    fn replay(
        &self,
        pipeline: &str,
        threshold: f64,
        workers: usize,
    ) -> Result<(Vec<Pair<DocId>>, Counts), EvaluateError> {
        let failed = |message: String| EvaluateError::Pipeline { pipeline: pipeline.to_owned(), message };
        let stats = Temporary::new();
        let mut command = Command::new(&self.program);
        command.args(["replay", "--emit", "pairs", "-p", pipeline]);
        command.arg("--workers").arg(workers.to_string()).arg("--stats").arg(&stats.0);
        command
            .args(self.overrides(pipeline, threshold).into_iter().flat_map(|set| ["--set".to_owned(), set]));
        command.arg("--").args(self.corpus.iter().map(OsString::from));
        let output = command.stdin(Stdio::null()).output().map_err(EvaluateError::file(&self.program))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let counts = std::fs::read(&stats.0).map_err(EvaluateError::file(&stats.0))?;
        let counts = serde_json::from_slice(&counts).map_err(|error| failed(error.to_string()))?;
        let pairs = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Found>();
        let pairs = pairs.map(|found| found.map(|Found { a, b }| Pair::new(a, b)));
        let pairs: Result<Option<Vec<_>>, _> =
            pairs.collect::<Result<Vec<_>, _>>().map(|all| all.into_iter().collect());
        let pairs = pairs.map_err(|error| failed(error.to_string()))?;
        Ok((pairs.ok_or_else(|| failed("a pair of one document".to_owned()))?, counts))
    }
}

/// A temporary file, removed when this is dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("dupflow-evaluate-{}.json", std::process::id())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It may never have been made.
        drop(std::fs::remove_file(&self.0));
    }
}

/// The truth by each set of text rules; one for all if it is read from a file.
struct Truths<'s> {
    study: &'s Pipelines,
    known: Vec<(Option<TextRules>, Truth)>,
}

impl Truths<'_> {
    fn of(&mut self, pipeline: &str) -> Result<&Truth, EvaluateError> {
        let study = self.study;
        let lowest = study.thresholds.iter().copied().fold(1.0, f64::min);
        let rules = match study.truth {
            TruthFrom::BruteForce { .. } => Some(study.draft(pipeline, lowest)?.text().clone()),
            _ => None,
        };
        let place = if let Some(place) = self.known.iter().position(|(known, _)| *known == rules) {
            place
        } else {
            let truth = match (&study.truth, &rules) {
                (TruthFrom::Pairs(path), _) => Truth::pairs(path)?,
                (TruthFrom::Labels(path), _) => Truth::labels(path)?,
                (TruthFrom::BruteForce { limit }, rules) => {
                    let rules = rules.clone().unwrap_or_default();
                    Truth::brute_force(Input::resolve(&study.corpus)?, &rules, lowest, *limit)?
                }
            };
            self.known.push((rules, truth));
            self.known.len() - 1
        };
        Ok(&self.known[place].1)
    }
}
