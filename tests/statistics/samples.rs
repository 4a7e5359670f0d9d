//! `dupflow plan --sample` against runs: what is found of a corpus lies inside the interval that the plan
//! states for a sample which is this corpus, and the blocks of a corpus near those that a part of it lets
//! expect.
//!
//! The README's test command tries generated texts; `DUPFLOW_SAMPLES=all` also tries recorded pages and the
//! end of a feed (`DUPFLOW_DATA`), which takes minutes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use dupflow::config::Plan;
use dupflow::connectors::formats::InputLayout;
use dupflow::connectors::formats::feed;
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

/// Documents in the order of reading.
type Documents = Vec<(DocId, String)>;

fn documents(plan: &Plan, path: &Path) -> Documents {
    let inputs = Input::resolve([path], InputLayout::default()).unwrap();
    truth::read(inputs, &plan.scheme.text).unwrap()
}

/// Writes documents of the generator, in families of near-duplicates.
fn generated(folder: &Path, documents: u64) -> PathBuf {
    let params = Params { documents, near: 0.5, updates: 0.0, deletes: 0.0, ..Params::default() };
    let path = folder.join("generated.jsonl");
    let mut lines = Vec::new();
    for record in Generator::new(params) {
        feed::write(&mut lines, &record).unwrap();
    }
    std::fs::write(&path, lines).unwrap();
    path
}

/// Whether a share lies inside the intervals of some qualities, or between them.
fn is_inside(share: f64, stated: &[MeasuredShare]) -> bool {
    let low = stated.iter().map(|one| one.low).fold(f64::INFINITY, f64::min);
    let high = stated.iter().map(|one| one.high).fold(0.0, f64::max);
    (low..=high).contains(&share)
}

/// Runs a pipeline under its own seed, and compares it with what the plan says of the same texts.
fn check(pipeline: &str, path: &Path) -> Vec<String> {
    let plan = Plan::load(pipeline, &[]).unwrap();
    let read = documents(&plan, path);
    let found: BTreeSet<Pair<DocId>> =
        pipelines::deltas(&plan, path).accumulated(u64::MAX).into_keys().map(|(pair, _)| pair).collect();
    let texts = read.iter().cloned().collect();
    let right = Truth::brute_force(&texts, &OwnMeasure::for_scheme(&plan.scheme), plan.threshold);
    let hits = right.at(plan.threshold).filter(|(pair, _)| found.contains(*pair)).count() as f64;
    let count = read.len() as u64;
    let report = SampleReport::new(&plan, read, count, 2);
    // Copies are compared once, and counted as what they are.
    assert_eq!(report.right, right.at(plan.threshold).count(), "{pipeline}");
    let (recall, precision) = (hits / report.right as f64, hits / found.len() as f64);
    let stated: Vec<SampleQuality> = report.quality.into_iter().chain(report.lagging).collect();
    println!("{pipeline:10} recall {recall:.4} precision {precision:.4}, stated {stated:?}");
    assert!(!stated.is_empty(), "{pipeline}: nothing is stated");
    let mut outside = Vec::new();
    for (what, share, of) in [
        ("recall", recall, (|one| one.recall) as fn(&SampleQuality) -> MeasuredShare),
        ("precision", precision, |one| one.precision),
    ] {
        let of_it: Vec<MeasuredShare> = stated.iter().map(of).collect();
        // 64 bits of short texts say little, and weights by half of a feed that comes in families; others do.
        let widest = match pipeline {
            "simhash" => 0.7,
            "weighted" => 0.6,
            _ => 0.4,
        };
        assert!(of_it.iter().all(|one| one.high - one.low < widest), "{pipeline}, {what}: {of_it:?}");
        if !is_inside(share, &of_it) {
            outside.push(format!("{path:?}, {pipeline}: {what} {share:.4}, stated {of_it:?}"));
        }
    }
    outside
}

#[test]
fn runs_are_inside_the_stated_interval() {
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

fn id(n: usize) -> DocId {
    DocId::new(&format!("d{n}")).unwrap()
}

/// Words that no other number has.
fn own(n: usize, words: usize) -> String {
    (0..words).map(|word| format!("w{n}x{word} ")).collect()
}

/// Of every 400 texts 200 are pages of one template, and the others alike to no other one.
fn templates(documents: usize) -> Documents {
    let frame = own(999_999, 60);
    let page = |n: usize| if n.is_multiple_of(2) { frame.clone() + &own(n, 12) } else { own(n, 12) };
    (0..documents).map(|n| (id(n), page(n))).collect()
}

fn blocks_of(settings: &[&str], read: Documents, documents: u64) -> SampleReport {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    SampleReport::new(&Plan::load("minhash", &settings).unwrap(), read, documents, 2)
}

/// The part has a fourth of the texts.
#[test]
fn a_part_shows_the_hot_blocks_of_the_whole() {
    const PLANNED: &str = "blocking.documents=3000";
    let whole = blocks_of(&[PLANNED], templates(3000), 3000).blocks;
    let part = blocks_of(&[PLANNED], templates(750), 3000).blocks;
    assert!(whole.hot > 5.0 && part.shown_from > whole.shown_from, "{whole:?}");
    let near = |name: &str, of_part: Option<f64>, all: Option<f64>| {
        let ratio = of_part.unwrap() / all.unwrap();
        assert!((ratio - 1.0).abs() < 0.25, "{name}: {part:?}, of all {whole:?}");
    };
    near("hot blocks", Some(part.hot), Some(whole.hot));
    near("largest", Some(part.largest), Some(whole.largest));
    near("meetings", part.meetings, whole.meetings);
    near("meetings without hot blocks", part.meetings_uncapped, whole.meetings_uncapped);
    let unlimited = blocks_of(&[PLANNED, &format!("blocking.cap={}", part.cap)], templates(3000), 3000);
    assert!(unlimited.blocks.hot < 1e-9, "the cap that is advised: {unlimited:?}");
    near("meetings as advised", part.meetings_uncapped, unlimited.blocks.meetings);
    // Without the template there is none, and no more than a block at the cap can have.
    let plain = templates(750).into_iter().filter(|(_, page)| !page.contains("w999999x")).collect();
    let plain = blocks_of(&[PLANNED], plain, 3_000_000).blocks;
    assert!(plain.hot < 1e-9 && plain.meetings.unwrap() < 18.0 * 95.0, "{plain:?}");
}

/// Pages of a template that are near-duplicates of each other in pairs. In the part, every fourth pair, all
/// are found; the whole loses those that share hot blocks only, and the part says how many.
#[test]
fn a_part_shows_the_recall_that_hot_blocks_leave() {
    let page = |n: usize| own(999_999, 120) + &own(n / 2, 14) + if n.is_multiple_of(2) { "a" } else { "b" };
    let pages = |documents: usize| -> Documents { (0..documents).map(|n| (id(n), page(n))).collect() };
    let settings = &["threshold=0.95", "blocking.bands=2", "blocking.rows=4", "blocking.recall=0.9"];
    let whole = blocks_of(settings, pages(480), 480);
    let part = blocks_of(settings, pages(120), 480);
    let (before, after) = (part.quality.unwrap().recall.mean, part.blocks.recall.unwrap());
    let measured = whole.quality.unwrap().recall.mean;
    assert!(before - after > 0.05, "the part loses pairs in the whole: {part:?}");
    assert!((after - measured).abs() < 0.1, "{after} expected, {measured} of the whole: {whole:?}");
    let advised = part.to_string();
    assert!(advised.contains("! pairs that share hot blocks only are lost"), "{advised}");
}

/// Fifteen texts with eight copies each: a larger corpus has more copies, and no more texts.
#[test]
fn copies_are_no_others() {
    let read: Documents = (0..120).map(|n| (id(n), own(999_999, 80) + &own(n % 15, 6))).collect();
    let report = blocks_of(&["threshold=0.9"], read, 1_000_000);
    assert_eq!((report.documents, report.blocks.hot > 0.0), (120, false), "{report:?}");
    assert!(report.blocks.largest < 16.0 && report.sketches < 15.5, "{report:?}");
    // 28 pairs among the copies of each; all 64 between those of two.
    assert_eq!(report.right % 4, 0, "{report:?}");
    let limited: Documents = (0..60).map(|n| (id(n), own(7, 40))).collect();
    let limited = blocks_of(&["output.expand_limit=50"], limited, 60);
    assert_eq!(limited.right, 59, "as a star: {limited:?}");
    assert!(limited.quality.unwrap().recall.mean > 0.999, "{limited:?}");
}
