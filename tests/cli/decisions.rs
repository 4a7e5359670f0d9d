//! `--emit decisions`, and `sink.emit = "decisions"` through a restart, with tables, and where it is refused.

use serde_json::{Value, json};

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

/// The record of a live document, whose similarities are all 1.
fn live(id: &str, offset: u64, epoch: u64, of: Option<&str>, repeats: &[&str]) -> Value {
    let cluster = repeats.iter().copied().chain([id]).min().filter(|_| !repeats.is_empty());
    let each = repeats.iter().map(|near| json!({"id": near, "similarity": 1.0}));
    json!({
        "id": id, "partition": 0, "offset": offset, "epoch": epoch, "copy": of.is_some_and(|of| of != id),
        "of": of, "repeats": each.collect::<Vec<_>>(), "pairs": repeats.len(), "cluster": cluster,
    })
}

/// The records of the feed: one for each upsert.
fn first() -> Vec<Value> {
    vec![
        live("b", 0, 1, None, &[]),
        live("lone", 1, 1, None, &[]),
        live("c", 2, 2, Some("b"), &["b"]),
        live("a", 3, 3, Some("a"), &["b", "c"]),
        live("c", 4, 4, None, &[]),
    ]
}

/// The records of the feed where they are kept current.
fn current() -> Vec<Value> {
    vec![
        live("b", 0, 1, None, &[]),
        live("lone", 1, 1, None, &[]),
        live("b", 0, 2, Some("b"), &["c"]),
        live("c", 2, 2, Some("b"), &["b"]),
        live("a", 3, 3, Some("a"), &["b", "c"]),
        live("b", 0, 3, Some("a"), &["a", "c"]),
        live("c", 2, 3, Some("a"), &["a", "b"]),
        live("a", 3, 4, Some("a"), &["b"]),
        live("b", 0, 4, Some("a"), &["a"]),
        live("c", 4, 4, None, &[]),
        json!({"id": "a", "epoch": 5, "ended": true}),
        live("b", 0, 5, None, &[]),
    ]
}

#[test]
fn golden_decisions_of_a_replay() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    for (words, records) in
        [("", first()), ("--decisions first ", first()), ("--decisions current ", current())]
    {
        for workers in [1, 3] {
            let (run, _) =
                place.replay(&format!("--emit decisions {words}--epoch ts --workers {workers} feed.jsonl"));
            assert_eq!(decisions(&run.out), records, "{words}");
        }
    }
}

#[test]
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn a_summary_counts_decisions() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let (run, stats) = place.replay("--emit decisions --decisions current --epoch ts -o out feed.jsonl");
    let line = "\ndecisions   5 written: 1 copy, 1 the oldest of a cluster, 3 unique, 7 changed later\n";
    assert!(run.err.contains(line), "{run:?}");
    let counts = json!({ "written": 5, "copies": 1, "unique": 3, "ended": 0, "changed": 7 });
    assert_eq!(stats["decisions"], counts);
    assert!(run.err.contains(" alive, 6 deltas: "), "no delta is written: {run:?}");
    let (run, stats) = place.replay("--epoch ts -o out feed.jsonl");
    assert!(run.err.contains(" alive, 6 deltas written: "), "{run:?}");
    assert!(!run.err.contains("decisions") && stats.get("decisions").is_none());
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
        assert_eq!(found[0], json!({"id": "a", "partition": 0, "offset": 5, "epoch": 1, "ended": true}));
        assert_eq!(found[2]["offset"], 4, "the last event of the epoch");
    }
}

fn deployment(place: &Place, sink: &str) {
    let text = format!(
        "workers = 2\n[source]\ninputs = [\"feed.jsonl\"]\nepoch = \"ts\"\n[state]\npath = \"state\"\n\
         [sink]\n{sink}\n"
    );
    place.file("run.toml", text);
}

#[test]
fn a_restart_decides_what_is_new() {
    for (mode, records) in [("first", first()), ("current", current())] {
        let place = Place::new();
        deployment(&place, &format!("path = \"out.jsonl\"\nemit = \"decisions\"\ndecisions = \"{mode}\""));
        let whole = feed();
        let cut = whole.lines().take(3).map(|line| format!("{line}\n")).collect::<String>();
        for part in [cut, whole] {
            place.file("feed.jsonl", part);
            let run = place.run("run -c run.toml");
            assert_eq!(run.code, 0, "{run:?}");
        }
        // A restart skips numbers of epochs.
        let without_epochs = |mut all: Vec<Value>| {
            all.iter_mut().for_each(|record| drop(record["epoch"].take()));
            all
        };
        let records = without_epochs(records);
        assert_eq!(without_epochs(decisions(&place.read("out.jsonl"))), records, "{mode}");
        // The other mode is another output: it is refused, and corrected on request.
        let other = if mode == "first" { "current" } else { "first" };
        deployment(&place, &format!("path = \"out.jsonl\"\nemit = \"decisions\"\ndecisions = \"{other}\""));
        let refused = place.run("run -c run.toml");
        assert!(refused.code == 1 && refused.err.contains("sink.decisions"), "{refused:?}");
        let corrected = place.run("run -c run.toml --reconcile");
        assert_eq!(corrected.code, 0, "{corrected:?}");
        let last = without_epochs(decisions(&place.read("out.jsonl")));
        // The other records are right in the end, the first one of b too.
        let end = json!({"id": "a", "epoch": null, "ended": true});
        let expected = if mode == "first" { [records, vec![end]].concat() } else { records };
        assert_eq!(last, expected, "{mode}");
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn tables_hold_the_last_decision_of_each_document() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let open = || rusqlite::Connection::open(place.path("out.db")).expect("the database opens");
    let rows = |connection: &rusqlite::Connection| {
        let sql = "SELECT concat_ws(' ', id, source_offset, epoch, ended, copy, coalesce(\"of\", '-'), \
                   repeats, pairs, coalesce(cluster, '-')) FROM decisions WHERE at IS NOT NULL ORDER BY id";
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
        let corrected = place.run("run -c run.toml --reconcile");
        assert_eq!(corrected.code, 0, "{corrected:?}");
        assert_eq!(rows(&open()).len(), count, "{emit}");
    }
}

/// A table as source: decisions and rows of views are those of a fresh run of its present rows, with a state
/// and without; each version of a row that a run reads has one decision.
#[cfg(feature = "sqlite")]
#[test]
fn a_table_is_decided_and_viewed() {
    let in_force = |out: &str| {
        let mut last = std::collections::BTreeMap::new();
        for mut record in decisions(out) {
            record["epoch"].take();
            let id = record["id"].as_str().expect("an id").to_owned();
            if record["ended"] == json!(true) {
                last.remove(&id)
            } else {
                last.insert(id, record)
            };
        }
        last
    };
    let rows = |place: &Place| {
        let mut sums = std::collections::BTreeMap::new();
        for mut change in lines(&place.read("rows.jsonl")) {
            change["epoch"].take();
            *sums
                .entry({
                    let mut row = change.clone();
                    row["diff"].take();
                    row.to_string()
                })
                .or_insert(0) += change["diff"].as_i64().expect("a diff");
        }
        sums.retain(|_, sum| *sum != 0);
        sums
    };
    for (mode, has_state) in [("first", true), ("current", true), ("current", false)] {
        let place = Place::new();
        let deployment = format!(
            "workers = 2\n[source]\nkind = \"sqlite\"\npath = {:?}\ntable = \"pages\"\norder = \"version\"\n\
             deleted = \"gone\"\nfields = [\"lang\", \"year\"]\nfollow = false\n\
             [sink]\npath = \"out.jsonl\"\nemit = \"decisions\"\ndecisions = \"{mode}\"\n\
             [[view]]\nname = \"years\"\nof = \"documents\"\ngroup = [\"lang\", \"year\"]\n\
             output = \"rows.jsonl\"\n",
            place.path("in.db")
        );
        let with_state = format!("{deployment}[state]\npath = \"state\"\n");
        place.file("run.toml", if has_state { &with_state } else { &deployment });
        let table = rusqlite::Connection::open(place.path("in.db")).expect("the database opens");
        let copy = page(0..0, 0);
        table
            .execute_batch(
                "CREATE TABLE pages (id TEXT PRIMARY KEY, text TEXT, version INTEGER, gone INTEGER, lang TEXT,
                    year INTEGER)",
            )
            .expect("a table");
        let put = |version: i64, id: &str, text: &str, year: Option<i64>| {
            let sql = "INSERT OR REPLACE INTO pages VALUES (?1, ?2, ?3, ?4, 'en', ?5)";
            table.execute(sql, (id, text, version, year.is_none(), year)).expect("a row");
        };
        let run = || {
            let run = place.run("run -c run.toml --set pairs.where=a.lang==b.lang");
            assert_eq!(run.code, 0, "{run:?}");
            let fresh = Place::new();
            fresh.file("run.toml", &deployment);
            let ended = fresh.run("run -c run.toml --set pairs.where=a.lang==b.lang");
            assert_eq!(ended.code, 0, "{ended:?}");
            assert_eq!(rows(&place), rows(&fresh), "{mode} {has_state}");
            if mode == "current" {
                assert_eq!(
                    in_force(&place.read("out.jsonl")),
                    in_force(&fresh.read("out.jsonl")),
                    "{has_state}"
                );
            }
        };
        put(1, "b", &copy, Some(2024));
        put(2, "lone", &page(0..100, 9), Some(2025));
        run();
        put(3, "a", &copy, Some(2024));
        put(4, "lone", &page(0..100, 9), Some(2026));
        run();
        put(5, "b", &copy, None);
        put(6, "a", &page(0..100, 5), Some(2024));
        run();
        let read = decisions(&place.read("out.jsonl"));
        let of = |id: &str| -> Vec<_> {
            let of_id = read.iter().filter(|record| record["id"] == id);
            of_id.filter_map(|record| record["offset"].as_u64()).collect()
        };
        if mode == "first" {
            assert_eq!((of("a"), of("b"), of("lone")), (vec![3, 6], vec![1], vec![2, 4]));
        } else {
            assert_eq!((of("a").last(), of("lone").last()), (Some(&6), Some(&4)));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_before_the_start() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    for (words, message) in [
        ("--decisions current", "--decisions: has an effect with --emit decisions only"),
        ("--emit decisions --decisions last", "\"first\" or \"current\""),
        ("--emit decisions --evidence", "only pairs have evidence"),
        ("--emit decisions --causes", "only deltas have causes"),
    ] {
        let run = place.run(&format!("replay {words} feed.jsonl"));
        assert!(run.code == 2 && run.err.contains(message), "{words}: {run:?}");
    }
    for (sink, message) in [
        ("emit = \"decisions\"\nformat = \"parquet\"", "a Parquet file is whole at its end only"),
        ("decisions = \"current\"", "it has an effect with sink.emit = \"decisions\" only"),
        ("emit = \"decisions\"\ndecisions = \"last\"", "\"first\" or \"current\""),
    ] {
        deployment(&place, sink);
        let run = place.run("check -c run.toml");
        assert!(run.code == 2 && run.err.contains(message), "{sink}: {run:?}");
    }
}

/// A negative zero is the same time as zero: of two such documents the one with the smaller id is the older,
/// and one epoch has both.
#[test]
fn a_negative_zero_is_a_zero() {
    let place = Place::new();
    let at = |ts: &str, id: &str| format!("{{\"ts\":{ts},{}", &upsert(id, &page(0..0, 0))[1..]);
    for zeros in [["0", "-0.0"], ["-0.0", "0"], ["-0", "0.0"]] {
        place.file("feed.jsonl", at(zeros[0], "a") + &at(zeros[1], "b") + &at("1", "c"));
        let (kept, stats) = place.replay("--set output.keep=oldest --emit keep --epoch ts feed.jsonl");
        assert_eq!((kept.out.as_str(), &stats["epochs"]), ("{\"id\":\"a\"}\n", &json!(2)), "{zeros:?}");
        let rows = decisions(&place.replay("--emit decisions --epoch all feed.jsonl").0.out);
        let of: Vec<_> = rows.iter().map(|row| row["of"].clone()).collect();
        assert_eq!(of, ["a", "a", "a"], "{zeros:?}");
    }
}
