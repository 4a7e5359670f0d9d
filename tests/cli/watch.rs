//! Watch lists of a replay and of a run that is restarted: what their notices accumulate to.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::dupflow::Place;
use super::feeds::{accumulated, delete, lines, page, upsert};

/// What notices accumulate to: (watch, document), with the similarity.
fn noticed(file: &str) -> BTreeMap<(String, String), f64> {
    let mut found = BTreeMap::new();
    for line in lines(file) {
        let text = |key: &str| line[key].as_str().expect("an id").to_owned();
        let key = (text("watch"), text("id"));
        let similarity = line["similarity"].as_f64().expect("a similarity");
        assert!(line["epoch"].is_u64() && line.as_object().map(serde_json::Map::len) == Some(5), "{line}");
        match line["diff"].as_i64() {
            Some(1) => assert_eq!(found.insert(key, similarity), None, "{line}"),
            Some(-1) => assert_eq!(found.remove(&key), Some(similarity), "{line}"),
            _ => panic!("{line}"),
        }
    }
    found
}

fn keys(found: &BTreeMap<(String, String), f64>) -> Vec<(&str, &str)> {
    found.keys().map(|(watch, id)| (watch.as_str(), id.as_str())).collect()
}

/// The pairs of a watch's text, as if it were a document: all of them, since nothing is hot here.
#[test]
fn notices_are_the_pairs_that_a_watch_would_be_in_as_a_document() {
    let place = Place::new();
    place.run("generate --documents 300 --seed 5 --near 0.5 --max-words 80 -o feed.jsonl");
    let feed = lines(&place.read("feed.jsonl"));
    let texts = feed.iter().filter_map(|event| event["text"].as_str()).step_by(17);
    let list: String = texts.enumerate().map(|(n, text)| upsert(&format!("~watch {n}"), text)).collect();
    place.file("list.jsonl", &list);
    let plain = place.replay("--epoch events:40 feed.jsonl").0;
    let watching = place.replay("--epoch events:40 --watch list.jsonl --notices notices.jsonl feed.jsonl").0;
    assert_eq!(watching.out, plain.out, "watches are in no pair");

    place.file("both.jsonl", list + &place.read("feed.jsonl"));
    let as_documents = accumulated(&place.replay("--set output.expand_limit=1000 both.jsonl").0.out);
    let pairs = as_documents.into_iter().filter(|((a, b), _)| !a.starts_with('~') && b.starts_with('~'));
    let expected: BTreeMap<_, _> = pairs.map(|((id, watch), similarity)| ((watch, id), similarity)).collect();
    assert!(expected.len() > 20, "{}", expected.len());
    assert_eq!(noticed(&place.read("notices.jsonl")), expected);
    for workers in [1, 4] {
        place.replay(&format!(
            "--epoch events:7 --workers {workers} --watch list.jsonl --notices again.jsonl feed.jsonl"
        ));
        assert_eq!(noticed(&place.read("again.jsonl")), expected, "{workers} workers");
    }
}

/// What changes add up to after each epoch that has any: (watch, document). `ids` gives both from a change.
fn history(changes: &str, ids: impl Fn(&Value) -> Option<(String, String)>) -> BTreeMap<u64, Matches> {
    let (mut history, mut now) = (BTreeMap::new(), Matches::new());
    for line in lines(changes) {
        let Some(key) = ids(&line) else { continue };
        match line["diff"].as_i64() {
            Some(1) => drop(now.insert(key, line["similarity"].to_string())),
            _ => drop(now.remove(&key)),
        }
        history.insert(line["epoch"].as_u64().expect("an epoch"), now.clone());
    }
    history
}

type Matches = BTreeMap<(String, String), String>;

/// A document that lives for a moment is noticed too: the list is there before the first document, however
/// fast the input is read. After each epoch the notices are the pairs of the watches as documents.
#[test]
fn notices_of_a_replay_are_those_of_each_epoch() {
    let place = Place::new();
    let made = "generate --documents 500 --seed 8 --near 0.4 --max-words 60 --updates 0.2 --deletes 0.2";
    assert_eq!(place.run(&format!("{made} -o made.jsonl")).code, 0);
    let mut feed = lines(&place.read("made.jsonl"));
    for (n, event) in feed.iter_mut().enumerate() {
        event["ts"] = (n / 25).into();
    }
    let texts = feed.iter().filter_map(|event| event["text"].as_str()).step_by(11);
    let watch = |(n, text): (usize, &str)| json!({ "id": format!("~{n}"), "ts": 0, "text": text });
    let list: String = texts.enumerate().map(|one| watch(one).to_string() + "\n").collect();
    let feed: String = feed.iter().map(|event| event.to_string() + "\n").collect();
    place.file("list.jsonl", &list);
    place.file("feed.jsonl", &feed);
    place.file("both.jsonl", list + &feed);

    let as_documents = place.replay("--epoch ts --set output.expand_limit=1000 both.jsonl").0.out;
    let text = |line: &Value, key: &str| line[key].as_str().expect("an id").to_owned();
    let expected = history(&as_documents, |line| {
        let (a, b) = (text(line, "a"), text(line, "b"));
        (!a.starts_with('~') && b.starts_with('~')).then_some((b, a))
    });
    assert!(expected.len() > 15, "{}", expected.len());
    let mut first = None;
    for workers in [1, 2, 4].into_iter().cycle().take(12) {
        place.replay(&format!(
            "--epoch ts --workers {workers} --watch list.jsonl --notices notices -o out feed.jsonl"
        ));
        let notices = place.read("notices");
        let found = history(&notices, |line| Some((text(line, "watch"), text(line, "id"))));
        assert_eq!(found, expected, "{workers} workers");
        assert_eq!(*first.get_or_insert(notices.clone()), notices, "{workers} workers");
    }
}

/// The list and the corpus change between two starts, and the file of notices is cut or lost: when a run
/// ends, it holds what is similar.
#[test]
fn a_restart_corrects_the_notices() {
    let place = Place::new();
    let deployment = "workers = 2\n[source]\ninputs = [\"feed.jsonl\"]\nepoch = \"events:2\"\n\
        [sink]\npath = \"out\"\n\
        [state]\npath = \"state\"\n[watch]\ninputs = [\"list.jsonl\"]\n[notices]\npath = \"notices\"\n";
    place.file("here.toml", deployment);
    let feed = upsert("a", &page(0..0, 0)) + &upsert("b", &page(0..3, 7)) + &upsert("c", &page(0..100, 3));
    place.file("feed.jsonl", &feed);
    place.file("list.jsonl", upsert("first", &page(0..0, 0)));
    let run = || {
        let run = place.run("run -c here.toml");
        assert_eq!(run.code, 0, "{run:?}");
        noticed(&place.read("notices"))
    };
    assert_eq!(keys(&run()), [("first", "a"), ("first", "b")]);
    let before = place.read("notices");
    run();
    assert_eq!(place.read("notices"), before, "nothing has changed");

    // The list has changed.
    place.file("list.jsonl", upsert("second", &page(0..100, 3)) + &upsert("first", &page(0..1, 9)));
    let found = run();
    assert_eq!(keys(&found), [("first", "a"), ("first", "b"), ("second", "c")]);
    // The corpus has, and a crash has cut the file within a line.
    place.file("feed.jsonl", feed.clone() + &delete("a") + &upsert("d", &page(0..100, 3)));
    let whole = place.read("notices");
    place.file("notices", &whole[..whole.len() - 5]);
    assert_eq!(keys(&run()), [("first", "b"), ("second", "c"), ("second", "d")]);
    // All of it is lost.
    std::fs::remove_file(place.path("notices")).expect("it is there");
    assert_eq!(keys(&run()), [("first", "b"), ("second", "c"), ("second", "d")]);
    // Without watches no match is left.
    place.file("list.jsonl", "");
    assert_eq!(keys(&run()), []);
}

/// The summary and `--stats` have what was found of the list.
#[test]
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn a_summary_counts_watches_and_notices() {
    let place = Place::new();
    place.file("feed.jsonl", upsert("a", &page(0..0, 0)) + &upsert("b", &page(0..3, 7)) + &delete("b"));
    place.file("list.jsonl", upsert("first", &page(0..0, 0)) + &upsert("other", &page(0..100, 3)));
    let (run, stats) = place.replay("--epoch events:1 --watch list.jsonl --notices n feed.jsonl");
    assert!(run.err.contains("\nnotices     3 of 2 watches\n"), "{run:?}");
    assert_eq!(stats["watches"], json!({ "watches": 2, "notices": 3 }));
    let (run, stats) = place.replay("feed.jsonl");
    assert!(!run.err.contains("notices") && stats.get("watches").is_none(), "{run:?}");
}

#[test]
fn wrong_settings_of_watches_are_refused_at_once() {
    let place = Place::new();
    place.file("feed.jsonl", upsert("a", "text"));
    let refused = |settings: &str, expected: &[&str]| {
        place.file("here.toml", format!("[source]\ninputs = [\"feed.jsonl\"]\n{settings}"));
        let run = place.run("run -c here.toml");
        assert_eq!(run.code, 2, "{settings}: {run:?}");
        for what in expected {
            assert!(run.err.contains(what), "{settings}: {what:?} is not in {}", run.err);
        }
    };
    refused(
        "[watch]\ninputs = [\"list\"]\nrefresh = \"1ms\"\n",
        &["notices.path", "watch.refresh", "less than"],
    );
    refused("[notices]\npath = \"notices\"\n", &["notices.path: there are no watches"]);
    refused("[watch]\npath = \"w\"\n[notices]\npath = \"w\"\n", &["is written to by"]);
    refused("[watch]\ninputs = [\"feed.jsonl\"]\n[notices]\npath = \"feed.jsonl\"\n", &["would be lost"]);
    refused(
        "[watch]\npath = \"w\"\ntable = \"t\"\ndatabase = \"d\"\n[notices]\npath = \"n\"\n",
        &["watch.order"],
    );
    refused("[notices]\ntable = \"t\"\n", &["notices.table: there are no watches", "sink.kind = \"sqlite\""]);
    if cfg!(feature = "webhook") {
        let hook = "[watch]\npath = \"w\"\n[notices]\npath = \"n\"\n[notices.hook]\n";
        refused(&format!("{hook}url = \"ftp://x\"\nsecret = \"short\"\n"), &["notices.hook.url", "16 bytes"]);
        refused(&format!("{hook}url = \"http://x\"\n"), &["notices.hook.secret"]);
        let no_file = hook.replace("path = \"n\"", "topic = \"n\"");
        refused(
            &format!("{no_file}url = \"http://x\"\nsecret = \"0123456789abcdef\"\n"),
            &["notices.hook.url: the file of notices is the queue", "sink.kind = \"kafka\""],
        );
    }
    place.file("list", "oops\n{\"id\":\"w\",\"text\":\"text\"}\n");
    place.file(
        "here.toml",
        "[source]\ninputs = [\"feed.jsonl\"]\n[watch]\ninputs = [\"list\"]\n[notices]\npath = \"n\"\n",
    );
    let run = place.run("run -c here.toml");
    assert!(run.code == 0 && run.err.contains("records of the watch list are no watches"), "{run:?}");
    assert_eq!(run.err.matches("WARN").count(), 1, "{run:?}");
    let notice: Value = lines(&place.read("n")).remove(0);
    assert_eq!((&notice["watch"], &notice["id"]), (&"w".into(), &"a".into()));
    let missing = place.run("replay --watch none.jsonl --notices n feed.jsonl");
    assert!(missing.code != 0 && missing.err.contains("none.jsonl"), "{missing:?}");
}

#[test]
fn a_list_without_a_watch_is_an_error() {
    let place = Place::new();
    place.file("feed.jsonl", upsert("a", "text"));
    place.file("list.jsonl", "{\"id\":\"x\",\"body\":\"abc\"}\n");
    for command in ["replay -q", "replay"] {
        let run = place.run(&format!("{command} --watch list.jsonl --notices n feed.jsonl"));
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.err.contains("\"list.jsonl\" holds 1 record and no watch: bad record in"), "{run:?}");
    }
    // An empty list is a list.
    place.file("list.jsonl", "\n");
    assert_eq!(place.run("replay -q --watch list.jsonl --notices n feed.jsonl").code, 0);
}
