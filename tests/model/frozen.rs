//! The law for a run that is compared with a frozen reference: wherever its processes ended, the durable
//! deltas of every epoch accumulate to the pairs of what has been read with the reference and with itself, by
//! definition. Another reference is refused, and `--reconcile` writes the difference.
//!
//! Bug classes: a document of the reference that is compared with another one of it, is stored, expires,
//! takes a slot of the retention, or is missing after a restart; an id that is on both sides and counts as
//! one document; a record that is read before the reference is complete; an output that continues with
//! another reference.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use dupflow::config::Plan;
use dupflow::connectors::intake::EpochLimits;
use dupflow::connectors::state;
use dupflow::core::doc::{DocId, Position};
use dupflow::core::oracle;
use dupflow::core::pair::DocPair;
use dupflow::core::sketch::SketchMaker;
use dupflow::pipeline::{PastError, RunError};
use proptest::prelude::*;

use crate::contained;
use crate::data::Event;
use crate::history::{check, events};
use crate::items;
use crate::law::{Accumulated, assert_same};
use crate::log::Partition;
use crate::pipelines::{CROWDED, plan, small};
use crate::restart::{Life, Place, live, read_up_to, run, through_ends_at};
use crate::retention;
use crate::script::Stamped;
use crate::sources::partitions;

type Parts = BTreeMap<u32, Partition>;
type Documents = Vec<(DocId, String)>;

fn beside(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.scheme.pairs = plan.scheme.pairs.with_reference();
    plan
}

/// The last text of each id, and a document that is always there.
fn reference(history: &[Event]) -> Documents {
    let mut texts: BTreeMap<DocId, String> =
        history.iter().filter_map(|(id, text)| Some((id.clone(), text.clone()?))).collect();
    texts.insert(DocId::new("\0p").unwrap(), "w0 w3 w6 w9 w12".to_owned());
    texts.into_iter().collect()
}

/// The pairs of events that were read, of which no two documents are of the reference.
fn pairs(plan: &Plan, reference: &Documents, events: &[(Position, Stamped)]) -> BTreeSet<DocPair> {
    let stages = dupflow::pipeline::stages(plan, false);
    let mut maker = SketchMaker::new(&stages.scheme);
    let mut sketch =
        |text: &str, is_old| maker.sketch_with(text, &stages.scheme.pairs.hashes_of(|_| "", is_old));
    let clock = events.iter().filter_map(|(_, event)| event.ts).reduce(f64::max);
    let alive = retention::alive(events, clock, &plan.retention);
    let new =
        alive.iter().filter_map(|(id, text)| Some((id.clone().beside_reference(), sketch(text, false)?)));
    let mut sketches: BTreeMap<_, _> = new.collect();
    let old =
        reference.iter().filter_map(|(id, text)| Some((id.clone().in_reference(), sketch(text, true)?)));
    sketches.extend(old);
    let all = oracle::exact(&sketches, &*stages.blocking, &*stages.filter, stages.expand_limit);
    let is_within = |found: &DocPair| found.pair.lo().is_of_reference() && found.pair.hi().is_of_reference();
    all.into_iter().filter(|found| !is_within(found)).collect()
}

/// Checks every durable epoch, and what the last run has taken in. Returns the number of pairs with a
/// document of the reference.
fn assert_durable(place: &Place, plan: &Plan, parts: &Parts, seed: u64) -> usize {
    let memory = place.sink.lock().clone();
    let mut accumulated = Accumulated::new(memory.deltas);
    for told in &memory.progress {
        accumulated.advance(told.epoch);
        let expected = pairs(plan, &place.reference, &read_up_to(parts, &told.next));
        assert_same(&accumulated.pairs, &expected, told.epoch, run(seed));
    }
    let last = memory.progress.last().expect("a run that ends has a commit");
    assert!(parts.iter().all(|(p, part)| last.next[p] == part.end), "all is read");
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) =
        memory.documents.into_iter().partition(|(id, _)| id.is_of_reference());
    let of_reference: BTreeSet<_> = place.reference.iter().map(|(id, _)| id.as_str()).collect();
    assert!(old.keys().map(DocId::without_side).eq(of_reference));
    let events = read_up_to(parts, &last.next);
    let clock = events.iter().filter_map(|(_, event)| event.ts).reduce(f64::max);
    let alive = retention::facts(retention::all_alive(&events, clock, &plan.retention));
    let beside: BTreeMap<_, _> =
        alive.into_iter().map(|(id, facts)| (id.beside_reference(), facts)).collect();
    assert_eq!(new, beside);
    accumulated.end().iter().filter(|found| found.pair.lo().is_of_reference()).count()
}

fn parts_of(history: &[Event], seed: u64) -> Parts {
    partitions(history, 1 + u32::try_from(seed % 3).unwrap(), seed)
}

/// Runs that end early, until one reaches the end.
fn through_ends(plan: &Plan, reference: Documents, history: &[Event], keeps: bool, seed: u64) -> usize {
    let parts = parts_of(history, seed);
    let state = keeps.then(state::MemoryStore::default);
    let place = Place { state, spill_fails: seed & 32 == 0, reference, ..Place::default() };
    let place = through_ends_at(place, &parts, plan, seed, false);
    assert_durable(&place, plan, &parts, seed)
}

#[test]
fn no_end_of_a_run_shows_beside_a_reference() {
    let loaded = |name: &str| Plan::load(name, &small(name)).unwrap();
    let plans = [
        plan(CROWDED),
        loaded("minhash"),
        loaded("exact"),
        loaded("simhash"),
        plan("retention = { max_age = \"20s\" }\nblocking = { cap = 4 }"),
        plan("retention = { max_documents = 5 }\nblocking = { cap = 4 }"),
    ]
    .map(|plan| beside(&plan));
    let old = Cell::new([0; 6]);
    let inputs = (events(1..100), events(0..30), 0..plans.len(), any::<bool>(), any::<u64>());
    check(240, inputs, |(history, given, which, keeps, seed)| {
        let pairs = through_ends(&plans[which], reference(&given), &history, keeps, seed);
        old.update(|mut old| {
            old[which] += pairs;
            old
        });
    });
    assert!(old.get().iter().all(|pairs| *pairs > 0), "{old:?}");
}

#[test]
fn no_end_of_a_run_shows_in_pages_with_items() {
    let plan = beside(&items::plan());
    let old = Cell::new(0);
    let inputs = (contained::events(), contained::events(), any::<bool>(), any::<u64>());
    check(200, inputs, |(mut history, given, keeps, seed)| {
        history.push((DocId::new("page").unwrap(), Some("w0 w3 w6 w9 w12 w15".to_owned())));
        let pairs = through_ends(&plan, reference(&given), &history, keeps, seed);
        old.update(|old| old + pairs);
    });
    assert!(old.get() > 100, "{old:?}");
}

#[test]
fn another_reference_is_refused_and_reconciled() {
    let plans = [plan(CROWDED), items::plan()].map(|plan| beside(&plan));
    let changed = Cell::new(0);
    let texts = || prop_oneof![events(1..60), contained::events()];
    let inputs = (texts(), texts(), texts(), 0..plans.len(), any::<bool>(), any::<u64>());
    check(160, inputs, |(mut history, first, second, which, keeps, seed)| {
        history.push((DocId::new("page").unwrap(), Some("w0 w3 w6 w9 w12 w15".to_owned())));
        let (plan, parts) = (&plans[which], parts_of(&history, seed));
        let state = keeps.then(state::MemoryStore::default);
        let place = Place { state, reference: reference(&first), ..Place::default() };
        let mut place = through_ends_at(place, &parts, plan, seed, false);
        let before = assert_durable(&place, plan, &parts, seed);
        let (limits, end) = (EpochLimits::default(), None);
        let life =
            Life { workers: 2, readers: 1, limits, seed: seed | 1, end, reconcile: false, ids_move: false };
        // In another order it is the same one.
        place.reference.reverse();
        live(&place, plan, &parts, life).unwrap();
        let second = reference(&second);
        if second == reference(&first) {
            return;
        }
        place.reference = second;
        match live(&place, plan, &parts, life) {
            Err(RunError::Past(PastError::OtherPipeline(differences))) => {
                assert_eq!(differences.len(), 1);
                assert_eq!(differences[0].name, "reference.inputs");
            }
            other => panic!("{other:?}"),
        }
        for early in [Some((0, seed & 2 == 0)), None] {
            match live(&place, plan, &parts, Life { reconcile: true, end: early, ..life }) {
                Ok(_) => assert_eq!(early, None),
                Err(RunError::Sink(error)) if error.to_string() == "the end" => {}
                Err(error) => panic!("{error}"),
            }
        }
        let memory = place.sink.lock().clone();
        let mut alive = BTreeSet::new();
        for (_, pair, diff) in memory.deltas {
            assert!(if diff > 0 { alive.insert(pair.clone()) } else { alive.remove(&pair) }, "{pair:?}");
        }
        let next = memory.progress.last().unwrap().next.clone();
        let expected = pairs(plan, &place.reference, &read_up_to(&parts, &next));
        assert_same(&alive, &expected, 0, run(seed));
        changed.update(|changed| changed + usize::from(before != alive.len()));
    });
    assert!(changed.get() > 5, "{changed:?}");
}

#[test]
fn a_state_holds_the_documents_of_the_source_alone() {
    let plan = beside(&plan(CROWDED));
    let document =
        |n: u32| (DocId::new(&format!("d{n}")).unwrap(), format!("some text of many words {}", n % 7));
    let history: Vec<Event> = (0..50).map(document).map(|(id, text)| (id, Some(text))).collect();
    let parts = parts_of(&history, 1);
    // The same ids on both sides.
    let reference = (0..20).map(document).collect();
    let place = Place { state: Some(state::MemoryStore::default()), reference, ..Place::default() };
    let (limits, end) = (EpochLimits::default(), None);
    let life = Life { workers: 2, readers: 1, limits, seed: 1, end, reconcile: false, ids_move: false };
    let restored = [1, 2].map(|seed| live(&place, &plan, &parts, Life { seed, ..life }).unwrap());
    assert_eq!(restored, [0, 50]);
    assert!(assert_durable(&place, &plan, &parts, 1) > 0);
}
