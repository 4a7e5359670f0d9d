//! Banding at low thresholds: the measured recall equals the planned recall, including the losses in hot
//! blocks.
//!
//! The corpus is small and so is the cap: 20,000 documents with a cap of 24 fill blocks as 80,000 documents
//! do with a cap of 96.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use dupflow::config::{BlockingPlan, Plan};
use dupflow::connectors::formats::feed;
use dupflow::core::block::banding::{Curve, ExpectedBlocks};
use dupflow::core::doc::DocId;
use dupflow::core::oracle;
use dupflow::core::pair::Pair;
use dupflow::core::text::Featurizer;
use dupflow::lab::generate::{Generator, Params};

use crate::pipelines::deltas;

const DOCUMENTS: u64 = 20_000;
const CAP: usize = 24;

/// The least threshold of a test.
const LEAST: f64 = 0.5;

/// A feed of short texts, and the pairs of its live documents at the end, from [`LEAST`] on.
struct Generated {
    feed: PathBuf,
    pairs: Vec<(Pair<DocId>, f64)>,
}

impl Generated {
    /// The feed of all tests.
    fn shared() -> &'static Self {
        static SHARED: LazyLock<Generated> = LazyLock::new(Generated::write);
        &SHARED
    }

    fn write() -> Self {
        let plan = exact(LEAST, &[]);
        let feed = Path::new(env!("CARGO_TARGET_TMPDIR")).join("low.jsonl");
        let params =
            Params { documents: DOCUMENTS, seed: 9, min_words: 30, max_words: 90, ..Params::default() };
        let (mut lines, mut alive) = (Vec::new(), std::collections::BTreeMap::new());
        let mut featurizer = Featurizer::new(plan.scheme.text.clone());
        for record in Generator::new(params) {
            feed::write(&mut lines, &record).unwrap();
            match record.event.text {
                Some(text) => alive.insert(record.event.id, featurizer.features(&text).to_vec()),
                None => alive.remove(&record.event.id),
            };
        }
        std::fs::write(&feed, lines).unwrap();
        Self { feed, pairs: oracle::pairs(alive, LEAST) }
    }

    /// The recall of a plan for the pairs at or above its threshold, and the recall that the plan states for
    /// them.
    fn recall(&self, plan: &Plan) -> (f64, f64) {
        let (curve, meets) = said(plan);
        let right: BTreeMap<_, _> =
            self.pairs.iter().filter(|(_, s)| *s >= plan.threshold).map(|(pair, s)| (pair, *s)).collect();
        assert!(right.len() > 1000, "{}", right.len());
        let said = right.values().map(|similarity| curve.found(*similarity, meets)).sum::<f64>();
        let said = said / right.len() as f64;
        let found = deltas(plan, &self.feed).accumulated(u64::MAX);
        let found = found.keys().filter(|(pair, _)| right.contains_key(pair)).count();
        (found as f64 / right.len() as f64, said)
    }
}

/// The pipeline `exact` at this threshold.
fn exact(threshold: f64, settings: &[&str]) -> Plan {
    let cap = format!("blocking.cap={CAP}");
    let all =
        [format!("threshold={threshold}"), cap].into_iter().chain(settings.iter().map(|&s| s.to_owned()));
    Plan::load("exact", &all.collect::<Vec<_>>()).unwrap_or_else(|error| panic!("{error}"))
}

/// The plan's prediction: its curve, and the share of pairs agreeing in a band that are compared there.
fn said(plan: &Plan) -> (Curve, f64) {
    let BlockingPlan::Banding { design, rule } = &plan.blocking else { panic!("{:?}", plan.blocking) };
    (design.curve, ExpectedBlocks::new(&design.curve, DOCUMENTS, *rule).meets)
}

#[test]
fn pairs_are_found_as_planned() {
    let planned = format!("blocking.documents={DOCUMENTS}");
    let feed = Generated::shared();
    for threshold in [0.5, 0.6, 0.7] {
        let plan = exact(threshold, &[&planned]);
        let (curve, meets) = said(&plan);
        let at_threshold = curve.found(threshold, meets);
        let (recall, said) = feed.recall(&plan);
        println!(
            "T = {threshold}: {recall:.4} found, {said:.4} said, {at_threshold:.4} at the \
             threshold, {meets:.4} meet"
        );
        assert!(at_threshold >= 0.999 && said >= at_threshold, "T = {threshold}: said {said}");
        assert!((recall - said).abs() <= 0.01, "T = {threshold}: {recall}, said {said}");
    }
}

/// Bands that were designed for 0.8 have few keys at 0.5: the plan predicts that most pairs are lost, and
/// they are.
#[test]
fn hot_block_losses_are_predicted() {
    let (recall, said) = Generated::shared().recall(&exact(LEAST, &["blocking.bands=24"]));
    println!("{recall:.4} found, {said:.4} said");
    // Short texts of a site share more of its frame than the plan assumes, so more is lost than predicted.
    assert!(said < 0.6 && recall < said && said - recall < 0.25, "{recall}, said {said}");
}
