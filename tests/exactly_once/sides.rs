//! Views and notices beside the pairs of an output: at each moment the rows of views are those of its pairs
//! and documents; in the end the notices are those of a replay.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::place::Place;

/// The fields of the documents, for the table of the source: a generated id is `script/site/number`.
pub(crate) const FIELDS: &str = "fields = [\"site = prefix(id, \\\"/\\\", 2)\"]\n";

/// Documents of the top.
const TOP: usize = 3;

/// The name of the file of watches.
pub(crate) const WATCHES: &str = "watches.jsonl";

/// One text of the feed in so many is watched for.
const WATCHED: usize = 150;

/// The tables of a deployment file that define the views, the watch list and its notices. `watches` are the
/// keys of the list; `rows` and `notices` are the keys of the two outputs, with their values.
pub(crate) fn tables(watches: &str, rows: &str, notices: &str) -> String {
    format!("[watch]\n{watches}\n[notices]\n{notices}\n{}", views(rows))
}

fn views(place: &str) -> String {
    format!(
        "[[view]]\nname = \"sites\"\nof = \"pairs\"\ngroup = [\"site\"]\n{place}\n\
         [[view]]\nname = \"documents\"\nof = \"documents\"\n{place}\n\
         [[view]]\nname = \"copied\"\nof = \"documents\"\nmeasure = \"top:{TOP}\"\n{place}\n"
    )
}

/// The rows of these pairs and of this number of documents.
pub(crate) fn expected<'p>(
    pairs: impl Iterator<Item = (&'p str, &'p str)>,
    documents: usize,
) -> BTreeSet<String> {
    let mut sites: BTreeMap<[&str; 2], u64> = BTreeMap::new();
    let mut degrees: BTreeMap<&str, u64> = BTreeMap::new();
    for (a, b) in pairs {
        let mut group = [a, b].map(|id| id.match_indices('/').nth(1).map_or(id, |(at, _)| &id[..at]));
        group.sort_unstable();
        *sites.entry(group).or_default() += 1;
        [a, b].into_iter().for_each(|id| *degrees.entry(id).or_default() += 1);
    }
    let mut top: Vec<_> = degrees.into_iter().collect();
    top.sort_by_key(|(id, degree)| (std::cmp::Reverse(*degree), *id));
    let mut rows = BTreeSet::new();
    for (group, value) in sites {
        rows.insert(json!({ "view": "sites", "group": group, "value": value }).to_string());
    }
    for (id, value) in top.into_iter().take(TOP) {
        rows.insert(json!({ "view": "copied", "group": [], "id": id, "value": value }).to_string());
    }
    if documents > 0 {
        rows.insert(json!({ "view": "documents", "group": [], "value": documents }).to_string());
    }
    rows
}

/// The watches of a feed, each with its text: texts of some of its documents.
pub(crate) fn watches(place: &Place, feed: &Path) -> Vec<(String, String)> {
    let events = std::fs::read_to_string(feed).unwrap();
    let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let texts = events.filter_map(|event| event["text"].as_str().map(str::to_owned));
    let watch = |(n, text)| (format!("watch {n}"), text);
    let watches: Vec<_> = texts.step_by(WATCHED).enumerate().map(watch).collect();
    let lines = watches.iter().map(|(id, text)| json!({ "id": id, "text": text }).to_string() + "\n");
    std::fs::write(place.path(WATCHES), lines.collect::<String>()).unwrap();
    watches
}

/// The notices that a replay of the feed ends with.
pub(crate) fn fresh_notices(place: &Place, feed: &Path, pipeline: &str) -> BTreeSet<String> {
    let feed = feed.display();
    place.done(&format!("replay {pipeline} --watch {WATCHES} --notices fresh.jsonl -o fresh-deltas {feed}"));
    let notices = std::fs::read_to_string(place.path("fresh.jsonl")).unwrap();
    accumulated(notices.lines()).unwrap()
}

/// Live documents at the end of a feed.
pub(crate) fn alive(feed: &Path) -> usize {
    let mut alive = BTreeSet::new();
    for line in std::fs::read_to_string(feed).unwrap().lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        let id = event["id"].as_str().unwrap().to_owned();
        if event["op"] == "delete" {
            alive.remove(&id)
        } else {
            alive.insert(id)
        };
    }
    alive.len()
}

/// A row of a table, written as those of [`expected`] are.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn row(text: &str) -> String {
    serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{error}: {text}")).to_string()
}

/// What changes of rows add up to, without their epochs; an error if a row is not there once or not at all.
pub(crate) fn accumulated<'l>(lines: impl Iterator<Item = &'l str>) -> Result<BTreeSet<String>, String> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for line in lines {
        let mut change: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        let object = change.as_object_mut().ok_or_else(|| format!("no object: {line}"))?;
        object.remove("epoch");
        let diff = object.remove("diff").and_then(|diff| diff.as_i64()).unwrap_or_default();
        *sums.entry(change.to_string()).or_default() += diff;
    }
    sums.retain(|_, sum| *sum != 0);
    match sums.iter().find(|(_, sum)| **sum != 1) {
        Some((row, sum)) => Err(format!("the changes of {row} add up to {sum}")),
        None => Ok(sums.into_keys().collect()),
    }
}

/// Describes missing and unexpected rows.
pub(crate) fn compare(found: &BTreeSet<String>, expected: &BTreeSet<String>) -> Option<String> {
    let (lost, more) = (expected.difference(found).count(), found.difference(expected).count());
    let one = expected.symmetric_difference(found).next()?;
    Some(format!("{lost} rows of {} are lost, {more} are too much, as {one}", expected.len()))
}
