//! Web archives as crawlers and compressors write them.
//!
//! Bug classes: pages are lost where a compressor divides a record; a page that has become again what it was
//! stays what it was in between; a restart knows less of earlier archives than the run before; a record that
//! browsers show makes every list fail; what a crawler writes about itself is compared.

use std::collections::BTreeSet;
use std::io::Write;

use serde_json::{Value, json};

use super::dupflow::Place;

fn text(topic: &str) -> String {
    format!("the {topic} of this town is in its middle and all of its people know where that {topic} is")
}

/// A record with these lines in its head.
fn record(kind: &str, lines: &[&str], block: &str) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let length = block.len();
    format!("WARC/1.0\r\nWARC-Type: {kind}\r\n{lines}Content-Length: {length}\r\n\r\n{block}\r\n\r\n")
}

/// A page at an address, by the number of its record, which is its day too.
fn page(number: u32, address: &str, topic: &str) -> String {
    let [id, uri, date] = names(number, address);
    let digest = format!("WARC-Payload-Digest: sha1:{}", topic.to_uppercase());
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>{}", text(topic));
    record("response", &[&id, &uri, &date, &digest, HTTP], &http)
}

const HTTP: &str = "Content-Type: application/http; msgtype=response";

fn names(number: u32, address: &str) -> [String; 3] {
    [
        format!("WARC-Record-ID: <urn:uuid:{number}>"),
        format!("WARC-Target-URI: http://a.test/{address}"),
        format!("WARC-Date: 2026-01-{number:02}T00:00:00Z"),
    ]
}

/// A revisit of an address, with the lines that say of what.
fn revisit(number: u32, address: &str, lines: &[&str]) -> String {
    let [id, uri, date] = names(number, address);
    let all = [&[&*id, &*uri, &*date, HTTP], lines].concat();
    record("revisit", &all, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
}

fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn pairs(out: &str) -> BTreeSet<(String, String)> {
    let pair = |line: &str| {
        let pair: Value = serde_json::from_str(line).unwrap();
        ["a", "b"].map(|key| pair[key].as_str().unwrap().replace("http://a.test/", "")).into()
    };
    out.lines().map(pair).collect()
}

fn pair(a: &str, b: &str) -> (String, String) {
    (a.to_owned(), b.to_owned())
}

/// Members and frames that do not begin at records, in every place, small and larger than a part of a
/// parallel reader.
#[test]
fn records_may_be_divided_anywhere() {
    let place = Place::new();
    for (count, words) in [(60, 1), (600, 40)] {
        let long = |n: u32| (0..words).map(|k| text(&format!("bridge{n}x{k}"))).collect::<Vec<_>>().join(" ");
        let of = |n| record("conversion", &[&names(n, "p")[0], "Content-Type: text/plain"], &long(n));
        let stream: String = (0..count).map(of).collect();
        place.file("plain.warc", &stream);
        let expected = place.run("replay --emit keep plain.warc");
        assert_eq!((expected.code, expected.out.lines().count()), (0, count as usize), "{expected:?}");
        let chunks = |size| stream.as_bytes().chunks(size);
        let ends = stream.match_indices("\r\n\r\n").map(|(at, _)| at + 4);
        let bounds: Vec<usize> = std::iter::once(0).chain(ends).collect();
        let halves = bounds.windows(2).map(|two| &stream.as_bytes()[two[0]..two[1]]);
        let files: [(&str, Vec<u8>); 4] = [
            ("bgzip.warc.gz", chunks(65_280).chain([&[][..]]).flat_map(|piece| gzip(piece, 0)).collect()),
            ("small.warc.gz", chunks(997).flat_map(|piece| gzip(piece, 6)).collect()),
            ("halves.warc.gz", halves.flat_map(|piece| gzip(piece, 6)).collect()),
            ("pzstd.warc.zst", chunks(9_999).flat_map(|piece| zstd::encode_all(piece, 1).unwrap()).collect()),
        ];
        for (name, bytes) in &files {
            place.file(format!("in/{name}"), bytes);
            place.file("list.txt", format!("in/{name}\n"));
            for inputs in
                [&format!("in/{name}"), "--files-from list.txt", &format!("in/{}*", &name[..4]), "in"]
            {
                let found = place.run(&format!("replay --emit keep {inputs}"));
                assert_eq!((found.code, &found.out), (0, &expected.out), "{name}, {inputs}: {}", found.err);
            }
            let piped = place.run_with("replay --emit keep -", |input| input.write_all(bytes).unwrap());
            assert_eq!((piped.code, &piped.out), (0, &expected.out), "{name}: {}", piped.err);
            std::fs::remove_file(place.path(format!("in/{name}"))).unwrap();
        }
    }
}

/// Padding of tapes and disks after the last member.
#[test]
fn zeros_after_gzip_are_padding() {
    let place = Place::new();
    let line = json!({ "id": "a", "text": text("bridge") }).to_string() + "\n";
    let table = format!("id,text\na,{}\n", text("bridge"));
    let files = [
        ("a.jsonl.gz", line),
        ("a.csv.gz", table),
        ("a.warc.gz", page(1, "a", "bridge")),
        ("a.txt.gz", text("a")),
    ];
    for (name, content) in files {
        let member = gzip(content.as_bytes(), 6);
        place.file(name, [&member[..], &[0; 600]].concat());
        let padded = place.run(&format!("replay --emit keep {name}"));
        assert_eq!((padded.code, padded.out.lines().count()), (0, 1), "{name}: {padded:?}");
        place.file(name, [&member[..], &[0; 600], b"x"].concat());
        let damaged = place.run(&format!("replay --emit keep {name}"));
        assert_eq!(damaged.code, 1, "{name}: {damaged:?}");
    }
}

/// What a revisit refers to by, whether in its archive or in an earlier one.
#[test]
fn a_revisit_gives_its_address_the_content_of_the_record() {
    let by_id = ["WARC-Refers-To: <urn:uuid:1>"];
    let by_visit =
        ["WARC-Refers-To-Target-URI: http://a.test/p", "WARC-Refers-To-Date: 2026-01-01T00:00:00.000Z"];
    let by_digest = ["WARC-Payload-Digest: SHA1:bridge"];
    for lines in [&by_id[..], &by_visit, &by_digest] {
        let place = Place::new();
        let days = [
            page(1, "p", "bridge") + &page(1, "like", "bridge").replace("urn:uuid:1", "urn:uuid:7"),
            page(2, "p", "market"),
            revisit(3, "p", lines) + &revisit(4, "copy", lines),
        ];
        place.file("one.warc", days.concat());
        for (day, content) in days.iter().enumerate() {
            place.file(format!("days/{day}.warc.gz"), gzip(content.as_bytes(), 6));
        }
        let expected = BTreeSet::from([pair("like", "p"), pair("copy", "like"), pair("copy", "p")]);
        for inputs in ["one.warc", "days", "days/0.warc.gz days/1.warc.gz days/2.warc.gz"] {
            let options = "replay -p exact --warc-id uri --ids last --emit pairs";
            let found = place.run(&format!("{options} {inputs}"));
            assert_eq!(
                (found.code, pairs(&found.out)),
                (0, expected.clone()),
                "{lines:?} {inputs}: {found:?}"
            );
            // The records that are copied have the pages.
            let copied =
                place.run(&format!("{} {inputs} -o copy.warc", options.replace("pairs", "documents")));
            assert_eq!(copied.code, 0, "{copied:?}");
            let again = place.run("replay -p exact --warc-id uri --emit keep copy.warc");
            let kept = place.run(&format!("{} {inputs}", options.replace("pairs", "keep")));
            assert_eq!((again.code, &again.out), (0, &kept.out), "{lines:?} {inputs}: {again:?}");
        }
        // The record of a revisit has no page of its own.
        let (by_record, stats) = place.replay("-p exact --emit keep one.warc");
        assert_eq!((by_record.out.lines().count(), &stats["skipped"]), (2, &json!({ "revisit": 2 })));
    }
}

#[test]
fn a_revisit_without_its_page_is_counted() {
    let place = Place::new();
    let unknown = revisit(3, "p", &["WARC-Refers-To: <urn:uuid:99>", "WARC-Payload-Digest: sha1:OTHER"]);
    let image =
        record("revisit", &[&names(4, "i")[1], HTTP], "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n");
    place.file("a.warc", page(1, "p", "bridge") + &unknown + &image);
    let (run, stats) = place.replay("-p exact --warc-id uri --emit keep a.warc");
    assert_eq!(run.out, "{\"id\":\"http://a.test/p\"}\n");
    assert_eq!(stats["skipped"], json!({ "revisit": 1, "content_type": 1 }));
    assert!(run.err.contains("revisits refer to pages that are not among those before them"), "{}", run.err);
}

/// An answer "not modified" means what its address had, which may be the page of a revisit.
#[test]
fn a_revisit_may_mean_what_a_revisit_has() {
    let place = Place::new();
    let first = page(1, "p", "bridge") + &page(1, "like", "bridge").replace("urn:uuid:1", "urn:uuid:7");
    let days = first + &page(2, "p", "market") + &revisit(3, "p", &["WARC-Refers-To: <urn:uuid:1>"]);
    place.file("a.warc", format!("{days}{}", unmodified(25, "p")));
    place.file("b.warc", format!("{days}{}", revisit(4, "p", &["WARC-Refers-To: <urn:uuid:3>"])));
    let lost = revisit(5, "p", &["WARC-Refers-To: <urn:uuid:99>"]);
    place.file("c.warc", format!("{days}{lost}{}", unmodified(25, "p")));
    for (input, revisits) in [("a.warc", 0), ("b.warc", 0), ("c.warc", 2)] {
        let (run, stats) = place.replay(&format!("-p exact --warc-id uri --emit pairs {input}"));
        assert_eq!(pairs(&run.out), BTreeSet::from([pair("like", "p")]), "{input}: {run:?}");
        assert_eq!(stats["skipped"]["revisit"].as_u64().unwrap_or(0), revisits, "{input}: {stats}");
    }
}

/// An answer "not modified", without the date of the page.
fn unmodified(day: u32, name: &str) -> String {
    let line = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified";
    revisit(day, name, &[line])
        .replace("200 OK\r\nContent-Type: text/html", "304 Not Modified\r\nETag: \"b\"        ")
}

/// A page that is confirmed does not expire.
#[test]
fn a_revisit_renews_the_time_of_a_page() {
    let place = Place::new();
    let unmodified = unmodified(25, "a");
    let late = page(31, "late", "harbour");
    for (revisit, alive) in [(&*unmodified, true), ("", false)] {
        place.file("a.warc", page(1, "a", "bridge") + &page(20, "b", "bridge") + revisit + &late);
        let options = "--warc-id uri --set retention.max_age=20d --epoch ts --emit pairs";
        let run = place.run(&format!("replay -p exact {options} a.warc"));
        assert_eq!((run.code, !run.out.is_empty()), (0, alive), "{run:?}");
    }
}

/// A run that continues finds what a run from the beginning finds.
#[test]
fn revisits_refer_to_archives_of_an_earlier_run() {
    for has_state in [true, false] {
        let place = Place::new();
        let settings = |out: &str, state: &str| {
            format!(
                "[source]\nkind = \"files\"\ninputs = [\"in/*\"]\nids = \"last\"\n[warc]\nid = \"uri\"\n\
                 {state}[sink]\nkind = \"lines\"\npath = \"{out}\"\n"
            )
        };
        let state = if has_state { "[state]\npath = \"state\"\n" } else { "" };
        place.file("here.toml", settings("out", state));
        place.file("notes.jsonl", json!({ "id": "n", "text": text("field") }).to_string());
        let end = |name: &str| {
            let mut alive = BTreeSet::new();
            for line in place.read(name).lines() {
                let one = pairs(line);
                let is_new = line.contains("\"diff\":1,");
                one.into_iter()
                    .for_each(|pair| assert!(if is_new { alive.insert(pair) } else { alive.remove(&pair) }));
            }
            alive
        };
        let days = [
            page(1, "p", "bridge") + &page(2, "like", "bridge"),
            page(3, "p", "market"),
            page(4, "other", "harbour"),
            revisit(5, "p", &["WARC-Refers-To: <urn:uuid:1>"]),
            revisit(6, "copy", &["WARC-Payload-Digest: sha1:HARBOUR"]),
        ];
        for (day, content) in days.iter().enumerate() {
            place.file(format!("in/{day}.warc.gz"), gzip(content.as_bytes(), 6));
            let run = place.run("run -p exact -c here.toml");
            assert_eq!(run.code, 0, "{run:?}");
            place.file("fresh.toml", settings(&format!("fresh{day}"), ""));
            assert_eq!(place.run("run -p exact -c fresh.toml").code, 0);
            assert_eq!(end("out"), end(&format!("fresh{day}")), "day {day}, state {has_state}");
        }
        assert_eq!(end("out"), BTreeSet::from([pair("like", "p"), pair("copy", "other")]));
    }
}

/// What crawlers write beside pages, in several archives.
#[test]
fn records_about_a_crawl_are_counted() {
    let place = Place::new();
    let about = |address: &str| {
        let uri = format!("WARC-Target-URI: {address}");
        record("resource", &[&uri, "Content-Type: text/plain"], &text("log"))
    };
    let of_wget = about("<metadata://gnu.org/software/wget/warc/wget_arguments.txt>")
        + &about("metadata://gnu.org/software/wget/warc/wget.log");
    let of_browsertrix = about("urn:text:http://a.test/b") + &about("urn:pageinfo:http://a.test/b");
    place.file("1.warc", page(1, "a", "bridge") + &of_wget);
    place.file("2.warc", page(2, "b", "market") + &of_wget + &of_browsertrix);
    let (run, stats) = place.replay("-p exact --warc-id uri --emit keep 1.warc 2.warc");
    assert_eq!((run.out.lines().count(), &stats["skipped"]), (2, &json!({ "metadata": 6 })), "{run:?}");
}

/// Pages that browsers show make no list fail.
#[test]
fn odd_pages_are_read_and_lists_are_made() {
    let place = Place::new();
    let response = |number: u32, http: &str| {
        record("response", &[&names(number, "p")[0], HTTP], &http.replace('\n', "\r\n"))
    };
    let odd = [
        "HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Encoding: UTF-8\n\n<html>",
        "HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Encoding: br\n\n<html>",
        "HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Encoding: deflate\n\n",
        "HTTP/1.1 200 OK\nContent-Type: text/plain\nTransfer-Encoding: chunked\n\n2024\n",
        "http/1.1 200 OK\nContent-Type: html\n\n<html>",
        "HTTP/1.1 200 OK\nContent-Type: image/png\nContent-Type: text/html\n\n<html>",
    ];
    let pages = odd.iter().zip(1..).map(|(http, n)| response(n, &format!("{http}{}", text(&n.to_string()))));
    let skipped = [response(90, ""), response(91, "HTTP/1.1 0 No Content\nContent-Type: text/html\n\n")];
    place.file("a.warc", pages.chain(skipped).collect::<String>());
    let (run, stats) = place.replay("-p exact --emit keep a.warc");
    assert_eq!(run.out.lines().count(), odd.len(), "{run:?}");
    assert_eq!(stats["skipped"], json!({ "empty": 1, "status": 1 }));
}

/// A page in segments is its first one, and the archive is said to hold only that.
#[test]
fn a_segmented_page_is_counted_as_cut() {
    let place = Place::new();
    let first = page(1, "p", "bridge").replacen("WARC-Type", "WARC-Segment-Number: 1\r\nWARC-Type", 1);
    place.file("a.warc", first + &record("continuation", &["WARC-Segment-Number: 2"], "and more"));
    let (run, stats) = place.replay("-p exact --emit keep a.warc");
    assert_eq!((run.out.lines().count(), &stats["skipped"]), (1, &json!({ "continuation": 1 })));
    assert!(run.err.contains("the archive holds only the beginning of some documents"), "{}", run.err);
}

/// A page that is gone is a delete on request: of its address, at its place in the archives.
#[test]
fn an_answer_that_there_is_no_page_deletes_it() {
    let place = Place::new();
    let answer = |uri: &str, status: &str, text: &str| {
        let block = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\n\r\n{text}");
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{uri}\r\n\
             WARC-Record-ID: <urn:uuid:{uri}>\r\nContent-Type: application/http\r\n\
             Content-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let found = |uri: &str| answer(uri, "200 OK", &text("market"));
    let no = |uri: &str| answer(uri, "404 Not Found", "no");
    let gone = |uri: &str| answer(uri, "410 Gone", "");
    place.file("1.warc", found("1") + &found("2") + &no("never") + &found("3") + &gone("2"));
    place.file("2.warc", no("1") + &answer("3", "500 Error", "") + &found("4") + &no("5") + &found("5"));
    let kept = |options: &str| {
        let (run, stats) =
            place.replay(&format!("-p exact --warc-id uri --emit deltas{options} 1.warc 2.warc"));
        assert_eq!(run.code, 0, "{run:?}");
        stats["documents"].as_u64().unwrap()
    };
    assert_eq!([kept(""), kept(" --warc-not-found skip"), kept(" --warc-not-found delete")], [5, 5, 3]);
    let refused = place.run("replay --warc-not-found delete 1.warc");
    assert!(refused.code == 2 && refused.err.contains("take addresses as ids"), "{refused:?}");
    place.file("run.toml", "source.inputs = [\"1.warc\"]\nwarc.not_found = \"delete\"\n");
    let refused = place.run("check -c run.toml");
    assert!(refused.code == 2 && refused.err.contains("warc.not_found: "), "{refused:?}");
}
