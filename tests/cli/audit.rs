//! An auditor's run: provenance, `--until`, `--times`, `verify`, and `compare --corpus`.
//!
//! Bug classes: a digest that is not of the stored bytes, or leaves some out; a provenance that depends on
//! the machine; a change of the feed, the pipeline or the report that `verify` does not find, or a finding
//! where nothing has changed; an event after `--until` that still counts; markup of a document in the page.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::io::Write;
use std::process::Command;

use serde_json::{Value, json};

use super::dupflow::{Ended, Place};
use super::feeds::{accumulated, lines, page, pairs, words};

/// An upsert with a time.
fn dated(id: &str, text: &str, ts: &str) -> String {
    json!({ "id": id, "text": text, "ts": ts }).to_string() + "\n"
}

/// Four days: a copy comes, is edited until it is none, and another one comes; one event has no time.
fn feed() -> String {
    [
        dated("a", &page(0..0, 0), "2026-11-01"),
        dated("b", &page(0..2, 7), "2026-11-02"),
        json!({ "id": "undated", "text": page(0..1, 9) }).to_string() + "\n",
        dated("b", &words(500..600), "2026-11-03"),
        "{oops\n".to_owned(),
        dated("c", &page(0..3, 8), "2026-11-04"),
    ]
    .concat()
}

fn with_feed() -> Place {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    place
}

/// The SHA-256 of a file as `sha256sum` computes it.
fn sha256(place: &Place, name: &str) -> String {
    let out = Command::new("sha256sum").arg(place.path(name)).output().expect("sha256sum of coreutils");
    String::from_utf8(out.stdout).unwrap()[..64].to_owned()
}

fn inputs(provenance: &Value) -> Vec<(String, u64, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{provenance}")).to_owned();
    let input =
        |input: &Value| (text(&input["name"]), input["bytes"].as_u64().unwrap(), text(&input["sha256"]));
    provenance["inputs"].as_array().unwrap().iter().map(input).collect()
}

/// Runs `verify`; the report must hold, or not.
fn verify(place: &Place, arguments: &str, holds: bool) -> Ended {
    let verified = place.run(&format!("verify {arguments}"));
    assert_eq!(verified.code, i32::from(!holds), "{arguments}: {verified:?}");
    assert_eq!(verified.out.contains("\ndiffers  "), !holds, "{arguments}: {verified:?}");
    verified
}

#[test]
fn json_lines_have_their_provenance_in_the_first_and_the_last_line() {
    let place = with_feed();
    let out = |workers: u32| {
        let options = format!("--provenance --causes --epoch events:2 --workers {workers} feed.jsonl");
        place.replay(&options).0.out
    };
    let one = out(1);
    assert_eq!(out(3), one, "it does not depend on the machine");
    let all = lines(&one);
    let (first, last) = (&all[0]["provenance"], &all.last().unwrap()["provenance_end"]);
    assert_eq!(first["program"]["version"], env!("CARGO_PKG_VERSION"), "{first}");
    assert_eq!(
        (&first["pipeline"]["name"], &first["options"]["epoch"]),
        (&json!("minhash"), &json!("events:2"))
    );
    assert_eq!(first["pipeline"]["keys"]["threshold"], "0.8", "{first}");
    assert_eq!(first["inputs"], json!([{ "name": "feed.jsonl", "bytes": feed().len(), "sha256": null }]));
    assert!(first["counts"].is_null(), "{first}");
    assert_eq!(inputs(last), [("feed.jsonl".to_owned(), feed().len() as u64, sha256(&place, "feed.jsonl"))]);
    let counts = &last["counts"];
    assert_eq!((&counts["events"], &counts["documents"]), (&json!(5), &json!(4)), "{counts}");
    assert_eq!(counts["bad"], json!({ "not_json": 1 }), "{counts}");
    // Between the two lines are the rows of an output without provenance.
    let rows: Vec<_> = one.lines().collect();
    let plain = place.replay("--causes --epoch events:2 feed.jsonl").0.out;
    assert_eq!(rows[1..rows.len() - 1], plain.lines().collect::<Vec<_>>());
    let stats: Value = serde_json::from_str(&place.read("stats.json")).unwrap();
    assert_eq!(stats["provenance"]["counts"], *counts, "--stats has it always");
    assert_eq!(stats["provenance"]["inputs"], last["inputs"]);
}

#[test]
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn digests_are_those_of_the_stored_bytes_in_every_format() {
    let place = with_feed();
    let feed = feed();
    place.file("feed.zst", zstd::encode_all(feed.as_bytes(), 3).unwrap());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(feed.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    place.file("damaged.gz", [&gzip[..], b"what follows is not read as a document"].concat());
    place.file("table.csv", "id,text\nx,\"one, two\"\ny,three\n");
    place.file("empty.jsonl", "");
    place.file("alone.txt", "a text that is one document");
    place.file("folder/b.txt", "the second");
    place.file("folder/sub/a.txt", "the first");
    place.file("folder/more.jsonl", json!({ "id": "of the folder", "text": "x" }).to_string());
    place.file("folder/.hidden", "skipped");
    let files = ["feed.jsonl", "feed.zst", "damaged.gz", "table.csv", "empty.jsonl", "alone.txt"];
    let (_, stats) = place.replay(&format!("--ids last {} folder", files.join(" ")));
    let found = inputs(&stats["provenance"]);
    let expected = |name: &str| {
        let bytes = place.path(name).metadata().unwrap().len();
        (name.to_owned(), bytes, sha256(&place, name))
    };
    assert_eq!(found[..files.len()], files.map(expected), "each file");
    let listing = ["b.txt", "sub/a.txt"];
    let listing = listing.map(|name| format!("{}  {name}\n", sha256(&place, &format!("folder/{name}"))));
    place.file("listing", listing.concat());
    let bytes = "the second".len() + "the first".len();
    assert_eq!(found[files.len()], ("folder".to_owned(), bytes as u64, sha256(&place, "listing")));
    assert_eq!(stats["provenance"]["inputs"][files.len()]["files"], 2);
    assert_eq!(found[files.len() + 1], expected("folder/more.jsonl"), "a file of records in a folder");
    let piped =
        place.run_with("replay --stats stats.json -", |pipe| pipe.write_all(feed.as_bytes()).unwrap());
    assert_eq!(piped.code, 0, "{piped:?}");
    let stats: Value = serde_json::from_str(&place.read("stats.json")).unwrap();
    let expected = ("-".to_owned(), feed.len() as u64, sha256(&place, "feed.jsonl"));
    assert_eq!(inputs(&stats["provenance"]), [expected], "of a stream, what was read");
}

/// Columns of a Parquet file are read at random, and some are not read at all.
#[test]
#[cfg(feature = "parquet")]
fn a_parquet_file_is_digested_as_a_whole() {
    let place = with_feed();
    let made = place.run("generate --documents 200 --seed 3 --max-words 80 -o feed.parquet");
    assert_eq!(made.code, 0, "{made:?}");
    let (_, stats) = place.replay("feed.parquet");
    let bytes = place.path("feed.parquet").metadata().unwrap().len();
    let expected = ("feed.parquet".to_owned(), bytes, sha256(&place, "feed.parquet"));
    assert_eq!(inputs(&stats["provenance"]), [expected]);
}

#[test]
fn reports_in_all_forms_hold() {
    let place = with_feed();
    let mut forms = vec!["jsonl", "csv"];
    if cfg!(feature = "parquet") {
        forms.push("parquet");
    }
    for emit in [
        "deltas --epoch events:2 --evidence --causes --times",
        "deltas --epoch every:1s",
        "cluster-deltas --epoch ts --times",
        "pairs --until 2026-11-03T00:00:00Z",
        "clusters -p exact --set threshold=0.6",
        "keep --max-bad 0.5",
        "remove --max-bad 0.5",
    ] {
        for form in &forms {
            let run = format!("--emit {emit} --provenance -o out.{form} feed.jsonl");
            let made = place.run(&format!("replay {run}"));
            assert_eq!(made.code, 0, "{run}: {made:?}");
            let verified = verify(&place, &format!("out.{form} feed.jsonl --workers 2"), true);
            for compared in ["inputs ", "program ", "pipeline ", "records ", "counts "] {
                assert!(verified.out.contains(&format!("equal    {compared}")), "{run}: {verified:?}");
            }
        }
    }
    assert!(!place.path("out.jsonl.provenance.json").exists(), "only a table has a file beside it");
}

#[test]
fn a_stats_file_is_verified_with_its_output() {
    let place = with_feed();
    place.replay("-o out.jsonl feed.jsonl");
    verify(&place, "stats.json --output out.jsonl feed.jsonl", true);
    let alone = place.run("verify stats.json feed.jsonl");
    assert!(alone.code == 2 && alone.err.contains("name its output with --output"), "{alone:?}");
    let gone = place.run("verify stats.json --output gone.jsonl feed.jsonl");
    assert!(gone.code == 2 && gone.err.contains("gone.jsonl"), "{gone:?}");
    place.file("other.jsonl", "");
    let other = verify(&place, "stats.json --output other.jsonl feed.jsonl", false);
    assert!(other.out.contains("only in the replay"), "{other:?}");
}

#[test]
fn any_change_of_the_feed_is_found() {
    let place = with_feed();
    place.replay("--provenance -o out.jsonl feed.jsonl");
    let feed = feed();
    // A space that changes no document.
    place.file("spaced.jsonl", feed.replacen("{\"id\"", "{ \"id\"", 1));
    let spaced = verify(&place, "out.jsonl spaced.jsonl", false);
    assert!(spaced.out.contains("differs  input 1, \"spaced.jsonl\": 2,262 bytes there, 2,263 bytes here"));
    assert!(
        spaced.out.contains("equal    records ") && spaced.out.contains("equal    counts "),
        "{spaced:?}"
    );
    assert!(spaced.out.contains("is named \"feed.jsonl\" there"), "{spaced:?}");
    // One letter of the bad line: the same size, the same records.
    place.file("letter.jsonl", feed.replace("{oops", "{oopt"));
    let letter = verify(&place, "out.jsonl letter.jsonl", false);
    assert_eq!(letter.out.matches("\ndiffers  ").count(), 1, "{letter:?}");
    assert!(letter.out.contains(&format!("SHA-256 {} there", sha256(&place, "feed.jsonl"))), "{letter:?}");
    let two = verify(&place, "out.jsonl feed.jsonl spaced.jsonl", false);
    assert!(two.out.contains("differs  inputs: 1 there, 2 here"), "{two:?}");
    let missing = place.run("verify out.jsonl nowhere.jsonl");
    assert!(missing.code == 2 && missing.err.contains("nowhere.jsonl"), "{missing:?}");
}

/// The report with one value of its first line changed.
fn with_value(place: &Place, change: impl FnOnce(&mut Value)) {
    let report = place.read("out.jsonl");
    let (first, rest) = report.split_once('\n').unwrap();
    let mut first: Value = serde_json::from_str(first).unwrap();
    change(&mut first["provenance"]);
    // The key has to stay the first one.
    place.file("changed.jsonl", format!("{{\"provenance\":{}}}\n{rest}", first["provenance"]));
}

#[test]
fn another_pipeline_or_program_is_found() {
    let place = with_feed();
    place.replay("--provenance -o out.jsonl feed.jsonl");
    with_value(&place, |it| it["program"]["version"] = json!("0.0.9"));
    let version = verify(&place, "changed.jsonl feed.jsonl", false);
    let expected = format!("program: version 0.0.9 there, {} here", env!("CARGO_PKG_VERSION"));
    assert!(version.out.contains(&expected), "{version:?}");
    with_value(&place, |it| it["pipeline"]["keys"]["threshold"] = json!("0.7"));
    let key = verify(&place, "changed.jsonl feed.jsonl", false);
    assert!(key.out.contains("pipeline key threshold: 0.7 there, 0.8 here"), "{key:?}");
    with_value(&place, |it| it["pipeline"]["settings"]["threshold"] = json!(0.99));
    let settings = verify(&place, "changed.jsonl feed.jsonl", false);
    assert!(settings.out.contains("threshold: 0.8 there, 0.99 here"), "{settings:?}");
    assert!(settings.out.contains("only in the report"), "it is repeated by the settings: {settings:?}");
    with_value(&place, |it| it["scheme"] = json!("0000000000000000"));
    let scheme = verify(&place, "changed.jsonl feed.jsonl", false);
    assert!(scheme.out.contains("differs  scheme: 0000000000000000 there"), "{scheme:?}");
    let named = verify(&place, "out.jsonl feed.jsonl -p minhash --set threshold=0.75", false);
    assert!(named.out.contains("threshold: 0.8 there, 0.75 in the pipeline that was named"), "{named:?}");
    verify(&place, "out.jsonl feed.jsonl -p minhash", true);
    with_value(&place, |it| it["options"]["of-tomorrow"] = json!(true));
    let option = place.run("verify changed.jsonl feed.jsonl");
    assert!(option.code == 2 && option.err.contains("the option \"of-tomorrow\""), "{option:?}");
    with_value(&place, |it| it["format"] = json!(2));
    let format = place.run("verify changed.jsonl feed.jsonl");
    assert!(format.code == 2 && format.err.contains("format 2"), "{format:?}");
}

#[test]
fn any_change_of_the_records_is_found() {
    let place = with_feed();
    place.replay("--epoch events:1 --provenance -o out.jsonl feed.jsonl");
    let report = place.read("out.jsonl");
    let all: Vec<_> = report.lines().collect();
    assert!(all.len() >= 5, "{report}");
    let write = |lines: &[&str]| place.file("changed.jsonl", lines.join("\n") + "\n");
    let fails = |part: &str| {
        let found = verify(&place, "changed.jsonl feed.jsonl", false);
        assert!(found.out.contains(part), "{part:?} is not in {found:?}");
        let is_cut = found.out.contains("the report is cut short");
        assert!(is_cut || found.out.contains("equal    inputs "), "{found:?}");
    };
    write(&[&all[..2], &all[3..]].concat());
    fails("0 records only in the report, 1 record only in the replay");
    let added = r#"{"a":"a","b":"zz","diff":1,"epoch":9,"similarity":1.0}"#;
    write(&[&all[..2], &[added], &all[2..]].concat());
    fails(&format!("report  {added}"));
    write(&[&all[..1], &[all[2], all[1]], &all[3..]].concat());
    fails("records: the same in another order");
    let other = all[1].replace("\"similarity\":0.", "\"similarity\":0.1");
    write(&[&all[..1], &[&*other], &all[2..]].concat());
    fails("records: 1 record only in the report, 1 record only in the replay");
    let counts = all.last().unwrap().replace("\"events\":5", "\"events\":6");
    write(&[&all[..all.len() - 1], &[&*counts]].concat());
    fails("count of events: 6 there, 5 here");
    write(&all[..all.len() - 1]);
    fails("the report is cut short");
    place.file("changed.jsonl", &report[..report.len() - 5]);
    fails("the report is cut short");
    place.file("changed.jsonl", &report[..report.len() - all.last().unwrap().len() - 20]);
    fails("is no record");
    place.file("changed.jsonl", all[1..].join("\n"));
    let none = place.run("verify changed.jsonl feed.jsonl");
    assert!(none.code == 2 && none.err.contains("it has no provenance"), "{none:?}");
}

#[test]
fn a_replay_until_a_time_is_one_of_the_events_up_to_it() {
    let place = with_feed();
    let until = |time: &str, options: &str| {
        let (run, stats) = place.replay(&format!("--emit pairs --until {time} {options}feed.jsonl"));
        (pairs(&run.out), stats["after_until"].as_u64().unwrap(), stats["undated_until"].as_u64().unwrap())
    };
    let of = |feed: &str| {
        place.file("part.jsonl", feed);
        pairs(&place.replay("--emit pairs part.jsonl").0.out)
    };
    let lines: Vec<_> = feed().lines().map(|line| line.to_owned() + "\n").collect();
    // A time is inclusive; an event without one counts.
    for (time, kept, after) in [
        ("2026-11-01", &[0, 2][..], 3),
        ("2026-11-02T00:00:00Z", &[0, 1, 2], 2),
        ("2026-11-02T23:59:59.5+00:00", &[0, 1, 2], 2),
        ("2026-11-03", &[0, 1, 2, 3], 1),
        ("4000000000", &[0, 1, 2, 3, 5], 0),
    ] {
        let expected = of(&kept.iter().map(|line: &usize| &*lines[*line]).collect::<String>());
        for options in ["", "--epoch ts ", "--epoch events:1 --workers 3 "] {
            assert_eq!(until(time, options), (expected.clone(), after, 1), "{time} {options}");
        }
    }
    // Documents older than a day expire by the clock of the events that are applied.
    let old = until("2026-11-02", "--set retention.max_age=1d --epoch events:1 ").0;
    let later = until("4000000000", "--set retention.max_age=1d --epoch events:1 ").0;
    assert!(old.len() > later.len(), "{old:?} {later:?}");
    for (arguments, part) in [
        ("--until tomorrow", "2026-11-02T12:00:00Z"),
        ("--until 1e12", "before 2100"),
        ("--until 1 --set retention.max_age=1d --set retention.clock=wall", "--until: documents expire"),
    ] {
        let refused = place.run(&format!("replay {arguments} feed.jsonl"));
        assert!(refused.code == 2 && refused.err.contains(part), "{refused:?}");
    }
}

#[test]
fn changes_have_the_times_of_their_epochs() {
    let place = with_feed();
    let out = place.replay("--times --epoch events:1 feed.jsonl").0.out;
    let plain = place.replay("--epoch events:1 feed.jsonl").0.out;
    assert_eq!(accumulated(&out), accumulated(&plain));
    let times: Vec<_> = lines(&out).iter().map(|line| line["event_time"].clone()).collect();
    // The first of November 2026 is day 1.
    let day = |n: u32| json!(f64::from(1_793_404_800 + 86_400 * n));
    assert_eq!(times[..3], [day(2), Value::Null, Value::Null], "of b, and of two pairs of the undated");
    assert!(times.contains(&day(3)), "b ends: {times:?}");
    assert!(lines(&out).iter().all(|line| line["committed"].as_f64().unwrap() > 1.7e9), "{out}");
    let all = place.replay("--times --epoch all feed.jsonl").0.out;
    assert!(lines(&all).iter().all(|line| line["event_time"] == day(4)), "the greatest: {all}");
    let csv =
        place.replay("--times --emit cluster-deltas --epoch events:3 --output-format csv feed.jsonl").0.out;
    assert!(csv.starts_with("epoch,diff,document,cluster,size,event_time,committed\n"), "{csv}");
    let refused = place.run("replay --times --emit pairs feed.jsonl");
    assert!(refused.code == 2 && refused.err.contains("--times: only changes have times"), "{refused:?}");
}

#[test]
fn a_provenance_that_has_no_place_is_refused() {
    let place = with_feed();
    let table = place.run("replay --provenance --output-format csv feed.jsonl");
    assert!(table.code == 2 && table.err.contains("name one with --output"), "{table:?}");
    place.file("hosts", "127.0.0.1:1\n127.0.0.1:2\n");
    let several = "--processes 2 --process 0 --hosts hosts --workers 1";
    let several = place.run(&format!("replay --provenance {several} feed.jsonl"));
    assert!(several.code == 2 && several.err.contains("with several, --stats has it"), "{several:?}");
    let lost = place.run("replay --provenance -o feed.csv --stats feed.csv.provenance.json feed.jsonl");
    assert!(lost.code == 2 && lost.err.contains("is written to by --output"), "{lost:?}");
}

#[test]
fn documents_of_a_corpus_are_compared_by_their_last_texts() {
    let place = with_feed();
    place.file("table.csv", format!("id,text,ts\nd,\"{}\",2026-11-05\n", page(0..2, 7)));
    let compared = place.run("compare --corpus feed.jsonl --corpus table.csv a d --html a-d.html");
    assert_eq!(compared.code, 0, "{compared:?}");
    for part in [
        "A is a, record 0 of 2026-11-01T00:00:00Z\n",
        "B is d, record 6 of 2026-11-05T00:00:00Z\n",
        ": a pair\n",
        "common passages, in brackets: 98.0 % of A's tokens",
    ] {
        assert!(compared.out.contains(part), "{part:?} is not in {compared:?}");
    }
    let html = place.read("a-d.html");
    assert!(
        html.contains(&sha256(&place, "feed.jsonl")) && html.contains(&sha256(&place, "table.csv")),
        "{html}"
    );
    let now = place.run("compare --corpus feed.jsonl a b");
    assert!(now.out.contains("record 3 of 2026-11-03T00:00:00Z, the last of 2 texts"), "{now:?}");
    assert!(now.out.contains("no pair"), "{now:?}");
    let before = place.run("compare --corpus feed.jsonl --until 2026-11-02 a b");
    assert!(before.out.contains("B is b, record 1") && before.out.contains(": a pair\n"), "{before:?}");
    place.file("deleted.jsonl", feed() + "{\"id\":\"b\",\"op\":\"delete\"}\n");
    let deleted = place.run("compare --corpus deleted.jsonl a b");
    assert!(deleted.code == 0 && deleted.out.contains("B (b) was deleted by record 6"), "{deleted:?}");
    for (arguments, code, part) in [
        ("--corpus feed.jsonl a nobody", 1, "no event of document \"nobody\""),
        ("--corpus feed.jsonl --until 2026-11-01 a b", 1, "no event of document \"b\" up to 2026-11-01"),
        ("--corpus feed.jsonl a a", 1, "two documents are compared"),
        ("--corpus nowhere a b", 2, "nowhere"),
        ("--corpus feed.jsonl a b --html feed.jsonl", 2, "is an input and would be lost"),
        ("--id-field x a b", 2, "with --corpus only"),
        ("--until 5 a b", 2, "--corpus"),
    ] {
        let refused = place.run(&format!("compare {arguments}"));
        assert!(refused.code == code && refused.err.contains(part), "{arguments}: {refused:?}");
    }
    assert_eq!(place.read("feed.jsonl"), feed());
}

/// Document frequencies are those of the corpus at that time, as in a run of one epoch.
#[test]
fn live_weights_are_those_of_the_corpus() {
    let place = with_feed();
    let similarity = |until: &str| {
        let compared =
            place.run(&format!("compare -p weighted --corpus feed.jsonl --until {until} a undated"));
        assert!(compared.out.contains("those of the live documents of the corpus"), "{compared:?}");
        compared.out.lines().find(|line| line.contains("Jaccard, exact")).unwrap().to_owned()
    };
    assert_ne!(similarity("2026-11-02"), similarity("2026-11-04"));
}

/// A run writes times too, into a file that continues after a restart.
#[test]
fn changes_of_a_run_have_times() {
    let place = with_feed();
    let deployment = |format: &str, more: &str| {
        let source = "source.inputs = [\"feed.jsonl\"]\nsource.epoch = \"events:1\"\n";
        place.file("here.toml", format!("{source}sink.path = \"out.{format}\"\nsink.times = true\n{more}"));
        place.run("run -c here.toml")
    };
    let whole = feed();
    let first: String = whole.lines().take(2).map(|line| line.to_owned() + "\n").collect();
    for format in ["jsonl", "csv"] {
        place.file("feed.jsonl", &first);
        assert_eq!(deployment(format, "").code, 0);
        place.file("feed.jsonl", &whole);
        assert_eq!(deployment(format, "").code, 0);
    }
    let out = place.read("out.jsonl");
    assert_eq!(accumulated(&out), accumulated(&place.replay("--epoch events:1 feed.jsonl").0.out));
    let has_times =
        |line: &Value| line["committed"].as_f64().unwrap() > 1.7e9 && line.get("event_time").is_some();
    assert!(lines(&out).iter().all(has_times), "{out}");
    let table = place.read("out.csv");
    assert!(table.starts_with("epoch,diff,a,b,similarity,event_time,committed\n"), "{table}");
    assert_eq!(table.lines().count(), out.lines().count() + 1, "{table}");
    let refused = deployment("jsonl", "sink.emit = \"pairs\"\n");
    assert!(refused.code == 2 && refused.err.contains("sink.times: only changes have times"), "{refused:?}");
    place.file("here.toml", "source.inputs = [\"feed.jsonl\"]\nsink.path = \"out.csv\"\n");
    let other = place.run("run -c here.toml");
    assert!(other.code == 1 && other.err.contains("sink.times"), "{other:?}");
}

/// The documents of a folder are read by all processes, and `--until` holds in all of them.
#[test]
fn several_processes_have_the_provenance_of_one() {
    let place = with_feed();
    for n in 0..40 {
        place.file(format!("folder/{n}.txt"), page(0..1, 100 + n));
    }
    let options = "--until 2026-11-02 --epoch events:5 --workers 1 feed.jsonl folder";
    let (_, one) = place.replay(options);
    // The listeners hold different ports until the last of them is known.
    let listeners = [(); 3].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let hosts = listeners.map(|listener| format!("{}\n", listener.local_addr().unwrap()));
    place.file("hosts", hosts.concat());
    let processes = (0..3).map(|process| {
        let stats = if process == 0 { "--stats stats.json " } else { "" };
        let several = format!("replay --processes 3 --process {process} --hosts hosts {stats}{options}");
        let mut command = super::dupflow::command(several.split(' '));
        command.current_dir(place.path("")).stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::piped()).spawn().unwrap()
    });
    for process in processes.collect::<Vec<_>>() {
        let ended = process.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    let three: Value = serde_json::from_str(&place.read("stats.json")).unwrap();
    assert_eq!(three["provenance"], one["provenance"]);
    assert_eq!(one["provenance"]["inputs"][1]["files"], 40);
    assert_eq!(one["after_until"], 2);
}

/// A pipeline file names another file by its path from there.
#[test]
fn a_report_of_a_pipeline_file_is_repeated() {
    let place = with_feed();
    place.file("pipe/stop.txt", "w1\nw2\n");
    place
        .file("pipe/own.toml", "threshold = 0.6\n[text]\nstop_words = \"stop.txt\"\nshingle = \"words:2\"\n");
    place.replay("-p pipe/own.toml --set threshold=0.7 --provenance -o out.jsonl feed.jsonl");
    verify(&place, "out.jsonl feed.jsonl", true);
    verify(&place, "out.jsonl feed.jsonl -p pipe/own.toml --set threshold=0.7", true);
    let other = verify(&place, "out.jsonl feed.jsonl -p pipe/own.toml", false);
    assert!(other.out.contains("threshold: 0.7 there, 0.6 in the pipeline that was named"), "{other:?}");
    // The words have changed since.
    place.file("pipe/stop.txt", "w1\nw3\n");
    let changed = verify(&place, "out.jsonl feed.jsonl", false);
    assert!(changed.out.contains("pipeline key text.stop_words"), "{changed:?}");
    std::fs::remove_file(place.path("pipe/stop.txt")).unwrap();
    let gone = place.run("verify out.jsonl feed.jsonl");
    assert!(gone.code == 2 && gone.err.contains("stop.txt"), "{gone:?}");
}

#[test]
fn reports_with_fields_and_of_decisions_are_repeated() {
    let place = Place::new();
    let event = |id: &str, host: &str| {
        json!({ "id": id, "url": format!("https://{host}.org/{id}"), "text": page(0..1, 0) }).to_string()
            + "\n"
    };
    place.file("feed.jsonl", [event("a", "one"), event("b", "one"), event("c", "two")].concat());
    for rule in ["a.host!=b.host", "a.host==b.host"] {
        let made = place.run(&format!(
            "replay --field host(url) --set pairs.where={rule} --emit pairs --provenance -o pairs.jsonl \
            feed.jsonl"
        ));
        assert_eq!(made.code, 0, "{rule}: {made:?}");
        assert!(place.read("pairs.jsonl").lines().count() > 2, "{rule}: no pair");
        verify(&place, "pairs.jsonl feed.jsonl", true);
    }
    for mode in ["first", "current"] {
        let stats = format!("--epoch events:1 --emit decisions --decisions {mode} --stats stats.json");
        assert_eq!(place.run(&format!("replay {stats} -o out.jsonl feed.jsonl")).code, 0);
        verify(&place, "stats.json --output out.jsonl feed.jsonl", true);
    }
    let clock = "replay --epoch every:1s --emit decisions --stats stats.json -o out.jsonl feed.jsonl";
    assert_eq!(place.run(clock).code, 0);
    let refused = place.run("verify stats.json --output out.jsonl feed.jsonl");
    assert!(refused.code == 2 && refused.err.contains("a decision is of its epoch"), "{refused:?}");
    for (option, why) in [("--times", "only changes have times"), ("--provenance", "decisions have no place")]
    {
        let vain = place.run(&format!("replay --emit decisions {option} -o out.jsonl feed.jsonl"));
        assert!(vain.code == 2 && vain.err.contains(why), "{vain:?}");
    }
}

#[test]
fn a_comparison_says_what_pairs_where_says() {
    let place = Place::new();
    let text = page(0..0, 0);
    let events = [("a", "one"), ("b", "one"), ("c", "two")]
        .map(|(id, host)| json!({ "id": id, "host": host, "text": text }).to_string() + "\n");
    place.file("feed.jsonl", events.concat());
    place.file("text.txt", text);
    let compare =
        |arguments: &str| place.run(&format!("compare --set pairs.where=a.host!=b.host {arguments}"));
    let same = compare("--corpus feed.jsonl --field host --html page.html a b");
    let why = "no pair: pairs.where wants a.host != b.host, and host is \"one\" here and \"one\" there";
    assert!(same.code == 0 && same.out.contains(why), "{same:?}");
    assert!(place.read("page.html").contains("<p class=\"answer\">1.000: no pair: pairs.where wants"));
    let other = compare("--corpus feed.jsonl --field host a c");
    assert!(other.code == 0 && other.out.starts_with("1.000: a pair, of copies\n"), "{other:?}");
    let files = compare("text.txt text.txt");
    assert!(files.out.contains("1.000: a pair, of copies, unless pairs.where rejects it\n"), "{files:?}");
    let missing = compare("--corpus feed.jsonl a b");
    assert!(
        missing.code == 2 && missing.err.contains("no field \"host\"; name it with --field"),
        "{missing:?}"
    );
}

/// Options with paths are not those of a report, which may come from someone else.
#[test]
fn a_report_does_not_say_what_is_read_and_written() {
    let place = with_feed();
    place.file("victim", "precious");
    assert_eq!(place.run("replay --provenance -o out.jsonl feed.jsonl").code, 0);
    for (name, value) in [
        ("dead-letter", "victim"),
        ("notices", "victim"),
        ("files-from", "victim"),
        ("monitor", "127.0.0.1:0"),
    ] {
        with_value(&place, |report| report["options"][name] = value.into());
        let refused = place.run("verify changed.jsonl feed.jsonl");
        assert!(refused.code == 2, "{refused:?}");
        assert!(refused.err.contains("which decides no result"), "{refused:?}");
        assert!(!refused.err.contains("precious") && place.read("victim") == "precious", "{refused:?}");
    }
}
