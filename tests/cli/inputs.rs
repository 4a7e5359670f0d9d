//! Corpora in every format and location: the same documents give the same pairs.

use serde_json::json;

use crate::dupflow::Place;

const FEED: &str = "generate --documents 300 --seed 5 --max-words 60";

/// Formats that hold the feed with its updates and deletes, each with its file name.
fn tables() -> Vec<(&'static str, &'static str)> {
    let parquet = cfg!(feature = "parquet").then_some(("parquet", "made.parquet"));
    [("csv", "made.csv"), ("tsv", "made.tsv")].into_iter().chain(parquet).collect()
}

#[test]
fn tables_give_the_deltas_of_the_feed() {
    let place = Place::new();
    assert_eq!(place.run(&format!("{FEED} -o feed.jsonl")).code, 0);
    let (expected, stats) = place.replay("--epoch events:50 feed.jsonl");
    assert!(stats["deltas"].as_u64() > Some(20), "{stats}");
    for (format, name) in tables() {
        assert_eq!(place.run(&format!("{FEED} --format {format} -o {name}")).code, 0);
        for workers in [1, 2, 4] {
            let (found, of_format) = place.replay(&format!("--epoch events:50 --workers {workers} {name}"));
            assert_eq!(found.out, expected.out, "{format}, {workers} workers");
            for count in ["events", "documents", "bytes", "epochs", "bad_records", "skipped"] {
                assert_eq!(of_format[count], stats[count], "{format}: {count}");
            }
        }
    }
}

#[test]
fn archives_give_the_pairs_of_what_is_alive() {
    let place = Place::new();
    assert_eq!(place.run(&format!("{FEED} -o feed.jsonl")).code, 0);
    let (expected, of_feed) = place.replay("--emit pairs feed.jsonl");
    assert!(expected.out.lines().count() > 20);
    let mut first = None;
    for (format, name) in
        [("wet", "a.warc.wet"), ("wet", "a.warc.wet.gz"), ("warc", "a.warc"), ("warc", "a.warc.gz")]
    {
        assert_eq!(place.run(&format!("{FEED} --format {format} -o {name}")).code, 0);
        let (found, stats) = place.replay(&format!("--emit pairs {name}"));
        assert_eq!((&found.out, &stats["documents"]), (&expected.out, &of_feed["documents"]), "{name}");
        // Records without a document are no events, so epochs end where those of the first archive do.
        let (deltas, _) = place.replay(&format!("--epoch events:50 {name}"));
        assert_eq!(*first.get_or_insert_with(|| deltas.out.clone()), deltas.out, "{name}");
    }
    assert_eq!(place.run(&format!("{FEED} --format html -o pages")).code, 0);
    let (found, _) = place.replay("--emit pairs pages");
    assert_eq!(found.out.replace(".html\"", "\""), expected.out, "pages are their texts");
    // The same archive through standard input.
    let archive = std::fs::read(place.path("a.warc.gz")).unwrap_or_default();
    let piped = place.run_with("replay --emit pairs -", |input| input.write_all(&archive).unwrap_or(()));
    assert_eq!(piped.out, expected.out, "{}", piped.err);
}

fn line(id: &str, text: &str) -> String {
    format!("{}\n", json!({ "id": id, "text": text }))
}

const TEXT: &str = "ten words of one text that is in two documents here";

/// The output line for two documents with the text [`TEXT`].
fn pair(a: &str, b: &str) -> String {
    format!("{{\"a\":\"{a}\",\"b\":\"{b}\",\"similarity\":1.0}}\n")
}

#[test]
fn patterns_lists_and_folders_name_inputs() {
    let place = Place::new();
    place.file("crawl/1/a.jsonl", line("a", TEXT));
    place.file("crawl/2/b.jsonl.gz", {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(line("b", TEXT).as_bytes()).and_then(|()| gzip.finish()).unwrap_or_default()
    });
    place.file("crawl/2/_SUCCESS", "");
    place.file("crawl/2/.part.jsonl", line("hidden", TEXT));
    place.file("docs/日本.md", TEXT);
    place.file(
        "docs/sub/rows.csv.zst",
        zstd::encode_all(&b"id,text\nc,ten words of one text that is in two documents here\n"[..], 1)
            .unwrap_or_default(),
    );
    place.file("list", "crawl/1/a.jsonl\r\n\ndocs\n");
    for (inputs, expected) in [
        ("crawl/**/*.jsonl*", pair("a", "b")),
        ("crawl/{1,2}/[ab].*", pair("a", "b")),
        ("--files-from list", [pair("a", "c"), pair("a", "日本.md"), pair("c", "日本.md")].concat()),
        ("docs", pair("c", "日本.md")),
        ("docs/日本.md crawl/1/*", pair("a", "docs/日本.md")),
    ] {
        let (run, stats) = place.replay(&format!("--emit pairs {inputs}"));
        assert_eq!(run.out, expected, "{inputs}: {run:?}");
        assert_eq!(stats["bad_records"], json!({}), "{inputs}");
    }
    let wrong = place.run("replay nowhere/*.csv missing --files-from none crawl/[");
    assert_eq!(wrong.code, 2, "{wrong:?}");
    for message in [
        "no file matches \"nowhere/*.csv\"",
        "cannot read \"missing\"",
        "--files-from: cannot read \"none\"",
        "is no pattern",
    ] {
        assert!(wrong.err.contains(message), "{message}: {wrong:?}");
    }
    let remote = place.run("replay s3://bucket-of-nobody/../x ftp://host/a");
    assert!(remote.code == 2 && remote.err.contains("cannot read \"ftp://host/a\": "), "{remote:?}");
}

#[test]
fn ids_are_named_counted_or_taken_from_where_they_are() {
    let place = Place::new();
    let long = "x".repeat(1025);
    place
        .file("none.jsonl", format!("{{\"text\":\"{TEXT}\"}}\n{{\"text\":\"\"}}\n{{\"text\":\"{TEXT}\"}}\n"));
    place.file("none.csv", format!("body,title\n{TEXT},t\n,\n{TEXT},u\n"));
    place.file(
        "whole.jsonl",
        format!("{{\"id\":12345678901234567890,\"text\":\"{TEXT}\"}}\n{{\"id\":7,\"text\":\"{TEXT}\"}}\n"),
    );
    place.file(
        "nested.jsonl",
        format!(
            "{{\"page\":{{\"url\":\"http://ไทย\",\"body\":\"{TEXT}\"}}}}\n\
            {{\"page\":{{\"url\":\"عنوان\",\"body\":\"{TEXT}\"}}}}\n"
        ),
    );
    place.file("long.csv", format!("id,text\n{long},{TEXT}\n😀,{TEXT}\n\"a,\"\"b\",{TEXT}\n"));
    for (arguments, expected, bad) in [
        ("none.jsonl", pair("none.jsonl#0", "none.jsonl#2"), json!({})),
        ("--text-field body none.csv", pair("none.csv#0", "none.csv#2"), json!({})),
        ("whole.jsonl", pair("12345678901234567890", "7"), json!({})),
        ("--id-field page.url --text-field page.body nested.jsonl", pair("http://ไทย", "عنوان"), json!({})),
        ("long.csv", pair("a,\\\"b", "😀"), json!({ "bad_id": 1 })),
    ] {
        let (run, stats) = place.replay(&format!("--emit pairs {arguments}"));
        assert_eq!((&run.out, &stats["bad_records"]), (&expected, &bad), "{arguments}: {run:?}");
    }
    // A missing column is reported before anything is read or written.
    for (name, arguments) in [("none", "--text-field none"), ("key", "--id-field key")] {
        let missing = place.run(&format!("replay -o out {arguments} whole.jsonl long.csv"));
        let message = format!("cannot read \"long.csv\": no column {name:?} among \"id\", \"text\"\n");
        assert!(missing.code == 2 && missing.err.contains(&message), "{missing:?}");
        assert!(!place.path("out").exists());
    }
}

/// Lines without an id do not decide how ids are read.
#[test]
fn the_first_object_decides_the_id_rule() {
    let place = Place::new();
    let (a, b) =
        (format!("{{\"id\":1,\"text\":\"{TEXT}\"}}\n"), format!("{{\"id\":2,\"text\":\"{TEXT}\"}}\n"));
    let none = format!("{{\"text\":\"{TEXT}\"}}\n");
    for (lines, expected, bad) in [
        (format!("oops\n[]\n{a}{b}"), pair("1", "2"), json!({ "not_json": 1, "not_an_object": 1 })),
        (format!("\noops\n{none}{none}"), pair("feed#1", "feed#2"), json!({ "not_json": 1 })),
        (format!("{{\"op\":\"delete\",\"id\":9}}\n{a}{b}"), pair("1", "2"), json!({})),
    ] {
        place.file("feed", &lines);
        let (run, stats) = place.replay("--emit pairs feed");
        assert_eq!((&run.out, &stats["bad_records"]), (&expected, &bad), "{lines}: {run:?}");
    }
    // A delete at the start of a later input ends a document of an earlier one.
    place.file("feed", format!("{a}{b}"));
    place.file("more", "{\"op\":\"delete\",\"id\":1}\n");
    assert_eq!(place.run("replay --emit pairs feed more").out, "");
}

/// Pages and texts of a folder may be compressed, and so may a whole Parquet file; file names need not be
/// UTF-8.
#[cfg(target_os = "linux")]
#[test]
fn compressed_files_and_file_names() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    std::fs::create_dir(place.path("pages")).unwrap();
    place.file("pages/a.html.zst", zstd::encode_all(format!("<p>{TEXT}").as_bytes(), 3).unwrap());
    place.file("pages/ไทย.txt.zst", zstd::encode_all(TEXT.as_bytes(), 3).unwrap());
    assert_eq!(place.run("replay --emit pairs pages").out, pair("a.html.zst", "ไทย.txt.zst"));

    let made = place.run("generate --documents 30 --format parquet -o a.parquet");
    assert_eq!(made.code, 0, "{made:?}");
    let bytes = std::fs::read(place.path("a.parquet")).unwrap();
    place.file("whole", zstd::encode_all(&bytes[..], 3).unwrap());
    let plain = place.run("replay a.parquet").out;
    assert!(!plain.is_empty());
    assert_eq!(place.run("replay whole").out, plain);

    for byte in [0xfe, 0xff] {
        let name = [&b"n"[..], &[byte], b".jsonl"].concat();
        let path = place.path("").join(std::ffi::OsStr::from_bytes(&name));
        std::fs::write(path, format!("{{\"text\":\"{TEXT}\"}}\n")).unwrap();
    }
    assert_eq!(place.run("replay --emit pairs n*.jsonl").out, pair("n%FE.jsonl#0", "n%FF.jsonl#0"));
}

/// A page that is fetched twice is two documents by its record, and an update by its address.
#[test]
fn a_page_that_is_fetched_again_is_an_update_by_its_address() {
    let place = Place::new();
    let record = |id: u32, page: &str, text: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:uuid:{id}>\r\nWARC-Target-URI: \
            http://e.org/{page}\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}\r\n\r\n",
            text.len()
        )
    };
    let other = "and now it says something else at more length than before";
    let archive = [record(1, "a", TEXT), record(2, "b", TEXT), record(3, "a", other)].concat()
        + "WARC/1.0\r\nWARC-Type: metadata\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    place.file("a.warc", archive);
    let (by_record, stats) = place.replay("--emit pairs a.warc");
    assert_eq!(by_record.out, "{\"a\":\"1\",\"b\":\"2\",\"similarity\":1.0}\n");
    assert_eq!((&stats["skipped"], &stats["documents"]), (&json!({ "metadata": 1 }), &json!(3)));
    assert!(by_record.err.contains("skipped     1 record without a document: 1 metadata"), "{by_record:?}");
    let (by_address, of_addresses) = place.replay("--warc-id uri --epoch events:1 a.warc");
    let delta = |epoch, diff| {
        format!(
            "{{\"epoch\":{epoch},\"diff\":{diff},\"a\":\"http://e.org/a\",\
            \"b\":\"http://e.org/b\",\"similarity\":1.0}}\n"
        )
    };
    assert_eq!((by_address.out, &of_addresses["documents"]), (delta(2, 1) + &delta(3, -1), &json!(2)));
}

#[test]
fn a_dry_run_prints_every_script_unescaped() {
    let place = Place::new();
    let texts = ["สะพานหินเก่า", "مُسْتَنَدٌ می‌خواهم", "हिन्दी क्ष", "e\u{301}"];
    let rows: String = texts.iter().map(|text| format!("{text},{text}\n")).collect();
    place.file("a.csv", format!("id,text\n{rows}bell,\"a \"\"quote\"\"\u{7}\n\u{1b}[31m\"\n"));
    let run = place.run("replay --dry-run=9 a.csv");
    for text in texts {
        let message = format!("  \"{text}\", {} bytes\n    \"{text}\"\n", text.len());
        assert!(run.out.contains(&message), "{text:?}: {run:?}");
    }
    assert!(run.out.contains(r#""a \"quote\"\u{7}\n\u{1b}[31m""#), "{run:?}");
}

#[test]
fn a_dry_run_prints_the_parsed_records() {
    let place = Place::new();
    place.file("a.csv", "id,text,ts\n1,one two,5\n2,สอง,\n3,three,\n4,four,\n");
    place.file("page.html", "<html><title>t</title><nav>menu</nav><p>What it says</p>");
    let run = place.run("replay --dry-run=2 a.csv page.html");
    let expected = "a.csv: csv, 53 B\n  \"1\", ts 5, 7 bytes\n    \"one two\"\n  \"2\", 9 \
        bytes\n    \"สอง\"\n\
                    page.html: html, 56 B\n  \"page.html\", 12 bytes of a page\n    \"What it says\"\n";
    assert_eq!((run.code, run.out.as_str()), (0, expected), "{run:?}");
}

/// A separator of fields is a character of the text where the pipeline has none; with fields it is a space.
#[test]
fn a_dry_run_shows_the_text_that_is_compared() {
    let place = Place::new();
    let text = "one two\u{1e}three\u{1e}four";
    let line = json!({ "id": "a", "text": text, "title": "five\u{1e}six" }).to_string();
    place.file("a.jsonl", &line);
    place.file("a.csv", format!("id,text,title\na,{text},five\u{1e}six\n"));
    for input in ["a.jsonl", "a.csv"] {
        let run = place.run(&format!("replay --dry-run=5 {input}"));
        let whole = "  \"a\", 18 bytes\n    \"one two\\u{1e}three\\u{1e}four\"\n";
        assert!(run.out.ends_with(whole), "{run:?}");
        let run = place.run(&format!("replay --dry-run=5 --set text.fields.title=1 {input}"));
        let parts = "  \"a\", 18 bytes\n    \"one two three four\"\n    title: \"five six\"\n";
        assert!(run.out.ends_with(parts), "{run:?}");
    }
}

/// A snapshot of a Hugging Face repository: all files are links to others.
#[cfg(unix)]
#[test]
fn files_behind_links_are_read() {
    use std::os::unix::fs::symlink;

    let place = Place::new();
    for (name, id) in [("1", "a"), ("2", "b")] {
        place.file(format!("hub/blobs/{name}"), line(id, TEXT));
    }
    std::fs::create_dir_all(place.path("hub/snapshots/x/data")).unwrap();
    symlink("../../../blobs/1", place.path("hub/snapshots/x/data/train-0.jsonl")).unwrap();
    symlink("../../../blobs/2", place.path("hub/snapshots/x/data/train-1.jsonl")).unwrap();
    symlink("x", place.path("hub/snapshots/main")).unwrap();
    for input in ["hub/snapshots/x", "hub/snapshots/main", "hub/snapshots/main/**/*.jsonl"] {
        let (run, stats) = place.replay(&format!("--emit pairs {input}"));
        assert_eq!((run.out, &stats["skipped"]), (pair("a", "b"), &json!({})), "{input}");
    }
    place.replay("--emit documents hub/snapshots/x -o clean/");
    assert_eq!(place.read("clean/data/train-0.jsonl"), line("a", TEXT));
    assert_eq!(place.read("clean/data/train-1.jsonl"), "");

    // Texts too. A folder is not read again inside itself.
    place.file("texts/d.txt", TEXT);
    place.file("docs/sub/e.txt", TEXT);
    symlink("../texts", place.path("docs/more")).unwrap();
    symlink("..", place.path("docs/sub/up")).unwrap();
    let (run, stats) = place.replay("--emit pairs docs");
    assert!(run.out.starts_with(&pair("more/d.txt", "sub/e.txt")), "{run:?}");
    assert_eq!((&stats["documents"], &stats["skipped"]), (&json!(2), &json!({ "circular": 1 })));
}

/// Files of tools beside the inputs are no part of them.
#[test]
fn a_hidden_file_beside_the_inputs_is_a_note() {
    let place = Place::new();
    place.file("texts/a.txt", "one two three four five");
    let made = place.run("replay -p exact --emit pairs --provenance -o report texts/");
    assert_eq!(made.code, 0, "{made:?}");
    place.file("texts/.DS_Store", "");
    place.file("texts/.git/config", "");
    let verified = place.run("verify report texts/");
    let note = "note     count of skipped records, hidden: 0 there, 2 here\n";
    assert!(verified.code == 0 && verified.out.contains(note), "{verified:?}");
    place.file("texts/b.txt", "one two three four five");
    assert_eq!(place.run("verify report texts/").code, 1, "a further document is none");
}
