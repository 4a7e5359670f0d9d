//! The law for containment: histories of texts that are parts of other texts, of sizes from a word to the
//! whole; and the shares of pairs against sets of shingles, and against samples of them.
//!
//! Bug classes: shares that do not follow the order of ids; a host that is edited, so that only the share of
//! the quote changes; a block whose leaders change because a text has grown; a sample that ends at the limit
//! of the larger text, or of the text that was first.

use std::collections::{BTreeMap, BTreeSet};

use dupflow::config::Plan;
use dupflow::core::doc::DocId;
use dupflow::core::pair::{DocPair, Evidence, Overlap, Similarity};
use dupflow::core::sketch::Sketch;
use dupflow::core::sketch::scaled::features_of;
use dupflow::core::text::{TextRules, shingles};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::data::Event;
use crate::history::{check, cut, ids, runs, sizes};
use crate::law::{Corpus, assert_law};
use crate::pipelines::plan;
use crate::restart;
use crate::sources::partitions;

/// Words of a whole text.
const WHOLE: usize = 80;

/// Words of a whole text of which sketches keep a part.
const LONG: usize = 300;

/// A part of one of two texts of so many words, with a few words changed; or no text.
fn part(whole: usize) -> impl Strategy<Value = Option<String>> {
    let edits = vec((0..whole, 0_u64..3), 0..3);
    let part = (0_u64..2, 0..whole, 1..=whole, edits).prop_map(move |(text, start, length, edits)| {
        let mut words: Vec<String> = (start..whole.min(start + length))
            .map(|at| format!("w{}", (at as u64 * (text + 3) + (at * at / 11) as u64) % 50))
            .collect();
        for (at, word) in edits {
            if let Some(place) = words.get_mut(at) {
                *place = format!("edit{word}");
            }
        }
        words.join(" ")
    });
    prop_oneof![7 => part.prop_map(Some), 1 => Just(None)]
}

pub(crate) fn events() -> impl Strategy<Value = Vec<Event>> {
    vec((ids(), part(WHOLE)), 0..100)
}

fn contained(settings: &str) -> Plan {
    decided_by("exact", settings)
}

fn decided_by(verify: &str, settings: &str) -> Plan {
    plan(&format!(
        "text = {{ shingle = \"words:2\" }}\nmeasure = \"containment\"\n\
        filter = {{ kind = \"full\", verify = \"{verify}\" }}\n{settings}"
    ))
}

fn long_events() -> impl Strategy<Value = Vec<Event>> {
    vec((ids(), part(LONG)), 0..60)
}

/// Sketches that keep enough of the long texts to decide: everything, a share, or the least values only.
fn sampled() -> [Plan; 6] {
    [
        scaled(1, 1, "hot = \"never\""),
        scaled(2, 60, "cap = 3, leaders = 1, leaders_by = \"size\""),
        scaled(3, 16, "cap = 2, leaders = 2"),
        scaled(8, 70, "cap = 4, leaders = 3, leaders_by = \"size\""),
        scaled(4, 55, "cap = 3, hot = \"skip\""),
        "sketch = { kind = \"scaled\", scale = 4, least = 60 }\nblocking = { kind = \"scan\" }".to_owned(),
    ]
    .map(|settings| decided_by("sketch", &settings))
}

fn scaled(scale: u32, least: u32, blocking: &str) -> String {
    format!(
        "sketch = {{ kind = \"scaled\", scale = {scale}, least = {least} }}\nblocking = {{ kind = \
        \"shingles\", {blocking} }}"
    )
}

/// On random histories, with few and with many kept values, and with any leaders.
#[test]
fn containment_holds() {
    for settings in [
        scaled(1, 1, "hot = \"never\""),
        scaled(3, 2, "cap = 3, leaders = 1, leaders_by = \"size\""),
        scaled(2, 4, "cap = 4, leaders = 3, leaders_by = \"size\""),
        scaled(8, 16, "cap = 2, leaders = 2"),
        scaled(4, 3, "cap = 3, hot = \"skip\""),
        "sketch = { kind = \"scaled\" }\nblocking = { kind = \"scan\" }".to_owned(),
    ] {
        let plan = contained(&settings);
        check(60, (events(), sizes(), runs()), |(events, sizes, run)| {
            assert_law(&dupflow::pipeline::stages(&plan, false), &cut(&events, &sizes), run);
        });
    }
}

/// The same where samples decide.
#[test]
fn containment_by_samples_holds() {
    for plan in sampled() {
        check(40, (long_events(), sizes(), runs()), |(events, sizes, run)| {
            assert_law(&dupflow::pipeline::stages(&plan, false), &cut(&events, &sizes), run);
        });
    }
}

/// A pair's shares by the definition: of the values of both texts up to the smaller of the two limits. The
/// limit of a sketch is its greatest value, or that of the share of `1 / scale` if that is greater; a sketch
/// with all values has none. `None` for fewer than 50.
fn of_sample([a, b]: [&Sketch; 2], scale: u64) -> Option<[f64; 2]> {
    let limit = |sketch: &Sketch| match sketch.features.last() {
        Some(greatest) if sketch.features.len() < features_of(sketch.words[0]) => {
            (u64::MAX / scale).max(*greatest)
        }
        _ => u64::MAX,
    };
    let last = limit(a).min(limit(b));
    let [x, y] = [a, b].map(|sketch| -> BTreeSet<u64> {
        sketch.features.iter().copied().filter(|value| *value <= last).collect()
    });
    let shared = x.intersection(&y).count() as f64;
    (x.len().min(y.len()) >= 50).then(|| [x, y].map(|own| shared / own.len() as f64))
}

/// Where no block is hot, pairs are those whose sketches have a common value and a share of at least the
/// threshold in their sample.
#[test]
fn shares_by_samples_are_those_of_the_definition() {
    let (mut found, mut smaller) = (0, 0);
    for (scale, least) in [(1, 1), (2, 60), (8, 70)] {
        let plan = decided_by("sketch", &scaled(scale, least, "hot = \"never\""));
        let stages = dupflow::pipeline::stages(&plan, false);
        let mut runner = TestRunner::deterministic();
        for _ in 0..12 {
            let mut corpus = Corpus::new(&stages);
            corpus.apply(&long_events().new_tree(&mut runner).unwrap().current());
            let texts: Vec<(&DocId, &Sketch)> = corpus.alive.iter().map(|(id, (_, own))| (id, own)).collect();
            let mut expected = BTreeSet::new();
            for (i, (b, of_b)) in texts.iter().enumerate() {
                for (a, of_a) in &texts[..i] {
                    let meet = of_a.features.iter().any(|value| of_b.features.contains(value));
                    let shares = match of_a == of_b {
                        true => Some([1.0; 2]),
                        false => of_sample([*of_a, *of_b], scale.into()).filter(|_| meet),
                    };
                    let Some(shares) = shares.filter(|[x, y]| x.max(*y) >= plan.threshold) else { continue };
                    let similarity = Similarity::of_shares(shares);
                    expected.extend(DocPair::new(
                        (*a).clone(),
                        (*b).clone(),
                        similarity,
                        Evidence::default(),
                    ));
                    smaller += usize::from(of_a.features.len() < features_of(of_a.words[0]));
                }
            }
            let is_star = |own: &Sketch| texts.iter().filter(|(_, other)| *other == own).count() > 3;
            if !texts.iter().any(|(_, own)| is_star(own)) {
                found += expected.len();
                assert_eq!(corpus.pairs(&stages), expected, "1 of {scale}");
            }
        }
    }
    assert!(found > 300 && smaller > 100, "{found} {smaller}");
}

/// Where every shingle has a block that is never hot, the pairs are all that reach the threshold, and both
/// shares are those of the sets of shingles.
#[test]
fn exact_shares_are_those_of_the_shingles() {
    let plan = contained(&scaled(1, 1, "hot = \"never\""));
    let stages = dupflow::pipeline::stages(&plan, false);
    let rules: &TextRules = &plan.scheme.text;
    check(150, events(), |events| {
        let mut corpus = Corpus::new(&stages);
        corpus.apply(&events);
        let texts: BTreeMap<DocId, Option<String>> = events.into_iter().collect();
        let sets: Vec<(&DocId, BTreeSet<String>)> = texts
            .iter()
            .filter_map(|(id, text)| Some((id, shingles(text.as_ref()?, rules).into_iter().collect())))
            .collect();
        let mut expected = BTreeSet::new();
        for (i, (b, of_b)) in sets.iter().enumerate() {
            for (a, of_a) in &sets[..i] {
                let shared = of_a.intersection(of_b).count();
                let overlap = Overlap { shared, of_a: of_a.len(), of_b: of_b.len() };
                if 2 * shared >= of_a.len().min(of_b.len()) {
                    let pair = ((*a).clone(), (*b).clone());
                    expected.extend(DocPair::new(pair.0, pair.1, overlap.similarity(), Evidence::default()));
                }
            }
        }
        // More than three copies are a star, and its centre stands for them all.
        if sets.iter().all(|(_, set)| sets.iter().filter(|(_, other)| other == set).count() <= 3) {
            assert_eq!(corpus.pairs(&stages), expected);
        }
    });
}

/// Shares are those of a fresh run wherever the runs before have ended, with kept documents and without.
#[test]
fn no_end_of_a_run_shows_in_shares() {
    let exact = contained(&scaled(3, 2, "cap = 3, leaders = 1, leaders_by = \"size\""));
    let of_parts = vec((ids(), part(WHOLE)), 1..100);
    check(24, (of_parts, any::<bool>(), any::<u64>()), |(history, keeps, seed)| {
        assert_law_through(&exact, &history, keeps, seed);
    });
    let [_, few, _, least, ..] = sampled();
    let of_long = vec((ids(), part(LONG)), 1..60);
    check(24, (of_long, any::<bool>(), any::<u64>()), |(history, keeps, seed)| {
        let plan = if seed & 1 == 0 { &few } else { &least };
        assert_law_through(plan, &history, keeps, seed);
    });
}

fn assert_law_through(plan: &Plan, history: &[Event], keeps: bool, seed: u64) {
    let parts = partitions(history, 1 + u32::try_from(seed % 3).unwrap(), seed);
    let place = restart::through_ends(&parts, plan, keeps, seed, false);
    restart::assert_durable(&place, plan, &parts, restart::run(seed));
}

/// The histories above contain the cases that could break the law.
#[test]
fn histories_of_parts_are_eventful() {
    are_eventful(&contained(&scaled(3, 2, "cap = 3, leaders = 1, leaders_by = \"size\"")), &events());
    let [_, few, other, least, ..] = sampled();
    [few, other, least].iter().for_each(|plan| are_eventful(plan, &long_events()));
}

fn are_eventful(plan: &Plan, events: &impl Strategy<Value = Vec<Event>>) {
    let stages = dupflow::pipeline::stages(plan, false);
    let mut runner = TestRunner::deterministic();
    let (mut within, mut around, mut turned, mut hot) = (0, 0, 0, 0);
    for _ in 0..120 {
        let mut corpus = Corpus::new(&stages);
        corpus.apply(&events.new_tree(&mut runner).unwrap().current());
        for found in corpus.pairs(&stages) {
            let [in_b, in_a] = found.similarity.shares();
            within += usize::from(in_b > in_a);
            around += usize::from(in_a > in_b);
            let [lo, hi] = [found.pair.lo(), found.pair.hi()].map(|id| corpus.alive[id].0);
            turned += usize::from(found.similarity.is_directed() && lo > hi);
        }
        let mut keys = Vec::new();
        corpus.alive.values().for_each(|(_, sketch)| stages.blocking.keys(sketch.view(), &mut keys));
        keys.sort_unstable();
        hot += keys.chunk_by(|a, b| a == b).filter(|block| block.len() > 3).count();
    }
    assert!([within, around, turned, hot].iter().all(|n| *n > 100), "{within} {around} {turned} {hot}");
}
