//! `--emit decisions`, and `sink.emit = "decisions"` through a restart, with tables, and where it is refused.

use serde_json::Value;

use super::dupflow::Place;
use super::feeds::{lines, page, upsert};

/// The records of an output without their times, which must be there.
fn decisions(out: &str) -> Vec<Value> {
    let without_time = |mut line: Value| {
        let at = line.as_object_mut().expect("an object").remove("at");
        let at = at.and_then(|at| at.as_str().map(str::to_owned)).expect("a time");
        assert!(at.len() == 24 && at.ends_with('Z'), "{at}");
        line
    };
    lines(out).into_iter().map(without_time).collect()
}

fn expected(records: &str) -> Vec<Value> {
    records.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Five epochs by time stamp: two unique pages, a copy of the first, an older copy of it, an edit, a delete.
fn feed() -> String {
    let with_ts = |ts: u32, event: String| format!("{{\"ts\":{ts},{}", &event[1..]);
    [
        with_ts(10, upsert("b", &page(0..0, 0))),
        with_ts(10, upsert("lone", &page(0..100, 9))),
        with_ts(11, upsert("c", &page(0..0, 0))),
        with_ts(9, upsert("a", &page(0..0, 0))),
        with_ts(13, upsert("c", &page(0..100, 5))),
        with_ts(14, "{\"id\":\"a\",\"op\":\"delete\"}\n".to_owned()),
    ]
    .concat()
}

const FIRST: &str = r#"{"id":"b","partition":0,"offset":0,"epoch":1,"copy":false,"of":null,"repeats":[],"pairs":0,"cluster":null}
{"id":"lone","partition":0,"offset":1,"epoch":1,"copy":false,"of":null,"repeats":[],"pairs":0,"cluster":null}
{"id":"c","partition":0,"offset":2,"epoch":2,"copy":true,"of":"b","repeats":[{"id":"b","similarity":1.0}],"pairs":1,"cluster":"b"}
{"id":"a","partition":0,"offset":3,"epoch":3,"copy":false,"of":"a","repeats":[{"id":"b","similarity":1.0},{"id":"c","similarity":1.0}],"pairs":2,"cluster":"a"}
{"id":"c","partition":0,"offset":4,"epoch":4,"copy":false,"of":null,"repeats":[],"pairs":0,"cluster":null}"#;

const CURRENT: &str = r#"{"id":"b","partition":0,"offset":0,"epoch":1,"copy":false,"of":null,"repeats":[],"pairs":0,"cluster":null}
{"id":"lone","partition":0,"offset":1,"epoch":1,"copy":false,"of":null,"repeats":[],"pairs":0,"cluster":null}
{"id":"b","partition":0,"offset":0,"epoch":2,"copy":false,"of":"b","repeats":[{"id":"c","similarity":1.0}],"pairs":1,"cluster":"b"}
{"id":"c","partition":0,"offset":2,"epoch":2,"copy":true,"of":"b","repeats":[{"id":"b","similarity":1.0}],"pairs":1,"cluster":"b"}
{"id":"a","partition":0,"offset":3,"epoch":3,"copy":false,"of":"a","repeats":[{"id":"b","similarity":1.0},{"id":"c","similarity":1.0}],"pairs":2,"cluster":"a"}
{"id":"b","partition":0,"offset":0,"epoch":3,"copy":true,"of":"a","repeats":[{"id":"a","similarity":1.0},{"id":"c","similarity":1.0}],"pairs":2,"cluster":"a"}
{"id":"c","partition":0,"offset":2,"epoch":3,"copy":true,"of":"a","repeats":[{"id":"a","similarity":1.0},{"id":"b","similarity":1.0}],"pairs":2,"cluster":"a"}
{"id":"a","partition":0,"offset":3,"epoch":4,"copy":false,"of":"a","repeats":[{"id":"b","similarity":1.0}],"pairs":1,"cluster":"a"}
{"id":"b","partition":0,"offset":0,"epoch":4,"copy":true,"of":"a","repeats":[{"id":"a","similarity":1.0}],"pairs":1,"cluster":"a"}
{"id":"c","partition":0,"offset":4,"epoch":4,"copy":false,"of":null,"repeats":[],"pairs":0,"cluster":null}
{"id":"a","epoch":5,"ended":true}
{"id":"b","partition":0,"offset":0,"epoch":5,"copy":false,"of":null,"repeats":[],"pairs":0,"cluster":null}"#;

#[test]
fn golden_decisions_of_a_replay() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    for (words, records) in [("", FIRST), ("--decisions first ", FIRST), ("--decisions current ", CURRENT)] {
        for workers in [1, 3] {
            let (run, _) =
                place.replay(&format!("--emit decisions {words}--epoch ts --workers {workers} feed.jsonl"));
            assert_eq!(decisions(&run.out), expected(records), "{words}");
        }
    }
}

#[test]
fn an_upsert_that_is_deleted_in_its_epoch_is_decided() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    for mode in ["first", "current"] {
        let (run, _) = place.replay(&format!("--emit decisions --decisions {mode} --epoch all feed.jsonl"));
        let found = decisions(&run.out);
        let ids: Vec<_> = found.iter().map(|record| record["id"].as_str().expect("an id")).collect();
        assert_eq!(ids, ["a", "b", "c", "lone"]);
        let a = r#"{"id":"a","partition":0,"offset":5,"epoch":1,"ended":true}"#;
        assert_eq!(found[0], expected(a)[0]);
        assert_eq!(found[2]["offset"], 4, "the last event of the epoch");
    }
}

fn deployment(place: &Place, sink: &str) {
    let text = format!(
        "workers = 2\n[source]\ninputs = [\"feed.jsonl\"]\nepoch = \"ts\"\n[state]\npath = \"state\"\n[sink]\n{sink}\n"
    );
    place.file("run.toml", text);
}

#[test]
fn a_restart_decides_what_is_new() {
    for (mode, records) in [("first", FIRST), ("current", CURRENT)] {
        let place = Place::new();
        deployment(&place, &format!("path = \"out.jsonl\"\nemit = \"decisions\"\ndecisions = \"{mode}\""));
        let whole = feed();
        let cut = whole.lines().take(3).map(|line| format!("{line}\n")).collect::<String>();
        for part in [cut, whole] {
            place.file("feed.jsonl", part);
            let run = place.run("run -c run.toml");
            assert_eq!(run.code, 0, "{run:?}");
        }
        assert_eq!(decisions(&place.read("out.jsonl")), expected(records), "{mode}");
        let other = if mode == "first" { "current" } else { "first" };
        deployment(&place, &format!("path = \"out.jsonl\"\nemit = \"decisions\"\ndecisions = \"{other}\""));
        let run = place.run("run -c run.toml");
        assert!(run.code == 1 && run.err.contains("sink.decisions"), "{run:?}");
        let run = place.run("run -c run.toml --reconcile");
        assert_eq!(run.code, 0, "{run:?}");
        let last = decisions(&place.read("out.jsonl"));
        if other == "current" {
            let more = r#"{"id":"a","epoch":5,"ended":true}
{"id":"b","partition":0,"offset":0,"epoch":5,"copy":false,"of":null,"repeats":[],"pairs":0,"cluster":null}"#;
            let before = expected(FIRST);
            // The first record of b was right again in the end.
            let more = &expected(more)[..last.len() - before.len()];
            assert_eq!(last, [&before[..], more].concat());
        } else {
            assert_eq!(last, expected(records), "each upsert has its decision");
        }
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn tables_hold_the_last_decision_of_each_document() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let open = || rusqlite::Connection::open(place.path("out.db")).expect("the database opens");
    let rows = |connection: &rusqlite::Connection| {
        let sql = "SELECT id || ' ' || source_offset || ' ' || epoch || ' ' || ended || ' ' || copy || ' ' || \
                   coalesce(\"of\", '-') || ' ' || repeats || ' ' || pairs || ' ' || coalesce(cluster, '-') \
                   FROM decisions WHERE at IS NOT NULL ORDER BY id";
        let mut query = connection.prepare(sql).expect("the table is there");
        let rows = query.query_map([], |row| row.get::<_, String>(0)).expect("rows");
        rows.collect::<Result<Vec<_>, _>>().expect("rows")
    };
    let sink = |emit: &str| format!("kind = \"sqlite\"\npath = \"out.db\"\n{emit}");
    let first = [
        r#"a 3 3 0 0 a [{"id":"b","similarity":1.0},{"id":"c","similarity":1.0}] 2 a"#,
        "b 0 1 0 0 - [] 0 -",
        "c 4 4 0 0 - [] 0 -",
        "lone 1 1 0 0 - [] 0 -",
    ];
    deployment(&place, &sink("emit = \"decisions\""));
    assert_eq!(place.run("run -c run.toml").code, 0);
    assert_eq!(rows(&open()), first);
    // Kept current, by a correction: a has ended.
    deployment(&place, &sink("emit = \"decisions\"\ndecisions = \"current\""));
    let refused = place.run("run -c run.toml");
    assert!(refused.code == 1 && refused.err.contains("sink.decisions"), "{refused:?}");
    let run = place.run("run -c run.toml --reconcile");
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(rows(&open()), &first[1..]);
    // Without decisions the table is emptied; with them it is filled again.
    for (emit, count) in [("emit = \"pairs\"", 0), ("emit = \"decisions\"\ndecisions = \"current\"", 3)] {
        deployment(&place, &sink(emit));
        assert_eq!(place.run("run -c run.toml").code, 1, "{emit}");
        let run = place.run("run -c run.toml --reconcile");
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(rows(&open()).len(), count, "{emit}");
    }
}

#[test]
fn what_does_not_fit_is_refused_before_the_start() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    for (words, message) in [
        ("--emit decisions --output-format csv", "a decision holds a list"),
        ("--emit decisions -o out.parquet", "a decision holds a list"),
        ("--decisions current", "--decisions: has an effect with --emit decisions only"),
        ("--emit decisions --decisions last", "\"first\" or \"current\""),
        ("--emit decisions --evidence", "only pairs have evidence"),
        ("--emit decisions --causes", "only deltas have causes"),
    ] {
        let run = place.run(&format!("replay {words} feed.jsonl"));
        assert!(run.code == 2 && run.err.contains(message), "{words}: {run:?}");
    }
    for (sink, message) in [
        ("path = \"out.csv\"\nemit = \"decisions\"", "a decision holds a list"),
        ("emit = \"decisions\"\nformat = \"parquet\"", "a decision holds a list"),
        ("decisions = \"current\"", "it has an effect with sink.emit = \"decisions\" only"),
        ("emit = \"decisions\"\ndecisions = \"last\"", "\"first\" or \"current\""),
    ] {
        deployment(&place, sink);
        let run = place.run("check -c run.toml");
        assert!(run.code == 2 && run.err.contains(message), "{sink}: {run:?}");
    }
}
