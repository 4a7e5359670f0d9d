//! Bad input never stops a run and never disappears: each kind has a message, a counter, and a dead letter.

use std::io::Write;

use serde_json::json;

use super::dupflow::{Ended, Place};
use super::feeds::{lines, page, upsert};

/// Two documents that are a pair, one before and one after the bad records.
fn around(bad: &[u8]) -> Vec<u8> {
    let good = |id| upsert(id, &page(0..0, 0)).into_bytes();
    [&good("before"), bad, b"\n", &good("after")].concat()
}

/// Whether a run found the pair of [`around`], and nothing else.
fn found_the_pair(run: &Ended) -> bool {
    run.out == "{\"epoch\":1,\"diff\":1,\"a\":\"after\",\"b\":\"before\",\"similarity\":1.0}\n"
}

#[test]
fn every_bad_line_is_counted_reported_and_kept() {
    let long_id = format!("{{\"id\":\"{}\",\"text\":\"t\"}}", "x".repeat(1025));
    let cases: [(&[u8], &str, &str); 19] = [
        (b"{\"id\":\"x\",\"text\":", "not_json", "not a complete JSON value"),
        (b"{\"id\":\"x\",\"text\":\"t\"} more", "not_json", "not a complete JSON value"),
        (b"{'id':'x'}", "not_json", "not a complete JSON value"),
        (b"{\"id\":\"x\",\"text\":\"\\ud800\"}", "lone_surrogate", "a string has a lone surrogate"),
        (b"\"text\"", "not_an_object", "JSON, but not an object with an \"id\""),
        (b"[\"x\",\"upsert\",1,\"t\"]", "not_an_object", "JSON, but not an object with an \"id\""),
        (b"{\"text\":\"t\"}", "missing_id", "no id (missing_id): no field \"id\""),
        (b"{\"id\":7,\"text\":\"t\"}", "bad_id", "the id is not a string of 1 to 1,024 bytes"),
        (b"{\"id\":null,\"text\":\"t\"}", "bad_id", "the id is not a string of 1 to 1,024 bytes"),
        (b"{\"id\":\"\",\"text\":\"t\"}", "bad_id", "the id is not a string of 1 to 1,024 bytes"),
        (long_id.as_bytes(), "bad_id", "the id is not a string of 1 to 1,024 bytes"),
        (b"{\"id\":\"x\",\"op\":1,\"text\":\"t\"}", "bad_op", "its operation is not a string"),
        (
            b"{\"id\":\"x\",\"op\":\"insert\",\"text\":\"t\"}",
            "unknown_op",
            "neither \"upsert\" nor \"delete\"",
        ),
        (b"{\"id\":\"x\",\"ts\":\"now\",\"text\":\"t\"}", "bad_ts", "its time is not a number of seconds"),
        (b"{\"id\":\"x\"}", "missing_text", "an upsert without a text (missing_text): no field \"text\""),
        (b"{\"id\":\"x\",\"text\":null}", "bad_text", "its text is not a string"),
        (b"{\"id\":\"x\",\"text\":[\"t\"]}", "bad_text", "its text is not a string"),
        (b"{\"id\":\"x\",\"text\":\"\xff\"}", "not_utf8", "not UTF-8 text"),
        (b"\0\0\0\0", "not_json", "not a complete JSON value"),
    ];
    let place = Place::new();
    for (line, reason, message) in cases {
        place.file("feed", around(line));
        let (run, stats) = place.replay("--dead-letter dead feed");
        let shown = String::from_utf8_lossy(line);
        assert!(found_the_pair(&run), "{shown}: {run:?}");
        assert_eq!((&stats["bad_records"], &stats["events"]), (&json!({ reason: 1 }), &json!(2)), "{shown}");
        let place_of_record = "bad record in \"feed\", line 2: ";
        let warning = run.err.lines().find(|printed| printed.contains(place_of_record));
        assert!(warning.is_some_and(|warning| warning.contains(message)), "{shown}: {run:?}");
        assert!(run.err.contains(&format!("bad         1 record: 1 {reason}\n")), "{shown}: {run:?}");
        assert_eq!(std::fs::read(place.path("dead")).unwrap(), [line, b"\n"].concat(), "{shown}");
    }

    // All cases together: one warning per reason.
    place.file("feed", around(&cases.map(|(line, ..)| line).join(&b'\n')));
    let (run, stats) = place.replay("feed");
    assert!(found_the_pair(&run), "{run:?}");
    let expected = json!({
        "bad_id": 4, "bad_op": 1, "bad_text": 2, "bad_ts": 1, "missing_id": 1, "missing_text": 1,
        "lone_surrogate": 1, "not_an_object": 2, "not_json": 4, "not_utf8": 1, "unknown_op": 1,
    });
    assert_eq!(stats["bad_records"], expected);
    assert_eq!(run.err.matches("further ones of this reason are only counted").count(), 11, "{run:?}");
    assert!(run.err.contains("\nbad         19 records: 4 bad_id, 1 bad_op, "), "{run:?}");
}

#[test]
fn a_line_of_200_megabytes_passes_through_little_memory() {
    let mebibyte = vec![b'a'; 1 << 20];
    let place = Place::new();
    let run = place.run_with("replay --stats stats --dead-letter dead -", |pipe| {
        pipe.write_all(upsert("before", &page(0..0, 0)).as_bytes()).unwrap();
        pipe.write_all(b"{\"id\":\"x\",\"text\":\"").unwrap();
        (0..200).for_each(|_| pipe.write_all(&mebibyte).unwrap());
        pipe.write_all(b"\"}\n").unwrap();
        pipe.write_all(upsert("after", &page(0..0, 0)).as_bytes()).unwrap();
    });
    assert_eq!(run.code, 0, "{run:?}");
    assert!(found_the_pair(&run), "{run:?}");
    let stats = &lines(&place.read("stats").replace('\n', " "))[0];
    assert_eq!(stats["bad_records"], json!({ "too_long": 1 }));
    assert!(run.err.contains("bad record in \"-\", line 2: longer than 64 MiB (too_long)"), "{run:?}");
    // A buffer that doubles up to the longest allowed record, 64 MiB. Holding the whole line would take twice
    // that.
    assert!(stats["peak_rss_bytes"].as_u64() < Some(320 << 20), "{stats}");
    let kept = std::fs::metadata(place.path("dead")).unwrap().len();
    assert_eq!(kept, (200 << 20) + r#"{"id":"x","text":""}"#.len() as u64 + 1, "kept whole");
}

#[test]
fn compressed_feeds_that_break_off_count_up_to_there() {
    let place = Place::new();
    let made = place.run("generate --documents 300 -o feed");
    assert_eq!(made.code, 0, "{made:?}");
    let feed = place.read("feed");
    place.file("next", upsert("next", "the next input is read"));

    let zstd = zstd::encode_all(feed.as_bytes(), 1).unwrap();
    place.file("truncated.zst", &zstd[..zstd.len() * 2 / 3]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(feed.as_bytes()).unwrap();
    let mut gzip = gzip.finish().unwrap();
    place.file("truncated.gz", &gzip[..gzip.len() * 2 / 3]);
    let middle = gzip.len() * 2 / 3;
    gzip[middle..middle + 100].fill(0xff);
    place.file("corrupt.gz", &gzip);
    for damaged in ["truncated.zst", "truncated.gz", "corrupt.gz"] {
        let (run, stats) = place.replay(&format!("--dead-letter dead {damaged} next"));
        let events = stats["events"].as_u64().unwrap();
        assert!(events > 50 && events < feed.lines().count() as u64, "{damaged}: {stats}");
        let bad = stats["bad_records"].as_object().unwrap();
        assert_eq!(bad.get("truncated"), Some(&json!(1)), "{damaged}: {stats}");
        let message = format!("bad record in \"{damaged}\"");
        assert!(
            run.err.contains(&message) && run.err.contains("ends early or is damaged here"),
            "{damaged}: {run:?}"
        );
        if damaged.starts_with("truncated") {
            // The dead letter is the truncated line.
            let dead = std::fs::read(place.path("dead")).unwrap();
            let kept = dead.strip_suffix(b"\n").unwrap();
            assert!(
                kept.len() > 10 && feed.as_bytes().windows(kept.len()).any(|part| part == kept),
                "{damaged}"
            );
        }
    }
    place.file("nothing.zst", &zstd[..10]);
    // An input without any document is an error, also beside other inputs; what was read is counted.
    let run = place.run("replay --stats stats.json nothing.zst next");
    let stats = &lines(&place.read("stats.json").replace('\n', " "))[0];
    assert!(run.code == 1 && run.err.contains("\"nothing.zst\" holds 1 record and no document"), "{run:?}");
    assert_eq!((&stats["bad_records"], &stats["events"]), (&json!({ "truncated": 1 }), &json!(1)));
}

#[test]
fn inputs_without_a_record_are_an_empty_corpus() {
    let place = Place::new();
    place.file("empty", "");
    place.file("blank", "\u{feff}\n \r\n\n");
    std::fs::create_dir(place.path("folder")).unwrap();
    for inputs in ["empty", "blank", "folder", "-", "empty folder blank"] {
        for emit in ["deltas", "pairs"] {
            let (run, stats) = place.replay(&format!("--emit {emit} {inputs}"));
            assert_eq!(run.out, "", "{inputs}");
            for (key, expected) in [("events", json!(0)), ("documents", json!(0)), ("bad_records", json!({}))]
            {
                assert_eq!(stats[key], expected, "{inputs}: {key}");
            }
            assert!(run.err.contains("read        0 events"), "{run:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn files_of_a_folder_that_are_no_texts_are_passed_over() {
    let place = Place::new();
    place.file("docs/before", page(0..0, 0));
    place.file("docs/after", page(0..0, 0));
    place.file("docs/binary", b"\x89PNG\xff");
    place.file(
        std::iter::repeat_n("deep".repeat(50), 7).fold("docs".to_owned(), |path, part| path + "/" + &part),
        "x",
    );
    std::os::unix::fs::symlink("nowhere", place.path("docs/dangling")).unwrap();
    std::os::unix::fs::symlink(".", place.path("docs/loop")).unwrap();
    // Not a regular file, and without a writer.
    std::os::unix::net::UnixListener::bind(place.path("docs/socket")).unwrap();
    let (run, stats) = place.replay("--dead-letter dead docs");
    assert!(found_the_pair(&run), "{run:?}");
    assert_eq!(stats["bad_records"], json!({ "bad_id": 1, "not_utf8": 1, "unreadable": 1 }));
    assert_eq!(stats["skipped"], json!({ "circular": 1, "special": 1 }));
    assert!(run.err.contains("bad record in \"docs/binary\": not UTF-8 text (not_utf8)"), "{run:?}");
    let dead = lines(&place.read("dead"));
    let binary = json!({ "file": "docs/binary", "reason": "not_utf8" });
    let dangling = json!({ "file": "docs/dangling", "reason": "unreadable" });
    assert!(dead.len() == 3 && dead.contains(&binary) && dead.contains(&dangling), "{dead:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_that_fails_is_no_bad_record() {
    let place = Place::new();
    place.file("feed", upsert("next", "the next input is read"));
    // It opens as a file, but its beginning cannot be read. So does a document.
    std::fs::create_dir(place.path("docs")).unwrap();
    std::os::unix::fs::symlink("/proc/self/mem", place.path("docs/mem.txt")).unwrap();
    for input in ["/proc/self/mem", "docs"] {
        let run = place.run(&format!("replay --dead-letter dead {input} feed"));
        assert!(run.code == 1 && run.err.contains("error: "), "{run:?}");
        assert!(run.err.contains("/mem") && run.err.contains(": Input/output error"), "{run:?}");
        assert_eq!(place.read("dead"), "");
    }
}

#[test]
fn on_error_fail_ends_the_run_at_the_first_bad_record() {
    let place = Place::new();
    // One pair in each epoch. An epoch begins only after the one 64 before it has been written.
    const EPOCHS: u32 = 200;
    let pair = |n: u32| {
        let text = page(0..100, n);
        upsert(&format!("a{n}"), &text) + &upsert(&format!("b{n}"), &text)
    };
    let before: String = (1..=EPOCHS).map(pair).collect();
    place.file("feed", before + &upsert("c", "alone") + "oops\n" + &pair(EPOCHS + 1));
    let whole = place.run("replay --epoch events:2 feed").out;
    for workers in [1, 4] {
        let run = place.run(&format!(
            "replay --set output.on_error=fail --epoch events:2 --workers {workers} --dead-letter dead \
            --stats stats feed"
        ));
        assert_eq!(run.code, 1, "{run:?}");
        let line = 2 * EPOCHS + 2;
        let message =
            format!("error: bad record in \"feed\", line {line}: not a complete JSON value (not_json)\n");
        assert!(run.err.ends_with(&message), "{run:?}");
        // The output is whole epochs from before the bad record: at least those that had to be durable before
        // its epoch began.
        assert!(whole.starts_with(&run.out) && run.out.ends_with('\n'), "{run:?}");
        let epochs = run.out.lines().count();
        assert!((136..=200).contains(&epochs), "{epochs} epochs of one delta are written");
        assert_eq!(place.read("dead"), "oops\n");
        assert!(!place.path("stats").exists(), "counts of a run that failed would mislead");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_epoch_is_not_written_if_its_dead_letters_fail() {
    let place = Place::new();
    let pair = |a: &str, b: &str| upsert(a, &page(0..0, 0)) + &upsert(b, &page(0..0, 0));
    // Written by a worker: a line that is not JSON, one longer than the buffer of the dead letters and one
    // shorter.
    let long = format!("{}\n", "x".repeat(100_000));
    place.file("long", pair("a", "b") + &long + &pair("c", "d"));
    place.file("short", pair("a", "b") + "x\n");
    // Written by the reader: a line at which a compressed input is cut off.
    let noise: String =
        (0..60_000_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let packed = zstd::encode_all(noise.as_bytes(), 1).unwrap();
    place.file("pair", pair("a", "b"));
    place.file("cut", &packed[..packed.len() / 2]);
    for (feed, workers) in ["long", "short", "pair cut"].into_iter().flat_map(|feed| [(feed, 1), (feed, 4)]) {
        let run = place.run(&format!("replay --dead-letter /dev/full --workers {workers} {feed}"));
        assert_eq!((run.code, run.out.as_str()), (1, ""), "{feed}: {run:?}");
        let problem = "error: the dead-letter file \"/dev/full\" cannot be written: No space left on device";
        assert!(run.err.contains(problem), "{feed}: {run:?}");
        // A result that is written only at the end is not written either.
        let pairs = place.run(&format!("replay --emit pairs --dead-letter /dev/full {feed}"));
        assert_eq!((pairs.code, pairs.out.as_str()), (1, ""), "{feed}: {pairs:?}");
    }
}
