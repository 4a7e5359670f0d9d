//! The commands that reach a broker, as a user runs them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::Test;
use crate::broker::Broker;
use crate::clusters::committed;

pub(crate) const TESTS: &[Test] = &[
    ("commands::a_feed_is_produced_and_recorded", a_feed_is_produced_and_recorded),
    ("commands::a_feed_of_any_time_is_produced", a_feed_of_any_time_is_produced),
    ("commands::bad_records_are_recorded_as_bad", bad_records_are_recorded_as_bad),
    ("commands::check_reaches_the_broker", check_reaches_the_broker),
    ("commands::a_replay_corrects_topics", a_replay_corrects_topics),
];

/// Standard output, standard error, and whether the program succeeds.
pub(crate) fn dupflow(folder: &Path, arguments: &[&str]) -> (String, String, bool) {
    let program = env!("CARGO_BIN_EXE_dupflow");
    let output = Command::new(program).current_dir(folder).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

fn succeeds(folder: &Path, arguments: &[&str]) -> (String, String) {
    let (out, log, good) = dupflow(folder, arguments);
    assert!(good, "{arguments:?}: {log}");
    (out, log)
}

fn deployment(broker: &Broker, folder: &Path, topic: &str, more: &str) {
    let brokers = broker.address();
    let text =
        format!("kafka.brokers = \"{brokers}\"\nsource.kind = \"kafka\"\nsource.topic = \"{topic}\"\n{more}");
    std::fs::write(folder.join("d.toml"), text).unwrap();
}

fn a_feed_is_produced_and_recorded(broker: &Broker) {
    let folder = tempfile::tempdir().unwrap();
    let topic = Broker::name("topic");
    deployment(broker, folder.path(), &topic, "");
    succeeds(folder.path(), &["generate", "--documents", "300", "-o", "feed.jsonl"]);
    let (_, log) = succeeds(
        folder.path(),
        &["produce", "-c", "d.toml", "--partitions", "3", "--rate", "100000/s", "feed.jsonl"],
    );
    assert!(log.contains(&format!("to topic \"{topic}\", 0 bad records left out")), "{log}");
    assert_eq!(broker.admin().find(&topic).unwrap().unwrap().partitions, 3);
    succeeds(folder.path(), &["record", "-c", "d.toml", "--until-now", "-o", "recorded.jsonl"]);
    let lines = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap().lines().count();
    assert_eq!(lines("recorded.jsonl"), lines("feed.jsonl"));
    // The events of each document are in order, so the final pairs are the same.
    let pairs = |feed: &str| succeeds(folder.path(), &["replay", "--emit", "pairs", feed]).0;
    let expected = pairs("feed.jsonl");
    assert!(!expected.is_empty());
    assert_eq!(pairs("recorded.jsonl"), expected);
    std::fs::write(folder.path().join("other.jsonl"), "{\"name\":\"a\",\"body\":\"b\"}\n").unwrap();
    let (_, log, good) = dupflow(folder.path(), &["produce", "-c", "d.toml", "other.jsonl"]);
    let why = "\"other.jsonl\" holds 1 record and no document";
    assert!(!good && log.contains(why) && log.contains("among \"body\", \"name\""), "{log}");
    let (out, _) = succeeds(folder.path(), &["record", "-c", "d.toml", "--records", "7"]);
    assert_eq!(out.lines().count(), 7);
    assert!(
        out.lines().all(|line| line.contains(",\"partition\":") && line.contains(",\"offset\":")),
        "{out}"
    );
}

/// A topic that `produce` makes takes and keeps records of any time; of another one its settings are named.
fn a_feed_of_any_time_is_produced(broker: &Broker) {
    let folder = tempfile::tempdir().unwrap();
    let tomorrow = 86_400 + i64::try_from(dupflow_core::time::unix_milliseconds() / 1000).unwrap();
    let times = [
        "0".to_owned(),
        "0.0004".to_owned(),
        "1700000000".to_owned(),
        tomorrow.to_string(),
        "4102444799".to_owned(),
    ];
    let feed = |times: &[String]| -> String {
        let line = |(n, ts)| format!("{{\"id\":\"d{n}\",\"ts\":{ts},\"text\":\"a text of some words\"}}\n");
        times.iter().enumerate().map(line).collect()
    };
    std::fs::write(folder.path().join("feed.jsonl"), feed(&times)).unwrap();
    let produce = &["produce", "-c", "d.toml", "--partitions", "1", "feed.jsonl"];
    let made = Broker::name("topic");
    deployment(broker, folder.path(), &made, "");
    let (_, log) = succeeds(folder.path(), produce);
    assert!(log.contains("a ts below a millisecond is written as 0.001 records=2"), "{log}");
    let settings =
        "cleanup.policy=delete, retention.ms=-1, retention.bytes=-1, message.timestamp.after.max.ms=";
    assert!(log.contains(&format!("topic \"{made}\" is made, with {settings}")), "{log}");
    assert_eq!(broker.admin().setting(&made, "retention.ms").unwrap().as_deref(), Some("-1"));
    let recorded = || {
        let (out, log) = succeeds(folder.path(), &["record", "-c", "d.toml", "--until-now"]);
        let ts = |line| serde_json::from_str::<serde_json::Value>(line).unwrap()["ts"].as_f64().unwrap();
        (out.lines().map(ts).collect::<Vec<f64>>(), log)
    };
    let (written, log) = recorded();
    #[expect(clippy::cast_precision_loss, reason = "a present time")]
    let tomorrow_too = tomorrow as f64;
    assert_eq!(written, [0.001, 0.001, 1.7e9, tomorrow_too, 4_102_444_799.0]);
    assert!(!log.contains("the first records are gone"), "{log}");
    broker.admin().truncate(&made, 0, 3).unwrap();
    let (left, log) = recorded();
    assert_eq!(left.len(), 2);
    assert!(
        log.contains("the first records are gone and are not read: partition 0 begins at offset 3"),
        "{log}"
    );

    let kept_a_week = Broker::name("topic");
    broker.make_with(&kept_a_week, 1, &[("retention.ms", "604800000")]);
    deployment(broker, folder.path(), &kept_a_week, "");
    let (_, log, good) = dupflow(folder.path(), produce);
    let refused = format!("document \"d3\" has ts {tomorrow}, and the broker would refuse it");
    assert!(
        !good && log.contains(&refused) && log.contains("message.timestamp.after.max.ms=3600000"),
        "{log}"
    );
    assert!(log.contains("has retention.ms=604800000") && log.contains("records=3"), "{log}");
    let stamped = Broker::name("topic");
    broker.make_with(&stamped, 1, &[("message.timestamp.type", "LogAppendTime")]);
    deployment(broker, folder.path(), &stamped, "");
    assert!(succeeds(folder.path(), produce).1.contains("message.timestamp.type=LogAppendTime"));
}

fn bad_records_are_recorded_as_bad(broker: &Broker) {
    let folder = tempfile::tempdir().unwrap();
    let topic = broker.topic(1);
    deployment(broker, folder.path(), &topic, "source.format = \"json\"");
    let writer = broker.writer();
    writer.texts(&topic, 0, &[("a", r#"{"text":"one"}"#), ("b", "{not\njson"), ("a", "")]);
    writer.put(&topic, 0, None, Some(br#"{"id":"x","text":"an event but for its key"}"#));
    writer.flush();
    let (out, log) = succeeds(folder.path(), &["record", "-c", "d.toml", "--until-now"]);
    assert!(log.contains("4 records, 2 of them bad"), "{log}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[1], "{not json");
    assert!(lines[2].contains("\"op\":\"delete\"") && lines[3].starts_with("\"{"), "{out}");
}

fn check_reaches_the_broker(broker: &Broker) {
    let folder = tempfile::tempdir().unwrap();
    let (topic, output) = (broker.topic(2), Broker::name("pairs"));
    broker.writer().texts(&topic, 1, &[("a", "t"), ("b", "t")]);
    let sink = format!("sink.kind = \"kafka\"\nsink.topic = \"{output}\"\n");
    deployment(broker, folder.path(), &topic, &sink);
    let (out, _) = succeeds(folder.path(), &["check", "-c", "d.toml", "--connect"]);
    assert!(out.contains(&format!("reads topic \"{topic}\": 2 partitions, 2 offsets held")), "{out}");
    assert!(out.contains(&format!("writes topic \"{output}\": missing, the first run makes it")), "{out}");
    assert_eq!(broker.admin().find(&output).unwrap(), None, "nothing is created");
    // The topics of views, of notices and of watches.
    let [rows, notices, compacted, list] = ["rows", "notices", "compacted", "list"].map(Broker::name);
    broker.make(&rows, 3);
    broker.make_with(&compacted, 1, &[("cleanup.policy", "compact")]);
    let sides = |rows: &str, list: &str| {
        format!(
            "{sink}[watch]\ntopic = \"{list}\"\n[notices]\ntopic = \"{notices}\"\n\
             [[view]]\nname = \"v\"\nof = \"pairs\"\ntopic = \"{rows}\"\n"
        )
    };
    deployment(broker, folder.path(), &topic, &sides(&rows, &topic));
    let (out, _) = succeeds(folder.path(), &["check", "-c", "d.toml", "--connect"]);
    assert!(out.contains(&format!("writes topic \"{rows}\": 3 partitions")), "{out}");
    assert!(out.contains(&format!("writes topic \"{notices}\": missing, the first run makes it")), "{out}");
    deployment(broker, folder.path(), &topic, &sides(&compacted, &list));
    let (_, log, good) = dupflow(folder.path(), &["check", "-c", "d.toml", "--connect"]);
    assert!(!good && log.contains(&format!("topic \"{compacted}\" is compacted")), "{log}");
    assert!(log.contains(&format!("topic \"{list}\": there is no such topic")), "{log}");
    deployment(broker, folder.path(), "no-such-topic", &sink);
    let (_, log, good) = dupflow(folder.path(), &["check", "-c", "d.toml", "--connect"]);
    assert!(!good && log.contains("topic \"no-such-topic\": there is no such topic"), "{log}");
}

/// The rows that a topic holds: changes add up, of values as they are the last of each key counts.
fn held(broker: &Broker, topic: &str, is_of_changes: bool) -> BTreeMap<String, i64> {
    let mut last = BTreeMap::new();
    let mut rows = BTreeMap::new();
    for record in committed(broker, topic) {
        let (key, value) = record.split_once(':').unwrap();
        let mut value: serde_json::Value = serde_json::from_str(value).unwrap_or_default();
        let diff = value["diff"].as_i64().unwrap_or(1);
        if let Some(row) = value.as_object_mut() {
            ["epoch", "diff", "at"].iter().for_each(|name| drop(row.remove(*name)));
        }
        if is_of_changes {
            *rows.entry(value.to_string()).or_default() += diff;
        } else {
            last.insert(key.to_owned(), value);
        }
    }
    rows.extend(last.into_values().filter(|value| !value.is_null()).map(|value| (value.to_string(), 1)));
    rows.retain(|_, sum| *sum != 0);
    rows
}

/// Whatever an earlier replay has written, a topic holds what the inputs of the last one give, and so does a
/// file beside it.
fn a_replay_corrects_topics(broker: &Broker) {
    let folder = tempfile::tempdir().unwrap();
    for (seed, name) in [("1", "one.jsonl"), ("2", "two.jsonl")] {
        succeeds(
            folder.path(),
            &["generate", "--documents", "60", "--near", "0.5", "--seed", seed, "-o", name],
        );
    }
    for (emit, beside, is_of_changes) in [
        ("deltas", None, true),
        ("cluster-deltas", None, true),
        ("pairs", Some("pairs.jsonl"), false),
        ("clusters", Some("clusters.jsonl"), false),
        ("decisions", None, false),
    ] {
        let (topic, fresh) = (Broker::name("result"), Broker::name("fresh"));
        for feed in ["one.jsonl", "two.jsonl", "two.jsonl"] {
            let replay = |topic: &str| {
                let place = format!("kafka:{topic}");
                let mut words =
                    vec!["replay", "--emit", emit, "--brokers", broker.address(), "-o", &place, feed];
                beside.iter().for_each(|file| words.extend(["-o", *file]));
                succeeds(folder.path(), &words);
            };
            replay(&topic);
            let there = held(broker, &topic, is_of_changes);
            assert!(!there.is_empty(), "{emit}");
            if let Some(file) = beside {
                let alone = succeeds(folder.path(), &["replay", "--emit", emit, feed]).0;
                assert_eq!(std::fs::read_to_string(folder.path().join(file)).unwrap(), alone);
            }
            if emit == "pairs" {
                let alone = succeeds(folder.path(), &["replay", "--emit", emit, feed]).0;
                let alone = alone
                    .lines()
                    .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap().to_string());
                assert_eq!(there.into_keys().collect::<BTreeSet<_>>(), alone.collect());
            } else if feed == "two.jsonl" {
                // A topic that held nothing.
                replay(&fresh);
                assert_eq!(there, held(broker, &fresh, is_of_changes), "{emit}");
            }
        }
    }
}
