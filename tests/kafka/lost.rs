//! What is lost beside a run: topics that it writes, records of a topic that is restored from a copy, ends of
//! documents during a pause; and an envelope that is changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::Test;
use crate::broker::{BOUND, Broker};
use crate::changed::{STATE, change_mark, compacted, put, records_in, until_compacted};
use crate::run::{Run, Scene};

pub(crate) const TESTS: &[Test] = &[
    ("lost::a_broker_is_restored_from_a_copy", a_broker_is_restored_from_a_copy),
    ("lost::topics_are_deleted_while_they_are_written", topics_are_deleted_while_they_are_written),
    ("lost::topics_are_created_again_while_they_are_written", topics_are_created_again),
    ("lost::topics_are_created_again_between_two_runs", topics_are_created_again_between_two_runs),
    ("lost::decisions_are_deleted_while_they_are_written", decisions_are_deleted),
    ("lost::the_envelope_of_an_output_stays", the_envelope_of_an_output_stays),
    ("lost::a_mark_without_an_envelope", a_mark_without_an_envelope),
    ("lost::a_pause_longer_than_tombstones", a_pause_longer_than_tombstones),
    ("lost::an_idle_compacted_topic", an_idle_compacted_topic),
    ("lost::watches_expire", watches_expire),
    ("lost::rows_are_written_by_one_run", rows_are_written_by_one_run),
];

/// How long the topics of these tests keep the ends of documents.
const KEPT: (&str, &str) = ("delete.retention.ms", "5000");

/// A scene that writes one topic of each kind: dead letters, rows of a view, notices, marks and the output.
struct AllTopics<'b> {
    scene: Scene<'b>,
    topics: [(&'static str, String); 5],
    /// Number of documents written so far, in pairs.
    written: usize,
}

impl<'b> AllTopics<'b> {
    fn new(broker: &'b Broker) -> Self {
        let mut scene = Scene::new(broker, 1);
        broker.make(&scene.output, 1);
        let [letters, rows, notices, list] = ["letters", "rows", "notices", "list"].map(Broker::name);
        broker.make_with(&list, 1, &[("cleanup.policy", "compact")]);
        broker.writer().texts(&list, 0, &[("watched", "w0 of pair 0 w0 of pair 0 w0 of pair 0 x")]);
        scene.more = format!(
            "sink.transaction_seconds = 10\nsource.format = \"json\"\nsource.fields = [\"lang\"]\n\
             [state]\npath = \"state\"\n[dead_letter]\ntopic = \"{letters}\"\n\
             [watch]\ntopic = \"{list}\"\n[notices]\ntopic = \"{notices}\"\n\
             [[view]]\nname = \"v\"\nof = \"pairs\"\ngroup = [\"lang\"]\ntopic = \"{rows}\"\n"
        );
        let marks = format!("{}-progress", scene.output);
        let output = scene.output.clone();
        let topics = [
            ("letters", letters),
            ("rows", rows),
            ("notices", notices),
            ("marks", marks),
            ("output", output),
        ];
        Self { scene, topics, written: 0 }
    }

    /// Writes two equal documents and a bad record.
    fn write(&mut self) {
        let writer = self.scene.broker.writer();
        let n = self.written;
        self.written += 1;
        let text = format!("w{n} of pair {n} w{n} of pair {n} w{n} of pair {n} x");
        let value = json!({"text": text, "lang": "en"}).to_string();
        for side in ["a", "b"] {
            writer.put(&self.scene.input, 0, Some(&format!("{n}{side}")), Some(value.as_bytes()));
        }
        writer.put(&self.scene.input, 0, Some("bad"), Some(b"{bad"));
        writer.flush();
    }

    /// What the topics have to add up to: the pairs, and the number of pairs in the view.
    fn until_right(&self, run: &mut Run) {
        // The topics may be right before the run has begun.
        run.until_live(&self.scene.input);
        let end = Instant::now() + BOUND;
        let broker = self.scene.broker;
        let expected: Vec<_> = (0..self.written).map(|n| format!("{n}a")).collect();
        loop {
            let mut pairs: Vec<String> = Vec::new();
            for (_, _, value) in records_in(broker, &self.scene.output, 0) {
                let delta: Value = serde_json::from_str(&value.unwrap()).unwrap();
                let a = delta["a"].as_str().unwrap().to_owned();
                if delta["diff"] == json!(1) { pairs.push(a) } else { pairs.retain(|there| *there != a) }
            }
            pairs.sort();
            let mut counts = BTreeMap::<i64, i64>::new();
            for (_, _, value) in self.rows() {
                let row: Value = serde_json::from_str(&value.unwrap()).unwrap();
                *counts.entry(row["value"].as_i64().unwrap()).or_default() += row["diff"].as_i64().unwrap();
            }
            counts.retain(|_, count| *count != 0);
            let in_view = BTreeMap::from([(i64::try_from(self.written).unwrap(), 1)]);
            if pairs == expected && counts == in_view {
                return;
            }
            assert!(Instant::now() < end && run.lives(), "{pairs:?} {counts:?} {}", run.log());
        }
    }

    /// The records of the view.
    fn rows(&self) -> Vec<crate::changed::Record> {
        let [_, (_, rows), ..] = &self.topics;
        match self.scene.broker.admin().find(rows).unwrap() {
            None => Vec::new(),
            Some(found) => (0..found.partitions)
                .flat_map(|partition| records_in(self.scene.broker, rows, partition.cast_signed()))
                .collect(),
        }
    }
}

/// Each topic in turn is deleted, and perhaps created again, under a run. The run ends with its name and what
/// to do, and that is done.
fn lose_each(broker: &Broker, again: bool) {
    let mut all = AllTopics::new(broker);
    all.write();
    for (kind, name) in all.topics.clone() {
        let mut run = all.scene.run(&[]);
        all.until_right(&mut run);
        if again {
            broker.remake(&name, 1);
        } else {
            broker.admin().remove(&name).unwrap();
        }
        all.write();
        let error = run.failure();
        assert!(error.contains(&name), "{kind}: {error}");
        let needs_flag = ["marks", "output"].contains(&kind);
        assert_eq!(error.contains("start with --reconcile"), needs_flag, "{kind}: {error}");
        if kind != "marks" {
            let how = if again { "created again" } else { "deleted" };
            assert!(error.contains(how), "{kind}: {error}");
        }
        if !again && broker.admin().find(&name).unwrap().is_none() && kind != "letters" {
            // A topic with one partition, as the readers of this test expect.
            broker.make(&name, 1);
        }
        let flag: &[&str] = if needs_flag { &["--reconcile"] } else { &[] };
        let mut run = all.scene.run(flag);
        all.until_right(&mut run);
        run.stop();
    }
}

fn topics_are_deleted_while_they_are_written(broker: &Broker) {
    lose_each(broker, false);
}

fn topics_are_created_again(broker: &Broker) {
    lose_each(broker, true);
}

/// Output and marks are refused; rows are written again; lost dead letters are said.
fn topics_are_created_again_between_two_runs(broker: &Broker) {
    let mut all = AllTopics::new(broker);
    for (kind, name) in all.topics.clone() {
        all.write();
        let mut run = all.scene.run(&[]);
        all.until_right(&mut run);
        run.stop();
        broker.remake(&name, 1);
        let needs_flag = ["marks", "output"].contains(&kind);
        if needs_flag {
            let error = all.scene.fails(&[]);
            assert!(error.contains(&name) || kind == "marks", "{kind}: {error}");
            assert!(error.contains("start with --reconcile"), "{kind}: {error}");
        }
        let flag: &[&str] = if needs_flag { &["--reconcile"] } else { &[] };
        let mut run = all.scene.run(flag);
        all.until_right(&mut run);
        let log = run.stop();
        assert_eq!(log.contains("the dead letters that it held are lost"), kind == "letters", "{log}");
    }
}

/// A topic of decisions.
fn decisions_are_deleted(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    scene.more = "sink.emit = \"decisions\"\nsink.transaction_seconds = 10\n".to_owned();
    broker.make(&scene.output, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let decided = |run: &mut Run| {
        let end = Instant::now() + BOUND;
        while records_in(broker, &scene.output, 0).len() < 2 {
            assert!(Instant::now() < end && run.lives(), "{}", run.log());
        }
    };
    let mut run = scene.run(&[]);
    decided(&mut run);
    broker.remake(&scene.output, 1);
    let error = run.failure();
    assert!(error.contains(&scene.output) && error.contains("start with --reconcile"), "{error}");
    let mut run = scene.run(&["--reconcile"]);
    decided(&mut run);
    run.stop();
}

fn envelope(scene: &mut Scene<'_>, name: &str) {
    scene.more = format!("sink.envelope = \"{name}\"\n{STATE}");
}

/// Neither a start nor a correction writes records of another envelope; another topic is written anew.
fn the_envelope_of_an_output_stays(broker: &Broker) {
    for (first, second) in [("delta", "upsert"), ("upsert", "delta")] {
        let mut scene = Scene::new(broker, 1);
        broker.make(&scene.output, 1);
        put(&scene, 0, &[("a", 1), ("b", 1)]);
        let until = |scene: &Scene<'_>, run: &mut Run| {
            let end = Instant::now() + BOUND;
            while records_in(broker, &scene.output, 0).is_empty() {
                assert!(Instant::now() < end && run.lives(), "{}", run.log());
            }
        };
        envelope(&mut scene, first);
        let mut run = scene.run(&[]);
        until(&scene, &mut run);
        run.stop();
        let before = records_in(broker, &scene.output, 0);
        envelope(&mut scene, second);
        for words in [&[][..], &["--reconcile"]] {
            let error = scene.fails(words);
            let said = format!("sink.envelope is {first:?} there and {second:?} here");
            assert!(error.contains(&said) && error.contains("another sink.topic"), "{error}");
        }
        assert_eq!(records_in(broker, &scene.output, 0), before);
        envelope(&mut scene, first);
        scene.run(&[]).stops_live();
        envelope(&mut scene, second);
        scene.output = Broker::name("pairs");
        broker.make(&scene.output, 1);
        let mut run = scene.run(&[]);
        until(&scene, &mut run);
        run.stop();
        let (_, _, value) = records_in(broker, &scene.output, 0).remove(0);
        assert_eq!(value.unwrap().contains("\"diff\":1"), second == "delta");
    }
}

/// A mark of an earlier version is taken as one of the present envelope, which the next mark has.
fn a_mark_without_an_envelope(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    envelope(&mut scene, "delta");
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    let field = "13:sink.envelope,6:tdelta,";
    change_mark(&scene, |mark| {
        let pipeline = mark["pipeline"].as_str().unwrap().to_owned();
        assert!(pipeline.contains(field), "{pipeline}");
        mark["pipeline"] = json!(pipeline.replace(field, ""));
        mark["progress"].as_object_mut().unwrap().remove("last").unwrap();
    });
    put(&scene, 0, &[("c", 1)]);
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    run.stop();
    let last = records_in(broker, &format!("{}-progress", scene.output), 0).pop().unwrap().2.unwrap();
    let mark: Value = serde_json::from_str(&last).unwrap();
    assert!(mark["pipeline"].as_str().unwrap().contains(field), "{mark}");
    assert_eq!(mark["progress"]["last"]["0"]["offset"], json!(2), "{mark}");
}

/// A run is suspended until the end of a document has been compacted away. It ends, and the next one reads
/// everything again.
fn a_pause_longer_than_tombstones(broker: &Broker) {
    let mut scene = compacted(broker, &[KEPT]);
    scene.more = STATE.to_owned();
    put(&scene, 0, &[("a", 1), ("b", 1), ("c", 2), ("d", 2)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "c d"]);
    run.signal(Signal::STOP);
    put(&scene, 0, &[("b", 0)]);
    until_compacted(&scene, &[1, 4]);
    run.signal(Signal::CONT);
    let error = run.failure();
    assert!(error.contains("behind for longer than the compacted topic keeps"), "{error}");
    assert!(error.contains("start again") && error.contains("delete.retention.ms"), "{error}");
    let mut run = scene.run(&[]);
    output.until(&mut run, &["c d"]);
    run.stop();
}

/// Nothing is written for longer than ends of documents are kept: the run goes on.
fn an_idle_compacted_topic(broker: &Broker) {
    let scene = compacted(broker, &[KEPT]);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.signal(Signal::STOP);
    // Another topic is compacted meanwhile, which takes as long as the pause has to be.
    let other = compacted(broker, &[KEPT]);
    put(&other, 0, &[("b", 1), ("b", 0)]);
    until_compacted(&other, &[0, 1]);
    run.signal(Signal::CONT);
    let mark = || records_in(broker, &format!("{}-progress", scene.output), 0).len();
    let before = mark();
    put(&scene, 0, &[("c", 1)]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    assert!(mark() > before);
    run.stop();
}

fn watches_expire(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    let list = Broker::name("list");
    for (settings, warns) in [
        (&[("retention.ms", "3600000")][..], true),
        (&[("cleanup.policy", "compact,delete"), ("retention.ms", "3600000")], true),
        (&[("cleanup.policy", "compact")], false),
    ] {
        let list = format!("{list}-{}", settings.len() + usize::from(warns));
        broker.make_with(&list, 1, settings);
        broker.writer().texts(&list, 0, &[("w", "a text that is watched")]);
        scene.more = format!("[watch]\ntopic = \"{list}\"\n[notices]\npath = \"notices.jsonl\"\n");
        let mut run = scene.run(&[]);
        run.until_live(&scene.input);
        let log = run.stop();
        let line =
            format!("topic \"{list}\" expires (retention.ms=3600000): each watch ends when its record");
        assert_eq!(log.contains(&line), warns, "{log}");
        let folder = scene.folder.path();
        let (out, log, good) = crate::commands::dupflow(folder, &["check", "-c", "run.toml", "--connect"]);
        assert!(good, "{log}");
        assert_eq!(out.contains(&format!("! {line}")), warns, "{out}");
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The end of the input is lost and written on: other records are at the offsets that were read. In the
/// second scene its first record has expired as well.
fn a_broker_is_restored_from_a_copy(broker: &Broker) {
    let Some(data) = broker.data() else {
        println!("SKIPPED lost::a_broker_is_restored_from_a_copy: it needs the broker of broker.sh");
        return;
    };
    let mut scenes = [Scene::new(broker, 1), Scene::new(broker, 1)];
    let mut outputs = scenes.each_ref().map(Scene::output);
    let partition = |scene: &Scene<'_>| data.join(format!("{}-0", scene.input));
    for (scene, output) in scenes.iter_mut().zip(&mut outputs) {
        scene.more = format!("{STATE}state.commit_every = \"100ms\"\n");
        put(scene, 0, &[("a", 1), ("b", 1)]);
        let mut run = scene.run(&[]);
        output.until(&mut run, &["a b"]);
        run.stop();
    }
    broker.kill();
    scenes.iter().for_each(|scene| copy_all(&partition(scene), &scene.path("copy")));
    broker.restart();
    for (scene, output) in scenes.iter().zip(&mut outputs) {
        put(scene, 0, &[("c", 2), ("d", 2), ("e", 3), ("f", 3)]);
        let mut run = scene.run(&[]);
        output.until(&mut run, &["a b", "c d", "e f"]);
        run.stop();
    }
    broker.kill();
    for scene in &scenes {
        fs::remove_dir_all(partition(scene)).unwrap();
        copy_all(&scene.path("copy"), &partition(scene));
    }
    broker.restart();
    for (n, (scene, output)) in scenes.iter_mut().zip(&mut outputs).enumerate() {
        // As many records as were lost, and one more.
        put(scene, 0, &[("g", 4), ("h", 4), ("i", 5), ("j", 5), ("k", 6)]);
        let has_expired = n == 1;
        if has_expired {
            broker.admin().truncate(&scene.input, 0, 1).unwrap();
        }
        let error = scene.fails(&[]);
        assert!(error.contains("is not the record that was read"), "{error}");
        assert!(error.contains(&scene.input) && error.contains("start with --reconcile"), "{error}");
        let mut run = scene.run(&["--reconcile"]);
        output.until(&mut run, &["a b", "g h", "i j"]);
        let log = run.stop();
        assert_eq!(log.contains("documents=1 examples=[\"a\"]"), has_expired, "{log}");
        put(scene, 0, &[("l", 6)]);
        let mut run = scene.run(&[]);
        output.until(&mut run, &["a b", "g h", "i j", "k l"]);
        run.stop();
    }
}

/// Of two runs with the same topic of rows the later one is refused, until the earlier one has ended.
fn rows_are_written_by_one_run(broker: &Broker) {
    let rows = Broker::name("rows");
    let with = |scene: &mut Scene<'_>| {
        scene.more = format!("[[view]]\nname = \"v\"\nof = \"pairs\"\ntopic = \"{rows}\"\n");
    };
    let (mut first, mut second) = (Scene::new(broker, 1), Scene::new(broker, 1));
    with(&mut first);
    with(&mut second);
    put(&first, 0, &[("a", 1), ("b", 1)]);
    put(&second, 0, &[("a", 1), ("b", 1)]);
    let mut output = first.output();
    let mut run = first.run(&[]);
    output.until(&mut run, &["a b"]);
    let error = second.fails(&[]);
    assert!(error.contains(&rows) && error.contains("is written by another run"), "{error}");
    assert!(error.contains(&format!("\"dupflow-{}\"", first.output)), "{error}");
    put(&first, 0, &[("c", 1)]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    // A later run with the same id takes over, and is not refused.
    let mut later = first.run(&[]);
    later.says("live from offset");
    put(&first, 0, &[("d", 2), ("e", 2)]);
    output.until(&mut later, &["a b", "a c", "b c", "d e"]);
    assert!(!run.wait().success());
    later.stop();
    let mut run = second.run(&[]);
    run.says("live from offset");
    run.stop();
}
