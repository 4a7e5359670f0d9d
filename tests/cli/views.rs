//! Views: their outputs in a replay, through restarts of a run, and what is refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::dupflow::Place;
use super::feeds::{lines, page};

/// An event of a document with a host and a language.
fn event(id: &str, host: &str, lang: &str, text: &str) -> String {
    json!({ "id": id, "url": format!("https://{host}/{id}"), "lang": lang, "text": text }).to_string() + "\n"
}

/// Copies of one page on three hosts, and a page of its own.
fn feed() -> String {
    let copy = page(0..0, 0);
    event("a", "one.org", "en", &copy)
        + &event("b", "two.org", "en", &copy)
        + &event("c", "two.org", "", &copy)
        + &event("d", "Three.org", "de", &page(0..100, 3))
}

/// The rows that changes accumulate to: each row without its epoch and diff.
fn rows(changes: &str) -> Vec<String> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for mut change in lines(changes) {
        let object = change.as_object_mut().expect("an object");
        object.remove("epoch");
        let diff = object.remove("diff").and_then(|diff| diff.as_i64()).expect("a diff");
        *sums.entry(change.to_string()).or_default() += diff;
    }
    sums.retain(|_, sum| *sum != 0);
    assert!(sums.values().all(|sum| *sum == 1), "{sums:?}");
    sums.into_keys().collect()
}

const VIEWS: &str = r#"
[[view]]
name = "hosts"
of = "pairs"
group = ["host"]
output = "hosts.csv"

[[view]]
name = "copied"
of = "documents"
measure = "top:2"
output = "rows.jsonl"

[[view]]
name = "clusters"
of = "clusters"
group = ["cluster.size", "lang"]
output = "rows.jsonl"
"#;

#[test]
fn a_replay_writes_changes_and_final_rows() {
    let place = Place::new();
    place.file("feed.jsonl", feed() + "{\"id\":\"b\",\"op\":\"delete\"}\n");
    place.file("views.toml", VIEWS);
    let fields = "--field host(url) --field lang";
    let run = place.run(&format!("replay {fields} --views views.toml --epoch events:4 -o out feed.jsonl"));
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(place.read("hosts.csv"), "a.host,b.host,pairs\none.org,two.org,1\n");
    let changes = place.read("rows.jsonl");
    let first = "{\"epoch\":1,\"diff\":1,\"view\":\"copied\",\"group\":[],\"id\":\"a\",\"value\":2}\n";
    assert!(changes.starts_with(first), "{changes}");
    let row = |view: &str, group: Value, id: Option<&str>, value: u64| match id {
        Some(id) => json!({ "view": view, "group": group, "id": id, "value": value }).to_string(),
        None => json!({ "view": view, "group": group, "value": value }).to_string(),
    };
    let expected = [
        row("clusters", json!(["2", ""]), None, 1),
        row("clusters", json!(["2", "en"]), None, 1),
        row("copied", json!([]), Some("a"), 1),
        row("copied", json!([]), Some("c"), 1),
    ];
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(rows(&changes), expected);
}

/// The output is right after each restart: after more input, after another definition, after lines that are
/// lost or too many, and after the state was lost.
#[test]
fn a_run_corrects_rows_that_are_not_those_of_its_corpus() {
    let place = Place::new();
    let deployment = |group: &str| {
        format!(
            "[source]\ninputs = [\"feed.jsonl\"]\nfields = [\"host(url)\", \"lang\"]\nepoch = \"events:2\"\n\
             [sink]\npath = \"out.jsonl\"\n[state]\npath = \"state\"\n\
             [[view]]\nname = \"pairs\"\nof = \"pairs\"\ngroup = [{group}]\noutput = \"rows.jsonl\"\n\
             [[view]]\nname = \"both\"\nof = \"documents\"\ngroup = [\"host\", \"lang\"]\n\
             output = \"rows.jsonl\"\n"
        )
    };
    let run = |group: &str| {
        place.file("here.toml", deployment(group));
        let run = place.run("run -c here.toml");
        assert_eq!(run.code, 0, "{run:?}");
        place.read("rows.jsonl")
    };
    // What a fresh run writes of the same corpus.
    let fresh = |group: &str| {
        let other = Place::new();
        other.file("feed.jsonl", place.read("feed.jsonl"));
        other.file("here.toml", deployment(group));
        assert_eq!(other.run("run -c here.toml").code, 0);
        rows(&other.read("rows.jsonl"))
    };
    place.file("feed.jsonl", feed());
    let first = run("\"host\"");
    assert_eq!(rows(&first), fresh("\"host\""));
    assert_eq!(run("\"host\""), first, "nothing to correct");
    let copy = page(0..0, 0);
    place.file(
        "feed.jsonl",
        feed() + &event("e", "one.org", "de", &copy) + &event("a", "two.org", "en", &copy),
    );
    let second = run("\"host\"");
    assert!(second.starts_with(&first) && second.len() > first.len());
    assert_eq!(rows(&second), fresh("\"host\""));
    // Another definition of a view, without --reconcile.
    let third = run("");
    assert!(third.starts_with(&second) && third.len() > second.len());
    assert_eq!(rows(&third), fresh(""));
    assert_eq!(rows(&run("\"lang\"")), fresh("\"lang\""));
    // The file of rows is lost.
    for name in ["rows.jsonl", "rows.jsonl.mark"] {
        std::fs::remove_file(place.path(name)).expect("it was written");
    }
    assert_eq!(rows(&run("\"lang\"")), fresh("\"lang\""));
    // The state and the main output are lost, the rows are not.
    for name in ["out.jsonl", "out.jsonl.mark"] {
        std::fs::remove_file(place.path(name)).expect("it was written");
    }
    std::fs::remove_dir_all(place.path("state")).expect("it was written");
    assert_eq!(rows(&run("\"lang\"")), fresh("\"lang\""));
}

/// Copies a file or a folder.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    if !from.is_dir() {
        std::fs::copy(from, to).expect("it can be copied");
        return;
    }
    std::fs::create_dir_all(to).expect("it can be made");
    for entry in std::fs::read_dir(from).expect("it can be read") {
        let entry = entry.expect("it can be read");
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

/// A run ends between the commits of its two outputs: whichever is ahead, the next run makes the rows right.
#[test]
fn outputs_of_different_epochs_become_right() {
    const MAIN: [&str; 3] = ["out.jsonl", "out.jsonl.mark", "state"];
    const ROWS: [&str; 2] = ["rows.jsonl", "rows.jsonl.mark"];
    let deployment = "[source]\ninputs = [\"feed.jsonl\"]\nfields = [\"host(url)\"]\nepoch = \"events:1\"\n\
        [sink]\npath = \"out.jsonl\"\n[state]\npath = \"state\"\n\
        [[view]]\nname = \"pairs\"\nof = \"pairs\"\ngroup = [\"host\"]\noutput = \"rows.jsonl\"\n";
    let place = Place::new();
    place.file("here.toml", deployment);
    let whole = feed() + &event("e", "four.org", "de", &page(0..0, 0)) + &super::feeds::delete("a");
    let mut states = Vec::new();
    for (name, text) in [("early", feed()), ("late", whole)] {
        place.file("feed.jsonl", text);
        let run = place.run("run -c here.toml");
        assert_eq!(run.code, 0, "{run:?}");
        std::fs::create_dir(place.path(name)).expect("it can be made");
        MAIN.iter().chain(&ROWS).for_each(|file| copy(&place.path(file), &place.path(name).join(file)));
        states.push(rows(&place.read("rows.jsonl")));
    }
    assert_ne!(states[0], states[1]);
    for (main, side) in [("early", "late"), ("late", "early"), ("early", "early")] {
        std::fs::remove_dir_all(place.path("state")).expect("it was written");
        MAIN.iter().for_each(|file| copy(&place.path(main).join(file), &place.path(file)));
        ROWS.iter().for_each(|file| copy(&place.path(side).join(file), &place.path(file)));
        let run = place.run("run -c here.toml");
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(rows(&place.read("rows.jsonl")), states[1], "the pairs of {main}, the rows of {side}");
    }
}

#[test]
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn what_does_not_fit_is_refused_with_its_place() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    place.file(
        "here.toml",
        r#"
        [source]
        inputs = ["feed.jsonl"]
        fields = ["lang"]
        [sink]
        path = "out"
        [[view]]
        name = "a b"
        of = "words"
        [[view]]
        name = "twice"
        of = "pairs"
        measure = "top:5"
        group = ["host", "lang", "lang"]
        topic = "t"
        output = "x"
        [[view]]
        name = "twice"
        of = "documents"
        measure = "top:1001"
        group = ["cluster.size"]
        table = "T"
        colour = "red"
        output = "x"
        "#,
    );
    let run = place.run("run -c here.toml");
    assert_eq!(run.code, 2, "{run:?}");
    for line in [
        "here.toml:8: view.1.name: found \"a b\", expected a name of",
        "here.toml:9: view.1.of: found \"words\", expected \"pairs\", \"documents\" or \"clusters\"",
        "here.toml:13: view.2.measure: pairs are counted",
        "here.toml:14: view.2.group: no field \"host\" in source.fields (or --field): \"lang\"",
        "here.toml:14: view.2.group: \"lang\" is named twice",
        "here.toml:15: view.2.topic: a topic is written in the transaction of the sink",
        "here.toml:18: view.3.name: another view has this name",
        "here.toml:20: view.3.measure: found \"top:1001\", expected \"count\", or \"top:K\"",
        "here.toml:21: view.3.group: no field \"cluster.size\"",
        "here.toml:22: view.3.table: found \"T\", expected a name of",
        "here.toml:23: view.3.colour: unknown key",
    ] {
        assert!(run.err.contains(line), "{line}\n{}", run.err);
    }
    let views = "[[view]]\nname = \"v\"\nof = \"clusters\"\n";
    let deployment = format!("[source]\ninputs = [\"feed.jsonl\"]\n[sink]\npath = \"out\"\n{views}");
    place.file("here.toml", &deployment);
    let run = place.run("run -c here.toml --set output.clusters=star");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("view.1.of: a view of clusters is of connected components"), "{run:?}");
    assert!(run.err.contains("view.1.output: found nothing, expected a path"), "{run:?}");
    place.file("here.toml", deployment.clone() + "table = \"kept\"\n");
    let run = place.run("run -c here.toml");
    assert!(run.err.contains("view.1.table: \"kept\" is a name of the sink itself"), "{run:?}");
    place.file("here.toml", deployment + "output = \"out\"\n");
    let run = place.run("run -c here.toml");
    assert!(run.err.contains("view.1.output: \"out\" is written to by sink.path"), "{run:?}");
    place.file("views.toml", format!("{views}output = \"feed.jsonl\"\n"));
    let run = place.run("replay --views views.toml -o out feed.jsonl");
    assert!(run.code == 2 && run.err.contains("\"feed.jsonl\" is an input and would be lost"), "{run:?}");
}
