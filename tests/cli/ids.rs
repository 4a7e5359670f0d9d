//! Ids that are in several files: counted, warned about, and refused where a list would use one id for
//! several documents.

use serde_json::json;

use crate::dupflow::Place;
use crate::feeds::{delete, lines, upsert, words};

/// Three shards of `documents` documents each. They use the same numbers as ids, and all texts differ, except
/// that the first texts of the last two shards are equal.
fn shards(place: &Place, documents: u32) {
    for shard in 0..3 {
        let text = |n: u32| {
            let from = if n == 0 { 7_000_000 * shard.min(1) } else { 1_000_000 * shard + 100 * n };
            words(from..from + 50)
        };
        place.file(
            format!("{shard}.jsonl"),
            (0..documents).map(|n| upsert(&n.to_string(), &text(n))).collect::<String>(),
        );
    }
}

/// An update of a feed, or a mistake of a table: counted for any cut, and a list warns.
#[test]
fn an_id_that_repeats_in_a_file_is_counted_and_lists_warn() {
    let place = Place::new();
    let repeated = |n: u32| upsert(&(n % 25).to_string(), &words(100 * n..100 * n + 50));
    place.file("feed.jsonl", (0..50).map(repeated).collect::<String>());
    let warning = "records have the id of an earlier record of the same file";
    for (emit, epoch, warns) in [
        ("deltas", "all", false),
        ("keep", "all", true),
        ("remove", "events:7", true),
        ("keep --ids last", "events:1", false),
    ] {
        let (run, stats) = place.replay(&format!("--emit {emit} --epoch {epoch} feed.jsonl"));
        assert_eq!((&stats["replaced"], &stats["replaced_across_files"]), (&json!(25), &json!(0)), "{emit}");
        assert_eq!(run.err.contains(warning), warns, "{emit}: {}", run.err);
    }
}

#[test]
fn an_id_in_several_files_is_counted_and_lists_are_refused() {
    let place = Place::new();
    shards(&place, 100);
    let inputs = "0.jsonl 1.jsonl 2.jsonl";
    let message = "documents replaced by another file's document of the same id";
    for options in [
        "--epoch all",
        "--epoch events:7 --workers 4",
        "--epoch events:100 --workers 1 -p weighted --set text.idf=live",
    ] {
        let (run, stats) = place.replay(&format!("{options} {inputs}"));
        assert_eq!(
            (&stats["replaced_across_files"], &stats["documents"]),
            (&json!(200), &json!(100)),
            "{options}"
        );
        assert!(run.err.contains(&format!("200 {message}")), "{run:?}");
        assert!(
            run.err.contains("one id in several files: ") && run.err.contains("is in \\\"0.jsonl\\\" and in")
                || run.err.contains("is in \"0.jsonl\" and in"),
            "{run:?}"
        );
    }
    for emit in ["keep", "remove"] {
        let run = place.run(&format!("replay --emit {emit} -o list {inputs}"));
        assert!(run.code == 1 && !place.path("list").exists(), "{run:?}");
        assert!(
            run.err.contains("200 documents are replaced by another file's document of the same id (\""),
            "{run:?}"
        );
        assert!(run.err.contains(
            "--ids file (source.ids) names documents by their files, --ids last says that the last one is \
            meant"
        ));
    }
    let last = place.replay(&format!("--emit keep --ids last {inputs}")).0;
    assert_eq!(last.out.lines().count(), 100);
    assert!(!last.err.contains("one id in several files"), "it is meant");

    let (by_file, stats) = place.replay(&format!("--emit keep --ids file {inputs}"));
    assert_eq!((&stats["documents"], &stats["replaced_across_files"]), (&json!(300), &json!(0)));
    let kept = lines(&by_file.out);
    assert_eq!(kept.len(), 299, "two of the texts are one");
    assert!(
        kept.contains(&json!({ "id": "0.jsonl#99" })) && !kept.contains(&json!({ "id": "2.jsonl#0" })),
        "{kept:?}"
    );
    let wrong = place.run(&format!("replay --ids file --id-field key {inputs}"));
    assert!(wrong.code == 2 && wrong.err.contains("--id-field: has no effect with --ids file"), "{wrong:?}");
    place.file(
        "here.toml",
        "source.inputs = [\"0.jsonl\", \"1.jsonl\"]\nsource.ids = \"file\"\nsink.path \
        = \"out\"\nsink.emit = \"keep\"\n",
    );
    assert_eq!(place.run("run -c here.toml").code, 0);
    assert_eq!(place.read("out").lines().count(), 200);
}

/// Not counted: one file, a file that is named twice, a document that was deleted in between, and different
/// ids. Counted: a feed of several files, unless `--ids last` is given.
/// Pages of two sites, each under two addresses, in every format: two documents and not four, deleted by any
/// address; what is no address is bad. The records of those that are kept are copied as they were read.
#[test]
fn addresses_of_one_page_are_one_document() {
    let place = Place::new();
    let words_from = |n: u32| words(n * 100..n * 100 + 40);
    let rows = [
        ("http://www.a.example/x?utm_source=mail", words_from(1)),
        ("https://b.example/", words_from(2)),
        ("https://A.example:443/x#part", words_from(3)),
        ("HTTP://b.example", words_from(3)),
        ("no address", words_from(4)),
    ];
    let json = |(url, text): &(&str, String)| json!({"url": url, "text": text}).to_string() + "\n";
    let nested = |(url, text): &(&str, String)| json!({"at": {"url": url}, "text": text}).to_string() + "\n";
    let record = |(url, text): &(&str, String)| {
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {url}\r\nContent-Type: text/plain\r\n\
            Content-Length: {}\r\n\r\n{text}\r\n\r\n",
            text.len()
        )
    };
    place.file("pages.jsonl", rows.iter().map(json).collect::<String>());
    place.file("nested.jsonl", rows.iter().map(nested).collect::<String>());
    let csv = rows.iter().map(|(url, text)| format!("{url},{text}\n")).collect::<String>();
    place.file("pages.csv", format!("url,text\n{csv}"));
    place.file("pages.warc", rows.iter().map(record).collect::<String>());
    for input in [
        "--id-field url pages.jsonl",
        "--id-field at.url nested.jsonl",
        "--id-field url pages.csv",
        "--warc-id uri pages.warc",
    ] {
        let (run, stats) = place.replay(&format!("--canonical-url --epoch all --dead-letter bad {input}"));
        assert_eq!(
            (&stats["documents"], &stats["bad_records"]),
            (&json!(2), &json!({"bad_address": 1})),
            "{input}: {run:?}"
        );
        let pair = &lines(&run.out)[0];
        assert_eq!((&pair["a"], &pair["b"]), (&json!("https://a.example/x"), &json!("https://b.example/")));
        assert!(place.read("bad").contains("no address"), "{input}");
        assert!(run.err.contains("the id is no address of a web page"), "{input}: {run:?}");
    }
    let kept = place.run("replay -q --emit documents --max-bad 1 --id-field url --canonical-url pages.jsonl");
    assert_eq!(kept.out, json(&rows[2]), "{kept:?}");
    let delete = json!({"url": "https://www.b.example?gclid=7", "op": "delete"});
    place.file("feed.jsonl", format!("{}{delete}\n", place.read("pages.jsonl")));
    let (_, stats) = place.replay("--id-field url --canonical-url feed.jsonl");
    assert_eq!((&stats["documents"], &stats["unknown_deletes"]), (&json!(1), &json!(0)));
    // Any address of a page names it.
    let named = "--id-field url --canonical-url pages.jsonl";
    let traced = place.run(&format!("trace --doc http://www.a.example/x#end {named}"));
    assert!(traced.code == 0 && traced.out.contains("https://a.example/x"), "{traced:?}");
    let both = "http://a.example/x http://www.b.example --id-field url --canonical-url --corpus pages.jsonl";
    assert_eq!(place.run(&format!("compare {both}")).code, 0);
    // Without the name of the field no address is read.
    for input in ["pages.jsonl", "pages.csv"] {
        let unnamed = place.run(&format!("replay --canonical-url {input}"));
        assert!(unnamed.code == 1 && unnamed.err.contains("missing_id"), "{input}: {unnamed:?}");
    }
    let refused = place.run("replay --ids file --canonical-url pages.jsonl");
    assert!(refused.code == 2 && refused.err.contains("--canonical-url: has no effect"), "{refused:?}");
}

#[test]
fn only_replacements_across_files_are_counted() {
    let place = Place::new();
    let texts = |n: u32| words(n * 1000..n * 1000 + 50);
    place.file("a.jsonl", upsert("x", &texts(1)) + &upsert("x", &texts(2)) + &upsert("y", &texts(3)));
    place.file("gone.jsonl", delete("x") + &delete("y"));
    place.file("b.csv", format!("id,text\nx,{}\nz,{}\n", texts(4), texts(5)));
    for (inputs, replaced) in
        [("a.jsonl", 0), ("a.jsonl a.jsonl", 0), ("a.jsonl gone.jsonl b.csv", 0), ("a.jsonl b.csv", 1)]
    {
        for epoch in ["all", "events:1"] {
            let (_, stats) = place.replay(&format!("--epoch {epoch} {inputs}"));
            assert_eq!(stats["replaced_across_files"], json!(replaced), "{inputs}, {epoch}");
        }
    }
    // Rows and nested fields are named by their files too; a delete has no name of its own.
    place.file("page.jsonl", format!("{{\"page\":{{\"id\":\"x\",\"body\":\"{}\"}}}}\n", texts(4)));
    let (by_file, _) = place.replay("--emit keep --ids file a.jsonl b.csv");
    assert_eq!(
        by_file.out,
        "{\"id\":\"a.jsonl#0\"}\n{\"id\":\"a.jsonl#1\"}\n{\"id\":\"a.jsonl#2\"}\n\
        {\"id\":\"b.csv#0\"}\n{\"id\":\"b.csv#1\"}\n"
    );
    let nested = place.replay("--emit keep --ids file --text-field page.body page.jsonl").0;
    assert_eq!(nested.out, "{\"id\":\"page.jsonl#0\"}\n");
    place.file("mixed.jsonl", upsert("x", &texts(6)) + &delete("x"));
    let (run, stats) = place.replay("--ids file mixed.jsonl");
    assert_eq!(
        (&stats["bad_records"], &stats["documents"]),
        (&json!({ "missing_id": 1 }), &json!(1)),
        "{run:?}"
    );
}
