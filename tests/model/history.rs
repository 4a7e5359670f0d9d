//! Random histories in which near-duplicates, copies, repeats and vain deletes are common.

use std::collections::BTreeMap;

use dupflow::doc::DocId;
use proptest::collection::{SizeRange, vec};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use crate::data::Event;
use crate::script::Run;

/// Ids as awkward as a feed can carry, few enough that they are met again.
const IDS: [&str; 24] = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "g",
    "h",
    "i",
    "j",
    "k",
    "l",
    "m",
    "n",
    "o",
    "p",
    "q\"uoted\"",
    "new\nline",
    "nul\0",
    "ünïcode",
    "日本",
    " ",
    "\\",
    "z",
];

const WORDS: [&str; 12] =
    ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay", "kite", "lynx"];

/// An edit of one of three templates, so that texts are often alike; template 3 is a few words, or none.
fn text() -> impl Strategy<Value = String> {
    (0usize..4, vec((0usize..40, 0usize..WORDS.len()), 0..4)).prop_map(|(template, edits)| {
        let length = if template == 3 { edits.len().min(2) } else { 40 };
        let mut words: Vec<&str> =
            (0..length).map(|i| WORDS[(i * (template + 2) + i * i / 7) % WORDS.len()]).collect();
        for (at, word) in edits {
            if let Some(place) = words.get_mut(at) {
                *place = WORDS[word];
            }
        }
        words.join(" ")
    })
}

#[derive(Clone, Debug)]
enum Change {
    Text(String),
    /// The text that the id had last, dead or alive.
    Again,
    Delete,
}

/// Events in order. Deletes come whether the id is alive or not.
pub(crate) fn events(count: impl Into<SizeRange>) -> impl Strategy<Value = Vec<Event>> {
    let ids = (0..IDS.len()).prop_map(|i| DocId::new(IDS[i]).unwrap());
    let changes =
        prop_oneof![6 => text().prop_map(Change::Text), 1 => Just(Change::Again), 2 => Just(Change::Delete)];
    vec((ids, changes), count).prop_map(|history| {
        let mut last: BTreeMap<DocId, String> = BTreeMap::new();
        let event = |(id, change): (DocId, Change)| {
            let text = match change {
                Change::Text(text) => {
                    last.insert(id.clone(), text.clone());
                    Some(text)
                }
                Change::Again => last.get(&id).cloned(),
                Change::Delete => None,
            };
            (id, text)
        };
        history.into_iter().map(event).collect()
    })
}

/// Sizes of epochs, for [`cut`].
pub(crate) fn sizes() -> impl Strategy<Value = Vec<usize>> {
    vec(1usize..20, 1..5)
}

/// Every number of workers, both codecs, any deal.
pub(crate) fn runs() -> impl Strategy<Value = Run> {
    (prop_oneof![Just(1usize), Just(2), Just(4)], any::<bool>(), any::<u64>())
        .prop_map(|(workers, serialized, seed)| Run { workers, serialized, seed })
}

/// Cuts events into epochs of the given sizes, repeated as needed.
pub(crate) fn cut(events: &[Event], sizes: &[usize]) -> Vec<Vec<Event>> {
    let mut rest = events;
    let mut epochs = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (epoch, later) = rest.split_at((*size).min(rest.len()));
        epochs.push(epoch.to_vec());
        rest = later;
    }
    epochs
}

/// Runs a property, which panics where it does not hold, on so many cases from a fixed seed.
pub(crate) fn check<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value)) {
    let seed = RngSeed::Fixed(0xd0_d0);
    let config = Config { cases, rng_seed: seed, failure_persistence: None, ..Config::default() };
    let tested = TestRunner::new(config).run(&strategy, |value| {
        property(value);
        Ok::<_, TestCaseError>(())
    });
    match tested {
        Ok(()) => {}
        Err(TestError::Fail(why, value)) => panic!("{why}\nminimal input: {value:?}"),
        Err(aborted) => panic!("{aborted}"),
    }
}
