//! `[reference]` of a deployment: a run whose documents are compared with a corpus that is there already.
//!
//! Bug classes: pairs other than those of `replay --against`; a side that a delta does not say; a restart
//! that compares a document of the reference again, or forgets it; another reference that is taken silently;
//! a document of the reference that expires, or takes a place of the documents; a reference of which
//! something is left out silently.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::dupflow::Place;
use super::feeds::{delete, lines, page, upsert, words};

/// Near copies and copies of a few groups, with equal ids on both sides; some are edited, some deleted.
fn feeds() -> (String, Vec<String>) {
    let text = |group: u32, edit: u32| page(edit..edit + 2, 10 + edit).replace('w', &format!("g{group}x"));
    let old = (0..12).map(|n| upsert(&format!("d{n}"), &text(n % 4, n / 2))).collect();
    let mut new: Vec<String> = (0..40).map(|n| upsert(&format!("d{n}"), &text(n % 6, n % 9))).collect();
    new.extend((0..8).map(|n| upsert(&format!("d{}", 3 * n), &text(n % 3, 20 + n))));
    new.extend((0..5).map(|n| delete(&format!("d{}", 7 * n))));
    (old, new)
}

/// A deployment file; `rest` follows the table of the reference.
fn deployment(place: &Place, workers: usize, rest: &str) {
    place.file(
        "run.toml",
        format!(
            "workers = {workers}\n[source]\ninputs = [\"new.jsonl\"]\nepoch = \"events:7\"\n\
             [reference]\ninputs = [\"old\"]\n{rest}"
        ),
    );
}

/// A pair as it is written: its ids, and whether the first is of the reference.
fn named(row: &Value) -> (String, String, bool) {
    let text = |key: &str| row[key].as_str().unwrap().to_owned();
    (text("a"), text("b"), row["old"].as_bool().unwrap_or_else(|| panic!("{row} says no side")))
}

/// What deltas add up to; each pair is there once or not at all after every line.
fn accumulated(out: &str) -> BTreeSet<(String, String, bool)> {
    let mut pairs = BTreeSet::new();
    for row in lines(out) {
        let pair = named(&row);
        let follows = if row["diff"] == 1 { pairs.insert(pair) } else { pairs.remove(&pair) };
        assert!(follows, "{row}");
    }
    pairs
}

/// The pairs of a replay with `--against`.
fn expected(place: &Place, pipeline: &str) -> BTreeSet<(String, String, bool)> {
    place.replay(&format!("{pipeline} --against old --emit pairs new.jsonl -o expected.jsonl"));
    lines(&place.read("expected.jsonl")).iter().map(named).collect()
}

const CONTAINED: &str = "-p contained --set filter.least_words=5";

const STATE: &str = "[sink]\npath = \"out.jsonl\"\n[state]\npath = \"state\"\ncommit_every = \"1ms\"\n";

#[test]
fn a_run_finds_what_a_replay_against_the_same_finds() {
    for pipeline in ["-p minhash", "-p exact", "-p simhash", "-p onebit", CONTAINED] {
        for workers in [1, 3] {
            let place = Place::new();
            let (old, new) = feeds();
            place.file("old/1.jsonl", &old);
            deployment(&place, workers, STATE);
            // The input grows between three runs.
            for part in [&new[..20], &new[..45], &new[..]] {
                place.file("new.jsonl", part.concat());
                let run = place.run(&format!("run {pipeline} -c run.toml"));
                assert_eq!(run.code, 0, "{run:?}");
                assert!(run.err.contains("\nreference   12 documents\n"), "{}", run.err);
                let expected = expected(&place, pipeline);
                assert_eq!(accumulated(&place.read("out.jsonl")), expected, "{pipeline}, {workers}");
            }
            let all = accumulated(&place.read("out.jsonl"));
            let sides: BTreeSet<_> = all.iter().map(|(.., is_old)| *is_old).collect();
            assert_eq!(sides.len(), 2, "{all:?}");
            assert!(all.iter().any(|(a, b, is_old)| a == b && *is_old), "equal ids are of two documents");
        }
    }
}

#[test]
fn lists_are_those_of_a_replay() {
    let place = Place::new();
    let (old, new) = feeds();
    place.file("old/1.jsonl", &old);
    place.file("new.jsonl", new.concat());
    let emits = ["pairs", "keep", "remove"];
    for (pipeline, emit) in emits.iter().flat_map(|emit| [("-p exact", emit), (CONTAINED, emit)]) {
        for form in ["jsonl", "csv"] {
            deployment(&place, 2, &format!("[sink]\npath = \"out.{form}\"\nemit = \"{emit}\"\n"));
            let run = place.run(&format!("run {pipeline} -c run.toml"));
            assert_eq!(run.code, 0, "{run:?}");
            place.replay(&format!("{pipeline} --against old --emit {emit} new.jsonl -o expected.{form}"));
            assert_eq!(place.read(&format!("out.{form}")), place.read(&format!("expected.{form}")), "{emit}");
        }
    }
    deployment(&place, 1, "[sink]\npath = \"deltas.csv\"\ncauses = true\n");
    assert_eq!(place.run("run -p exact -c run.toml").code, 0);
    let csv = place.read("deltas.csv");
    assert!(
        csv.starts_with("epoch,diff,a,b,similarity,old,cause\n") && csv.contains(",true,insert\n"),
        "{csv}"
    );
}

#[test]
fn items_are_matched_as_pages_change() {
    let place = Place::new();
    let item = "what is the sum of the first ten odd numbers";
    let items = [upsert("q", item), upsert("r", "name the largest lake of the land"), upsert("s", "yes")];
    place.file("old/sums.jsonl", items.concat());
    // More than output.item_limit pages, a page that is edited, one that is deleted, one that has it later.
    let mut pages: Vec<String> =
        (0..120).map(|n| upsert(&format!("p{n:03}"), &format!("{n} asks {item}"))).collect();
    pages.push(upsert("later", "nothing yet"));
    pages.push(upsert("p000", "no more of it"));
    pages.push(delete("p001"));
    pages.push(upsert("later", "name the largest lake of the land"));
    deployment(&place, 2, STATE);
    for part in [&pages[..60], &pages[..121], &pages[..]] {
        place.file("new.jsonl", part.concat());
        let run = place.run("run -p decontaminate -c run.toml");
        assert_eq!(run.code, 0, "{run:?}");
        assert!(
            run.err.contains("reference   3 documents; 1 too short to be found except as a copy\n"),
            "{}",
            run.err
        );
        assert!(run.err.contains("too short to be found except as copies documents=1"), "{}", run.err);
        let expected = expected(&place, "-p decontaminate --set output.item_limit=1000");
        assert_eq!(accumulated(&place.read("out.jsonl")), expected);
    }
    let all = accumulated(&place.read("out.jsonl"));
    assert_eq!((all.len(), all.iter().all(|(.., is_old)| *is_old)), (119, true));
    let checked = place.run("check -p decontaminate -c run.toml");
    assert!(checked.out.contains("compared with a reference of 1 input, 2 workers"), "{checked:?}");
    assert!(checked.out.contains("output.item_limit is of lists"), "{checked:?}");
    // A bad record is counted, as in every run.
    place.file("new.jsonl", "oops\n");
    deployment(&place, 1, "[sink]\npath = \"other.jsonl\"\n");
    let run = place.run("run -p decontaminate -c run.toml");
    assert!(run.err.contains("bad         1 record: 1 not_json"), "{run:?}");
}

#[test]
fn another_reference_goes_through_reconcile() {
    for pipeline in ["-p exact", "-p decontaminate"] {
        let place = Place::new();
        let (old, new) = feeds();
        place.file("old/1.jsonl", &old);
        place.file("new.jsonl", new.concat());
        deployment(&place, 2, STATE);
        let run = |more: &str| place.run(&format!("run {pipeline} -c run.toml{more}"));
        assert_eq!(run("").code, 0);
        let first = expected(&place, pipeline);
        let before = place.read("out.jsonl");
        assert_eq!(accumulated(&before), first);
        // The same documents in other files, in another order, in another format.
        let mut reversed: Vec<_> = old.lines().rev().collect();
        let csv: String = reversed.split_off(6).into_iter().fold("id,text\n".to_owned(), |mut csv, line| {
            let row: Value = serde_json::from_str(line).unwrap();
            writeln!(csv, "{},{}", row["id"].as_str().unwrap(), row["text"].as_str().unwrap()).unwrap();
            csv
        });
        place.file("old/1.jsonl", reversed.join("\n"));
        place.file("old/0.csv", csv);
        let same = run("");
        assert_eq!((same.code, place.read("out.jsonl")), (0, before.clone()), "{same:?}");

        let fewer: String = old.split_inclusive('\n').skip(3).collect();
        std::fs::remove_file(place.path("old/0.csv")).unwrap();
        place.file("old/1.jsonl", fewer + &upsert("further", &page(3..5, 13).replace('w', "g5x")));
        let refused = run("");
        assert_eq!((refused.code, place.read("out.jsonl")), (1, before.clone()), "{refused:?}");
        assert!(refused.err.contains("reference.inputs is \"12 documents, "), "{refused:?}");
        assert!(refused.err.contains(" here") && refused.err.contains("--reconcile"), "{refused:?}");
        let corrected = run(" --reconcile");
        assert_eq!(corrected.code, 0, "{corrected:?}");
        let second = expected(&place, pipeline);
        assert!(second != first && !second.is_empty());
        assert_eq!(accumulated(&place.read("out.jsonl")), second);
        assert!(place.read("out.jsonl").starts_with(&before), "corrections follow what is there");
        assert_eq!(run("").code, 0);
    }
}

/// An output that is corrected after the reference is left out, and again with it.
#[test]
fn a_reference_that_begins_or_ends_is_a_correction() {
    let place = Place::new();
    let (old, new) = feeds();
    place.file("old/1.jsonl", &old);
    place.file("new.jsonl", new.concat());
    let plain = format!("[source]\ninputs = [\"new.jsonl\"]\nepoch = \"events:7\"\n{STATE}");
    deployment(&place, 2, STATE);
    assert_eq!(place.run("run -p exact -c run.toml").code, 0);
    let with = expected(&place, "-p exact");
    place.file("run.toml", &plain);
    let refused = place.run("run -p exact -c run.toml");
    assert!(refused.code == 1 && refused.err.contains("reference.inputs"), "{refused:?}");
    assert_eq!(place.run("run -p exact -c run.toml --reconcile").code, 0);
    // Lines of the run with a reference, and corrections of them, say the side.
    let without: BTreeSet<_> = with.iter().filter(|(.., is_old)| !is_old).cloned().collect();
    assert_eq!(accumulated(&place.read("out.jsonl")), without);
    deployment(&place, 2, STATE);
    assert_eq!(place.run("run -p exact -c run.toml --reconcile").code, 0);
    assert_eq!(accumulated(&place.read("out.jsonl")), with);
}

#[test]
fn retention_is_of_the_source_alone() {
    let place = Place::new();
    let dated = |id: &str, ts: u32| {
        let text = page(0..1, 11);
        serde_json::json!({"id": id, "text": text, "ts": ts}).to_string() + "\n"
    };
    place.file("old/1.jsonl", (0..5).map(|n| dated(&format!("o{n}"), 1)).collect::<String>());
    place.file("new.jsonl", (0..8).map(|n| dated(&format!("n{n}"), 1000 * n)).collect::<String>());
    deployment(&place, 2, STATE);
    for retention in ["retention.max_documents=3", "retention.max_age=2500s"] {
        let run = place.run(&format!("run -p exact --set {retention} -c run.toml --reconcile"));
        assert_eq!(run.code, 0, "{run:?}");
        assert!(
            run.err.contains("documents   3 alive") && run.err.contains("reference   5 documents"),
            "{run:?}"
        );
        let pairs = accumulated(&place.read("out.jsonl"));
        let with = |of: &str| pairs.iter().filter(|(a, ..)| a == of).count();
        assert_eq!((pairs.len(), with("o0"), with("n5")), (5 * 3 + 3, 3, 2), "{retention}: {pairs:?}");
    }
}

#[test]
fn a_reference_that_is_none_fails_before_the_run() {
    let place = Place::new();
    place.file("new.jsonl", upsert("p", &words(0..50)));
    deployment(&place, 1, STATE);
    let mut wrong = String::new();
    for (pipeline, content, said) in [
        ("exact", String::new(), "the inputs hold no document"),
        ("decontaminate", "\n".to_owned(), "\"old/1.jsonl\" holds no item"),
        ("decontaminate", upsert("q", "two words"), "none of its 1 documents has enough words"),
        ("exact", upsert("q", "  "), "none of its 1 documents has enough words"),
        ("exact", upsert("q", "one") + &upsert("q", "two"), "the id \"q\" is there twice; reference.ids"),
        ("exact", upsert("q", "one") + &delete("q"), "the record of \"q\" is a delete"),
        ("exact", upsert("q", "one") + "oops\n", "bad record in \"old/1.jsonl\", line 2"),
        ("exact", "{\"id\":\"q\"}\n".to_owned(), "bad record in \"old/1.jsonl\", line 1"),
    ] {
        place.file("old/1.jsonl", content);
        let run = place.run(&format!("run -p {pipeline} -c run.toml"));
        let is_written = place.path("out.jsonl.mark").exists();
        if run.code != 1 || !run.err.contains("reference.inputs: ") || !run.err.contains(said) || is_written {
            writeln!(wrong, "{said}: {run:?}").unwrap();
        }
    }
    // Ids that two files have.
    place.file("old/1.jsonl", upsert("q", &words(0..50)));
    place.file("old/2.jsonl", upsert("q", &words(50..90)));
    let twice = place.run("run -p exact -c run.toml");
    assert!(twice.code == 1 && twice.err.contains("is there twice"), "{twice:?}");
    deployment(&place, 1, &format!("ids = \"file\"\n{STATE}"));
    let named = place.run("run -p exact -c run.toml");
    assert!(named.code == 0 && named.err.contains("reference   2 documents"), "{named:?}");
    let row = &lines(&place.read("out.jsonl"))[0];
    assert!(row["a"] == "old/1.jsonl#0" && row["b"] == "p" && row["old"] == true, "{row}");
    assert_eq!(wrong, "");
}

#[test]
fn what_has_no_meaning_beside_a_reference_is_refused() {
    let place = Place::new();
    place.file("old/1.jsonl", upsert("q", &words(0..50)));
    place.file("new.jsonl", upsert("p", &words(0..50)));
    let mut wrong = String::new();
    let view = "[[view]]\nname = \"v\"\nof = \"documents\"\nmeasure = \"top:2\"\noutput = \"v.jsonl\"\n";
    for (pipeline, rest, said) in [
        (
            "exact",
            "[sink]\nemit = \"cluster-deltas\"\n",
            "sink.emit: \"cluster-deltas\" would be of documents of both",
        ),
        ("exact", "[sink]\nemit = \"decisions\"\n", "sink.emit: \"decisions\" would be"),
        (
            "decontaminate",
            "[sink]\nemit = \"remove\"\n",
            "sink.emit: \"remove\": a run writes the pairs of items",
        ),
        (
            "exact",
            "[sink]\nkind = \"sqlite\"\npath = \"t.db\"\n",
            "sink.kind: does not go with reference.inputs",
        ),
        ("exact", "[watch]\ninputs = [\"new.jsonl\"]\n[notices]\npath = \"n\"\n", "watch: does not go with"),
        ("exact", view, "view: does not go with reference.inputs"),
        ("weighted --set text.idf=live", "", "reference.inputs: weights that follow the corpus"),
        ("exact --set output.clusters=star", "", "reference.inputs: a star may leave out"),
        (
            "contained --set filter.verify=sketch",
            "[sink]\nemit = \"remove\"\n",
            "set filter.verify = \"exact\"",
        ),
        ("exact", "format = \"xml\"\n", "run.toml:7: reference.format"),
        ("exact", "ids = \"last\"\n", "run.toml:7: reference.ids"),
        ("exact", "ids = \"file\"\nid_path = \"x\"\n", "reference.id_path"),
        (
            "exact",
            "[sink]\npath = \"old/1.jsonl\"\n",
            "is in the folder \"old\", whose files are the documents",
        ),
    ] {
        deployment(&place, 1, rest);
        let words: Vec<_> = format!("-p {pipeline} -c run.toml").split(' ').map(str::to_owned).collect();
        for command in ["run", "check"] {
            let refused = place.run(&format!("{command} {}", words.join(" ")));
            if refused.code != 2 || !refused.err.contains(said) {
                writeln!(wrong, "{command} {pipeline} {rest:?}: {refused:?}").unwrap();
            }
        }
    }
    for (inputs, said) in [
        ("[\"none\"]", "none"),
        ("[\"new.jsonl\"]", "reference.inputs: \"new.jsonl\" is an input, too"),
        ("[\"n*.jsonl\"]", "reference.inputs: \"new.jsonl\" is an input, too"),
        ("[\"-\"]", "reference.inputs: \"-\": each start reads the reference again"),
        ("[]\nformat = \"csv\"", "reference.format: there is no reference: set reference.inputs"),
    ] {
        place.file(
            "run.toml",
            format!("[source]\ninputs = [\"new.jsonl\"]\n[reference]\ninputs = {inputs}\n"),
        );
        for command in ["run", "check --connect"] {
            let refused = place.run(&format!("{command} -p exact -c run.toml"));
            if refused.code != 2 || !refused.err.contains(said) {
                writeln!(wrong, "{command} {inputs}: {refused:?}").unwrap();
            }
        }
    }
    place.file("hosts", "127.0.0.1:1\n127.0.0.1:2\n");
    deployment(&place, 1, "");
    let several = place.run("run -p exact -c run.toml --processes 2 --process 0 --hosts hosts");
    assert!(several.code == 2 && several.err.contains("--processes: does not go with"), "{several:?}");
    assert_eq!(wrong, "");
}
