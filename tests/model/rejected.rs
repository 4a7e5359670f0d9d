//! The candidates that the filter rejects, at the end of any history, against a comparison of all sketches
//! with all others.
//!
//! Bug classes: a sketch of a deleted document that is still surveyed, or a live one that is missing; a pair
//! that is counted once for each of its blocks; a hot block whose members all meet; a sample that depends on
//! the history, the workers, or the parts of the survey.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dupflow::core::block::BlockKey;
use dupflow::core::detect::{CandidateSurvey, LiveSketch, RejectedCounts, RejectedPair, RejectedSample};
use dupflow::core::doc::DocId;
use dupflow::core::doc::fields::{FieldRow, FieldRule, FieldRules};
use dupflow::core::filter::Rejection;
use dupflow::core::hash::{self, SketchId};
use dupflow::core::pair::Pair;
use dupflow::core::sketch::{Sketch, SketchMaker};
use dupflow::engine::dataflow::Stages;

use crate::data::Event;
use crate::history::{check, cut, events, runs, sizes};
use crate::law::Corpus;
use crate::pipelines::{CROWDED, plan};
use crate::script::{Epoched, Past, Run, Stamped, closed, deltas};

/// The counts and the sample of a run whose workers have ended.
fn surveyed(stages: &Stages, parts: usize, most: usize) -> (RejectedCounts, Vec<RejectedPair>) {
    let live = stages.observers.live_sketches.as_ref().unwrap();
    let mut sketches: Vec<LiveSketch> = live.lock().clone();
    let survey = CandidateSurvey::new(&mut sketches, &*stages.blocking, &*stages.filter);
    let mut sample = RejectedSample::new(most);
    (0..parts).for_each(|part| sample.merge(survey.sample(part, parts, most)));
    (sample.counts().clone(), survey.pairs(&sample))
}

/// The same by definition: all pairs of sketches, each with all of their blocks.
fn defined(
    alive: &BTreeMap<DocId, (SketchId, Sketch)>,
    stages: &Stages,
    most: usize,
) -> (RejectedCounts, Vec<RejectedPair>) {
    let mut members: BTreeMap<SketchId, (&Sketch, BTreeSet<&DocId>)> = BTreeMap::new();
    for (document, (id, sketch)) in alive {
        members.entry(*id).or_insert_with(|| (sketch, BTreeSet::new())).1.insert(document);
    }
    let keys = |sketch: &Sketch| {
        let mut keys = Vec::new();
        stages.blocking.keys(sketch.view(), &mut keys);
        keys.into_iter().collect::<BTreeSet<BlockKey>>()
    };
    let mut blocks: BTreeMap<BlockKey, Vec<SketchId>> = BTreeMap::new();
    for (id, (sketch, _)) in &members {
        keys(sketch).into_iter().for_each(|key| blocks.entry(key).or_default().push(*id));
    }
    let meet = |key: &BlockKey, x: &SketchId, y: &SketchId| {
        let rule = stages.blocking.rule(key.table);
        let leaders = if blocks[key].len() > rule.cap { rule.leaders } else { usize::MAX };
        let is_leader = |id: &SketchId| blocks[key].iter().take(leaders).any(|leader| leader == id);
        let near = stages.blocking.near(key.table);
        let words = [x, y].map(|id| members[id].0.words[0]);
        (is_leader(x) || is_leader(y)) && near.is_none_or(|near| near.meet(words[0], words[1]))
    };
    let mut counts = RejectedCounts::default();
    let mut rejected = Vec::new();
    for (x, (a, of_x)) in &members {
        for (y, (b, of_y)) in members.range(*x..).skip(1) {
            let shared: Vec<BlockKey> = keys(a).intersection(&keys(b)).copied().collect();
            if shared.iter().filter(|key| meet(key, x, y)).count() < stages.blocking.least() {
                continue;
            }
            counts.candidates += 1;
            let verdict = stages.filter.decide(a.view(), b.view());
            if verdict.accepted.is_some() {
                continue;
            }
            counts.rejected += 1;
            *counts.by.entry(stages.filter.rejected_by(verdict.look)).or_default() += 1;
            let [first, other] = [of_x, of_y].map(|documents| (*documents.first().unwrap()).clone());
            let pair = RejectedPair {
                pair: Pair::new(first, other).unwrap(),
                pairs: (of_x.len() * of_y.len()) as u64,
                blocks: u16::try_from(shared.len()).unwrap(),
                rejection: Rejection::new(&*stages.filter, a.view(), b.view(), verdict),
            };
            let ids = format!("{x}{y}");
            let words = (0..4).map(|n| u64::from_str_radix(&ids[16 * n..16 * n + 16], 16).unwrap());
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            rejected.push((hash::bytes(hash::PI[6], &bytes), pair));
        }
    }
    rejected.sort_by_key(|(hash, _)| *hash);
    rejected.truncate(most);
    let mut pairs: Vec<_> = rejected.into_iter().map(|(_, pair)| pair).collect();
    pairs.sort_by(|p, q| p.pair.cmp(&q.pair));
    (counts, pairs)
}

/// Stages that hand their sketches over.
fn handing_over(stages: Stages) -> Stages {
    let mut stages = stages;
    stages.observers.live_sketches = Some(Arc::default());
    stages
}

const SETTINGS: [&str; 6] = [
    CROWDED,
    "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 3, leaders = 2 }\nfilter = { \
        verify = \"exact\" }",
    "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 4, hot = \"skip\" }",
    "sketch = { size = 64, bits = 1 }\nblocking = { kind = \"groups\", distance = 20, common = 4, hot \
        = \"never\" }",
    "sketch = { kind = \"simhash\" }\ntext = { shingle = \"words:1\", weights = \"count\" }\nblocking = { \
        bands = 8, rows = 4, cap = 3, also = { kind = \"permuted\", distance = 2, tables = 3 } }",
    "sketch = { kind = \"bottom-k\", size = 16 }\nblocking = { kind = \"scan\" }",
];

#[test]
fn the_sample_is_a_function_of_the_corpus() {
    let (rejected, limited) = (Cell::new(0), Cell::new(0));
    for settings in SETTINGS {
        let plan = plan(settings);
        check(15, (events(0..100), sizes(), runs(), 1usize..40), |(events, sizes, run, most)| {
            let stages = handing_over(dupflow::pipeline::stages(&plan, false));
            deltas(&stages, &cut(&events, &sizes), run);
            let mut corpus = Corpus::new(&stages);
            corpus.apply(&events);
            let expected = defined(&corpus.alive, &stages, most);
            for parts in [1, 3] {
                assert_eq!(surveyed(&stages, parts, most), expected, "{settings}, {parts} parts");
            }
            // The survivors alone, in one epoch.
            let fresh = handing_over(dupflow::pipeline::stages(&plan, false));
            let alive = last_texts(&events);
            deltas(&fresh, &[alive], Run { workers: 1, serialized: false, seed: 0 });
            assert_eq!(surveyed(&fresh, 1, most), expected, "{settings}, a fresh run");
            rejected.set(rejected.get() + expected.0.rejected);
            limited.set(limited.get() + u32::from(expected.0.rejected > most as u64));
        });
    }
    let (rejected, limited) = (rejected.get(), limited.get());
    assert!(rejected > 500 && limited > 10, "{rejected} rejected, {limited} samples of more");
}

fn last_texts(events: &[Event]) -> Vec<Event> {
    let last: BTreeMap<_, _> = events.iter().cloned().collect();
    last.into_iter().collect()
}

/// A rule on fields rejects before the filter, and its rejections are counted apart.
#[test]
fn rejections_by_fields_are_among_them() {
    let plan = plan(&format!("{CROWDED}\npairs = {{ where = \"a.host != b.host\" }}"));
    let ruled = Cell::new(0);
    check(40, (events(0..100), sizes(), runs()), |(events, sizes, run)| {
        let mut stages = handing_over(dupflow::pipeline::stages(&plan, false));
        stages.fields = FieldRules::new([FieldRule::parse("host").unwrap()].into()).unwrap();
        let host = |id: &DocId| FieldRow::new([["x", "y"][id.as_str().len() % 2]]);
        let stamped = |(id, text): &Event| {
            let fields = text.as_ref().map(|_| host(id)).unwrap_or_default();
            Stamped { fields, ..Stamped::new(id.clone(), text.clone(), None) }
        };
        let epochs = cut(&events, &sizes);
        let epochs =
            epochs.iter().map(|epoch| Epoched { events: epoch.iter().map(stamped).collect(), at: None });
        closed(&stages, &epochs.collect::<Vec<_>>(), &Past::default(), run);
        let mut maker = SketchMaker::new(&stages.scheme);
        let sketched = |(id, text): (DocId, Option<String>)| {
            let hashes = stages.scheme.pairs.hashes(|_| ["x", "y"][id.as_str().len() % 2]);
            let sketch = maker.sketch_with(&text?, &hashes)?;
            Some((id, sketch))
        };
        let alive = last_texts(&events).into_iter().filter_map(sketched).collect();
        let expected = defined(&alive, &stages, 20);
        assert_eq!(surveyed(&stages, 2, 20), expected);
        ruled.set(ruled.get() + expected.1.iter().filter(|pair| pair.rejection.look == 0).count());
    });
    assert!(ruled.get() > 20, "{}", ruled.get());
}
