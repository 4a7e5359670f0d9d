//! Consequences of the law, tested without an oracle: the result is a function of the corpus only.

use std::collections::{BTreeMap, BTreeSet};

use dupflow::core::doc::DocId;
use dupflow::core::hash::{bytes, mix};
use dupflow::core::pair::{DocPair, Evidence, Pair};
use dupflow::core::run::metrics::Counter;
use proptest::prelude::any;

use crate::data::Event;
use crate::history::{check, cut, events, runs, sizes};
use crate::law::at_the_end;
use crate::pipelines::{CROWDED, plan};
use crate::script::{Run, deltas};

const ALONE: Run = Run { workers: 1, serialized: false, seed: 0 };

#[test]
fn the_cut_into_epochs_does_not_matter_at_the_end() {
    let plan = plan(CROWDED);
    check(100, (events(0..120), sizes(), sizes(), runs()), |(events, some, other, run)| {
        let result =
            |sizes: &[usize]| at_the_end(&dupflow::pipeline::stages(&plan, false), &cut(&events, sizes), run);
        let expected = result(&some);
        assert_eq!(result(&other), expected);
        assert_eq!(result(&[events.len().max(1)]), expected, "all in one epoch");
    });
}

#[test]
fn workers_and_codecs_do_not_matter_to_any_delta() {
    let plan = plan(CROWDED);
    check(60, (events(0..120), sizes(), any::<u64>()), |(events, sizes, seed)| {
        let epochs = cut(&events, &sizes);
        let result = |run| deltas(&dupflow::pipeline::stages(&plan, false), &epochs, run);
        let expected = result(ALONE);
        for workers in [1, 2, 3, 4] {
            for serialized in [false, true] {
                assert_eq!(result(Run { workers, serialized, seed }), expected, "{workers} {serialized}");
            }
        }
    });
}

#[test]
fn the_order_of_documents_within_an_epoch_does_not_matter() {
    let plan = plan(CROWDED);
    check(100, (events(0..120), sizes(), runs()), |(events, sizes, run)| {
        let mut epochs = cut(&events, &sizes);
        let result = |history: &[Vec<Event>]| deltas(&dupflow::pipeline::stages(&plan, false), history, run);
        let expected = result(&epochs);
        for epoch in &mut epochs {
            // A stable sort: the events of one document keep their order.
            epoch.sort_by_key(|(id, _)| mix(run.seed ^ bytes(0, id.as_str().as_bytes())));
        }
        assert_eq!(result(&epochs), expected);
    });
}

#[test]
fn what_is_inserted_and_deleted_leaves_nothing() {
    let plan = plan(CROWDED);
    check(100, (events(0..120), sizes(), runs()), |(mut events, sizes, run)| {
        let ids: BTreeSet<DocId> = events.iter().map(|(id, _)| id.clone()).collect();
        events.extend(ids.into_iter().map(|id| (id, None)));
        let stages = dupflow::pipeline::stages(&plan, false);
        assert_eq!(at_the_end(&stages, &cut(&events, &sizes), run), BTreeSet::new());
        assert!(stages.observers.hot_blocks.lock().is_empty());
        let count = |counter| stages.observers.metrics.get(counter);
        assert_eq!(count(Counter::Inserted), count(Counter::Deleted));
        assert_eq!(count(Counter::SketchesBorn), count(Counter::SketchesDied));
        assert_eq!(count(Counter::Formed), count(Counter::Dissolved));
    });
}

/// Only a star uses the ids, for its smallest one; so without stars a document may have any name.
#[test]
fn names_do_not_matter() {
    let mut plan = plan(CROWDED);
    plan.expand_limit = 1000;
    check(100, (events(0..120), sizes(), runs()), |(events, sizes, run)| {
        let rename = |id: &DocId| {
            DocId::new(&format!("{:016x}", mix(run.seed ^ bytes(1, id.as_str().as_bytes())))).unwrap()
        };
        let renamed: Vec<Event> = events.iter().map(|(id, text)| (rename(id), text.clone())).collect();
        let expected: BTreeSet<DocPair> =
            at_the_end(&dupflow::pipeline::stages(&plan, false), &cut(&events, &sizes), run)
                .into_iter()
                .map(|found| {
                    let pair = Pair::new(rename(found.pair.lo()), rename(found.pair.hi())).unwrap();
                    DocPair { pair, ..found }
                })
                .collect();
        assert_eq!(
            at_the_end(&dupflow::pipeline::stages(&plan, false), &cut(&renamed, &sizes), run),
            expected
        );
    });
}

/// Retractions carry evidence too, so it must not change with time; and it affects no result.
#[test]
fn evidence_changes_no_pair() {
    let plan = plan(CROWDED);
    check(100, (events(0..120), sizes(), runs()), |(events, sizes, run)| {
        let epochs = cut(&events, &sizes);
        let with = at_the_end(&dupflow::pipeline::stages(&plan, true), &epochs, run);
        let names: BTreeMap<_, _> = with.iter().map(|found| (found.pair.clone(), found.evidence)).collect();
        assert_eq!(names.len(), with.len());
        let bare = with.iter().map(|found| DocPair { evidence: Evidence::default(), ..found.clone() });
        assert_eq!(
            bare.collect::<BTreeSet<_>>(),
            at_the_end(&dupflow::pipeline::stages(&plan, false), &epochs, run)
        );
        for found in &with {
            // Copies are not compared; what was compared shares a block and was looked at.
            let Evidence { blocks, look, components } = found.evidence;
            assert_eq!((blocks > 0, components > 0), (look > 0, look > 0), "{found:?}");
        }
    });
}
