//! Random histories in which near-duplicates, copies, repeats and deletes of unknown ids are common; and how
//! properties of them are checked.
//!
//! The seed is fixed, so that a test gives the same result each time. `DUPFLOW_SEED=7 cargo test --test
//! model` generates other histories. A failure prints its seed and the smallest failing history. Its case is
//! added to `regressions.txt` beside this file, which is committed with the fix; from then on it is checked
//! first.

use std::collections::BTreeMap;

use dupflow::core::doc::DocId;
use proptest::collection::{SizeRange, vec};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestCaseError, TestError, TestRunner};

use crate::data::Event;
use crate::script::Run;

/// The most unusual ids that a feed can hold, few enough to recur.
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
    ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "कुत्ता", "Kafe\u{301}", "lynx"];

/// An edit of one of three templates, so that texts are often alike; template 3 is a few words, or none.
pub(crate) fn text() -> impl Strategy<Value = String> {
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
    /// The text that the id had last, whether the document is alive or not.
    Again,
    Delete,
}

pub(crate) fn ids() -> impl Strategy<Value = DocId> {
    (0..IDS.len()).prop_map(|i| DocId::new(IDS[i]).unwrap())
}

/// Events in order. Deletes occur whether the document is alive or not.
pub(crate) fn events(count: impl Into<SizeRange>) -> impl Strategy<Value = Vec<Event>> {
    let changes =
        prop_oneof![6 => text().prop_map(Change::Text), 1 => Just(Change::Again), 2 => Just(Change::Delete)];
    vec((ids(), changes), count).prop_map(|history| {
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

/// Every number of workers, both codecs, any distribution of events.
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

/// The file of regressions, a line for each. All tests of more than [`FEW`] histories check all of them.
const REGRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model/regressions.txt");

/// The most histories of one of many combinations, which would spend most of its time on the regressions of
/// others.
const FEW: u32 = 8;

/// `DUPFLOW_SEED`, or the seed that is used without it.
fn seed() -> u64 {
    let typed = std::env::var("DUPFLOW_SEED").ok();
    typed.map_or(0xd0_d0, |typed| typed.parse().expect("DUPFLOW_SEED is a whole number from 0 to 2^64 - 1"))
}

/// How many of so many histories are tested: the percentage `DUPFLOW_HISTORIES`, by default a tenth.
pub(crate) fn tested(cases: u32) -> u32 {
    let typed = std::env::var("DUPFLOW_HISTORIES").ok();
    let percent: u32 =
        typed.map_or(10, |typed| typed.parse().expect("DUPFLOW_HISTORIES is a whole number of percent"));
    (cases * percent).div_ceil(100)
}

/// Checks a property, which panics where it does not hold, on [so many](tested) cases, and on the recorded
/// regressions if they are not [few](FEW).
pub(crate) fn check<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value)) {
    let seed = seed();
    println!("DUPFLOW_SEED={seed}");
    let config = Config {
        cases: tested(cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: (cases > FEW)
            .then(|| Box::new(FileFailurePersistence::Direct(REGRESSIONS)) as _),
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&strategy, |value| {
        property(value);
        Ok::<_, TestCaseError>(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, value)) => panic!("{why}\nDUPFLOW_SEED={seed}, minimal input: {value:?}"),
        Err(aborted) => panic!("{aborted}"),
    }
}
