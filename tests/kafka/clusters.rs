//! Changes of clusters written to a topic; texts read from a topic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dupflow::connectors::formats::{RecordShape, ValueFormat};
use dupflow::connectors::intake::{FoundText, NoText, Source as _, Texts};
use dupflow::connectors::kafka::{Kafka, Start};
use dupflow::connectors::kafka::{KafkaOutput, KafkaSink, OutputEnvelope};
use dupflow::connectors::mark::{Mark, Standing};
use dupflow::connectors::sinks::Sink;
use dupflow::connectors::sinks::answers::ClusterDeltas;
use dupflow::core::cluster::{ClusterKind, ClusterReport, Clusters};
use dupflow::core::doc::{DocId, Position};
use dupflow::core::oracle;
use dupflow::core::pair::{Delta, DocPair, Evidence, Pair, Similarity};
use dupflow::core::run::metrics::Metrics;
use dupflow::core::time::{Offsets, Progress};

use crate::Test;
use crate::broker::{BOUND, Broker};
use crate::read::{Reading, kafka};
use crate::run::Scene;

pub(crate) const TESTS: &[Test] = &[
    ("clusters::changes_and_memberships", changes_and_memberships),
    ("clusters::an_output_is_corrected", an_output_is_corrected),
    ("clusters::killed_runs_are_exact", killed_runs_are_exact),
    ("texts::texts_are_read_back", texts_are_read_back),
    ("texts::missing_texts_have_a_reason", missing_texts_have_a_reason),
];

fn id(name: &str) -> DocId {
    DocId::new(name).unwrap()
}

fn output(broker: &Broker, envelope: OutputEnvelope) -> KafkaOutput {
    KafkaOutput {
        connection: broker.connection(),
        topic: Broker::name("clusters"),
        progress_topic: Broker::name("progress"),
        transactional_id: Broker::name("id"),
        envelope,
        dead_letter: None,
        timeout: Duration::from_secs(20),
        refresh: Duration::from_secs(30),
        run: Broker::name("run"),
    }
}

/// The sink of another run on the same output. Clusters of more than `limit` documents are giants.
fn sink(output: &KafkaOutput, limit: usize) -> KafkaSink {
    let clusters = Clusters::new(ClusterKind::Components, limit);
    let next = KafkaOutput { run: Broker::name("run"), ..output.clone() };
    KafkaSink::for_changes(next, Box::new(ClusterDeltas::new(clusters, Arc::new(Metrics::new(0)))))
}

fn pair(ends: &str) -> Pair<DocId> {
    Pair::new(id(&ends[..1]), id(&ends[1..])).unwrap()
}

/// Deltas: `+ab` inserts the pair of a and b, `-ab` removes it.
fn deltas(changes: &str) -> Vec<Delta> {
    let delta = |change: &str| {
        let (pair, evidence) = (pair(&change[1..]), Evidence::default());
        let found = DocPair { pair, similarity: Similarity::ONE, evidence };
        Delta::by_block(found, if change.starts_with('+') { 1 } else { -1 })
    };
    let mut deltas: Vec<_> = changes.split_whitespace().map(delta).collect();
    deltas.sort_unstable();
    deltas
}

/// Writes one epoch and commits it.
fn commit(sink: &mut KafkaSink, epoch: u64, changes: &str, in_correction: bool) {
    let progress = Progress { epoch, next: [(0, epoch)].into(), ..Progress::default() };
    sink.epoch(&progress, &deltas(changes), &[]).unwrap();
    let mark = Mark {
        run: format!("run at {epoch}, {in_correction}"),
        progress,
        start: [(0, 0)].into(),
        pipeline: "p".to_owned(),
        in_correction,
        letters: None,
        ..Mark::default()
    };
    sink.commit(&mark).unwrap();
}

/// Committed keys and values, partition by partition.
pub(crate) fn committed(broker: &Broker, topic: &str) -> Vec<String> {
    let mut reading = Reading::from_start(kafka(broker, topic, Start::Earliest));
    let admin = broker.admin();
    let ends: BTreeMap<u32, u64> =
        reading.begin.keys().map(|p| (*p, admin.offset_range(topic, *p).unwrap().1)).collect();
    reading.until("the end", |reading| ends.iter().all(|(p, end)| reading.next.get(p) >= Some(end)));
    let events = reading.events_read();
    reading.stop().unwrap();
    events
}

fn changes_and_memberships(broker: &Broker) {
    let of = output(broker, OutputEnvelope::Delta);
    let mut first = sink(&of, 3);
    assert_eq!(first.take_over().unwrap(), Standing::New);
    commit(&mut first, 1, "+ab +xy", false);
    commit(&mut first, 2, "+bc +cd", false);
    let member = |epoch, diff, document, cluster| {
        format!(
            "{document}:{{\"epoch\":{epoch},\"diff\":{diff},\"document\":\"{document}\",\
             \"cluster\":\"{cluster}\"}}"
        )
    };
    let mut expected = vec![
        member(1, 1, "a", "a"),
        member(1, 1, "b", "a"),
        member(1, 1, "x", "x"),
        member(1, 1, "y", "x"),
        member(2, -1, "a", "a"),
        member(2, -1, "b", "a"),
        "a:{\"epoch\":2,\"diff\":1,\"cluster\":\"a\",\"size\":4,\"giant\":true}".to_owned(),
    ];
    assert_eq!(committed(broker, &of.topic), expected);
    // A restart: the deltas up to the mark are passed to `restored`.
    let mut second = sink(&of, 3);
    assert!(matches!(second.take_over().unwrap(), Standing::At(_)));
    second.restored(&deltas("+ab +xy +bc +cd"));
    commit(&mut second, 3, "-bc +xz", false);
    expected.extend([
        member(3, 1, "a", "a"),
        member(3, 1, "b", "a"),
        member(3, 1, "c", "c"),
        member(3, 1, "d", "c"),
        member(3, 1, "z", "x"),
        "a:{\"epoch\":3,\"diff\":-1,\"cluster\":\"a\",\"size\":4,\"giant\":true}".to_owned(),
    ]);
    assert_eq!(committed(broker, &of.topic), expected);

    let of = output(broker, OutputEnvelope::Upsert);
    let mut upserts = sink(&of, 3);
    upserts.take_over().unwrap();
    commit(&mut upserts, 1, "+ab +xy", false);
    commit(&mut upserts, 2, "+bc +cd -xy", false);
    let now = |epoch, document, cluster| {
        format!("{document}:{{\"epoch\":{epoch},\"document\":\"{document}\",\"cluster\":\"{cluster}\"}}")
    };
    let expected = [
        now(1, "a", "a"),
        now(1, "b", "a"),
        now(1, "x", "x"),
        now(1, "y", "x"),
        "a:{\"epoch\":2,\"cluster\":\"a\",\"size\":4,\"giant\":true}".to_owned(),
        "b:-".to_owned(),
        "x:-".to_owned(),
        "y:-".to_owned(),
    ];
    assert_eq!(committed(broker, &of.topic), expected);
    let policy = broker.admin().setting(&of.topic, "cleanup.policy").unwrap();
    assert_eq!(policy.as_deref(), Some("compact"));
}

/// The output is corrected by runs with another limit and other pairs. The first of them ends before it is
/// done.
fn an_output_is_corrected(broker: &Broker) {
    for envelope in [OutputEnvelope::Delta, OutputEnvelope::Upsert] {
        let of = output(broker, envelope);
        let mut first = sink(&of, 100);
        first.take_over().unwrap();
        commit(&mut first, 1, "+ab +bc +xy +pq", false);
        let written = committed(broker, &of.topic).len();
        for ends in [false, true] {
            let mut second = sink(&of, 3);
            second.take_over().unwrap();
            assert_eq!(second.pairs().unwrap(), BTreeSet::new());
            second.restored(&[]);
            commit(&mut second, 1, "+ab +bc", true);
            assert_eq!(committed(broker, &of.topic).len(), written);
            if ends {
                commit(&mut second, 1, "+cd +xz", false);
                commit(&mut second, 2, "+xy", false);
            }
        }
        let mut last = sink(&of, 3);
        last.take_over().unwrap();
        last.pairs().unwrap();
        // The output matches these pairs: no correction is left.
        let before = committed(broker, &of.topic).len();
        commit(&mut last, 2, "+ab +bc +cd +xz +xy", false);
        assert_eq!(committed(broker, &of.topic).len(), before, "{envelope:?}");
        // Another program has written to the topic.
        broker.writer().texts(&of.topic, 0, &[("a", "something else")]);
        let error = sink(&of, 3);
        let error = { error }.pairs().unwrap_err().to_string();
        assert!(error.contains(&of.topic) && error.ends_with("something else"), "{error}");
    }
}

/// The marks of a scene's output.
fn marks(scene: &Scene<'_>) -> Vec<Mark> {
    let topic = format!("{}-progress", scene.output);
    if scene.broker.admin().find(&topic).unwrap().is_none() {
        return Vec::new();
    }
    let mark = |record: &String| serde_json::from_str(record.split_once(':').unwrap().1).unwrap();
    // The topic also holds claims of runs.
    let records = committed(scene.broker, &topic);
    records.iter().filter(|record| !record.contains("\0claim:")).map(mark).collect()
}

/// The clusters that the committed records of a topic accumulate to.
fn reports_in(broker: &Broker, topic: &str, envelope: &str) -> BTreeSet<ClusterReport> {
    let mut found: BTreeMap<ClusterReport, i64> = BTreeMap::new();
    let mut now: BTreeMap<String, ClusterReport> = BTreeMap::new();
    for record in committed(broker, topic) {
        let (key, value) = record.split_once(':').unwrap();
        let record: serde_json::Value = serde_json::from_str(value).unwrap_or_default();
        let cluster = record["cluster"].as_str().map(id);
        let report = cluster.map(|cluster| match record["size"].as_u64() {
            Some(size) => ClusterReport::Giant { cluster, size: usize::try_from(size).unwrap() },
            None => ClusterReport::Member { cluster, document: id(key) },
        });
        match (envelope, report) {
            ("delta", Some(report)) => {
                *found.entry(report).or_default() += record["diff"].as_i64().unwrap();
            }
            (_, Some(report)) => drop(now.insert(key.to_owned(), report)),
            (_, None) => drop(now.remove(key)),
        }
    }
    found.retain(|_, count| *count != 0);
    assert!(found.values().all(|count| *count == 1));
    found.into_keys().chain(now.into_values()).collect()
}

/// The pairs that deltas accumulate to, sorted.
fn accumulated<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<Pair<DocId>> {
    let mut pairs: BTreeMap<Pair<DocId>, i64> = BTreeMap::new();
    for line in lines {
        let delta: serde_json::Value = serde_json::from_str(line).unwrap();
        let end = |name: &str| id(delta[name].as_str().unwrap());
        let times = pairs.entry(Pair::new(end("a"), end("b")).unwrap()).or_default();
        *times += delta["diff"].as_i64().unwrap();
        assert!((0..=1).contains(times), "{line}");
    }
    pairs.into_iter().filter(|(_, times)| *times == 1).map(|(pair, _)| pair).collect()
}

/// Runs are killed one after another while documents are inserted, changed and deleted.
fn killed_runs_are_exact(broker: &Broker) {
    for envelope in ["delta", "upsert"] {
        let mut scene = Scene::new(broker, 2);
        let beside = Broker::name("pairs");
        scene.more = format!(
            "sink.emit = \"cluster-deltas\"\nsink.envelope = \"{envelope}\"\nstate.path = \
             \"state\"\nstate.commit_every = \"100ms\"\ncommit.records = 7\n\
             [[output]]\nkind = \"kafka\"\ntopic = \"{beside}\"\n[[output]]\npath = \"pairs.jsonl\"\n"
        );
        let writer = broker.writer();
        let text = |topic: u64| {
            format!("page {topic} of many words that are all about the number {topic} and {topic} again")
        };
        let mut corpus: BTreeMap<String, u64> = BTreeMap::new();
        let mut random = 7_u64;
        let mut draw = |below: u64| {
            random = dupflow::core::hash::mix(random);
            random % below
        };
        let mut ends = Offsets::new();
        for round in 0..6 {
            for _ in 0..60 {
                let name = format!("文書/{:02}", draw(60));
                let partition = u32::try_from(dupflow::core::hash::bytes(0, name.as_bytes()) % 2).unwrap();
                let about = draw(12);
                let value = (about > 2).then(|| text(about));
                writer.put(&scene.input, partition, Some(&name), value.as_ref().map(String::as_bytes));
                *ends.entry(partition).or_default() += 1;
                match value {
                    Some(_) => drop(corpus.insert(name, about)),
                    None => drop(corpus.remove(&name)),
                }
            }
            writer.flush();
            let before = marks(&scene).len();
            let run = scene.run(&["--set", "output.cluster_limit=6"]);
            // The run's first mark and one of an epoch; in the last round, the mark after all input.
            let is_enough = |marks: &[Mark]| {
                let stands = marks.last().is_some_and(|mark| mark.progress.next == ends);
                stands || (round < 5 && marks.len() > before + 1)
            };
            let bound = Instant::now() + BOUND;
            while !is_enough(&marks(&scene)) {
                assert!(Instant::now() < bound, "{}", run.log());
            }
            if round < 5 { run.kill() } else { drop(run.stop()) }
        }
        // Texts with the same number are equal, all others dissimilar.
        let like = |a: &(&String, &u64), b: &(&String, &u64)| a.0 < b.0 && a.1 == b.1;
        let all: Vec<_> = corpus.iter().collect();
        let pairs: Vec<_> = all
            .iter()
            .flat_map(|a| all.iter().filter(|b| like(a, b)).map(|b| Pair::new(id(a.0), id(b.0)).unwrap()))
            .collect();
        let expected = oracle::clusters(&pairs, ClusterKind::Components, 6);
        assert!(
            expected.len() > 10
                && expected.iter().any(|report| matches!(report, ClusterReport::Giant { .. }))
        );
        assert_eq!(reports_in(broker, &scene.output, envelope), expected, "{envelope}");
        // The outputs beside it hold the pairs of these clusters.
        let file = std::fs::read_to_string(scene.path("pairs.jsonl")).unwrap();
        let of_topic = committed(broker, &beside);
        let of_topic = of_topic.iter().map(|record| record.split_once(':').unwrap().1);
        assert_eq!(accumulated(of_topic), pairs);
        assert_eq!(accumulated(file.lines()), pairs);
    }
}

fn texts(kafka: &Kafka, fields: &[&str]) -> Box<dyn Texts> {
    let fields: Vec<String> = fields.iter().map(|&name| name.to_owned()).collect();
    kafka.texts(&fields.into()).unwrap()
}

/// A text that is found whole at a position of a topic.
fn whole(text: &str, topic: &str, at: Position) -> Result<FoundText, NoText> {
    let place = format!("offset {} of partition {} of topic \"{topic}\"", at.offset, at.partition);
    Ok(FoundText { text: text.to_owned(), truncated: false, place: Some(place) })
}

fn texts_are_read_back(broker: &Broker) {
    let topic = broker.topic(2);
    let writer = broker.writer();
    let long = "한국어 글 ".repeat(60_000);
    let all =
        ["你好,世界", "ความเหมือน", "كلمات \u{202e}عكس\u{202c}", "日本語", "😀 \u{1e} \u{7f}", long.as_str()];
    let name = "ก".repeat(341);
    for (partition, text) in (0..2).flat_map(|partition| all.iter().map(move |text| (partition, text))) {
        let row = serde_json::json!({ "text": text, "title": "표제" }).to_string();
        writer.put(&topic, partition, Some(&name), Some(row.as_bytes()));
    }
    writer.put_with(&topic, 0, Some("h"), Some(b"plain"), None, &[("title", "of a header")]);
    writer.flush();
    let shape = RecordShape {
        format: ValueFormat::Auto,
        headers: vec!["title".to_owned()],
        ..RecordShape::default()
    };
    let source = Kafka { shape: Arc::new(shape), ..kafka(broker, &topic, Start::Earliest) };
    let mut plain = texts(&source, &[]);
    let mut titled = texts(&source, &["title"]);
    // In any order: each text is read on its own.
    for offset in [5, 0, 3, 1, 4, 2_u64] {
        for partition in [0, 1] {
            let text = all[usize::try_from(offset).unwrap()];
            let at = Position { partition, offset };
            assert_eq!(plain.text(&id(&name), at), whole(text, &topic, at), "{at:?}");
            let with_title = format!("{}\u{1e}표제", text.replace('\u{1e}', " "));
            assert_eq!(titled.text(&id(&name), at), whole(&with_title, &topic, at), "{at:?}");
        }
    }
    let last = Position { partition: 0, offset: 6 };
    assert_eq!(titled.text(&id("h"), last), whole("plain\u{1e}of a header", &topic, last));
}

fn missing_texts_have_a_reason(broker: &Broker) {
    let topic = broker.topic(1);
    let writer = broker.writer();
    let transactional = broker.transactional(&Broker::name("writer"));
    writer.texts(&topic, 0, &[("a", "one"), ("b", "two"), ("c", "three")]);
    writer.put(&topic, 0, Some("d"), None);
    writer.flush();
    transactional.begin();
    transactional.put(&topic, 0, Some("e"), Some(b"never"));
    transactional.abort();
    broker.until_end(&topic, 0, 6);
    writer.texts(&topic, 0, &[("f", "last")]);
    let source = kafka(broker, &topic, Start::Earliest);
    let mut texts = texts(&source, &[]);
    let mut text_at = |of: &str, offset| match texts.text(&id(of), Position { partition: 0, offset }) {
        Ok(found) => found.text,
        Err(NoText::Gone(why)) => why.replace(&format!(" of partition 0 of topic \"{topic}\""), ""),
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!([text_at("a", 0), text_at("c", 2), text_at("b", 1)], ["one", "three", "two"]);
    assert_eq!(text_at("b", 0), "offset 0 holds another document now: the input has changed");
    assert_eq!(text_at("d", 3), "offset 3 holds a delete now: the input has changed");
    // A record of an aborted transaction: the consumer sees the next record instead.
    assert!(text_at("e", 4).starts_with("offset 4 is held no more"));
    assert_eq!(text_at("f", 6), "last");
    assert!(text_at("f", 7).starts_with("offset 7 is not there: the partition ends before offset 7"));
    broker.admin().truncate(&topic, 0, 2).unwrap();
    assert_eq!(text_at("b", 1), "offset 1 has expired: the partition holds what comes from offset 2 on");
    assert_eq!(text_at("c", 2), "three");
    // No broker at this address: the text is unavailable now, and may be available later.
    let nowhere = dupflow::connectors::kafka::broker::Connection {
        brokers: "127.0.0.1:1".to_owned(),
        patience: Duration::from_millis(300),
        ..broker.connection()
    };
    let away = Kafka { connection: nowhere, ..source };
    let failed = self::texts(&away, &[]).text(&id("c"), Position { partition: 0, offset: 2 });
    assert!(matches!(failed, Err(NoText::Failed(_))), "{failed:?}");
}
