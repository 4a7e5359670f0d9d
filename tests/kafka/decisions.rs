//! Decisions in a topic: a crawler that waits for them, through a kill; kept current in a compacted topic;
//! the crawler of the documentation.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::Offset;
use serde_json::{Value, json};

use crate::Test;
use crate::broker::{BOUND, Broker};
use crate::run::{Run, Scene};

pub(crate) const TESTS: &[Test] = &[
    ("decisions::a_crawler_waits_for_each_decision", a_crawler_waits_for_each_decision),
    ("decisions::a_compacted_topic_holds_the_current_record", a_compacted_topic_holds_the_current_record),
    ("decisions::the_crawler_of_the_documentation", the_crawler_of_the_documentation),
];

/// Pages of the crawler, and the page at which the run is killed.
const PAGES: usize = 60;
const KILLED_AT: usize = 25;

/// A page of sixty words; every third one repeats the page before it.
fn page(n: usize) -> String {
    let n = if n % 3 == 2 { n - 1 } else { n };
    (0..60).map(|word| format!("p{n}w{word} ")).collect()
}

/// Committed records of a topic with one partition: keys and values.
struct Records {
    reader: dupflow::connectors::kafka::broker::Consumer,
}

impl Records {
    /// Creates the topic if it is missing.
    fn new(broker: &Broker, topic: &str) -> Self {
        if broker.admin().find(topic).unwrap().is_none() {
            broker.make(topic, 1);
        }
        let own = [("group.id", "reader"), ("isolation.level", "read_committed")];
        let reader = broker.connection().consumer("reader", &own).unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, 0, Offset::Beginning).unwrap();
        reader.assign(&list).unwrap();
        Self { reader }
    }

    /// The next record; the value of a tombstone is null.
    fn next(&self, run: &mut Run) -> (String, Value) {
        let end = Instant::now() + BOUND;
        loop {
            if let Some(Ok(message)) = self.reader.poll(Duration::from_millis(50)) {
                let key = String::from_utf8(message.key().unwrap().to_vec()).unwrap();
                let value =
                    message.payload().map_or(Value::Null, |bytes| serde_json::from_slice(bytes).unwrap());
                return (key, value);
            }
            assert!(Instant::now() < end, "{}", run.log());
        }
    }

    /// The next record of a document with an offset at or beyond this one.
    fn decision(&self, run: &mut Run, id: &str, offset: u64) -> Value {
        loop {
            let (key, value) = self.next(run);
            if key == id && value["offset"].as_u64() >= Some(offset) {
                return value;
            }
        }
    }
}

fn a_crawler_waits_for_each_decision(broker: &Broker) {
    let scene = Scene {
        more: "sink.emit = \"decisions\"\n[state]\npath = \"state\"\n".to_owned(),
        ..Scene::new(broker, 1)
    };
    let decisions = Records::new(broker, &scene.output);
    let mut run = scene.run(&[]);
    let writer = broker.writer();
    let mut delays = Vec::new();
    let mut found = BTreeMap::new();
    for n in 0..PAGES {
        let id = format!("page/{n:03}");
        let written = Instant::now();
        writer.put(&scene.input, 0, Some(&id), Some(page(n).as_bytes()));
        writer.flush();
        if n == KILLED_AT {
            run.kill();
            run = scene.run(&[]);
        }
        let offset = u64::try_from(n).unwrap();
        let decision = decisions.decision(&mut run, &id, offset);
        assert_eq!((&decision["partition"], &decision["offset"]), (&json!(0), &json!(offset)));
        let of = (n % 3 == 2).then(|| format!("page/{:03}", n - 1));
        assert_eq!((&decision["copy"], &decision["of"]), (&json!(of.is_some()), &json!(of)), "{decision}");
        if n > 0 && n != KILLED_AT {
            delays.push(written.elapsed());
        }
        found.insert(id, decision);
    }
    run.stop();
    delays.sort();
    println!(
        "decisions: {} pages one by one, from write to decision p50 {:.1?}, most {:.1?}",
        delays.len(),
        delays[delays.len() / 2],
        delays[delays.len() - 1]
    );
    // From the beginning: each page has one record, the one that was waited for.
    let again = Records::new(broker, &scene.output);
    let mut idle = scene.run(&[]);
    let all: Vec<_> = (0..PAGES).map(|_| again.next(&mut idle)).collect();
    writer.put(&scene.input, 0, Some("last"), Some(b"one more page"));
    writer.flush();
    assert_eq!(again.next(&mut idle).0, "last", "no record but one for each page");
    idle.stop();
    assert_eq!(all.into_iter().collect::<BTreeMap<_, _>>(), found);
}

fn a_compacted_topic_holds_the_current_record(broker: &Broker) {
    let more = "sink.emit = \"decisions\"\nsink.decisions = \"current\"\nsink.envelope = \"upsert\"\n\
                [state]\npath = \"state\"\n";
    let scene = Scene { more: more.to_owned(), ..Scene::new(broker, 1) };
    let mut run = scene.run(&[]);
    run.says("topic");
    let writer = broker.writer();
    let put = |id: &str, text: Option<&str>| {
        writer.put(&scene.input, 0, Some(id), text.map(str::as_bytes));
        writer.flush();
    };
    let (text, other) = (page(0), page(1));
    put("b", Some(&text));
    let until = Instant::now() + BOUND;
    while broker.admin().find(&scene.output).unwrap().is_none() {
        assert!(Instant::now() < until, "{}", run.log());
    }
    let policy = broker.admin().setting(&scene.output, "cleanup.policy").unwrap();
    assert_eq!(policy.as_deref(), Some("compact"));
    let decisions = Records::new(broker, &scene.output);
    assert_eq!(decisions.decision(&mut run, "b", 0)["copy"], json!(false));
    put("c", Some(&text));
    // By id within an epoch: the record of b, which has a copy now, comes first.
    let (key, value) = decisions.next(&mut run);
    assert_eq!((&*key, &value["pairs"], &value["copy"]), ("b", &json!(1), &json!(false)));
    assert_eq!(decisions.decision(&mut run, "c", 1)["of"], json!("b"));
    put("b", None);
    assert_eq!(decisions.next(&mut run), ("b".to_owned(), Value::Null));
    let (key, value) = decisions.next(&mut run);
    assert_eq!(
        (&*key, &value["pairs"], &value["copy"], &value["offset"]),
        ("c", &json!(0), &json!(false), &json!(1))
    );
    run.kill();
    // While no run lives, a copy comes. Another threshold is corrected to.
    put("d", Some(&format!("{text} {other}")));
    let error = scene.fails(&["--set", "threshold=0.3"]);
    assert!(error.contains("threshold"), "{error}");
    let mut again = scene.run(&["--set", "threshold=0.3", "--reconcile"]);
    let mut last = BTreeMap::new();
    while last.get("c").is_none_or(|value: &Value| value["pairs"] != json!(1)) || !last.contains_key("d") {
        let (key, value) = decisions.next(&mut again);
        last.insert(key, value);
    }
    assert_eq!(last["d"]["of"], json!("c"), "{last:?}");
    again.stop();
}

/// Runs the Python program in the page on decisions, where Python has its client.
fn the_crawler_of_the_documentation(broker: &Broker) {
    let has_client = Command::new("python3").args(["-c", "import confluent_kafka"]).output();
    if !has_client.is_ok_and(|ended| ended.status.success()) {
        println!("SKIPPED the crawler of docs/decisions.md: python3 has no confluent_kafka");
        return;
    }
    let page_of_docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/decisions.md");
    let text = std::fs::read_to_string(page_of_docs).unwrap();
    let program = text.split("```python\n").nth(1).unwrap().split("```").next().unwrap().to_owned();
    let scene = Scene { more: "sink.emit = \"decisions\"\n".to_owned(), ..Scene::new(broker, 1) };
    broker.make(&scene.output, 1);
    let run = scene.run(&[]);
    let feed: String = (0..6)
        .map(|n| {
            json!({"id": format!("page {n}"), "ts": 1_793_491_200 + n, "text": page(n)}).to_string() + "\n"
        })
        .collect();
    std::fs::write(scene.path("feed.jsonl"), feed).unwrap();
    std::fs::write(scene.path("crawler.py"), program).unwrap();
    let ended = Command::new("python3")
        .args(["crawler.py", broker.address(), &scene.input, &scene.output, "feed.jsonl"])
        .current_dir(scene.folder.path())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let mut said: Vec<_> = String::from_utf8(ended.stdout).unwrap().lines().map(str::to_owned).collect();
    said.sort();
    let expected = ["page 0 is new", "page 1 is new", "page 2 repeats page 1", "page 3 is new"];
    assert_eq!(said[..4], expected);
    assert_eq!(said[4..], ["page 4 is new", "page 5 repeats page 4"]);
    run.stop();
}
