//! `dupflow plan --sample` against runs: what is found of a corpus lies inside the error that the plan states
//! for a sample which is this corpus, and the blocks of a corpus inside those that a part of it lets expect.
//!
//! The README's test command tries generated texts; `DUPFLOW_SAMPLES=all` also tries recorded pages and the
//! end of a feed (`DUPFLOW_DATA`), which takes minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use dupflow::config::Plan;
use dupflow::connectors::formats::InputLayout;
use dupflow::connectors::inputs::Input;
use dupflow::core::doc::DocId;
use dupflow::core::pair::Pair;
use dupflow::forecast::sample::{MeasuredShare, SampleQuality, SampleReport};
use dupflow::lab::generate::{Generator, Params};
use dupflow::lab::truth::{self, OwnMeasure, Truth};

use crate::{data, pipelines};

/// All pipelines that have a report on a sample.
const PIPELINES: [&str; 8] =
    ["minhash", "exact", "onebit", "assured", "simhash", "sectional", "weighted", "paper"];

fn texts(plan: &Plan, path: &Path) -> BTreeMap<DocId, String> {
    let inputs = Input::resolve([path], InputLayout::default()).unwrap();
    truth::texts(inputs, &plan.scheme.text).unwrap()
}

/// Writes documents of the generator, in families of near-duplicates.
fn generated(folder: &Path, documents: u64) -> PathBuf {
    let params = Params { documents, near: 0.5, updates: 0.0, deletes: 0.0, ..Params::default() };
    let path = folder.join("generated.jsonl");
    let mut lines = Vec::new();
    for record in Generator::new(params) {
        dupflow::connectors::formats::feed::write(&mut lines, &record).unwrap();
    }
    std::fs::write(&path, lines).unwrap();
    path
}

/// Whether a share lies inside the intervals of some qualities, or between them.
fn is_inside(share: f64, stated: &[MeasuredShare]) -> bool {
    let low = stated.iter().map(|one| one.mean - one.error).fold(f64::INFINITY, f64::min);
    let high = stated.iter().map(|one| one.mean + one.error).fold(0.0, f64::max);
    (low..=high).contains(&share)
}

/// Runs a pipeline under its own seed, and compares it with what the plan says of the same texts.
fn check(pipeline: &str, path: &Path) -> Vec<String> {
    let plan = Plan::load(pipeline, &[]).unwrap();
    let all = texts(&plan, path);
    let report = SampleReport::new(&plan, &all, all.len() as u64, 2);
    let found: BTreeSet<Pair<DocId>> =
        pipelines::deltas(&plan, path).accumulated(u64::MAX).into_keys().map(|(pair, _)| pair).collect();
    let right = Truth::brute_force(&all, &OwnMeasure::for_scheme(&plan.scheme), plan.threshold);
    let hits = right.at(plan.threshold).filter(|(pair, _)| found.contains(*pair)).count() as f64;
    let (recall, precision) = (hits / report.right as f64, hits / found.len() as f64);
    let stated: Vec<SampleQuality> = report.quality.into_iter().chain(report.lagging).collect();
    println!("{pipeline:10} recall {recall:.4} precision {precision:.4}, stated {stated:?}");
    assert!(!stated.is_empty(), "{pipeline}: nothing is stated");
    [
        ("recall", recall, stated.iter().map(|one| one.recall).collect::<Vec<_>>()),
        ("precision", precision, stated.iter().map(|one| one.precision).collect()),
    ]
    .into_iter()
    .filter(|(_, share, stated)| !is_inside(*share, stated))
    .map(|(what, share, stated)| format!("{path:?}, {pipeline}: {what} {share:.4}, stated {stated:?}"))
    .collect()
}

#[test]
fn runs_are_inside_the_stated_error() {
    let folder = tempfile::tempdir().unwrap();
    let is_long = std::env::var("DUPFLOW_SAMPLES").is_ok_and(|which| which == "all");
    let mut corpora = vec![generated(folder.path(), if is_long { 10_000 } else { 400 })];
    if let Some(recorded) = data::folder("plans beside runs on recorded texts").filter(|_| is_long) {
        corpora.extend(
            ["static_10k_shared", "feed_tldr_half0"].map(|name| recorded.join(format!("{name}.jsonl.zst"))),
        );
    }
    // The last one takes most of the time.
    let pipelines = &PIPELINES[..if is_long { PIPELINES.len() } else { PIPELINES.len() - 1 }];
    let outside: Vec<String> =
        corpora.iter().flat_map(|path| pipelines.iter().flat_map(|pipeline| check(pipeline, path))).collect();
    assert!(outside.is_empty(), "{outside:#?}");
}

/// Half of the texts are pages of one template, which fills blocks; the part is every fourth text.
#[test]
fn a_part_shows_the_hot_blocks_of_the_whole() {
    let template: Vec<String> = (0..60).map(|n| format!("frame{n}")).collect();
    let text = |n: usize| {
        let own: Vec<String> = (0..12).map(|word| format!("w{n}x{word}")).collect();
        if n.is_multiple_of(2) { [&template[..], &own].concat() } else { own }.join(" ")
    };
    let texts = |step: usize| -> BTreeMap<DocId, String> {
        (0..3000).step_by(step).map(|n| (DocId::new(&format!("d{n}")).unwrap(), text(n / step))).collect()
    };
    let plan = Plan::load("minhash", &["blocking.documents=3000".to_owned()]).unwrap();
    let whole = SampleReport::new(&plan, &texts(1), 3000, 2).blocks;
    let of_part = SampleReport::new(&plan, &texts(4), 3000, 2);
    assert!(whole.hot > 5.0 && of_part.documents == 750, "{whole:?}");
    let near = |name: &str, part: f64, all: f64| {
        assert!((part / all - 1.0).abs() < 0.25, "{name}: {part}, of all {all}");
    };
    near("hot blocks", of_part.blocks.hot, whole.hot);
    near("largest", of_part.blocks.largest, whole.largest);
    near("meetings", of_part.blocks.meetings, whole.meetings);
    let cap = format!("blocking.cap={}", of_part.blocks.cap());
    let larger = Plan::load("minhash", &["blocking.documents=3000".to_owned(), cap]).unwrap();
    let unlimited = SampleReport::new(&larger, &texts(1), 3000, 2).blocks;
    assert!(unlimited.hot < 1e-9, "the cap that is advised: {unlimited:?}");
    // Without the template there is none.
    let plain = texts(4).into_iter().filter(|(_, page)| !page.contains("frame")).collect();
    let plain = SampleReport::new(&plan, &plain, 3000, 2).blocks;
    assert!(plain.hot < 1e-9 && plain.meetings < 0.1, "{plain:?}");
}
