//! `--emit documents` and `removed-documents`: the records themselves, against the lists of `keep` and
//! `remove`.
//!
//! Bug classes: a record that is changed, lost, doubled or moved; the record of a replaced version; an output
//! that is there after a failure; an input that changes between the two passes; a mark that disagrees with
//! the lists.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::dupflow::{Place, command};
use super::feeds::{delete, lines, words};

/// Documents with further members, in no order of ids; copies, near copies, updates and a delete. Lines have
/// blanks, blank lines between them, and the last one has no end.
fn feed() -> String {
    let mut feed = "\u{feff}".to_owned();
    for n in (0..30).rev() {
        // Five texts, each with edits of up to two words.
        let text = words((0..60).map(|word| 1000 * (n / 6) + if word < n % 3 { 100 + n } else { word }));
        feed +=
            &format!("{{\"id\": \"d{n:02}\" , \"n\":{n}, \"text\":\"{text}\", \"tags\":[\"日\", null]}}\n");
        if n % 7 == 0 {
            feed += "\n  \r\n";
        }
    }
    feed += &delete("d05");
    // The place of d01 is now here.
    feed += &format!("{{\"id\":\"d01\",\"text\":\"{}\"}}\r\n", words(500..600));
    feed + &format!("{{\"id\":\"last\",\"text\":\"{}\"}}", words(700..800))
}

/// The ids of a list.
fn ids(place: &Place, emit: &str, input: &str) -> BTreeSet<String> {
    place.replay(&format!("--emit {emit} {input} -o list.jsonl"));
    lines(&place.read("list.jsonl")).iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

fn id(line: &str) -> String {
    let line: Value = serde_json::from_str(line.trim_start_matches('\u{feff}')).unwrap();
    line["id"].as_str().unwrap().to_owned()
}

/// The lines of the feed that hold its live documents.
fn live_lines(feed: &str) -> Vec<&str> {
    let all = feed.trim_start_matches('\u{feff}').split_inclusive('\n');
    let all: Vec<_> = all.filter(|line| !line.trim().is_empty()).collect();
    let mut last = BTreeMap::new();
    for (n, line) in all.iter().enumerate() {
        last.insert(id(line), n);
    }
    let is_last = |(n, line): &(usize, &&str)| last[&id(line)] == *n && !line.contains("\"op\"");
    all.iter().enumerate().filter(is_last).map(|(_, line)| *line).collect()
}

#[test]
fn records_are_those_of_the_lists_byte_for_byte() {
    let place = Place::new();
    let feed = feed();
    place.file("feed.jsonl", &feed);
    let live = live_lines(&feed);
    for (emit, list) in [("documents", "keep"), ("removed-documents", "remove")] {
        let listed = ids(&place, list, "feed.jsonl");
        assert!(listed.len() > 3, "{listed:?}");
        let chosen = live.iter().filter(|line| listed.contains(&id(line)));
        let expected: String = chosen.map(|line| format!("{}\n", line.trim_end_matches('\n'))).collect();
        for set in ["--workers 1", "--workers 3 --epoch events:4", "--epoch events:1 --memory 64MiB"] {
            let (_, stats) = place.replay(&format!("--emit {emit} {set} feed.jsonl -o out.jsonl"));
            assert_eq!(place.read("out.jsonl"), expected, "{emit} {set}");
            let copied = &stats["copied"];
            assert_eq!(copied["records"], listed.len(), "{copied}");
            assert_eq!(copied["left_out"], live.len() - listed.len(), "{copied}");
            // A delete, and two lines of d01 and d05 that are replaced.
            assert_eq!((&copied["without_document"], &copied["files"]), (&3.into(), &1.into()), "{copied}");
        }
        let streamed = place.run(&format!("replay --emit {emit} feed.jsonl"));
        assert_eq!((streamed.code, streamed.out), (0, expected));
    }
}

fn unzipped(place: &Place, name: &str) -> String {
    let mut text = String::new();
    let stored = std::fs::File::open(place.path(name)).unwrap();
    flate2::read::MultiGzDecoder::new(stored).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn files_are_those_of_the_input() {
    let place = Place::new();
    let feed = feed();
    let feed = feed.trim_start_matches('\u{feff}');
    let at = feed.match_indices('\n').nth(12).unwrap().0 + 1;
    let (one, two) = feed.split_at(at);
    place.file("in/a/one.jsonl", one);
    let mut packed = flate2::read::GzEncoder::new(two.as_bytes(), flate2::Compression::fast());
    let mut gzipped = Vec::new();
    packed.read_to_end(&mut gzipped).unwrap();
    place.file("in/two.jsonl.gz", gzipped);
    place.file("in/z.jsonl", "");
    place.replay("--emit documents --ids last in -o whole.jsonl");
    let whole = place.read("whole.jsonl");
    place.replay("--emit documents --ids last in -o out/");
    let parts =
        [place.read("out/a/one.jsonl"), unzipped(&place, "out/two.jsonl.gz"), place.read("out/z.jsonl")];
    assert_eq!(parts.concat(), whole);
    assert!(parts[0].lines().all(|line| one.contains(line)) && !parts[0].is_empty() && parts[2].is_empty());
    // By size: every file but the last has at least the size, and its last record made it so.
    place.replay("--emit documents --ids last in --shard-size 1kB -o shards/part.jsonl.zst");
    let shard = |n: usize| std::fs::read(place.path(format!("shards/part-{n:05}.jsonl.zst"))).ok();
    let shards: Vec<_> =
        (0..).map_while(shard).map(|stored| zstd::decode_all(&stored[..]).unwrap()).collect();
    assert!(shards.len() > 2);
    assert_eq!(shards.concat(), whole.as_bytes());
    for full in &shards[..shards.len() - 1] {
        let last = full[..full.len() - 1].rsplit(|byte| *byte == b'\n').next().unwrap();
        assert!(full.len() >= 1000 && full.len() - last.len() - 1 < 1000, "{}", full.len());
    }
}

#[test]
fn rows_of_tables_keep_their_columns() {
    let place = Place::new();
    let text = words(0..40);
    let other = words(90..140);
    let header = "n,text,id,\"a,b\"\r\n";
    let kept = [format!("1,\"{text}\",a,\"x\r\ny\"\r\n"), format!("2,{other},c,\r\n")];
    let removed = format!("3,{text},\"b\",\"\"\r\n");
    place.file("t.csv", [header, &kept[0], "\r\n", &removed, &kept[1]].concat());
    place.replay("--emit documents t.csv -o kept.csv");
    assert_eq!(place.read("kept.csv"), format!("{header}{}{}", kept[0], kept[1]));
    place.replay("--emit removed-documents t.csv -o removed.csv");
    assert_eq!(place.read("removed.csv"), format!("{header}{removed}"));
    place.replay("--emit documents --mark m t.csv -o marked.csv");
    let marked = place.read("marked.csv");
    assert!(marked.starts_with("n,text,id,\"a,b\",m_cluster,m_kept,m_of\r\n"), "{marked}");
    for row in ["\"x\r\ny\",a,true,\r\n", "b\",\"\",a,false,a\r\n", "c,,,true,\r\n"] {
        assert!(marked.contains(row), "{row} in {marked}");
    }
}

#[test]
fn marks_are_those_of_the_lists() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let keep = ids(&place, "keep", "feed.jsonl");
    place.replay("--emit remove feed.jsonl -o remove.jsonl");
    let removed = lines(&place.read("remove.jsonl"));
    let removed: BTreeMap<_, _> = removed.iter().map(|row| (row["id"].as_str().unwrap(), row)).collect();
    place.replay("--emit documents --mark dup feed.jsonl -o out.jsonl");
    let rows = lines(&place.read("out.jsonl"));
    assert_eq!(rows.len(), keep.len() + removed.len());
    for row in rows {
        let id = row["id"].as_str().unwrap();
        assert_eq!(row["dup_kept"], keep.contains(id), "{row}");
        match removed.get(id) {
            Some(of) => assert_eq!((&row["dup_cluster"], &row["dup_of"]), (&of["cluster"], &of["kept"])),
            None => {
                let mut clusters = removed.values().filter(|of| of["kept"] == id).map(|of| &of["cluster"]);
                let cluster = clusters.next_back().cloned().unwrap_or_default();
                assert_eq!((&row["dup_cluster"], &row["dup_of"]), (&cluster, &Value::Null), "{row}");
            }
        }
    }
    let failed = place.run("replay --emit documents --mark dup out.jsonl -o again.jsonl");
    assert_eq!(failed.code, 1);
    assert!(failed.err.contains("there is a column \"dup_cluster\" already"), "{}", failed.err);
    assert!(!place.path("again.jsonl").exists());
}

/// Regression: a mark that ended with the escape of the table joined it with the next cell.
#[test]
fn marks_are_escaped_as_their_table_is() {
    let place = Place::new();
    let table = "id,text\n\"a,1\\\\\",same words here ok\nb,same words here ok\nc,other\n";
    place.file("x.csv", table);
    place.replay("--csv-escape \\ --emit documents --mark m x.csv -o m.csv");
    let marked = place.read("m.csv");
    let mut reader =
        csv::ReaderBuilder::new().escape(Some(b'\\')).from_reader(marked.as_bytes()).into_records();
    let rows: Vec<Vec<String>> =
        reader.by_ref().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    assert_eq!(rows[0], ["a,1\\", "same words here ok", "a,1\\", "true", ""]);
    assert_eq!(rows[1], ["b", "same words here ok", "a,1\\", "false", "a,1\\"]);
    let (again, stats) = place.replay("--csv-escape \\ --emit keep m.csv");
    assert_eq!((again.out.lines().count(), &stats["documents"]), (2, &serde_json::json!(3)));
}

#[test]
fn archives_keep_whole_records() {
    let place = Place::new();
    let record = |kind: &str, id: &str, block: &str| {
        let length = block.len();
        let head =
            format!("WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{id}>\r\nX-Own: 日\r\n");
        format!("{head}Content-Length: {length}\r\n\r\n{block}\r\n\r\n")
    };
    let (text, other) = (words(0..60), words(100..160));
    let records = [
        record("warcinfo", "i", "a: b"),
        record("conversion", "b", &text),
        record("conversion", "a", &text),
        record("conversion", "c", &other),
    ];
    place.file("a.wet", records.concat());
    place.replay("--emit documents a.wet -o kept.wet.gz");
    assert_eq!(unzipped(&place, "kept.wet.gz"), records[2].clone() + &records[3]);
    // Each record is a member of its own.
    let stored = std::fs::read(place.path("kept.wet.gz")).unwrap();
    let members = stored.windows(3).filter(|at| *at == [0x1f, 0x8b, 8]).count();
    assert!(members >= 2, "{members}");
    assert_eq!(ids(&place, "keep", "kept.wet.gz"), BTreeSet::from(["a".to_owned(), "c".to_owned()]));
}

#[cfg(unix)]
#[test]
fn what_cannot_be_copied_is_refused_before_the_run() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    place.file("t.csv", "id,text\na,b c d\n");
    place.file("texts/a.txt", "some text");
    place.file("full/x", "");
    place.file("a.wet", "WARC/1.0\r\n");
    place.file("in/feed.jsonl", feed());
    place.file("own.toml", "");
    place.file("h", "localhost:1\nlocalhost:2\n");
    std::os::unix::fs::symlink("in/feed.jsonl", place.path("link.jsonl")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    for (arguments, what) in [
        ("-", "standard input cannot be read twice"),
        ("texts", "it is one document and has no records"),
        ("feed.jsonl t.csv -o both.jsonl", "\"feed.jsonl\" is jsonl and \"t.csv\" is csv: name a folder"),
        ("feed.jsonl -o full/", "the folder \"full/\" is not empty"),
        ("feed.jsonl -o feed.jsonl", "is an input and would be lost"),
        ("feed.jsonl feed.jsonl -o out/", "is named twice"),
        ("feed.jsonl -o out/ --shard-size 1MB", "name the files in the folder"),
        ("feed.jsonl --shard-size 1G", "expected a size, as in"),
        ("feed.jsonl --mark a,b", "letters, digits and underscores"),
        ("feed.jsonl --output-format csv", "records are written in the format of their input"),
        ("feed.jsonl --provenance", "records are written as they were read"),
        ("a.wet --mark m", "is a web archive, whose records have no columns"),
        ("in -o in/clean/", "is in the folder \"in\", whose files are read"),
        ("in/feed.jsonl -o link.jsonl", "is an input and would be lost"),
        ("pipe", "it is a pipe or a device, which cannot be read twice"),
        ("--against t.csv feed.jsonl -o t.csv", "is an input and would be lost"),
        ("feed.jsonl -o nowhere/out.jsonl", "cannot be written"),
        ("feed.jsonl -o nowhere/out/", "there is no folder \"nowhere\""),
        ("-p own.toml feed.jsonl -o own.toml", "which is read, and would be lost"),
        ("feed.jsonl --stats out.jsonl -o out.jsonl", "is written to by"),
        ("feed.jsonl --processes 2 --process 0 --hosts h", "records are copied by one process"),
    ] {
        let ended = place.run(&format!("replay --emit documents {arguments}"));
        assert_eq!(ended.code, 2, "{arguments}: {ended:?}");
        assert!(ended.err.contains(what), "{arguments}: {}", ended.err);
    }
    for arguments in ["--mark m", "--shard-size 1MB", "--emit keep --mark m"] {
        let ended = place.run(&format!("replay {arguments} feed.jsonl -o x.jsonl"));
        assert!(ended.code == 2 && ended.err.contains("has an effect with --emit documents"), "{ended:?}");
    }
    assert!(!place.path("out").exists() && !place.path("x.jsonl").exists());
}

/// A bad record fails the copy as it fails a list, and no file is left.
#[test]
fn a_failed_run_leaves_nothing() {
    let place = Place::new();
    place.file("in/feed.jsonl", feed() + "\nnot json\n");
    let ended = place.run("replay --emit documents in -o out/");
    assert_eq!(ended.code, 1, "{ended:?}");
    let entries: Vec<_> =
        std::fs::read_dir(place.path(".")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(entries, ["in"]);
    place.replay("--emit documents --max-bad 0.5 in -o out/");
    assert!(!place.read("out/feed.jsonl").contains("not json"));
}

/// A full disk fails the run; a reader that has read enough does not.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure_and_a_closed_pipe_is_none() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let ended = place.run("replay --emit removed-documents feed.jsonl -o /dev/full");
    assert!(ended.code == 1 && ended.err.contains("No space left on device"), "{ended:?}");
    let many: String = (0..3000).map(|n| format!("{{\"id\":\"{n}\",\"text\":\"w{n}\"}}\n")).collect();
    place.file("many.jsonl", many);
    let mut child = command(["replay", "--quiet", "--emit", "documents", "many.jsonl"]);
    child.current_dir(place.path(".")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    drop(child.stdout.take());
    let closed = child.wait_with_output().unwrap();
    assert_eq!((closed.status.code(), String::from_utf8(closed.stderr).unwrap()), (Some(0), String::new()));
}
