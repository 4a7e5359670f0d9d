//! `text.fields`: the effect of additional fields on a run.

use serde_json::json;

use super::dupflow::Place;
use super::feeds::{pairs, words};

/// Weighted shingles of one word with every pair compared; the standard error of an estimate is at most 0.01.
const WEIGHTED: &str = "--emit pairs --set threshold=0.3 --set sketch.kind=dart --set sketch.size=4096 --set \
    text.weights=count \
                        --set text.shingle=words:1 --set blocking.kind=scan";

fn record(id: &str, title: &str) -> String {
    json!({ "title": title, "id": id, "text": words(0..20) }).to_string() + "\n"
}

#[test]
fn different_titles_lower_the_similarity() {
    let place = Place::new();
    // 20 words of text in common, and 5 different words of title.
    place.file("feed", record("a", &words(100..105)) + &record("b", &words(200..205)));
    for (fields, weight) in
        [("", 0.0), ("--set text.fields.title=1 ", 1.0), ("--set text.fields.title=3 ", 3.0)]
    {
        let found = pairs(&place.replay(&format!("{WEIGHTED} {fields}feed")).0.out);
        let similarity = found[&("a".to_owned(), "b".to_owned())];
        let expected = 20.0 / (20.0 + 2.0 * 5.0 * weight);
        assert!((similarity - expected).abs() < 0.04, "{fields}: {similarity}, expected {expected}");
    }
}

#[test]
fn a_field_that_is_no_string_makes_a_bad_record() {
    let place = Place::new();
    let bad = json!({ "id": "c", "text": words(0..20), "title": null }).to_string() + "\n";
    place.file("feed", record("a", "one") + &bad + &record("b", "one"));
    let fields = "--emit pairs --set text.fields.title=1 feed";
    let (run, stats) = place.replay(fields);
    assert_eq!(stats["bad_records"], json!({ "bad_field": 1 }));
    assert_eq!(pairs(&run.out).into_keys().collect::<Vec<_>>(), [("a".to_owned(), "b".to_owned())]);
    // Without `text.fields` the title is ignored.
    let (all, of_all) = place.replay("--emit pairs feed");
    assert_eq!((pairs(&all.out).len(), &of_all["bad_records"]), (3, &json!({})));
}

#[test]
fn a_text_of_a_file_has_no_fields() {
    let place = Place::new();
    place.file("pages/a", "one two\u{1e}three four");
    place.file("pages/b", "one two three four");
    place.file("feed", json!({ "id": "f", "text": "one two\u{1e}three four" }).to_string());
    let fields = "--set text.fields.title=1 --set text.shingle=words:2";
    let found = pairs(&place.replay(&format!("--emit pairs {fields} pages feed")).0.out);
    assert_eq!(found.values().copied().collect::<Vec<_>>(), [1.0; 3]);
    let compared = place.run(&format!("compare {fields} pages/a pages/b"));
    assert!(compared.out.starts_with("1.000: a pair, of copies\n"), "{compared:?}");
}
