//! A compacted input: the records written to it, and those left.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dupflow::core::hash::mix;
use serde_json::{Value, json};

use crate::broker::{Broker, Writer};
use crate::place::Place;

/// Settings of the input: segments are closed after half a second and cleaned at once. Tombstones are kept
/// for a day, the default.
pub(crate) const SETTINGS: &[(&str, &str)] =
    &[("cleanup.policy", "compact"), ("segment.ms", "500"), ("min.cleanable.dirty.ratio", "0.01")];

/// A feed in which documents are written several times: with a new text, with the text of a neighbour,
/// deleted, and inserted again.
pub(crate) fn feed(place: &Place, seed: u64) -> std::path::PathBuf {
    place.done("generate --documents 1500 --seed 5 --near 0.4 --max-words 60 -o good.jsonl");
    let good = std::fs::read_to_string(place.path("good.jsonl")).unwrap();
    let all: Vec<Value> = good.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut lines = Vec::new();
    for (n, document) in all.iter().enumerate() {
        lines.push(document.to_string());
        // An earlier document, changed again.
        for again in 0..2_u64 {
            let drawn = mix(seed ^ mix(2 * n as u64 + again));
            let before = &all[usize::try_from(drawn % (n as u64 + 1)).unwrap()];
            let other = &all[usize::try_from((drawn >> 20) % (n as u64 + 1)).unwrap()];
            let id = &before["id"];
            let line = match other["text"].as_str().filter(|_| !(drawn >> 40).is_multiple_of(4)) {
                None => json!({ "id": id, "op": "delete" }),
                Some(text) => json!({ "id": id, "text": text }),
            };
            lines.push(line.to_string());
        }
    }
    std::fs::write(place.path("feed.jsonl"), lines.join("\n") + "\n").unwrap();
    place.path("feed.jsonl")
}

/// Writes the feed at a rate. Events of a document stay in the partition of its first event; later documents
/// also use added partitions.
pub(crate) fn write(
    broker: &Broker,
    topic: &str,
    feed: &Path,
    rate: usize,
    partitions: Arc<AtomicU32>,
) -> JoinHandle<()> {
    let (connection, topic) = (broker.connection(), topic.to_owned());
    let feed = std::fs::read_to_string(feed).unwrap();
    thread::spawn(move || {
        // A producer knows the partitions that exist when it starts. Retries keep the order.
        let own = [("linger.ms", "1"), ("enable.idempotence", "true")];
        let begin = || Writer(connection.producer("writer", &own).unwrap());
        let (mut writer, mut known) = (begin(), 0);
        let mut places: BTreeMap<String, u32> = BTreeMap::new();
        let begun = Instant::now();
        for (n, line) in feed.lines().enumerate() {
            let due = Duration::from_secs_f64(n as f64 / rate as f64);
            thread::sleep(due.saturating_sub(begun.elapsed()));
            let record: Value = serde_json::from_str(line).unwrap();
            let id = record["id"].as_str().unwrap();
            let count = u64::from(partitions.load(Ordering::SeqCst));
            if std::mem::replace(&mut known, count) != count {
                writer.flush();
                writer = begin();
            }
            let partition =
                *places.entry(id.to_owned()).or_insert_with(|| u32::try_from(mix(n as u64) % count).unwrap());
            let value = record["text"].as_str().map(|text| json!({ "text": text }).to_string());
            writer.put(&topic, partition, Some(id), value.as_ref().map(String::as_bytes));
        }
        writer.flush();
    })
}
