//! Tables of Delta Lake whose logs are written here, with Parquet files of this program.
//!
//! Tables of another writer, and histories of them, are those of `python/tests/test_delta.py`.
//!
//! Bug classes: rows that were deleted or replaced; a feature of tables that is ignored; a column under
//! another name; a file that is missing, silently; a version that is not the one asked for.

#![cfg(feature = "parquet")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::claims::Started;
use crate::dupflow::{Ended, Place};
use crate::feeds::words;
use crate::parquet::table;

/// A vector of six rows.
const INLINE: &str = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L";
const DELETED: [u32; 6] = [3, 4, 7, 11, 18, 29];
const ROWS: u32 = 40;

/// A table with a file of rows for each number.
struct Table(Place);

impl Table {
    fn new(files: u32) -> Self {
        let place = Place::new();
        for file in 0..files {
            // Each row is a copy of one in every other file, but for a word.
            let text = |row: u32| words((row * 50..row * 50 + 40).chain([100_000 + file]));
            let rows = (0..ROWS).map(|row| (format!("{file}-{row}"), text(row)));
            place.file(format!("t/{}", part(file)), table(rows));
        }
        Self(place)
    }

    /// Writes a commit.
    fn commit(&self, version: u64, actions: &[Value]) {
        let mut lines = String::from("{\"commitInfo\":{\"operation\":\"WRITE\"}}\n");
        actions.iter().for_each(|action| writeln!(lines, "{action}").unwrap());
        self.0.file(format!("t/_delta_log/{version:020}.json"), lines);
    }

    /// The pairs that the deltas of a run add up to.
    fn sum(&self) -> BTreeMap<String, i64> {
        let mut pairs: BTreeMap<String, i64> = BTreeMap::new();
        // The last line may be half written.
        for line in self.0.read("out.jsonl").split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let line: Value = serde_json::from_str(line).unwrap();
            *pairs.entry(format!("{} {}", line["a"], line["b"])).or_default() +=
                line["diff"].as_i64().unwrap();
        }
        pairs.retain(|_, n| *n != 0);
        pairs
    }

    /// The pairs of the newest version.
    fn fresh(&self) -> BTreeMap<String, i64> {
        let pair = |line: &str| {
            let pair: Value = serde_json::from_str(line).unwrap();
            (format!("{} {}", pair["a"], pair["b"]), 1)
        };
        self.0.run("replay -q --emit pairs t").out.lines().map(pair).collect()
    }

    /// The ids of the documents of a table, or why there are none.
    fn ids(&self, arguments: &str) -> Result<Vec<String>, Ended> {
        let run = self.0.run(&format!("replay -q --emit keep --set threshold=1 {arguments}"));
        if run.code != 0 {
            return Err(run);
        }
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        Ok(run.out.lines().map(id).collect())
    }
}

fn part(file: u32) -> String {
    format!("day=1/part-{file}.parquet")
}

fn add(file: u32) -> Value {
    json!({ "add": { "path": part(file), "partitionValues": {}, "size": 1, "dataChange": true } })
}

fn remove(file: u32) -> Value {
    json!({ "remove": { "path": part(file), "deletionTimestamp": 1, "dataChange": true } })
}

fn protocol(features: &[&str]) -> Value {
    json!({ "protocol": { "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features } })
}

/// The metadata of a table with these columns, each with its name in files.
fn about(columns: &[(&str, &str)], partitions: &[&str], mode: &str) -> Value {
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, physical)| {
            json!({
                "name": name, "type": "string", "nullable": true,
                "metadata": { "delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical },
            })
        })
        .collect();
    let schema = json!({ "type": "struct", "fields": fields }).to_string();
    json!({ "metaData": {
        "id": "x", "format": { "provider": "parquet", "options": {} }, "schemaString": schema,
        "partitionColumns": partitions, "configuration": { "delta.columnMapping.mode": mode },
    } })
}

const PLAIN: [(&str, &str); 2] = [("id", "id"), ("text", "text")];

/// The table of the protocol and the metadata that most need.
fn begun(files: u32) -> Table {
    let table = Table::new(files);
    table.commit(0, &[protocol(&[]), about(&PLAIN, &[], "none"), add(0)]);
    table
}

#[test]
fn a_version_has_the_rows_of_its_files() {
    let table = begun(3);
    table.commit(1, &[add(1)]);
    table.commit(2, &[remove(0), add(2)]);
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    let expected = |files: &[u32]| {
        let ids = files.iter().flat_map(|file| (0..ROWS).map(move |row| format!("{file}-{row}")));
        sorted(ids.collect())
    };
    for (named, files) in [
        ("t", &[1, 2][..]),
        ("t/", &[1, 2]),
        ("delta:t", &[1, 2]),
        ("delta:t?version=0", &[0]),
        ("delta:t?version=1", &[0, 1]),
        ("delta:t?version=2", &[1, 2]),
        (&format!("delta:file://{}?version=1", table.0.path("t").display()), &[0, 1]),
    ] {
        assert_eq!(sorted(table.ids(named).unwrap()), expected(files), "{named}");
    }
    for (named, why) in [
        ("delta:t?version=3", "it has no version 3: its newest is 2"),
        ("delta:t?version=x", "\"x\" is no number of a version"),
        ("delta:u", "there is no folder \"_delta_log\" in it"),
        ("delta:s3://bucket/t?version=3", "DeltaTable(sys.argv[1],version=3))"),
        ("--format csv t", "its files are Parquet: leave the format out"),
        ("--ids file --text-field body t", "no column \"body\" among \"id\", \"text\""),
        ("--id-field key t", "no column \"key\" among"),
        ("--ts-field day t", "no column \"day\" among \"id\", \"text\": name the right one (--ts-field)"),
        ("--op-field nix t", "no column \"nix\" among"),
        ("delta:t/day=1", "name the folder of one table"),
    ] {
        let run = table.ids(named).unwrap_err();
        assert!(run.code == 2 && run.err.contains(why), "{named}: {run:?}");
    }
}

#[test]
fn deleted_rows_mapped_columns_and_partitions() {
    let table = Table::new(1);
    std::fs::copy(table.0.path(format!("t/{}", part(0))), table.0.path("plain")).unwrap();
    let all = table.ids("--format parquet plain").unwrap();
    assert_eq!(all.len(), ROWS as usize);
    let file = |values: Value, deleted: Option<u64>| {
        let mut add = add(0);
        add["add"]["partitionValues"] = values;
        if let Some(cardinality) = deleted {
            add["add"]["deletionVector"] = json!({
                "storageType": "i", "pathOrInlineDv": INLINE, "sizeInBytes": 44, "cardinality": cardinality,
            });
        }
        add
    };
    let features = protocol(&["deletionVectors", "columnMapping", "v2Checkpoint"]);
    let columns = [("key", "id"), ("body", "text"), ("ts", "ts"), ("day", "col-day"), ("none", "col-none")];
    let values = json!({ "col-day": "2024-05-06", "col-none": null });
    table.commit(0, &[features, about(&columns, &["day", "none"], "name"), file(values.clone(), None)]);
    let named = "--id-field key --text-field body t";
    assert_eq!(table.ids(named).unwrap(), all);
    let removed = json!({ "remove": { "path": part(0), "dataChange": true } });
    table.commit(1, &[file(values.clone(), Some(6)), removed]);
    let deleted = DELETED.map(|row| format!("0-{row}"));
    let left: Vec<_> = all.into_iter().filter(|id| !deleted.contains(id)).collect();
    let (run, stats) = table.0.replay(&format!("--emit keep {named}"));
    assert_eq!((run.code, &stats["skipped"]), (0, &json!({ "deleted": 6 })), "{run:?}");
    assert_eq!(table.ids(named).unwrap(), left);
    // Partition columns are fields, by their values in the log and not by the path.
    let dry = table.0.run(&format!("replay --dry-run --field day --field none {named}"));
    assert!(dry.code == 0 && dry.out.contains("2024-05-06"), "{dry:?}");
    let run = table.ids("--id-field day --text-field body t").unwrap_err();
    assert!(run.err.contains("\"day\" is a partition column"), "{run:?}");
    // Records are not copied where some of a file are deleted.
    let run = table.0.run(&format!("replay -q --emit documents -o kept.parquet {named}"));
    assert!(run.code != 0 && run.err.contains("take their ids (--emit keep)"), "{run:?}");
    let run = table.0.run("replay -q t/day=1/part-0.parquet");
    assert!(run.code == 2 && run.err.contains("name the table itself: t"), "{run:?}");
    // What the vector says and the log does not agree.
    table.commit(2, &[file(values, Some(5))]);
    let run = table.ids(named).unwrap_err();
    assert!(run.code == 2 && run.err.contains("it has 6 rows, and the log says 5"), "{run:?}");
}

#[test]
fn what_is_not_known_or_not_there_is_refused() {
    let usual = about(&PLAIN, &[], "none");
    let clone = json!({ "add": { "path": "s3://b/x.parquet", "partitionValues": {} } });
    let elsewhere = json!({ "add": { "path": "day=2/x.parquet", "partitionValues": {} } });
    let later = json!({ "protocol": { "minReaderVersion": 4, "minWriterVersion": 7 } });
    let vector = |kind: &str| {
        let mut add = add(0);
        add["add"]["deletionVector"] = json!({
            "storageType": kind, "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1,
            "sizeInBytes": 44, "cardinality": 6,
        });
        add
    };
    for (actions, why) in [
        (
            vec![protocol(&["typeWidening", "catalogManaged"]), usual.clone()],
            "not read: typeWidening, catalogManaged",
        ),
        (vec![later, usual.clone()], "needs readers of version 4"),
        (vec![protocol(&[]), usual.clone(), clone], "\"s3://b/x.parquet\" is not on this disk"),
        (vec![protocol(&[]), usual.clone(), elsewhere], "day=2/x.parquet\", which is missing"),
        (
            vec![protocol(&[]), usual.clone(), vector("u")],
            "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin\": ",
        ),
        (vec![protocol(&[]), usual.clone(), vector("x")], "stored as \"x\""),
        (vec![protocol(&[]), about(&PLAIN, &[], "other")], "mapped by \"other\""),
        (vec![protocol(&[])], "its log has no schema"),
        (vec![usual.clone(), add(0)], "does not say what its readers have to know"),
        (vec![protocol(&["columnMapping"]), about(&PLAIN, &[], "id")], "mapped by \"id\""),
    ] {
        let table = Table::new(1);
        table.commit(0, &actions);
        let run = table.ids("t").unwrap_err();
        assert!(run.code == 2 && run.err.contains(why), "{why}: {run:?}");
    }
    let table = begun(1);
    table.commit(2, &[add(0)]);
    let run = table.ids("t").unwrap_err();
    assert!(run.err.contains("no commit of version 1 any more"), "{run:?}");
    table.0.file("t/_delta_log/00000000000000000001.json", "");
    let run = table.ids("t").unwrap_err();
    assert!(run.err.contains("it has no action"), "{run:?}");
    table.0.file("t/_delta_log/00000000000000000001.json", "{\"add\":");
    let run = table.ids("t").unwrap_err();
    assert!(run.err.contains("00000000000000000001.json\" cannot be read: line 1:"), "{run:?}");
}

/// Columns that the table had, or gets later: what its files have of them is no value of it.
#[test]
fn columns_are_those_of_the_version() {
    let table = Table::new(1);
    let about = |columns: &[(&str, &str)]| about(columns, &[], "name");
    // The column of texts is called "op" in files, one of the files lacks it.
    table.commit(0, &[protocol(&["columnMapping"]), about(&[("id", "id"), ("body", "text")]), add(0)]);
    let named = "--text-field body --field text";
    let dry = table.0.run(&format!("replay --dry-run {named} t"));
    assert!(
        dry.code == 0 && !dry.out.contains("\n  text: "),
        "a name in files is none of the table: {dry:?}"
    );
    table.commit(1, &[about(&[("id", "id"), ("text", "none"), ("op", "text"), ("late", "late")])]);
    // The column that files call "text" is that of operations now, and no row has a text.
    let run = table.0.run("replay --emit pairs --op-field= t");
    assert!(run.code == 1 && run.err.contains("bad         40 records: 40 missing_text"), "{run:?}");
    table.commit(2, &[about(&[("late", "late"), ("body", "text")])]);
    let run = table.0.run("replay --emit pairs --id-field late --text-field body t");
    assert!(run.code == 1 && run.err.contains("bad         40 records: 40 missing_id"), "{run:?}");
    let (run, stats) = table.0.replay("--emit pairs --ids file --text-field body t");
    assert_eq!((run.code, &stats["documents"]), (0, &json!(ROWS)), "{run:?}");
}

/// Commits that change no file, but what it means: columns and the values of partitions.
#[test]
fn a_run_sees_what_a_table_says_of_its_files() {
    let place = Place::new();
    let like = |n: u32| words(0..40).replace("w7 ", &format!("other{n} "));
    let apart = |n: u32| words(n * 100..n * 100 + 40);
    for (name, rows) in [("a", [like(1), apart(1)]), ("b", [like(2), apart(2)])] {
        let rows = (0..).zip(rows).map(|(row, text)| (format!("{name}-{row}"), text));
        place.file(format!("t/{name}:1.parquet"), table(rows));
    }
    let table = Table(place);
    let file = |name: &str, lang: &str| {
        let path = format!("{name}:1.parquet");
        json!({ "add": { "path": path, "partitionValues": { "lang": lang } } })
    };
    let about = |text: &str| about(&[("id", "id"), ("text", text), ("lang", "lang")], &["lang"], "name");
    table.commit(0, &[protocol(&["columnMapping"]), about("text"), file("a", "en"), file("b", "de")]);
    table.0.file(
        "run.toml",
        "source = { inputs = [\"t\"], gone = \"delete\", fields = [\"lang\"] }\nsink.path = \"out.jsonl\"\n\
         state.path = \"state\"\n",
    );
    let rule = "--set pairs.where=a.lang==b.lang";
    for (version, actions, pairs) in [
        (1, &[file("b", "en")][..], 1),
        (2, &[file("a", "de")], 0),
        (3, &[file("b", "de")], 1),
        // The texts are the ids.
        (4, &[about("id")], 0),
        (5, &[about("text")], 1),
    ] {
        table.commit(version, actions);
        let run = table.0.run(&format!("run -c run.toml {rule}"));
        assert_eq!(run.code, 0, "{version}: {run:?}");
        let deltas = crate::feeds::lines(&table.0.read("out.jsonl"));
        let sum: i64 = deltas.iter().map(|row| row["diff"].as_i64().unwrap()).sum();
        assert_eq!(sum, pairs, "version {version}");
    }
    table.0.file("t/_delta_log/00000000000000000005.crc", "{\"numFiles\":3}");
    let run = table.ids("t").unwrap_err();
    assert!(run.err.contains("2 files of version 5, and") && run.err.contains("counts 3"), "{run:?}");
}

/// What a run writes into the folder of a table, VACUUM would remove.
#[test]
fn nothing_is_written_into_a_table() {
    let table = begun(1);
    for input in ["t", "delta:t", "delta:t?version=0"] {
        table.0.file("run.toml", format!("source.inputs = [\"{input}\"]\nsink.path = \"t/out\"\n"));
        for command in
            ["check -c run.toml", "check -c run.toml --connect", "run -c run.toml", "replay -o t/out t"]
        {
            let run = table.0.run(command);
            assert!(run.code == 2 && run.err.contains("t/out"), "{input}, {command}: {run:?}");
        }
    }
}

/// The report of a result says of other deleted rows that they are other inputs.
#[test]
fn an_audit_sees_deleted_rows() {
    let table = begun(1);
    let of = "replay -q --provenance -o deltas.jsonl";
    assert_eq!(table.0.run(&format!("{of} t")).code, 0);
    assert_eq!(table.0.run("verify deltas.jsonl t").code, 0);
    let mut file = add(0);
    file["add"]["deletionVector"] =
        json!({ "storageType": "i", "pathOrInlineDv": INLINE, "sizeInBytes": 44, "cardinality": 6 });
    table.commit(1, &[remove(0), file]);
    let run = table.0.run("verify deltas.jsonl t");
    assert!(run.code == 1 && run.out.contains("differs  input 1"), "{run:?}");
    assert_eq!(table.0.run("verify deltas.jsonl delta:t?version=0").code, 0);
}

/// A checkpoint stands for the commits before it, which are cleaned up; one that lacks a part is none.
#[test]
fn a_version_is_read_from_its_checkpoint() {
    let table = begun(2);
    table.commit(1, &[add(1)]);
    let commit = |version: u64| format!("t/_delta_log/{version:020}.json");
    let checkpoint = "t/_delta_log/00000000000000000001.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json";
    let actions = [protocol(&["v2Checkpoint"]), about(&PLAIN, &[], "none"), add(0), add(1)];
    let lines: Vec<_> = actions.iter().map(|action| action.to_string() + "\n").collect();
    table.0.file(checkpoint, lines.concat() + "{\"checkpointMetadata\":{\"version\":1}}\n");
    table.commit(2, &[remove(0)]);
    let (newest, first) = (table.ids("t").unwrap(), table.ids("delta:t?version=0").unwrap());
    assert!(newest.len() == ROWS as usize && first.len() == ROWS as usize && newest != first);
    (0..2).for_each(|version| std::fs::remove_file(table.0.path(commit(version))).unwrap());
    assert_eq!(table.ids("t").unwrap(), newest);
    assert_eq!(table.ids("delta:t?version=1").unwrap().len(), 2 * ROWS as usize);
    let run = table.ids("delta:t?version=0").unwrap_err();
    assert!(run.err.contains("no commit of version 0 any more"), "{run:?}");
    // Further actions are in a sidecar.
    table.0.file(checkpoint, lines.concat() + "{\"sidecar\":{\"path\":\"x.parquet\",\"sizeInBytes\":1}}\n");
    let run = table.ids("t").unwrap_err();
    assert!(run.err.contains("_sidecars/x.parquet\" cannot be read"), "{run:?}");
    std::fs::remove_file(table.0.path(checkpoint)).unwrap();
    table.0.file("t/_delta_log/00000000000000000001.checkpoint.0000000001.0000000002.parquet", "half");
    let run = table.ids("t").unwrap_err();
    assert!(run.err.contains("no commit of version 0 any more"), "{run:?}");
}

/// A run gives the deltas to each new version while it lives, and after a kill.
#[test]
fn a_run_follows_a_table() {
    let table = begun(3);
    let config = |more: &str| {
        format!(
            "[source]\ninputs = [\"t\"]\nfollow = true\nepoch = \"every:10ms\"\n{more}\
             [sink]\npath = \"out.jsonl\"\n[state]\npath = \"state\"\n[monitor]\nlisten = \"127.0.0.1:0\"\n"
        )
    };
    table.0.file("run.toml", config(""));
    let run = table.0.run("check -c run.toml");
    assert!(run.code == 2 && run.err.contains("source.gone") && run.err.contains("\"delete\""), "{run:?}");
    table.0.file("run.toml", config("gone = \"delete\"\n").replace("\"t\"", "\"delta:t?version=0\""));
    let run = table.0.run("check -c run.toml");
    assert!(run.code == 2 && run.err.contains("that is named without a version"), "{run:?}");
    table.0.file("run.toml", config("gone = \"delete\"\n"));
    let run = table.0.run("run -c run.toml --processes 2 --process 0 --hosts localhost:1,localhost:2");
    assert!(run.code == 2 && run.err.contains("start it without --processes"), "{run:?}");
    for (from, to, why) in [
        ("[\"t\"]", "[\"-\", \"t\"]", "\"-\" can be read once"),
        ("\"every:10ms\"", "\"events:10\"", "say after which time too"),
        ("path = \"out.jsonl\"", "path = \"-\"", "standard output cannot be corrected"),
    ] {
        table.0.file("other.toml", config("gone = \"delete\"\n").replace(from, to));
        let run = table.0.run("run -c other.toml");
        assert!(run.code == 2 && run.err.contains(why), "{to}: {run:?}");
    }
    // A table that comes before a file is read as it is, and the file is followed.
    table.0.file("feed.jsonl", "");
    table.0.file("other.toml", config("").replace("[\"t\"]", "[\"t\", \"feed.jsonl\"]"));
    assert_eq!(table.0.run("check -c other.toml").code, 0);
    // Of a table without files nothing is read.
    table.commit(1, &[remove(0)]);
    let mut running = Started::new(&table.0, "run.toml", "");
    let versions: [&[Value]; 4] = [&[add(0), add(1)], &[remove(0), add(2)], &[remove(2)], &[add(0), add(2)]];
    for (number, actions) in (2..).zip(versions) {
        table.commit(number, actions);
        let expected = table.fresh();
        running.until(&table.0, |place| place.path("out.jsonl").exists() && table.sum() == expected);
    }
    running.signal("KILL");
    running.end(&table.0);
    table.commit(6, &[remove(1)]);
    let mut again = Started::new(&table.0, "run.toml", "");
    for (version, actions) in [(6, None), (7, Some(add(1)))] {
        actions.iter().for_each(|action| table.commit(version, std::slice::from_ref(action)));
        let expected = table.fresh();
        again.until(&table.0, |_| table.sum() == expected);
    }
    again.signal("TERM");
    let (code, log) = again.end(&table.0);
    assert!(code == Some(0) && log.contains("a table is read as of this version"), "{log}");
    // Another commit of that number.
    table.commit(7, &[remove(1)]);
    let mut last = Started::new(&table.0, "run.toml", "");
    let without = table.fresh();
    last.until(&table.0, |_| table.sum() == without);
    table.commit(7, &[add(1)]);
    let with = table.fresh();
    assert_ne!(with, without);
    last.until(&table.0, |_| table.sum() == with);
    last.signal("TERM");
    assert_eq!(last.end(&table.0).0, Some(0));
    // A version that is not read ends the run, which says why.
    last = Started::new(&table.0, "run.toml", "");
    let name = last.log.clone();
    last.until(&table.0, |place| place.read(&name).contains("version=7"));
    table.commit(8, &[protocol(&["typeWidening"])]);
    let (code, log) = last.end(&table.0);
    assert!(code == Some(1) && log.contains("not read: typeWidening"), "{code:?}: {log}");
}

/// The time of a commit is that of its file, and after the one before; or what it says itself.
#[test]
fn a_version_is_named_by_its_time() {
    let table = begun(3);
    table.commit(1, &[add(1)]);
    table.commit(2, &[add(2)]);
    table.0.file(
        "t/_delta_log/00000000000000000003.json",
        format!("{{\"commitInfo\":{{\"inCommitTimestamp\":1600010800500}}}}\n{}\n", remove(0)),
    );
    for (version, seconds) in [(0, 1_600_000_000), (1, 1_600_003_600), (2, 1_600_003_600), (3, 1)] {
        let file = std::fs::File::options()
            .append(true)
            .open(table.0.path(format!("t/_delta_log/{version:020}.json")));
        file.unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }
    for (time, files) in [
        ("1600000000", 1),
        ("2020-09-13T13:26:39.999Z", 1),
        ("1600003600", 2),
        ("1600003600.001", 3),
        ("1600010800.499", 3),
        ("2020-09-13T15:26:40.5Z", 2),
        ("2020-09-13T17:26:40.5+02:00", 2),
        ("2026-01-01", 2),
    ] {
        let ids = table.ids(&format!("delta:t?timestamp={time}")).unwrap();
        assert_eq!(ids.len(), files * ROWS as usize, "{time}");
    }
    for (query, why) in [
        ("timestamp=1599999999", "no commit of 2020-09-13T12:26:39.000Z or before"),
        ("timestamp=2099-01-01", "\"2099-01-01\" is no time up to now"),
        ("timestamp=-1", "is no time up to now"),
        ("timestamp=soon", "is no time up to now"),
        ("time=1", "\"time=1\" is neither version=NUMBER nor timestamp=TIME"),
    ] {
        let run = table.ids(&format!("delta:t?{query}")).unwrap_err();
        assert!(run.code == 2 && run.err.contains(why), "{query}: {run:?}");
    }
}

/// A run that starts again after the table has changed gives the deltas between the versions.
#[test]
fn a_run_follows_the_versions_of_its_starts() {
    let table = begun(3);
    let config = "source = { inputs = [\"t\"], gone = \"delete\" }\n\
        sink.path = \"out.jsonl\"\nstate.path = \"state\"\n";
    table.0.file("run.toml", config);
    let versions: [&[Value]; 4] =
        [&[add(1)], &[remove(0), add(2)], &[remove(2), remove(1), add(0)], &[add(1)]];
    for (number, actions) in (1..).zip(versions) {
        table.commit(number, actions);
        let run = table.0.run("run -c run.toml");
        assert_eq!(run.code, 0, "version {number}: {run:?}");
        assert_eq!(table.sum(), table.fresh(), "version {number}");
    }
    table.0.file("run.toml", config.replace(", gone = \"delete\"", ""));
    table.commit(5, &[remove(0)]);
    let run = table.0.run("run -c run.toml");
    assert!(run.code != 0 && run.err.contains("source.gone = \"delete\""), "{run:?}");
}
