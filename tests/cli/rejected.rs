//! `--emit rejected:N`: candidates that the filter turns down, with why, against similarities that are
//! computed here.
//!
//! Bug classes: a sample that depends on epochs, workers, the order of the feed or documents that have gone;
//! a number without relation to the whole; a format that lacks a column; an option that is accepted and has
//! no effect.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::dupflow::Place;
use super::feeds::{delete, lines, page, upsert, words};

/// Thirty pages, each with other words in part of its hundred, so that all similarities occur; two copies of
/// one; and some that go, or have another text first.
fn feed() -> String {
    let mut feed = String::new();
    feed += &upsert("gone", &page(0..40, 77));
    feed += &upsert("p03", &words(7000..7100));
    for n in 0..30 {
        feed += &upsert(&format!("p{n:02}"), &page(0..n * 2, 10 + n));
    }
    feed += &upsert("copy", &page(0..24, 22));
    feed + &delete("gone")
}

/// The texts that are alive at the end, by id.
fn texts() -> Vec<(String, String)> {
    let page = |n: u32| (format!("p{n:02}"), page(0..n * 2, 10 + n));
    (0..30).map(page).chain([("copy".to_owned(), super::feeds::page(0..24, 22))]).collect()
}

/// Jaccard similarity of the sets of word 3-shingles.
fn jaccard(a: &str, b: &str) -> f64 {
    let shingles = |text: &str| -> BTreeSet<Vec<String>> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        words.windows(3).map(<[String]>::to_vec).collect()
    };
    let (a, b) = (shingles(a), shingles(b));
    a.intersection(&b).count() as f64 / a.union(&b).count() as f64
}

/// With all pairs as candidates and exact similarities, the rejected ones are those below the threshold.
const ALL: &str = "--set blocking.kind=scan --set filter.verify=exact --set filter.kind=full";

#[test]
fn all_rejected_pairs_are_those_below_the_threshold() {
    let place = Place::new();
    place.file("feed", feed());
    let (run, stats) = place.replay(&format!("--emit rejected:10000 {ALL} feed"));
    // The copies are one sketch, named by the smaller id.
    let texts: Vec<_> = texts().into_iter().filter(|(id, _)| id != "p12").collect();
    let mut expected = Vec::new();
    for (a, of_a) in &texts {
        for (b, of_b) in texts.iter().filter(|(b, _)| b > a) {
            let similarity = jaccard(of_a, of_b);
            if similarity < 0.8 {
                let pairs = if [a, b].iter().any(|id| *id == "copy") { 2 } else { 1 };
                expected.push((a.clone(), b.clone(), similarity, pairs));
            }
        }
    }
    expected.sort_by(|x, y| (&x.0, &x.1).cmp(&(&y.0, &y.1)));
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
    let found: Vec<_> = lines(&run.out)
        .iter()
        .map(|line| {
            assert!(["sizes", "features"].contains(&text(line, "by").as_str()), "{line}");
            assert_eq!((&line["threshold"], &line["blocks"]), (&json!(0.8), &json!(1)), "{line}");
            assert!(line["agree"].is_null() && line["needed"].is_null(), "{line}");
            let similarity = line["similarity"].as_f64().expect("a number");
            (text(line, "a"), text(line, "b"), similarity, line["pairs"].as_u64().expect("a number"))
        })
        .collect();
    assert_eq!(found, expected);
    let all = 30 * 29 / 2;
    assert_eq!(stats["rejected"]["candidates"], json!(all), "{stats}");
    assert_eq!(stats["rejected"]["rejected"], json!(expected.len()), "{stats}");
    assert_eq!(stats["rejected"]["written"], json!(expected.len()), "{stats}");
    let line = format!("rejected    {} of {all} candidates at the end: ", expected.len());
    assert!(run.err.contains(&line), "{}", run.err);
}

/// The same bytes for any epochs, workers, and any feed with the same documents at its end.
#[test]
fn a_sample_is_a_function_of_the_documents_at_the_end() {
    let place = Place::new();
    place.file("feed", feed());
    let mut fresh: Vec<String> = texts().iter().map(|(id, text)| upsert(id, text)).collect();
    fresh.reverse();
    place.file("fresh", fresh.concat());
    for pipeline in
        ["--set threshold=0.8", "-p simhash", ALL, "--set blocking.bands=200 --set blocking.rows=1"]
    {
        let sample = |options: &str| {
            let (run, stats) = place.replay(&format!("--emit rejected:7 {pipeline} {options}"));
            (run.out, stats["rejected"].clone())
        };
        let expected = sample("--workers 1 feed");
        for options in
            ["--workers 4 --epoch events:1 feed", "--workers 2 --epoch all feed", "--workers 3 fresh"]
        {
            assert_eq!(sample(options), expected, "{pipeline} {options}");
        }
        let (rejected, written) = (expected.1["rejected"].as_u64(), lines(&expected.0).len() as u64);
        assert_eq!(Some(written), rejected.map(|rejected| rejected.min(7)), "{pipeline}");
        assert_eq!(expected.1["written"].as_u64(), Some(written), "{pipeline}");
    }
    let (run, stats) = place.replay("--emit rejected:3 --set blocking.bands=200 --set blocking.rows=1 feed");
    let by = stats["rejected"]["by"].as_object().expect("an object");
    assert!(by["first-word"].as_u64() > Some(10) && by["look"].as_u64() > Some(10), "{stats}");
    for line in lines(&run.out) {
        let number = |key: &str| line[key].as_f64().unwrap_or_else(|| panic!("{key}: {line}"));
        assert!(number("agree") < number("needed") && number("similarity") < 0.8, "{line}");
        assert!(number("components") >= 64.0 && number("look") >= 1.0, "{line}");
    }
}

#[test]
fn a_rule_on_fields_is_named_as_the_reason() {
    let place = Place::new();
    let line = |id: &str, host: &str, n| json!({ "id": id, "host": host, "text": page(0..n, n) }).to_string();
    place.file("feed", [line("a", "x", 1), line("b", "x", 2), line("c", "y", 3)].join("\n"));
    let (run, stats) =
        place.replay("--emit rejected:9 --field host --set pairs.where=a.host!=b.host -o out.csv feed");
    assert_eq!(run.out, "");
    let out = place.read("out.csv");
    let mut rows = out.lines();
    assert_eq!(rows.next(), Some("a,b,by,look,components,agree,needed,similarity,threshold,blocks,pairs"));
    let row = rows.next().expect("a row");
    assert!(row.starts_with("a,b,pairs.where,0,0,,,0.9") && row.ends_with(",1"), "{row}");
    assert_eq!((rows.next(), &stats["rejected"]["by"]), (None, &json!({ "pairs.where": 1 })));
}

#[test]
fn a_sample_can_be_verified_and_has_every_format() {
    let place = Place::new();
    place.file("feed", feed());
    place.replay("--emit rejected:5 --provenance -o report.jsonl feed");
    let verified = place.run("verify report.jsonl feed --workers 3");
    assert_eq!(verified.code, 0, "{verified:?}");
    place.file("other", feed().replace("w99\"", "w98\""));
    let differs = place.run("verify report.jsonl other");
    assert_eq!(differs.code, 1, "{differs:?}");
    if cfg!(feature = "parquet") {
        place.replay("--emit rejected:5 --provenance -o report.parquet feed");
        let report = place.run("verify report.parquet feed");
        assert_eq!(report.code, 0, "{report:?}");
    }
}

#[test]
fn what_a_sample_cannot_have_is_refused() {
    let place = Place::new();
    place.file("feed", feed());
    for (arguments, message) in [
        ("--emit rejected:0 feed", "expected \"rejected:\" and a number of pairs, at least 1"),
        ("--emit rejected: feed", "expected \"rejected:\" and a number of pairs, at least 1"),
        ("--emit rejected feed", "rejected"),
        ("--emit rejected:3 --evidence feed", "--evidence: only pairs have evidence"),
        ("--emit rejected:3 --causes feed", "--causes: only deltas have causes"),
        ("--emit rejected:3 --times feed", "--times: only changes have times"),
        (
            "--emit rejected:3 --processes 2 --process 0 --hosts hosts --workers 1 feed",
            "--emit: one process writes rejected candidates",
        ),
    ] {
        let run = place.run(&format!("replay {arguments}"));
        assert_eq!(run.code, 2, "{arguments}: {run:?}");
        assert!(run.err.contains(message), "{arguments}: {}", run.err);
    }
    // A run that fails at its end leaves the file as it was.
    place.file("out.jsonl", "before\n");
    place.file("bad", feed() + "{oops\n");
    let run = place.run("replay --emit rejected:3 --max-bad 0 -o out.jsonl bad");
    assert_eq!((run.code, place.read("out.jsonl")), (1, "before\n".to_owned()), "{run:?}");
}
