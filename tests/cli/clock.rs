//! A wall clock of retention that was ahead once: it is reported, and `--reconcile` sets it back.

use std::fs;
use std::path::Path;

use dupflow::core::hash;
use dupflow::core::time::unix_seconds;
use serde_json::{Value, json};

use super::dupflow::{Ended, Place};
use super::feeds::{accumulated, page};

const HERE: &str = "[source]\ninputs = [\"in.jsonl\"]\n[sink]\npath = \"out.jsonl\"\n";

/// A pair of copies named by `n`, from `age` seconds ago.
fn pair(n: u32, age: f64) -> String {
    let upsert = |id: String| json!({ "id": id, "text": page(0..100, n + 1), "ts": unix_seconds() - age });
    format!("{}\n{}\n", upsert(format!("a{n}")), upsert(format!("b{n}")))
}

/// Sets the clock in the mark of an output, as a run does whose machine is ahead.
fn set_ahead(mark: &Path, seconds: f64) {
    let text = fs::read_to_string(mark).expect("there is a mark");
    let mut value: Value = serde_json::from_str(&text[17..]).expect("it is JSON");
    let clock = &mut value["mark"]["progress"]["clock"];
    assert!(clock["wall"].is_string(), "{clock}");
    clock["wall"] = (unix_seconds() + seconds).to_string().into();
    let text = value.to_string();
    let sum = hash::bytes(0, text.as_bytes());
    fs::write(mark, format!("{sum:016x} {text}")).expect("it can be written");
}

fn run(place: &Place, more: &str) -> Ended {
    place.run(&format!("run -c here.toml --set retention.max_age=1h --set retention.clock=wall{more}"))
}

/// With a state and without one, for hours and for years: what had expired too early is back, and the output
/// is that of a fresh run.
#[test]
fn a_clock_that_was_ahead_is_reported_and_set_back() {
    for (with_state, ahead) in [(true, 10_800.0), (false, 10_800.0), (true, 3e8)] {
        let place = Place::new();
        place
            .file("here.toml", HERE.to_owned() + if with_state { "[state]\npath = \"state\"\n" } else { "" });
        let mut feed = pair(0, 1_800.0) + &pair(1, 60.0);
        place.file("in.jsonl", &feed);
        assert!(run(&place, "").err.contains("4 alive"));
        set_ahead(&place.path("out.jsonl.mark"), ahead);
        feed += &pair(2, 30.0);
        place.file("in.jsonl", &feed);
        let late = run(&place, "");
        assert!(late.err.contains("0 alive") && late.err.contains("too late"), "{}", late.err);
        let warned = late.err.lines().any(|line| line.contains("WARN") && line.contains("ahead"));
        assert!(warned && late.err.contains("--reconcile"), "{}", late.err);
        // A restart alone does not help; the way back that the message advises does.
        assert!(run(&place, "").err.contains("ahead"));
        let back = run(&place, " --reconcile");
        assert!(back.err.contains("6 alive") && back.err.contains("set back"), "{}", back.err);
        let corrected = accumulated(&place.read("out.jsonl"));
        assert_eq!(corrected.len(), 3, "{}", back.err);
        let after = run(&place, "");
        assert!(after.err.contains("6 alive") && !after.err.contains("ahead"), "{}", after.err);
        place.file("here.toml", HERE.replace("out.jsonl", "fresh.jsonl"));
        run(&place, "");
        assert_eq!(corrected, accumulated(&place.read("fresh.jsonl")));
    }
}

/// A machine that is ahead at the first start: nothing is ahead of it, but what it does not keep is said.
#[test]
fn upserts_that_are_late_are_reported() {
    let place = Place::new();
    place.file("here.toml", HERE);
    place.file("in.jsonl", pair(0, 3e8));
    let late = run(&place, "");
    assert!(late.err.lines().any(|line| line.contains("WARN") && line.contains("too old")), "{}", late.err);
    assert!(late.err.contains("2 upserts too late"), "{}", late.err);
}
