//! Texts that look equal are equal: characters that do not show, composed and decomposed letters, folds on
//! request; and secrets, under which words are hashed.
//!
//! Bug classes: a form of a document (a line, a cell, a page, a field) or a command that sees another text; a
//! state that is used under other rules; a secret in a message.

use serde_json::{Value, json};

use super::dupflow::Place;
use super::feeds::lines;

/// Words of several scripts, and the same with other spellings of the same letters.
const SAME: [(&str, &str); 5] = [
    (
        "soft hyphens",
        "Do\u{ad}nau\u{ad}dampf\u{ad}schiff f\u{ad}ährt heute wie\u{ad}der nach \
         Pas\u{ad}sau \u{ad}und zurück",
    ),
    (
        "spaces of no width",
        "Donau\u{200b}dampf\u{200b}schiff fährt heute wieder nach\u{200b} Passau\u{2060} und zurück",
    ),
    (
        "marks of direction",
        "\u{feff}Donaudampf\u{200e}schiff \u{202b}fährt\u{202c} heu\u{feff}te wieder nach \
         \u{2068}Passau\u{2069} und zurück",
    ),
    ("letters with marks", "Donaudampfschiff fa\u{308}hrt heute wieder nach Passau und zuru\u{308}ck"),
    (
        "both",
        "Donaudampfschiff fa\u{ad}\u{308}hrt heute wieder nach Pas\u{200b}sau und zuru\u{308}c\u{2060}k",
    ),
];
const PLAIN: &str = "Donaudampfschiff fährt heute wieder nach Passau und zurück";

/// Similarity of the first of these records to each other one.
fn similarities(place: &Place, arguments: &str, ids: &[&str]) -> Vec<f64> {
    let asked = "replay -q -p exact --set threshold=0.0001 --set blocking.kind=scan --emit pairs";
    let ended = place.run(&format!("{asked} {arguments}"));
    assert_eq!(ended.code, 0, "{ended:?}");
    let pairs = lines(&ended.out);
    let of = |id: &&str| {
        let is_pair = |pair: &&Value| [&pair["a"], &pair["b"]].iter().all(|of| *of == *id || *of == "plain");
        pairs.iter().find(is_pair).map_or(0.0, |pair| pair["similarity"].as_f64().expect("a number"))
    };
    ids.iter().map(of).collect()
}

fn table(separator: &str, page: bool) -> String {
    let texts = [("plain", PLAIN)].into_iter().chain(SAME);
    let rows = texts.map(|(id, text)| {
        let text = if page {
            format!("<!doctype html><p>{}</p>", text.replace('\u{ad}', "&shy;"))
        } else {
            text.to_owned()
        };
        if separator == "json" {
            json!({ "id": id, "text": text }).to_string()
        } else {
            [id, &text].join(separator)
        }
    });
    let head = if separator == "json" { None } else { Some(["id", "text"].join(separator)) };
    head.into_iter().chain(rows).map(|row| row + "\n").collect()
}

#[test]
fn texts_that_look_equal_are_copies_in_every_form() {
    let place = Place::new();
    let ids = SAME.map(|(id, _)| id);
    for (name, separator, page) in [
        ("in.jsonl", "json", false),
        ("page.jsonl", "json", true),
        ("in.csv", ",", false),
        ("in.tsv", "\t", false),
    ] {
        place.file(name, table(separator, page));
        assert_eq!(similarities(&place, name, &ids), [1.0; 5], "{name}");
        let typed = format!("--set text.normalize=none --set text.invisible=keep {name}");
        let as_typed = similarities(&place, &typed, &ids);
        assert!(as_typed.iter().all(|similarity| *similarity < 0.7), "{name}: {as_typed:?}");
    }
    for (id, text) in [("plain", PLAIN)].into_iter().chain(SAME) {
        place.file(format!("folder/{id}.txt"), text);
    }
    let files = SAME.map(|(id, _)| format!("{id}.txt"));
    let ended = place.run("replay -q -p exact --emit remove folder");
    let mut removed: Vec<String> =
        lines(&ended.out).iter().map(|line| line["id"].as_str().expect("an id").to_owned()).collect();
    removed.push("plain.txt".to_owned());
    removed.sort();
    let mut all = [&files[..], &["plain.txt".to_owned()]].concat();
    all.sort();
    // All but the least id, which stays.
    assert_eq!(removed.len(), all.len(), "{ended:?}");
    assert!(all.iter().filter(|id| !removed.contains(id)).count() <= 1, "{ended:?}");
}

#[test]
fn compare_sees_the_letters_that_are_compared() {
    let place = Place::new();
    place.file("plain.txt", PLAIN);
    for (id, text) in SAME {
        place.file("other.txt", text);
        let ended = place.run("compare -p exact plain.txt other.txt");
        assert!(ended.out.contains("Jaccard, exact              1.0000"), "{id}: {ended:?}");
    }
}

#[test]
fn folds_are_made_on_request() {
    let place = Place::new();
    for (fold, plain, other) in [
        ("ё", "все еще белая елка", "всё ещё белая ёлка"),
        ("ß", "die STRASSE ist GROSS", "die Straße ist groß"),
        ("arabic", "كتاب قديم جدا", "كِتَابٌ قَدِيم جـــدا"),
        ("hebrew-points", "שלום לכל העולם", "שָׁלוֹם לְכָל הָעוֹלָם"),
        ("turkish-i", "istanbul ilik bir il", "İstanbul ılık bir il"),
    ] {
        let record = |id: &str, text: &str| json!({ "id": id, "text": text }).to_string() + "\n";
        place.file("in.jsonl", record("plain", plain) + &record("other", other));
        let of = |more: &str| {
            similarities(&place, &format!("--set text.shingle=words:1 {more}in.jsonl"), &["other"])[0]
        };
        assert!(of("") < 1.0, "{fold}");
        assert!((of(&format!("--set text.fold=[\"{fold}\"] ")) - 1.0).abs() < 1e-12, "{fold}");
    }
    let refused = place.run("replay -q --set text.fold=[\"umlauts\"] in.jsonl");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("\"hebrew-points\", \"turkish-i\", \"ß\", \"ё\""), "{refused:?}");
}

/// Under a secret the pairs are the same, and a state of another secret is refused; no message shows one.
#[test]
fn a_secret_is_part_of_the_scheme_and_is_never_shown() {
    let place = Place::new();
    place.file("in.jsonl", table("json", false));
    let pairs = |more: &str| {
        let ended = place.run(&format!("replay -q -p exact --emit pairs {more}in.jsonl"));
        (ended.code, ended.out, ended.err)
    };
    let (code, known, _) = pairs("");
    assert_eq!((code, lines(&known).len()), (0, 15));
    let secret = "--set text.secret=kept-by-nobody-but-us --stats report.json ";
    assert_eq!(pairs(secret), (0, known, String::new()));
    assert!(!place.read("report.json").contains("kept-by"), "{}", place.read("report.json"));
    let (code, _, err) = pairs("--set text.secret=too-short ");
    assert_eq!(code, 2);
    assert!(
        err.contains("text.secret") && err.contains("20 characters") && !err.contains("too-short"),
        "{err}"
    );

    place.file(
        "run.toml",
        "[source]\nkind = \"files\"\ninputs = [\"in.jsonl\"]\n[sink]\nkind = \"lines\"\n\
         path = \"out.jsonl\"\n[state]\npath = \"state\"\n",
    );
    let run = |secret: &str| place.run(&format!("run -q -c run.toml -p exact --set text.secret={secret}"));
    assert_eq!(run("kept-by-nobody-but-us").code, 0);
    assert_eq!(run("kept-by-nobody-but-us").code, 0);
    let other = run("another-secret-than-before");
    assert_eq!(other.code, 1, "{other:?}");
    assert!(other.err.contains("text.secret is ") && !other.err.contains("another-"), "{other:?}");
}
