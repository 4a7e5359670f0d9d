//! Layouts of records: folders with several kinds of files, delimiters and escapes of tables, and times.

use serde_json::json;

use crate::dupflow::Place;
#[cfg(feature = "object-store")]
use crate::dupflow::command;
use crate::feeds::{page, upsert, words};

/// Files and folders that tools keep beside data are skipped; tables are read as tables.
#[test]
fn folders_are_read_as_stores_are() {
    let place = Place::new();
    let text = page(0..0, 0);
    place.file("data/a.csv", format!("id,text\nin-csv,{text}\n"));
    place.file("data/b.TSV", format!("id\ttext\nin-tsv\t{text}\n"));
    place.file("data/c.json", upsert("in-json", &text));
    place.file("data/_SUCCESS", "");
    place.file("data/.part-0.csv.crc", b"\xff\xfe");
    place.file("data/_temporary/0/a.csv", format!("id,text\nhidden,{text}\n"));
    let (run, stats) = place.replay("--emit keep data");
    assert_eq!(run.out, "{\"id\":\"in-csv\"}\n", "{run:?}");
    assert_eq!((&stats["documents"], &stats["skipped"]), (&json!(3), &json!({ "hidden": 3 })));
    assert!(run.err.contains("3 hidden") && !run.err.contains("mixes"), "{run:?}");
    // A folder that is named as an input is read, even if its name begins with "_".
    let (_, hidden) = place.replay("data/_temporary");
    assert_eq!(hidden["documents"], json!(1));

    place.file("data/notes.md", "a text of its own");
    let (mixed, _) = place.replay("data");
    assert!(
        mixed.err.contains("the folder mixes files of records with files that are a text each"),
        "{mixed:?}"
    );
    let look = place.run("replay --dry-run=1 data");
    assert_eq!(look.code, 0, "{look:?}");
    let expected = "data: a folder\n csv: 1 file, such as data/a.csv\n  \"in-csv\", ";
    assert!(look.out.starts_with(expected), "{look:?}");
    for part in [
        " tsv: 1 file, such as data/b.TSV\n",
        " jsonl: 1 file, such as data/c.json\n",
        " text: 1 file, such as data/notes.md\n  \"notes.md\", ",
    ] {
        assert!(look.out.contains(part), "{part}: {look:?}");
    }
}

/// Tables as other programs write them: a backslash before a quote, another delimiter.
#[test]
fn delimiters_and_escapes_are_options() {
    let place = Place::new();
    // As pandas writes with escapechar and doublequote=False, and Spark by default.
    let rows: String = (0..50)
        .map(|n| format!("k{n},\"say \\\"hi, {n}\\\" and\nmore \\\\ {}\"\n", words(100 * n..100 * n + 9)))
        .collect();
    place.file("spark.csv", format!("id,text\n{rows}"));
    let (escaped, stats) = place.replay("--emit keep --csv-escape \\ spark.csv");
    assert_eq!((&stats["documents"], &stats["bad_records"]), (&json!(50), &json!({})), "{escaped:?}");
    assert!(!escaped.err.contains("--csv-escape"), "{escaped:?}");
    let look = place.run("replay --dry-run=1 --csv-escape \\ spark.csv");
    assert!(look.out.contains("say \\\"hi, 0\\\" and\\nmore \\\\ w0 "), "{look:?}");
    let without = place.run("replay --emit deltas spark.csv");
    assert!(
        without.err.contains("there are backslashes before quotes") && without.err.contains("--csv-escape"),
        "{without:?}"
    );

    for (delimiter, typed) in [(";", ";"), ("|", "|"), ("\t", "tab"), ("\t", "\\t")] {
        place.file("rows.csv", format!("id{delimiter}text\na{delimiter}a text, with a comma\n"));
        let (run, _) = place.replay(&format!("--emit keep --csv-delimiter {typed} rows.csv"));
        assert_eq!(run.out, "{\"id\":\"a\"}\n", "{typed}");
        let wrong = place.run("replay rows.csv");
        assert!(wrong.code == 2 && wrong.err.contains("--csv-delimiter '"), "{typed}: {wrong:?}");
    }
    let wrong = place.run("replay --csv-delimiter ;; rows.csv");
    assert!(wrong.code == 2 && wrong.err.contains("expected one character of ASCII"), "{wrong:?}");
    place.file(
        "here.toml",
        "source.inputs = [\"rows.csv\"]\ncsv.delimiter = \"tab\"\nsink.path \
        = \"out\"\nsink.emit = \"keep\"\n",
    );
    assert_eq!(place.run("run -c here.toml").code, 0);
    assert_eq!(place.read("out"), "{\"id\":\"a\"}\n");
}

/// A time is the same in a feed, in a nested field and in a table, as a number or as a date. A date that does
/// not exist makes a bad record.
#[test]
fn times_are_read_alike_in_all_formats() {
    let place = Place::new();
    let times = [
        ("2024-02-29T12:00:00Z", 1_709_208_000.0),
        ("2024-02-29 14:00:00+02:00", 1_709_208_000.0),
        ("2024-02-29", 1_709_164_800.0),
        ("1709208000.5", 1_709_208_000.5),
    ];
    let lines_of = |field: &dyn Fn(usize, &str) -> String| {
        (0..).zip(times).map(|(n, (time, _))| field(n, time)).collect::<String>()
    };
    place.file(
        "flat.jsonl",
        lines_of(&|n, time| format!("{{\"id\":\"k{n}\",\"date\":\"{time}\",\"text\":\"t\"}}\n")),
    );
    place.file(
        "deep.jsonl",
        lines_of(&|n, time| format!("{{\"id\":\"k{n}\",\"meta\":{{\"date\":\"{time}\"}},\"text\":\"t\"}}\n")),
    );
    place.file(
        "rows.csv",
        lines_of(&|n, time| format!("k{n},{time},t\n")).replacen("k0", "id,date,text\nk0", 1),
    );
    for (file, field) in [("flat.jsonl", "date"), ("deep.jsonl", "meta.date"), ("rows.csv", "date")] {
        let look = place.run(&format!("replay --dry-run=9 --ts-field {field} {file}"));
        for (n, (time, seconds)) in (0..).zip(times) {
            assert!(look.out.contains(&format!("\"k{n}\", ts {seconds}, ")), "{file}, {time}: {look:?}");
        }
        // The times also cut epochs.
        let (_, stats) = place.replay(&format!("--epoch ts --ts-field {field} {file}"));
        assert_eq!((&stats["epochs"], &stats["bad_records"]), (&json!(3), &json!({})), "{file}");
    }
    for time in ["2024-02-31", "2024-02-31T00:00:00Z", "2023-02-29 10:00", "soon"] {
        place.file(
            "bad.jsonl",
            format!("{{\"id\":\"a\",\"ts\":\"{time}\",\"text\":\"t\"}}\n{}", upsert("b", "t")),
        );
        place.file("bad.csv", format!("id,ts,text\na,{time},t\nb,,t\n"));
        for file in ["bad.jsonl", "bad.csv"] {
            let (_, stats) = place.replay(file);
            assert_eq!(
                (&stats["bad_records"], &stats["events"]),
                (&json!({ "bad_ts": 1 }), &json!(1)),
                "{file}: {time}"
            );
        }
    }
    let missing = place.run("replay --ts-field when rows.csv");
    assert!(
        missing.code == 2 && missing.err.contains("no column \"when\" among \"id\", \"date\", \"text\""),
        "{missing:?}"
    );
}

/// An unreachable object store is reported quickly, with the reason.
#[cfg(feature = "object-store")]
#[test]
fn unreachable_stores_report_what_is_missing() {
    let run = |variables: &[(&str, &str)], address: &str| {
        let mut command = command(["replay", address]);
        let of_stores = |name: &str| ["AWS", "GOOGLE", "AZURE", "HOME"].iter().any(|of| name.starts_with(of));
        for (name, _) in std::env::vars().filter(|(name, _)| of_stores(name)) {
            command.env_remove(name);
        }
        let output = command.envs(variables.iter().copied()).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (address, variable) in
        [("s3://b/a.jsonl", "AWS_ACCESS_KEY_ID"), ("gs://b/a.jsonl", "GOOGLE_SERVICE_ACCOUNT")]
    {
        let (code, message) = run(&[], address);
        assert!(
            code == Some(2)
                && message.contains("there are no credentials: set ")
                && message.contains(variable),
            "{message}"
        );
    }
    let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_REGION", "c")];
    let plain = [&keys[..], &[("AWS_ENDPOINT", "http://127.0.0.1:9")]].concat();
    let (code, message) = run(&plain, "s3://bucket/a.jsonl");
    assert!(code == Some(2) && message.contains("set AWS_ALLOW_HTTP=true"), "{message}");
    let (refused, words) = run(&keys, "s3://bucket/a//b.jsonl");
    assert!(refused == Some(2) && words.contains("a name in its key is empty"), "{words}");
}
