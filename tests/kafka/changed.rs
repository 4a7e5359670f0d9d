//! Changes of topics while a run uses them: compaction, topics deleted and created again, added partitions,
//! expired records, lost marks.

use std::collections::{BTreeMap, BTreeSet};

use dupflow::connectors::state::{self, StatePosition, StoredState};
use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::Offset;
use serde_json::{Value, json};

use crate::Test;
use crate::broker::{BOUND, Broker};
use crate::run::{Output, Run, Scene};

pub(crate) const TESTS: &[Test] = &[
    ("changed::a_compacted_topic_without_state", a_compacted_topic_without_state),
    ("changed::a_document_is_compacted_away", a_document_is_compacted_away),
    ("changed::a_compacted_topic_with_a_state_behind", a_compacted_topic_with_a_state_behind),
    ("changed::a_state_older_than_tombstones", a_state_older_than_tombstones),
    ("changed::a_state_with_nothing_left_to_read", a_state_with_nothing_left_to_read),
    ("changed::compaction_and_retention", compaction_and_retention),
    ("changed::a_policy_that_may_not_be_read", a_policy_that_may_not_be_read),
    ("changed::the_input_is_created_again", the_input_is_created_again),
    ("changed::the_input_is_created_again_while_it_is_read", the_input_is_created_again_while_it_is_read),
    ("changed::another_input_is_named", another_input_is_named),
    ("changed::the_output_is_created_again", the_output_is_created_again),
    ("changed::another_output_is_named", another_output_is_named),
    ("changed::the_mark_is_lost", the_mark_is_lost),
    ("changed::a_mark_beyond_the_end", a_mark_beyond_the_end),
    ("changed::marks_without_names_are_completed", marks_without_names_are_completed),
    ("changed::deltas_have_expired", deltas_have_expired),
    ("changed::a_partition_added_while_running", a_partition_added_while_running),
    ("changed::a_partition_added_between_two_runs", a_partition_added_between_two_runs),
    ("changed::records_expire_between_two_runs_with_state", records_expire_between_two_runs_with_state),
    ("changed::an_interrupted_correction", an_interrupted_correction),
];

pub(crate) const STATE: &str = "state.path = \"state\"\n";

/// Settings of a topic whose segments are closed at once.
pub(crate) const COMPACTED: &[(&str, &str)] =
    &[("cleanup.policy", "compact"), ("segment.ms", "1"), ("min.cleanable.dirty.ratio", "0.01")];

/// Tombstones are removed by the next compaction.
const SHORT: (&str, &str) = ("delete.retention.ms", "0");

/// A text. Texts of the same kind are equal.
fn text(kind: u32) -> String {
    (0..20).map(|n| format!("word{kind}x{n} ")).collect()
}

/// Writes documents with texts by kind; kind 0 is a tombstone.
pub(crate) fn put(scene: &Scene<'_>, partition: u32, documents: &[(&str, u32)]) {
    let writer = scene.broker.writer();
    for (id, kind) in documents {
        let text = (*kind > 0).then(|| text(*kind));
        writer.put(&scene.input, partition, Some(id), text.as_ref().map(String::as_bytes));
        // Each record in its own segment, if the scene has short segments.
        writer.flush();
    }
}

pub(crate) fn compacted<'b>(broker: &'b Broker, more: &[(&str, &str)]) -> Scene<'b> {
    let mut scene = Scene::new(broker, 1);
    scene.input = Broker::name("topic");
    broker.make_with(&scene.input, 1, &[COMPACTED, more].concat());
    scene
}

/// A committed record: offset, key, value.
pub(crate) type Record = (u64, String, Option<String>);

/// The records of a partition.
pub(crate) fn records_in(broker: &Broker, topic: &str, partition: i32) -> Vec<Record> {
    let own =
        [("group.id", "reader"), ("isolation.level", "read_committed"), ("enable.partition.eof", "true")];
    let client = broker.connection().consumer("reader", &own).unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    client.assign(&list).unwrap();
    let mut records = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    loop {
        match client.poll(BOUND).unwrap() {
            Ok(record) => {
                let offset = u64::try_from(record.offset()).unwrap();
                records.push((
                    offset,
                    record.key().map(text).unwrap_or_default(),
                    record.payload().map(text),
                ));
            }
            Err(KafkaError::PartitionEOF(_)) => return records,
            Err(error) => panic!("{topic}: {error}"),
        }
    }
}

/// Writes records until these offsets of the input are compacted away.
pub(crate) fn until_compacted(scene: &Scene<'_>, gone: &[u64]) {
    let end = std::time::Instant::now() + BOUND;
    loop {
        put(scene, 0, &[("filler", 9)]);
        let offsets: BTreeSet<u64> =
            records_in(scene.broker, &scene.input, 0).iter().map(|record| record.0).collect();
        if gone.iter().all(|offset| !offsets.contains(offset)) {
            return;
        }
        assert!(std::time::Instant::now() < end, "{gone:?} of {offsets:?} are not compacted away");
    }
}

fn a_compacted_topic_without_state(broker: &Broker) {
    let scene = compacted(broker, &[]);
    put(&scene, 0, &[("a", 1), ("b", 1), ("c", 2), ("d", 2)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "c d"]);
    run.stop();
    put(&scene, 0, &[("a", 1), ("c", 3), ("b", 1)]);
    until_compacted(&scene, &[0, 1, 2]);
    let mut run = scene.run(&[]);
    put(&scene, 0, &[("e", 1)]);
    output.until(&mut run, &["a b", "a e", "b e"]);
    run.stop();
}

/// Both the document and its tombstone are compacted away.
fn a_document_is_compacted_away(broker: &Broker) {
    let scene = compacted(broker, &[SHORT]);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    put(&scene, 0, &[("b", 0)]);
    until_compacted(&scene, &[1, 2]);
    let mut run = scene.run(&[]);
    put(&scene, 0, &[("e", 1)]);
    output.until(&mut run, &["a e"]);
    run.stop();
}

fn a_compacted_topic_with_a_state_behind(broker: &Broker) {
    let mut scene = compacted(broker, &[]);
    scene.more = STATE.to_owned();
    put(&scene, 0, &[("a", 1), ("b", 1), ("c", 2), ("d", 2)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "c d"]);
    run.stop();
    // Nothing is published to the state before the kill.
    scene.more = format!("{STATE}state.commit_every = \"3600s\"\n");
    put(&scene, 0, &[("e", 4), ("f", 4), ("g", 5), ("h", 5)]);
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "c d", "e f", "g h"]);
    run.kill();
    put(&scene, 0, &[("e", 4), ("g", 6)]);
    until_compacted(&scene, &[4, 6]);
    let mut run = scene.run(&[]);
    put(&scene, 0, &[("i", 1)]);
    output.until(&mut run, &["a b", "a i", "b i", "c d", "e f"]);
    assert!(run.stop().contains("documents restored from the state"));
    // Again, from the state that a corrected run has left.
    put(&scene, 0, &[("j", 2)]);
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "a i", "b i", "c d", "c j", "d j", "e f"]);
    run.stop();
}

/// The tombstone of a document in the state is compacted away.
fn a_state_older_than_tombstones(broker: &Broker) {
    let mut scene = compacted(broker, &[SHORT]);
    scene.more = STATE.to_owned();
    put(&scene, 0, &[("a", 1), ("b", 1), ("c", 2), ("d", 2)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "c d"]);
    run.stop();
    put(&scene, 0, &[("b", 0)]);
    until_compacted(&scene, &[1, 4]);
    let mut run = scene.run(&[]);
    put(&scene, 0, &[("e", 1)]);
    output.until(&mut run, &["a e", "c d"]);
    let log = run.stop();
    assert!(log.contains("delete.retention.ms") && !log.contains("restored from the state"), "{log}");
}

/// An old state is used if no record was written since.
fn a_state_with_nothing_left_to_read(broker: &Broker) {
    let mut scene = compacted(broker, &[SHORT]);
    scene.more = STATE.to_owned();
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    let mut run = scene.run(&[]);
    run.says("documents restored from the state");
    put(&scene, 0, &[("c", 1)]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    run.stop();
}

/// With both policies the topic lacks records, and may lack tombstones of documents in the state.
fn compaction_and_retention(broker: &Broker) {
    let mut scene = compacted(broker, &[SHORT, ("cleanup.policy", "compact,delete")]);
    scene.more = STATE.to_owned();
    put(&scene, 0, &[("a", 1), ("b", 1), ("c", 2), ("d", 2)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "c d"]);
    run.stop();
    put(&scene, 0, &[("e", 1)]);
    let error = scene.fails(&[]);
    assert!(error.contains("delete.retention.ms") && error.contains("--reconcile"), "{error}");
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["a b", "a e", "b e", "c d"]);
    let log = run.stop();
    assert!(log.contains("documents restored from the state"), "{log}");
}

/// Reading the cleanup policy needs another right than reading records.
fn a_policy_that_may_not_be_read(broker: &Broker) {
    let Some(reader) = broker.guest("guest") else {
        println!("SKIPPED changed::a_policy_that_may_not_be_read: it needs the broker of broker.sh");
        return;
    };
    let scene = compacted(broker, &[]);
    broker.allow_guest(&scene.input, &["READ", "DESCRIBE"]);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let config = format!(
        "workers = 1\nkafka.brokers = \"{}\"\nsource.kind = \"kafka\"\nsource.topic = \"{}\"\nsink.path = \
         \"out\"\n{}",
        reader.brokers,
        scene.input,
        crate::faults::sasl("guest")
    );
    std::fs::write(scene.path("run.toml"), config).unwrap();
    let words = ["run", "-c", "run.toml", "-p", "exact"];
    let start = || Run::start(scene.folder.path(), &words);
    let mut run = start();
    run.says("may not describe");
    let until = |run: &Run, expected: &[(&str, &str)]| {
        let end = std::time::Instant::now() + BOUND;
        let sums = || {
            let lines = std::fs::read_to_string(scene.path("out")).unwrap_or_default();
            let mut sums: BTreeMap<(String, String), i64> = BTreeMap::new();
            for line in lines.rsplit_once('\n').map_or("", |(whole, _)| whole).lines() {
                let delta: Value = serde_json::from_str(line).unwrap();
                let id = |name: &str| delta[name].as_str().unwrap().to_owned();
                *sums.entry((id("a"), id("b"))).or_default() += delta["diff"].as_i64().unwrap();
            }
            sums.retain(|_, sum| *sum != 0);
            sums
        };
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(a, b)| (((*a).to_owned(), (*b).to_owned()), 1)).collect();
        while sums() != expected {
            assert!(std::time::Instant::now() < end, "{:?}: {}", sums(), run.log());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    until(&run, &[("a", "b")]);
    run.stop();
    put(&scene, 0, &[("a", 1)]);
    until_compacted(&scene, &[0]);
    put(&scene, 0, &[("c", 2), ("d", 2)]);
    let run = start();
    until(&run, &[("a", "b"), ("c", "d")]);
    run.stop();
}

fn the_input_is_created_again(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    scene.more = STATE.to_owned();
    put(&scene, 0, &[("a", 1), ("b", 1), ("c", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    run.stop();
    broker.remake(&scene.input, 1);
    put(&scene, 0, &[("d", 1), ("e", 1), ("f", 2), ("g", 2), ("h", 3)]);
    for path in ["state", "none"] {
        scene.more = format!("state.path = \"{path}\"\n");
        let error = scene.fails(&[]);
        assert!(error.contains("was created again") && error.contains("--reconcile"), "{error}");
    }
    scene.more = STATE.to_owned();
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["d e", "f g"]);
    run.stop();
    let mut run = scene.run(&[]);
    put(&scene, 0, &[("i", 3)]);
    output.until(&mut run, &["d e", "f g", "h i"]);
    run.stop();
}

/// The new topic has more records than the old one: its offsets alone do not show the change.
fn the_input_is_created_again_while_it_is_read(broker: &Broker) {
    let scene = Scene::new(broker, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    broker.remake(&scene.input, 1);
    put(&scene, 0, &[("c", 2), ("d", 2), ("e", 3), ("f", 3)]);
    let error = run.failure();
    assert!(error.contains(&scene.input), "{error}");
    let error = scene.fails(&[]);
    assert!(error.contains("was created again") && error.contains("--reconcile"), "{error}");
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["c d", "e f"]);
    run.stop();
}

fn another_input_is_named(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    let before = std::mem::replace(&mut scene.input, broker.topic(1));
    put(&scene, 0, &[("a", 1), ("c", 1), ("d", 1)]);
    let error = scene.fails(&[]);
    assert!(error.contains(&before) && error.contains(&scene.input), "{error}");
    assert!(error.contains("source.topic") && error.contains("--reconcile"), "{error}");
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["a c", "a d", "c d"]);
    run.stop();
}

fn the_output_is_created_again(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    scene.more = STATE.to_owned();
    put(&scene, 0, &[("a", 1), ("b", 1), ("c", 2), ("d", 2)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "c d"]);
    run.stop();
    broker.remake(&scene.output, 1);
    put(&scene, 0, &[("b", 3)]);
    let error = scene.fails(&[]);
    assert!(error.contains(&scene.output) && error.contains("was created again"), "{error}");
    assert!(error.contains("--reconcile"), "{error}");
    let mut output = scene.output();
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["c d"]);
    run.stop();
    let mut run = scene.run(&[]);
    put(&scene, 0, &[("e", 1)]);
    output.until(&mut run, &["a e", "c d"]);
    run.stop();
}

fn another_output_is_named(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let first = Broker::name("id");
    scene.more =
        format!("sink.transactional_id = \"{first}\"\nsink.progress_topic = \"{}-progress\"\n", scene.output);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    let before = std::mem::replace(&mut scene.output, Broker::name("pairs"));
    let mut output = scene.output();
    let error = scene.fails(&[]);
    assert!(error.contains(&before) && error.contains(&scene.output), "{error}");
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["a b"]);
    run.stop();
}

fn the_mark_is_lost(broker: &Broker) {
    let scene = Scene::new(broker, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    broker.remake(&format!("{}-progress", scene.output), 1);
    let error = scene.fails(&[]);
    assert!(error.contains("holds records") && error.contains("no mark"), "{error}");
    assert!(error.contains(&scene.output) && error.contains("--reconcile"), "{error}");
    put(&scene, 0, &[("c", 1), ("b", 2)]);
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["a c"]);
    run.stop();
    let mut run = scene.run(&[]);
    put(&scene, 0, &[("d", 2)]);
    output.until(&mut run, &["a c", "b d"]);
    run.stop();
}

/// Changes the last mark as if another version had written it.
pub(crate) fn change_mark(scene: &Scene<'_>, change: impl FnOnce(&mut Value)) {
    let progress = format!("{}-progress", scene.output);
    let (_, key, value) = records_in(scene.broker, &progress, 0).pop().unwrap();
    let mut mark: Value = serde_json::from_str(&value.unwrap()).unwrap();
    change(&mut mark);
    scene.broker.writer().texts(&progress, 0, &[(&key, &mark.to_string())]);
}

fn a_mark_beyond_the_end(broker: &Broker) {
    let scene = Scene::new(broker, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    change_mark(&scene, |mark| mark["progress"]["next"]["0"] = json!(5));
    let error = scene.fails(&[]);
    assert!(error.contains("partition 0") && error.contains("from offset 5 on"), "{error}");
    assert!(error.contains("--reconcile"), "{error}");
    put(&scene, 0, &[("c", 1)]);
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    run.stop();
}

/// Marks of an earlier version lack the names of topics.
fn marks_without_names_are_completed(broker: &Broker) {
    let scene = Scene::new(broker, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    change_mark(&scene, |mark| {
        let fields = mark.as_object_mut().unwrap();
        for name in ["input", "output", "whole_at"] {
            fields.remove(name);
        }
    });
    put(&scene, 0, &[("c", 1)]);
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    run.stop();
    let last = records_in(broker, &format!("{}-progress", scene.output), 0).pop().unwrap().2.unwrap();
    let mark: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(mark["input"]["name"], json!(scene.input), "{mark}");
    assert_eq!(mark["output"]["name"], json!(scene.output), "{mark}");
    let ids: BTreeSet<&str> = ["input", "output"].map(|of| mark[of]["id"].as_str().unwrap()).into();
    assert_eq!(ids.len(), 2, "{mark}");
}

/// A consumer from the beginning does not get the whole result.
fn deltas_have_expired(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    put(&scene, 0, &[("c", 2), ("d", 2)]);
    output.until(&mut run, &["a b", "c d"]);
    run.stop();
    broker.admin().truncate(&scene.output, 0, 1).unwrap();
    // A consumer that has read all deltas before needs only the following ones: the run continues.
    put(&scene, 0, &[("e", 1)]);
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "a e", "b e", "c d"]);
    let log = run.stop();
    assert!(log.contains("have expired"), "{log}");
    // Corrections would be computed from an incomplete sum.
    let other = ["--reconcile", "--set", "text.shingle=words:2"];
    let error = scene.fails(&other);
    assert!(error.contains("have expired") && error.contains("another output topic"), "{error}");
    scene.more = format!("sink.transactional_id = \"{}\"\n", Broker::name("id"));
    scene.output = Broker::name("pairs");
    let mut output = scene.output();
    let mut run = scene.run(&other);
    output.until(&mut run, &["a b", "a e", "b e", "c d"]);
    run.stop();
}

fn a_partition_added_while_running(broker: &Broker) {
    let scene = Scene::new(broker, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    broker.grow(&scene.input, 2);
    put(&scene, 1, &[("x", 2), ("y", 2)]);
    output.until(&mut run, &["a b", "x y"]);
    run.stop();
    trimmed(&scene, &mut output);
}

fn a_partition_added_between_two_runs(broker: &Broker) {
    let scene = Scene::new(broker, 1);
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    broker.grow(&scene.input, 2);
    put(&scene, 1, &[("x", 2), ("y", 2)]);
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "x y"]);
    run.stop();
    trimmed(&scene, &mut output);
}

/// The first record of partition 1 expires in a run without state.
fn trimmed(scene: &Scene<'_>, output: &mut Output) {
    scene.broker.admin().truncate(&scene.input, 1, 1).unwrap();
    let error = scene.fails(&[]);
    assert!(error.contains("partition 1 is to be read from offset 0 on, and holds 1 to 2"), "{error}");
    let mut run = scene.run(&["--reconcile"]);
    put(scene, 1, &[("z", 2)]);
    output.until(&mut run, &["a b", "y z"]);
    run.stop();
}

fn records_expire_between_two_runs_with_state(broker: &Broker) {
    let mut scene = Scene::new(broker, 2);
    scene.more = STATE.to_owned();
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    put(&scene, 1, &[("c", 2), ("d", 2)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "c d"]);
    run.stop();
    // The output is ahead of the state.
    scene.more = format!("{STATE}state.commit_every = \"3600s\"\n");
    put(&scene, 0, &[("a", 3), ("l", 3)]);
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a l", "c d"]);
    run.kill();
    put(&scene, 0, &[("m", 1), ("n", 1), ("o", 4), ("p", 4)]);
    put(&scene, 1, &[("e", 2)]);
    broker.admin().truncate(&scene.input, 0, 5).unwrap();
    let error = scene.fails(&[]);
    assert!(error.contains("partition 0 is to be read from offset 2 on, and holds 5 to 8"), "{error}");
    assert!(error.contains("--reconcile, which keeps the documents of the state"), "{error}");
    let mut run = scene.run(&["--reconcile"]);
    // a and b are as in the state: the update of a, l and m have expired.
    output.until(&mut run, &["a b", "a n", "b n", "c d", "c e", "d e", "o p"]);
    let log = run.stop();
    assert!(log.contains("partition=0") && log.contains("from=2") && log.contains("to=5"), "{log}");
    assert!(log.contains("documents restored from the state"), "{log}");
    let mut run = scene.run(&[]);
    put(&scene, 0, &[("q", 4)]);
    output.until(&mut run, &["a b", "a n", "b n", "c d", "c e", "d e", "o p", "o q", "p q"]);
    run.stop();
}

/// A run with `--reconcile` stores documents and is killed before it writes the first correction.
fn an_interrupted_correction(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    scene.more = format!("{STATE}state.commit_every = \"3600s\"\n");
    put(&scene, 0, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    run.stop();
    put(&scene, 0, &[("c", 1)]);
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    run.kill();
    put(&scene, 0, &[("d", 1), ("e", 1)]);
    broker.admin().truncate(&scene.input, 0, 4).unwrap();
    let path = scene.path("state");
    let mut kept = StoredState::open(state::at(path.to_str().unwrap()).unwrap()).unwrap();
    let found = kept.latest(u64::MAX).unwrap().unwrap();
    let mut saved: StatePosition = found.saved().clone();
    saved.mark.in_correction = true;
    saved.mark.progress.next = [(0, 4)].into();
    kept.publish(&saved, &[]).unwrap();
    drop(kept);
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "a e", "b e"]);
    run.stop();
}
