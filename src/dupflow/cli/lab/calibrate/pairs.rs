//! The pairs of the corpus, and the texts of those that are to be judged.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::Context as _;
use parking_lot::Mutex;

use crate::cli::arguments::problems;
use crate::config::Plan;
use crate::pipeline::{self, RunJob};
use dupflow_connectors::inputs::{Files, Input, for_each_event};
use dupflow_connectors::intake::{BadRecords, EpochRule, OnError};
use dupflow_connectors::sinks::MemorySink;
use dupflow_core::doc::DocId;
use dupflow_core::time::Epoch;
use dupflow_lab::calibrate::SimilarPair;
use dupflow_lab::truth::JudgedPairs;

/// The texts of documents.
pub(super) type TextsById = BTreeMap<DocId, String>;

/// All pairs of the corpus by the pipeline.
///
/// # Errors
/// If an input cannot be read, or holds records but no document.
pub(super) fn found(
    plan: &Plan,
    inputs: Vec<Input>,
    workers: Option<NonZeroUsize>,
) -> anyhow::Result<Vec<SimilarPair>> {
    let sink = Arc::new(Mutex::new(MemorySink::default()));
    let files = Files::new(inputs, EpochRule::All, plan.scheme.text.columns());
    let cores = || std::thread::available_parallelism().ok();
    let workers = workers.or_else(cores).map_or(1, NonZeroUsize::get);
    let job = RunJob::new(plan, workers, Box::new(files), Box::new(Arc::clone(&sink)));
    let summary = pipeline::run(job)?;
    problems::check_demands(&summary.unmet)?;
    let bad: u64 = summary.bad_records.values().sum();
    if bad > 0 {
        tracing::warn!("{bad} records are no event, and are in no pair");
    }
    let pairs = sink.lock().accumulated(Epoch::MAX).into_keys();
    Ok(pairs.map(|(pair, similarity)| SimilarPair { pair, similarity: similarity.get() }).collect())
}

/// The last texts of the documents of these pairs.
///
/// # Errors
/// If an input cannot be read.
pub(super) fn texts(plan: &Plan, inputs: Vec<Input>, pairs: &[&SimilarPair]) -> anyhow::Result<TextsById> {
    let ids = pairs.iter().flat_map(|found| [found.pair.lo(), found.pair.hi()]);
    let mut texts: TextsById = ids.map(|id| (id.clone(), String::new())).collect();
    let bad = BadRecords::new(OnError::Count, None);
    for_each_event(inputs, &plan.scheme.text.columns(), &bad, |_, event| {
        if let Some((kept, text)) = texts.get_mut(&event.id).zip(event.text) {
            *kept = text.into_owned();
        }
    })
    .context("reading the texts of the drawn pairs")?;
    Ok(texts)
}

/// Pairs that are not judged as lines for `--labels`, with their similarities and texts.
pub(super) fn lines(pairs: &[&SimilarPair], texts: &TextsById) -> String {
    let line = |found: &&SimilarPair| {
        let line = JudgedPairs::line(&found.pair, None);
        let more = serde_json::json!({
            "similarity": found.similarity,
            "text_a": texts[found.pair.lo()],
            "text_b": texts[found.pair.hi()],
        });
        format!("{},{}\n", line.trim_end_matches('}'), more.to_string().trim_start_matches('{'))
    };
    pairs.iter().map(line).collect()
}
