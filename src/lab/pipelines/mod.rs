//! Whole pipelines on a corpus, held against the truth about it: precision, recall, and what it took.
//!
//! Each pipeline runs at each threshold for itself, since its blocks and its filter are made for the
//! threshold, and as a process of its own (`dupflow replay`), so that its time and its memory are its own
//! too. A pair is right iff its true similarity is at least the threshold: *precision* is the share of right
//! pairs among those found, *recall* the share of those found among the right ones, F1 their harmonic mean.
//!
//! Beside that, each pipeline is judged by its own measure (weighted Jaccard, cosine, q J), by brute force
//! over the features of all documents, where they are not too many. Sets and sections cost what
//! [`oracle::pairs`](dupflow_core::oracle::pairs) does; weights cost as many additions as there are pairs of
//! documents that share a term, summed over the terms.

mod outcome;
mod report;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::truth::{self, By, OwnMeasure, Truth};
use super::{Bench, EvaluateError, Findings, PlanError, Planner, StudiedPlan, Study};
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::inputs::Input;
use dupflow_core::doc::DocId;
use dupflow_core::pair::Pair;
use outcome::Outcome;

/// Where the truth comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TruthFrom {
    /// A file of pairs or deltas.
    Pairs(PathBuf),
    /// A file of labels.
    Labels(PathBuf),
    /// All documents compared with each other, by each pipeline's text rules.
    BruteForce,
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
    /// The most documents that are all compared with each other.
    pub limit: usize,
    /// The program itself.
    pub program: PathBuf,
}

/// What one pipeline found at one threshold, and what that took.
struct Ran {
    pipeline: String,
    threshold: f64,
    counts: Counts,
    outcome: Outcome,
    /// Against the truth by its own measure, if there is one: the measure, the threshold by it, and the
    /// outcome.
    own: Option<(String, f64, Outcome)>,
}

/// The stats of a run that are reported.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Counts {
    events: u64,
    pub(super) documents: u64,
    pairs: u64,
    pub(super) candidates: u64,
    compared_by_stage: Vec<u64>,
    components_compared: u64,
    seconds: f64,
    pub(super) peak_rss_bytes: u64,
}

/// A line of the result.
#[derive(Deserialize)]
struct Found {
    a: DocId,
    b: DocId,
}

impl Study for Pipelines {
    fn run(&self, bench: &Bench<'_>) -> Result<Findings, EvaluateError> {
        let mut truths = Truths::new(self)?;
        let lowest = self.thresholds.iter().copied().fold(1.0, f64::min);
        let mut ran = Vec::new();
        for pipeline in &self.pipelines {
            for (n, &threshold) in self.thresholds.iter().enumerate() {
                let plan = self.plan(bench.planner, pipeline, threshold)?;
                let (found, counts) = self.replay(bench, pipeline, threshold)?;
                let outcome = Outcome::of(truths.of(&plan, lowest)?, threshold, &found);
                // One that decides by distance has its own threshold, the same each time.
                let floor = if plan.by_distance { plan.threshold } else { lowest };
                let own =
                    (n == 0 || !plan.by_distance).then(|| truths.own(&plan, floor)).transpose()?.flatten();
                let measure = OwnMeasure::of(&plan.scheme).to_string();
                let own =
                    own.map(|truth| (measure, plan.threshold, Outcome::of(truth, plan.threshold, &found)));
                ran.push(Ran { pipeline: pipeline.clone(), threshold, counts, outcome, own });
            }
        }
        let graded = truths.read.as_ref().is_none_or(|truth| truth.graded);
        let corpus: Vec<_> = self.corpus.iter().filter_map(|path| path.file_name()).collect();
        let mut tables = vec![report::quality(&ran)];
        tables.extend(report::own(&ran));
        tables.push(report::cost(&ran));
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
            TruthFrom::BruteForce => "all documents compared".to_owned(),
        };
        Ok(Findings {
            name: "pipelines".to_owned(),
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
    /// Reads the pipeline of one run.
    ///
    /// # Errors
    /// All problems of the pipeline.
    pub fn plan(
        &self,
        planner: &dyn Planner,
        pipeline: &str,
        threshold: f64,
    ) -> Result<StudiedPlan, PlanError> {
        planner.plan(pipeline, &self.overrides(planner, pipeline, threshold))
    }

    /// A pipeline that decides by Hamming distance has no threshold to set: it is judged at each of them as
    /// it is.
    fn overrides(&self, planner: &dyn Planner, pipeline: &str, threshold: f64) -> Vec<String> {
        let by_distance = planner.plan(pipeline, &self.overrides).is_ok_and(|plan| plan.by_distance);
        let set = (!by_distance).then(|| format!("threshold={threshold}"));
        self.overrides.iter().cloned().chain(set).collect()
    }

    /// The pairs at the end of a run of a pipeline.
    ///
    /// # Errors
    /// If it cannot be run, or fails.
    pub(super) fn found(
        &self,
        bench: &Bench<'_>,
        pipeline: &str,
        threshold: f64,
    ) -> Result<Vec<Pair<DocId>>, EvaluateError> {
        Ok(self.replay(bench, pipeline, threshold)?.0)
    }

    /// Runs a pipeline as a process; the pairs at the end, and the stats.
    ///
    /// # Errors
    /// If it cannot be run, or fails.
    pub(super) fn replay(
        &self,
        bench: &Bench<'_>,
        pipeline: &str,
        threshold: f64,
    ) -> Result<(Vec<Pair<DocId>>, Counts), EvaluateError> {
        let failed = |message: String| EvaluateError::Pipeline { pipeline: pipeline.to_owned(), message };
        let stats = Temporary::new("stats.json");
        let mut command = Command::new(&self.program);
        command.args(["replay", "--emit", "pairs", "-p", pipeline]);
        command.arg("--workers").arg(bench.threads.to_string()).arg("--stats").arg(&stats.0);
        command.args(
            self.overrides(bench.planner, pipeline, threshold)
                .into_iter()
                .flat_map(|set| ["--set".to_owned(), set]),
        );
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
pub(super) struct Temporary(pub(super) PathBuf);

impl Temporary {
    /// One of this process, which ends in `name`.
    pub(super) fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("dupflow-evaluate-{}-{name}", std::process::id())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It may never have been made.
        drop(std::fs::remove_file(&self.0));
    }
}

/// What is right for each pipeline: all that has been computed, so that nothing is computed twice.
struct Truths<'s> {
    study: &'s Pipelines,
    /// From a file.
    read: Option<Truth>,
    computed: Vec<(OwnMeasure, f64, Truth)>,
}

impl<'s> Truths<'s> {
    fn new(study: &'s Pipelines) -> Result<Self, EvaluateError> {
        let read = match &study.truth {
            TruthFrom::Pairs(path) => Some(Truth::pairs(path)?),
            TruthFrom::Labels(path) => Some(Truth::labels(path)?),
            TruthFrom::BruteForce => None,
        };
        Ok(Self { study, read, computed: Vec::new() })
    }

    /// The truth that a file says, or Jaccard's by the pipeline's text rules.
    fn of(&mut self, plan: &StudiedPlan, floor: f64) -> Result<&Truth, EvaluateError> {
        if self.read.is_none() {
            self.compute(&OwnMeasure { rules: plan.scheme.text.clone(), by: By::Sets }, floor)
        } else {
            Ok(self.read.get_or_insert_default())
        }
    }

    /// The truth by the pipeline's own measure; `None` where a file says what is right, and there are too
    /// many documents.
    fn own(&mut self, plan: &StudiedPlan, floor: f64) -> Result<Option<&Truth>, EvaluateError> {
        let has_file = self.read.is_some();
        match self.compute(&OwnMeasure::of(&plan.scheme), floor) {
            Err(EvaluateError::TooLarge { .. }) if has_file => Ok(None),
            other => other.map(Some),
        }
    }

    fn compute(&mut self, measure: &OwnMeasure, floor: f64) -> Result<&Truth, EvaluateError> {
        let is_same = |(known, from, _): &(OwnMeasure, f64, _)| known == measure && *from <= floor;
        let place = if let Some(place) = self.computed.iter().position(is_same) {
            place
        } else {
            let texts =
                truth::texts(Input::resolve(&self.study.corpus, InputLayout::default())?, &measure.rules)?;
            let limit = self.study.limit;
            if texts.len() > limit {
                return Err(EvaluateError::TooLarge { documents: texts.len(), limit });
            }
            self.computed.push((measure.clone(), floor, Truth::brute_force(&texts, measure, floor)));
            self.computed.len() - 1
        };
        Ok(&self.computed[place].2)
    }
}
