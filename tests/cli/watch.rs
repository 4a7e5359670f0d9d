//! Watch lists of a replay and of a run that is restarted: what their notices accumulate to.

use std::collections::BTreeMap;

use serde_json::Value;

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
    let notice: Value = lines(&place.read("n")).remove(0);
    assert_eq!((&notice["watch"], &notice["id"]), (&"w".into(), &"a".into()));
    let missing = place.run("replay --watch none.jsonl --notices n feed.jsonl");
    assert!(missing.code != 0 && missing.err.contains("none.jsonl"), "{missing:?}");
}
