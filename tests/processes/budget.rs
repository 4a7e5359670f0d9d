//! Several processes with a memory budget: their output is that of one process without one, byte for byte.
//! Each restores its share when the run comes back after a kill.

#![cfg(unix)]

use serde_json::Value;

use crate::children::restored;
use crate::place::{Place, all_fail, ends};

/// Rows of 16 KiB: few documents fill the caches of the least budget.
const LARGE_ROWS: &str = "--set sketch.size=2048 --set sketch.bits=64";

#[test]
fn a_budget_changes_no_byte_by_any_number_of_processes() {
    let place = Place::new(4000);
    let words = format!("replay {LARGE_ROWS} --workers 1 --epoch events:200 -o out.jsonl feed.jsonl");
    place.done(&words);
    let expected = place.read("out.jsonl");
    assert!(expected.lines().count() > 100);
    let folder = env!("CARGO_TARGET_TMPDIR");
    for processes in [1, 3] {
        place.all_done(&format!("{words} --memory 64MiB --spill {folder} --stats stats.json"), processes);
        assert!(place.read("out.jsonl") == expected, "{processes}: other deltas");
        let stats: Value = serde_json::from_str(&place.read("stats.json")).unwrap();
        let count = |name: &str| stats["spill"][name].as_u64().unwrap();
        // More than the caches hold, so rows are written and read again.
        assert!(count("file_bytes") > processes as u64 * (16 << 20), "{processes}: {stats}");
        assert!(count("writes") > 0 && count("reads") > 0, "{processes}: {stats}");
    }
}

#[test]
fn processes_with_a_budget_come_back_after_a_kill() {
    let place = Place::new(3000);
    place.deployment("");
    let folder = env!("CARGO_TARGET_TMPDIR");
    let budget = format!("memory = \"64MiB\"\n[spill]\npath = \"{folder}\"\n[source]");
    place.write("run.toml", &place.read("run.toml").replace("[source]", &budget));
    let words = format!("run -c run.toml {LARGE_ROWS}");
    // A run that ends well leaves a state, which those that are killed restore.
    let first = place.start(&words, 3);
    first[0].wait_for("committed");
    first[0].signal("TERM");
    ends(first).into_iter().for_each(|(code, said)| assert_eq!(code, Some(0), "{said}"));
    for killed in [1, 0] {
        let mut all = place.start(&words, 3);
        all.iter().for_each(|process| process.wait_for("documents restored from the state"));
        let one = all.remove(killed);
        one.signal("KILL");
        assert_eq!(one.end().0, None);
        all_fail(all, &format!("process {killed} (127."));
    }
    let said = ends(place.start(&words, 3));
    said.iter().for_each(|(code, text)| assert_eq!(*code, Some(0), "{text}"));
    assert!(said.iter().all(|(_, text)| restored(text) > 0));
    assert_eq!(place.pairs(), place.expected_with(LARGE_ROWS));
}
