//! Settings that are changed on a deployment that has run: every key of the tables that decide documents
//! has a class, and a change of it ends with the result of a fresh run.
//!
//! Bug classes: documents of the state that were read by another rule and stay; a change that is neither
//! refused nor has an effect; numbers of records of one rule used under another.

mod classes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use classes::{ALSO, CLASSES, Class, ELSEWHERE, SAME_RESULT};

use super::dupflow::{Ended, Place};
use super::feeds::{lines, upsert};

/// A change of one key.
struct Change {
    key: &'static str,
    /// Files, by name.
    files: Vec<(&'static str, String)>,
    /// Settings of the deployment before, after, and in both.
    settings: [&'static str; 3],
    /// Options before, after, and in both.
    options: [&'static str; 3],
}

fn change(key: &'static str, before: &'static str, after: &'static str, both: &'static str) -> Change {
    Change { key, files: Vec::new(), settings: [before, after, both], options: ["", "", "-p exact"] }
}

impl Change {
    fn file(mut self, name: &'static str, content: impl Into<String>) -> Self {
        self.files.push((name, content.into()));
        self
    }

    fn options(self, before: &'static str, after: &'static str, both: &'static str) -> Self {
        Self { options: [before, after, both], ..self }
    }

    /// Writes the deployment with the settings before or after the change.
    fn run(&self, place: &Place, after: bool, names: (&str, Option<&str>), flag: &str) -> Ended {
        let (output, state) = names;
        let own = [self.settings[2], self.settings[usize::from(after)]].join("\n");
        let state = state.map_or_else(String::new, |state| format!("state.path = {state:?}\n"));
        let notices = if own.contains("watch.") {
            format!("notices.path = \"{output}.notices\"\n")
        } else {
            String::new()
        };
        place.file("run.toml", format!("workers = 2\nsink.path = {output:?}\n{state}{notices}{own}\n"));
        let options = [self.options[2], self.options[usize::from(after)]].join(" ");
        let words = ["run -q -c run.toml", &*options, flag].join(" ");
        place.run(&words.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// What changes accumulate to: each row with its number.
fn sum(out: &str) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for mut line in lines(out) {
        let row = line.as_object_mut().unwrap();
        let diff = row.remove("diff").and_then(|diff| diff.as_i64()).unwrap();
        row.remove("epoch");
        *sums.entry(Value::from(row.clone()).to_string()).or_default() += diff;
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// Everything that a run has written.
fn written(place: &Place, output: &str) -> Vec<BTreeMap<String, i64>> {
    let notices = format!("{output}.notices");
    let has_notices = place.path(&notices).exists();
    [output.to_owned(), notices]
        .iter()
        .take(1 + usize::from(has_notices))
        .map(|name| sum(&place.read(name)))
        .collect()
}

const LINES: &str = "source.inputs = [\"in.jsonl\"]";
const ROWS: &str = "source.inputs = [\"in.csv\"]";
const ARCHIVE: &str = "source.inputs = [\"in.warc\"]";
const ADDRESSES: &str = "source.inputs = [\"in.warc\"]\nwarc.id = \"uri\"";
/// There is no second page of the archive any more.
const GONE: &str = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/2\r\n\
    WARC-Record-ID: <urn:uuid:9>\r\nContent-Type: application/http\r\nContent-Length: 26\r\n\r\n\
    HTTP/1.1 404 Not Found\r\n\r\n\r\n\r\n";

fn words(from: u32) -> String {
    (from..from + 12).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ")
}

/// Lines of JSON with these texts, by a template with `TEXT` and `N`.
fn records(template: &str, texts: &[&str]) -> String {
    let record =
        |(n, text): (usize, &&str)| template.replace("TEXT", text).replace('N', &n.to_string()) + "\n";
    texts.iter().enumerate().map(record).collect()
}

/// A WARC file with a page of text at each of these addresses.
fn archive(pages: &[(&str, &str)]) -> String {
    let record = |(n, (uri, text)): (usize, &(&str, &str))| {
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {uri}\r\n\
             WARC-Record-ID: <urn:uuid:{n}>\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}\r\n\r\n",
            text.len()
        )
    };
    pages.iter().enumerate().map(record).collect()
}

/// Changes of keys of a source of files.
fn of_files() -> Vec<Change> {
    let (a, b, c) = (words(0), words(100), words(200));
    let two = records(r#"{"id":"N","url":"uN","title":"title N","body":"TEXT"}"#, &[&a, &a, &b]);
    let plain = records(r#"{"id":"N","text":"TEXT"}"#, &[&a, &a, &b]);
    let timed: String = [(1, 9, &a), (2, 8, &a), (9, 1, &b), (8, 2, &b)]
        .iter()
        .map(|(ts, date, text)| {
            format!("{{\"id\":\"{ts}\",\"ts\":{ts},\"date\":{date},\"text\":\"{text}\"}}\n")
        })
        .collect();
    let canonical = format!(
        "{{\"id\":\"http://a.example/x?utm_source=1\",\"text\":\"{a}\"}}\n\
         {{\"id\":\"http://a.example/x\",\"text\":\"{a}\"}}\n\
         {{\"id\":\"http://a.example/y\",\"text\":\"{a}\"}}\n"
    );
    let escaped = a.replace("word", "ord");
    let quoted = format!("id,text\n1,\"{a}\"\n2,\"{a}\"\n3,{escaped}\n");
    let parted = format!("id,text,x;id;text\nx,{a},9;1;{b}\ny,{a},9;2;{b}\nz,{c},9;3;{c}\n");
    let merged = format!("id,text\n1,\"{a}\n2,{a}\"\n3,{b}\n");
    let halves = records(r#"{"id":"hN","text":"TEXT \ud83d"}"#, &[&a, &a]) + &plain;
    let deleted = records(r#"{"id":"N","op":"delete","text":"TEXT"}"#, &[&a, &a]) + &upsert("x", &a);
    let spoken = records(r#"{"id":"N","lang":"l","other":"oN","text":"TEXT"}"#, &[&a, &a]);
    let pages = archive(&[("http://a.example/1", &a), ("http://a.example/2", &a)]);
    vec![
        change(
            "source.format",
            "source.format = \"jsonl\"",
            "source.format = \"text\"",
            "source.inputs = [\"1.jsonl\", \"2.jsonl\"]",
        )
        .file("1.jsonl", &plain)
        .file("2.jsonl", &plain),
        change("source.text_path", "source.text_path = \"title\"", "source.text_path = \"body\"", LINES)
            .file("in.jsonl", &two),
        change(
            "source.id_path",
            "source.id_path = \"id\"",
            "source.id_path = \"url\"",
            "source.inputs = [\"in.jsonl\"]\nsource.text_path = \"body\"",
        )
        .file("in.jsonl", &two),
        change("source.ts_path", "source.ts_path = \"ts\"", "source.ts_path = \"date\"", LINES)
            .file("in.jsonl", &timed)
            .options("", "", "-p exact --set retention.max_documents=2"),
        change("retention.max_documents", "", "", LINES).file("in.jsonl", &timed).options(
            "--set retention.max_documents=2",
            "--set retention.max_documents=4",
            "-p exact",
        ),
        change("retention.max_age", "", "", LINES).file("in.jsonl", &timed).options(
            "--set retention.max_age=5s",
            "--set retention.max_age=9s",
            "-p exact",
        ),
        change("source.fields", "source.fields = [\"lang = other\"]", "source.fields = [\"lang\"]", LINES)
            .file("in.jsonl", spoken)
            .options("", "", "-p exact --set pairs.where=a.lang==b.lang"),
        change(
            "source.ids",
            "source.ids = \"once\"",
            "source.ids = \"file\"",
            "source.inputs = [\"1.jsonl\", \"2.jsonl\"]\nsource.text_path = \"body\"",
        )
        .file("1.jsonl", &two)
        .file("2.jsonl", &two),
        change("source.canonical_url", "", "source.canonical_url = true", LINES).file("in.jsonl", canonical),
        change("csv.delimiter", "csv.delimiter = \",\"", "csv.delimiter = \";\"", ROWS)
            .file("in.csv", parted),
        change("csv.escape", "", "csv.escape = \"w\"", ROWS).file("in.csv", quoted),
        change("csv.quote", "", "csv.quote = \"none\"", ROWS).file("in.csv", merged),
        change("json.surrogates", "", "json.surrogates = \"replace\"", LINES).file("in.jsonl", halves),
        change("source.op_path", "", "source.op_path = \"\"", LINES).file("in.jsonl", deleted),
        change("warc.id", "warc.id = \"record\"", "warc.id = \"uri\"", ARCHIVE).file("in.warc", &pages),
        change("warc.not_found", "", "warc.not_found = \"delete\"", ADDRESSES).file("in.warc", pages + GONE),
    ]
}

/// Changes of keys of a reference.
fn of_references() -> Vec<Change> {
    let (a, b, c) = (words(0), words(100), words(200));
    let source = records(r#"{"id":"N","text":"TEXT"}"#, &[&a, &b, &c]);
    let old = records(
        r#"{"id":"oN","url":"http://a.example/N?utm_source=1","text":"TEXT","body":"BODY"}"#,
        &[&a, &b],
    )
    .replace("BODY", &c);
    let with = |change: Change| {
        change
            .file("in.jsonl", source.clone())
            .file("old.jsonl", old.clone())
            .file("two.jsonl", old.clone())
            .file("old.csv", format!("id,text,x;id;text\nx,{a},9;1;{b}\n"))
            .file("merged.csv", format!("id,text\nx,\"{b}\ny,{a}\"\nz,{c}\n"))
            .file("quoted.csv", format!("id,text\nx,\"{a}\"\nz,{b}\n"))
            .file("old.warc", archive(&[("http://a.example/1", &a), ("http://a.example/2", &b)]))
    };
    let one = "source.inputs = [\"in.jsonl\"]\nreference.inputs = [\"old.jsonl\"]";
    let rows = "source.inputs = [\"in.jsonl\"]\nreference.inputs = [\"old.csv\"]";
    let quoted = "source.inputs = [\"in.jsonl\"]\nreference.inputs = [\"quoted.csv\"]";
    let merged = "source.inputs = [\"in.jsonl\"]\nreference.inputs = [\"merged.csv\"]";
    let pages = "source.inputs = [\"in.jsonl\"]\nreference.inputs = [\"old.warc\"]";
    [
        change(
            "reference.inputs",
            "reference.inputs = [\"old.jsonl\"]",
            "reference.inputs = [\"old.warc\"]",
            LINES,
        ),
        change("reference.format", "", "reference.format = \"text\"", one),
        change("reference.id_path", "", "reference.id_path = \"url\"", one),
        change("reference.text_path", "", "reference.text_path = \"body\"", one),
        change("reference.ids", "", "reference.ids = \"file\"", one),
        change(
            "reference.canonical_url",
            "",
            "reference.canonical_url = true",
            "source.inputs = [\"in.jsonl\"]\nreference.inputs = [\"old.jsonl\"]\nreference.id_path = \"url\"",
        ),
        change("reference.csv_delimiter", "", "reference.csv_delimiter = \";\"", rows),
        change("reference.csv_quote", "", "reference.csv_quote = \"none\"", merged),
        change("reference.csv_escape", "", "reference.csv_escape = \"w\"", quoted),
        change("reference.warc_id", "", "reference.warc_id = \"uri\"", pages),
    ]
    .into_iter()
    .map(with)
    .collect()
}

/// Changes of the rules of texts.
fn of_texts() -> Vec<Change> {
    let texts = [
        "<p>The hunters <b>hunted</b> the caf\u{e9} of ten</p> old foxes one two three four five six",
        "<p>The hunter hunts the cafe\u{301} of ten</p> old fox one two three four five six",
        "<div>A hunter hunts a cafe\u{301} in ten</div> old fox one two three four five six",
        "\u{6771}\u{4eac}\u{90fd}\u{5e02} one two three four five six seven eight nine",
        "\u{6771}\u{4eac}\u{90fd}\u{753a} one two three four five six seven eight ten",
        "<html><p>alpha beta gamma delta epsilon zeta</p></html>",
        "<html><b>alpha</b> <i>beta</i> <u>gamma</u> <s>delta</s> epsilon zeta</html>",
        "resume\u{301}s of iota kappa lambda omega",
        "resume s of iota kappa lambda omega",
        "gro\u{df}e stra\u{df}en im gewerbe",
        "grosse strassen im gewerbe",
        "neun zehn elf ge\u{ad}wer\u{ad}be stra\u{200b}ssen",
        "neun zehn elf gewerbe strassen",
    ];
    let feed = records(r#"{"id":"N","title":"a title of N","text":"TEXT"}"#, &texts);
    let given = records(r#"{"id":"N","text":"one two three"}"#, &["", ""])
        + &records(r#"{"id":"oN","text":["one","two"]}"#, &["", ""]);
    let low = "-p exact --set threshold=0.3";
    let weighted = "-p weighted --set threshold=0.3";
    let of = |key: &'static str, before: &'static str, after: &'static str, both: &'static str| {
        change(key, "", "", LINES).file("in.jsonl", feed.clone()).options(before, after, both)
    };
    vec![
        of("text.shingle", "--set text.shingle=words:3", "--set text.shingle=words:1", low),
        of("text.spaceless", "--set text.spaceless=run", "--set text.spaceless=char", low),
        of(
            "text.marks",
            "--set text.marks=split",
            "--set text.marks=keep",
            "-p exact --set threshold=0.3 --set text.normalize=none",
        ),
        of("text.normalize", "--set text.normalize=none", "--set text.normalize=nfc", low),
        of("text.invisible", "--set text.invisible=keep", "--set text.invisible=ignore", low),
        of("text.fold", "", "--set text.fold=[\"ß\"]", low),
        of("text.html", "--set text.html=none", "--set text.html=text", low),
        of("text.stop_words", "", "--set text.stop_words=[\"of\",\"ten\"]", low),
        of("text.stem", "", "--set text.stem=english", low),
        of("text.fields.*", "", "--set text.fields.title=1", low),
        of(
            "text.weights",
            "--set text.weights=count",
            "--set text.weights=tf",
            "-p weighted --set threshold=0.3 --set text.idf=",
        ),
        of("text.idf", "--set text.idf=in.jsonl", "--set text.idf=two.jsonl", weighted)
            .file("two.jsonl", feed.replace("one two", "ten old")),
        of(
            "text.idf_form",
            "",
            "--set text.idf_form=paper",
            "-p weighted --set threshold=0.3 --set text.idf=in.jsonl",
        ),
        change("text.features", "", "", LINES).file("in.jsonl", given).options(
            "",
            "--set text.features=given --set text.shingle=",
            "-p exact --set threshold=0.3",
        ),
    ]
}

/// Changes with a database.
#[cfg(feature = "sqlite")]
fn of_tables() -> Vec<Change> {
    const TABLE: &str = "source.kind = \"sqlite\"\nsource.path = \"in.db\"\nsource.table = \"pages\"\n\
        source.order = \"at\"\nsource.follow = false";
    const OPEN: &str =
        "source.kind = \"sqlite\"\nsource.path = \"in.db\"\nsource.order = \"at\"\nsource.follow = false";
    const WATCHED: &str = "source.inputs = [\"in.jsonl\"]\nwatch.order = \"at\"";
    let (a, b) = (words(0), words(100));
    let two = records(r#"{"id":"N","text":"TEXT"}"#, &[&a, &a, &b]);
    let of_watch = |key, before, after| change(key, before, after, WATCHED).file("in.jsonl", two.clone());
    vec![
        change("source.kind", "source.kind = \"files\"\nsource.inputs = [\"in.jsonl\"]", TABLE, "")
            .file("in.jsonl", &two),
        change("source.text", "source.text = \"title\"", "source.text = \"body\"", TABLE),
        change("source.id", "source.id = \"id\"", "source.id = \"name\"", TABLE),
        change("source.deleted", "", "source.deleted = \"gone\"", TABLE),
        change("source.ts", "source.ts = \"at\"", "source.ts = \"seen\"", TABLE).options(
            "",
            "",
            "-p exact --set retention.max_documents=2",
        ),
        change(
            "source.order",
            "source.order = \"at\"",
            "source.order = \"seen\"",
            "source.kind = \"sqlite\"\nsource.path = \"in.db\"\nsource.table = \"pages\"\n\
             source.follow = false\nsource.ts = \"at\"",
        ),
        change("source.table", "source.table = \"pages\"", "source.table = \"other\"", OPEN),
        change(
            "source.query",
            "source.query = \"SELECT * FROM pages WHERE at < 3\"",
            "source.query = \"SELECT * FROM pages\"",
            OPEN,
        ),
        change(
            "source.path",
            "source.path = \"in.db\"",
            "source.path = \"two.db\"",
            "source.kind = \"sqlite\"\nsource.table = \"pages\"\nsource.order = \"at\"\n\
             source.follow = false",
        ),
        of_watch(
            "watch.database",
            "watch.table = \"pages\"\nwatch.database = \"in.db\"",
            "watch.table = \"pages\"\nwatch.database = \"two.db\"",
        ),
        of_watch(
            "watch.table",
            "watch.table = \"pages\"\nwatch.database = \"in.db\"",
            "watch.table = \"other\"\nwatch.database = \"in.db\"",
        ),
        of_watch(
            "watch.id",
            "watch.table = \"pages\"\nwatch.database = \"in.db\"",
            "watch.table = \"pages\"\nwatch.database = \"in.db\"\nwatch.id = \"name\"",
        ),
        of_watch(
            "watch.text",
            "watch.table = \"pages\"\nwatch.database = \"in.db\"\nwatch.text = \"title\"",
            "watch.table = \"pages\"\nwatch.database = \"in.db\"",
        ),
    ]
}

#[cfg(not(feature = "sqlite"))]
fn of_tables() -> Vec<Change> {
    Vec::new()
}

/// The databases of those changes.
#[cfg(feature = "sqlite")]
fn make_databases(place: &Place) {
    let (a, b) = (words(0), words(100));
    for (file, third) in [("in.db", &b), ("two.db", &a)] {
        let database = rusqlite::Connection::open(place.path(file)).unwrap();
        for table in ["pages", "other"] {
            let text = if table == "pages" { third } else { &a };
            let rows = [("1", &a, 1, 9, 0), ("2", &a, 2, 8, 0), ("3", text, 3, 2, 0), ("4", text, 4, 1, 1)];
            let make = "(id TEXT, name TEXT, title TEXT, body TEXT, text TEXT, at INTEGER, seen INTEGER, \
                gone INTEGER)";
            database.execute_batch(&format!("CREATE TABLE {table} {make}")).unwrap();
            for (id, text, at, seen, gone) in rows {
                let sql =
                    format!("INSERT INTO {table} VALUES (?1, 'n' || ?1, 'title ' || ?1, ?2, ?2, ?3, ?4, ?5)");
                database.execute(&sql, rusqlite::params![id, text, at, seen, gone]).unwrap();
            }
        }
    }
}

#[cfg(not(feature = "sqlite"))]
fn make_databases(_: &Place) {}

/// Changes of inputs of watches.
fn of_watches() -> Vec<Change> {
    let (a, b) = (words(0), words(100));
    let feed = records(r#"{"id":"N","text":"TEXT"}"#, &[&a, &a, &b]);
    let of = |key, before, after| {
        change(key, before, after, LINES)
            .file("in.jsonl", feed.clone())
            .file("1.jsonl", records(r#"{"id":"wN","text":"TEXT"}"#, &[&a]))
            .file("2.jsonl", records(r#"{"id":"vN","text":"TEXT"}"#, &[&b]))
    };
    vec![
        of("watch.inputs", "watch.inputs = [\"1.jsonl\"]", "watch.inputs = [\"2.jsonl\"]"),
        of("watch.path", "watch.path = \"1.jsonl\"", "watch.path = \"2.jsonl\""),
    ]
}

fn all() -> Vec<Change> {
    [of_files(), of_references(), of_texts(), of_tables(), of_watches()].into_iter().flatten().collect()
}

/// Names of keys in the declarations of the configuration.
fn declared() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dupflow/config");
    let tables = ["source.", "csv.", "json.", "warc.", "reference.", "watch.", "text."];
    let mut found = BTreeSet::new();
    for file in [
        "deployment/keys.rs",
        "deployment/tables.rs",
        "deployment/source/http.rs",
        "deployment/source/reference.rs",
        "deployment/watch/mod.rs",
        "pipeline/keys.rs",
    ] {
        let code = std::fs::read_to_string(folder.join(file)).unwrap();
        let is_of_keys = file == "pipeline/keys.rs";
        for (line, next) in code.lines().zip(code.lines().skip(1).chain([""])) {
            let declares = line.contains("name: \"") || is_of_keys;
            let name = line.split('"').nth(1).or_else(|| next.split('"').nth(1)).filter(|_| declares);
            found.extend(
                name.filter(|name| tables.iter().any(|table| name.starts_with(table))).map(str::to_owned),
            );
        }
    }
    found
}

#[test]
fn every_key_has_a_class_and_every_change_of_one_is_tried() {
    let classes: BTreeMap<&str, Class> = CLASSES.iter().copied().collect();
    assert_eq!(classes.len(), CLASSES.len());
    assert_eq!(declared(), classes.keys().map(|key| (*key).to_owned()).collect());
    let tried: BTreeSet<&str> =
        all().iter().map(|change| change.key).chain(ELSEWHERE.iter().copied()).collect();
    for (key, class) in
        CLASSES.iter().filter(|(key, _)| cfg!(feature = "sqlite") || !key.starts_with("source."))
    {
        let is_tried = tried.contains(key);
        assert!(
            is_tried || matches!(class, Class::Inputs | Class::Nothing),
            "{key} decides {class:?} and is not tried"
        );
    }
    assert!(ALSO.iter().all(|key| tried.contains(key)));
}

/// With a state and without one.
#[test]
fn a_changed_key_is_reconciled_to_what_a_fresh_run_finds() {
    let mut wrong = Vec::new();
    for change in all() {
        for state in [Some("state"), None] {
            if let Err(what) = tried(&change, state) {
                wrong.push(format!("{} with state {state:?}: {what}", change.key));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn tried(change: &Change, state: Option<&str>) -> Result<(), String> {
    let place = Place::new();
    make_databases(&place);
    change.files.iter().for_each(|(name, content)| place.file(name, content));
    let is_watch = change.key.starts_with("watch.");
    let fresh_state = state.map(|_| "fresh");
    let ends = |run: Ended, code: i32| if run.code == code { Ok(run.err) } else { Err(format!("{run:?}")) };
    ends(change.run(&place, false, ("out", state), ""), 0)?;
    let before = written(&place, "out");
    ends(change.run(&place, true, ("fresh-out", fresh_state), ""), 0)?;
    let fresh = written(&place, "fresh-out");
    if before == fresh && !SAME_RESULT.contains(&change.key) {
        return Err(format!("the change has no effect: {before:?}"));
    }
    // A database may have moved, and watches are read anew.
    let is_refused = !is_watch && change.key != "source.path";
    let refusal = ends(change.run(&place, true, ("out", state), ""), i32::from(is_refused))?;
    let table = change.key.split('.').next().unwrap_or_default();
    if is_refused && !(refusal.contains("--reconcile") && refusal.contains(&format!("{table}."))) {
        return Err(refusal);
    }
    ends(change.run(&place, true, ("out", state), "--reconcile"), 0)?;
    for again in ["", "--reconcile"] {
        let found = written(&place, "out");
        if found != fresh {
            return Err(format!("{found:?}\nand a fresh run: {fresh:?}"));
        }
        ends(change.run(&place, true, ("out", state), again), 0)?;
    }
    // Back again: the state is of the later rules now.
    ends(change.run(&place, false, ("out", state), "--reconcile"), 0)?;
    let back = written(&place, "out");
    if back == before { Ok(()) } else { Err(format!("back: {back:?}\nand before: {before:?}")) }
}
