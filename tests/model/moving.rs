//! The law where ids move between the partitions of a topic, through ends and restarts, with documents kept,
//! lost or never kept. The durable deltas accumulate to the pairs of the documents that are alive by the
//! definition of `engine/dataflow/documents/homes.rs`, evaluated by brute force on everything read. Readers
//! take the partitions in turns of random length, so that each run reads another order.
//!
//! Bug classes: the event that is read last wins; an older event of another partition restores a deleted id;
//! a restored document without its partition or its newest time; an id that is forgotten while an older event
//! can still restore it.

use std::collections::BTreeMap;
use std::sync::Arc;

use dupflow::config::Plan;
use dupflow::connectors::state;
use dupflow::core::doc::DocId;
use dupflow::core::hash;
use dupflow::core::run::metrics::{Counter, Metrics};
use dupflow::core::text::IdfTable;
use proptest::prelude::*;

use crate::data::Event;
use crate::history::{check, events};
use crate::law::{Accumulated, Corpus, assert_same};
use crate::log::Partition;
use crate::pipelines::plan;
use crate::restart::{
    Place, assert_documents, assert_durable_by_retention, open, read_up_to, run, through_ends, to_the_end,
    ts_of,
};
use crate::retention;

/// Distributes events by a hash of the id over `few` partitions, and from some event on over more; or, for a
/// few of them, anywhere.
fn moving(history: &[Event], few: u32, seed: u64) -> BTreeMap<u32, Partition> {
    let mut parts: BTreeMap<u32, Partition> = BTreeMap::new();
    let added_at = hash::mix(seed ^ 1) % (history.len() as u64 + 1);
    for (n, (id, text)) in (0..).zip(history) {
        let text = text.clone().filter(|text| !text.is_empty());
        let count = u64::from(if n < added_at { few } else { few + 1 + few % 2 });
        let anywhere = hash::mix(seed ^ n << 20);
        let chosen =
            if anywhere.is_multiple_of(8) { anywhere >> 8 } else { hash::bytes(seed, id.as_bytes()) };
        let part = parts.entry(u32::try_from(chosen % count).unwrap()).or_default();
        let offset = part.end + hash::mix(seed ^ n) % 3;
        part.events.push((offset, (id.clone(), text)));
        part.end = offset + 1;
    }
    parts
}

#[test]
fn no_end_of_a_run_and_no_order_of_partitions_shows() {
    let pipeline = prop_oneof![Just("minhash"), Just("exact")];
    check(
        64,
        (events(1..120), pipeline, 1u32..4, any::<bool>(), any::<u64>()),
        |(history, name, few, keeps, seed)| {
            let plan = Plan::load(name, &["blocking.cap=4".to_owned()]).unwrap();
            let parts = moving(&history, few, seed);
            let place = through_ends(&parts, &plan, keeps, seed, true);
            assert_durable_by_retention(&place, &plan, &parts, run(seed));
        },
    );
}

/// Rows with a `ts` of their own, old or unchanged by updates: between partitions the record's time decides.
#[test]
fn no_order_of_partitions_shows_where_rows_have_times_of_their_own() {
    let rules = prop_oneof![
        2 => Just(&[][..]),
        1 => Just(&["retention.max_age=60s"][..]),
        1 => Just(&["retention.max_documents=5"][..]),
        1 => Just(&["retention.max_age=40s", "retention.max_documents=8"][..]),
    ];
    check(
        64,
        (events(1..120), rules, 1u32..4, any::<bool>(), any::<u64>()),
        |(history, rules, few, keeps, seed)| {
            let typed = rules.iter().chain(&["blocking.cap=4"]).map(|&typed| typed.to_owned());
            let plan = Plan::load("minhash", &typed.collect::<Vec<_>>()).unwrap();
            let by_age = plan.retention.max_age.is_some();
            let mut parts = moving(&history, few, seed);
            for (partition, part) in &mut parts {
                part.rows = true;
                part.events.retain(|(offset, _)| !by_age || ts_of(*partition, *offset).is_some());
            }
            let place = through_ends(&parts, &plan, keeps, seed, true);
            assert_durable_by_retention(&place, &plan, &parts, run(seed));
        },
    );
}

#[test]
fn no_order_of_partitions_shows_where_documents_expire() {
    let rules = prop_oneof![
        Just(&["retention.max_age=20s"][..]),
        Just(&["retention.max_age=60s"][..]),
        Just(&["retention.max_documents=5"][..]),
        Just(&["retention.max_age=30s", "retention.max_documents=8"][..]),
    ];
    check(
        64,
        (events(1..120), rules, 1u32..4, any::<bool>(), any::<u64>()),
        |(history, rules, few, keeps, seed)| {
            let typed = rules.iter().chain(&["blocking.cap=4"]).map(|&typed| typed.to_owned());
            let plan = Plan::load("minhash", &typed.collect::<Vec<_>>()).unwrap();
            // A document without a time never expires: everything that retention forgets is newer.
            let by_age = plan.retention.max_age.is_some();
            let mut parts = moving(&history, few, seed);
            for (partition, part) in &mut parts {
                part.events.retain(|(offset, _)| !by_age || ts_of(*partition, *offset).is_some());
            }
            let place = through_ends(&parts, &plan, keeps, seed, true);
            assert_durable_by_retention(&place, &plan, &parts, run(seed));
        },
    );
}

#[test]
fn no_order_of_partitions_shows_under_live_weights() {
    let live_plan = "text = { shingle = \"words:1\", weights = \"tf-idf\", idf = \"live\" }\n\
        sketch = { kind = \"dart\", size = 64, bits = 8 }\nblocking = { bands = 16, rows = 2, cap = 4 }";
    check(24, (events(1..120), 1u32..4, any::<u64>()), |(history, few, seed)| {
        let plan = plan(live_plan);
        let parts = moving(&history, few, seed);
        let place = through_ends(&parts, &plan, true, seed, true);
        let memory = place.sink.lock().clone();
        let Some(table) = memory.mark.as_ref().and_then(|mark| mark.progress.table) else { return };
        let state = open(place.state.as_ref().unwrap());
        let bytes = state.table(table.fingerprint).unwrap().expect("the table in force is kept");
        let kept = IdfTable::read(&plan.scheme.text, &*bytes).unwrap();
        let mut stages = dupflow::pipeline::stages(&plan, false);
        stages.scheme = stages.scheme.under(Arc::new(kept));
        let mut corpus = Corpus::new(&stages);
        let read = read_up_to(&parts, &memory.progress.last().unwrap().next);
        let alive = retention::alive(&read, None, &plan.retention);
        corpus.apply(&alive.into_iter().map(|(id, text)| (id, Some(text))).collect::<Vec<Event>>());
        let mut accumulated = Accumulated::new(memory.deltas);
        memory.progress.iter().for_each(|progress| accumulated.advance(progress.epoch));
        assert_same(&accumulated.pairs, &corpus.pairs(&stages), 0, run(seed));
        accumulated.end();
        assert_documents(&place, &plan, &parts);
    });
}

/// A state of a version that did not remember deleted ids never contains those, even if later runs write it.
#[test]
fn a_state_that_lacks_deleted_ids_never_claims_to_have_them() {
    let event = |n: u32| (DocId::new(&format!("d{}", n % 7)).unwrap(), Some(format!("some words {n}")));
    let history: Vec<Event> = (0..40).map(event).collect();
    let plan = Plan::load("exact", &[]).unwrap();
    let (whole, mut half) = (moving(&history, 2, 1), moving(&history, 2, 1));
    for part in half.values_mut() {
        part.events.truncate(part.events.len() / 2);
        part.end = part.events.last().map_or(0, |(offset, _)| offset + 1);
    }
    let claims = |runs: &[(&BTreeMap<u32, Partition>, bool)]| {
        let place = Place { state: Some(state::MemoryStore::default()), ..Place::default() };
        runs.iter().for_each(|(parts, ids_move)| to_the_end(&place, &plan, parts, *ids_move));
        open(place.state.as_ref().unwrap()).latest(u64::MAX).unwrap().unwrap().saved().ended
    };
    // For the state, a run that does not remember them is like an older version.
    assert!(!claims(&[(&half, false)]));
    assert!(!claims(&[(&half, false), (&whole, true)]));
    assert!(claims(&[(&half, true)]));
    assert!(claims(&[(&half, true), (&whole, true)]));
}

/// Remembered deleted ids are counted, and forgotten when their ids are inserted again.
#[test]
fn remembered_ids_are_counted() {
    use crate::script::{Epoched, Past, Stamped, closed};
    let mut stages = dupflow::pipeline::stages(
        &Plan::load("exact", &["retention.max_age=100s".to_owned()]).unwrap(),
        false,
    );
    stages.ids_move = true;
    let event = |id: &str, text: Option<&str>, ts| {
        Stamped::new(DocId::new(id).unwrap(), text.map(str::to_owned), Some(ts))
    };
    let epochs = [
        vec![event("a", Some("one"), 1000.0), event("b", Some("two"), 1000.0), event("c", None, 1000.0)],
        vec![event("a", None, 1010.0)],
        vec![event("a", Some("three"), 1020.0), event("b", None, 1030.0)],
        // c and b are forgotten; a expires and is forgotten.
        vec![event("d", Some("four"), 2000.0)],
    ];
    let epochs = epochs.map(|events| Epoched { events, at: None });
    for (through, remembered) in (1..).zip([1, 2, 2, 0]) {
        let metrics = Arc::new(Metrics::new(stages.filter.looks()));
        let mut stages = stages.clone();
        stages.observers.metrics = Arc::clone(&metrics);
        closed(&stages, &epochs[..through], &Past::default(), run(1));
        let counts = metrics.counts();
        assert_eq!(counts.balance(Counter::Remembered, Counter::Forgotten), remembered, "{through}");
        assert_eq!((counts.get(Counter::MovedIds), counts.get(Counter::Overruled)), (0, 0));
    }
}
