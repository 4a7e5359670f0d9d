//! `--against`: a corpus that is there already.
//!
//! Bug classes: a document of the reference that is removed, written, or compared with another one; a match
//! that is not named; equal ids on both sides taken for one document; a result that depends on epochs or
//! workers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::dupflow::Place;
use super::feeds::{lines, page, upsert, words};

/// Near copies and copies, by group: in the reference, in the corpus, and in both. Ids are equal on both
/// sides.
fn feeds() -> (String, String) {
    let text = |group: u32, edit: u32| page(edit..edit + 1, 10 + edit).replace('w', &format!("g{group}x"));
    let old =
        [("a", text(1, 1)), ("b", text(1, 1)), ("c", text(1, 2)), ("d", text(2, 1)), ("e", words(0..30))];
    let new = [
        ("a", text(1, 3)),
        ("b", text(3, 1)),
        ("c", text(3, 1)),
        ("d", text(3, 2)),
        ("f", text(2, 1)),
        ("g", words(50..90)),
        // Comes again, with another text.
        ("h", text(2, 1)),
        ("h", words(200..240)),
    ];
    let feed = |rows: &[(&str, String)]| rows.iter().map(|(id, of)| upsert(id, of)).collect();
    (feed(&old), feed(&new))
}

fn set(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().map(Value::to_string).collect()
}

#[test]
fn a_reference_stays_and_matches_are_named() {
    let place = Place::new();
    let (old, new) = feeds();
    place.file("old/1.jsonl", &old);
    place.file("new.jsonl", &new);
    for run in ["--workers 1", "--workers 3 --epoch events:1", "--workers 2 --epoch events:3"] {
        let rows = |emit: &str| {
            place.replay(&format!("--emit {emit} {run} --against old new.jsonl -o out.jsonl"));
            set(&lines(&place.read("out.jsonl")))
        };
        let ids = ["b", "g", "h"].map(|id| json!({ "id": id }));
        assert_eq!(rows("keep"), set(&ids), "{run}");
        let removed = [
            json!({"id": "a", "kept": "a", "cluster": "a", "old": true}),
            json!({"id": "c", "kept": "b", "cluster": "b", "old": false}),
            json!({"id": "d", "kept": "b", "cluster": "b", "old": false}),
            json!({"id": "f", "kept": "d", "cluster": "d", "old": true}),
        ];
        assert_eq!(rows("remove"), set(&removed), "{run}");
        let of_pair = |pair: &str| {
            let pair: Value = serde_json::from_str(pair).unwrap();
            ["a", "b", "old"].map(|key| pair[key].to_string().replace('"', "")).join(" ")
        };
        let pairs: BTreeSet<_> = rows("pairs").iter().map(|pair| of_pair(pair)).collect();
        let expected =
            ["a a true", "b a true", "c a true", "b c false", "b d false", "c d false", "d f true"];
        assert_eq!(pairs, expected.map(str::to_owned).into());
    }
    let lines: Vec<_> = new.split_inclusive('\n').collect();
    let (_, stats) = place.replay("--emit documents --against old new.jsonl -o out.jsonl");
    assert_eq!(place.read("out.jsonl"), [lines[1], lines[5], lines[7]].concat());
    assert_eq!(stats["copied"]["without_document"], 1, "the first version of h");
    place.replay("--emit removed-documents --against old new.jsonl -o out.jsonl");
    assert_eq!(place.read("out.jsonl"), [lines[0], lines[2], lines[3], lines[4]].concat());
    place.replay("--emit remove --against old new.jsonl -o out.csv");
    assert!(place.read("out.csv").starts_with("id,kept,cluster,old\na,a,a,true\n"));
}

/// Copies in the reference are no pairs, however many there are, and none is compared with another.
#[test]
fn a_reference_is_not_compared_with_itself() {
    let place = Place::new();
    let old: String = (0..300).map(|n| upsert(&format!("o{n}"), &page(n % 3..n % 3 + 1, 1))).collect();
    place.file("old.jsonl", old);
    place.file("new.jsonl", upsert("n", &words(500..600)));
    let (_, stats) = place.replay("--emit pairs --against old.jsonl new.jsonl -o out.jsonl");
    assert_eq!((place.read("out.jsonl").as_str(), &stats["pairs"]), ("", &json!(0)));
    assert_eq!(stats["components_compared"], 0, "{stats}");
}

#[test]
fn what_does_not_go_with_a_reference_is_refused() {
    let place = Place::new();
    let (old, new) = feeds();
    place.file("old.jsonl", old);
    place.file("new.jsonl", new);
    for (arguments, what) in [
        ("--emit deltas", "takes --emit keep"),
        ("--emit clusters", "takes --emit keep"),
        ("--emit documents --mark m", "does not go with --mark"),
        ("--emit keep -o old.jsonl", "is an input and would be lost"),
    ] {
        let ended = place.run(&format!("replay {arguments} --against old.jsonl new.jsonl"));
        assert!(ended.code == 2 && ended.err.contains(what), "{arguments}: {ended:?}");
    }
    let ended = place.run("replay --emit keep --against missing.jsonl new.jsonl");
    assert!(ended.code == 2 && ended.err.contains("missing.jsonl"), "{ended:?}");
}

#[test]
fn a_reference_without_a_document_fails() {
    let place = Place::new();
    let (old, new) = feeds();
    place.file("old.jsonl", old);
    place.file("new.jsonl", new);
    place.file("empty.jsonl", "");
    place.file("hidden/.a.jsonl", "{}");
    for against in ["empty.jsonl", "hidden"] {
        let ended = place.run(&format!("replay --emit keep -o out --against {against} new.jsonl"));
        assert!(ended.code == 1 && ended.err.contains("--against holds no document"), "{ended:?}");
        assert!(!place.path("out").exists(), "{against}");
        let both = format!("replay -q --emit keep --against {against} --against old.jsonl new.jsonl");
        assert_eq!(place.run(&both).code, 0, "{against}");
    }
}

/// The one problem is said once, with the options that help; and they do.
#[test]
fn a_reference_with_other_fields_names_the_options() {
    let place = Place::new();
    let (old, new) = feeds();
    place.file("old.jsonl", old.replace("\"id\":", "\"key\":").replace("\"text\":", "\"content\":"));
    place.file("new.jsonl", new);
    let run = "replay -q --emit keep --against old.jsonl new.jsonl";
    let ended = place.run(run);
    assert_eq!((ended.code, ended.err.lines().count()), (1, 1), "{ended:?}");
    let advice = "--against-text-field and --against-id-field (reference.text_path, reference.id_path)";
    assert!(ended.err.contains(advice) && !ended.err.contains("--max-bad"), "{ended:?}");
    let named = place.run(&format!("{run} --against-text-field content --against-id-field key"));
    assert!(named.code == 0 && named.out.lines().count() > 1, "{named:?}");
}
