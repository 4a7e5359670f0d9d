//! Folders that are tables of Delta Lake, Hudi, Lance or Iceberg, and names in stores that are skipped.
//!
//! Bug classes: files of deleted rows that are read as documents, silently; a way to a table that is not
//! looked at (a pattern, a list, a folder above, a store); a store whose hidden names are read.

use serde_json::json;

use crate::dupflow::Place;
use crate::feeds::{page, upsert};

/// A file of each table's log, and the name of the table's kind.
const LOGS: [(&str, &str); 4] = [
    ("_delta_log/00000000000000000000.json", "Delta Lake"),
    (".hoodie/hoodie.properties", "Hudi"),
    ("_versions/1.manifest", "Lance"),
    ("metadata/v1.metadata.json", "Iceberg"),
];

#[test]
fn tables_are_refused_wherever_they_are() {
    for (log, kind) in LOGS {
        let place = Place::new();
        place.file(format!("up/table/{log}"), "{}");
        place.file("up/table/lang=en/a.jsonl", upsert("a", &page(0..0, 0)));
        place.file("up/table/lang=en/b.jsonl", upsert("b", &page(0..0, 0)));
        place.file("up/other.jsonl", upsert("c", "another"));
        place.file("list", "up/table/lang=en/a.jsonl\nup/table/lang=en/b.jsonl\n");
        place.file("list-of-folders", "up/other.jsonl\nup/table\n");
        let address = format!("file://{}", place.path("up").display());
        let local = [
            "up/table",
            "up/table/",
            "up",
            "up/table/lang=en",
            "up/table/lang=en/a.jsonl",
            "./up/table/lang=en/a.jsonl",
            "up/table/*/*.jsonl",
            "up/**/*.jsonl",
            "--files-from list",
            "--files-from list-of-folders",
            &format!("up/table/{log}"),
        ]
        .map(str::to_owned);
        let is_delta = kind == "Delta Lake" && cfg!(feature = "parquet");
        let remote =
            ["/", "/table/", "/table/lang=en/", "/table/lang=en/a.jsonl", "/table/**/*.jsonl", "/**/*.jsonl"]
                .map(|below| format!("{address}{below}"));
        let remote = if cfg!(feature = "object-store") { &remote[..] } else { &[] };
        for input in local.iter().chain(remote) {
            let run = place.run(&format!("replay --emit keep -o keep {input}"));
            assert_eq!((run.code, run.out.as_str()), (2, ""), "{kind}, {input}: {run:?}");
            if is_delta && (["up/table", "up/table/"].contains(&&**input) || input.ends_with("folders")) {
                // It is read by its log.
                assert!(run.err.contains("cannot read the table \"up/table"), "{input}: {run:?}");
                continue;
            }
            let message = format!("is a table of {kind}, whose files also hold rows that were deleted");
            assert_eq!(run.err.matches(&message).count(), 1, "{kind}, {input}: {run:?}");
            assert!(run.err.contains("up/table"), "{kind}, {input}: {run:?}");
            let advice =
                if is_delta && !input.contains("://") { "name the table itself" } else { "table.parquet" };
            assert!(run.err.contains(advice), "{kind}, {input}: {run:?}");
            assert!(!place.path("keep").exists());
        }
        for command in ["trace --doc a", "replay --dry-run", "query page.txt --corpus"] {
            place.file("page.txt", page(0..0, 0));
            let run = place.run(&format!("{command} up"));
            assert!(run.code == 2 && run.err.contains("is a table of"), "{kind}, {command}: {run:?}");
        }
        // Beside a table, files are read.
        assert_eq!(place.run("replay -q --emit keep up/other.jsonl").out, "{\"id\":\"c\"}\n");
    }
}

/// A folder that is read again, after something has made it a table.
#[test]
fn a_table_that_appears_later_is_refused() {
    let place = Place::new();
    place.file("in/a.jsonl", upsert("a", &page(0..0, 0)));
    place.file(
        "here.toml",
        "source.inputs = [\"in\"]\nsink.path = \"out\"\nstate.path = \"state\"\nsink.emit = \"deltas\"\n",
    );
    assert_eq!(place.run("run -c here.toml").code, 0);
    assert_eq!(place.run("check -c here.toml --connect").code, 0);
    place.file("in/new/_delta_log/0.json", "{}");
    place.file("in/new/part.jsonl", upsert("b", &page(0..0, 0)));
    for command in ["run -c here.toml", "check -c here.toml --connect"] {
        let run = place.run(command);
        assert!(run.code == 2 && run.err.contains("\"in/new\": it is a table of Delta Lake"), "{run:?}");
    }
}

/// Folders of other kinds have such names too.
#[test]
fn folders_with_like_names_are_no_tables() {
    let place = Place::new();
    for name in ["metadata/a.jsonl", "metadata/notes.json", "_versions/a.txt", "x/metadata.json"] {
        place.file(format!("in/{name}"), upsert(name, "a text"));
    }
    let (run, stats) = place.replay("--emit keep in");
    assert_eq!((run.code, &stats["documents"]), (0, &json!(3)), "{run:?}");
}

/// What Spark leaves of failed attempts, and markers: skipped and counted alike on a disk and in a store.
#[cfg(feature = "object-store")]
#[test]
fn hidden_names_in_a_store_are_skipped_as_on_a_disk() {
    let place = Place::new();
    for (name, id) in [
        ("part-0.jsonl", "committed"),
        ("_temporary/0/attempt_1/part-0.jsonl", "uncommitted"),
        ("_temporary/0/attempt_2/part-0.jsonl", "uncommitted too"),
        (".staging/x.jsonl", "hidden"),
        ("deep/_x/y.jsonl", "deep"),
        ("deep/z.jsonl", "read"),
        ("_SUCCESS", "marker"),
    ] {
        place.file(format!("_t/{name}"), upsert(id, &page(0..0, 0)));
    }
    let address = format!("file://{}", place.path("_t").display());
    for input in ["_t".to_owned(), format!("{address}/")] {
        let (run, stats) = place.replay(&format!("--emit pairs {input}"));
        assert_eq!(run.out, "{\"a\":\"committed\",\"b\":\"read\",\"similarity\":1.0}\n", "{input}");
        assert_eq!(stats["skipped"], json!({ "hidden": 4 }), "{input}");
    }
    // A pattern matches what it says, and a point only by a point.
    let ids = |pattern: &str| place.run(&format!("replay -q --emit keep --ids last {pattern}")).out;
    for base in ["_t", &*address] {
        assert_eq!(ids(&format!("{base}/**/x.jsonl")), "", "{base}");
        assert_eq!(ids(&format!("{base}/.*/*.jsonl")), "{\"id\":\"hidden\"}\n", "{base}");
    }
}

/// Names that say nothing or little: the first bytes say that a file has records.
#[test]
fn files_of_a_folder_with_other_names_are_records() {
    let place = Place::new();
    place.file("in/items.jl", upsert("a", &page(0..0, 0)) + &upsert("b", &page(0..0, 0)));
    place.file("in/more.jsonlines", upsert("c", &page(0..0, 0)));
    place.file("in/program.jl", "function f(x)\n  x\nend\n");
    assert_eq!(place.run("generate --documents 5 --format warc -o archive").code, 0);
    std::fs::rename(place.path("archive"), place.path("in/archive")).unwrap();
    let mut documents = 3 + 1 + 5;
    if cfg!(feature = "parquet") {
        for name in ["part-0000", "table.pq"] {
            assert_eq!(place.run("generate --documents 5 --seed 2 --format parquet -o made").code, 0);
            std::fs::rename(place.path("made"), place.path(format!("in/{name}"))).unwrap();
        }
        documents += 10;
    }
    let (run, stats) = place.replay("--emit pairs --ids file in");
    assert_eq!(stats["documents"], documents, "{run:?}");
    assert_eq!(stats["bad_records"], json!({}), "{run:?}");
}
