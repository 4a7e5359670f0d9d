//! Rows beside the pairs in topics of their own: those of views, and notices. Each is in the transaction of
//! the pairs, and what the topics hold accumulates to what a fresh run of the same documents and watches
//! gives.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Test;
use crate::broker::{BOUND, Broker};
use crate::changed::{COMPACTED, records_in};
use crate::commands::dupflow;
use crate::run::{Run, Scene};

pub(crate) const TESTS: &[Test] = &[
    ("sides::rows_are_right_through_kills", rows_are_right_through_kills),
    ("sides::topics_whose_rows_are_not_known", topics_whose_rows_are_not_known),
    ("sides::a_compacted_topic_is_decided_and_viewed", a_compacted_topic_is_decided_and_viewed),
];

/// A document: its host, its language, and its texts by kind.
type Document = (&'static str, &'static str, &'static [u32]);

/// The text of these kinds, twenty words each.
fn text(kinds: &[u32]) -> String {
    kinds.iter().flat_map(|kind| (0..20).map(move |n| format!("word{kind}x{n} "))).collect()
}

/// Topics of rows, a run that writes them, and the documents written so far.
struct Rows<'b> {
    scene: Scene<'b>,
    /// The topic of two views, that of another one, and that of notices.
    topics: [String; 3],
    /// The topic of watches.
    list: String,
    /// The texts of the watches, by kind.
    watches: BTreeMap<&'static str, &'static [u32]>,
    documents: BTreeMap<&'static str, Document>,
    /// The hosts of all documents, of deleted ones too: a host does not change.
    hosts: BTreeMap<&'static str, &'static str>,
    /// The order of the last records of the documents.
    order: Vec<&'static str>,
}

/// The views; `hosts` is grouped by this field.
fn views(group: &str, first: &str, second: &str) -> String {
    format!(
        "[[view]]\nname = \"hosts\"\nof = \"pairs\"\ngroup = [\"{group}\"]\n{first}\n\
         [[view]]\nname = \"languages\"\nof = \"documents\"\ngroup = [\"lang\"]\n{first}\n\
         [[view]]\nname = \"copied\"\nof = \"documents\"\ngroup = [\"host\"]\nmeasure = \"top:1\"\n{second}\n"
    )
}

impl<'b> Rows<'b> {
    fn new(broker: &'b Broker) -> Self {
        let mut rows = Self {
            scene: Scene::new(broker, 1),
            topics: ["rows", "tops", "notices"].map(Broker::name),
            list: broker.topic(1),
            watches: BTreeMap::new(),
            documents: BTreeMap::new(),
            hosts: BTreeMap::new(),
            order: Vec::new(),
        };
        rows.define("host");
        rows
    }

    /// Sets the field by which pairs are grouped.
    fn define(&mut self, group: &str) {
        let [first, second, notices] = self.topics.each_ref().map(|topic| format!("topic = \"{topic}\""));
        self.scene.more = format!(
            "source.format = \"json\"\nsource.headers = [\"lang\"]\n\
             source.fields = [\"host(url)\", \"lang\"]\n[state]\npath = \"state\"\n\
             [watch]\ntopic = \"{}\"\nrefresh = \"200ms\"\n[notices]\n{notices}\n{}",
            self.list,
            views(group, &first, &second)
        );
    }

    /// Writes documents; one without a host is deleted. The language is in a header of the record.
    fn put(&mut self, documents: &[(&'static str, Document)]) {
        let writer = self.scene.broker.writer();
        for (id, document) in documents {
            let (host, lang, kinds) = document;
            let value = json!({ "url": format!("https://{host}/{id}"), "text": text(kinds) }).to_string();
            let value = (!host.is_empty()).then_some(value.as_bytes());
            writer.put_with(&self.scene.input, 0, Some(id), value, None, &[("lang", lang)]);
            self.order.push(id);
            if host.is_empty() {
                self.documents.remove(id);
            } else {
                self.documents.insert(id, *document);
                self.hosts.insert(id, host);
            }
        }
        writer.flush();
    }

    /// Adds a watch for texts of these kinds, or ends it.
    fn watch(&mut self, id: &'static str, kinds: Option<&'static [u32]>) {
        let writer = self.scene.broker.writer();
        let text = kinds.map(text);
        writer.put(&self.list, 0, Some(id), text.as_ref().map(String::as_bytes));
        writer.flush();
        match kinds {
            Some(kinds) => drop(self.watches.insert(id, kinds)),
            None => drop(self.watches.remove(id)),
        }
    }

    /// What the topics add up to now: rows without `epoch` and `diff`.
    fn held(&self) -> BTreeSet<String> {
        let topics: BTreeSet<_> = self.topics.iter().collect();
        topics.into_iter().flat_map(|topic| accumulated(self.scene.broker, topic)).collect()
    }

    /// The rows that a fresh run of the live documents and the present watches gives.
    fn fresh(&self, words: &[&str], group: &str) -> BTreeSet<String> {
        let feed: String = self
            .documents
            .iter()
            .map(|(id, (host, lang, kinds))| {
                let url = format!("https://{host}/{id}");
                let ts = self.order.iter().rposition(|other| other == id);
                json!({"id": id, "url": url, "lang": lang, "text": text(kinds), "ts": ts}).to_string() + "\n"
            })
            .collect();
        let watches =
            self.watches.iter().map(|(id, kinds)| json!({"id": id, "text": text(kinds)}).to_string());
        let watches: Vec<String> = watches.collect();
        std::fs::write(self.scene.path("fresh.jsonl"), feed).unwrap();
        std::fs::write(self.scene.path("list.jsonl"), watches.join("\n")).unwrap();
        let output = "output = \"rows.jsonl\"";
        std::fs::write(self.scene.path("views.toml"), views(group, output, output)).unwrap();
        let replay = ["replay", "-p", "exact", "--field", "host(url)", "--field", "lang", "--views"];
        let files = ["views.toml", "--watch", "list.jsonl", "--notices", "notices.jsonl", "-o", "fresh"];
        let (_, log, good) =
            dupflow(self.scene.folder.path(), &[&replay, &files[..], &["fresh.jsonl"], words].concat());
        assert!(good, "{log}");
        let read = |name| std::fs::read_to_string(self.scene.path(name)).unwrap();
        sum(read("rows.jsonl").lines().chain(read("notices.jsonl").lines()).map(str::to_owned))
    }

    /// Waits until the topics hold these rows.
    fn until(&self, run: &Run, expected: &BTreeSet<String>) {
        let end = Instant::now() + BOUND;
        while self.held() != *expected {
            assert!(Instant::now() < end, "{:#?}\nexpected {expected:#?}\n{}", self.held(), run.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the run has committed all of its input.
    fn until_read(&self, run: &Run) {
        let (broker, end) = (self.scene.broker, Instant::now() + BOUND);
        let progress = format!("{}-progress", self.scene.output);
        loop {
            let wanted = broker.admin().offset_range(&self.scene.input, 0).unwrap().1;
            let last = records_in(broker, &progress, 0).pop().and_then(|(_, _, value)| value).unwrap();
            let mark: Value = serde_json::from_str(&last).unwrap();
            if mark["progress"]["next"]["0"] == json!(wanted) {
                return;
            }
            assert!(Instant::now() < end, "{mark}, {}", run.log());
        }
    }

    /// While no run lives: the pairs between hosts are those of the committed deltas. The broker may still
    /// complete a transaction.
    fn agrees(&self) {
        let end = Instant::now() + BOUND;
        loop {
            let mut pairs: BTreeMap<Vec<&str>, u64> = BTreeMap::new();
            for pair in accumulated(self.scene.broker, &self.scene.output) {
                let pair: Value = serde_json::from_str(&pair).unwrap();
                let mut hosts: Vec<_> =
                    ["a", "b"].iter().map(|end| self.hosts[pair[end].as_str().unwrap()]).collect();
                hosts.sort_unstable();
                *pairs.entry(hosts).or_default() += 1;
            }
            let row = |(group, value)| json!({"view": "hosts", "group": group, "value": value}).to_string();
            let expected: BTreeSet<String> = pairs.into_iter().map(row).collect();
            let mut held = self.held();
            held.retain(|row| row.contains("\"hosts\""));
            if held == expected {
                return;
            }
            assert!(Instant::now() < end, "{held:#?}\nexpected {expected:#?}");
        }
    }
}

/// What the committed records of a topic with one partition add up to.
fn accumulated(broker: &Broker, topic: &str) -> BTreeSet<String> {
    if broker.admin().find(topic).unwrap().is_none() {
        return BTreeSet::new();
    }
    sum(records_in(broker, topic, 0).into_iter().filter_map(|(_, _, value)| value))
}

/// What changes add up to, each without its epoch and its diff.
fn sum(changes: impl Iterator<Item = String>) -> BTreeSet<String> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for change in changes {
        let mut change: Value = serde_json::from_str(&change).unwrap();
        let object = change.as_object_mut().unwrap();
        object.remove("epoch").unwrap();
        let diff = object.remove("diff").unwrap().as_i64().unwrap();
        *sums.entry(change.to_string()).or_default() += diff;
    }
    sums.retain(|_, sum| *sum != 0);
    assert!(sums.values().all(|sum| *sum == 1), "{sums:?}");
    sums.into_keys().collect()
}

fn rows_are_right_through_kills(broker: &Broker) {
    let mut rows = Rows::new(broker);
    rows.put(&[
        ("a", ("one.org", "en", &[1])),
        ("b", ("two.org", "en", &[1])),
        ("c", ("two.org", "de", &[2])),
        ("d", ("one.org", "de", &[2])),
    ]);
    rows.watch("first", Some(&[1]));
    rows.watch("two", Some(&[2, 3]));
    let mut output = rows.scene.output();
    let mut run = rows.scene.run(&[]);
    output.until(&mut run, &["a b", "c d"]);
    run.kill();
    rows.agrees();
    for setting in [("retention.ms", "-1"), ("cleanup.policy", "delete")] {
        assert_eq!(broker.admin().setting(&rows.topics[0], setting.0).unwrap().as_deref(), Some(setting.1));
    }
    // Killed again at the first commit of what has come meanwhile, and then at one of its last.
    rows.put(&[("e", ("three.org", "en", &[1])), ("b", ("", "", &[])), ("c", ("two.org", "fr", &[1]))]);
    let mut run = rows.scene.run(&[]);
    output.until(&mut run, &["a c", "a e", "c e"]);
    run.kill();
    rows.agrees();
    let mut run = rows.scene.run(&[]);
    rows.put(&[
        ("f", ("two.org", "", &[3])),
        ("g", ("two.org", "en", &[3])),
        ("h", ("six.org", "en", &[2, 3])),
    ]);
    output.until(&mut run, &["a c", "a e", "c e", "f g"]);
    rows.until(&run, &rows.fresh(&[], "host"));
    // The list changes while the run lives, and while none does.
    rows.watch("first", Some(&[3]));
    rows.watch("three", Some(&[1]));
    rows.until(&run, &rows.fresh(&[], "host"));
    run.kill();
    rows.agrees();
    rows.watch("three", None);

    // A view has another definition: nothing else changes.
    rows.define("lang");
    let run = rows.scene.run(&[]);
    rows.until(&run, &rows.fresh(&[], "lang"));
    run.stop();
    let topics = rows.topics.clone();
    let written = || topics.iter().map(|topic| records_in(broker, topic, 0).len()).sum::<usize>();
    let before = written();
    let run = rows.scene.run(&[]);
    rows.put(&[("none", ("", "", &[]))]);
    rows.until_read(&run);
    run.stop();
    assert_eq!(written(), before, "nothing is written after an orderly end");

    // Another threshold, through --reconcile.
    let words = ["--set", "threshold=0.4"];
    let fresh = rows.fresh(&words, "lang");
    assert_ne!(fresh, rows.held());
    let run = rows.scene.run(&[&words[..], &["--reconcile"]].concat());
    rows.until(&run, &fresh);
    run.stop();
    assert_eq!(accumulated(broker, &rows.scene.output).len(), 7, "h is similar to d, f and g");
}

/// Expired and compacted topics are refused.
fn topics_whose_rows_are_not_known(broker: &Broker) {
    let mut rows = Rows::new(broker);
    rows.put(&[("a", ("one.org", "en", &[1])), ("b", ("two.org", "en", &[1]))]);
    rows.watch("first", Some(&[1]));
    let run = rows.scene.run(&[]);
    rows.until(&run, &rows.fresh(&[], "host"));
    run.stop();
    broker.admin().truncate(&rows.topics[0], 0, 1).unwrap();
    let error = rows.scene.fails(&[]);
    assert!(error.contains(&rows.topics[0]) && error.contains("name another topic"), "{error}");
    rows.topics = ["rows", "tops", "compacted"].map(Broker::name);
    broker.make_with(&rows.topics[2], 1, &[("cleanup.policy", "compact")]);
    rows.define("host");
    let error = rows.scene.fails(&[]);
    assert!(error.contains(&rows.topics[2]) && error.contains("is compacted"), "{error}");
    // New topics get all rows.
    rows.topics[1] = rows.topics[0].clone();
    rows.topics[2] = Broker::name("notices");
    rows.define("host");
    let run = rows.scene.run(&[]);
    rows.until(&run, &rows.fresh(&[], "host"));
    run.stop();
}

/// The last decision of each document, of these records.
fn last_decisions(records: impl Iterator<Item = (String, Option<String>)>) -> BTreeMap<String, Value> {
    let mut last = BTreeMap::new();
    for (id, value) in records {
        let Some(value) = value else {
            last.remove(&id);
            continue;
        };
        let mut decision: Value = serde_json::from_str(&value).unwrap();
        for place in ["epoch", "at", "partition", "offset"] {
            decision[place].take();
        }
        last.insert(id, decision);
    }
    last
}

/// Decisions and views, with fields from headers, of a topic whose old records are compacted away between two
/// runs without a state.
fn a_compacted_topic_is_decided_and_viewed(broker: &Broker) {
    let mut rows = Rows::new(broker);
    rows.scene.input = Broker::name("topic");
    broker.make_with(&rows.scene.input, 1, COMPACTED);
    let decided = "sink.emit = \"decisions\"\nsink.decisions = \"current\"\nsink.envelope = \"upsert\"\n";
    rows.scene.more = decided.to_owned() + &rows.scene.more.replace("[state]\npath = \"state\"\n", "");
    let rule = ["--set", "pairs.where=a.lang==b.lang"];
    let found = |rows: &Rows<'_>| {
        let records = records_in(broker, &rows.scene.output, 0).into_iter();
        last_decisions(records.map(|(_, key, value)| (key, value)))
    };
    let until = |rows: &Rows<'_>, run: &Run| {
        rows.until(run, &rows.fresh(&rule, "host"));
        let words =
            ["replay", "-p", "exact", "--field", "lang", "--emit", "decisions", "--decisions", "current"];
        let (out, log, good) =
            dupflow(rows.scene.folder.path(), &[&words[..], &rule, &["fresh.jsonl"]].concat());
        assert!(good, "{log}");
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        let expected = last_decisions(out.lines().map(|line| (id(line), Some(line.to_owned()))));
        let end = Instant::now() + BOUND;
        while found(rows) != expected {
            assert!(Instant::now() < end, "{:#?}\nexpected {expected:#?}\n{}", found(rows), run.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    rows.put(&[
        ("a", ("one.org", "en", &[1])),
        ("b", ("two.org", "en", &[1])),
        ("c", ("two.org", "de", &[1])),
        ("d", ("one.org", "de", &[2])),
    ]);
    rows.watch("first", Some(&[1]));
    let run = rows.scene.run(&rule);
    until(&rows, &run);
    run.kill();
    rows.put(&[("b", ("two.org", "de", &[1])), ("a", ("", "", &[])), ("d", ("one.org", "de", &[1]))]);
    let end = Instant::now() + BOUND;
    loop {
        // A segment is compacted once a later one has begun.
        rows.put(&[("filler", ("six.org", "en", &[9]))]);
        let left: BTreeSet<u64> =
            records_in(broker, &rows.scene.input, 0).iter().map(|record| record.0).collect();
        if [0, 1, 3].iter().all(|offset| !left.contains(offset)) {
            break;
        }
        assert!(Instant::now() < end, "{left:?}");
    }
    let run = rows.scene.run(&rule);
    until(&rows, &run);
    run.stop();
}
