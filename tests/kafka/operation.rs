//! Operation: waiting input is visible, topics are created durable, an unreachable broker is waited for, the
//! later of two runs continues.

use std::time::{Duration, Instant};

use dupflow::connectors::kafka::broker::{KEEPS_ALL, TopicRequest};
use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::topic_partition_list::Offset;
use rustix::process::Signal;
use serde_json::Value;

use crate::Test;
use crate::broker::{BOUND, Broker};
use crate::commands::dupflow;
use crate::run::{Run, Scene};

pub(crate) const TESTS: &[Test] = &[
    ("operation::an_open_transaction_is_seen", an_open_transaction_is_seen),
    ("operation::the_backlog_is_unknown_without_a_broker", the_backlog_is_unknown_without_a_broker),
    ("operation::offsets_are_committed_to_the_group", offsets_are_committed_to_the_group),
    ("operation::topics_are_created_durable", topics_are_created_durable),
    ("operation::check_warns_and_creates_nothing", check_warns_and_creates_nothing),
    ("operation::check_without_a_broker_ends", check_without_a_broker_ends),
    ("operation::a_missing_input_creates_nothing", a_missing_input_creates_nothing),
    ("operation::where_a_run_is_live_from_is_logged", where_a_run_is_live_from_is_logged),
    ("operation::a_refused_run_ends_no_other", a_refused_run_ends_no_other),
    (
        "operation::a_resumed_run_ends_and_its_successor_continues",
        a_resumed_run_ends_and_its_successor_continues,
    ),
    ("operation::an_unreachable_broker_is_waited_for", an_unreachable_broker_is_waited_for),
];

/// A text. Texts of the same kind are equal.
fn text(kind: u32) -> String {
    (0..20).map(|n| format!("word{kind}x{n} ")).collect()
}

fn put(scene: &Scene<'_>, documents: &[(&str, u32)]) {
    let writer = scene.broker.writer();
    for (id, kind) in documents {
        writer.put(&scene.input, 0, Some(id), Some(text(*kind).as_bytes()));
    }
    writer.flush();
}

/// The monitor of a run, on an ephemeral port.
struct Monitor(String);

impl Monitor {
    fn new(run: &mut Run) -> Self {
        run.says("monitor listens");
        let log = run.log();
        let address = log.split("address=").nth(1).unwrap().split_whitespace().next().unwrap();
        Self(format!("http://{address}"))
    }

    /// Status and body of an answer.
    fn get(&self, path: &str) -> (u16, String) {
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        let mut answer =
            ureq::Agent::new_with_config(config).get(format!("{}{path}", self.0)).call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }

    /// Repeats a request until the answer is right.
    fn until(&self, path: &str, is_right: impl Fn(u16, &str) -> bool) -> String {
        let end = Instant::now() + BOUND;
        loop {
            let (status, body) = self.get(path);
            if is_right(status, &body) {
                return body;
            }
            assert!(Instant::now() < end, "{path}: {status} {body}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn sample(&self, name: &str) -> Option<f64> {
        let (_, text) = self.get("/metrics");
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }
}

fn an_open_transaction_is_seen(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    scene.more = "[monitor]\nlisten = \"127.0.0.1:0\"\nready_behind = \"1s\"\n".to_owned();
    put(&scene, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    let monitor = Monitor::new(&mut run);
    output.until(&mut run, &["a b"]);
    monitor.until("/ready", |status, _| status == 200);
    let hung = broker.transactional(&Broker::name("upstream"));
    hung.begin();
    for n in 0..500 {
        hung.put(&scene.input, 0, Some(&format!("open{n}")), Some(text(9 + n).as_bytes()));
    }
    hung.flush();
    // After the open transaction, and held back by it.
    put(&scene, &[("c", 1)]);
    let waits = "501 records wait for a transaction of their producer, open at offset 2";
    let why = monitor.until("/ready", |status, body| status == 503 && body.contains(waits));
    assert!(why.contains("at most 1 s are expected (monitor.ready_behind)"), "{why}");
    let partition = |name: &str| monitor.sample(&format!("dupflow_input_{name}{{partition=\"0\"}}"));
    assert_eq!(partition("undecided_records"), Some(501.0));
    assert_eq!(partition("behind_records"), Some(0.0));
    assert!(partition("oldest_unread_seconds").unwrap() > 1.0);
    let status: Value = serde_json::from_str(&monitor.get("/status").1).unwrap();
    assert_eq!(status["input"]["undecided_records"], 501, "{status}");
    assert_eq!(status["input"]["partition"], 0);
    hung.commit();
    output.until(&mut run, &["a b", "a c", "b c"]);
    monitor.until("/ready", |status, _| status == 200);
    monitor.until("/status", |_, body| {
        let input = &serde_json::from_str::<Value>(body).unwrap()["input"];
        input["behind_records"] == 0 && input["undecided_records"] == 0 && input["partition"].is_null()
    });
    run.stop();
}

/// The run has read all input that it knows, but without a broker it does not know the end of the partition.
fn the_backlog_is_unknown_without_a_broker(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    scene.more = "[monitor]\nlisten = \"127.0.0.1:0\"\nready_behind = \"1s\"\n".to_owned();
    put(&scene, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    let monitor = Monitor::new(&mut run);
    output.until(&mut run, &["a b"]);
    monitor.until("/ready", |status, _| status == 200);
    if !broker.kill() {
        println!(
            "SKIPPED operation::the_backlog_is_unknown_without_a_broker: it needs the broker of broker.sh"
        );
        return;
    }
    let why = monitor.until("/ready", |status, _| status == 503);
    assert!(
        why.starts_with("how much of the input waits is not known") && why.contains("partition 0"),
        "{why}"
    );
    assert!(monitor.sample("dupflow_input_unseen_seconds{partition=\"0\"}").unwrap() > 10.0);
    assert_eq!(monitor.sample("dupflow_input_behind_records{partition=\"0\"}"), Some(0.0));
    run.says("how much of the input waits is not known");
    broker.restart();
    put(&scene, &[("c", 1)]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    monitor.until("/ready", |status, _| status == 200);
    run.stop();
}

/// The offset committed under a group for partition 0.
fn committed_offset(broker: &Broker, group: &str, topic: &str) -> Option<i64> {
    let reader = broker.connection().consumer("group", &[("group.id", group)]).unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition(topic, 0);
    let found = reader.committed_offsets(list, BOUND).unwrap();
    let offset = found.find_partition(topic, 0).unwrap().offset();
    dupflow::connectors::kafka::broker::close_in_background(reader);
    match offset {
        Offset::Offset(offset) => Some(offset),
        _ => None,
    }
}

fn offsets_are_committed_to_the_group(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    let group = Broker::name("group");
    scene.more = format!("[kafka.settings]\n\"group.id\" = \"{group}\"\n");
    put(&scene, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b"]);
    put(&scene, &[("c", 1)]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    run.stop();
    assert_eq!(committed_offset(broker, &group, &scene.input), Some(3));
    // The committed offset is only for monitoring: a run continues where its output stands.
    let other = broker.connection().consumer("group", &[("group.id", &*group)]).unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(&scene.input, 0, Offset::Offset(0)).unwrap();
    other.commit(&list, rdkafka::consumer::CommitMode::Sync).unwrap();
    let mut run = scene.run(&[]);
    run.says("live from offset 3 of partition 0");
    put(&scene, &[("d", 2), ("e", 2)]);
    output.until(&mut run, &["a b", "a c", "b c", "d e"]);
    run.stop();
    assert_eq!(committed_offset(broker, &group, &scene.input), Some(5));
    dupflow::connectors::kafka::broker::close_in_background(other);
}

fn topics_are_created_durable(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    let letters = Broker::name("letters");
    scene.more = format!("dead_letter.topic = \"{letters}\"\n");
    put(&scene, &[("a", 1), ("b", 1)]);
    let mut run = scene.run(&[]);
    run.says("live from offset 0 of partition 0");
    // Only now: `output` creates the topic if it is missing.
    scene.output().until(&mut run, &["a b"]);
    run.stop();
    let progress = format!("{}-progress", scene.output);
    let admin = broker.admin();
    let setting = |topic: &str, name: &str| admin.setting(topic, name).unwrap().unwrap();
    for topic in [&scene.output, &letters] {
        for (name, value) in KEEPS_ALL {
            assert_eq!(setting(topic, name), *value, "{topic}: {name}");
        }
    }
    assert_eq!(setting(&progress, "cleanup.policy"), "compact");
    assert_eq!(setting(&progress, "segment.bytes"), "4194304");
    // Records of another pipeline after the mark: more than the first backward step reads.
    let writer = broker.writer();
    (0..12_000_u32).for_each(|n| writer.put(&progress, 0, Some("other"), Some(&n.to_le_bytes())));
    writer.flush();
    let mut run = scene.run(&[]);
    run.says("live from offset 2 of partition 0");
    run.stop();
}

fn check_warns_and_creates_nothing(broker: &Broker) {
    let (input, output) = (Broker::name("input"), Broker::name("pairs"));
    let progress = format!("{output}-progress");
    let folder = tempfile::tempdir().unwrap();
    let admin = broker.admin();
    let make = |topic: &str, settings: &[(&'static str, &'static str)]| {
        let wanted = TopicRequest { topic, partitions: Some(1), compacted: false };
        admin.ensure(wanted, settings).unwrap();
    };
    let check = |state: &str| {
        let text = format!(
            "kafka.brokers = \"{}\"\nsource.kind = \"kafka\"\nsource.topic = \"{input}\"\nsink.kind = \
             \"kafka\"\nsink.topic = \"{output}\"\n\
             state.path = \"{state}\"\n",
            broker.address()
        );
        std::fs::write(folder.path().join("d.toml"), text).unwrap();
        let (out, log, good) = dupflow(folder.path(), &["check", "-c", "d.toml", "--connect"]);
        assert!(good, "{log}");
        out
    };
    make(&input, &[("cleanup.policy", "compact,delete"), ("retention.ms", "604800000")]);
    let out = check("");
    assert!(out.contains(&format!("! topic \"{input}\" is compacted")), "{out}");
    let expires = format!("! topic \"{input}\" expires (retention.ms=604800000), and no state is kept");
    assert!(out.contains(&expires), "{out}");
    assert!(out.contains(&format!("writes topic \"{output}\": missing, the first run makes it (")), "{out}");
    assert!(out.contains("retention.ms=-1"), "{out}");
    assert!(!check("state").contains("no state is kept"));
    assert_eq!((admin.find(&output).unwrap(), admin.find(&progress).unwrap()), (None, None));
    make(&output, &[("retention.ms", "604800000")]);
    make(&progress, &[("cleanup.policy", "delete")]);
    let out = check("state");
    assert!(out.contains(&format!("! topic \"{output}\" expires (retention.ms=604800000)")), "{out}");
    assert!(out.contains(&format!("! topic \"{progress}\" has cleanup.policy=delete")), "{out}");
    assert!(out.contains(&format!("! topic \"{progress}\" has segment.bytes=1073741824")), "{out}");
    assert!(out.contains(&format!("transactional id \"dupflow-{output}\"")), "{out}");
}

fn check_without_a_broker_ends(_: &Broker) {
    let folder = tempfile::tempdir().unwrap();
    let text = "kafka.brokers = \"127.0.0.1:1\"\nsource.kind = \"kafka\"\nsource.topic = \"in\"\nsink.kind = \
    \"kafka\"\nsink.topic = \"out\"\n";
    std::fs::write(folder.path().join("d.toml"), text).unwrap();
    let (_, log, good) = dupflow(folder.path(), &["check", "-c", "d.toml", "--connect"]);
    assert!(!good && log.contains("broker 127.0.0.1:1: no answer within 8 s"), "{log}");
    assert_eq!(log.matches("no answer within").count(), 1, "the wait is not repeated for each topic: {log}");
}

fn a_missing_input_creates_nothing(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    scene.input = Broker::name("missing");
    let error = scene.fails(&[]);
    assert!(error.contains(&format!("topic \"{}\": there is no such topic", scene.input)), "{error}");
    let admin = broker.admin();
    assert_eq!(admin.find(&scene.output).unwrap(), None);
    assert_eq!(admin.find(&format!("{}-progress", scene.output)).unwrap(), None);
}

fn where_a_run_is_live_from_is_logged(broker: &Broker) {
    let scene = Scene::new(broker, 2);
    put(&scene, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    run.says("live from offset 0 of partition 0, 0 of partition 1");
    output.until(&mut run, &["a b"]);
    run.stop();
    put(&scene, &[("c", 1)]);
    // Records read again up to the mark are not live.
    let mut run = scene.run(&[]);
    run.says("live from offset 2 of partition 0, 0 of partition 1");
    output.until(&mut run, &["a b", "a c", "b c"]);
    run.stop();
}

/// A run is suspended, its successor starts, and the first one resumes: at once, and after the successor has
/// written.
fn a_resumed_run_ends_and_its_successor_continues(broker: &Broker) {
    for waits in [false, true, false] {
        let scene = Scene::new(broker, 1);
        put(&scene, &[("a", 1), ("b", 1)]);
        let mut output = scene.output();
        let mut first = scene.run(&[]);
        output.until(&mut first, &["a b"]);
        first.signal(Signal::STOP);
        let beside = tempfile::tempdir().unwrap();
        let config = scene.path("run.toml");
        let mut second = Run::start(beside.path(), &["run", "-p", "exact", "-c", config.to_str().unwrap()]);
        if waits {
            put(&scene, &[("c", 1)]);
            output.until(&mut second, &["a b", "a c", "b c"]);
        } else {
            second.says("run");
        }
        first.signal(Signal::CONT);
        // A run that has lost the id notices it at its next commit.
        second.says("live from offset");
        put(&scene, &[("d", 2), ("e", 2)]);
        let error = first.failure();
        assert!(error.contains("another run has taken over the transactional id"), "{error}");
        put(&scene, &[("f", 2)]);
        let mut expected = vec!["d e", "d f", "e f"];
        expected.splice(0..0, if waits { vec!["a b", "a c", "b c"] } else { vec!["a b"] });
        output.until(&mut second, &expected);
        second.stop();
    }
}

/// A run with a wrong topic, pipeline or topic of marks is refused, and the run that it would have replaced
/// continues.
fn a_refused_run_ends_no_other(broker: &Broker) {
    let mut scene = Scene::new(broker, 1);
    let id = Broker::name("id");
    scene.more =
        format!("sink.transactional_id = \"{id}\"\nsink.progress_topic = \"{}-progress\"\n", scene.output);
    put(&scene, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    let mut healthy = scene.run(&[]);
    output.until(&mut healthy, &["a b"]);
    let mut expected = vec!["a b".to_owned()];
    let config = std::fs::read_to_string(scene.path("run.toml")).unwrap();
    let (other, missing, marks) = (broker.topic(1), Broker::name("missing"), Broker::name("marks"));
    let progress = format!("{}-progress", scene.output);
    for (number, (was, is, pipeline, why)) in [
        (&scene.input, &other, "exact", "source.topic"),
        (&scene.output, &missing, "exact", "sink.topic"),
        (&progress, &marks, "exact", "no mark of the transactional id"),
        (&scene.input, &scene.input, "minhash", "another pipeline"),
    ]
    .into_iter()
    .enumerate()
    {
        let beside = tempfile::tempdir().unwrap();
        // Names of other topics begin with the name of the output.
        let config = config.replace(&format!("\"{was}\""), &format!("\"{is}\""));
        std::fs::write(beside.path().join("run.toml"), config).unwrap();
        let error = Run::start(beside.path(), &["run", "-p", pipeline, "-c", "run.toml"]).failure();
        assert!(error.contains(why), "{error}");
        let (a, b) = (format!("x{number}"), format!("y{number}"));
        let kind = 100 + u32::try_from(number).unwrap();
        put(&scene, &[(&a, kind), (&b, kind)]);
        expected.push(format!("{a} {b}"));
        output.until(&mut healthy, &expected);
    }
    for name in [missing, marks] {
        assert!(broker.admin().find(&name).unwrap().is_none(), "{name} has been made");
    }
    healthy.stop();
}

/// A run waits for an unreachable broker without limit, at the start and later, and can be stopped meanwhile.
fn an_unreachable_broker_is_waited_for(broker: &Broker) {
    let mut scene = Scene::new(broker, 2);
    scene.more = "kafka.connect_seconds = 1\nsink.transaction_seconds = 1\n".to_owned();
    put(&scene, &[("a", 1), ("b", 1)]);
    let mut output = scene.output();
    if !broker.kill() {
        println!("SKIPPED operation::an_unreachable_broker_is_waited_for: it needs the broker of broker.sh");
        return;
    }
    let mut stopped = scene.run(&[]);
    stopped.says("left_out=");
    assert!(stopped.stop().contains("ended before the run had begun"));
    let mut run = scene.run(&[]);
    run.says("left_out=");
    broker.restart();
    output.until(&mut run, &["a b"]);
    for round in 0..3_u32 {
        let writer = broker.writer();
        for n in 0..500 {
            let (id, kind) = (format!("x{n}"), 100 + 1000 * round + n);
            writer.put(&scene.input, n % 2, Some(&id), Some(text(kind).as_bytes()));
        }
        writer.flush();
        let before = run.log().matches("left_out=").count();
        assert!(broker.kill());
        run.says_often("left_out=", before + 3);
        broker.restart();
    }
    put(&scene, &[("c", 1)]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    run.stop();
}
