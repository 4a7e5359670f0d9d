//! Commands that messages advise, run as they are printed. A tool that is not on this machine is skipped, and
//! named.
//!
//! Bug classes: advice that fails for the file it is printed for; advice that changes ids.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use crate::dupflow::{Ended, Place, command, ended};
use crate::feeds::upsert;

/// The command in a message: what is behind the first of these words, up to the hint that follows.
fn advised(message: &str, begins: &str) -> String {
    let at = message.find(begins).unwrap_or_else(|| panic!("no \"{begins}\" in {message}"));
    let end = [", or into a file", ", where ID and TEXT", ", where FILE is"];
    let rest = message[at..].lines().next().unwrap();
    let end = end.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    rest[..end].to_owned()
}

/// Runs a line of a shell, in which `dupflow` is this binary.
fn shell(place: &Place, line: &str) -> Ended {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_dupflow"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", binary.parent().unwrap().display());
    let mut shell = Command::new("bash");
    shell.args(["-o", "pipefail", "-c", line]).env("PATH", path).env_remove("RUST_LOG");
    ended(shell.current_dir(place.path("")).stdin(Stdio::null()).output().unwrap())
}

/// Whether a line of a shell succeeds; says what is skipped without it.
fn has(place: &Place, tool: &str, what: &str) -> bool {
    let found = shell(place, tool).code == 0;
    if !found {
        println!("SKIPPED: {what}: `{tool}` fails here");
    }
    found
}

/// What the program says of a file that it does not read.
fn refusal(place: &Place, name: &str) -> String {
    let mut run = command(["replay", "--emit", "keep", name]);
    let run = ended(run.current_dir(place.path("")).output().unwrap());
    assert_eq!(run.code, 2, "{name}: {run:?}");
    run.err
}

const IDS: &str = "{\"id\":\"1795471234567890177\"}\n{\"id\":\"1795471234567890178\"}\n";

/// Two documents whose ids are the same as doubles.
fn objects(separator: &str) -> String {
    let mut all = String::new();
    for (nth, text) in
        ["the old bridge \u{e9} \u{1f600}", "a new recipe for rye bread"].into_iter().enumerate()
    {
        let before = if nth > 0 { separator } else { "" };
        write!(
            all,
            "{before}{{\n \"id\": {},\n \"text\": \"{text}\"\n}}",
            1_795_471_234_567_890_177_u64 + nth as u64
        )
        .unwrap();
    }
    all
}

#[test]
fn arrays_and_pretty_json_keep_their_ids() {
    let place = Place::new();
    if !has(&place, "python3 -c 'import json'", "JSON") {
        return;
    }
    let array = format!("\u{feff}[{}]\n", objects(",\n"));
    place.file("array.json", &array);
    place.file("one line 'x'.json", array.replace('\n', ""));
    place.file("pretty.json", format!("\u{feff}{}\n\n", objects("\n")));
    place.file("-array.json.gz", crate::feeds::gzip(array.as_bytes()));
    place.file("pretty.jsonl.zst", zstd::encode_all(objects("").as_bytes(), 1).unwrap());
    for name in ["array.json", "one line 'x'.json", "./-array.json.gz"] {
        let mut run = command(["replay", "-q", "--emit", "keep", name]);
        let run = ended(run.current_dir(place.path("")).output().unwrap());
        assert_eq!((run.code, run.out.as_str()), (0, IDS), "{name}: {run:?}");
    }
    for name in ["pretty.json", "pretty.jsonl.zst"] {
        let message = refusal(&place, name);
        let begins =
            ["zcat", "zstdcat", "python3"].into_iter().find(|begins| message.contains(begins)).unwrap();
        let line = advised(&message, begins).replace("dupflow replay -", "dupflow replay -q --emit keep -");
        let run = shell(&place, &line);
        assert_eq!((run.code, run.out.as_str()), (0, IDS), "{name}: {line}: {run:?}");
    }
}

#[test]
fn xml_is_named_as_xml_and_its_elements_are_records() {
    let place = Place::new();
    if !has(&place, "python3 -c 'import xml.etree.ElementTree'", "XML") {
        return;
    }
    let cases = [
        (
            "posts.xml",
            "<?xml version=\"1.0\"?>\n<posts>\n  <row Id=\"1\" Body=\"a &lt;b&gt; text\" />\n  <row Id=\"2\" \
             Body=\"another one\" />\n</posts>\n",
            ("Id", "Body"),
        ),
        (
            "feed",
            "<rss xmlns:x='urn:x'><!-- a > b --><channel><title>t</title><x:item><guid>1</guid><text>one \
             <b>two</b> three</text></x:item><x:item><guid>2</guid><text>four</text></x:item></channel>\
             </rss>",
            ("guid", "text"),
        ),
        (
            "pages.json",
            "<!DOCTYPE mediawiki>\n<mediawiki xmlns=\"http://www.mediawiki.org/x\">\n<page>\n<id>1</id>\
             <revision><id>9</id><text>one</text></revision></page>\n<page><id>2</id><revision><id>8</id>\
             <text>two</text></revision></page></mediawiki>",
            ("id", "text"),
        ),
    ];
    for (name, content, (id, text)) in cases {
        for packed in [false, true] {
            let name = if packed { format!("{name}.gz") } else { name.to_owned() };
            let bytes =
                if packed { crate::feeds::gzip(content.as_bytes()) } else { content.as_bytes().to_vec() };
            place.file(&name, bytes);
            let message = refusal(&place, &name);
            assert!(message.contains("it is XML, which is not read"), "{message}");
            let line = advised(&message, if packed { "zcat" } else { "python3" });
            let line = line.replace(
                "--id-field ID --text-field TEXT",
                &format!("-q --id-field {id} --text-field {text} --emit keep"),
            );
            let run = shell(&place, &line);
            assert_eq!(
                (run.code, run.out.as_str()),
                (0, "{\"id\":\"1\"}\n{\"id\":\"2\"}\n"),
                "{line}: {run:?}"
            );
        }
    }
    // A page is one in XHTML too.
    place.file("page.jsonl", "<?xml version=\"1.0\"?>\n<!DOCTYPE html PUBLIC \"-//W3C\">\n<html></html>");
    assert!(refusal(&place, "page.jsonl").contains("it is a web page"));
}

#[test]
fn archives_are_unpacked() {
    let place = Place::new();
    let line = upsert("a", "one two three");
    place.file("plain.jsonl", &line);
    for (tool, pack, name, begins) in [
        ("xz -V", "xz -kc plain.jsonl >x.xz", "x.xz", "xz -dc"),
        ("bzip2 -h", "bzip2 -kc plain.jsonl >x.bz2", "x.bz2", "bzip2 -dc"),
        ("lz4 -V", "lz4 -qc plain.jsonl >x.lz4", "x.lz4", "lz4 -dc"),
        ("xz -V", "xz -kc plain.jsonl | gzip >x.xz.gz", "x.xz.gz", "zcat"),
        ("zstd -V", "zstd -q --long=31 -c plain.jsonl >x.jsonl.zst", "x.jsonl.zst", "zstd -dc"),
        ("zstd -V", "gzip -c plain.jsonl | zstd -q -c - >twice.jsonl.zst", "twice.jsonl.zst", "zstdcat"),
        ("iconv --version", "iconv -t UTF-16 plain.jsonl >wide.jsonl", "wide.jsonl", "iconv -f"),
    ] {
        // Window and size are of a file that is longer: the header alone says so, through a pipe.
        let pack =
            pack.replace("zstd -q --long=31 -c plain.jsonl", "cat plain.jsonl | zstd -q --long=31 -c -");
        if has(&place, tool, name) && has(&place, &pack, name) {
            let line = advised(&refusal(&place, name), begins);
            let run = shell(&place, &line.replace("dupflow replay", "dupflow replay -q --emit keep"));
            assert_eq!((run.code, run.out.as_str()), (0, "{\"id\":\"a\"}\n"), "{name}: {line}: {run:?}");
        }
    }
    if has(&place, "tar --version", "tar") {
        shell(&place, "tar -czf x.tar.gz plain.jsonl; mkdir FOLDER");
        let line = advised(&refusal(&place, "x.tar.gz"), "tar -xf");
        assert_eq!(shell(&place, &line).code, 0, "{line}");
        assert_eq!(place.run("replay -q --emit keep FOLDER").out, "{\"id\":\"a\"}\n");
    }
    place.file("two.jsonl", upsert("b", "four five six"));
    let zip = "python3 -m zipfile -c x.zip plain.jsonl two.jsonl; rm -rf FOLDER";
    if has(&place, "unzip -v", "zip") && has(&place, zip, "zip") {
        let line = advised(&refusal(&place, "x.zip"), "unzip");
        assert_eq!(shell(&place, &line).code, 0, "{line}");
        assert_eq!(place.run("replay -q --emit keep FOLDER").out, "{\"id\":\"a\"}\n{\"id\":\"b\"}\n");
    }
}

/// Files and folders that libraries of Python write and read.
#[test]
fn tables_of_other_formats_are_written_as_parquet() {
    let made = [
        (
            "pyarrow",
            "import pyarrow as a,pyarrow.orc as o;o.write_table(a.table({'id':['a','b'],'text':['one',\
             'two']}),'x.orc')",
            "x.orc",
            "out.parquet",
        ),
        (
            "deltalake,pyarrow",
            "import deltalake as d,pyarrow as a;d.write_deltalake('delta',a.table({'id':['x','y'],'text':\
             ['o','p']}));d.write_deltalake('delta',a.table({'id':['a','b'],'text':['one','two']}),\
             mode='overwrite')",
            "delta",
            "table.parquet",
        ),
        (
            "lance,pyarrow",
            "import lance as d,pyarrow as a;d.write_dataset(a.table({'id':['a','b'],'text':['one','two']}),\
             'lance')",
            "lance",
            "table.parquet",
        ),
        (
            "fastavro",
            "import fastavro as f;f.writer(open('x.avro','wb'),{'type':'record','name':'r','fields':\
             [{'name':'id','type':'string'},{'name':'text','type':['null','string']}]},\
             [{'id':'a','text':'one'},{'id':'b','text':'two'}])",
            "x.avro",
            "",
        ),
    ];
    for (modules, program, name, out) in made {
        let place = Place::new();
        if !has(&place, &format!("python3 -c 'import {modules}'"), name) {
            continue;
        }
        let written = shell(&place, &format!("python3 -c \"{program}\""));
        assert_eq!(written.code, 0, "{name}: {written:?}");
        // On a disk a table of Delta Lake is read.
        let named = match name {
            "delta" if cfg!(feature = "parquet") => format!("file://{}", place.path(name).display()),
            _ => name.to_owned(),
        };
        let line = advised(&refusal(&place, &named), "python3")
            .replace("dupflow replay -", "dupflow replay -q --emit keep -");
        let mut run = shell(&place, &line);
        assert_eq!(run.code, 0, "{name}: {line}: {run:?}");
        if !out.is_empty() {
            run = place.run(&format!("replay -q --emit keep {out}"));
        }
        assert_eq!(run.out, "{\"id\":\"a\"}\n{\"id\":\"b\"}\n", "{name}: {line}");
    }
}
