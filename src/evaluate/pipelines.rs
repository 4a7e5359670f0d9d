//! Whole pipelines on a corpus, held against the truth about it: precision, recall, and what it took.
//!
//! Each pipeline runs at each threshold for itself, since its blocks and its filter are made for the threshold, and as a process of
//! its own (`dupflow replay`), so that its time and its memory are its own too. A pair is right iff its true similarity is at least
//! the threshold: *precision* is the share of right pairs among those found, *recall* the share of those found among the right ones,
//! F1 their harmonic mean.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::plot::{Axis, Plot, Series};
use super::table::{Column, Table, Value, row};
use super::truth::Truth;
use super::{Bench, EvaluateError, Findings, Study};
use crate::config::{Draft, FilterPlan, PlanError};
use crate::doc::DocId;
use crate::filter::FilterKind;
use crate::pair::Pair;
use crate::source::Input;
use crate::text::TextRules;

/// Bands of true similarity, each from its start (inclusive) to the next one's (exclusive); the last one is 1 alone.
const BANDS: [f64; 12] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0];

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

/// The study.
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

/// What of a run's stats is told.
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

/// Pairs found, held against the truth.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    found: usize,
    /// Right pairs.
    right: usize,
    /// Right pairs that are found.
    hits: usize,
    /// Found and all pairs of each band of true similarity.
    bands: [(usize, usize); BANDS.len()],
}

impl Outcome {
    fn of(truth: &Truth, threshold: f64, found: &[Pair<DocId>]) -> Self {
        let band = |similarity: f64| BANDS.partition_point(|from| *from <= similarity).checked_sub(1);
        let mut outcome = Self { found: found.len(), right: 0, hits: 0, bands: [(0, 0); BANDS.len()] };
        for (_, similarity) in truth.at(0.0) {
            outcome.right += usize::from(similarity >= threshold);
            if let Some(band) = band(similarity) {
                outcome.bands[band].1 += 1;
            }
        }
        for similarity in found.iter().filter_map(|pair| truth.pairs.get(pair).copied()) {
            outcome.hits += usize::from(similarity >= threshold);
            if let Some(band) = band(similarity) {
                outcome.bands[band].0 += 1;
            }
        }
        outcome
    }

    fn precision(&self) -> Option<f64> {
        share(self.hits, self.found)
    }

    fn recall(&self) -> Option<f64> {
        share(self.hits, self.right)
    }

    fn f1(&self) -> Option<f64> {
        share(2 * self.hits, self.found + self.right)
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
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
        let mut tables = vec![quality(&ran), cost(&ran)];
        let mut plots = vec![];
        if graded {
            tables.insert(1, by_band(&ran));
            plots.extend(self.thresholds.iter().map(|threshold| found_by_similarity(&ran, *threshold)));
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

/// A file that is gone when this is.
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

fn quality(ran: &[Ran]) -> Table {
    let mut table = Table::new(
        "pipelines_quality",
        "Precision and recall",
        "Of the pairs found and of the right ones, those of a true similarity of at least T.",
        &["pipeline", "T", "pairs found", "right pairs", "found and right", "precision", "recall", "F1"],
    );
    for Ran { pipeline, threshold, outcome, .. } in ran {
        table.push(row![
            pipeline.as_str(),
            *threshold,
            outcome.found,
            outcome.right,
            outcome.hits,
            outcome.precision(),
            outcome.recall(),
            outcome.f1(),
        ]);
    }
    table
}

/// "[0.8, 0.85)", or "1".
fn band_name(band: usize) -> String {
    BANDS.get(band + 1).map_or_else(|| "1".to_owned(), |end| format!("[{}, {end})", BANDS[band]))
}

fn by_band(ran: &[Ran]) -> Table {
    let held: Vec<usize> =
        (0..BANDS.len()).filter(|band| ran.iter().any(|ran| ran.outcome.bands[*band].1 > 0)).collect();
    let mut table = Table::new(
        "pipelines_bands",
        "Share of pairs found, by true similarity",
        "Below T it should be 0, from T on 1. The last row has the pairs that there are, as far as the truth knows them.",
        &["pipeline", "T"],
    );
    table.columns.extend(held.iter().map(|band| Column { name: band_name(*band), unit: "" }));
    for Ran { pipeline, threshold, outcome, .. } in ran {
        let mut row = row![pipeline.as_str(), *threshold];
        row.extend(held.iter().map(|band| {
            let (found, all) = outcome.bands[*band];
            Value::from(share(found, all))
        }));
        table.push(row);
    }
    if let Some(first) = ran.first() {
        let mut row = row!["all pairs", Value::None];
        row.extend(held.iter().map(|band| Value::from(first.outcome.bands[*band].1)));
        table.push(row);
    }
    table
}

fn cost(ran: &[Ran]) -> Table {
    let mut table = Table::new(
        "pipelines_cost",
        "What it took",
        "Meetings of two sketches in a block; of these, those that the first word did not end are compared. Bytes are the most that \
         the process held, its program included, per document alive at the end.",
        &[
            "pipeline",
            "T",
            "pairs",
            "meetings",
            "compared",
            "components per comparison",
            "time, s",
            "events, 1/s",
            "memory, bytes/document",
        ],
    );
    for Ran { pipeline, threshold, counts, .. } in ran {
        let compared: u64 = counts.compared_by_stage.iter().skip(1).sum();
        table.push(row![
            pipeline.as_str(),
            *threshold,
            counts.pairs,
            counts.candidates,
            compared,
            (compared > 0).then(|| counts.components_compared as f64 / compared as f64),
            counts.seconds,
            counts.events as f64 / counts.seconds.max(1e-9),
            counts.peak_rss_bytes as f64 / counts.documents.max(1) as f64,
        ]);
    }
    table
}

/// The share of pairs found, by true similarity.
fn found_by_similarity(ran: &[Ran], threshold: f64) -> Plot {
    let of_plot = ran.iter().filter(|ran| ran.threshold.total_cmp(&threshold).is_eq());
    let series = of_plot.map(|Ran { pipeline, outcome, .. }| {
        let point =
            |(from, (found, all)): (f64, (usize, usize))| share(found, all).map(|share| (from, share));
        let points = BANDS.into_iter().zip(outcome.bands).filter_map(point).collect();
        Series { name: pipeline.clone(), points }
    });
    Plot {
        name: format!("pipelines_found_{threshold}"),
        title: format!("Share of pairs found, T = {threshold}"),
        x: Axis::linear("true similarity, start of the band"),
        y: Axis::linear("share found"),
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(a: &str, b: &str) -> Pair<DocId> {
        Pair::new(DocId::new(a).unwrap(), DocId::new(b).unwrap()).unwrap()
    }

    /// Right are three of four pairs; found are two of these, the fourth, and one that is unknown.
    #[test]
    fn precision_and_recall_by_hand() {
        let pairs = [("a", "b", 0.8), ("a", "c", 0.9), ("b", "c", 1.0), ("c", "d", 0.75)];
        let pairs = pairs.into_iter().map(|(a, b, s)| (pair(a, b), s)).collect();
        let truth = Truth { pairs, graded: true };
        let found = [pair("a", "b"), pair("b", "c"), pair("c", "d"), pair("x", "y")];
        let outcome = Outcome::of(&truth, 0.8, &found);
        assert_eq!((outcome.found, outcome.right, outcome.hits), (4, 3, 2));
        assert_eq!((outcome.precision(), outcome.f1()), (Some(0.5), Some(4.0 / 7.0)));
        assert_eq!(outcome.recall(), Some(2.0 / 3.0));
        let held: Vec<_> = (0..BANDS.len()).filter(|b| outcome.bands[*b].1 > 0).collect();
        assert_eq!(
            held.iter().map(|b| band_name(*b)).collect::<Vec<_>>(),
            ["[0.7, 0.8)", "[0.8, 0.85)", "[0.9, 0.95)", "1"]
        );
        assert_eq!(
            held.iter().map(|b| outcome.bands[*b]).collect::<Vec<_>>(),
            [(1, 1), (1, 1), (0, 1), (1, 1)]
        );
    }

    #[test]
    fn nothing_found_has_no_precision() {
        let outcome = Outcome::of(&Truth::default(), 0.8, &[]);
        assert_eq!((outcome.precision(), outcome.recall(), outcome.f1()), (None, None, None));
    }
}
