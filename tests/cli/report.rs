//! `--report`: the result of a replay as a page.
//!
//! Bug classes: a number that the result does not have; a page that depends on workers, epochs or what else
//! is written; text of a document that becomes markup; a page of a replay that has failed.

use std::collections::BTreeMap;

use super::dupflow::Place;
use super::feeds::{lines, page, pairs, upsert, words};

/// Families of near copies, some of them equal, and texts without another.
fn feed() -> String {
    let text = |group: u32, edit: u32| page(edit..edit + 1, 10 + edit).replace('w', &format!("g{group}x"));
    let mut feed: String =
        (0..20).map(|n| upsert(&format!("alone{n}"), &words(n * 50..n * 50 + 40))).collect();
    for (group, copies) in [(1, 2), (2, 3), (3, 14)] {
        for copy in 0..copies {
            feed += &upsert(&format!("g{group}c{copy}"), &text(group, copy % 4));
        }
    }
    feed + &upsert("g1c0", &text(1, 3))
}

/// The text of a page, without its style and its markup.
fn text_of(page: &str) -> String {
    let (_, body) = page.split_once("<body>").unwrap();
    let mut parts = body.split('<');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + " " + part.split_once('>').unwrap().1)
}

#[test]
fn its_numbers_are_those_of_the_result() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    place.replay("--emit pairs -o pairs.jsonl --report report.html feed.jsonl");
    place.replay("--emit remove -o remove.jsonl feed.jsonl");
    let (found, removed) = (pairs(&place.read("pairs.jsonl")), lines(&place.read("remove.jsonl")).len());
    let mut parents = BTreeMap::<String, String>::new();
    fn root(parents: &BTreeMap<String, String>, id: &str) -> String {
        parents.get(id).map_or(id.to_owned(), |parent| root(parents, parent))
    }
    let mut all: Vec<String> = Vec::new();
    for line in lines(&place.read("pairs.jsonl")) {
        let ids = ["a", "b"].map(|end| line[end].as_str().unwrap().to_owned());
        let [a, b] = ids.each_ref().map(|id| root(&parents, id));
        if a != b {
            parents.insert(b, a);
        }
        all.extend(ids);
    }
    all.sort_unstable();
    all.dedup();
    let mut sizes = BTreeMap::<String, usize>::new();
    all.iter().for_each(|id| *sizes.entry(root(&parents, id)).or_default() += 1);
    assert!(sizes.len() == 3 && sizes.values().max() > Some(&12), "{sizes:?}");
    assert_eq!(removed, all.len() - sizes.len(), "components: one of each stays");

    let report = place.read("report.html");
    let text = text_of(&report);
    let share = 100.0 * all.len() as f64 / 39.0;
    for said in [
        format!("{share:.1} % of 39 documents repeat another one"),
        format!("{} pairs connect {} documents in 3 clusters. {removed} could", found.len(), all.len()),
        "Its least similar pair:".to_owned(),
        "and 2 more".to_owned(),
        "Nothing was left out.".to_owned(),
    ] {
        assert!(text.contains(&said), "{said} is not in {text}");
    }
    for (emit, settings) in [
        ("deltas", "--workers 3 --epoch events:1"),
        ("keep", "--workers 1 --epoch events:7"),
        ("documents", "--memory 64MiB"),
        ("rejected:3", "--workers 2"),
    ] {
        place.replay(&format!("--emit {emit} -o out_{emit} {settings} --report again.html feed.jsonl"));
        assert_eq!(place.read("again.html"), report, "{emit} {settings}");
    }
}

/// Other rules remove other documents: then the page does not say how many.
#[test]
fn what_could_be_left_out_is_said_by_components_only() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    for (settings, is_said) in [
        ("-p contained", false),
        ("--set output.clusters=star", false),
        ("-p exact", true),
        ("-p simhash", true),
        ("-t 0.875", true),
    ] {
        place.replay(&format!("{settings} --emit remove -o remove.jsonl --report report.html feed.jsonl"));
        let (removed, text) = (lines(&place.read("remove.jsonl")).len(), text_of(&place.read("report.html")));
        let said = format!("{removed} could be left out");
        assert_eq!(
            (text.contains(&said), text.contains("could be left out, and")),
            (is_said, is_said),
            "{text}"
        );
    }
    let text = text_of(&place.read("report.html"));
    assert!(text.contains("at least 0.875, by"), "{text}");
}

/// A pipe has one reader, and is not waited for a second time; what is wrong with a record is logged once.
#[cfg(unix)]
#[test]
fn a_pipe_is_read_once() {
    let place = Place::new();
    place.file("feed.jsonl", feed() + "oops\n");
    assert!(std::process::Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    let (from, to) = (place.path("feed.jsonl"), place.path("pipe"));
    let writer = std::thread::spawn(move || std::fs::copy(from, to).unwrap());
    let ended = place.run("replay --emit pairs -o out.jsonl --report report.html pipe");
    writer.join().unwrap();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(text_of(&place.read("report.html")).contains("a pipe, which is read once"));
    let ended = place.run("replay --emit pairs -o out.jsonl --report report.html feed.jsonl");
    assert_eq!((ended.code, ended.err.matches("WARN bad record").count()), (0, 1), "{ended:?}");
}

#[test]
fn small_results_are_sentences_too() {
    let place = Place::new();
    let text = words(0..40);
    for (feed, said) in [
        (String::new(), "There is no document"),
        (upsert("a", &text), "The only document repeats no other one"),
        (upsert("a", &text) + &upsert("b", &text), "100 % of 2 documents repeat another one"),
        (upsert("a", &text) + &upsert("b", &text), "1 pair connects 2 documents in 1 cluster. 1 could"),
    ] {
        place.file("feed.jsonl", feed);
        place.replay("--emit pairs -o out.jsonl --report report.html feed.jsonl");
        let page = text_of(&place.read("report.html"));
        assert!(page.contains(said), "{said} is not in {page}");
    }
    // The texts differ behind what is shown of them.
    let long = words(0..6000);
    place.file("feed.jsonl", upsert("a", &long) + &upsert("b", &format!("{long} and an end")));
    place.replay("--emit pairs -o out.jsonl --report report.html feed.jsonl");
    assert!(text_of(&place.read("report.html")).contains("these are the first 20,000 characters"));
}

#[test]
fn documents_of_a_reference_stay_in_it() {
    let place = Place::new();
    let text = |edit: u32| page(edit..edit + 1, 10 + edit);
    place.file("old.jsonl", upsert("a", &text(1)) + &upsert("b", &text(2)));
    place.file("new.jsonl", upsert("a", &text(3)) + &upsert("c", &text(1)) + &upsert("d", &words(900..940)));
    place.replay("--emit remove -o remove.jsonl --report report.html --against old.jsonl new.jsonl");
    assert_eq!(lines(&place.read("remove.jsonl")).len(), 2);
    let text = text_of(&place.read("report.html"));
    for said in
        ["66.7 % of 3 documents repeat another one or the reference", " 2 could be left out", "(reference)"]
    {
        assert!(text.contains(said), "{said} is not in {text}");
    }
}

#[test]
fn what_documents_hold_is_no_markup() {
    let place = Place::new();
    let hostile = "</style><script>alert(1)</script><img src=x onerror=alert(2)>&\"'\u{202e}\0";
    let text = format!("{hostile} {}", words(0..60));
    let record = |id: &str| format!("{}\n", serde_json::json!({"id": id, "text": text}));
    place.file("feed.jsonl", record(hostile) + &record("b"));
    place.replay("--emit pairs -o out.jsonl --report report.html feed.jsonl");
    let page = place.read("report.html");
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    for part in ["<script", "<img", "\0", "\u{202e}"] {
        assert!(!page.contains(part), "{part:?}");
    }
}

#[test]
fn a_page_is_only_written_of_a_result() {
    let place = Place::new();
    place.file("feed.jsonl", feed() + "{}\n");
    place.file("split.jsonl", feed());
    let failed = place.run("replay --emit keep -q -o keep.jsonl --report report.html feed.jsonl");
    assert!(failed.code == 1 && !place.path("report.html").exists(), "{failed:?}");
    for (arguments, what) in [
        ("-o out.jsonl --resume place feed.jsonl", "--resume: does not go with --report"),
        ("--emit remove --set text.split=line split.jsonl", "--report: does not go with text.split"),
        ("-p decontaminate --emit items --against split.jsonl feed.jsonl", "a pipeline that finds items"),
        ("-o report.html split.jsonl", "report.html"),
    ] {
        let ended = place.run(&format!("replay --report report.html {arguments}"));
        assert!(ended.code == 2 && ended.err.contains(what), "{arguments}: {ended:?}");
        assert!(!place.path("report.html").exists(), "{arguments}");
    }
    // A bad record that is allowed is said.
    place.replay("--emit pairs -o out.jsonl --report report.html feed.jsonl");
    assert!(
        text_of(&place.read("report.html")).contains("1 record could not be read as a document (missing_id)")
    );

    // Standard input is read once, so that there is no text.
    let (records, report) = (feed(), "replay -q --emit pairs -o out.jsonl --report report.html -");
    let ended = place.run_with(report, |to| to.write_all(records.as_bytes()).unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    let text = text_of(&place.read("report.html"));
    assert!(text.contains("a pipe, which is read once") && text.contains("documents repeat"), "{text}");
}
