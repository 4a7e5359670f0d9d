//! Copies are copies: documents of one text are a pair of similarity 1 under every filter and on every path,
//! however short the text is.
//!
//! Bug classes: a text that is too short for a filter and is no pair with its copy, where the two sketches
//! differ in fields or in the side of a reference; a path with its own idea of what is similar.

use std::collections::BTreeSet;

use serde_json::json;

use super::dupflow::Place;
use super::feeds::{lines, words};

/// Pipelines, and whether lists of documents are refused.
const FILTERS: &[(&str, bool)] = &[
    ("-p contained", false),
    ("-p contained --set filter.verify=sketch", true),
    ("-p contained --set filter.verify=sketch --set filter.least_words=1", true),
    ("-p minhash", false),
    ("-p minhash --set filter.kind=paper", false),
    ("-p minhash --set filter.kind=full", false),
    ("-p exact", false),
    ("-p sectional", false),
    ("-p simhash", false),
    ("-p onebit", false),
];

/// Texts: two words, fewer words than `filter.least_words`, so many that a sample is small, and a long one.
fn texts() -> Vec<String> {
    [2, 12, 400, 2000].map(|count| words(10_000 * count..10_000 * count + count)).into()
}

/// A feed of these texts, with ids that begin with `name`.
fn feed(name: &str, texts: &[String]) -> String {
    let record = |(n, text): (usize, &String)| {
        json!({ "id": format!("{name}{n}"), "host": name, "text": text }).to_string() + "\n"
    };
    texts.iter().enumerate().map(record).collect()
}

/// The pairs of an output, in either order, as texts of both ids; each has similarity 1.
fn pairs(out: &str) -> BTreeSet<String> {
    let pair = |line: serde_json::Value| {
        assert_eq!(line["similarity"], json!(1.0), "{line}");
        let mut ids = [&line["a"], &line["b"]].map(|id| id.as_str().unwrap().to_owned());
        ids.sort();
        ids.join(" ")
    };
    lines(out).into_iter().map(pair).collect()
}

fn ids(out: &str, key: &str) -> BTreeSet<String> {
    lines(out).iter().map(|line| line[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn copies_are_pairs_under_every_filter_and_on_every_path() {
    let place = Place::new();
    let texts = texts();
    let (old, new) = (feed("o", &texts), feed("n", &texts));
    place.file("old.jsonl", &old);
    place.file("new.jsonl", &new);
    place.file("all.jsonl", old.clone() + &new);
    texts.iter().enumerate().for_each(|(n, text)| place.file(format!("text{n}"), text));
    let each = |with: &dyn Fn(usize) -> String| (0..texts.len()).map(with).collect::<BTreeSet<_>>();
    let all_pairs = each(&|n| format!("n{n} o{n}"));
    let (olds, news) = (each(&|n| format!("o{n}")), each(&|n| format!("n{n}")));
    let mut wrong = Vec::new();
    for (filter, has_no_list) in FILTERS {
        let mut expect = |path: &str, found: BTreeSet<String>, expected: &BTreeSet<String>| {
            if found != *expected {
                wrong.push(format!("{filter} on {path}: {found:?}, expected {expected:?}"));
            }
        };
        let run = |words: &str| {
            let run = place.run(&words.replace("FILTER", filter).replace("  ", " "));
            assert_eq!(run.code, 0, "{words} {filter}: {run:?}");
            run
        };
        let rule = "--field host --set pairs.where=a.host!=b.host";
        for path in ["all.jsonl", "--against old.jsonl new.jsonl", &format!("{rule} all.jsonl")] {
            let replay = format!("replay -q FILTER {path}");
            expect(path, pairs(&run(&format!("{replay} --emit pairs")).out), &all_pairs);
            if *has_no_list {
                continue;
            }
            let is_against = path.starts_with("--against");
            let (removed, kept) = if is_against { (&news, &BTreeSet::new()) } else { (&olds, &news) };
            expect("remove", ids(&run(&format!("{replay} --emit remove")).out, "id"), removed);
            expect("keep", ids(&run(&format!("{replay} --emit keep")).out, "id"), kept);
            run(&format!("{replay} --emit documents -o kept.jsonl"));
            expect("documents", ids(&place.read("kept.jsonl"), "id"), kept);
        }
        for (n, source) in [
            "reference.inputs = [\"old.jsonl\"]\nsource.inputs = [\"new.jsonl\"]",
            "source.inputs = [\"all.jsonl\"]",
        ]
        .iter()
        .enumerate()
        {
            place.file("run.toml", format!("sink.path = \"out.jsonl\"\nsink.emit = \"pairs\"\n{source}\n"));
            let ended = run("run FILTER -c run.toml");
            expect(source, pairs(&place.read("out.jsonl")), &all_pairs);
            let has_short = filter.starts_with("-p contained") && !filter.ends_with("least_words=1");
            let said =
                ended.err.contains("reference   4 documents; 2 too short to be found except as a copy\n");
            assert_eq!(said, has_short && n == 0, "{filter}: {}", ended.err);
        }
        for (n, with_rule) in (0..texts.len()).flat_map(|n| [(n, ""), (n, rule)]) {
            let asked = run(&format!("query -q --format json FILTER {with_rule} --corpus old.jsonl text{n}"));
            let found: BTreeSet<String> = [format!("o{n}")].into();
            expect("query", ids(&asked.out, "id"), &found);
        }
        for with_rule in ["", rule] {
            let watch = "--watch old.jsonl --notices notices.jsonl -o out.jsonl";
            run(&format!("replay -q FILTER {with_rule} {watch} new.jsonl"));
            let notices =
                place.read("notices.jsonl").replace("\"watch\"", "\"a\"").replace("\"id\"", "\"b\"");
            expect("watch", pairs(&notices), &all_pairs);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Fifty copies of a text of which a sample is small, each of another host.
#[test]
fn all_copies_of_a_text_are_pairs_where_a_rule_lets_them_be() {
    let place = Place::new();
    let text = words(0..400);
    let record = |n: u32| json!({ "id": format!("d{n:02}"), "host": n, "text": text }).to_string() + "\n";
    place.file("feed.jsonl", (0..50).map(record).collect::<String>());
    for verify in ["sketch", "exact"] {
        let set = format!("--set filter.verify={verify} --field host --set pairs.where=a.host!=b.host");
        let (run, _) = place.replay(&format!("-p contained {set} --emit pairs feed.jsonl"));
        assert_eq!(pairs(&run.out).len(), 50 * 49 / 2, "{verify}");
    }
}
