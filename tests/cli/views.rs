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

/// Views are added and removed at any restart; a field that decides pairs is not.
#[test]
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn a_removed_view_needs_no_correction() {
    const HOSTS: &str =
        "[[view]]\nname = \"hosts\"\nof = \"pairs\"\ngroup = [\"host\"]\noutput = \"hosts\"\n";
    const LANGS: &str =
        "[[view]]\nname = \"langs\"\nof = \"documents\"\ngroup = [\"lang\"]\noutput = \"langs\"\n";
    for state in ["", "[state]\npath = \"state\"\n"] {
        let place = Place::new();
        let start = |place: &Place, views: &str, set: &str| {
            let source = "[source]\ninputs = [\"feed.jsonl\"]\nfields = [\"host(url)\", \"lang\"]\n";
            place.file("here.toml", format!("{source}[sink]\npath = \"out.csv\"\n{state}{views}"));
            place.run(&format!("run -c here.toml{set}"))
        };
        let both = HOSTS.to_owned() + LANGS;
        place.file("feed.jsonl", feed());
        assert_eq!(start(&place, &both, "").code, 0);
        let before = place.read("hosts");
        let copy = page(0..0, 0);
        for (n, views) in
            [LANGS, "", "[[view]]\nname = \"a\"\nof = \"pairs\"\noutput = \"a\"\n"].iter().enumerate()
        {
            place.file(
                "feed.jsonl",
                place.read("feed.jsonl") + &event(&format!("n{n}"), "four.org", "fr", &copy),
            );
            let run = start(&place, views, "");
            assert_eq!(run.code, 0, "{state}{views}: {run:?}");
        }
        assert_eq!(place.read("hosts"), before, "no view names it");
        let run = start(&place, &both, "");
        assert_eq!(run.code, 0, "{state}: {run:?}");
        let fresh = Place::new();
        fresh.file("feed.jsonl", place.read("feed.jsonl"));
        assert_eq!(start(&fresh, &both, "").code, 0);
        for name in ["hosts", "langs"] {
            assert_eq!(rows(&place.read(name)), rows(&fresh.read(name)), "{state}{name}");
        }
        let deltas = |place: &Place| place.read("out.csv").lines().count();
        assert_eq!(deltas(&place), deltas(&fresh));
        let run = start(&place, &both, " --set pairs.where=a.host!=b.host");
        assert!(run.code == 1 && run.err.contains("pairs.where is not set there"), "{run:?}");
    }
}

/// With a state, a field that it does not have is refused, and the message says what is so.
#[test]
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn a_field_that_the_state_lacks_is_named() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let start = |fields: &str, group: &str| {
        place.file(
            "here.toml",
            format!(
                "[source]\ninputs = [\"feed.jsonl\"]\nfields = [{fields}]\n[sink]\npath = \"out\"\n\
                 [state]\npath = \"state\"\n[[view]]\nname = \"v\"\nof = \"pairs\"\ngroup = [{group}]\n\
                 output = \"rows\"\n"
            ),
        );
        place.run("run -c here.toml")
    };
    let both = "\"host(url)\", \"lang\"";
    assert_eq!(start(both, "\"lang\"").code, 0);
    let run = start(both, "\"host\"");
    let what =
        "the fields of source.fields that settings ask for are [\"lang\"] there and [\"host(url)\"] here";
    assert!(run.code == 1 && run.err.contains(what), "{run:?}");
    // The state has the languages, and the run does not know them any more.
    let run = start("\"host(url)\"", "");
    assert!(run.code == 1 && run.err.contains("are [\"lang\"] there and none here"), "{run:?}");
    assert_eq!(start(both, "").code, 0);
}

/// The rows of a table of a SQLite file, written as [`rows`] are.
#[cfg(feature = "sqlite")]
fn stored(place: &Place, table: &str) -> Vec<String> {
    let open = rusqlite::Connection::open(place.path("out.db")).expect("the database opens");
    let sql = format!("SELECT row FROM {table} WHERE key <> '' AND at IS NOT NULL");
    let mut query = open.prepare(&sql).expect("the table is there");
    let rows = query.query_map([], |row| row.get::<_, String>(0)).expect("rows");
    let row = |row: rusqlite::Result<String>| {
        serde_json::from_str::<Value>(&row.expect("a row")).expect("an object").to_string()
    };
    let mut rows: Vec<String> = rows.map(row).collect();
    rows.sort();
    rows
}

/// The rows of views and the notices in tables are those of a fresh run into files: after more input, after
/// another list, and after `--reconcile` with another threshold, another field, and no state.
#[cfg(feature = "sqlite")]
#[test]
fn tables_hold_the_rows_and_the_notices() {
    let place = Place::new();
    let deployment = |tables: bool, group: &str| {
        let at = |file: &str, table: &str, name: &str| match tables {
            true => format!("table = \"{table}\""),
            false => format!("{file} = \"{name}.jsonl\""),
        };
        let sink =
            if tables { "kind = \"sqlite\"\npath = \"out.db\"\nprefix = \"p_\"" } else { "path = \"out\"" };
        let (rows, notices) = (at("output", "rows", "rows"), at("path", "found", "found"));
        format!(
            "[source]\ninputs = [\"feed.jsonl\"]\nfields = [\"host(url)\", \"lang\"]\nepoch = \"events:2\"\n\
             [sink]\n{sink}\n[state]\npath = \"state\"\n\
             [watch]\ninputs = [\"list.jsonl\"]\n[notices]\n{notices}\n\
             [[view]]\nname = \"pairs\"\nof = \"pairs\"\ngroup = [{group}]\n{rows}\n\
             [[view]]\nname = \"copied\"\nof = \"documents\"\nmeasure = \"top:2\"\n{rows}\n"
        )
    };
    let run = |words: &str, group: &str| {
        place.file("here.toml", deployment(true, group));
        let run = place.run(&format!("run -c here.toml{words}"));
        let other = Place::new();
        for name in ["feed.jsonl", "list.jsonl"] {
            other.file(name, place.read(name));
        }
        other.file("here.toml", deployment(false, group));
        assert_eq!(other.run(&format!("run -c here.toml{}", words.replace(" --reconcile", ""))).code, 0);
        let fresh = ["rows.jsonl", "found.jsonl"].map(|name| rows(&other.read(name)));
        if run.code == 0 {
            assert_eq!(["p_rows", "p_found"].map(|table| stored(&place, table)), fresh, "{words} {group}");
            assert!(fresh.iter().all(|rows| !rows.is_empty()), "{fresh:?}");
        }
        (run, fresh)
    };
    place.file("feed.jsonl", feed());
    place.file(
        "list.jsonl",
        super::feeds::upsert("copies", &page(0..0, 0)) + &super::feeds::upsert("half", &page(50..100, 3)),
    );
    let (first, before) = run("", "\"host\"");
    assert_eq!(first.code, 0, "{first:?}");
    let copy = page(0..0, 0);
    let more = event("e", "one.org", "de", &copy)
        + &super::feeds::delete("a")
        + &event("f", "six.org", "de", &page(50..100, 7));
    place.file("feed.jsonl", feed() + &more);
    let (second, after) = run("", "\"host\"");
    assert!(second.code == 0 && after[0] != before[0] && after[1] != before[1], "{second:?}");
    // Another list.
    place.file("list.jsonl", super::feeds::upsert("half", &page(50..100, 7)));
    let (third, listed) = run("", "\"host\"");
    assert!(third.code == 0 && listed[1] != after[1], "{third:?}");
    // Another threshold.
    let lower = " --set threshold=0.3";
    assert_eq!(run(lower, "\"host\"").0.code, 1);
    let (corrected, fresh) = run(&format!("{lower} --reconcile"), "\"host\"");
    assert!(corrected.code == 0 && fresh != listed, "{corrected:?}");
    // A field that nothing has asked for before, and one that nothing asks for any more.
    let both = "\"host\", \"lang\"";
    let (refused, _) = run(lower, both);
    assert!(refused.code == 1 && refused.err.contains("source.fields"), "{refused:?}");
    assert_eq!(run(&format!("{lower} --reconcile"), both).0.code, 0);
    assert_eq!(run(lower, "\"lang\"").0.code, 0);
    // The state is lost.
    std::fs::remove_dir_all(place.path("state")).expect("it was written");
    assert_eq!(run(&format!("{lower} --reconcile"), "\"lang\"").0.code, 0);
}

/// `check --connect` looks at the tables of rows, and at the folders of files.
#[cfg(feature = "sqlite")]
#[test]
fn a_check_looks_at_the_outputs() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let check =
        |table: &str| {
            place.file("here.toml", format!(
            "[source]\ninputs = [\"feed.jsonl\"]\n[sink]\nkind = \"sqlite\"\npath = \"out.db\"\n[watch]\n\
             inputs = [\"feed.jsonl\"]\n[notices]\ntable = \"found\"\n\
             [[view]]\nname = \"v\"\nof = \"pairs\"\n{table}\n"
        ));
            place.run("check -c here.toml --connect")
        };
    assert_eq!(check("table = \"rows\"").code, 0);
    assert_eq!(place.run("run -c here.toml").code, 0);
    assert_eq!(check("table = \"rows\"").code, 0);
    let open = rusqlite::Connection::open(place.path("out.db")).expect("the database opens");
    open.execute_batch("CREATE TABLE theirs (id, text)").expect("a table");
    let theirs = check("table = \"theirs\"");
    assert!(
        theirs.code != 0 && theirs.err.contains("the table theirs has not the columns of rows"),
        "{theirs:?}"
    );
    let refused = place.run("run -c here.toml");
    assert!(refused.code == 1 && refused.err.contains("theirs"), "{refused:?}");
    let nowhere = check("output = \"none/rows.jsonl\"");
    assert!(
        nowhere.code == 2 && nowhere.err.contains("view.1.output: there is no folder \"none\""),
        "{nowhere:?}"
    );
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
    // Names of topics and tables that hold something else.
    let names = [
        ("kind = \"kafka\"\ntopic = \"t\"", "topic", "t", "\"t\" is that of sink.topic"),
        (
            "kind = \"kafka\"\ntopic = \"t\"",
            "topic",
            "t-progress",
            "\"t-progress\" is that of sink.progress_topic",
        ),
        ("kind = \"kafka\"\ntopic = \"t\"", "topic", "bad", "\"bad\" is that of dead_letter.topic"),
        ("kind = \"sqlite\"\npath = \"db\"", "table", "pairs", "\"pairs\" is a name of the sink itself"),
        ("kind = \"sqlite\"\npath = \"db\"", "table", "sqlite_rows", "names that begin with \"sqlite_\""),
        ("kind = \"sqlite\"\npath = \"db\"", "table", "same", "\"same\" is that of view.1.table"),
        (
            "kind = \"postgres\"\nurl = \"postgres://h/d\"\n\
             prefix = \"a_prefix_of_forty_bytes_and_that_is_most\"",
            "table",
            "a_table_with_thirty_two_letters_",
            "it has 72 bytes with sink.prefix",
        ),
    ];
    for (sink, key, name, what) in names {
        let letters = if key == "topic" { "[dead_letter]\ntopic = \"bad\"\n" } else { "" };
        place.file(
            "here.toml",
            format!(
                "kafka.brokers = \"none:1\"\n[source]\ninputs = [\"feed.jsonl\"]\n{letters}[sink]\n{sink}\n\
             [watch]\ninputs = [\"feed.jsonl\"]\n[notices]\n{key} = \"same\"\n\
             [[view]]\nname = \"v\"\nof = \"pairs\"\n{key} = \"{name}\"\n\
             [[view]]\nname = \"w\"\nof = \"pairs\"\n{key} = \"same\"\n"
            ),
        );
        let run = place.run("check -c here.toml");
        let of_notices = format!("notices.{key}: \"same\" is that of view.");
        assert!(run.code == 2 && run.err.contains(&of_notices) && run.err.contains(what), "{name}: {run:?}");
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

/// A file of rows that was cut, lost or overwritten: the message names the way out, which works.
#[test]
fn a_cut_file_of_rows_is_written_anew_where_it_is_removed() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    place.file(
        "here.toml",
        "[source]\ninputs = [\"feed.jsonl\"]\n[sink]\npath = \"out\"\n[state]\npath = \"state\"\n\
         [[view]]\nname = \"v\"\nof = \"pairs\"\noutput = \"rows\"\n",
    );
    assert_eq!(place.run("run -c here.toml").code, 0);
    let whole = place.read("rows");
    let remove = || {
        for name in ["rows", "rows.mark"] {
            std::fs::remove_file(place.path(name)).expect("it was written");
        }
    };
    for damage in ["", &whole[..whole.len() - 1], &whole.replace("epoch", "hcope")] {
        place.file("rows", damage);
        let run = place.run("run -c here.toml");
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.err.contains("or move it and rows.mark away: then the next run writes"), "{run:?}");
        remove();
        assert_eq!(place.run("run -c here.toml").code, 0);
        assert_eq!(rows(&place.read("rows")), rows(&whole));
    }
}
