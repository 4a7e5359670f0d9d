//! A topic as sink.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dupflow::connectors::kafka::Start;
use dupflow::connectors::kafka::{KafkaOutput, KafkaSink, OutputEnvelope};
use dupflow::connectors::mark::{Mark, Standing};
use dupflow::connectors::sinks::Sink;
use dupflow::core::doc::{DocId, Letter, Position};
use dupflow::core::pair::{Delta, DocPair, Evidence, Pair, Similarity};
use dupflow::core::time::{Progress, TableInForce};
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Headers as _, Message as _};
use rdkafka::producer::{BaseRecord, Producer as _};
use rdkafka::topic_partition_list::Offset;

use crate::Test;
use crate::broker::{BOUND, Broker};
use crate::read::{Reading, kafka};

pub(crate) const TESTS: &[Test] = &[
    ("sink::deltas_letters_and_marks", deltas_letters_and_marks),
    ("sink::upserts", upserts),
    ("sink::a_successor_continues_and_the_zombie_ends", a_successor_continues_and_the_zombie_ends),
    ("sink::a_successor_that_has_written_nothing", a_successor_that_has_written_nothing),
    ("sink::uncommitted_records_are_lost", uncommitted_records_are_lost),
    ("sink::a_transaction_that_times_out_is_written_again", a_transaction_that_times_out_is_written_again),
    ("sink::the_broker_restarts", the_broker_restarts),
    ("sink::a_transaction_of_another_in_the_topic_of_marks", a_transaction_of_another_in_the_topic_of_marks),
    ("sink::refused_outputs", refused_outputs),
    ("sink::many_deltas_in_one_commit", many_deltas_in_one_commit),
];

fn output(broker: &Broker) -> KafkaOutput {
    KafkaOutput {
        connection: broker.connection(),
        topic: Broker::name("pairs"),
        progress_topic: Broker::name("progress"),
        transactional_id: Broker::name("id"),
        envelope: OutputEnvelope::Delta,
        dead_letter: None,
        timeout: Duration::from_secs(20),
        refresh: Duration::from_secs(30),
        run: Broker::name("run"),
    }
}

/// The same output for another run.
fn next_run(output: &KafkaOutput) -> KafkaOutput {
    KafkaOutput { run: Broker::name("run"), ..output.clone() }
}

fn pair(a: &str, b: &str, similarity: f64) -> DocPair {
    let pair = Pair::new(DocId::new(a).unwrap(), DocId::new(b).unwrap()).unwrap();
    DocPair { pair, similarity: Similarity::clamped(similarity), evidence: Evidence::default() }
}

fn mark(output: &KafkaOutput, epoch: u64) -> Mark {
    let table = Some(TableInForce { number: 1, documents: 9, fingerprint: u64::MAX });
    Mark {
        run: output.run.clone(),
        progress: Progress {
            epoch,
            next: [(0, epoch * 10), (7, u64::from(u32::MAX))].into(),
            table,
            ..Progress::default()
        },
        start: [(0, 0)].into(),
        pipeline: "{\"p\":1}".to_owned(),
        in_correction: false,
        letters: None,
        ..Mark::default()
    }
}

fn epoch(sink: &mut KafkaSink, epoch: u64, deltas: &[Delta]) {
    sink.epoch(&Progress { epoch, ..Progress::default() }, deltas, &[]).unwrap();
}

/// Writes one delta and commits.
fn commit(sink: &mut KafkaSink, output: &KafkaOutput, number: u64) -> std::io::Result<()> {
    epoch(sink, number, &[Delta::by_block(pair("a", &format!("b{number}"), 0.5), 1)]);
    sink.commit(&mark(output, number))
}

/// The committed records of a topic (key, value), as another program reads them.
fn committed(broker: &Broker, topic: &str) -> Vec<String> {
    let mut reading = Reading::from_start(kafka(broker, topic, Start::Earliest));
    let admin = broker.admin();
    let ends: BTreeMap<u32, u64> =
        reading.begin.keys().map(|p| (*p, admin.offset_range(topic, *p).unwrap().1)).collect();
    reading.until("the end", |reading| ends.iter().all(|(p, end)| reading.next.get(p) >= Some(end)));
    let events = reading.events_read();
    reading.stop().unwrap();
    events
}

/// Key, value and headers of a record.
type WrittenLetter = (Option<Vec<u8>>, Option<Vec<u8>>, String);

/// The first committed records of a topic of letters.
fn letters_in(broker: &Broker, topic: &str, count: usize) -> Vec<WrittenLetter> {
    let own = [("group.id", "letters"), ("isolation.level", "read_committed")];
    let reader: BaseConsumer<_> = broker.connection().consumer("letters", &own).unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Beginning).unwrap();
    reader.assign(&list).unwrap();
    let end = Instant::now() + BOUND;
    let mut found = Vec::new();
    while found.len() < count {
        assert!(Instant::now() < end);
        if let Some(Ok(message)) = reader.poll(Duration::from_millis(100)) {
            let headers = message.headers().unwrap().iter();
            let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
            let headers: Vec<_> = headers.map(|h| format!("{}={}", h.key, text(h.value))).collect();
            found.push((
                message.key().map(<[u8]>::to_vec),
                message.payload().map(<[u8]>::to_vec),
                headers.join(" "),
            ));
        }
    }
    dupflow::connectors::kafka::broker::close_in_background(reader);
    found
}

fn deltas_letters_and_marks(broker: &Broker) {
    let output = KafkaOutput { dead_letter: Some(Broker::name("letters")), ..output(broker) };
    let letters = output.dead_letter.clone().unwrap();
    let mut sink = KafkaSink::new(output.clone(), Some(Box::new(|_| 0.25)));
    assert_eq!(sink.take_over().unwrap(), Standing::New);
    let letter = |key: Option<&[u8]>, raw: Option<Vec<u8>>| Letter {
        input: "in".into(),
        position: Position { partition: 3, offset: 17 },
        reason: "not_json".into(),
        key: key.map(<[u8]>::to_vec),
        raw,
        hides_records: false,
    };
    let of = [
        letter(Some(b"k"), Some(b"\xff{".to_vec())),
        letter(None, None),
        letter(None, Some(vec![b'x'; 600_000])),
        letter(Some(&vec![b'k'; 900_000]), Some(vec![b'x'; 900_000])),
    ];
    sink.epoch(
        &Progress { epoch: 1, ..Progress::default() },
        &[Delta::by_block(pair("a", "b", 0.5), 1)],
        &of,
    )
    .unwrap();
    epoch(&mut sink, 2, &[Delta::by_block(pair("a", "b", 0.5), -1), Delta::by_block(pair("a", "b", 1.0), 1)]);
    sink.commit(&mark(&output, 2)).unwrap();
    epoch(&mut sink, 3, &[]);
    sink.commit(&mark(&output, 3)).unwrap();
    let line = |epoch, diff, similarity| {
        format!(
            "a\0b:{{\"epoch\":{epoch},\"diff\":{diff},\"a\":\"a\",\"b\":\"b\",\"similarity\":{similarity},\
             \"blocks\":0,\"look\":0,\"components\":0,\"standard_error\":0.25}}"
        )
    };
    assert_eq!(committed(broker, &output.topic), [line(1, 1, "0.5"), line(2, -1, "0.5"), line(2, 1, "1.0")]);
    assert_eq!(sink.pairs().unwrap().into_iter().collect::<Vec<_>>(), [pair("a", "b", 1.0)]);
    // A mark is read back unchanged, with offsets of partitions and a table.
    let next = next_run(&output);
    let Standing::At(read) = KafkaSink::new(next, None).take_over().unwrap() else { panic!("no mark") };
    assert_eq!(read.letters_topic.as_ref().map(|topic| &*topic.name), Some(&*letters));
    assert_eq!(Mark { letters_topic: None, ..*read }, mark(&output, 3));

    let found = letters_in(broker, &letters, 4);
    let headers = "reason=not_json input=in partition=3 offset=17".to_owned();
    assert_eq!(found[0], (Some(b"k".to_vec()), Some(b"\xff{".to_vec()), headers.clone()));
    assert_eq!(found[1], (None, None, headers.clone()));
    assert_eq!(
        (found[2].1.as_ref().unwrap().len(), &found[2].2),
        (512 << 10, &format!("{headers} bytes=600000"))
    );
    // Neither fits beside the other into a record that a broker takes by default.
    let (key, value, cut) = &found[3];
    assert_eq!((key.as_ref().unwrap().len(), value.as_ref().unwrap().len()), (128 << 10, 512 << 10));
    assert_eq!(cut, &format!("{headers} bytes=900000 key_bytes=900000"));
}

fn upserts(broker: &Broker) {
    let output = KafkaOutput { envelope: OutputEnvelope::Upsert, ..output(broker) };
    let mut sink = KafkaSink::new(output.clone(), None);
    sink.take_over().unwrap();
    epoch(&mut sink, 1, &[Delta::by_block(pair("a", "b", 0.5), 1), Delta::by_block(pair("a", "c", 0.5), 1)]);
    epoch(
        &mut sink,
        2,
        &[
            Delta::by_block(pair("a", "b", 0.5), -1),
            Delta::by_block(pair("a", "b", 0.75), 1),
            Delta::by_block(pair("a", "c", 0.5), -1),
        ],
    );
    epoch(&mut sink, 2, &[Delta::by_block(pair("a\0", "c", 1.0), 1)]);
    sink.commit(&mark(&output, 2)).unwrap();
    let value = |epoch, b, similarity| {
        format!("{{\"epoch\":{epoch},\"a\":\"a\",\"b\":\"{b}\",\"similarity\":{similarity}}}")
    };
    let expected = [
        format!("a\0b:{}", value(1, "b", "0.5")),
        format!("a\0c:{}", value(1, "c", "0.5")),
        format!("a\0b:{}", value(2, "b", "0.75")),
        "a\0c:-".to_owned(),
        r#"["a\u0000","c"]:{"epoch":2,"a":"a\u0000","b":"c","similarity":1.0}"#.to_owned(),
    ];
    assert_eq!(committed(broker, &output.topic), expected);
    let pairs = [pair("a", "b", 0.75), pair("a\0", "c", 1.0)];
    assert_eq!(sink.pairs().unwrap().into_iter().collect::<Vec<_>>(), pairs);
    let policy = broker.admin().setting(&output.topic, "cleanup.policy").unwrap();
    assert_eq!(policy.as_deref(), Some("compact"));
    let policy = broker.admin().setting(&output.progress_topic, "cleanup.policy").unwrap();
    assert_eq!(policy.as_deref(), Some("compact"));
}

fn a_successor_continues_and_the_zombie_ends(broker: &Broker) {
    let first = output(broker);
    let mut zombie = KafkaSink::new(first.clone(), None);
    assert_eq!(zombie.take_over().unwrap(), Standing::New);
    commit(&mut zombie, &first, 1).unwrap();
    let second = next_run(&first);
    let mut sink = KafkaSink::new(second.clone(), None);
    assert_eq!(sink.take_over().unwrap(), Standing::At(Box::new(mark(&first, 1))));
    // Before the successor has committed.
    let error = commit(&mut zombie, &first, 2).unwrap_err().to_string();
    assert!(error.contains("another run has taken over") && error.contains(&second.run), "{error}");
    commit(&mut sink, &second, 3).unwrap();
    let expected: Vec<_> = [1, 3]
        .map(|n| {
            format!("a\0b{n}:{{\"epoch\":{n},\"diff\":1,\"a\":\"a\",\"b\":\"b{n}\",\"similarity\":0.5}}")
        })
        .into();
    assert_eq!(committed(broker, &first.topic), expected);
}

/// Two runs of an output without a mark. The second one has the id and nothing to write yet. The first one
/// ends, whether or not the broker has raised the epoch of the second one's producer meanwhile, as a run does
/// that takes the id while its successor starts.
fn a_successor_that_has_written_nothing(broker: &Broker) {
    for is_fenced in [false, true] {
        let first = output(broker);
        let second = next_run(&first);
        let (mut one, mut two) = (KafkaSink::new(first.clone(), None), KafkaSink::new(second.clone(), None));
        assert_eq!(one.take_over().unwrap(), Standing::New);
        assert_eq!(two.take_over().unwrap(), Standing::New);
        if is_fenced {
            drop(broker.transactional(&first.transactional_id));
        }
        let error = commit(&mut one, &first, 1).unwrap_err().to_string();
        assert!(error.contains("another run has taken over") && error.contains(&second.run), "{error}");
        commit(&mut two, &second, 1).unwrap();
        commit(&mut two, &second, 2).unwrap();
        assert_eq!(committed(broker, &first.topic).len(), 2);
    }
}

fn uncommitted_records_are_lost(broker: &Broker) {
    let output = output(broker);
    let mut sink = KafkaSink::new(output.clone(), None);
    sink.take_over().unwrap();
    commit(&mut sink, &output, 1).unwrap();
    // As after a kill during a transaction: the same id, records sent, no commit.
    let killed = broker.transactional(&output.transactional_id);
    killed.begin();
    killed.put(&output.topic, 0, Some("a\0x"), Some(b"never"));
    killed
        .0
        .send(
            BaseRecord::<str, [u8]>::to(&output.progress_topic)
                .key(&output.transactional_id)
                .payload(b"never"),
        )
        .unwrap();
    killed.0.flush(BOUND).unwrap();
    let next = next_run(&output);
    let mut successor = KafkaSink::new(next.clone(), None);
    assert_eq!(successor.take_over().unwrap(), Standing::At(Box::new(mark(&output, 1))));
    commit(&mut successor, &next, 2).unwrap();
    assert!(killed.0.commit_transaction(BOUND).is_err());
    assert_eq!(committed(broker, &output.topic).len(), 2);
}

/// The broker aborts a transaction that takes too long and raises the producer's epoch. The client learns it
/// only at its next call: the commit is not in the topic, and is written again. For the sink, another program
/// that takes the id and writes no mark looks the same.
fn a_transaction_that_times_out_is_written_again(broker: &Broker) {
    let output = output(broker);
    let mut sink = KafkaSink::new(output.clone(), None);
    sink.take_over().unwrap();
    commit(&mut sink, &output, 1).unwrap();
    for number in 2..5 {
        // Raises the epoch of the producer at the broker, as after a timeout.
        drop(broker.transactional(&output.transactional_id));
        commit(&mut sink, &output, number).unwrap();
    }
    assert_eq!(committed(broker, &output.topic).len(), 4);
    assert_eq!(sink.pairs().unwrap().len(), 4);
    let last = KafkaSink::new(next_run(&output), None).take_over().unwrap();
    assert_eq!(last, Standing::At(Box::new(mark(&output, 4))));
}

fn the_broker_restarts(broker: &Broker) {
    let output = KafkaOutput { timeout: Duration::from_secs(3), ..output(broker) };
    let mut sink = KafkaSink::new(output.clone(), None);
    sink.take_over().unwrap();
    commit(&mut sink, &output, 1).unwrap();
    if !broker.kill() {
        println!("SKIPPED sink::the_broker_restarts: it needs the broker of broker.sh");
        return;
    }
    // Commits begin while the broker is down. The first one takes longer than the timeout of its transaction.
    let sink = std::thread::scope(|scope| {
        let writing = scope.spawn({
            let output = &output;
            move || {
                (2..6).for_each(|number| commit(&mut sink, output, number).unwrap());
                sink
            }
        });
        let end = Instant::now() + Duration::from_secs(4);
        while Instant::now() < end && !writing.is_finished() {
            std::thread::park_timeout(end.saturating_duration_since(Instant::now()));
        }
        assert!(!writing.is_finished());
        broker.restart();
        writing.join().unwrap()
    });
    drop(sink);
    let found = committed(broker, &output.topic);
    assert_eq!(found.len(), 5, "{found:?}");
    let last = KafkaSink::new(next_run(&output), None).take_over().unwrap();
    assert_eq!(last, Standing::At(Box::new(mark(&output, 5))));
}

/// Several pipelines share a topic of marks: an open transaction of one does not hide the mark of another.
fn a_transaction_of_another_in_the_topic_of_marks(broker: &Broker) {
    let output = output(broker);
    let mut sink = KafkaSink::new(output.clone(), None);
    sink.take_over().unwrap();
    let other = broker.transactional(&Broker::name("other"));
    other.begin();
    other.put(&output.progress_topic, 0, Some("other"), Some(b"open"));
    other.0.flush(BOUND).unwrap();
    commit(&mut sink, &output, 1).unwrap();
    let next = next_run(&output);
    std::thread::scope(|scope| {
        let taking = scope.spawn(|| KafkaSink::new(next, None).take_over().unwrap());
        other.commit();
        assert_eq!(taking.join().unwrap(), Standing::At(Box::new(mark(&output, 1))));
    });
}

fn refused_outputs(broker: &Broker) {
    let refusal = |output: KafkaOutput| KafkaSink::new(output, None).take_over().unwrap_err().to_string();
    let two = broker.topic(2);
    let error = refusal(KafkaOutput { progress_topic: two.clone(), ..output(broker) });
    assert_eq!(error, format!("topic \"{two}\" has 2 partitions: the topic of marks must have one"));
    let error = refusal(KafkaOutput { topic: "no name!".to_owned(), ..output(broker) });
    assert!(error.contains("this is no name of a topic"), "{error}");
    if let Some(guest) = broker.guest("guest") {
        let error = refusal(KafkaOutput { connection: guest, ..output(broker) });
        assert!(error.contains("not allowed by the broker"), "{error}");
    }
    let error = refusal(KafkaOutput { timeout: Duration::from_secs(3600), ..output(broker) });
    assert!(error.contains("transaction.max.timeout.ms"), "{error}");
    // Values of another program among the deltas.
    let output = output(broker);
    let mut sink = KafkaSink::new(output.clone(), None);
    sink.take_over().unwrap();
    commit(&mut sink, &output, 1).unwrap();
    assert_eq!(sink.pairs().unwrap().len(), 1);
    broker.writer().texts(&output.topic, 0, &[("a", "something else")]);
    assert!(sink.pairs().unwrap_err().to_string().contains("is no delta: something else"));
}

fn many_deltas_in_one_commit(broker: &Broker) {
    let output = output(broker);
    let mut sink = KafkaSink::new(output.clone(), None);
    sink.take_over().unwrap();
    // More than the client's queue holds (100,000).
    let deltas: Vec<_> =
        (0..150_000).map(|n| Delta::by_block(pair("a", &format!("b{n:06}"), 0.5), 1)).collect();
    epoch(&mut sink, 1, &deltas);
    sink.commit(&mark(&output, 1)).unwrap();
    assert_eq!(sink.pairs().unwrap().len(), 150_000);
}
