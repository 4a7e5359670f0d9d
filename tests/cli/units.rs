//! `text.split`: repeated paragraphs and lines of documents.
//!
//! Bug classes: a unit that is cut at another byte than the row says; a unit of an old text that stays after
//! an update or a delete; a row that depends on epochs or workers; a command that takes a unit for a
//! document.

use std::process::Command;

use serde_json::{Value, json};

use super::dupflow::Place;
use super::feeds::{delete, lines, upsert, words};

const REMOVE: &str = "--emit remove --set text.split=paragraph";

/// The removed units: document, unit, and the unit that stays, as "a 3: b 1".
fn removed(place: &Place, options: &str) -> Vec<String> {
    let (run, _) = place.replay(&format!("{options} feed.jsonl"));
    let row = |row: Value| {
        let of = &row["of"];
        format!("{} {}: {} {}", row["document"], row["unit"], of["document"], of["unit"]).replace('"', "")
    };
    lines(&run.out).into_iter().map(row).collect()
}

/// A paragraph of 30 words.
fn paragraph(n: u32) -> String {
    words(100 * n..100 * n + 30)
}

fn joined(paragraphs: &[u32]) -> String {
    paragraphs.iter().map(|n| paragraph(*n)).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn repeated_paragraphs_are_listed_with_their_bytes() {
    let place = Place::new();
    let near = paragraph(2).replace("w229", "other");
    let texts = [
        ("a", format!("\n{}\r\n\r\nRead more\r\n \t\r\n{}\r\n", paragraph(1), paragraph(1))),
        ("b", format!("Read more\n\n{}\n{}\n\n\n{near}", paragraph(5), paragraph(6))),
        ("c", format!("{}\n\n{}\n\n{}", paragraph(2), paragraph(1), paragraph(5))),
    ];
    place.file("feed.jsonl", texts.iter().map(|(id, text)| upsert(id, text)).collect::<String>());
    let (run, _) = place.replay(&format!("{REMOVE} -p exact feed.jsonl"));
    let rows = lines(&run.out);
    let named =
        |row: &Value| [&row["document"], &row["unit"], &row["of"], &row["similarity"]].map(Clone::clone);
    let of = |document: &str, unit: u32| json!({ "document": document, "unit": unit });
    let expected = [
        [json!("a"), json!(2), of("a", 0), json!(1.0)],
        [json!("c"), json!(0), of("b", 2), json!(27.0 / 29.0)],
        [json!("c"), json!(1), of("a", 0), json!(1.0)],
    ];
    assert_eq!(rows.len(), 3, "{}", run.out);
    for (row, wanted) in rows.iter().zip(expected) {
        let found = named(row);
        assert_eq!(found[..3], wanted[..3], "{row}");
        let [is, should] = [&found[3], &wanted[3]].map(|number| number.as_f64().unwrap());
        assert!((is - should).abs() < 1e-8, "{row}");
    }
    let cut = |row: &Value| {
        let text = &texts.iter().find(|(id, _)| *id == row["document"]).unwrap().1;
        let byte = |key: &str| usize::try_from(row[key].as_u64().unwrap()).unwrap();
        text[byte("from")..byte("to")].to_owned()
    };
    let cuts = [paragraph(1) + "\r\n", paragraph(2) + "\n\n", paragraph(1) + "\n\n"];
    assert_eq!(rows.iter().map(cut).collect::<Vec<_>>(), cuts);

    let csv = place.replay(&format!("{REMOVE} --output-format csv feed.jsonl")).0.out;
    assert!(csv.starts_with("document,unit,from,to,of_document,of_unit,similarity\na,2,"), "{csv}");
    assert_eq!(removed(&place, &format!("{REMOVE} --set text.split_least=2")).len(), 4, "\"Read more\" too");
    assert_eq!(removed(&place, &format!("{REMOVE} --set text.split_least=31")), [""; 0]);
}

#[test]
fn lines_and_scripts_without_spaces() {
    let place = Place::new();
    let (thai, chinese) = (
        "ข้อความนี้ปรากฏซ้ำในหลายหน้าของเว็บไซต์เดียวกันเสมอจนผู้อ่านจำได้ทั้งหมด",
        "本页面的所有内容均受版权保护未经许可不得转载或复制",
    );
    let text = |n| format!("{}\n{thai}\n\n{chinese}\r\n{}", paragraph(n), paragraph(n + 1));
    place.file("feed.jsonl", upsert("b", &text(1)) + &upsert("a", &text(7)));
    let of_lines = "--emit remove --set text.split=line";
    assert_eq!(removed(&place, of_lines), ["b 1: a 1", "b 2: a 2"]);
    assert_eq!(
        removed(&place, &format!("{of_lines} --set output.keep=source-order")),
        ["a 1: b 1", "a 2: b 2"]
    );
    assert_eq!(removed(&place, REMOVE), [""; 0], "the lines beside them differ");
    let short = text(1).replace(thai, "ข้อความ").replace(chinese, "版权");
    place.file("feed.jsonl", upsert("b", &short) + &upsert("a", &short.replace('w', "v")));
    assert_eq!(removed(&place, of_lines), [""; 0]);
}

/// What is listed is a function of the last texts, however the events are cut.
#[test]
fn updates_and_deletes_of_documents() {
    let place = Place::new();
    let feed = [
        upsert("a", &joined(&[1, 2, 1])),
        upsert("b", &joined(&[2, 3])),
        upsert("c", &joined(&[3, 4, 1])),
        upsert("a", &joined(&[9, 2, 9])),
        delete("b"),
        upsert("d", &joined(&[4, 4, 2])),
        upsert("d", "  \n\n "),
        upsert("b", &joined(&[8, 4])),
        upsert("e", &joined(&[1])),
        delete("e"),
        // The same text at another place of the input.
        upsert("c", &joined(&[3, 4, 1])),
    ];
    let expected = ["a 2: a 0", "c 1: b 1"];
    let by_order = ["a 2: a 0", "c 1: b 1"];
    for events in 1..=feed.len() {
        place.file("feed.jsonl", feed.concat());
        for workers in [1, 3] {
            let cut = format!("{REMOVE} --workers {workers} --epoch events:{events}");
            assert_eq!(removed(&place, &cut), expected, "{cut}");
            let first = format!("{cut} --set output.keep=source-order");
            assert_eq!(removed(&place, &first), by_order, "{first}");
        }
    }
    // Before the last event, c came first.
    place.file("feed.jsonl", feed[..10].concat());
    for events in [1, 4, 20] {
        let first = format!("{REMOVE} --epoch events:{events} --set output.keep=source-order");
        assert_eq!(removed(&place, &first), ["a 2: a 0", "b 1: c 1"], "{first}");
    }
}

#[test]
fn retention_is_of_documents_and_a_result_can_be_verified() {
    let place = Place::new();
    let at = |ts: u32, id: &str, text: &str| json!({ "id": id, "ts": ts, "text": text }).to_string() + "\n";
    place.file(
        "feed.jsonl",
        at(1, "a", &joined(&[1, 2])) + &at(5, "b", &joined(&[2, 1])) + &at(9, "c", &joined(&[1])),
    );
    let all = ["b 0: a 1", "b 1: a 0", "c 0: a 0"];
    assert_eq!(removed(&place, &format!("{REMOVE} --epoch ts")), all);
    assert_eq!(
        removed(&place, &format!("{REMOVE} --epoch ts --set retention.max_documents=2")),
        ["c 0: b 1"]
    );
    assert_eq!(removed(&place, &format!("{REMOVE} --epoch ts --set retention.max_age=6s")), ["c 0: b 1"]);
    assert_eq!(removed(&place, &format!("{REMOVE} --memory 64MiB")), all);
    place.replay(&format!("{REMOVE} --provenance feed.jsonl -o removed.jsonl"));
    let verified = place.run("verify removed.jsonl feed.jsonl");
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
}

#[test]
fn documents_are_written_without_repeated_units() {
    let place = Place::new();
    let text = format!("{}\r\n\r\nIt says \"é\".\n\n{}", paragraph(1), paragraph(2));
    let other = format!("{}\n\n{}\n \n{}\n", paragraph(2), paragraph(3), paragraph(1));
    let line = |id: &str, own: &str| format!("{{ \"n\" : 1.0,\"text\":{} ,\"id\":\"{id}\"}}\n", json!(own));
    let feed = [line("b", "old"), line("c", "short"), line("a", &text), line("b", &other), line("d", &text)];
    place.file("feed.jsonl", feed.concat() + &delete("d"));
    let documents = REMOVE.replace("remove", "documents");
    let kept = [line("c", "short"), line("a", &text), line("b", &(paragraph(3) + "\n \n"))];
    for cut in ["--epoch events:1 --workers 3", "--workers 1"] {
        place.replay(&format!("{documents} {cut} feed.jsonl -o clean.jsonl"));
        assert_eq!(place.read("clean.jsonl"), kept.concat(), "{cut}");
    }

    let cell = |own: &str| format!("\"{}\"", own.replace('"', "\"\""));
    let table = |of_b: &str| format!("n,text,id\n\" 1\",{},a\n2,{},b\n3,x,c\n", cell(&text), cell(of_b));
    place.file("feed.csv", table(&other));
    place.replay(&format!("{documents} feed.csv -o clean.csv"));
    assert_eq!(place.read("clean.csv"), table(&(paragraph(3) + "\n \n")));
}

/// Prints the rows of a table as JSON: its path, the delimiter, the escape or nothing, and whether a doubled
/// quote is one.
const READ_TABLE: &str = "import csv, json, sys
path, delimiter, escape, doubled = sys.argv[1:]
with open(path, newline='', encoding='utf-8') as table:
    dialect = dict(delimiter=delimiter, escapechar=escape or None, doublequote=bool(doubled))
    print(json.dumps(list(csv.reader(table, **dialect))))";

/// Delimiter × escape × how quotes are written × line ends inside × the place of the cut: other programs read
/// what was kept, and so does this one.
#[test]
fn cut_cells_are_read_back() {
    let place = Place::new();
    let own = |n: u32| format!("{} says \"it's\\\"\\; in c:\\dir\\, and\n\"so\"", paragraph(n));
    let again = format!("\"{}\" \\ said\nagain\\", paragraph(1));
    let texts = |end: &str| {
        let [both, parted] = [format!("{again}\n\n{}", own(2)), format!("{}\n\n{}", own(4), own(5))];
        [
            ["a", &both, &both],
            ["b", &format!("{again}\n\n{}", own(3)), &own(3)],
            ["c", &parted.replace("\n\n", &format!("\n\n{again}\n\n")), &parted],
            ["d", &format!("{}\n\n{again}", own(6)), &(own(6) + "\n\n")],
            ["e", &again, ""],
        ]
        .map(|row| row.map(|cell| cell.replace('\n', end)))
    };
    let has_python = Command::new("python3").args(["-c", "import csv"]).output();
    if !has_python.is_ok_and(|run| run.status.success()) {
        println!("SKIPPED the reader of Python: there is no python3");
        return;
    }
    let documents = REMOVE.replace("remove", "documents");
    for (delimiter, escape, doubled, end) in [
        (",", "", true, "\n"),
        (";", "", true, "\r\n"),
        (",", "\\", false, "\n"),
        ("\t", "\\", false, "\r\n"),
        (";", "\\", false, "\n"),
        ("\t", "\\", true, "\n"),
    ] {
        let quote = |text: &str| {
            let text = if escape.is_empty() { text.to_owned() } else { text.replace(escape, "\\\\") };
            format!("\"{}\"", text.replace('"', if doubled { "\"\"" } else { "\\\"" }))
        };
        let texts = texts(end);
        let row = |[id, text, _]: &[String; 3]| format!("{id}{delimiter}{}{delimiter}\n", quote(text));
        let header = format!("id{delimiter}text{delimiter}n\n");
        place.file("in.csv", header + &texts.iter().map(row).collect::<String>());
        let typed = if delimiter == "\t" { "tab" } else { delimiter };
        let escaped = if escape.is_empty() { String::new() } else { format!(" --csv-escape {escape}") };
        let layout = format!("--format csv --csv-delimiter {typed}{escaped}");
        place.replay(&format!("{documents} {layout} in.csv -o clean.csv"));
        place.replay(&format!("{documents} --mark dup {layout} in.csv -o marked.csv"));
        let read = |file: &str, doubled: bool| -> Vec<Vec<String>> {
            let doubled = if doubled { "1" } else { "" };
            let run = Command::new("python3")
                .args(["-c", READ_TABLE, file, delimiter, escape, doubled])
                .current_dir(place.path("."))
                .output()
                .unwrap();
            serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
        };
        // A row that is not cut is copied as it was.
        for knows_doubled in [true, doubled] {
            let (clean, marked) = (read("clean.csv", knows_doubled), read("marked.csv", knows_doubled));
            for (n, [id, text, kept]) in texts.iter().enumerate() {
                assert_eq!(clean[1 + n], [id, kept, ""], "{delimiter:?} {escape:?} {doubled}");
                assert_eq!(marked[1 + n][..3], [id, text, ""], "{delimiter:?} {escape:?} {doubled}");
            }
        }
        let feed = texts.iter().map(|[id, _, kept]| upsert(id, kept)).collect::<String>();
        place.file("kept.jsonl", feed);
        let [read, expected] = [format!("{layout} clean.csv"), "kept.jsonl".to_owned()].map(|of| {
            let look = place.run(&format!("replay --dry-run=9 {of}"));
            assert_eq!(look.code, 0, "{look:?}");
            look.out.split_once('\n').unwrap().1.to_owned()
        });
        assert_eq!(read, expected, "{}", place.read("clean.csv"));
    }
}

/// The marks of scripts of several bytes, of a text that is repeated as a whole and of an empty one.
#[test]
fn marks_are_the_bytes_that_would_be_cut() {
    let place = Place::new();
    let (thai, chinese) = (
        "ข้อความนี้ปรากฏซ้ำในหลายหน้าของเว็บไซต์เดียวกันเสมอจนผู้อ่านจำได้ทั้งหมด",
        "本页面的所有内容均受版权保护未经许可不得转载或复制。𠮷",
    );
    let texts = [
        ("a", format!("{thai}\r\n \r\nE\u{301}\n\n{chinese}")),
        ("b", format!("é\n\n{chinese}\n\n\n{}\n\n{thai}\n", paragraph(1))),
        ("c", String::new()),
        ("d", format!("{chinese}\r\n")),
    ];
    let line = |(id, text): &(&str, String), mark: &str| {
        format!("{{\"id\":\"{id}\",\"text\":{}{mark}}}\n", json!(text))
    };
    place.file("feed.jsonl", texts.iter().map(|text| line(text, "")).collect::<String>());
    let (of_thai, of_chinese) = (thai.len(), chinese.len());
    let last = texts[1].1.len();
    let spans = [
        json!([]),
        json!([[4, 4 + of_chinese + 3], [last - of_thai - 1, last]]),
        json!([]),
        json!([[0, of_chinese + 2]]),
    ];
    let marked = |mark: &Value| format!(",\"dup\":{mark}");
    let expected: String = texts.iter().zip(&spans).map(|(text, spans)| line(text, &marked(spans))).collect();
    let documents = REMOVE.replace("remove", "documents");
    for cut in ["--epoch events:1 --workers 3", "--memory 64MiB"] {
        place.replay(&format!("{documents} --mark dup {cut} feed.jsonl -o marked.jsonl"));
        assert_eq!(place.read("marked.jsonl"), expected, "{cut}");
    }
    place.replay(&format!("{documents} feed.jsonl -o clean.jsonl"));
    let clean = [&texts[0].1, &format!("é\n\n{}\n\n", paragraph(1)), "", ""];
    let clean = texts.iter().zip(clean).map(|((id, _), text)| line(&(id, text.to_owned()), ""));
    assert_eq!(place.read("clean.jsonl"), clean.collect::<String>());

    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let rows = |mark: &dyn Fn(usize) -> String| -> String {
        let row = |(n, (id, text)): (usize, &(&str, String))| format!("{id},{}{}\n", quoted(text), mark(n));
        texts.iter().enumerate().map(row).collect()
    };
    place.file("feed.csv", "id,text\n".to_owned() + &rows(&|_| String::new()));
    place.replay(&format!("{documents} --mark dup feed.csv -o marked.csv"));
    let cells = rows(&|n| match spans[n].to_string() {
        none if none == "[]" => format!(",{none}"),
        some => format!(",{}", quoted(&some)),
    });
    assert_eq!(place.read("marked.csv"), "id,text,dup\n".to_owned() + &cells);
}

#[test]
fn what_compares_documents_is_refused() {
    let place = Place::new();
    place.file("feed.jsonl", upsert("a", "b"));
    let set = "--set text.split=paragraph";
    for (typed, expected) in [
        ("replay --emit pairs", "take --emit remove"),
        ("replay --emit keep", "take --emit remove"),
        ("replay", "take --emit remove"),
        ("replay --emit removed-documents -o kept.jsonl", "take --emit remove or documents"),
        ("replay --emit removed-documents --mark dup -o kept.jsonl", "--mark: writes the records of all"),
        ("replay --emit documents --mark dup --format warc -o kept.warc", "whose records have no columns"),
        (
            "replay --emit documents --resume work -o out/part.jsonl --shard-size 9kB",
            "--resume: does not go with",
        ),
        (
            "replay --emit documents --format warc -o kept.warc",
            "is a web archive, whose records state the length",
        ),
        (
            "replay --emit remove --against feed.jsonl",
            "--against: does not go with text.split = \"paragraph\"",
        ),
        ("replay --emit remove --resume work -o removed.jsonl", "--resume: does not go with"),
        ("replay --emit remove --monitor 127.0.0.1:0", "--monitor: does not go with"),
        ("replay --emit remove -p contained", "not compared by containment"),
        ("replay --emit remove -p weighted --set text.weights=tf-idf", "freeze text.idf"),
        ("replay --emit remove --set output.clusters=star", "set output.clusters to \"components\""),
        ("replay --emit remove --set output.expand_limit=9", "has no effect with text.split = \"paragraph\""),
        ("replay --emit remove --set text.fields.title=1", "leave text.fields out"),
        ("replay --emit remove --set text.split_least=0", "expected a whole number from 1 to 1000"),
        ("query --corpus feed.jsonl", "units are found by"),
        ("compare feed.jsonl", "units are found by"),
    ] {
        let run = place.run(&format!("{typed} {set} feed.jsonl"));
        assert_eq!(run.code, 2, "{typed}: {}", run.err);
        assert!(run.err.contains(expected), "{typed}: {}", run.err);
    }
    place.file("run.toml", "source.inputs = [\"feed.jsonl\"]\nsink.path = \"out\"\n");
    let live = place.run(&format!("run -c run.toml {set}"));
    assert!(live.code == 2 && live.err.contains("units are found by"), "{live:?}");
    let unset = place.run("replay --set text.split_least=9 feed.jsonl").err;
    assert!(unset.contains("has no effect with text.split = \"document\""), "{unset}");
}

/// A paragraph is removed where a document of that text would be, under every rule on fields: documents of
/// one host are copies that a rule may forbid to be pairs.
#[test]
fn units_are_removed_as_documents_of_one_paragraph_are() {
    let place = Place::new();
    let documents = [
        ("a", "x", 1),
        ("b", "x", 1),
        ("c", "y", 1),
        ("d", "y", 2),
        ("e", "y", 2),
        ("f", "z", 3),
        ("g", "z", 1),
    ];
    let feed = |text: &dyn Fn(u32, u32) -> String| -> String {
        let record = |(n, (id, host, kind)): (usize, &(&str, &str, u32))| {
            let text = text(*kind, 10 + u32::try_from(n).unwrap());
            json!({ "id": id, "host": host, "text": text }).to_string() + "\n"
        };
        documents.iter().enumerate().map(record).collect()
    };
    place.file("feed.jsonl", feed(&|kind, own| joined(&[kind, own])));
    place.file("whole.jsonl", feed(&|kind, _| paragraph(kind)));
    for (rule, count) in [("a.host!=b.host", 3), ("a.host==b.host", 2), ("", 4)] {
        for workers in [1, 2] {
            let rule = if rule.is_empty() { String::new() } else { format!(" --set pairs.where={rule}") };
            let options = format!("-p exact --field host --workers {workers}{rule}");
            let units = removed(&place, &format!("{REMOVE} {options}"));
            let units: Vec<&str> = units.iter().map(|row| &row[..1]).collect();
            let (whole, _) = place.replay(&format!("--emit remove {options} whole.jsonl"));
            let whole: Vec<Value> = lines(&whole.out).into_iter().map(|row| row["id"].clone()).collect();
            assert_eq!((json!(units), units.len()), (json!(whole), count), "{rule}");
        }
    }
}
