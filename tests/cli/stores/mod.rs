//! Inputs in an object store that changes, refuses or fails while it is read.
//!
//! Bug classes: what a request fails to bring counts as a bad record, and the run ends as if it had read all;
//! a restart skips by another numbering; parts of two versions of an object are one input; an address names
//! another file than the one that is read.

mod store;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use self::store::{Fault, Store};
use super::dupflow::{Ended, Place, command, ended};
use super::feeds::{page, upsert};

/// Bytes of each record that no reader of documents needs; the records of an object are more than
/// one request.
const PAD: usize = 100_000;

/// Number of records of an object.
const RECORDS: u32 = 44;

/// The text of a record: one of two in ten is near the one before.
fn text(number: u32) -> String {
    let number = number - u32::from(number % 10 == 9);
    page(0..50, 1 + number)
}

fn id(number: u32) -> String {
    format!("d{number}")
}

fn lines() -> Vec<u8> {
    let line =
        |number| json!({"id": id(number), "text": text(number), "pad": "x".repeat(PAD)}).to_string() + "\n";
    (0..RECORDS).map(line).collect::<String>().into_bytes()
}

fn table() -> Vec<u8> {
    let row = |number| format!("{},{},{}\n", id(number), text(number), "x".repeat(PAD));
    format!("id,text,pad\n{}", (0..RECORDS).map(row).collect::<String>()).into_bytes()
}

fn archive() -> Vec<u8> {
    let record = |kind: &str, id: &str, block: &str| {
        let length = block.len();
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{id}>\r\n\
             WARC-Target-URI: http://a.test/{id}\r\nContent-Type: text/plain\r\n\
             Content-Length: {length}\r\n\r\n{block}\r\n\r\n"
        )
    };
    let records = (0..RECORDS).map(|number| {
        record("conversion", &id(number), &text(number)) + &record("metadata", &id(number), &"x".repeat(PAD))
    });
    records.collect::<String>().into_bytes()
}

/// Stored blocks of gzip, which have as many bytes as what they hold.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Runs the binary with this store, its arguments separated by spaces.
fn run(place: &Place, store: &Store, arguments: &str) -> Ended {
    let mut command = command(arguments.split(' '));
    store.is_for(command.current_dir(place.path("")));
    ended(command.output().unwrap())
}

/// The readers of the matrix: the name of the object, its bytes, and the arguments, in which `@` is its
/// address.
fn readers() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let pairs = "replay --workers 1 --emit pairs @";
    let mut readers = vec![
        ("a.jsonl", lines(), pairs),
        ("a.jsonl.gz", gzip(&lines()), pairs),
        ("a.csv", table(), pairs),
        ("a.csv.gz", gzip(&table()), pairs),
        ("a.warc", archive(), pairs),
        ("a.warc.gz", gzip(&archive()), pairs),
        ("old.jsonl", lines(), "replay --workers 1 --emit pairs --against @ new.jsonl"),
        ("asked.jsonl", lines(), "query --corpus @ asked"),
        ("kept.jsonl", lines(), "replay --workers 1 --emit documents @"),
        ("listed.jsonl", lines(), "replay --workers 1 --emit pairs --files-from list"),
    ];
    #[cfg(feature = "parquet")]
    readers.push(("a.parquet", super::parquet::table((0..RECORDS).map(|one| (id(one), text(one)))), pairs));
    readers
}

/// What the matrix in `docs/inputs.md` says.
#[test]
fn an_object_that_fails_to_be_read_ends_the_run_in_every_reader() {
    std::thread::scope(|scope| {
        for (name, bytes, arguments) in readers() {
            scope.spawn(move || {
                let (store, place) = (Store::start(), Place::new());
                let path = format!("bucket/feed/{name}");
                store.put(&path, bytes);
                store.put("bucket/feed/z.jsonl", upsert("last", &text(8)));
                place.file("new.jsonl", upsert("new", &text(8)));
                place.file("asked", text(8));
                place.file("list", format!("s3://{path}\n"));
                let arguments = arguments.replace('@', &format!("s3://{path}"));
                let whole = run(&place, &store, &arguments);
                assert!(whole.code == 0 && whole.out.contains("d8"), "{name}: {whole:?}");
                for fault in Fault::ALL {
                    store.fault(Some((&path, fault)));
                    let ended = run(&place, &store, &arguments);
                    if fault.passes() {
                        assert_eq!((ended.code, &ended.out), (0, &whole.out), "{name}, {fault:?}: {ended:?}");
                        continue;
                    }
                    let is_said = ended
                        .err
                        .lines()
                        .any(|line| !line.contains("WARN") && line.contains(&format!("s3://{path}")));
                    assert!(ended.code == 1 && is_said, "{name}, {fault:?}: {ended:?}");
                    let says = match fault {
                        Fault::Changed | Fault::Replaced | Fault::Shortened => {
                            "has changed while it was read"
                        }
                        Fault::Deleted => "was deleted while it was read",
                        Fault::Forbidden => "AccessDenied",
                        Fault::Expired => "ExpiredToken",
                        _ => "of its",
                    };
                    assert!(ended.err.contains(says), "{name}, {fault:?}: {}", ended.err);
                }
            });
        }
    });
}

/// The pairs of deltas, added up.
fn pairs(place: &Place, name: &str) -> Vec<String> {
    let mut live = std::collections::BTreeMap::new();
    for line in super::feeds::lines(&place.read(name)) {
        *live.entry(format!("{} {}", line["a"], line["b"])).or_insert(0) += line["diff"].as_i64().unwrap();
    }
    live.into_iter().filter(|(_, diffs)| *diffs != 0).map(|(pair, _)| pair).collect()
}

#[test]
fn a_run_goes_on_where_an_object_failed_to_be_read() {
    let (store, place) = (Store::start(), Place::new());
    let few = |begin: &str, numbers: std::ops::Range<u32>| {
        numbers.map(|number| upsert(&format!("{begin}{number}"), &text(number))).collect::<String>()
    };
    store.put("bucket/run/a.jsonl", few("a", 0..20));
    store.put("bucket/run/b.jsonl", lines());
    store.put("bucket/run/c.jsonl", few("c", 0..20));
    let configured = |name: &str, state: &str| {
        let text = format!(
            "[source]\nkind = \"files\"\ninputs = [\"s3://bucket/run/\"]\nepoch = \"events:5\"\n\
             [sink]\nkind = \"lines\"\npath = \"{name}.jsonl\"\n{state}"
        );
        place.file(format!("{name}.toml"), text);
    };
    configured("fresh", "");
    assert_eq!(run(&place, &store, "run -c fresh.toml").code, 0);
    let right = pairs(&place, "fresh.jsonl");
    assert!(right.len() > 20);
    for fault in Fault::ALL.into_iter().filter(|fault| !fault.passes()) {
        for (kind, state) in [("kept", format!("[state]\npath = \"{fault:?}\"\n")), ("read", String::new())] {
            let name = format!("{kind}-{fault:?}");
            configured(&name, &state);
            store.fault(Some(("bucket/run/b.jsonl", fault)));
            let broken = run(&place, &store, &format!("run -c {name}.toml"));
            assert!(broken.code == 1 && broken.err.contains("s3://bucket/run/b.jsonl"), "{name}: {broken:?}");
            store.fault(None);
            let whole = run(&place, &store, &format!("run -c {name}.toml"));
            assert_eq!(
                (whole.code, pairs(&place, &format!("{name}.jsonl"))),
                (0, right.clone()),
                "{whole:?}"
            );
        }
    }
}

#[test]
fn an_empty_object_marks_a_folder_and_a_bucket_is_one() {
    let (store, place) = (Store::start(), Place::new());
    store.put("bucket/feed", "");
    store.put("bucket/feed/a.jsonl", upsert("a", &text(1)));
    store.put("bucket/empty.jsonl", "");
    store.put("bucket/feed/sub/b c%20d?e#f.jsonl", upsert("b", &text(2)));
    for (address, documents) in [
        ("s3://bucket/feed", 2),
        ("s3://bucket/feed/", 2),
        ("s3://bucket", 2),
        ("s3://bucket/", 2),
        ("s3://bucket/empty.jsonl", 0),
        ("s3://bucket/feed/a.jsonl", 1),
    ] {
        let read = run(&place, &store, &format!("replay --emit documents {address}"));
        assert_eq!((read.code, read.out.lines().count()), (0, documents), "{address}: {read:?}");
    }
    let none = run(&place, &store, "replay --emit documents s3://bucket/fee");
    assert!(none.code == 2 && none.err.contains("no object matches \"s3://bucket/fee\""), "{none:?}");
}

#[test]
fn the_query_of_a_web_address_is_sent_and_its_secrets_are_not_shown() {
    let (store, place) = (Store::start(), Place::new());
    let signed = "version=2&X-Amz-Signature=abcdef0123456789";
    store.put("a.csv", format!("id,text\nfirst,{}\n", text(1)));
    store.put(&format!("a.csv?{signed}"), format!("id,text\nsecond,{}\n", text(2)));
    let address = format!("{}/a.csv", store.address());
    for (query, id) in [("", "first"), (&*format!("?{signed}"), "second")] {
        let read = run(&place, &store, &format!("replay --emit documents {address}{query}"));
        assert!(read.code == 0 && read.out.contains(&format!("{id},")), "{read:?}");
    }
    assert!(store.requests().iter().any(|request| *request == format!("GET /a.csv?{signed}")));
    // The name has what is no secret; the state and the output have that name.
    place.file(
        "run.toml",
        format!(
            "[source]\nkind = \"files\"\ninputs = [\"{address}?{signed}\"]\n[sink]\nkind = \"lines\"\n\
             path = \"out.jsonl\"\n[state]\npath = \"state\"\n"
        ),
    );
    let ran = run(&place, &store, "run -c run.toml");
    assert_eq!(ran.code, 0, "{ran:?}");
    let mark = place.read("out.jsonl.mark");
    assert!(mark.contains("a.csv?version=2\""), "{mark}");
    for file in walkdir::WalkDir::new(place.path("")).into_iter().map(Result::unwrap) {
        let is_settings = !file.file_type().is_file() || file.file_name() == "run.toml";
        let bytes = if is_settings { Vec::new() } else { std::fs::read(file.path()).unwrap() };
        assert!(!bytes.windows(6).any(|six| six == b"abcdef"), "{:?}", file.path());
    }
    assert!(!ran.err.contains("abcdef"), "{ran:?}");
    for wrong in [format!("{address}?X-Amz-Signature=abcdef0123456789&a"), format!("{address}?{signed}")] {
        store.fault(Some(("a.csv", Fault::Forbidden)));
        run(&place, &store, &format!("replay {address}"));
        let refused = run(&place, &store, &format!("replay {wrong}"));
        assert!(refused.code != 0 && refused.err.contains("/a.csv"), "{refused:?}");
        assert!(!format!("{refused:?}").contains("abcdef"), "{refused:?}");
        store.fault(None);
    }
}

#[test]
fn the_key_of_a_state_is_literal() {
    let (store, place) = (Store::start(), Place::new());
    place.file("a.jsonl", upsert("a", &text(1)));
    let key = "s p/%20?#+日本";
    place.file(
        "run.toml",
        format!(
            "[source]\nkind = \"files\"\ninputs = [\"a.jsonl\"]\n[sink]\nkind = \"lines\"\n\
             path = \"out.jsonl\"\n[state]\npath = \"s3://bucket/{key}\"\n"
        ),
    );
    let ran = run(&place, &store, "run -c run.toml");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        store.get(&format!("bucket/{key}/manifest-0000000000000001")).is_some(),
        "{:?}",
        store.requests()
    );
}
