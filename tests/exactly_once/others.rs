//! Outputs beside the first one: after all kills each holds what a replay gives.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::place::{self, Pairs, Place};

/// Their tables in a deployment file.
pub(crate) fn tables() -> String {
    let tables = "[[output]]\npath = \"second.jsonl\"\ncauses = true\n\
        [[output]]\nanswer = \"cluster-deltas\"\npath = \"clusters.jsonl\"\n\
        [[output]]\nanswer = \"decisions\"\ndecisions = \"current\"\npath = \"decided.jsonl\"\n\
        [[output]]\nanswer = \"pairs\"\npath = \"pairs.jsonl\"\n";
    let database = "[[output]]\nkind = \"sqlite\"\npath = \"pairs.db\"\n";
    [tables, if cfg!(feature = "sqlite") { database } else { "" }].concat()
}

/// How the outputs differ from the pairs of the first one, and from a replay of the feed.
pub(crate) fn problems(place: &Place, feed: &Path, pipeline: &str, expected: &Pairs) -> Vec<String> {
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    let fresh = |emit: &str| {
        place.done(&format!("replay {pipeline} --emit {emit} -o fresh.jsonl {}", feed.display()));
        read("fresh.jsonl")
    };
    let mut problems = Vec::new();
    let mut of_deltas = Pairs::new();
    problems.extend(place::apply(read("second.jsonl").lines(), &mut of_deltas).err());
    let of_pairs: Pairs = read("pairs.jsonl").lines().map(|line| place::delta(line).1).collect();
    for (name, pairs) in
        [("second.jsonl", of_deltas), ("pairs.jsonl", of_pairs), ("pairs.db", database(place))]
    {
        let is_there = cfg!(feature = "sqlite") || name != "pairs.db";
        let differs = place::compare(&pairs, expected).filter(|_| is_there);
        problems.extend(differs.map(|what| format!("{name}: {what}")));
    }
    let clusters = [read("clusters.jsonl"), fresh("cluster-deltas")].map(|text| sums(&text));
    let decisions = [read("decided.jsonl"), fresh("decisions --decisions current")].map(|text| last(&text));
    for (name, [found, wanted]) in [("clusters.jsonl", clusters), ("decided.jsonl", decisions)] {
        if found != wanted {
            let other = found.iter().find(|row| !wanted.contains(row));
            let other = other.or_else(|| wanted.iter().find(|row| !found.contains(row)));
            problems.push(format!("{name}: {} rows, not {}; {other:?}", found.len(), wanted.len()));
        }
    }
    problems
}

#[cfg(feature = "sqlite")]
fn database(place: &Place) -> Pairs {
    let read = rusqlite::Connection::open(place.path("pairs.db")).unwrap();
    let mut all = read.prepare("SELECT a, b, similarity FROM pairs").unwrap();
    let similarity = |number: f64| Value::from(number).to_string();
    let rows = all.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), similarity(row.get(2)?)))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[cfg(not(feature = "sqlite"))]
fn database(_: &Place) -> Pairs {
    Pairs::new()
}

/// A line, and its text without what differs between runs.
fn line(line: &str) -> (Value, String) {
    let all: Value = serde_json::from_str(line).unwrap();
    let mut rest = all.clone();
    rest.as_object_mut().unwrap().retain(|name, _| !["diff", "epoch", "at"].contains(&name.as_str()));
    (all, rest.to_string())
}

/// What the changes accumulate to.
fn sums(text: &str) -> Vec<String> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for (all, rest) in text.lines().map(line) {
        *sums.entry(rest).or_default() += all["diff"].as_i64().unwrap();
    }
    sums.retain(|_, sum| *sum != 0);
    sums.into_iter().map(|(row, sum)| format!("{sum} {row}")).collect()
}

/// The last decision on each live document.
fn last(text: &str) -> Vec<String> {
    let of_id: BTreeMap<_, _> =
        text.lines().map(line).map(|(all, rest)| (all["id"].to_string(), (all, rest))).collect();
    of_id.into_values().filter(|(all, _)| all["ended"] != true).map(|(_, rest)| rest).collect()
}
