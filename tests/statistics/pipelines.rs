//! Whole pipelines on whole corpora at T = 0.8: found pairs, missed pairs, wrong pairs.
//!
//! `cargo test --test statistics pipelines -- --nocapture` prints the tables.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use dupflow::config::Plan;
use dupflow::connectors::formats::InputLayout;
use dupflow::connectors::inputs::{Files, Input};
use dupflow::connectors::intake::{BadRecords, EpochRule, OnError};
use dupflow::connectors::sinks::MemorySink;
use dupflow::core::doc::DocId;
use dupflow::core::pair::Pair;
use dupflow::pipeline::{self, RunJob};
use parking_lot::Mutex;

use crate::bounds;
use crate::corpus::{Corpus, FLOOR};
use crate::data;

/// Events in an epoch; cuts are multiples of it.
const EPOCH: NonZeroU64 = NonZeroU64::new(1000).unwrap();

/// Bands of similarity, each from its start (inclusive) to the start of the next (exclusive); the last band
/// is exactly 1.
const BANDS: [f64; 5] = [0.8, 0.85, 0.9, 0.95, 1.0];

/// All deltas of a feed.
fn run(pipeline: &str, path: &Path) -> MemorySink {
    let overrides =
        [format!("threshold={FLOOR}"), "text.spaceless=run".to_owned(), "text.marks=split".to_owned()];
    deltas(&Plan::load(pipeline, &overrides).unwrap_or_else(|error| panic!("{error}")), path)
}

/// All deltas that a plan produces for a feed.
pub(crate) fn deltas(plan: &Plan, path: &Path) -> MemorySink {
    let sink = Arc::<Mutex<MemorySink>>::default();
    let inputs = Input::resolve([path], InputLayout::default()).unwrap();
    let files = Files::new(inputs, EpochRule::Events(EPOCH), plan.scheme.text.field_names());
    let job = RunJob {
        bad: Arc::new(BadRecords::new(OnError::Fail, None)),
        ..RunJob::new(plan, 2, Box::new(files), Box::new(Arc::clone(&sink)))
    };
    let summary = pipeline::run(job).unwrap();
    assert_eq!(summary.starred_groups, 0, "no group of copies is so large that its pairs are left out");
    let memory = sink.lock().clone();
    assert!(memory.finished);
    memory
}

/// The pairs found by a pipeline up to one cut, compared with the truth.
#[derive(Default)]
struct Outcome {
    emitted: usize,
    /// Emitted pairs with a true similarity below T, and below 0.72.
    below: usize,
    far_below: usize,
    /// Found pairs and all pairs, for each band.
    bands: [(usize, usize); BANDS.len()],
    /// The greatest difference between an emitted similarity and the true one.
    error: f64,
}

impl Outcome {
    fn new(corpus: &Corpus, cut: usize, found: &BTreeMap<Pair<DocId>, f64>) -> Self {
        let truth = &corpus.truth[corpus.cuts.iter().position(|c| *c == cut).unwrap()];
        let mut similarity = corpus.similarities(cut);
        let mut outcome = Self { emitted: found.len(), ..Self::default() };
        for (pair, reported) in found {
            let exact = truth.get(pair).copied().unwrap_or_else(|| similarity(pair));
            outcome.below += usize::from(exact < FLOOR);
            outcome.far_below += usize::from(exact < 0.72);
            outcome.error = outcome.error.max((reported - exact).abs());
        }
        for (pair, exact) in truth {
            let band = BANDS.partition_point(|from| from <= exact) - 1;
            outcome.bands[band].0 += usize::from(found.contains_key(pair));
            outcome.bands[band].1 += 1;
        }
        outcome
    }

    /// The share of the pairs from this band up that were found.
    fn recall(&self, first: usize) -> f64 {
        let (found, all) =
            self.bands[first..].iter().fold((0, 0), |sum, band| (sum.0 + band.0, sum.1 + band.1));
        assert!(all > 0);
        found as f64 / all as f64
    }

    /// Whether at most the planned 1 % of all pairs is missed. Of fewer than 100 pairs, where a single pair
    /// is more than that: at most as many as [`bounds::of_misses`] allows.
    fn reaches_plan(&self) -> bool {
        let (found, all) = self.bands.iter().fold((0, 0), |sum, band| (sum.0 + band.0, sum.1 + band.1));
        all - found <= if all < 100 { bounds::of_misses(all, 0.01) } else { all / 100 }
    }

    fn row(&self, corpus: &str, cut: usize, pipeline: &str) -> String {
        let mut row = format!("{corpus:22} {cut:6} {pipeline:8} {:6}", self.emitted);
        for (found, all) in self.bands {
            let share = if all == 0 { "-".to_owned() } else { format!("{:.4}", found as f64 / all as f64) };
            write!(row, " {:>14}", format!("{share} /{all}")).unwrap();
        }
        let precision = 1.0 - self.below as f64 / self.emitted.max(1) as f64;
        write!(row, " {:8.4} {precision:9.4} {:10}", self.recall(0), self.far_below).unwrap();
        row
    }
}

/// Runs both pipelines and asserts their promises.
fn check(corpus: &Corpus) {
    let mut table = format!("\n{:22} {:>6} {:8} {:>6}", "corpus", "events", "pipeline", "pairs");
    for band in ["[0.8, 0.85)", "[0.85, 0.9)", "[0.9, 0.95)", "[0.95, 1)", "1"] {
        write!(table, " {band:>14}").unwrap();
    }
    writeln!(table, " {:>8} {:>9} {:>10}", "recall", "precision", "below 0.72").unwrap();
    let mut broken = Vec::new();
    for pipeline in ["exact", "minhash"] {
        let memory = run(pipeline, &corpus.path);
        for &cut in &corpus.cuts {
            let accumulated = memory.accumulated((cut as u64).div_ceil(EPOCH.get()));
            assert!(accumulated.values().all(|count| *count == 1));
            let found: BTreeMap<_, _> = accumulated.into_keys().map(|(pair, s)| (pair, s.get())).collect();
            let outcome = Outcome::new(corpus, cut, &found);
            writeln!(table, "{}", outcome.row(corpus.name, cut, pipeline)).unwrap();
            let kept = match pipeline {
                // The recorded truth has 9 decimals.
                "exact" => {
                    outcome.below == 0
                        && outcome.error <= 1e-9
                        && outcome.reaches_plan()
                        && outcome.recall(0) >= 0.99
                }
                _ => outcome.recall(1) >= 0.985 && outcome.far_below * 1000 <= outcome.emitted,
            };
            if !kept {
                broken.push(format!("{pipeline} after {cut} events"));
            }
        }
    }
    println!("{table}");
    assert!(broken.is_empty(), "{broken:?}{table}");
}

#[test]
fn generated_texts() {
    let folder = tempfile::tempdir().unwrap();
    check(&Corpus::generated(folder.path()));
}

#[test]
fn documents_of_many_kinds() {
    if let Some(folder) = data::folder("pipelines on documents of many kinds") {
        check(&Corpus::documents(&folder, "static_10k_shared"));
    }
}

#[test]
fn history_of_short_texts() {
    if let Some(folder) = data::folder("pipelines on the history of short texts") {
        check(&Corpus::feed(&folder, "feed_tldr_half0", vec![15_000, 30_000, 45_000]));
    }
}

#[test]
fn history_of_long_texts() {
    if let Some(folder) = data::folder("pipelines on the history of long texts") {
        check(&Corpus::feed(&folder, "feed_psdocs_first8k", vec![2_000, 4_000, 6_000]));
    }
}
