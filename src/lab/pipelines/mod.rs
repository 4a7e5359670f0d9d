//! Whole pipelines on a corpus with known duplicates: precision, recall and cost.
//!
//! Each pipeline runs once per threshold, since its blocks and its filter are planned for the threshold. Each
//! run is a separate process (`dupflow replay`), so that its time and memory can be measured. A pair is right
//! if its true similarity is at least the threshold. *Precision* is the fraction of the found pairs that are
//! right, *recall* the fraction of the right pairs that are found, F1 their harmonic mean.
//!
//! In addition each pipeline is judged by its own measure (weighted Jaccard, cosine, q J), by brute force
//! over the features of all documents, if there are not too many. For sets and sections this costs as much as
//! [`oracle::pairs`](dupflow_core::oracle::pairs); for weights, one addition per term and pair of documents
//! that share the term.

mod outcome;
mod report;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::truth::{self, JudgedPairs, OwnMeasure, SimilarityKind, Truth};
use super::{EvaluateError, Findings, Planner, PlannerError, StudiedPlan, Study, StudyContext};
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::inputs::Input;
use dupflow_core::doc::DocId;
use dupflow_core::pair::Pair;
use dupflow_core::text::TextRules;
use outcome::PairOutcome;

/// The source of the truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TruthFrom {
    /// A file of pairs or deltas.
    Pairs(PathBuf),
    /// A file of labels.
    Labels(PathBuf),
    /// A file of judged pairs: pairs that it does not have do not count.
    Judged(PathBuf),
    /// All documents compared with each other, by the text rules of each pipeline.
    BruteForce,
}

/// The study of whole pipelines.
#[derive(Clone, Debug)]
pub struct Pipelines {
    /// Names or paths of the pipelines.
    pub pipelines: Vec<String>,
    /// Overrides for all pipelines.
    pub overrides: Vec<String>,
    /// The thresholds, which were checked with every pipeline.
    pub thresholds: Vec<f64>,
    /// The corpus or feed; not standard input, since it is read more than once.
    pub corpus: Vec<PathBuf>,
    /// How it is read.
    pub layout: InputLayout,
    /// The truth.
    pub truth: TruthFrom,
    /// Maximum number of documents for brute force.
    pub limit: usize,
    /// The path of the program.
    pub program: PathBuf,
}

/// The result of one pipeline at one threshold.
struct PipelineRun {
    pipeline: String,
    threshold: f64,
    counts: RunCounts,
    outcome: PairOutcome,
    /// By its own measure, if it was computed: the measure, the threshold by it, and the outcome.
    own: Option<(String, f64, PairOutcome)>,
}

/// The statistics of a run that are reported.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RunCounts {
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
struct FoundLine {
    a: DocId,
    b: DocId,
}

impl Study for Pipelines {
    fn run(&self, bench: &StudyContext<'_>) -> Result<Findings, EvaluateError> {
        let mut truths = TruthCache::new(self, bench.planner)?;
        let lowest = self.thresholds.iter().copied().fold(1.0, f64::min);
        let mut runs = Vec::new();
        for pipeline in &self.pipelines {
            for (n, &threshold) in self.thresholds.iter().enumerate() {
                let plan = self.plan(bench.planner, pipeline, threshold)?;
                let (mut found, counts) = self.replay(bench, pipeline, threshold)?;
                if let Some(judged) = &truths.judged {
                    found.retain(|pair| judged.get(pair).is_some());
                }
                let outcome = PairOutcome::new(truths.shared(&plan, lowest)?, threshold, &found);
                // A pipeline that decides by distance has its own threshold, the same for each run.
                let floor = if plan.by_distance { plan.threshold } else { lowest };
                let own =
                    (n == 0 || !plan.by_distance).then(|| truths.own(&plan, floor)).transpose()?.flatten();
                let measure = OwnMeasure::for_scheme(&plan.scheme).to_string();
                let own = own
                    .map(|truth| (measure, plan.threshold, PairOutcome::new(truth, plan.threshold, &found)));
                runs.push(PipelineRun { pipeline: pipeline.clone(), threshold, counts, outcome, own });
            }
        }
        let graded = truths.read.as_ref().is_none_or(|truth| truth.graded);
        let corpus: Vec<_> = self.corpus.iter().filter_map(|path| path.file_name()).collect();
        let mut tables = vec![report::quality(&runs, truths.judged.is_some())];
        tables.extend(report::own(&runs));
        tables.push(report::cost(&runs));
        let mut plots = vec![];
        if graded {
            tables.insert(1, report::by_band(&runs));
            plots.extend(
                self.thresholds.iter().map(|threshold| report::found_by_similarity(&runs, *threshold)),
            );
        }
        let truth = match self.truth.path() {
            Some(path) if truths.missing > 0 => format!(
                "{:?}, of whose {} pairs {} have a document that is not in the corpus and do not count",
                path.file_name().unwrap_or_default(),
                truths.named,
                truths.missing,
            ),
            Some(path) => format!("{:?}", path.file_name().unwrap_or_default()),
            None => "all documents compared".to_owned(),
        };
        Ok(Findings {
            name: "pipelines".to_owned(),
            title: "Pipelines".to_owned(),
            about: format!(
                "Corpus {corpus:?}, {} events that leave {} documents; truth: {truth}. Each pipeline at each \
                    threshold is a run of its own in a process of its own, {} workers.{}",
                runs.first().map_or(0, |runs| runs.counts.events),
                runs.first().map_or(0, |runs| runs.counts.documents),
                bench.threads,
                self.overrides.iter().map(|set| format!(" --set {set}")).collect::<String>(),
            ),
            tables,
            plots,
        })
    }
}

impl TruthFrom {
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Pairs(path) | Self::Labels(path) | Self::Judged(path) => Some(path),
            Self::BruteForce => None,
        }
    }
}

impl Pipelines {
    fn inputs(&self) -> Result<Vec<Input>, EvaluateError> {
        Ok(Input::resolve(&self.corpus, self.layout.clone())?)
    }

    /// The checked pipeline of one run.
    ///
    /// # Errors
    /// All problems of the pipeline.
    pub fn plan(
        &self,
        planner: &dyn Planner,
        pipeline: &str,
        threshold: f64,
    ) -> Result<StudiedPlan, PlannerError> {
        planner.plan(pipeline, &self.overrides(planner, pipeline, threshold))
    }

    /// The overrides of one run. A pipeline that decides by Hamming distance has no threshold to set; it is
    /// judged unchanged at each threshold.
    fn overrides(&self, planner: &dyn Planner, pipeline: &str, threshold: f64) -> Vec<String> {
        let by_distance = planner.plan(pipeline, &self.overrides).is_ok_and(|plan| plan.by_distance);
        let set = (!by_distance).then(|| format!("threshold={threshold}"));
        self.overrides.iter().cloned().chain(set).collect()
    }

    /// The pairs at the end of a run of a pipeline.
    ///
    /// # Errors
    /// If it cannot be started, or fails.
    pub(super) fn found(
        &self,
        bench: &StudyContext<'_>,
        pipeline: &str,
        threshold: f64,
    ) -> Result<Vec<Pair<DocId>>, EvaluateError> {
        Ok(self.replay(bench, pipeline, threshold)?.0)
    }

    /// Runs a pipeline as a process; returns the pairs at the end, and the statistics.
    ///
    /// # Errors
    /// If it cannot be started, or fails.
    pub(super) fn replay(
        &self,
        bench: &StudyContext<'_>,
        pipeline: &str,
        threshold: f64,
    ) -> Result<(Vec<Pair<DocId>>, RunCounts), EvaluateError> {
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
        command.args(self.layout.options().into_iter().map(|(name, value)| match value {
            Some(value) => format!("--{name}={value}"),
            None => format!("--{name}"),
        }));
        command.arg("--").args(self.corpus.iter().map(OsString::from));
        let output = command.stdin(Stdio::null()).output().map_err(EvaluateError::file(&self.program))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let counts = std::fs::read(&stats.0).map_err(EvaluateError::file(&stats.0))?;
        let counts = serde_json::from_slice(&counts).map_err(|error| failed(error.to_string()))?;
        let pairs = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<FoundLine>();
        let pairs = pairs.map(|found| found.map(|FoundLine { a, b }| Pair::new(a, b)));
        let pairs: Result<Option<Vec<_>>, _> =
            pairs.collect::<Result<Vec<_>, _>>().map(|all| all.into_iter().collect());
        let pairs = pairs.map_err(|error| failed(error.to_string()))?;
        Ok((pairs.ok_or_else(|| failed("a pair of one document".to_owned()))?, counts))
    }
}

/// A path of a temporary file, which is removed on drop.
pub(super) struct Temporary(pub(super) PathBuf);

impl Temporary {
    /// A path of this process that ends in `name`.
    pub(super) fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("dupflow-evaluate-{}-{name}", std::process::id())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // The file may not exist.
        drop(std::fs::remove_file(&self.0));
    }
}

/// The truths of the pipelines, cached by text rules and measure.
struct TruthCache<'s> {
    study: &'s Pipelines,
    /// The truth of a file: pairs of documents that are in the corpus.
    read: Option<Truth>,
    /// If its pairs are judged: they, and those that are judged to be no duplicates.
    judged: Option<JudgedPairs>,
    /// Pairs of the file.
    named: usize,
    /// Those with a document that is not in the corpus.
    missing: usize,
    computed: Vec<(OwnMeasure, f64, Truth)>,
}

impl<'s> TruthCache<'s> {
    /// # Errors
    /// If the file or the corpus cannot be read; if the file has pairs, all of documents that are not in the
    /// corpus.
    fn new(study: &'s Pipelines, planner: &dyn Planner) -> Result<Self, EvaluateError> {
        let mut cache = Self { study, read: None, judged: None, named: 0, missing: 0, computed: Vec::new() };
        let Some(path) = study.truth.path() else { return Ok(cache) };
        let rules = match (study.pipelines.first(), study.thresholds.first()) {
            (Some(pipeline), Some(threshold)) => study.plan(planner, pipeline, *threshold)?.scheme.text,
            _ => TextRules::default(),
        };
        let alive = truth::ids(study.inputs()?, &rules)?;
        let mut example = None;
        let mut is_alive = |pair: &Pair<DocId>| {
            let is_alive = alive.contains_key(pair.lo()) && alive.contains_key(pair.hi());
            if !is_alive {
                example.get_or_insert_with(|| pair.clone());
            }
            is_alive
        };
        let left = if let TruthFrom::Judged(_) = study.truth {
            let judged = cache.judged.insert(JudgedPairs::read(path)?);
            cache.named = judged.retain(is_alive);
            cache.read = Some(Truth::judged(judged));
            judged.iter().count()
        } else {
            let mut truth = match study.truth {
                TruthFrom::Labels(_) => Truth::labels(path)?,
                _ => Truth::pairs(path)?,
            };
            cache.named = truth.pairs.len();
            truth.pairs.retain(|pair, _| is_alive(pair));
            cache.read.insert(truth).pairs.len()
        };
        cache.missing = cache.named - left;
        match example {
            Some(example) if left == 0 => {
                Err(EvaluateError::OtherDocuments { path: path.to_owned(), pairs: cache.named, example })
            }
            None if left == 0 => Err(EvaluateError::NoPair { path: path.to_owned() }),
            _ => Ok(cache),
        }
    }

    /// The truth of the file, or Jaccard similarity by the pipeline's text rules.
    fn shared(&mut self, plan: &StudiedPlan, floor: f64) -> Result<&Truth, EvaluateError> {
        if self.read.is_none() {
            self.compute(&OwnMeasure { rules: plan.scheme.text.clone(), by: SimilarityKind::Sets }, floor)
        } else {
            Ok(self.read.get_or_insert_default())
        }
    }

    /// The truth by the pipeline's own measure; `None` if the truth is a file and there are too many
    /// documents.
    fn own(&mut self, plan: &StudiedPlan, floor: f64) -> Result<Option<&Truth>, EvaluateError> {
        if matches!(self.study.truth, TruthFrom::Judged(_)) {
            // The pairs that were found are not all that are right.
            return Ok(None);
        }
        let has_file = self.read.is_some();
        match self.compute(&OwnMeasure::for_scheme(&plan.scheme), floor) {
            Err(EvaluateError::TooLarge { .. }) if has_file => Ok(None),
            other => other.map(Some),
        }
    }

    fn compute(&mut self, measure: &OwnMeasure, floor: f64) -> Result<&Truth, EvaluateError> {
        let is_same = |(known, from, _): &(OwnMeasure, f64, _)| known == measure && *from <= floor;
        let place = if let Some(place) = self.computed.iter().position(is_same) {
            place
        } else {
            let texts = truth::texts(self.study.inputs()?, &measure.rules)?;
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
