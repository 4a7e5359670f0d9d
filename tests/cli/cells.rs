//! Which result can be written where: the table of docs/outputs.md is what the commands accept. A cell that
//! is not accepted is refused before anything is read, with exit code 2 and a reason.

#![cfg(all(
    feature = "arrow",
    feature = "kafka",
    feature = "parquet",
    feature = "sqlite",
    feature = "postgres"
))]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::dupflow::{Ended, Place};
use super::feeds::{page, upsert};

/// As typed, with what they need.
const RESULTS: [(&str, &str); 11] = [
    ("deltas", ""),
    ("pairs", ""),
    ("cluster-deltas", ""),
    ("clusters", ""),
    ("keep", ""),
    ("remove", ""),
    ("documents", ""),
    ("removed-documents", ""),
    ("items", " -p decontaminate --against items.jsonl"),
    ("decisions", ""),
    ("rejected:9", ""),
];

/// The place of a result, the output of a replay that is there, and the table `[sink]` of a run.
const PLACES: [(&str, Option<&str>, &str); 8] = [
    ("JSON Lines", Some("out.jsonl"), "path = \"out.jsonl\""),
    ("CSV", Some("out.csv"), "path = \"out.csv\""),
    ("Parquet", Some("out.parquet"), "path = \"out.parquet\""),
    ("Arrow", Some("out.arrow"), "path = \"out.arrow\""),
    ("a topic", Some("kafka:out"), "kind = \"kafka\"\ntopic = \"out\"\n[kafka]\nbrokers = \"127.0.0.1:9\""),
    ("SQLite", Some("sqlite:out.db"), "kind = \"sqlite\"\npath = \"out.db\""),
    ("PostgreSQL", Some("postgres://db/web"), "kind = \"postgres\"\nurl = \"postgres://db/web\""),
    ("nowhere", Some("null:"), "kind = \"null\""),
];

/// Whether a command line is accepted; a refusal says why.
fn is_accepted(run: &Ended, cell: &str) -> bool {
    assert!(run.code == 0 || run.code == 2, "{cell}: {run:?}");
    let says = ["output", "emit", "sink."].iter().any(|what| run.err.contains(what));
    assert!(run.code == 0 || says, "{cell} is refused without a reason: {run:?}");
    run.code == 0
}

#[test]
fn the_table_of_results_and_places_is_what_commands_accept() {
    let place = Place::new();
    place.file("feed.jsonl", upsert("a", &page(0..0, 0)));
    place.file("items.jsonl", upsert("item", &page(0..0, 0)));
    let mut table = "| emit |".to_owned();
    PLACES.iter().for_each(|(name, ..)| write!(table, " {name} |").unwrap());
    table += "\n|---|";
    PLACES.iter().for_each(|_| table += "---|");
    table += "\n";
    for (emit, more) in RESULTS {
        write!(table, "| `{}` |", emit.replace(":9", ":N")).unwrap();
        for (name, output, sink) in PLACES {
            let replayed = output.is_some_and(|output| {
                let typed = format!("replay{more} --dry-run=1 --emit {emit} -o {output} feed.jsonl");
                is_accepted(&place.run(&typed), &typed)
            });
            place.file(
                "run.toml",
                format!("source.inputs = [\"feed.jsonl\"]\n[sink]\nemit = \"{emit}\"\n{sink}\n"),
            );
            let run = is_accepted(&place.run("check -c run.toml"), &format!("a run of {emit} into {name}"));
            let cell = match (replayed, run) {
                (true, true) => "replay, run",
                (true, false) => "replay",
                (false, true) => "run",
                (false, false) => "–",
            };
            write!(table, " {cell} |").unwrap();
        }
        table += "\n";
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/outputs.md")).unwrap();
    let there =
        page.split("<!-- results and places -->\n").nth(1).and_then(|rest| rest.split("<!-- end -->").next());
    assert_eq!(there.unwrap_or_default(), table, "docs/outputs.md needs\n{table}");
    let made: BTreeMap<_, _> =
        std::fs::read_dir(place.path("")).unwrap().map(|entry| (entry.unwrap().file_name(), ())).collect();
    assert_eq!(made.len(), 3, "nothing was written: {made:?}");
}
