//! Unsupported and damaged inputs: refused before the start with a command that helps, or an error at the
//! end. Lists are never empty by mistake.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::io::Write;

use crate::dupflow::Place;
use crate::feeds::{gzip, page, upsert};

/// A file: its name, its bytes, additional arguments, and a part of the expected message.
type Case = (&'static str, Vec<u8>, &'static str, &'static str);

fn utf16(text: &str, with_mark: bool) -> Vec<u8> {
    let units = text.encode_utf16().collect::<Vec<_>>();
    let mark = with_mark.then_some(0xfeff);
    mark.into_iter().chain(units).flat_map(u16::to_le_bytes).collect()
}

/// Magic bytes, followed by other bytes.
fn magic(bytes: &[u8]) -> Vec<u8> {
    [bytes, &[0x00, 0x01, 0x02, 0xf0, 0x9f, 0x00, 0x00, 0x10].repeat(8)].concat()
}

/// Inputs in unsupported formats.
fn refused() -> Vec<Case> {
    let line = upsert("a", "a text");
    let mut tar = vec![0; 512];
    tar[..6].copy_from_slice(b"a.json");
    tar[257..262].copy_from_slice(b"ustar");
    tar[148..156].copy_from_slice(b"        ");
    let sum = format!("{:06o}\0 ", tar.iter().map(|byte| u32::from(*byte)).sum::<u32>());
    tar[148..156].copy_from_slice(sum.as_bytes());
    vec![
        (
            "a.jsonl.xz",
            magic(b"\xfd7zXZ\0"),
            "",
            "compressed with xz, which is not read: xz -dc NAME | dupflow replay -",
        ),
        ("a.csv.bz2", magic(b"BZh91AY&SY"), "", "bzip2 -dc NAME | dupflow replay --format csv -"),
        ("a.jsonl.lz4", magic(b"\x04\x22\x4d\x18"), "", "lz4 -dc NAME | dupflow replay -"),
        (
            "a.zip",
            magic(b"PK\x03\x04"),
            "",
            "a zip archive, which is not read: unpack it into a folder, and name that: \
             unzip -q NAME -d FOLDER",
        ),
        ("a.jsonl.7z", magic(b"7z\xbc\xaf\x27\x1c"), "", "7z x -oFOLDER NAME"),
        ("a.tar", tar.clone(), "", "a tar archive, which is not read: unpack it into a folder"),
        ("a.tar.gz", gzip(&tar), "", "a tar archive, which is not read: unpack it into a folder"),
        ("a.feather", magic(b"FEA1"), "", "a Feather file, which is not read: write it as Parquet"),
        ("x.csv", magic(b"ARROW1\0\0"), "--format csv ", "an Arrow file or stream, and is to be read as csv"),
        ("a.orc", magic(b"ORC"), "", "an ORC file, which is not read: write it as Parquet"),
        (
            "a.avro",
            magic(b"Obj\x01"),
            "",
            "fastavro.reader(open(sys.argv[1],\"rb\"))]' NAME | dupflow replay -",
        ),
        (
            "a.db",
            magic(b"SQLite format 3\0"),
            "",
            "an SQLite database, which is not read: read it by `dupflow run`",
        ),
        (
            "a.pdf",
            b"%PDF-1.7\n%\xe2\xe3".to_vec(),
            "",
            "a PDF file, which is not read: take its text out first",
        ),
        (
            "pointer.parquet",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n".to_vec(),
            "",
            "a pointer of Git LFS and not the file itself, which is not read: get the file: git lfs pull",
        ),
        (
            "array.json",
            format!("[{}]", line.trim()).into_bytes(),
            "--format jsonl ",
            "a JSON array, and is to be read as jsonl: leave --format out",
        ),
        (
            "pretty.jsonl",
            b"{\n  \"id\": \"a\",\n  \"text\": \"t\"\n}\n{\n  \"id\": \"b\"\n}\n".to_vec(),
            "",
            "JSON over several lines, not an object a line, which is not read: python3 -c \
             'import sys,json,re;",
        ),
        (
            "wide.jsonl",
            utf16(&line, true),
            "",
            "UTF-16, not UTF-8, which is not read: iconv -f UTF-16 -t UTF-8 NAME | dupflow replay -",
        ),
        (
            "wide.csv",
            utf16("id,text\na,t\n", false),
            "--format csv ",
            "iconv -f UTF-16LE -t UTF-8 NAME | dupflow replay --format csv -",
        ),
        ("page.jsonl", b"\n<!DOCTYPE html><title>404".to_vec(), "", "a web page, and is to be read as jsonl"),
        (
            "twice.jsonl.gz",
            gzip(&gzip(line.as_bytes())),
            "",
            "compressed twice: zcat NAME | dupflow replay -",
        ),
        (
            "lines.jsonl",
            line.clone().into_bytes(),
            "--format parquet ",
            "no Parquet file, which begins with PAR1: it begins as JSON Lines do, leave --format out",
        ),
        ("empty.parquet", Vec::new(), "--format parquet ", "it is empty, which no Parquet file is"),
    ]
}

/// As a file and through standard input: exit code 2, the command that helps, and no list.
#[test]
fn foreign_bytes_are_refused_before_the_start() {
    let place = Place::new();
    place.file("good.jsonl", upsert("good", &page(0..0, 0)));
    for (name, bytes, options, message) in refused() {
        place.file(name, &bytes);
        let run = place.run(&format!("replay --emit keep -o keep.jsonl {options}good.jsonl {name}"));
        let message_of = |input: &str| message.replace("NAME", input);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{name}: {run:?}");
        assert!(run.err.contains(&format!("cannot read \"{name}\": ")), "{name}: {run:?}");
        assert!(run.err.contains(&message_of(name)), "{name}: {run:?}");
        assert!(!place.path("keep.jsonl").exists(), "{name}");

        // Standard input has no name that shows the format.
        let format = if name == "a.csv.bz2" { "--format csv " } else { options };
        let piped = place.run_with(&format!("replay --emit keep -o keep.jsonl {format}-"), |input| {
            input.write_all(&bytes).unwrap_or(());
        });
        assert_eq!(piped.code, 2, "{name}: {piped:?}");
        if name != "a.tar.gz" && !bytes.is_empty() {
            assert!(piped.err.contains("cannot read standard input: "), "{name}: {piped:?}");
        }
        assert!(piped.err.contains(&message_of("FILE")), "{name}: {piped:?}");
    }
}

/// A frame of zstd of these bytes, with a window of `2^log` bytes.
fn windowed(bytes: &[u8], log: u32) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(log).unwrap();
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap()
}

/// Up to 1 GiB they are read; above, they are neither damaged nor left out of a folder.
#[test]
fn long_windows_are_refused_before_the_start() {
    let place = Place::new();
    let feed = upsert("a", "one two three");
    place.file("good/a.jsonl", upsert("g", "another text"));
    for (name, options) in [("x.jsonl.zst", ""), ("x.csv.zst", "--format csv "), ("x", ""), ("x.txt.zst", "")]
    {
        let content = if name.contains("csv") { "id,text\na,one two three\n" } else { &feed };
        for log in [28, 30] {
            place.file(name, windowed(content.as_bytes(), log));
            assert_eq!(place.run(&format!("replay -q --emit keep {options}{name}")).code, 0, "{name}, {log}");
        }
        let long = windowed(content.as_bytes(), 31);
        place.file(name, &long);
        place.file(format!("good/{}", name.replace('x', "x.zst")), &long);
        let folder = format!("good/{}", name.replace('x', "x.zst"));
        let glob = "*.zst";
        for input in [name, "good", glob] {
            if input == glob && name == "x" {
                continue;
            }
            for emit in ["keep --max-bad 1", "pairs"] {
                let run = place.run(&format!("replay --emit {emit} -o out {input}"));
                assert_eq!(run.code, 2, "{input}: {run:?}");
                let message = "compressed with zstd in a window of 2147483648 bytes, more than 1073741824, \
                    which is not read: zstd -dc --long=31 ";
                assert!(run.err.contains(message), "{input}: {run:?}");
                assert!(!place.path("out").exists(), "{input}");
            }
        }
        std::fs::remove_file(place.path(&folder)).unwrap();
        let piped = place.run_with(&format!("replay --emit keep {options}-"), |input| {
            input.write_all(&long).unwrap_or(());
        });
        assert!(piped.code == 2 && piped.err.contains("zstd -dc --long=31 FILE | dupflow"), "{piped:?}");
        std::fs::remove_file(place.path(name)).unwrap();
    }
    // Behind the first frame it is found while the file is read.
    place.file("later.jsonl.zst", [windowed(feed.as_bytes(), 20), windowed(feed.as_bytes(), 31)].concat());
    let run = place.run("replay --emit keep --max-bad 1 later.jsonl.zst");
    assert!(run.code == 1 && run.err.contains("zstd -dc --long=31") && run.out.is_empty(), "{run:?}");
}

/// A share of records says nothing of a file that is not read, or only in part.
#[test]
fn an_unread_file_is_more_than_a_bad_record() {
    let place = Place::new();
    let lines: String = (0..200).map(|n| upsert(&format!("k{n}"), &page(n..n + 1, 0))).collect();
    place.file("in/a.jsonl", &lines);
    let other: String = (200..400).map(|n| upsert(&format!("k{n}"), &page(n..n + 1, 0))).collect();
    let cut = gzip(other.as_bytes());
    for (name, bytes) in [
        ("in/b.jsonl.gz", &cut[..cut.len() / 2]),
        ("in/b.jsonl", b"\xfd7zXZ\0\x01\x02"),
        ("in/b.parquet", b"PAR1, and no more"),
    ] {
        place.file(name, bytes);
        for input in ["in".to_owned(), "--files-from list".to_owned()] {
            place.file("list", format!("in/a.jsonl\n{name}\n"));
            let is_listed = input != "in";
            if is_listed && name != "in/b.jsonl.gz" {
                continue;
            }
            for options in ["--emit keep --max-bad 0.5", "--emit pairs --max-bad 0.9", "--emit keep"] {
                let run = place.run(&format!("replay {options} -o out {input}"));
                assert_eq!(run.code, 1, "{name}, {options}: {run:?}");
                assert!(run.err.contains("1 file is not read, or only in part"), "{name}: {run:?}");
                assert!(run.err.contains("--max-unread 1 (source.max_unread) allows"), "{name}: {run:?}");
                assert!(run.err.contains("unread      1 file"), "{name}: {run:?}");
                assert!(!place.path("out").exists(), "{name}");
            }
            let allowed = format!("--emit keep --max-bad 0.5 --max-unread 1 {input}");
            let (run, stats) = place.replay(&allowed);
            assert!(run.code == 0 && stats["documents"].as_u64() >= Some(200), "{name}: {run:?}");
        }
        let (run, stats) = place.replay("--emit pairs in");
        assert!(run.err.contains("unread      1 file"), "{name}: {run:?}");
        assert_eq!(stats["unread_files"], 1, "{name}");
        let none = place.run("replay --emit pairs --max-unread 0 in");
        assert_eq!(none.code, 1, "{none:?}");
        std::fs::remove_file(place.path(name)).unwrap();
    }
    place.file("in/b.jsonl", "oops\n");
    let run = place.run("replay -q --emit keep --max-bad 0.5 in");
    assert_eq!(run.code, 0, "a bad line is a record: {run:?}");
    let settings = "source.inputs = [\"in\"]\nsink.emit = \"keep\"\nsink.path = \"kept\"\n";
    place.file("in/b.jsonl", b"\xfd7zXZ\0\x01\x02");
    for (more, code) in [("source.max_bad = 0.5\n", 1), ("source.max_bad = 0.5\nsource.max_unread = 1\n", 0)]
    {
        place.file("here.toml", format!("{settings}{more}"));
        let run = place.run("run -c here.toml");
        assert_eq!(run.code, code, "{run:?}");
    }
}

/// Lists of inputs as Windows and Common Crawl write them.
#[test]
fn lists_of_inputs_may_be_compressed_or_have_a_mark() {
    let place = Place::new();
    place.file("a.jsonl", upsert("a", "one two three"));
    place.file("b.jsonl", upsert("b", "four five six"));
    let list = "\u{feff}a.jsonl\r\nb.jsonl\r\n";
    place.file("list", list);
    place.file("list.gz", gzip(list.as_bytes()));
    place.file("list.zst", zstd::encode_all(list.as_bytes(), 1).unwrap());
    for name in ["list", "list.gz", "list.zst"] {
        let run = place.run(&format!("replay -q --emit keep --files-from {name}"));
        assert_eq!(run.out, "{\"id\":\"a\"}\n{\"id\":\"b\"}\n", "{name}: {run:?}");
    }
}

/// A name that says a format which is not written.
#[test]
fn outputs_of_other_formats_are_refused_by_name() {
    let place = Place::new();
    place.file("feed.jsonl", upsert("a", "one") + &upsert("b", "two"));
    for (name, help) in [
        ("out.xlsx", "name it .csv"),
        ("out.db", "sink.kind = \"sqlite\""),
        ("out.SQLite", "sink.kind = \"sqlite\""),
        ("out.arrows", "name it .arrow"),
        ("out.xml", "name it .jsonl or .csv"),
    ] {
        for emit in ["pairs", "keep", "clusters", "deltas"] {
            let run = place.run(&format!("replay --emit {emit} -o {name} feed.jsonl"));
            assert!(run.code == 2 && run.err.contains(help), "{name}: {run:?}");
            assert!(!place.path(name).exists(), "{name}");
        }
        let records = place.run(&format!("replay --emit documents -o {name} feed.jsonl"));
        assert!(records.code == 2 && records.err.contains(name), "{name}: {records:?}");
        place.file("here.toml", format!("source.inputs = [\"feed.jsonl\"]\nsink.path = \"{name}\"\n"));
        let run = place.run("run -c here.toml");
        assert!(run.code == 2 && run.err.contains(help), "{name}: {run:?}");
        // A format that is set beside the name is meant.
        assert_eq!(
            place.run(&format!("replay --output-format jsonl -o {name} feed.jsonl")).code,
            0,
            "{name}"
        );
        std::fs::remove_file(place.path(name)).unwrap();
    }
}

/// A table on standard input has no name that says what it is.
#[test]
fn a_table_on_standard_input_is_named_as_one() {
    let piped = |options: &str| {
        Place::new().run_with(&format!("replay -q --emit keep {options}-"), |input| {
            input.write_all(b"id,text\na,one two three\n").unwrap_or(());
        })
    };
    let unnamed = piped("");
    assert!(unnamed.code == 1 && unnamed.err.contains("of a table name --format csv or tsv"), "{unnamed:?}");
    assert!(!unnamed.err.contains("allows them"), "{unnamed:?}");
    assert_eq!(piped("--format csv ").out, "{\"id\":\"a\"}\n");
}

/// In a folder such a file is one bad record, with the same message.
#[test]
fn foreign_files_of_a_folder_are_bad_records() {
    let place = Place::new();
    place.file("docs/a.txt", page(0..0, 0));
    place.file("docs/b.txt", page(0..0, 0));
    place.file("docs/c.jsonl", b"\xfd7zXZ\0\x01\x02");
    let (run, stats) = place.replay("--emit pairs docs");
    assert_eq!(run.out, "{\"a\":\"a.txt\",\"b\":\"b.txt\",\"similarity\":1.0}\n");
    assert_eq!(stats["bad_records"], serde_json::json!({ "unreadable": 1 }));
    assert!(run.err.contains("compressed with xz, which is not read: xz -dc docs/c.jsonl"), "{run:?}");
}

/// Inputs that are read and hold no document, with their messages.
fn without_documents() -> Vec<Case> {
    let line = |n: u32| format!("{{\"body\":\"text {n}\",\"key\":\"k{n}\"}}\n");
    let lines: String = (0..3).map(line).collect();
    let mut cut = zstd::encode_all(lines.as_bytes(), 1).unwrap();
    cut.truncate(10);
    let mut parquet = b"PAR1".to_vec();
    parquet.extend([7; 40]);
    parquet.extend(b"PAR1");
    let mut cases = vec![
        (
            "other.jsonl",
            lines.clone().into_bytes(),
            "",
            "\"other.jsonl\" holds 3 records and no document: bad record in \"other.jsonl\", line 1: an \
            upsert without a text \
             (missing_text): no field \"text\" among \"body\", \"key\"",
        ),
        (
            "ids.jsonl",
            lines.clone().into_bytes(),
            "--text-field body --id-field url ",
            "no id (missing_id): no field \"url\" among \"body\", \"key\"",
        ),
        (
            "nested.jsonl",
            lines.into_bytes(),
            "--text-field page.body ",
            "no field \"page.body\" among \"body\", \"key\"",
        ),
        ("rows.data", b"id,text\na,some text\n".to_vec(), "", "holds 2 records and no document"),
        ("lists.jsonl", b"[\"a\",\"t\"]\n[\"b\",\"t\"]\n".to_vec(), "", "JSON, but not an object"),
        (
            "wrapped.json",
            b"{\"data\":[{\"id\":\"a\",\"text\":\"t\"}]}\n".to_vec(),
            "",
            "no field \"text\" among \"data\"",
        ),
        ("cut.jsonl.zst", cut, "", "the input ends early or is damaged here"),
        ("noise.csv.gz", gzip(b"id,text\n\"a,open")[..20].to_vec(), "", "holds 1 record and no document"),
    ];
    if cfg!(feature = "parquet") {
        cases.push(("damaged.parquet", parquet, "", "\"damaged.parquet\" holds 1 record and no document"));
    }
    cases
}

/// For every kind of result, also beside inputs that hold documents. A list is not written, and an existing
/// one stays.
#[test]
fn an_input_without_a_document_fails_and_names_what_is_there() {
    let place = Place::new();
    place.file(
        "good.jsonl",
        "{\"id\":\"g\",\"url\":\"u\",\"text\":\"t\",\"body\":\"t\",\"page\":{\"body\":\"t\"}}\n",
    );
    for (name, bytes, options, message) in without_documents() {
        place.file(name, &bytes);
        place.file("keep.jsonl", "of before\n");
        let list =
            place.run(&format!("replay --emit keep --max-bad 1 -o keep.jsonl {options}good.jsonl {name}"));
        assert_eq!((list.code, list.out.as_str()), (1, ""), "{name}: {list:?}");
        assert!(list.err.contains(message), "{name}: {list:?}");
        assert_eq!(place.read("keep.jsonl"), "of before\n", "{name}");
        let deltas = place.run(&format!("replay --stats stats.json {options}{name}"));
        assert_eq!(deltas.code, 1, "{name}: {deltas:?}");
        assert!(place.read("stats.json").contains("\"documents\": 0"), "{name}: stats are written");
        let piped =
            place.run_with(&format!("replay {options}-"), |input| input.write_all(&bytes).unwrap_or(()));
        assert!(piped.code == 1 && piped.err.contains("\"-\" holds"), "{name}: {piped:?}");
    }
    // A delete is no document.
    let feed = upsert("a", "one") + &upsert("b", "two") + "{\"id\":\"q\",\"op\":\"delete\"}\n";
    place.file("deletes.jsonl", feed);
    let run = place.run("replay --emit pairs --text-field body deletes.jsonl");
    assert!(
        run.code == 1 && run.err.contains("\"deletes.jsonl\" holds 2 records and no document"),
        "{run:?}"
    );
    assert_eq!(place.run("replay deletes.jsonl").code, 0);
    let names: Vec<_> =
        std::fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{names:?}");
}

/// A bad record among good ones: changes are written all the same, lists are not, unless a share is allowed.
#[test]
fn bad_records_are_bounded() {
    let place = Place::new();
    let feed =
        upsert("a", &page(0..0, 0)) + "oops\n" + &upsert("b", &page(0..0, 0)) + &upsert("c", "another");
    place.file("feed.jsonl", feed);
    for emit in ["keep", "remove"] {
        for output in ["-o list.jsonl ", "-o list.csv ", ""] {
            let run = place.run(&format!("replay --emit {emit} {output}feed.jsonl"));
            assert_eq!((run.code, run.out.as_str()), (1, ""), "{emit}: {run:?}");
            let message = "1 of 4 records are bad (1 not_json; bad record in \"feed.jsonl\", line 2: not a \
                complete JSON value (not_json)), more than the allowed share of 0, and the list would leave \
                their documents out: dead letters keep them, --max-bad 0.25 (source.max_bad) allows them";
            assert!(run.err.contains(message), "{run:?}");
            assert!(!place.path("list.jsonl").exists() && !place.path("list.csv").exists());
        }
    }
    assert_eq!(
        place.run("replay --emit keep --max-bad 0.25 feed.jsonl").out,
        "{\"id\":\"a\"}\n{\"id\":\"c\"}\n"
    );
    assert_eq!(place.run("replay --emit keep --max-bad 0.25 -o list.jsonl feed.jsonl").code, 0);
    assert_eq!(place.read("list.jsonl"), "{\"id\":\"a\"}\n{\"id\":\"c\"}\n");
    assert_eq!(place.run("replay --emit keep --max-bad 0.2499 feed.jsonl").code, 1);
    let quiet = place.run("replay -q --emit keep feed.jsonl");
    assert!(quiet.err.starts_with("error: 1 of 4") && quiet.err.contains("line 2"), "{quiet:?}");
    assert_eq!(place.run("replay feed.jsonl").code, 0, "of other outputs none is bounded");
    let pairs = place.run("replay --emit pairs --max-bad 0 -o pairs.jsonl feed.jsonl");
    assert!(pairs.code == 1 && !place.path("pairs.jsonl").exists(), "{pairs:?}");
    let wrong = place.run("replay --max-bad 1.5 feed.jsonl");
    assert!(wrong.code == 2 && wrong.err.contains("expected a number from 0 to 1"), "{wrong:?}");

    let settings = "source.inputs = [\"feed.jsonl\"]\nsink.emit = \"keep\"\nsink.path = \"kept\"\n";
    place.file("here.toml", settings);
    let run = place.run("run -c here.toml");
    assert!(
        run.code == 1 && run.err.contains("1 of 4 records are bad") && !place.path("kept").exists(),
        "{run:?}"
    );
    place.file("here.toml", format!("{settings}source.max_bad = 0.25\n"));
    assert_eq!(place.run("run -c here.toml").code, 0);
    assert_eq!(place.read("kept"), "{\"id\":\"a\"}\n{\"id\":\"c\"}\n");
}

/// A Parquet file that is truncated, or compressed with an unsupported codec: its footer decides the message.
#[cfg(feature = "parquet")]
#[test]
fn parquet_that_cannot_be_read_is_refused() {
    let place = Place::new();
    assert_eq!(place.run("generate --documents 20 --format parquet -o made.parquet").code, 0);
    let made = std::fs::read(place.path("made.parquet")).unwrap();
    // The path of a column (one name), followed by its codec: 4 is Brotli, zigzag-encoded.
    let codec = b"\x19\x18\x04text\x15";
    let at = made.windows(codec.len()).rposition(|bytes| bytes == codec).unwrap() + codec.len();
    let mut brotli = made.clone();
    brotli[at] = 8;
    for (name, bytes, message) in [
        (
            "brotli.parquet",
            &brotli[..],
            "compressed with BROTLI, which is not read: write it with zstd or snappy",
        ),
        ("cut.parquet", &made[..made.len() - 9], "it ends early: a Parquet file ends with PAR1"),
        ("head.parquet", b"PAR1", "it ends early: a Parquet file ends with PAR1"),
    ] {
        place.file(name, bytes);
        let run = place.run(&format!("replay --emit keep -o keep {name}"));
        assert!(run.code == 2 && run.err.contains(message), "{name}: {run:?}");
        assert!(!place.path("keep").exists());
    }
}

/// `trace`, which reads without the dataflow, gives the same message.
#[test]
fn a_trace_of_records_without_a_document_names_their_fields() {
    let place = Place::new();
    place.file("feed.jsonl", "{\"name\":\"a\",\"body\":\"b\"}\n");
    place.file("good.jsonl", upsert("a", "a text"));
    for inputs in ["feed.jsonl", "good.jsonl feed.jsonl"] {
        let run = place.run(&format!("trace --doc a {inputs}"));
        let why = "\"feed.jsonl\" holds 1 record and no document";
        assert!(run.code == 1 && run.err.contains(why), "{run:?}");
        assert!(run.err.contains("among \"body\", \"name\"") && run.out.is_empty(), "{run:?}");
    }
    assert_eq!(place.run("trace --doc a good.jsonl").code, 0);
}
