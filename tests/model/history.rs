//! Random histories in which near-duplicates, copies, repeats and vain deletes are common.

use dupflow::doc::DocId;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::script::Event;

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

/// Events in order: three upserts to a delete.
pub fn events(count: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<Event>> {
    let id = (0..IDS.len()).prop_map(|i| DocId::new(IDS[i]).unwrap());
    vec((id, prop_oneof![3 => text().prop_map(Some), 1 => Just(None)]), count)
}

/// Cuts events into epochs of the given sizes, repeated as needed.
pub fn cut(events: &[Event], sizes: &[usize]) -> Vec<Vec<Event>> {
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
