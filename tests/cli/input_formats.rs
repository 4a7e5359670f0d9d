//! Formats that were refused before: ARC, WACZ, JSON arrays, Arrow files and streams, by name, in folders and
//! through standard input.
//!
//! Bug classes: a record that is lost or read twice; ids that lose digits; a file that is cut and taken for
//! whole; what is named by one place and not found in another.

use std::process::Command;

use crate::dupflow::{Place, ended};
use crate::feeds::{gzip, upsert};

const TEXT: &str = "the old bridge over the river will be closed in May";

/// Two documents, and the list to keep of them.
const IDS: &str = "{\"id\":\"1795471234567890177\"}\n{\"id\":\"b\"}\n";

fn array() -> String {
    format!(
        "\u{feff}[\n {{\"id\": 1795471234567890177,\n \"text\": \"{TEXT}\"}},\n \
         {{\"id\":\"b\",\"text\":\"日本 b\"}}\n]\n"
    )
}

/// A file by its name, without one, compressed, in a folder, and through standard input gives one list.
fn is_read_everywhere(name: &str, bytes: &[u8], options: &str, expected: &str) {
    let place = Place::new();
    place.file(name, bytes);
    place.file(format!("in/{name}"), bytes);
    place.file("unnamed/x", bytes);
    place.file("x.gz", gzip(bytes));
    let inputs = [name, "in", "x.gz", if name.ends_with("json") { name } else { "unnamed" }];
    for input in inputs {
        let run = place.run(&format!("replay -q --emit keep {options}{input}"));
        assert_eq!((run.code, &*run.out), (0, expected), "{name}, {input}: {run:?}");
    }
    let run = place.run_with(&format!("replay -q --emit keep {options}-"), |input| {
        input.write_all(bytes).unwrap();
    });
    assert_eq!((run.code, &*run.out), (0, expected), "{name}: {run:?}");
    // What is cut is said, and lists fail.
    place.file(name, &bytes[..bytes.len() - bytes.len() / 4]);
    let run = place.run(&format!("replay -q --emit keep {options}{name}"));
    assert_eq!((run.code, &*run.out), (if run.code == 2 { 2 } else { 1 }, ""), "{name}: {run:?}");
}

#[test]
fn an_array_is_records() {
    is_read_everywhere("a.json", array().as_bytes(), "", IDS);
    let place = Place::new();
    place.file("bad.json", format!("[{}, 5,\n{{\"id\":\"z\"}}]", upsert("a", TEXT).trim()));
    let (run, stats) = place.replay("--emit pairs bad.json");
    assert_eq!((run.code, stats["documents"].as_u64()), (0, Some(1)), "{run:?}");
    assert!(run.err.contains("bad         2 records: "), "{run:?}");
    place.file("lines.jsonl", upsert("a", TEXT));
    let run = place.run("replay --format json lines.jsonl");
    assert!(run.code == 2 && run.err.contains("leave --format out"), "{run:?}");
    // A dry run says what the run does.
    place.file("in/a.json", array());
    let run = place.run("replay --dry-run in");
    assert!(run.code == 0 && run.out.contains("1795471234567890177"), "{run:?}");
    // Copies are lines, with all digits.
    place.file("a.json", array());
    let run = place.run("replay -q --emit documents a.json -o out.jsonl");
    assert_eq!(run.code, 0, "{run:?}");
    let written = std::fs::read_to_string(place.path("out.jsonl")).unwrap();
    assert!(written.lines().count() == 2 && written.contains("1795471234567890177"), "{written}");
}

#[test]
fn archives_in_arc_are_records() {
    let page = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><p>{TEXT}</html>");
    let version = "1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n";
    let record = |address: &str, kind: &str, block: &str| {
        format!("{address} 1.2.3.4 20060101000000 {kind} {}\n{block}\n", block.len())
    };
    let arc = record("filedesc://x.arc", "text/plain", version)
        + &record("http://example.com/a", "text/html", &page)
        + &record("dns:example.com", "text/dns", "example.com. 1 IN A 1.2.3.4")
        + &record("http://example.com/b", "text/html", &page.replace("bridge", "road and another text"));
    let expected = "{\"id\":\"http://example.com/a\"}\n{\"id\":\"http://example.com/b\"}\n";
    is_read_everywhere("x.arc", arc.as_bytes(), "--warc-id uri ", expected);
}

#[test]
fn collections_of_archives_are_records() {
    let place = Place::new();
    assert_eq!(place.run("generate --documents 3 -o w.warc.gz").code, 0);
    place.file("archive/w.warc.gz", std::fs::read(place.path("w.warc.gz")).unwrap());
    place.file("indexes/a.cdx", "x");
    let pack = ["-m", "zipfile", "-c", "x.wacz", "indexes/", "archive/"];
    let is_packed = Command::new("python3").args(pack).current_dir(place.path("")).output();
    if !is_packed.is_ok_and(|packed| ended(packed).code == 0) {
        println!("SKIPPED: WACZ: there is no python3 that packs one");
        return;
    }
    let expected = place.run("replay -q --emit keep w.warc.gz").out;
    assert_eq!(expected.lines().count(), 3);
    let bytes = std::fs::read(place.path("x.wacz")).unwrap();
    is_read_everywhere("x.wacz", &bytes, "", &expected);
}

/// As this program writes them, and where the machine has them as polars and pyarrow do.
#[cfg(feature = "arrow")]
#[test]
fn arrow_files_and_streams_are_records() {
    let place = Place::new();
    let made = [
        (
            "polars",
            "import polars as p;p.DataFrame({'id':['1795471234567890177','b'],'text':['one two','three'],\
             'lang':['en',None]},schema={'id':p.String,'text':p.String,'lang':p.Categorical})\
             .write_ipc('x.arrow',compression='zstd')",
        ),
        (
            "pyarrow",
            "import pyarrow as a,pyarrow.feather as f;f.write_feather(a.table({'id':[1795471234567890177,2],\
             'text':['one two','three']}),'x.arrow',compression='lz4')",
        ),
        (
            "pyarrow",
            "import pyarrow as a;t=a.table({'id':['1795471234567890177','b'],'text':['one','two']});\
             f=open('x.arrow','wb');w=a.ipc.new_stream(f,t.schema);w.write_table(t);w.close();f.close()",
        ),
    ];
    for (module, program) in made {
        let mut python = Command::new("python3");
        let python = python.args(["-c", program]).current_dir(place.path("")).output();
        if !python.is_ok_and(|written| ended(written).code == 0) {
            println!("SKIPPED: Arrow of {module}: python3 has no such module");
            continue;
        }
        let bytes = std::fs::read(place.path("x.arrow")).unwrap();
        let second = if program.contains(",2]") { "2" } else { "b" };
        is_read_everywhere("x.arrow", &bytes, "", &IDS.replace("\"b\"", &format!("\"{second}\"")));
    }
}

/// In a folder, with a state: what could not be opened is read from its first record on once it is whole.
#[test]
fn a_file_that_could_not_be_opened_loses_nothing_once_it_is_whole() {
    let whole = Place::new();
    assert_eq!(whole.run("generate --documents 10 -o w.warc.gz").code, 0);
    whole.file("archive/w.warc.gz", std::fs::read(whole.path("w.warc.gz")).unwrap());
    let pack = ["-m", "zipfile", "-c", "a.wacz", "archive/"];
    let packed = Command::new("python3").args(pack).current_dir(whole.path("")).output();
    if !packed.is_ok_and(|packed| ended(packed).code == 0) {
        println!("SKIPPED: WACZ: there is no python3 that packs one");
        return;
    }
    let bytes = std::fs::read(whole.path("a.wacz")).unwrap();
    for begun in [&bytes[..0], &bytes[..bytes.len() / 2]] {
        let place = Place::new();
        place.file("in/0.jsonl", upsert("first", TEXT));
        place.file(
            "here.toml",
            "source.inputs = [\"in\"]\nsource.max_unread = 5\nsink.path = \"out\"\nstate.path = \"state\"\n",
        );
        place.file("in/a.wacz", begun);
        let run = place.run("run -c here.toml");
        assert!(run.code == 0 && run.err.contains("documents   1 alive"), "{run:?}");
        place.file("in/a.wacz", &bytes);
        let run = place.run("run -c here.toml");
        assert!(run.code == 0 && run.err.contains("documents   11 alive"), "{run:?}");
    }
}

/// A missing column is said before anything runs, as of Parquet; a file that was joined is not taken for its
/// first part.
#[cfg(feature = "arrow")]
#[test]
fn arrow_files_are_looked_at_before_the_start() {
    let place = Place::new();
    place.file("feed.jsonl", upsert("a", TEXT) + &upsert("b", TEXT));
    assert_eq!(place.run("replay -q --emit pairs -o rows.arrow feed.jsonl").code, 0);
    let run = place.run("replay --emit keep rows.arrow");
    assert!(run.code == 2 && run.err.contains("no column \"text\" among \"a\", \"b\""), "{run:?}");
    let bytes = std::fs::read(place.path("rows.arrow")).unwrap();
    place.file("rows.arrow", [&bytes[..], &bytes].concat());
    let run = place.run("replay --emit keep --id-field a --text-field b rows.arrow");
    assert!(run.code == 2 && run.err.contains("files that were joined"), "{run:?}");
    let run = place.run("generate --documents 3 -o x.arrow");
    assert!(run.code == 2 && run.err.contains("is arrow by its name, which is not generated"), "{run:?}");
}
