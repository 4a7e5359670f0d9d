//! The corpus in memory against brute force, and the detectors.
//!
//! Bug classes: a pair that a hot block ends or revives while neither document changes; a group of copies
//! that crosses the expand limit; a sketch that loses its last document and has a new one in the same epoch.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{Detector, DetectorError, LiveCorpus};
use crate::block::{BlockingKind, BlockingParams};
use crate::doc::DocId;
use crate::filter::{FilterParams, Verify};
use crate::oracle;
use crate::pair::{Cause, Delta, DocPair};
use crate::sketch::{Scheme, SketchKind, SketchParams};
use crate::text::{Shingle, TextRules};

fn id(name: &str) -> DocId {
    DocId::new(name).unwrap()
}

/// Sketches of single words, 64 components of 8 bits, with hot blocks from 4 sketches on.
fn small(kind: BlockingKind, verify: Verify) -> Detector {
    let sketch = SketchParams { size: 64, bits: 8, ..SketchParams::default() };
    let text = TextRules { shingle: Shingle::Words(1), ..TextRules::default() };
    let scheme = Scheme { text, sketch, exact: true, ..Scheme::default() };
    let blocking = BlockingParams {
        kind,
        bands: Some(16),
        rows: Some(2),
        cap: 3,
        leaders: 1,
        documents: 100,
        ..BlockingParams::default()
    };
    let filter = FilterParams { verify, ..FilterParams::default() };
    Detector::from_params(0.6, scheme, &blocking, &filter).unwrap()
}

#[derive(Clone, Debug)]
enum Operation {
    Upsert(u8, Vec<u8>),
    Delete(u8),
    Commit,
}

/// Few documents of few words, so that copies and near-duplicates are common.
fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let text = prop_oneof![
        4 => prop::collection::vec(0_u8..6, 1..5),
        1 => Just(vec![]),
        2 => (0_u8..12).prop_map(|n| vec![0, 1, 2, 3, 4, n]),
    ];
    let one = prop_oneof![
        6 => (0_u8..12, text).prop_map(|(n, words)| Operation::Upsert(n, words)),
        2 => (0_u8..12).prop_map(Operation::Delete),
        3 => Just(Operation::Commit),
    ];
    prop::collection::vec(one, 0..60)
}

/// Adds deltas to the present pairs: each sums up to 0 or 1.
fn accumulate(pairs: &mut BTreeSet<DocPair>, deltas: Vec<Delta>) {
    for Delta { pair, diff, .. } in deltas {
        match diff {
            1 => assert!(pairs.insert(pair.clone()), "{pair:?} appears twice"),
            -1 => assert!(pairs.remove(&pair), "{pair:?} ends and is not there"),
            _ => panic!("{diff}"),
        }
    }
}

fn follows_brute_force(detector: &Detector, expand_limit: usize, operations: Vec<Operation>) {
    let mut corpus = LiveCorpus::with_expand_limit(detector, expand_limit);
    let (mut live, mut pairs) = (BTreeMap::new(), BTreeSet::new());
    let mut maker = detector.maker();
    for operation in operations.into_iter().chain([Operation::Commit]) {
        match operation {
            Operation::Upsert(n, words) => {
                let text: String = words.iter().map(|word| format!("w{word} ")).collect();
                corpus.upsert(id(&n.to_string()), &text);
                live.insert(id(&n.to_string()), maker.sketch(&text));
            }
            Operation::Delete(n) => {
                corpus.delete(id(&n.to_string()));
                live.remove(&id(&n.to_string()));
            }
            Operation::Commit => {
                accumulate(&mut pairs, corpus.commit());
                let sketched = live.iter().filter_map(|(id, sketch)| Some((id, sketch.as_ref()?)));
                let expected = oracle::exact(sketched, detector.blocking(), detector.filter(), expand_limit);
                assert_eq!(pairs, expected);
                assert_eq!(corpus.len(), live.len());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn bands_follow_brute_force(operations in operations(), limit in 1_usize..5) {
        follows_brute_force(&small(BlockingKind::Banding, Verify::Sketch), limit, operations);
    }

    #[test]
    fn shingles_follow_brute_force(operations in operations(), limit in 1_usize..5) {
        follows_brute_force(&small(BlockingKind::Shingles, Verify::Exact), limit, operations);
    }

    #[test]
    fn scan_follows_brute_force(operations in operations(), limit in 1_usize..5) {
        follows_brute_force(&small(BlockingKind::Scan, Verify::Exact), limit, operations);
    }
}

#[test]
fn deltas_have_causes() {
    let mut corpus = LiveCorpus::with_expand_limit(&small(BlockingKind::Scan, Verify::Exact), 2);
    let mut causes = |events: &[(&str, Option<&str>)]| -> Vec<(isize, Cause)> {
        for (name, text) in events {
            match text {
                Some(text) => corpus.upsert(id(name), text),
                None => corpus.delete(id(name)),
            }
        }
        corpus.commit().iter().map(|delta| (delta.diff, delta.cause)).collect()
    };
    assert_eq!(
        causes(&[("a", Some("one two three four")), ("b", Some("one two three five"))]),
        [(1, Cause::Insert)]
    );
    assert_eq!(causes(&[("b", Some("one two three five"))]), [], "the same text");
    assert_eq!(causes(&[("b", Some("one two three four"))]), [(-1, Cause::Update), (1, Cause::Update)]);
    // A third copy makes a star about "a": "b" and "c" are no pair.
    assert_eq!(causes(&[("c", Some("one two three four"))]), [(1, Cause::Insert)]);
    assert_eq!(causes(&[("c", None), ("x", None)]), [(-1, Cause::Delete)]);
    assert_eq!(causes(&[("b", Some("")), ("a", None)]), [(-1, Cause::Delete)], "the first in order");
    assert_eq!(corpus.len(), 1, "a text without tokens is a document");
}

#[test]
fn detectors_state_what_does_not_fit() {
    assert!(matches!(Detector::new(0.0), Err(DetectorError::Filter(_))));
    let params = |scheme, kind| {
        let blocking = BlockingParams { kind, ..BlockingParams::default() };
        Detector::from_params(0.8, scheme, &blocking, &FilterParams::default()).unwrap_err().to_string()
    };
    let bottom_k = SketchParams { kind: SketchKind::BottomK, ..SketchParams::default() };
    let scheme = Scheme { sketch: bottom_k, ..Scheme::default() };
    assert!(params(scheme, BlockingKind::Banding).contains("\"bottom-k\" have no bands"));
    assert!(params(Scheme::default(), BlockingKind::Shingles).contains("Scheme::exact"));
    assert!(params(Scheme::default(), BlockingKind::Groups).contains("from_parts"));
}
