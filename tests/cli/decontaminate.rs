//! Decontamination: the items of benchmarks in the pages of a training set.
//!
//! Bug classes: an item that is planted and not found; a share of the page in place of that of the item; a
//! page that has an item and stays, or has none and is removed; an item that is too short, or common, about
//! which nothing is said; ids of items and pages, or of two benchmarks, that are taken for one another; what
//! depends on workers or epochs.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use dupflow::core::hash::mix;
use serde_json::{Value, json};

use super::dupflow::Place;
use super::feeds::{delete, lines, upsert};

const RUN: &str = "-p decontaminate --against items";

/// Words of a text by its number: of 300 common ones, and of many rare ones.
fn text(of: u64, words: u64) -> Vec<String> {
    let word = |at| {
        let drawn = mix(of << 20 ^ at);
        if drawn.is_multiple_of(3) {
            format!("c{}", drawn >> 8 & 0xff)
        } else {
            format!("r{}", drawn >> 8 & 0xffff)
        }
    };
    (0..words).map(word).collect()
}

/// A copy of which one word in twenty, and at least one, is another.
fn edited(words: &[String], seed: u64) -> Vec<String> {
    let mut words = words.to_vec();
    for edit in 0..words.len().div_ceil(20) {
        let at = usize::try_from(mix(seed ^ (edit as u64) << 40) % words.len() as u64).unwrap();
        words[at] = format!("edit{edit}");
    }
    words
}

/// Texts by their ids.
type Texts = BTreeMap<String, Vec<String>>;

/// 120 items of 15 to 60 words, and 300 pages; every item lies in a page, those with odd numbers edited, and
/// some lie in a second page.
fn planted() -> (Texts, Texts) {
    let items: Texts = (0..120_u64).map(|n| (format!("i{n:03}"), text(1000 + n, 15 + mix(n) % 46))).collect();
    let mut pages: Texts = (0..300_u64).map(|n| (format!("p{n:03}"), text(n, 20 + mix(n) % 200))).collect();
    for (n, item) in (0_u64..).zip(items.values()) {
        for copy in 0..1 + n % 3 / 2 {
            let seed = mix(n ^ copy << 32);
            let page = pages.get_mut(&format!("p{:03}", seed % 300)).unwrap();
            let at = usize::try_from(seed >> 16).unwrap() % page.len();
            let planted = if n % 2 == 1 { edited(item, seed) } else { item.clone() };
            page.splice(at..at, planted);
        }
    }
    (items, pages)
}

fn feed<'t>(texts: impl IntoIterator<Item = (&'t String, &'t Vec<String>)>) -> String {
    texts.into_iter().map(|(id, words)| upsert(id, &words.join(" "))).collect()
}

fn shingles(words: &[String]) -> BTreeSet<&[String]> {
    words.windows(3).collect()
}

/// The pairs of an item and a page with at least half of its shingles, with the share, by brute force.
fn truth(items: &Texts, pages: &Texts) -> BTreeMap<(String, String), f64> {
    let mut truth = BTreeMap::new();
    let of_pages: Vec<_> = pages.iter().map(|(id, words)| (id, shingles(words))).collect();
    for (item, words) in items {
        let of_item = shingles(words);
        for (page, of_page) in &of_pages {
            let shared = of_item.intersection(of_page).count();
            if shared > 0 && 2 * shared >= of_item.len() {
                truth.insert((item.clone(), (*page).clone()), shared as f64 / of_item.len() as f64);
            }
        }
    }
    truth
}

fn near(found: &Value, expected: f64) -> bool {
    found.as_f64().is_some_and(|found| (found - expected).abs() < 1e-9)
}

#[test]
fn planted_items_are_found_and_their_pages_removed() {
    let place = Place::new();
    let (items, pages) = planted();
    let truth = truth(&items, &pages);
    let is_first = |id: &str| id < "i060";
    place.file("items/first.jsonl", feed(items.iter().filter(|(id, _)| is_first(id))));
    place.file("items/second.jsonl", feed(items.iter().filter(|(id, _)| !is_first(id))));
    place.file("pages.jsonl", feed(&pages));
    let pages_of = |item: &str| -> Vec<&String> {
        truth.keys().filter(|(of, _)| of == item).map(|(_, page)| page).collect()
    };
    let of = |parity: u32| {
        let of = items.keys().filter(move |id| id[1..].parse::<u32>().unwrap() % 2 == parity);
        (of.clone().filter(|id| !pages_of(id).is_empty()).count(), of.count())
    };
    let (verbatim, edits) = (of(0), of(1));
    assert_eq!(verbatim, (60, 60));
    assert!(edits.0 >= 57 && edits.1 == 60, "{edits:?}");

    let listed: String = pages.iter().map(|(id, words)| upsert(id, &words.join(" "))).collect();
    let is_contaminated = |id: &str| truth.keys().any(|(_, page)| page == id);
    for run in ["--workers 1", "--workers 3 --epoch events:7", "--workers 2 --epoch events:100"] {
        let rows = |emit: &str| {
            let (_, stats) = place.replay(&format!("{RUN} {run} --emit {emit} pages.jsonl -o out.jsonl"));
            (lines(&place.read("out.jsonl")), stats)
        };
        let (found, _) = rows("pairs");
        assert_eq!(found.len(), truth.len(), "{run}");
        for pair in &found {
            let key = |key: &str| pair[key].as_str().unwrap().to_owned();
            let share = truth.get(&(key("a"), key("b")));
            assert!(pair["old"] == true && share.is_some_and(|share| near(&pair["in_b"], *share)), "{pair}");
        }
        let (listed_items, stats) = rows("items");
        assert!(listed_items.iter().map(|row| row["id"].as_str().unwrap()).eq(items.keys()));
        for row in &listed_items {
            let id = row["id"].as_str().unwrap();
            let benchmark = if is_first(id) { "items/first.jsonl" } else { "items/second.jsonl" };
            let shares = truth.iter().filter(|((item, _), _)| item == id).map(|(_, share)| *share);
            let expected = (pages_of(id).len(), shares.max_by(f64::total_cmp), pages_of(id).first().copied());
            assert_eq!(row["benchmark"], benchmark, "{row}");
            assert_eq!(row["shingles"], shingles(&items[id]).len(), "{row}");
            assert_eq!((&row["pages"], &row["page"]), (&json!(expected.0), &json!(expected.2)), "{row}");
            assert!(expected.1.is_none_or(|share| near(&row["share"], share)), "{row}");
            assert_eq!((&row["too_short"], &row["above_limit"]), (&json!(false), &json!(false)));
        }
        let counts = stats["items"]["benchmarks"].as_array().unwrap();
        let counted = |name: &str, is_of: &dyn Fn(&str) -> bool| {
            let of_it = || truth.keys().filter(|(item, _)| is_of(item));
            let found_items: BTreeSet<_> = of_it().map(|(item, _)| item).collect();
            let with_one: BTreeSet<_> = of_it().map(|(_, page)| page).collect();
            json!({"benchmark": name, "items": 60, "too_short": 0, "found": found_items.len(),
                "above_limit": 0, "pages": with_one.len()})
        };
        assert_eq!(counts[0], counted("items/first.jsonl", &is_first), "{run}");
        assert_eq!(counts[1], counted("items/second.jsonl", &|id| !is_first(id)), "{run}");

        let (removed, _) = rows("remove");
        assert!(
            removed.len() > 100 && removed.len() == pages.keys().filter(|id| is_contaminated(id)).count()
        );
        for row in &removed {
            let [id, kept] = ["id", "kept"].map(|key| row[key].as_str().unwrap());
            let of_page = truth.iter().filter(|((_, page), _)| page == id);
            // The item with the greatest share; of equal ones the least id.
            let greatest = of_page
                .max_by(|((a, _), x), ((b, _), y)| x.total_cmp(y).then(b.cmp(a)))
                .map(|((item, _), _)| item.as_str());
            assert_eq!((Some(kept), &row["cluster"], &row["old"]), (greatest, &json!(kept), &json!(true)));
        }
    }
    let records = |wanted: bool| -> String {
        let all = listed.split_inclusive('\n').zip(pages.keys());
        all.filter(|(_, id)| is_contaminated(id) == wanted).map(|(line, _)| line).collect()
    };
    for (emit, wanted) in [("documents", false), ("removed-documents", true)] {
        place.replay(&format!("{RUN} --emit {emit} pages.jsonl -o out.jsonl"));
        assert_eq!(place.read("out.jsonl"), records(wanted), "{emit}");
    }
    place.replay(&format!("{RUN} --emit documents --mark test pages.jsonl -o out.jsonl"));
    for row in lines(&place.read("out.jsonl")) {
        let is_kept = !is_contaminated(row["id"].as_str().unwrap());
        assert_eq!((&row["test_kept"], row["test_of"].is_null()), (&json!(is_kept), is_kept), "{row}");
        assert!(is_kept || items.contains_key(row["test_of"].as_str().unwrap()), "{row}");
    }
    place.replay(&format!("{RUN} --emit items pages.jsonl -o out.csv"));
    let csv = place.read("out.csv");
    assert!(csv.starts_with("id,benchmark,shingles,pages,share,page,too_short,above_limit\n"), "{csv}");
    assert_eq!(csv.lines().count(), 121);
}

/// An item with fewer words than a shingle is one shingle, which no longer page has.
#[test]
fn items_shorter_than_a_shingle_are_too_short() {
    let place = Place::new();
    let item = "the capital of France is the city of Paris";
    place.file(
        "items/all.jsonl",
        [upsert("short", item), upsert("long", &format!("{item} and of no other land in Europe"))].concat(),
    );
    place.file(
        "pages.jsonl",
        upsert("page", &format!("we know that {item} and of no other land in Europe today")),
    );
    let too_short = |shingle: &str| {
        place.replay(&format!("{RUN} --set text.shingle={shingle} --emit items pages.jsonl -o out.jsonl"));
        let rows = lines(&place.read("out.jsonl"));
        let of = |id: &str| {
            rows.iter()
                .find(|row| row["id"] == id)
                .map(|row| (row["too_short"].clone(), row["pages"].clone()))
        };
        ["short", "long"].map(|id| of(id).unwrap())
    };
    let found = (json!(false), json!(1));
    assert_eq!(too_short("words:3"), [found.clone(), found.clone()]);
    let missed = (json!(true), json!(0));
    assert_eq!(too_short("words:13"), [missed.clone(), found.clone()]);
    assert_eq!(too_short("chars:50"), [missed, found]);
}

/// One item would replace the other, and would not be looked for.
#[test]
fn items_of_one_id_fail() {
    let place = Place::new();
    let twice =
        [upsert("1", "what is the capital of this country"), upsert("1", "how many legs has a spider")];
    place.file("items/all.jsonl", twice.concat());
    place.file("pages.jsonl", upsert("page", "what is the capital of this country they asked"));
    let run = |words: &str| place.run(&format!("replay {RUN} {words} --emit items pages.jsonl -o out.jsonl"));
    for epoch in ["--epoch events:1", "--epoch all"] {
        let failed = run(epoch);
        assert!(failed.code == 1 && failed.err.contains("1 item of --against is replaced"), "{failed:?}");
    }
    assert_eq!(run("--ids last").code, 0);
    assert_eq!(run("--ids file").code, 0);
}

/// Items in many pages, in none, without a shingle, without a text; ids that are on both sides.
#[test]
fn what_is_not_reported_is_named_and_counted() {
    let place = Place::new();
    let items = [
        upsert("page3", "the question is what the answer to this one may be"),
        upsert("common", "all rights reserved by the owner"),
        upsert("short", "yes no"),
        upsert("empty", ""),
        upsert("absent", "nothing of this is on any of the pages"),
    ];
    place.file("items/all.jsonl", items.concat());
    let page = |n: u32| {
        let further = if n == 3 { "the question is what the answer to this one may be" } else { "" };
        upsert(&format!("page{n}"), &format!("w{n} x{n} all rights reserved by the owner y{n} {further}"))
    };
    place.file("pages.jsonl", (0..5).map(page).collect::<String>());
    let rows = |limit: u32, emit: &str| {
        let set = format!("--set output.item_limit={limit} --emit {emit}");
        let (run, stats) = place.replay(&format!("{RUN} {set} pages.jsonl -o out.jsonl"));
        (lines(&place.read("out.jsonl")), stats["items"].clone(), run.err)
    };
    let (found, counts, summary) = rows(4, "items");
    let cell = |id: &str, key: &str| found.iter().find(|row| row["id"] == id).unwrap()[key].clone();
    assert_eq!((cell("common", "pages"), cell("common", "above_limit")), (json!(5), json!(true)));
    assert_eq!((cell("page3", "page"), cell("page3", "share")), (json!("page3"), json!(1.0)));
    let of_short = ["too_short", "shingles", "pages", "share"].map(|key| cell("short", key));
    assert_eq!(of_short, [json!(true), json!(0), json!(0), Value::Null]);
    assert_eq!((cell("empty", "too_short"), cell("absent", "too_short")), (json!(true), json!(false)));
    let expected = json!({
        "limit": 4, "pages": 1,
        "benchmarks": [{"benchmark": "items/all.jsonl", "items": 5, "too_short": 2, "found": 2,
            "above_limit": 1, "pages": 1}],
        "above_limit": [{"id": "common", "benchmark": "items/all.jsonl", "pages": 5}],
    });
    assert_eq!(counts, expected);
    for said in [
        "2 of 5 items found, 1 page with one of them; 2 too short to be found",
        "1 item in more than 4 pages (output.item_limit)",
        "\"common\" of \"items/all.jsonl\": 5 pages",
    ] {
        assert!(summary.contains(said), "{said}: {summary}");
    }
    // The same is said beside lists.
    let (removed, of_list, beside) = rows(4, "remove");
    assert_eq!(removed, [json!({"id": "page3", "kept": "page3", "cluster": "page3", "old": true})]);
    assert!(of_list == expected && beside.contains("too short to be found"), "{beside}");
    assert_eq!(rows(4, "pairs").0.len(), 1);
    // The limit is inclusive.
    assert_eq!((rows(5, "remove").0.len(), rows(5, "pairs").0.len()), (5, 6));
}

/// Pages that are edited and deleted; a field that names benchmarks; more copies of a page than are expanded
/// elsewhere.
#[test]
fn what_counts_is_the_last_text_of_a_page() {
    let place = Place::new();
    let item = "what is the sum of the first ten odd numbers";
    let with_field =
        |id: &str, text: &str, of: &str| json!({"id": id, "text": text, "of": of}).to_string() + "\n";
    let items =
        [with_field("q", item, "sums"), with_field("r", "name the largest lake of the land", "lakes")];
    place.file("items/all.jsonl", items.concat());
    let mut pages = String::new();
    for n in 0..1500 {
        pages += &upsert(&format!("copy{n}"), &format!("a page that asks {item}"));
    }
    pages += &upsert("edited", item);
    pages += &upsert("deleted", item);
    pages += &upsert("later", "nothing yet");
    pages += &upsert("edited", "no more of it");
    pages += &delete("deleted");
    pages += &upsert("later", &format!("now it asks {item}"));
    place.file("pages.jsonl", pages);
    for run in ["--workers 1", "--workers 2 --epoch events:500", "--workers 3 --epoch events:1"] {
        let set = "--set output.item_limit=2000 --field of --benchmark of --emit remove";
        let (_, stats) = place.replay(&format!("{RUN} {run} {set} pages.jsonl -o out.jsonl"));
        let removed = lines(&place.read("out.jsonl"));
        let ids: BTreeSet<_> = removed.iter().map(|row| row["id"].as_str().unwrap()).collect();
        assert!(
            ids.len() == 1501 && ids.contains("later") && !ids.contains("edited"),
            "{run}: {}",
            ids.len()
        );
        let names: Vec<_> =
            stats["items"]["benchmarks"].as_array().unwrap().iter().map(|one| &one["benchmark"]).collect();
        assert_eq!(names, ["lakes", "sums"]);
        assert_eq!(stats["items"]["pages"], 1501);
    }
}

/// A name of a field that no item has ends the run; items without it are counted.
#[test]
fn items_without_the_field_of_their_benchmark_are_counted() {
    let place = Place::new();
    let question = "how many words has a question that is found in a page";
    let named = json!({"id": "named", "text": question, "of": "sums"}).to_string() + "\n";
    place.file("items/all.jsonl", named + &upsert("other", &format!("{question} or not")));
    place.file("pages.jsonl", upsert("p", &format!("before it {question} and behind")));
    let run = |field: &str| {
        place.run(&format!("replay {RUN} --field {field} --benchmark {field} --emit items pages.jsonl"))
    };
    let typed = run("off");
    assert!(typed.code == 1 && typed.out.is_empty(), "{typed:?}");
    assert!(
        typed.err.contains("--benchmark: none of 2 items of --against has the field \"off\""),
        "{typed:?}"
    );
    let some = run("of");
    assert!(some.code == 0 && some.out.contains("\"benchmark\":\"sums\""), "{some:?}");
    assert!(some.err.contains("--benchmark: 1 of 2 items of --against have no field \"of\""), "{some:?}");
}

#[test]
fn ids_of_two_benchmarks_are_not_mixed_silently() {
    let place = Place::new();
    place.file("items/first.jsonl", upsert("1", "which of the two planets is the larger one"));
    place.file("items/second.jsonl", upsert("1", "how many legs has a spider if it has lost none"));
    place.file("pages.jsonl", upsert("1", "ask which of the two planets is the larger one today"));
    let refused = place.run(&format!("replay {RUN} --emit items pages.jsonl -o out.jsonl"));
    assert!(refused.code == 1 && refused.err.contains("--ids file"), "{refused:?}");
    assert!(!place.path("out.jsonl").exists());
    place.replay(&format!("{RUN} --ids file --emit items pages.jsonl -o out.jsonl"));
    let found: Vec<_> = lines(&place.read("out.jsonl")).iter().map(|row| row["pages"].clone()).collect();
    assert_eq!(found, [json!(1), json!(0)]);
}

#[test]
fn a_reference_without_an_item_fails() {
    let place = Place::new();
    let (_, pages) = planted();
    place.file("pages.jsonl", feed(&pages));
    place.file("items.jsonl", "");
    for emit in ["items", "documents", "remove"] {
        let run = place.run(&format!(
            "replay -p decontaminate --against items.jsonl --emit {emit} -o out.jsonl pages.jsonl"
        ));
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.err.contains("\"items.jsonl\" holds no item"), "{run:?}");
        assert!(emit == "items" || !place.path("out.jsonl").exists(), "{emit}");
    }
}

/// Items have their own columns, and what is wrong with them ends the run before the first page: a file
/// without an item, and bad records, which have a bound of their own.
#[test]
fn items_are_checked_before_the_pages() {
    let place = Place::new();
    let question = "how many words has a question that is found in a page";
    place.file("items/sums.jsonl", format!("{{\"name\":\"q\",\"question\":\"{question}\"}}\n"));
    place.file("pages.jsonl", upsert("p", &format!("before it {question} and behind")));
    let run = "replay -p decontaminate --emit pairs --against items pages.jsonl";
    let shared = place.run(run);
    assert!(shared.code == 1 && shared.out.is_empty(), "{shared:?}");
    assert!(shared.err.contains("--against-text-field and --against-id-field"), "{shared:?}");
    let named = "--against-id-field name --against-text-field question";
    let (found, _) = place.replay(&format!("{} {named}", run.strip_prefix("replay ").unwrap()));
    assert!(found.out.contains("\"a\":\"q\",\"b\":\"p\""), "{found:?}");

    place.file("items/none.jsonl", "");
    let empty = place.run(&format!("{run} {named}"));
    assert!(empty.code == 1 && empty.err.contains("\"items/none.jsonl\" holds no item"), "{empty:?}");
    place.file("items/none.jsonl", format!("{{\"name\":\"r\",\"question\":\"{question} too\"}}\nno item\n"));
    let bad = place.run(&format!("{run} {named}"));
    assert!(bad.code == 1 && bad.out.is_empty(), "{bad:?}");
    assert!(
        bad.err.contains("1 of 3 records of items are bad (bad record in \"items/none.jsonl\", line 2: ")
            && bad.err.contains("--against-max-bad 0.333334 allows them"),
        "{bad:?}"
    );
    // The bound of the pages is another one: none of them is bad.
    let allowed = place.run(&format!("{run} {named} --against-max-bad 0.34 --max-bad 0"));
    assert!(allowed.code == 0 && allowed.out.lines().count() == 2, "{allowed:?}");
}

#[test]
fn what_has_no_meaning_is_refused() {
    let place = Place::new();
    place.file("items.jsonl", upsert("q", "a question of some words"));
    place.file("pages.jsonl", upsert("p", "a page"));
    let mut wrong = String::new();
    for (words, what) in [
        ("-p decontaminate --emit pairs", "\"reference\" finds the documents of a replay's --against"),
        ("-p decontaminate --against items.jsonl --emit deltas", "takes --emit keep"),
        ("-p decontaminate --against items.jsonl", "documents, removed-documents, items"),
        ("-p decontaminate --against -", "--against: items are read twice"),
        ("-p exact --against items.jsonl --against-max-bad 1", "takes a pipeline that finds items"),
        ("-p minhash --against items.jsonl --emit items", "--emit items: takes a pipeline with"),
        (
            "-p exact --against items.jsonl --benchmark of --field of --emit keep",
            "--benchmark: takes a pipeline",
        ),
        ("-p decontaminate --against items.jsonl --benchmark of --emit items", "no field \"of\""),
        ("-p decontaminate --against items.jsonl --set filter.verify=sketch --emit keep", "blocking.kind"),
        (
            "-p decontaminate --against items.jsonl --set output.remove_if=contained:0.9 --emit keep",
            "remove_if",
        ),
        ("-p minhash --set output.item_limit=9 --emit keep", "output.item_limit"),
        ("-p minhash --set blocking.kind=reference --emit keep", "takes sketches of kind \"scaled\""),
    ] {
        let refused = place.run(&format!("replay {words} pages.jsonl"));
        if refused.code != 2 || !refused.err.contains(what) {
            writeln!(wrong, "{words}: {refused:?}").unwrap();
        }
    }
    let unread = place.run("replay -p decontaminate --against missing.jsonl --emit items pages.jsonl");
    if !unread.err.contains("missing.jsonl") || unread.err.contains("there are none") {
        writeln!(wrong, "{unread:?}").unwrap();
    }
    for command in ["trace -p decontaminate --doc p pages.jsonl", "run -p decontaminate -c run.toml"] {
        place.file("run.toml", "[source]\ninputs = [\"pages.jsonl\"]\n");
        let refused = place.run(command);
        if refused.code != 2 || !refused.err.contains("\"reference\" finds the documents") {
            writeln!(wrong, "{command}: {refused:?}").unwrap();
        }
    }
    assert_eq!(wrong, "");
}
