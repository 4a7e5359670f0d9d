//! `dupflow replay`: the result does not depend on how the feed is compressed, cut into epochs, divided into
//! files and timed; the output formats are as documented.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use super::dupflow::{Place, command};
use super::feeds::{accumulated, delete, lines, page, pairs, upsert};

/// A folder with a generated feed of 400 documents, `feed.jsonl`.
fn with_feed() -> Place {
    let place = Place::new();
    let made = place.run("generate --documents 400 --seed 3 --near 0.5 --max-words 80 -o feed.jsonl");
    assert_eq!(made.code, 0, "{made:?}");
    place
}

/// The output of a run, which must contain pairs.
fn result(place: &Place, arguments: &str) -> String {
    let out = place.replay(arguments).0.out;
    assert!(out.lines().count() > 20, "{arguments}: {out}");
    out
}

#[test]
fn any_packing_gives_the_same_bytes() {
    let place = with_feed();
    let feed = place.read("feed.jsonl");
    let expected = result(&place, "feed.jsonl");

    place.file("feed.jsonl.zst", zstd::encode_all(feed.as_bytes(), 3).unwrap());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(feed.as_bytes()).unwrap();
    place.file("feed.jsonl.gz", gzip.finish().unwrap());
    // A compressed feed is detected by its content, not by its name.
    place.file("feed", zstd::encode_all(feed.as_bytes(), 1).unwrap());
    let third = feed.match_indices('\n').nth(feed.lines().count() / 3).unwrap().0 + 1;
    place.file("1", &feed[..third]);
    place.file("2", feed[third..].replace('\n', "\r\n"));
    for inputs in ["feed.jsonl.zst", "feed.jsonl.gz", "feed", "1 2"] {
        assert_eq!(result(&place, inputs), expected, "{inputs}");
    }

    let (head, tail) = feed.split_at(third);
    for (inputs, piped) in [("-", &*feed), ("/dev/stdin", &*feed), ("1 -", tail)] {
        if inputs == "/dev/stdin" && !cfg!(target_os = "linux") {
            continue;
        }
        let run =
            place.run_with(&format!("replay {inputs}"), |pipe| pipe.write_all(piped.as_bytes()).unwrap());
        assert_eq!((run.code, run.out), (0, expected.clone()), "{inputs}");
    }
    assert_eq!(head.lines().count() + tail.lines().count(), feed.lines().count());
}

#[test]
fn any_number_of_workers_gives_the_same_bytes() {
    let place = with_feed();
    for options in ["--epoch events:50", "--epoch events:50 --evidence --emit pairs", "-p exact"] {
        let one = result(&place, &format!("{options} --workers 1 feed.jsonl"));
        assert_eq!(one, result(&place, &format!("{options} --workers 4 feed.jsonl")), "{options}");
    }
}

#[test]
fn deltas_accumulate_to_the_pairs() {
    let place = with_feed();
    let all = pairs(&result(&place, "--emit pairs feed.jsonl"));
    for (epoch, epochs) in [("all", 1), ("events:100", 2), ("events:7", 20), ("ts", 20)] {
        let (run, stats) = place.replay(&format!("--epoch {epoch} feed.jsonl"));
        assert_eq!(accumulated(&run.out), all, "--epoch {epoch}");
        let deltas = lines(&run.out);
        assert!(deltas.iter().all(|delta| delta["epoch"].as_u64() <= stats["epochs"].as_u64()));
        assert!(stats["epochs"].as_u64() >= Some(epochs), "--epoch {epoch}: {}", stats["epochs"]);
        assert_eq!(stats["deltas"], deltas.len());
        assert_eq!(stats["pairs"], all.len());
        assert_eq!(pairs(&result(&place, &format!("--emit pairs --epoch {epoch} feed.jsonl"))), all);
    }
}

#[test]
fn a_time_stamp_closes_an_epoch() {
    let place = Place::new();
    let stamped =
        |ts: &str, id: &str, text: &str| format!("{{\"ts\":{ts},\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
    let text = page(0..0, 0);
    place.file(
        "feed",
        [
            stamped("5", "a", &text),
            stamped("5.0", "b", &text),
            stamped("5.5", "c", &text),
            stamped("4", "a", ""),
        ]
        .concat(),
    );
    let run = place.replay("--epoch ts feed").0;
    let expected = r#"{"epoch":1,"diff":1,"a":"a","b":"b","similarity":1.0}
{"epoch":2,"diff":1,"a":"a","b":"c","similarity":1.0}
{"epoch":2,"diff":1,"a":"b","b":"c","similarity":1.0}
{"epoch":3,"diff":-1,"a":"a","b":"b","similarity":1.0}
{"epoch":3,"diff":-1,"a":"a","b":"c","similarity":1.0}
"#;
    assert_eq!(run.out, expected);
}

#[test]
fn a_folder_is_a_corpus() {
    let place = Place::new();
    place.file("docs/a.txt", page(0..0, 0));
    place.file("docs/deep/er/b", page(0..1, 1));
    place.file("docs/.hidden", page(0..0, 0));
    place.file("docs/other", page(0..100, 2));
    let (run, stats) = place.replay("--emit pairs docs");
    let ids: Vec<_> = pairs(&run.out).into_keys().collect();
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(ids, [pair("a.txt", "deep/er/b")]);
    assert_eq!((&stats["documents"], &stats["events"]), (&3.into(), &3.into()));
    assert_eq!(stats["skipped"], serde_json::json!({ "hidden": 1 }));

    place.file("feed", upsert("x", &page(0..0, 0)) + &delete("a.txt"));
    let after = pairs(&place.replay("--emit pairs docs feed").0.out);
    assert!(
        after.contains_key(&pair("deep/er/b", "x")) && !after.contains_key(&pair("a.txt", "x")),
        "{after:?}"
    );
}

#[test]
fn stats_have_every_promised_key() {
    let place = with_feed();
    let (run, stats) = place.replay("--workers 2 feed.jsonl");
    for key in [
        "events",
        "documents",
        "bytes",
        "empty",
        "bad_records",
        "epochs",
        "deltas",
        "pairs",
        "candidates",
        "compared_by_stage",
        "components_compared",
        "hot_blocks",
        "seconds",
        "peak_rss_bytes",
        "scheme",
        "workers",
    ] {
        assert!(!stats[key].is_null(), "{key} is not in {stats}");
    }
    let feed = lines(&place.read("feed.jsonl"));
    let bytes: usize = feed.iter().filter_map(|event| event["text"].as_str()).map(str::len).sum();
    assert_eq!((&stats["events"], &stats["bytes"]), (&feed.len().into(), &bytes.into()));
    assert_eq!((&stats["workers"], &stats["bad_records"]), (&2.into(), &serde_json::json!({})));
    assert!(stats["peak_rss_bytes"].as_u64() > Some(1 << 20) || !cfg!(target_os = "linux"), "{stats}");
    assert!(stats["seconds"].as_f64() > Some(0.0));
    let scheme = stats["scheme"].as_str().unwrap();
    assert!(run.err.contains(&format!("scheme=\"{scheme}\"")), "the log names the scheme: {}", run.err);
    assert!(run.err.contains("\nread ") && run.err.contains("\nmemory "), "a summary: {}", run.err);
}

#[test]
fn json_logs_are_one_object_per_line() {
    let place = Place::new();
    place.file("feed", "{\"oops\n".to_owned() + &upsert("a", "a text"));
    let run = place.run("replay --log-format json feed");
    let logged = lines(&run.err);
    assert_eq!((&logged[0]["message"], &logged[0]["level"]), (&"replay".into(), &"INFO".into()));
    assert_eq!(logged[0]["scheme"].as_str().map(str::len), Some(16));
    assert_eq!((&logged[1]["reason"], &logged[1]["starts"]), (&"not_json".into(), &"{\"oops".into()));
    let summary: Vec<_> = logged[2..].iter().filter_map(|line| line["message"].as_str()).collect();
    assert!(
        summary.len() == logged.len() - 2 && summary[0].starts_with("read        1 event "),
        "{summary:?}"
    );
    let text = place.run("replay feed").err;
    assert!(text.contains(r#"starts="{\"oops""#), "escaped once: {text}");
    let made = place.run("generate --documents 10 -o made --log-format json");
    assert!(
        lines(&made.err)[0]["message"].as_str().is_some_and(|message| message.starts_with("made ")),
        "{made:?}"
    );
}

#[test]
fn evidence_explains_each_pair() {
    let place = Place::new();
    let feed =
        [upsert("a", &page(0..0, 0)), upsert("b", &page(0..0, 0)), upsert("c", &page(0..3, 1))].concat();
    place.file("feed", feed);
    let run = place.replay("--evidence --emit pairs feed").0;
    let found = lines(&run.out);
    assert_eq!(found.len(), 3, "{run:?}");
    for pair in found {
        let of = |key: &str| pair[key].as_f64().unwrap_or_else(|| panic!("{key} is not in {pair}"));
        let [blocks, look, components, error] = ["blocks", "look", "components", "standard_error"].map(of);
        if pair["b"] == "b" {
            assert!(blocks + look + components == 0.0, "copies are not compared: {pair}");
            assert!((error - 3.0 / 448.0 * 16.0 / 15.0).abs() < 1e-12, "only their sketches are: {pair}");
        } else {
            assert!((1.0..=18.0).contains(&blocks) && look >= 1.0, "{pair}");
            assert!((64.0..=448.0).contains(&components) && error > 0.0 && error < 0.03, "{pair}");
        }
    }
    // An exact similarity has no standard error.
    let exact = lines(&place.replay("-p exact --evidence --emit pairs feed").0.out);
    assert!(exact.len() == 3 && exact.iter().all(|pair| pair["standard_error"] == 0.0), "{exact:?}");
}

#[test]
fn ids_and_similarities_read_back() {
    let place = Place::new();
    let strange = ["quote \" and \\", "new\nline", "nul \0", "é \u{7f} 😀", &"long".repeat(256)];
    place.file(
        "feed",
        strange.iter().map(|id| upsert(id, &page(0..0, 0))).collect::<String>()
            + &upsert("z", &page(0..2, 1)),
    );
    let found = pairs(&place.replay("-p exact --emit pairs feed").0.out);
    assert_eq!(found.len(), 15);
    for id in strange {
        let of: Vec<_> = found.iter().filter(|((a, b), _)| a == id || b == id).collect();
        assert_eq!(of.len(), 5, "{id:?}");
    }
    // 96 of 98 shingles each are common, 100 in total: the nearest float to 0.96.
    assert_eq!(found.values().filter(|s| s.to_bits() == 0.96_f64.to_bits()).count(), 5, "{found:?}");
}

#[test]
fn settings_can_be_overridden() {
    let place = with_feed();
    let default = place.replay("--emit pairs feed.jsonl");
    let strict = place.replay("--emit pairs --set threshold=0.95 feed.jsonl");
    let (all, few) = (pairs(&default.0.out), pairs(&strict.0.out));
    assert!(!few.is_empty() && few.len() < all.len() && few.values().all(|s| *s >= 0.95), "{few:?}");
    assert_eq!(default.1["scheme"], strict.1["scheme"], "a threshold is no part of the scheme");
    let seeded = place.replay("--set sketch.seed=1 --set sketch.seed=2 feed.jsonl").1;
    assert_eq!(
        seeded["scheme"],
        place.replay("--set sketch.seed=2 feed.jsonl").1["scheme"],
        "the last one counts"
    );
    assert_ne!(seeded["scheme"], default.1["scheme"]);
    place.file("mine.toml", "threshold = 0.95\n");
    assert_eq!(pairs(&place.replay("-p mine.toml --emit pairs feed.jsonl").0.out), few);
}

#[test]
fn speed_changes_nothing_but_time() {
    let place = Place::new();
    let stamped =
        |ts: f64, id: &str| format!("{{\"ts\":{ts},\"id\":\"{id}\",\"text\":\"{}\"}}\n", page(0..0, 0));
    place.file("feed", [stamped(10.0, "a"), stamped(10.01, "b"), stamped(10.02, "c")].concat());
    let fast = place.replay("--epoch ts feed").0.out;
    assert_eq!(fast.lines().count(), 3);
    for speed in ["max", "real", "2x", "1000x"] {
        let (run, stats) = place.replay(&format!("--epoch ts --speed {speed} feed"));
        assert_eq!(run.out, fast, "{speed}");
        // No event is played before its time.
        let least = match speed {
            "real" => 0.02,
            "2x" => 0.01,
            _ => 0.0,
        };
        assert!(stats["seconds"].as_f64() >= Some(least), "{speed}: {stats}");
    }
}

#[test]
fn a_closed_pipe_ends_the_run_quietly() {
    let place = Place::new();
    // Half a million pairs: more than a pipe holds.
    let copies: String =
        (0..1000).map(|n| upsert(&format!("{n}"), "the same text for all of them")).collect();
    place.file("feed", copies);
    let feed = place.path("feed");
    let forms = [("deltas", "jsonl"), ("pairs", "jsonl"), ("deltas", "csv"), ("pairs", "csv")];
    for (emit, form) in forms {
        let arguments = ["replay", "--emit", emit, "--output-format", form, feed.to_str().unwrap()];
        let mut child = command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let is_line = if form == "csv" { line.ends_with("similarity\n") } else { line.ends_with("}\n") };
        assert!(is_line, "{line}");
        let mut message = String::new();
        child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{message}");
        assert!(!message.contains("error") && !message.contains("panic"), "{message}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_a_failure() {
    let place = Place::new();
    place.file("feed", upsert("a", "the same") + &upsert("b", "the same"));
    // `wrong_usage::outputs_are_tried_before_the_run` covers outputs that cannot be opened.
    if cfg!(target_os = "linux") {
        let run = place.run("replay -o /dev/full feed");
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.err.contains("error: the output cannot be written: "), "{run:?}");
        assert!(run.err.contains("/dev/full") && run.err.contains("No space left on device"), "{run:?}");
    }
}

#[test]
fn an_output_file_holds_what_standard_output_would() {
    let place = with_feed();
    let expected = result(&place, "feed.jsonl");
    let (run, _) = place.replay("-o out feed.jsonl");
    assert_eq!((run.out.as_str(), place.read("out")), ("", expected));
}

#[test]
fn an_input_is_never_written_to() {
    let place = Place::new();
    let feed = upsert("a", "the same");
    place.file("folder/feed", &feed);
    for (option, other) in [("-o", "--output"), ("--stats", "--stats"), ("--dead-letter", "--dead-letter")] {
        let run = place.run(&format!("replay {option} ./folder/../folder/feed folder/feed"));
        assert_eq!(run.code, 2, "{run:?}");
        assert!(
            run.err.starts_with(&format!("error: {other}: ")) && run.err.contains("is an input"),
            "{run:?}"
        );
        assert_eq!(place.read("folder/feed"), feed);
    }
    let twice = place.run("replay -o same --stats same folder/feed");
    assert_eq!(twice.code, 2, "{twice:?}");
    assert!(twice.err.contains("error: --stats: \"same\" is written to by --output"), "{twice:?}");
    let devices = place.run("replay -o /dev/null --dead-letter /dev/null folder/feed");
    assert_eq!(devices.code, 0, "{devices:?}");
}

#[test]
fn nothing_is_written_into_a_folder_that_is_read() {
    let place = Place::new();
    place.file("docs/a", page(0..0, 0));
    place.file("docs/deep/b", page(0..0, 0));
    for (option, message) in [("-o", "--output"), ("--stats", "--stats"), ("--dead-letter", "--dead-letter")]
    {
        for file in ["docs/out", "./docs/deep/../deep/out", "docs/a"] {
            let run = place.run(&format!("replay {option} {file} docs"));
            assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
            let problem = format!(
                "error: {message}: \"{file}\" is in the folder \"docs\", whose files are the documents"
            );
            assert!(run.err.starts_with(&problem), "{run:?}");
        }
    }
    assert!(!place.path("docs/out").exists() && place.read("docs/a") == page(0..0, 0));
    // Beside the folder, with a name that begins with the folder's name.
    let beside = place.run("replay -o docs.out docs");
    assert_eq!((beside.code, place.read("docs.out").lines().count()), (0, 1), "{beside:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_redirected_output_is_not_read_either() {
    let place = Place::new();
    place.file("docs/a", page(0..0, 0));
    place.file("docs/b", page(0..0, 0));
    let mut replay = command(["replay", "docs"]);
    replay.current_dir(place.path("")).stdout(std::fs::File::create(place.path("docs/out")).unwrap());
    let run = replay.output().unwrap();
    let message = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(2), "{message}");
    assert!(message.starts_with("error: standard output: ") && message.contains("docs/out"), "{message}");
}

/// With the default looks the output is the same, for sketches of every layout: their error is 1e-5, and the
/// seed is pinned. Where no similarity is written, pairs that are accepted early are not read to their end.
#[test]
fn looks_change_what_is_read_and_nothing_that_is_written() {
    let place = with_feed();
    let mut early = 0;
    for (plan, of_looks) in [
        ("-p minhash", ""),
        ("-p minhash --set threshold=0.9", ""),
        ("-p minhash --set sketch.bits=1 --set sketch.size=1000", ""),
        ("-p minhash --set sketch.bits=8 --set sketch.size=250", ""),
        ("-p minhash --set sketch.bits=64 --set sketch.size=300", ""),
        (
            "-p minhash --set sketch.kind=connected --set sketch.run=2 --set sketch.bits=32 --set \
            sketch.size=200",
            "",
        ),
        ("-p weighted", ""),
        ("-p paper --set sketch.size=200", "--set filter.looks=[20,40,80,120]"),
    ] {
        for emit in ["deltas", "clusters", "keep"] {
            let run = |filter: &str| {
                let all = format!("{plan} --emit {emit} --workers 2 --epoch events:50 {filter} feed.jsonl");
                place.replay(&all.split_whitespace().collect::<Vec<_>>().join(" "))
            };
            let (looks, stats) = run(of_looks);
            let of_stages = stats["compared_by_stage"].as_array().expect("a list");
            let stages: Vec<u64> = of_stages.iter().map(|n| n.as_u64().expect("a count")).collect();
            early += stages[1..stages.len() - 1].iter().sum::<u64>();
            let full = run("--set filter.kind=full").0;
            let lines = |out: &str| -> Vec<String> {
                let mut lines: Vec<String> = out.lines().map(str::to_owned).collect();
                lines.sort_unstable();
                lines
            };
            assert!(lines(&full.out).len() > 20, "{plan}, {emit}: {full:?}");
            assert_eq!(lines(&looks.out), lines(&full.out), "{plan}, {emit}");
        }
    }
    assert!(early > 1000, "{early} comparisons ended before the last look");
}
