//! Faults of topics and brokers, and how `dupflow run` handles them.

use std::collections::BTreeSet;
use std::io::Write as _;

use dupflow::connectors::credential::Credential;
use rdkafka::producer::Producer as _;

use crate::Test;
use crate::broker::{BOUND, Broker, Writer};
use crate::run::{Output, Run, Scene};

pub(crate) const TESTS: &[Test] = &[
    ("faults::the_topic_is_deleted", the_topic_is_deleted),
    ("faults::records_expire_between_two_runs", records_expire_between_two_runs),
    ("faults::another_scheme_is_refused", another_scheme_is_refused),
    ("faults::bad_records_are_kept_once", bad_records_are_kept_once),
    ("faults::the_broker_is_down_longer_than_a_transaction", the_broker_is_down_longer_than_a_transaction),
    ("faults::the_broker_of_an_output_is_away", the_broker_of_an_output_is_away),
    ("faults::an_output_that_is_not_allowed", an_output_that_is_not_allowed),
    ("faults::a_document_of_five_megabytes", a_document_of_five_megabytes),
    ("faults::partitions_are_added", partitions_are_added),
    ("faults::no_output_contains_a_secret", no_output_contains_a_secret),
];

/// A text. Texts of the same kind are equal.
fn text(kind: u32) -> String {
    (0..20).map(|n| format!("word{kind}x{n} ")).collect()
}

fn put(scene: &Scene<'_>, partition: u32, documents: &[(&str, u32)]) {
    let writer = scene.broker.writer();
    for (id, kind) in documents {
        writer.put(&scene.input, partition, Some(id), Some(text(*kind).as_bytes()));
    }
    writer.flush();
}

fn the_topic_is_deleted(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    // How long the client waits for a topic unknown to the broker.
    scene.more = "[kafka.settings]\n\"topic.metadata.propagation.max.ms\" = 1000\n".to_owned();
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    broker.admin().remove(&scene.input).unwrap();
    let error = run.failure();
    assert!(error.contains(&format!("topic \"{}\"", scene.input)), "{error}");
    assert!(error.contains("there is no such topic") && error.contains("; it was there before"), "{error}");
}

fn records_expire_between_two_runs(broker: &Broker) {
    let scene = Scene::new(broker, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    put(&scene, 0, &[("lost", 1), ("c", 2), ("d", 2)]);
    broker.admin().truncate(&scene.input, 0, 3).unwrap();
    let error = scene.fails(&[]);
    assert!(error.contains("holds 3 to 5 (exclusive): records have expired"), "{error}");
    // Pairs follow from the remaining records: pairs with deleted documents are removed.
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["c d"]);
    run.stop();
    let mut run = scene.run(&[]);
    put(&scene, 0, &[("e", 2)]);
    output.until(&mut run, &["c d", "c e", "d e"]);
    run.stop();
}

fn another_scheme_is_refused(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    scene.more = "state.path = \"state\"\n".to_owned();
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    let error = scene.fails(&["--set", "text.shingle=words:2"]);
    assert!(error.contains("the output was written by another pipeline"), "{error}");
    assert!(error.contains("words:3") && error.contains("words:2"), "{error}");
    // With a new output, the scheme of the state is the one that differs.
    scene.output = Broker::name("pairs");
    let error = scene.fails(&["--set", "text.shingle=words:2"]);
    assert!(error.contains("scheme") && error.contains("words:3") && error.contains("words:2"), "{error}");
}

/// One record in ten is invalid; the run is killed in between.
fn bad_records_are_kept_once(broker: &Broker) {
    let mut scene = Scene::new(broker, 2);
    let letters = Broker::name("letters");
    scene.more =
        format!("source.format = \"json\"\ndead_letter.topic = \"{letters}\"\ncommit.records = 20\n");
    let kept = Output::new(broker, &letters);
    let writer = broker.writer();
    let bad = |n: u32| n % 10 == 7;
    let mut expected = BTreeSet::new();
    for n in 0..600_u32 {
        let value = if bad(n) {
            expected.insert(format!("{{not json {n}"));
            format!("{{not json {n}")
        } else {
            format!("{{\"text\":\"{}\"}}", text(n))
        };
        writer.put(&scene.input, n % 2, Some(&format!("k{n}")), Some(value.as_bytes()));
    }
    writer.flush();
    let mut found = Vec::new();
    let mut positions = BTreeSet::new();
    let mut read = |run: &mut Run, until: usize| {
        while found.len() < until {
            let (value, headers) = kept.next(run);
            assert_eq!(headers["reason"], "not_json", "{headers:?}");
            positions.insert((headers["partition"].clone(), headers["offset"].clone()));
            found.push(String::from_utf8(value.unwrap()).unwrap());
        }
    };
    let mut run = scene.run(&[]);
    read(&mut run, 5);
    run.kill();
    let mut run = scene.run(&[]);
    read(&mut run, expected.len());
    // One more record, so that any duplicates are read before it.
    writer.put(&scene.input, 0, Some("k"), Some(b"{the last"));
    writer.flush();
    read(&mut run, expected.len() + 1);
    run.stop();
    expected.insert("{the last".to_owned());
    assert_eq!((found.len(), positions.len()), (expected.len(), expected.len()));
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
}

fn the_broker_is_down_longer_than_a_transaction(broker: &Broker) {
    let mut scene = Scene::new(broker, 2);
    scene.more = "sink.transaction_seconds = 1\n".to_owned();
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    let writer = broker.writer();
    (0..2000_u32)
        .for_each(|n| writer.put(&scene.input, n % 2, Some(&format!("x{n}")), Some(text(n + 9).as_bytes())));
    writer.flush();
    if !broker.kill() {
        println!(
            "SKIPPED faults::the_broker_is_down_longer_than_a_transaction: it needs the broker of broker.sh"
        );
        return;
    }
    // Lines of one kind are at least a second apart, and `left_out` counts the suppressed ones. So more than
    // a second has passed, the timeout of the transaction.
    run.says("left_out=");
    broker.restart();
    put(&scene, 1, &[("c", 1), ("x0", 2), ("y", 2)]);
    output.until(&mut run, &["a b", "a c", "b c", "x0 y"]);
    run.stop();
}

/// The run and its first output go on without it, and it is corrected once the broker is back.
fn the_broker_of_an_output_is_away(broker: &Broker) {
    let folder = tempfile::tempdir().unwrap();
    let topic = Broker::name("pairs");
    let path = |name: &str| folder.path().join(name);
    let text_of = |ids: &str| -> String {
        ids.chars().map(|id| format!("{{\"id\":\"{id}\",\"text\":\"{}\"}}\n", text(1))).collect()
    };
    let deployed = format!(
        "workers = 1\nkafka.brokers = \"{}\"\n[source]\ninputs = [\"feed.jsonl\"]\nfollow = true\nepoch = \
         \"events:1\"\n[[output]]\npath = \"deltas.jsonl\"\n[[output]]\nkind = \"kafka\"\ntopic = \
         \"{topic}\"\non_failure = \"wait\"\n",
        broker.address()
    );
    std::fs::write(path("run.toml"), deployed).unwrap();
    let append = |ids: &str| {
        let file = std::fs::File::options().create(true).append(true).open(path("feed.jsonl"));
        file.and_then(|mut file| file.write_all(text_of(ids).as_bytes())).unwrap();
    };
    append("ab");
    let mut output = Output::new(broker, &topic);
    let mut run = Run::start(folder.path(), &["run", "-p", "exact", "-c", "run.toml"]);
    output.until(&mut run, &["a b"]);
    if !broker.kill() {
        println!("SKIPPED faults::the_broker_of_an_output_is_away: it needs the broker of broker.sh");
        return;
    }
    let holds = |run: &mut Run, pairs: usize| {
        run.until_file(&path("deltas.jsonl"), |written| written.lines().count() == pairs);
    };
    append("c");
    holds(&mut run, 3);
    run.says("an output is left behind, and the run goes on without it");
    append("d");
    holds(&mut run, 6);
    broker.restart();
    run.says("the output is back, and holds what the first one holds");
    let mut expected = vec!["a b", "a c", "a d", "b c", "b d", "c d"];
    output.until(&mut run, &expected);
    append("e");
    expected.extend(["a e", "b e", "c e", "d e"]);
    expected.sort_unstable();
    output.until(&mut run, &expected);
    run.stop();
}

fn an_output_that_is_not_allowed(broker: &Broker) {
    let Some(guest) = broker.guest("guest") else {
        println!("SKIPPED faults::an_output_that_is_not_allowed: it needs the broker of broker.sh");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("feed.jsonl"), "{\"id\":\"a\",\"text\":\"one two three\"}\n").unwrap();
    let config = format!(
        "source.inputs = [\"feed.jsonl\"]\nsink.kind = \"kafka\"\nsink.topic = \"{}\"\nkafka.brokers = \
         \"{}\"\n{}",
        Broker::name("pairs"),
        guest.brokers,
        sasl("guest")
    );
    std::fs::write(folder.path().join("run.toml"), config).unwrap();
    let error = Run::start(folder.path(), &["run", "-c", "run.toml"]).failure();
    assert!(error.contains("not allowed by the broker"), "{error}");
}

pub(crate) fn sasl(password: &str) -> String {
    format!(
        "[kafka.settings]\n\"security.protocol\" = \"sasl_plaintext\"\n\"sasl.mechanism\" = \"PLAIN\"\n\
         \"sasl.username\" = \"guest\"\n{password_line}",
        password_line = if password.starts_with("./") {
            format!("\"sasl.password_file\" = \"{password}\"\n")
        } else {
            format!("\"sasl.password\" = \"{password}\"\n")
        }
    )
}

fn a_document_of_five_megabytes(broker: &Broker) {
    let scene = Scene::new(broker, 1);
    let mut connection = broker.connection();
    connection.settings.insert("message.max.bytes".to_owned(), Credential::new("10000000"));
    let writer = Writer(connection.producer("writer", &[]).unwrap());
    let large: String = (0..500_000).map(|n| format!("word{n:05} ")).collect();
    assert!(large.len() >= 5_000_000);
    for (id, last) in [("a", "one"), ("b", "two")] {
        writer.put(&scene.input, 0, Some(id), Some(format!("{large}{last}").as_bytes()));
    }
    writer.0.flush(BOUND).unwrap();
    if let Some(refused) = writer.0.context().undelivered() {
        println!("SKIPPED faults::a_document_of_five_megabytes: {refused}");
        return;
    }
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
}

fn partitions_are_added(broker: &Broker) {
    let scene = Scene::new(broker, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    broker.grow(&scene.input, 3);
    put(&scene, 2, &[("c", 1)]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    run.stop();
    // The mark holds positions of added partitions too.
    let mut run = scene.run(&[]);
    put(&scene, 1, &[("d", 2)]);
    put(&scene, 2, &[("e", 2)]);
    output.until(&mut run, &["a b", "a c", "b c", "d e"]);
    run.stop();
}

/// No message contains the secret, at the lowest log level and with a broker that rejects it.
fn no_output_contains_a_secret(broker: &Broker) {
    const SECRET: &str = "correct-horse-battery";
    let Some(guest) = broker.guest(SECRET) else {
        println!("SKIPPED faults::no_output_contains_a_secret: it needs the broker of broker.sh");
        return;
    };
    let topic = broker.topic(1);
    let commands = [
        &["check", "-c", "run.toml"][..],
        &["check", "-c", "run.toml", "--connect"],
        &["run", "-c", "run.toml"],
        &["run", "-c", "run.toml", "--dry-run", "1"],
        &["record", "-c", "run.toml", "--until-now"],
        &["produce", "-c", "run.toml", "feed.jsonl"],
    ];
    for (how, password) in [("typed", SECRET), ("in a file", "./password")] {
        // At the same time, since most of their duration is waiting.
        let runs = commands.map(|words| {
            let folder = tempfile::tempdir().unwrap();
            let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
            put("password", &format!("{SECRET}\n"));
            put("feed.jsonl", "{\"id\":\"a\",\"text\":\"one two three\"}\n");
            let config = format!(
                "kafka.brokers = \"{}\"\nkafka.connect_seconds = 5\nsource.kind = \"kafka\"\nsource.topic = \
                 \"{topic}\"\n\
                 sink.kind = \"kafka\"\nsink.topic = \"pairs\"\nlogging.level = \"trace\"\n{}",
                guest.brokers,
                sasl(password)
            );
            put("run.toml", &config);
            (Run::start(folder.path(), words), folder, words)
        });
        for (mut run, _folder, words) in runs {
            let fails = !run.wait().success();
            assert_eq!(fails, words.len() > 3 || words[0] == "run", "{how}: {words:?}: {}", run.log());
            assert!(!run.log().contains(SECRET), "{how}: {words:?}: {}", run.log());
        }
    }
}
