//! The law on a recorded history: the first 10,000 events of a feed, compared with the oracle every 1,000.

use std::collections::BTreeSet;

use dupflow::config::Plan;
use dupflow::core::pair::DocPair;
use dupflow::core::time::Epoch;

use crate::data::{self, Event};
use crate::law::{Accumulated, Corpus, assert_same};
use crate::script::{self, Run};

const EVENTS: usize = 10_000;
const CUT: usize = 1_000;

/// Epochs of `size` events; the last of each 1,000 holds the rest.
fn epochs(events: &[Event], size: usize) -> Vec<Vec<Event>> {
    events.chunks(CUT).flat_map(|part| part.chunks(size).map(<[Event]>::to_vec)).collect()
}

fn holds(pipeline: &str, threshold: f64) {
    let Some(folder) = data::folder(&format!("the law on real history, {pipeline} at {threshold}")) else {
        return;
    };
    let events: Vec<Event> = data::feed(&folder.join("feed_tldr_half0.jsonl.zst")).take(EVENTS).collect();
    assert_eq!(events.len(), EVENTS);
    let plan =
        Plan::load(pipeline, &[format!("threshold={threshold}")]).unwrap_or_else(|error| panic!("{error}"));
    let stages = dupflow::pipeline::stages(&plan, false);
    let mut corpus = Corpus::new(&stages);
    let expected: Vec<BTreeSet<DocPair>> = events
        .chunks(CUT)
        .map(|part| {
            corpus.apply(part);
            corpus.pairs(&stages)
        })
        .collect();
    assert!(expected.iter().all(|pairs| !pairs.is_empty()));

    for (size, workers, serialized) in
        [(1000, 1, false), (1000, 2, true), (1000, 4, false), (37, 1, true), (37, 2, false), (37, 4, true)]
    {
        let run = Run { workers, serialized, seed: 7 };
        let epochs = epochs(&events, size);
        let mut accumulated =
            Accumulated::new(script::deltas(&dupflow::pipeline::stages(&plan, false), &epochs, run));
        let each = (epochs.len() / expected.len()) as Epoch;
        let mut cuts = expected.iter();
        for (epoch, _) in (1..).zip(&epochs) {
            accumulated.advance(epoch);
            if epoch.is_multiple_of(each) {
                assert_same(&accumulated.pairs, cuts.next().unwrap(), epoch, run);
            }
        }
        accumulated.end();
    }
}

#[test]
fn sketches_at_0_8() {
    holds("minhash", 0.8);
}

#[test]
fn sketches_at_0_5() {
    holds("minhash", 0.5);
}

#[test]
fn exact_at_0_8() {
    holds("exact", 0.8);
}

#[test]
fn exact_at_0_5() {
    holds("exact", 0.5);
}
