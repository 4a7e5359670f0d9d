//! Tables without quotes, and NULL.
//!
//! Bug classes: rows merged behind a quote that is none, with exit code 0; texts that are equal because they
//! are all NULL; an advice that does not work.

use serde_json::json;

use crate::dupflow::{Ended, Place};
use crate::feeds::words;

/// As ClickHouse writes it (TSVWithNames): a quotation begins in row 1, and the next quote is in row 3.
const UNQUOTED: &str =
    "id\ttext\n1\t\"Hello, said the old man\n2\tsecond text\n3\tthird has a \"quoted\" word\n4\tfourth\n";

/// Forty passages, of which two begin with a quotation; the text is in this column of the table.
fn passages(columns: usize, place: usize) -> String {
    let row = |n: u32| {
        let quote = if n == 5 || n == 20 { "\"" } else { "" };
        let text = format!("{quote}passage {}", words(100 * n..100 * n + 12));
        let mut cells: Vec<_> = (0..columns).map(|column| format!("c{column}")).collect();
        cells[if place == 0 { columns - 1 } else { 0 }] = format!("k{n}");
        cells[place] = text;
        cells.join("\t") + "\n"
    };
    let mut names: Vec<_> = (0..columns).map(|column| format!("n{column}")).collect();
    names[if place == 0 { columns - 1 } else { 0 }] = "id".to_owned();
    names[place] = "text".to_owned();
    names.join("\t") + "\n" + &(0..40).map(row).collect::<String>()
}

fn kept(run: &Ended) -> usize {
    run.out.lines().count()
}

/// In every place of an input: a list fails, the warning has the line and the number of rows, and what it
/// advises reads all rows.
#[test]
fn an_open_quote_fails_a_list_and_the_advice_works() {
    let place = Place::new();
    for (name, table, rows) in [
        ("unquoted.tsv", UNQUOTED.to_owned(), 4),
        ("two.tsv", passages(2, 1), 40),
        ("three.tsv", passages(3, 1), 40),
        ("first.tsv", passages(2, 0), 40),
    ] {
        place.file(name, &table);
        place.file(format!("folder-{name}/a.tsv"), &table);
        place.file(format!("{name}.gz.tsv"), zstd::encode_all(table.as_bytes(), 1).unwrap());
        place.file("list", format!("{name}\n"));
        let inputs = [
            name.to_owned(),
            format!("folder-{name}"),
            format!("folder-{name}/*.tsv"),
            format!("{name}.gz.tsv"),
            "--files-from list".to_owned(),
        ];
        for input in inputs {
            let run = place.run(&format!("replay --emit keep {input}"));
            assert_eq!((run.code, &*run.out), (1, ""), "{input}: {run:?}");
            assert!(run.err.contains("1 open_quote") || run.err.contains("2 open_quote"), "{input}: {run:?}");
            assert!(run.err.contains("rows are inside other rows, behind an open quote, the first in line"));
            assert!(run.err.contains("--csv-quote none (csv.quote)"), "{input}: {run:?}");
            let whole = place.run(&format!("replay -q --emit keep --csv-quote none {input}"));
            assert_eq!((whole.code, kept(&whole)), (0, rows), "{input}: {whole:?}");
            let named = place.run(&format!("replay -q --emit keep --csv-quote \" {input}"));
            assert!(named.code == 0 && kept(&named) < rows, "{input}: {named:?}");
        }
        let piped = |options: &str| {
            place.run_with(&format!("replay -q --emit keep --format tsv {options}-"), |pipe| {
                pipe.write_all(table.as_bytes()).unwrap_or(());
            })
        };
        assert_eq!((piped("").code, kept(&piped("--csv-quote none "))), (1, rows), "{name}");
    }
    // Changes are written all the same, and the rows are counted.
    let (run, stats) = place.replay("unquoted.tsv");
    assert_eq!(stats["bad_records"], json!({ "open_quote": 1 }), "{run:?}");
    assert!(run.err.contains("2 rows are inside other rows"), "{run:?}");
    place.file(
        "here.toml",
        "source.inputs = [\"unquoted.tsv\"]\ncsv.quote = \"none\"\nsink.path = \"out\"\n\
         sink.emit = \"keep\"\n",
    );
    assert_eq!(place.run("run -c here.toml").code, 0);
    assert_eq!(place.read("out").lines().count(), 4);
}

/// Text behind a closing quote loses quotes, which is said.
#[test]
fn quotes_inside_a_line_are_warned_of() {
    let place = Place::new();
    place.file("one.tsv", "id\ttext\na\t\"x\" y\nb\tz\n");
    let look = place.run("replay --dry-run=5 one.tsv");
    assert!(look.err.contains("1 rows have text behind a closing quote") && look.code == 0, "{look:?}");
    let whole = place.run("replay --dry-run=5 --csv-quote none one.tsv");
    assert!(whole.out.contains("\"\\\"x\\\" y\"") && whole.err.is_empty(), "{whole:?}");
    place.file("single.csv", "id,text\na,'one, two'\nb,'it''s\n\"so\"'\n");
    let (run, stats) = place.replay("--csv-quote ' single.csv");
    assert_eq!((&stats["documents"], &stats["bad_records"]), (&json!(2), &json!({})), "{run:?}");
    let wrong = place.run("replay --csv-quote quote single.csv");
    assert!(wrong.code == 2 && wrong.err.contains("\"none\" for a table without quotes"), "{wrong:?}");
}

/// `\N` and NULL are no text, and no pair; quoted they are texts.
#[test]
fn null_is_never_an_equal_text() {
    let place = Place::new();
    let text = |n: u32| words(100 * n..100 * n + 12);
    let table = |null: &str| {
        format!("\"id\",\"text\"\n0,\"{}\"\n1,{null}\n2,\"{}\"\n3,{null}\n5,{null}\n", text(0), text(2))
    };
    for null in ["\\N", "NULL"] {
        place.file("null.csv", table(null));
        let pairs = place.run("replay --emit pairs null.csv");
        assert_eq!((pairs.code, &*pairs.out), (0, ""), "{pairs:?}");
        assert!(pairs.err.contains("3 cells are \\N or NULL without quotes"), "{pairs:?}");
        let list = place.run("replay -q --emit keep null.csv");
        assert!(
            list.code == 1 && list.err.contains("3 missing_text") && list.err.contains("it is NULL"),
            "{list:?}"
        );
        place.file("quoted.csv", table(&format!("\"{null}\"")));
        assert_eq!(place.run("replay -q --emit pairs quoted.csv").out.lines().count(), 3);
        place.file("null.tsv", format!("id\ttext\n1\t{null}\n2\t{null}\n3\t{}\n", text(1)));
        let lines = place.run("replay --emit pairs --csv-quote none null.tsv");
        assert!(lines.out.is_empty() && lines.err.contains("2 cells are"), "{lines:?}");
    }
    // A NULL in another column is absent: two rows of no id are two documents.
    place.file("ids.csv", format!("id,ts,op,text\n\\N,\\N,\\N,{}\n\\N,,,{}\n", text(1), text(2)));
    assert_eq!(
        place.run("replay -q --emit keep ids.csv").out,
        "{\"id\":\"ids.csv#0\"}\n{\"id\":\"ids.csv#1\"}\n"
    );
}

/// Escapes of ClickHouse, PostgreSQL and MySQL; what is written into such a table is read back from it.
#[test]
fn escapes_are_read_on_request_and_written_back() {
    let place = Place::new();
    let long = words(0..12);
    let rows = format!("id\ttext\na\t{long}\\tx\\ny\\\\z\nb\t{long}\\tx\\ny\\\\z\nc\tother\n");
    place.file("t.tsv", rows);
    let look = place.run("replay --dry-run=1 --csv-quote none --csv-escape \\ t.tsv");
    let raw = place.run("replay --dry-run=1 --csv-quote none t.tsv");
    let bytes = long.len() + "\tx\ny\\z".len();
    assert!(look.out.contains(&format!("\"a\", {bytes} bytes")), "{look:?}");
    assert!(raw.out.contains(&format!("\"a\", {} bytes", bytes + 3)), "{raw:?}");
    let marked = "--csv-quote none --csv-escape \\ --emit documents --mark m -o m.tsv t.tsv";
    place.replay(marked);
    assert_eq!(place.read("m.tsv").lines().next().unwrap(), "id\ttext\tm_cluster\tm_kept\tm_of");
    let (again, _) = place.replay("--csv-quote none --csv-escape \\ --emit keep m.tsv");
    assert_eq!(again.out, "{\"id\":\"a\"}\n{\"id\":\"c\"}\n");
    place.replay("--csv-quote none --emit documents -o d.tsv t.tsv");
    assert!(place.read("d.tsv").contains("\\tx\\ny\\\\z\nc\tother\n"));
}

/// The row is cut there, and the line is named.
#[test]
fn a_carriage_return_alone_is_named() {
    let place = Place::new();
    place.file("lone.csv", "id,text\n1,plain text here\n2,one\rtwo\n3,\n");
    let run = place.run("replay --emit keep lone.csv");
    assert!(run.code == 1 && run.err.contains("line 3: cannot be read"), "{run:?}");
    assert!(run.err.contains("a carriage return alone ends a row"), "{run:?}");
    assert!(run.err.contains("1 rows end with a carriage return alone, the first in line 3"), "{run:?}");
}
