//! Keep lists of a real corpus: no two kept documents are near copies of each other.

use std::path::PathBuf;
use std::sync::Arc;

use dupflow::config::Plan;
use dupflow::connectors::inputs::{Files, Input};
use dupflow::connectors::intake::{BadRecords, EpochRule, OnError};
use dupflow::connectors::sinks::{DocumentList, KeepList, RemovalRule};
use dupflow::core::cluster::{Clusters, KeepRule};
use dupflow::pipeline::{self, RunJob};
use serde_json::Value;

use crate::corpus::{Corpus, FLOOR};
use crate::data;

/// No pair of this similarity or more may remain. It is three standard errors of the estimate above T, so a
/// pair exactly there is missed with a probability of about 1 in 1,000, and few pairs are there. Seeds are
/// pinned.
const CLEAR: f64 = 0.85;

/// The ids of a list.
fn list(corpus: &Corpus, kind: &str, keep: &KeepRule, listed: DocumentList) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("list.jsonl");
    let overrides = [format!("threshold={FLOOR}"), format!("output.clusters={kind}")];
    let plan = Plan::load("minhash", &overrides).unwrap();
    let clusters = Clusters::new(plan.clusters, plan.cluster_limit);
    let out = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let files = Files::new(vec![Input::at(&corpus.path)], EpochRule::All, Vec::new());
    let list = KeepList::new(out, RemovalRule::Clusters(Box::new(clusters), keep.clone()), listed);
    let job = RunJob {
        bad: Arc::new(BadRecords::new(OnError::Fail, None)),
        ..RunJob::new(&plan, 2, Box::new(files), Box::new(list))
    };
    pipeline::run(job).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    text.lines().map(id).collect()
}

#[test]
fn no_two_near_copies_are_kept() {
    let Some(folder) = data::folder("keep lists of static_10k_shared") else { return };
    let corpus = Corpus::documents(&folder, "static_10k_shared");
    let clear: Vec<_> = corpus.truth[0].iter().filter(|(_, similarity)| **similarity >= CLEAR).collect();
    assert!(clear.len() > 100, "{} pairs", clear.len());
    for (kind, keep) in [("components", KeepRule::Smallest), ("star", KeepRule::Named)] {
        let kept = list(&corpus, kind, &keep, DocumentList::Kept);
        let removed = list(&corpus, kind, &keep, DocumentList::Removed);
        println!("{kind}, {keep}: {} kept, {} removed", kept.len(), removed.len());
        let both = |a: &[String], id: &str| a.binary_search_by(|one| one.as_str().cmp(id)).is_ok();
        for (pair, similarity) in &clear {
            let are_kept = [pair.lo(), pair.hi()].map(|id| both(&kept, id.as_str()));
            assert_ne!(are_kept, [true, true], "{kind}: {pair:?}, of {similarity}, are both kept");
        }
        let mut all: Vec<_> = kept.iter().chain(&removed).collect();
        let parts = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), parts), (10_000, 10_000), "the two part the corpus");
    }
}
