//! Forms of JSON that writers have and the standard does not, ids that are numbers, and the field of the
//! operation.
//!
//! Bug classes: a delete that is lost; two ids that become one; a good document refused for a field that
//! nobody reads; a column of another meaning that deletes.

use serde_json::json;

use crate::dupflow::Place;
use crate::feeds::{page, upsert};

/// `null` is absent, as in Parquet and CSV: the delete ends the pair.
#[test]
fn null_beside_a_delete_is_absent() {
    let place = Place::new();
    let text = page(0..0, 0);
    let two = upsert("a", &text) + &upsert("b", &text);
    for delete in [
        r#"{"id":"a","op":"delete","ts":null,"text":null}"#,
        r#"{"ts":null,"text":null,"op":"delete","id":"a","title":null}"#,
    ] {
        place.file(
            "feed.jsonl",
            format!("{two}{delete}\n{{\"id\":\"c\",\"op\":null,\"ts\":null,\"text\":\"t\"}}\n"),
        );
        let (run, stats) = place.replay("--emit pairs feed.jsonl");
        assert_eq!(
            (&*run.out, &stats["bad_records"], &stats["documents"]),
            ("", &json!({}), &json!(2)),
            "{run:?}"
        );
        let nested = format!(
            "{{\"m\":{{\"id\":\"a\",\"text\":\"{text}\"}}}}\n{{\"m\":{{\"id\":\"b\",\"text\":\"{text}\"}}}}\n\
             {{\"op\":\"delete\",\"m\":{{\"id\":\"a\",\"text\":null,\"ts\":null}}}}\n"
        );
        place.file("nested.jsonl", nested);
        let (run, stats) =
            place.replay("--emit pairs --id-field m.id --text-field m.text --ts-field m.ts nested.jsonl");
        assert_eq!((&*run.out, &stats["bad_records"]), ("", &json!({})), "{run:?}");
    }
}

#[test]
fn ids_keep_their_digits() {
    let place = Place::new();
    let line = |id: &str, n: u32| format!("{{\"id\":{id},\"text\":\"{}\"}}\n", page(0..50, n));
    let ids = [
        "7",
        "18446744073709551616",
        "18446744073709551617",
        "340282366920938463463374607431768211457",
        "-0.0",
        "1.0",
    ];
    place.file("ids.jsonl", (1..).zip(ids).map(|(n, id)| line(id, n)).collect::<String>());
    let run = place.run("replay -q --emit keep ids.jsonl");
    let expected = [
        "7",
        "18446744073709551616",
        "18446744073709551617",
        "340282366920938463463374607431768211457",
        "0",
        "1",
    ];
    let mut expected: Vec<_> = expected.iter().map(|id| format!("{{\"id\":\"{id}\"}}")).collect();
    expected.sort();
    assert_eq!(run.out.lines().collect::<Vec<_>>(), expected, "{run:?}");
    // Several whole numbers are this double.
    for id in ["9007199254740992.0", "1e17"] {
        place.file("double.jsonl", line("7", 1) + &line(id, 2));
        let run = place.run("replay -q --emit keep double.jsonl");
        assert!(run.code == 1 && run.err.contains("1 bad_id"), "{run:?}");
    }
    // In CSV an id is a text.
    place.file("ids.csv", "id,text\n1.0,one\n1,two\n");
    assert_eq!(place.run("replay -q --emit keep ids.csv").out, "{\"id\":\"1\"}\n{\"id\":\"1.0\"}\n");
}

/// Where nothing reads them they do not matter; where something does, the reason is named, or they are
/// replaced.
#[test]
fn values_that_json_does_not_have() {
    let place = Place::new();
    let text = page(0..0, 0);
    for value in ["NaN", "-Infinity", "[1,{\"x\":Infinity}]", "1e999", r#""\ud83d""#] {
        let line = |id: &str| format!("{{\"id\":\"{id}\",\"score\":{value},\"text\":\"{text}\"}}\n");
        place.file("score.jsonl", line("a") + &line("b"));
        let run = place.run("replay -q --emit keep score.jsonl");
        assert_eq!((run.code, &*run.out), (0, "{\"id\":\"a\"}\n"), "{value}: {run:?}");
        let marked = place.run("replay -q --emit documents --mark m -o m.jsonl score.jsonl");
        assert_eq!(marked.code, 0, "{value}: {marked:?}");
        assert!(place.read("m.jsonl").contains(&format!("\"score\":{value},")), "{value}");
    }
    // A field of documents that is none is counted, and the record is a document.
    place.file("score.jsonl", format!("{{\"id\":\"a\",\"score\":NaN,\"text\":\"{text}\"}}\n"));
    let (_, stats) = place.replay("--set pairs.where=a.score==b.score --field score score.jsonl");
    assert_eq!((&stats["documents"], &stats["fields"]["unusable"]), (&json!(1), &json!(1)), "{stats}");
    let half = |id: &str| format!("{{\"id\":\"{id}\",\"text\":\"{text} \\ud83d\"}}\n");
    place.file("half.jsonl", half("a") + &half("b"));
    let run = place.run("replay --emit keep half.jsonl");
    let advice = "a string has a lone surrogate, half a character as \"\\ud83d\": --json-surrogates replace";
    assert!(run.code == 1 && run.err.contains(advice) && run.err.contains("lone_surrogate"), "{run:?}");
    let (run, _) = place.replay("--emit keep --json-surrogates replace half.jsonl");
    assert_eq!(run.out, "{\"id\":\"a\"}\n", "{run:?}");
    place.file(
        "here.toml",
        "source.inputs = [\"half.jsonl\"]\njson.surrogates = \"replace\"\nsink.path = \"out\"\n\
         sink.emit = \"keep\"\n",
    );
    assert_eq!(place.run("run -c here.toml").code, 0);
    assert_eq!(place.read("out"), "{\"id\":\"a\"}\n");
}

/// `op` of another meaning is no operation where another field is named, or none.
#[test]
fn the_operation_has_a_field_of_its_own_or_none() {
    let place = Place::new();
    place.file(
        "reddit.jsonl",
        "{\"id\":\"a\",\"text\":\"fox one\",\"op\":\"u/someone\"}\n\
         {\"id\":\"b\",\"text\":\"fox two\",\"op\":true}\n\
         {\"id\":\"c\",\"text\":\"fox three\",\"op\":\"delete\"}\n",
    );
    place.file(
        "reddit.csv",
        "id,text,op,\na,fox one,u/someone,x\nb,fox two,true,x\nc,fox three,delete,delete\n",
    );
    let all = "{\"id\":\"a\"}\n{\"id\":\"b\"}\n{\"id\":\"c\"}\n";
    for file in ["reddit.jsonl", "reddit.csv"] {
        let bad = place.run(&format!("replay -q --emit keep {file}"));
        assert_eq!(bad.code, 1, "{bad:?}");
        let none = place.run(&format!("replay -q --emit keep --op-field= {file}"));
        assert_eq!((none.code, &*none.out), (0, all), "{none:?}");
        place.file(
            "here.toml",
            format!(
                "source.inputs = [\"{file}\"]\nsource.op_path = \"\"\nsink.path = \"out\"\n\
                 sink.emit = \"keep\"\n"
            ),
        );
        assert_eq!(place.run("run -c here.toml").code, 0);
        assert_eq!(place.read("out"), all);
    }
    place.file("action.csv", "id,text,op,action\na,fox one,u/x,\nb,fox two,u/y,upsert\na,,u/x,delete\n");
    place.file(
        "action.jsonl",
        "{\"id\":\"a\",\"text\":\"fox one\",\"m\":{\"action\":null}}\n\
         {\"id\":\"b\",\"text\":\"fox two\",\"op\":1}\n\
         {\"id\":\"a\",\"m\":{\"action\":\"delete\"}}\n",
    );
    for options in ["--op-field action action.csv", "--op-field m.action action.jsonl"] {
        let run = place.run(&format!("replay -q --emit keep {options}"));
        assert_eq!((run.code, &*run.out), (0, "{\"id\":\"b\"}\n"), "{run:?}");
    }
    let missing = place.run("replay --op-field absent action.csv");
    assert!(missing.code == 2 && missing.err.contains("no column \"absent\" among"), "{missing:?}");
    // A reference is read by the same rule.
    let against = place.run("replay -q --emit keep --op-field= --against reddit.csv reddit.jsonl");
    assert_eq!(against.code, 0, "{against:?}");
}

/// A name that ends with a point, or has two in a row, is one name.
#[test]
fn names_of_columns_may_end_with_a_point() {
    let place = Place::new();
    place.file("r.csv", "id.,text..1\na,some text\nb,other words\n");
    place.file(
        "r.jsonl",
        "{\"id.\":\"a\",\"text..1\":\"some text\"}\n{\"id.\":\"b\",\"text..1\":\"other words\"}\n",
    );
    for file in ["r.csv", "r.jsonl"] {
        let run = place.run(&format!("replay -q --emit keep --id-field id. --text-field text..1 {file}"));
        assert_eq!((run.code, &*run.out), (0, "{\"id\":\"a\"}\n{\"id\":\"b\"}\n"), "{run:?}");
        place.file(
            "here.toml",
            format!(
                "source.inputs = [\"{file}\"]\nsource.id_path = \"id.\"\nsource.text_path = \"text..1\"\n\
                 sink.path = \"out\"\nsink.emit = \"keep\"\n"
            ),
        );
        assert_eq!(place.run("run -c here.toml").code, 0);
        assert_eq!(place.read("out").lines().count(), 2);
    }
}

/// Scrapy writes `.jl`, others `.jsonlines`: records, in a folder as by name, compressed or not.
#[test]
fn endings_of_lines_are_known_in_folders() {
    let place = Place::new();
    let text = page(0..0, 0);
    for name in ["items.jl", "items.jsonlines", "items.JL.gz"] {
        let lines = upsert("1", &text) + &upsert("2", &text);
        let bytes =
            if name.ends_with("gz") { zstd::encode_all(lines.as_bytes(), 1).unwrap() } else { lines.into() };
        place.file(format!("{name}.d/{name}"), bytes);
        for input in [format!("{name}.d"), format!("{name}.d/{name}"), format!("{name}.d/*")] {
            let run = place.run(&format!("replay -q --emit pairs {input}"));
            assert_eq!(run.out, "{\"a\":\"1\",\"b\":\"2\",\"similarity\":1.0}\n", "{input}: {run:?}");
        }
    }
}

/// A text alone may have the character that separates fields.
#[test]
fn a_look_shows_the_whole_text() {
    let place = Place::new();
    place.file("a.jsonl", "{\"id\":\"a\",\"text\":\"one two\\u001ethree four five\"}\n");
    let look = place.run("replay --dry-run=5 a.jsonl");
    assert!(look.out.contains("\"a\", 23 bytes") && look.out.contains("three four five"), "{look:?}");
}
