//! A memory budget: the deltas are byte for byte those of a run in memory.
//!
//! Half of all histories of the other families run under a budget too, by their seeds ([`budget`]). Bug
//! classes: a row that is read as another one, or as it was before; a row that is needed and was not fetched;
//! a value that is lost when its page is dropped, its place is used again or its members change; a file that
//! fails without an end of the run.

use dupflow::config::Plan;
use dupflow::core::doc::DocId;
use dupflow::core::run::metrics::Counter;
use dupflow::engine::dataflow::Stages;
use proptest::prelude::*;

use crate::data::Event;
use crate::history::{check, cut, events, runs, sizes, tested};
use crate::pipelines::{CROWDED, plan};
use crate::script::{Run, budget, deltas, spill};

/// Every third id is too long for a row.
fn with_long_ids(events: &[Event]) -> Vec<Event> {
    let longer = |id: &DocId| {
        let text = id.as_str();
        let is_long = text.len() == 1 && text.as_bytes()[0].is_multiple_of(3);
        if is_long {
            DocId::new(&format!("{text}, and more than fits into a row")).unwrap()
        } else {
            id.clone()
        }
    };
    events.iter().map(|(id, text)| (longer(id), text.clone())).collect()
}

/// The run, with a seed that gives no budget.
fn in_memory(run: Run) -> Run {
    let seed = (run.seed..).find(|seed| budget(*seed).is_none()).unwrap();
    Run { seed, ..run }
}

fn same_deltas(cases: u32, plan: &Plan) {
    let counted = std::cell::Cell::new((0, 0));
    check(cases, (events(20..200), sizes(), runs(), any::<u64>()), |(events, sizes, run, random)| {
        let epochs = cut(&with_long_ids(&events), &sizes);
        let whole = deltas(&dupflow::pipeline::stages(plan, false), &epochs, in_memory(run));
        let spilled = dupflow::pipeline::stages(plan, false);
        let spilled = Stages { spill: Some(spill(random, None)), ..spilled };
        assert_eq!(deltas(&spilled, &epochs, run), whole);
        let count = |counter| spilled.observers.metrics.get(counter);
        assert!(count(Counter::SpillReads) <= count(Counter::SpillRows));
        let (reads, rows) = counted.get();
        counted.set((reads + count(Counter::SpillReads), rows + count(Counter::SpillRows)));
    });
    let (reads, rows) = counted.get();
    let least = 5 * u64::from(tested(cases));
    assert!(reads > least && rows > 2 * reads, "{reads} reads of {rows} rows, at least {least}");
}

#[test]
fn deltas_are_those_of_a_run_in_memory() {
    same_deltas(60, &plan(CROWDED));
}

#[test]
fn deltas_with_features_in_memory_are_those_of_a_run_in_memory() {
    same_deltas(
        40,
        &plan(
            "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 4 }\n\
        filter = { verify = \"exact\" }",
        ),
    );
}

/// The events of documents `d0`, `d1`, … with texts that have no word in common, 50 in an epoch.
fn unlike(first_text: usize) -> Vec<Vec<Event>> {
    let text = |n: usize| (0..40).map(|word| format!("w{} ", (first_text + n) * 100 + word)).collect();
    let event = |n: usize| (DocId::new(&format!("d{n}")).unwrap(), Some(text(n)));
    (0..20).map(|epoch| (0..50).map(|n| event(epoch * 50 + n)).collect()).collect()
}

/// The rows that a history looks up, and the pages that it reads.
fn looked_up(epochs: &[Vec<Event>]) -> (u64, u64) {
    let stages = dupflow::pipeline::stages(&Plan::load("minhash", &[]).unwrap(), false);
    let stages = Stages { spill: Some(spill(0, None)), ..stages };
    assert!(deltas(&stages, epochs, Run { workers: 1, serialized: false, seed: 1 }).is_empty());
    let count = |counter| stages.observers.metrics.get(counter);
    (count(Counter::SpillRows), count(Counter::SpillReads))
}

#[test]
fn what_is_new_reads_nothing_and_an_old_document_is_read_twice() {
    let new = unlike(0);
    assert_eq!(looked_up(&new), (0, 0));
    // The row of the document and that of its sketch; the cache holds a few.
    let (_, reads) = looked_up(&[new, unlike(5000)].concat());
    assert!((1900..=2000).contains(&reads), "{reads} reads of 1000 updates");
}
