//! The documents: families of near-duplicates that are inserted, updated and deleted, in pieces of three
//! events, between which there are records that are none.

use std::collections::BTreeMap;

use dupflow::core::hash::mix;
use serde_json::json;

/// Events of a piece, which are an epoch.
pub(crate) const EVENTS: usize = 3;

/// The deployment key and the option that cut the feed where its pieces end: bad records count too.
pub(crate) const EPOCH: &str = "events:4";

/// The last event of a live document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Live {
    pub(crate) offset: usize,
    pub(crate) ts: usize,
    pub(crate) text: String,
}

/// A text of 100 words: that of a family, but for some words in a row.
fn text(family: u64, seed: u64) -> String {
    let (from, many) = (mix(seed) % 60, [0, 1, 4, 8, 14][usize::try_from(mix(seed + 1) % 5).unwrap()]);
    let word = |n| match n {
        n if (from..from + many).contains(&n) => format!("x{seed}x{n}"),
        n => format!("w{family}w{n}"),
    };
    (0..100).map(word).collect::<Vec<_>>().join(" ")
}

/// The event with this number.
fn event(number: usize) -> String {
    let seed = u64::try_from(number).unwrap();
    let id = format!("site{}/d{:02}", mix(seed) % 3, mix(mix(seed)) % 23);
    let event = match mix(seed ^ 0xde1e).is_multiple_of(6) {
        true => json!({ "id": id, "op": "delete" }),
        false => json!({ "id": id, "ts": number, "text": text(mix(seed ^ 0xfa) % 4, seed) }),
    };
    event.to_string()
}

/// The lines of so many pieces. Each piece has a record that is no event, after its first.
pub(crate) fn lines(pieces: usize) -> Vec<String> {
    let all = (0..pieces * EVENTS).flat_map(|number| {
        let oops = number.is_multiple_of(EVENTS).then(|| format!("oops {number}"));
        std::iter::once(event(number)).chain(oops)
    });
    all.collect()
}

/// The offsets of bad records.
pub(crate) fn bad(lines: &[String]) -> Vec<usize> {
    let all = lines.iter().enumerate().filter(|(_, line)| line.starts_with("oops"));
    all.map(|(offset, _)| offset).collect()
}

/// The documents that are alive after these lines.
pub(crate) fn survivors(lines: &[String]) -> BTreeMap<String, Live> {
    let mut alive = BTreeMap::new();
    for (offset, line) in lines.iter().enumerate() {
        let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let id = event["id"].as_str().unwrap().to_owned();
        match event["text"].as_str() {
            Some(text) => {
                let ts = usize::try_from(event["ts"].as_u64().unwrap()).unwrap();
                drop(alive.insert(id, Live { offset, ts, text: text.to_owned() }));
            }
            None => drop(alive.remove(&id)),
        }
    }
    alive
}

/// Texts that are watched for, as lines.
pub(crate) fn watches() -> String {
    let watch = |n| json!({ "id": format!("watch {n}"), "text": text(n, 1_000_000) }).to_string() + "\n";
    (0..2).map(watch).collect()
}
