//! A topic as source.

use std::sync::Arc;

use dupflow::connectors::credential::Credential;
use dupflow::connectors::formats::{RecordShape, ValueFormat};
use dupflow::connectors::intake::{CatchUpLine, EpochLimits, QueueRoom, Source as _};
use dupflow::connectors::kafka::Start;
use dupflow::core::time::Offsets;

use crate::Test;
use crate::broker::Broker;
use crate::read::{ROOM, Reading, kafka};

pub(crate) const TESTS: &[Test] = &[
    ("source::starts", starts),
    ("source::order_and_positions", order_and_positions),
    ("source::shares", shares),
    ("source::aborted_records_are_not_seen", aborted_records_are_not_seen),
    ("source::an_open_transaction_is_waited_for", an_open_transaction_is_waited_for),
    ("source::lines", lines),
    ("source::a_line_after_invisible_records", a_line_after_invisible_records),
    ("source::a_full_queue_loses_nothing", a_full_queue_loses_nothing),
    ("source::epochs_are_cut_by_records", epochs_are_cut_by_records),
    ("source::gaps_end_the_run", gaps_end_the_run),
    ("source::a_deleted_topic_ends_the_run", a_deleted_topic_ends_the_run),
    ("source::a_topic_created_again_is_refused", a_topic_created_again_is_refused),
    ("source::new_partitions", new_partitions),
    ("source::one_in_ten_is_bad", one_in_ten_is_bad),
    ("source::large_documents", large_documents),
    ("source::headers_and_times", headers_and_times),
    ("source::refused_by_the_broker", refused_by_the_broker),
    ("source::no_broker", no_broker),
    ("source::the_broker_restarts", the_broker_restarts),
];

fn offsets(of: &[(u32, u64)]) -> Offsets {
    of.iter().copied().collect()
}

fn starts(broker: &Broker) {
    let topic = broker.topic(2);
    let writer = broker.writer();
    for (offset, ms) in [(0, 1_000), (1, 2_000), (2, 3_000)] {
        writer.put_with(&topic, 0, Some(&format!("k{offset}")), Some(b"t"), Some(ms), &[]);
    }
    writer.flush();
    broker.admin().truncate(&topic, 0, 1).unwrap();
    let begin = |start| kafka(broker, &topic, start).begin(None).unwrap();
    assert_eq!(begin(Start::Earliest), offsets(&[(0, 1), (1, 0)]));
    assert_eq!(begin(Start::Latest), offsets(&[(0, 3), (1, 0)]));
    assert_eq!(begin(Start::Timestamp(2_500)), offsets(&[(0, 2), (1, 0)]));
    assert_eq!(begin(Start::Timestamp(9_000)), offsets(&[(0, 3), (1, 0)]));
    assert_eq!(begin(Start::Offsets(offsets(&[(0, 2)]))), offsets(&[(0, 2), (1, 0)]));
    // A remembered position has priority over the configured start.
    let from = |from: &[(u32, u64)]| kafka(broker, &topic, Start::Latest).begin(Some(&offsets(from)));
    assert_eq!(from(&[(0, 3)]).unwrap(), offsets(&[(0, 3), (1, 0)]));
    let lost = from(&[(0, 0)]).unwrap_err().to_string();
    assert!(
        lost.contains(
            "from offset 0 on, and holds 1 to 3 (exclusive): records have expired before they were read; \
             with --reconcile"
        ),
        "{lost}"
    );
    assert!(from(&[(0, 4)]).unwrap_err().to_string().contains("recreated"));
    assert!(from(&[(2, 0)]).unwrap_err().to_string().contains("partition 2"));
    let nowhere = kafka(broker, "no-such-topic", Start::Earliest).begin(None).unwrap_err().to_string();
    let said = "no-such-topic: topic \"no-such-topic\": there is no such topic, and it is to be read: ";
    assert!(nowhere.starts_with(said) && nowhere.contains("--create --topic no-such-topic"), "{nowhere}");
    let mut reading = Reading::from_start(kafka(broker, &topic, Start::Timestamp(2_500)));
    reading.events(1);
    assert_eq!((reading.events_read(), reading.times.clone()), (vec!["k2:t".to_owned()], vec![Some(3.0)]));
    reading.stop().unwrap();
}

fn order_and_positions(broker: &Broker) {
    let topic = broker.topic(3);
    let writer = broker.writer();
    for n in 0..1000_u32 {
        writer.put(&topic, n % 3, Some(&format!("k{n}")), Some(format!("text {n}").as_bytes()));
    }
    writer.put(&topic, 0, Some("k0"), None);
    writer.flush();
    let mut reading = Reading::from_start(kafka(broker, &topic, Start::Earliest));
    reading.events(1001);
    for partition in 0..3 {
        let of: Vec<_> = reading.seen.iter().filter(|seen| seen.1 == partition).collect();
        assert!(of.iter().zip(0..).all(|(seen, offset)| seen.2 == offset), "partition {partition}");
    }
    assert_eq!(reading.next, offsets(&[(0, 335), (1, 333), (2, 333)]));
    let last = reading.seen.iter().rfind(|seen| seen.3 == "k0").unwrap();
    assert_eq!((last.2, &last.4), (334, &None));
    // A record written now is read immediately.
    writer.texts(&topic, 1, &[("new", "text")]);
    reading.events(1002);
    reading.stop().unwrap();
}

fn shares(broker: &Broker) {
    let topic = broker.topic(5);
    let writer = broker.writer();
    (0..5).for_each(|partition| writer.texts(&topic, partition, &[("k", "t")]));
    for (index, expected) in [(0, vec![0, 3]), (1, vec![1, 4]), (2, vec![2])] {
        let mut share = kafka(broker, &topic, Start::Earliest);
        share.share = (index, 3);
        let mut reading = Reading::from_start(share);
        assert_eq!(reading.begin.len(), 5, "one process finds the beginning for all");
        reading.events(expected.len());
        let mut of: Vec<_> = reading.seen.iter().map(|seen| seen.1).collect();
        of.sort_unstable();
        assert_eq!(of, expected);
        reading.stop().unwrap();
    }
}

fn aborted_records_are_not_seen(broker: &Broker) {
    let topic = broker.topic(1);
    let writer = broker.transactional(&Broker::name("writer"));
    for (text, commits) in [("one", true), ("never", false), ("two", true), ("never", false)] {
        writer.begin();
        writer.put(&topic, 0, Some("k"), Some(text.as_bytes()));
        if commits { writer.commit() } else { writer.abort() }
    }
    let mut reading = Reading::from_start(kafka(broker, &topic, Start::Earliest));
    // Records and transaction markers: eight offsets. The position reaches the end of them.
    reading.until("the end", |reading| reading.next.get(&0) == Some(&8));
    assert_eq!(reading.events_read(), ["k:one", "k:two"]);
    assert_eq!(reading.seen.iter().map(|seen| seen.2).collect::<Vec<_>>(), [0, 4]);
    reading.stop().unwrap();
}

fn an_open_transaction_is_waited_for(broker: &Broker) {
    let topic = broker.topic(1);
    let writer = broker.transactional(&Broker::name("writer"));
    writer.begin();
    writer.put(&topic, 0, Some("a"), Some(b"open"));
    writer.0.flush(crate::broker::BOUND).unwrap();
    broker.writer().texts(&topic, 0, &[("b", "behind")]);
    let mut reading = Reading::from_start(kafka(broker, &topic, Start::Earliest));
    reading.until("a batch without records", |reading| reading.next.get(&0) == Some(&0));
    assert_eq!(reading.events_read(), [""; 0]);
    writer.commit();
    reading.events(2);
    assert_eq!(reading.events_read(), ["a:open", "b:behind"]);
    reading.stop().unwrap();
}

use rdkafka::producer::Producer as _;

fn lines(broker: &Broker) {
    let topic = broker.topic(2);
    let writer = broker.writer();
    for n in 0..10 {
        writer.texts(&topic, 0, &[(&format!("a{n}"), "t")]);
        writer.texts(&topic, 1, &[(&format!("b{n}"), "t")]);
    }
    let ahead = vec![
        CatchUpLine::Restored,
        CatchUpLine::Offsets(offsets(&[(0, 3), (1, 0)])),
        CatchUpLine::Offsets(offsets(&[(0, 3), (1, 7)])),
    ];
    let mut reading = Reading::start(kafka(broker, &topic, Start::Earliest), None, ahead, ROOM);
    assert_eq!(reading.live.get(), None);
    reading.queue.restored();
    reading.events(20);
    let live = reading.live.get().unwrap();
    let epochs = |partition| {
        reading.seen.iter().filter(|seen| seen.1 == partition).map(|seen| seen.0).collect::<Vec<_>>()
    };
    let (a, b) = (epochs(0), epochs(1));
    assert!(
        a[..3].iter().all(|epoch| *epoch < live) && a[3..].iter().all(|epoch| *epoch >= live),
        "{a:?} {live}"
    );
    assert!(
        b[..7].iter().all(|epoch| *epoch < live) && b[7..].iter().all(|epoch| *epoch >= live),
        "{b:?} {live}"
    );
    assert!(a[2] < b[0], "no event after the first line is read before all events up to it");
    reading.stop().unwrap();
}

fn a_line_after_invisible_records(broker: &Broker) {
    let topic = broker.topic(2);
    let writer = broker.transactional(&Broker::name("writer"));
    writer.begin();
    writer.put(&topic, 0, Some("k"), Some(b"one"));
    writer.commit();
    writer.begin();
    writer.put(&topic, 0, Some("k"), Some(b"never"));
    writer.abort();
    // An earlier run has read to the end: between its last event and the line there are only transaction
    // markers and an aborted record. No record follows, and the run becomes live.
    let ahead = vec![CatchUpLine::Offsets(offsets(&[(0, 4), (1, 0)]))];
    let mut reading = Reading::start(kafka(broker, &topic, Start::Earliest), None, ahead.clone(), ROOM);
    // The reader reaches the line when it pushes a batch, possibly before the test takes it.
    reading.until("the line", |reading| reading.live.get().is_some() && !reading.seen.is_empty());
    assert_eq!(reading.events_read(), ["k:one"]);
    reading.stop().unwrap();
    // And with nothing before the line.
    let from = offsets(&[(0, 4), (1, 0)]);
    let mut reading = Reading::start(kafka(broker, &topic, Start::Earliest), Some(&from), ahead, ROOM);
    reading.until("the line", |reading| reading.live.get().is_some());
    reading.stop().unwrap();
}

fn a_full_queue_loses_nothing(broker: &Broker) {
    let topic = broker.topic(2);
    let writer = broker.writer();
    let text = "x".repeat(3000);
    for n in 0..3000_u32 {
        writer.put(&topic, n % 2, Some(&format!("k{n}")), Some(text.as_bytes()));
    }
    writer.flush();
    let room = QueueRoom { bytes: 1, batches: 1 };
    let mut reading = Reading::start(kafka(broker, &topic, Start::Earliest), None, Vec::new(), room);
    reading.events(3000);
    assert_eq!(reading.next, offsets(&[(0, 1500), (1, 1500)]));
    reading.stop().unwrap();
}

fn epochs_are_cut_by_records(broker: &Broker) {
    let topic = broker.topic(1);
    let writer = broker.writer();
    (0..600).for_each(|n| writer.put(&topic, 0, Some(&format!("k{n}")), Some(b"t")));
    writer.flush();
    let mut source = kafka(broker, &topic, Start::Earliest);
    source.limits = EpochLimits { records: Some(100), ..EpochLimits::default() };
    let mut reading = Reading::from_start(source);
    reading.events(600);
    assert!(reading.seen.last().unwrap().0 >= 4, "a batch of up to 128 records is not split");
    reading.stop().unwrap();
}

fn gaps_end_the_run(broker: &Broker) {
    let topic = broker.topic(1);
    let writer = broker.writer();
    (0..5).for_each(|n| writer.texts(&topic, 0, &[(&format!("k{n}"), "t")]));
    let mut source = kafka(broker, &topic, Start::Earliest);
    let begin = source.begin(None).unwrap();
    // The records expire between the start and the first fetch.
    broker.admin().truncate(&topic, 0, 3).unwrap();
    let mut readers = Box::new(source).readers(&begin);
    let queue = dupflow::connectors::intake::Queue::new(1, 1, ROOM, EpochLimits::default());
    let bad = dupflow::connectors::intake::BadRecords::default();
    let error =
        readers[0].read(&queue, &bad, &dupflow::core::time::SystemClock::start()).unwrap_err().to_string();
    assert!(
        error.contains("from offset 0 on, and holds 3 to 5 (exclusive): records have expired"),
        "{error}"
    );
}

fn a_deleted_topic_ends_the_run(broker: &Broker) {
    let topic = broker.topic(1);
    broker.writer().texts(&topic, 0, &[("k", "t")]);
    let mut kafka = kafka(broker, &topic, Start::Earliest);
    // How long the client waits for a topic unknown to the broker.
    let propagation = ("topic.metadata.propagation.max.ms".to_owned(), Credential::new("1000"));
    kafka.connection.settings.extend([propagation]);
    let mut reading = Reading::from_start(kafka);
    reading.events(1);
    broker.admin().remove(&topic).unwrap();
    let error = reading.error();
    assert!(error.contains("there is no such topic") && error.contains("; it was there before"), "{error}");
}

fn a_topic_created_again_is_refused(broker: &Broker) {
    let topic = broker.topic(1);
    let writer = broker.writer();
    (0..5).for_each(|n| writer.texts(&topic, 0, &[(&format!("k{n}"), "t")]));
    let admin = broker.admin();
    admin.remove(&topic).unwrap();
    let end = std::time::Instant::now() + crate::broker::BOUND;
    while admin.find(&topic).unwrap().is_some() {
        assert!(std::time::Instant::now() < end);
    }
    broker.make(&topic, 1);
    broker.writer().texts(&topic, 0, &[("k0", "other")]);
    let error =
        kafka(broker, &topic, Start::Earliest).begin(Some(&offsets(&[(0, 5)]))).unwrap_err().to_string();
    assert!(error.contains("holds 0 to 1 (exclusive): the topic has been recreated"), "{error}");
}

fn new_partitions(broker: &Broker) {
    let topic = broker.topic(1);
    let writer = broker.writer();
    writer.texts(&topic, 0, &[("a", "t")]);
    let mut reading = Reading::from_start(kafka(broker, &topic, Start::Latest));
    reading.until("a position", |reading| reading.next.contains_key(&0));
    broker.grow(&topic, 3);
    // Also records written before the partition is found: it is read from its first record, whatever `start`
    // is.
    let late = broker.writer();
    late.texts(&topic, 2, &[("c", "t")]);
    late.texts(&topic, 1, &[("b", "t")]);
    reading.until("three partitions", |reading| reading.seen.len() == 2 && reading.next.len() == 3);
    let mut events = reading.events_read();
    events.sort();
    assert_eq!(events, ["b:t", "c:t"]);
    reading.stop().unwrap();
}

fn one_in_ten_is_bad(broker: &Broker) {
    let topic = broker.topic(2);
    let writer = broker.writer();
    for n in 0..500_u32 {
        let key = format!("k{n}");
        match n % 50 {
            0 => writer.put(&topic, 0, None, Some(br#"{"text":"no key"}"#)),
            10 => writer.put(&topic, 0, Some(&key), Some(b"{not json")),
            20 => writer.put(&topic, 0, Some(&key), Some(b"null")),
            30 => writer.put(&topic, 0, Some(&key), Some(b"\xff\xfe")),
            40 => writer.put(&topic, 0, Some(&"k".repeat(1025)), Some(br#"{"text":"t"}"#)),
            _ => writer.put(&topic, n % 2, Some(&key), Some(format!(r#"{{"text":"t{n}"}}"#).as_bytes())),
        }
    }
    writer.flush();
    let mut source = kafka(broker, &topic, Start::Earliest);
    source.shape = Arc::new(RecordShape { format: ValueFormat::Json, ..RecordShape::default() });
    let mut reading = Reading::from_start(source);
    reading.until("the end", |reading| reading.next.values().sum::<u64>() == 500);
    assert_eq!(reading.seen.len(), 450);
    let counts =
        [("bad_id", 10), ("missing_id", 10), ("not_an_object", 10), ("not_json", 10), ("not_utf8", 10)];
    assert_eq!(reading.bad.counts(), counts.into());
    reading.stop().unwrap();
}

fn large_documents(broker: &Broker) {
    let topic = broker.topic(1);
    let mut connection = broker.connection();
    connection
        .settings
        .insert("message.max.bytes".to_owned(), dupflow::connectors::credential::Credential::new("10000000"));
    let writer = crate::broker::Writer(connection.producer("writer", &[]).unwrap());
    let text = "文書 ".repeat(5_000_000 / 7);
    for key in ["a", "b", "c"] {
        writer.put(&topic, 0, Some(key), Some(text.as_bytes()));
        writer.put(&topic, 0, Some("small"), Some(b"t"));
    }
    writer.0.flush(crate::broker::BOUND).unwrap();
    if let Some(refused) = writer.0.context().undelivered() {
        println!("SKIPPED source::large_documents: {refused}");
        return;
    }
    let mut reading = Reading::from_start(kafka(broker, &topic, Start::Earliest));
    reading.events(6);
    assert!(reading.seen.iter().step_by(2).all(|seen| seen.4.as_deref() == Some(&text)));
    reading.stop().unwrap();
}

fn headers_and_times(broker: &Broker) {
    let topic = broker.topic(1);
    let writer = broker.writer();
    let headers = [("title", "見出し"), ("other", "no"), ("title", "last")];
    writer.put_with(&topic, 0, Some("a"), Some(b"text"), Some(1_700_000_000_500), &headers);
    writer.put_with(&topic, 0, Some("b"), Some(b"text"), Some(1), &[]);
    writer.flush();
    let mut source = kafka(broker, &topic, Start::Earliest);
    source.shape = Arc::new(RecordShape { headers: vec!["title".to_owned()], ..RecordShape::default() });
    let mut reading = Reading::from_start(source);
    reading.fields = vec!["title".to_owned()];
    reading.events(2);
    assert_eq!(reading.events_read(), ["a:text\u{1e}last", "b:text"]);
    assert_eq!(reading.times, [Some(1_700_000_000.5), Some(0.001)]);
    reading.stop().unwrap();
}

fn refused_by_the_broker(broker: &Broker) {
    let topic = broker.topic(1);
    let (Some(guest), Some(stranger)) = (broker.guest("guest"), broker.guest("wrong")) else {
        println!("SKIPPED source::refused_by_the_broker: it needs the broker of broker.sh");
        return;
    };
    let begin = |connection| {
        let mut source = kafka(broker, &topic, Start::Earliest);
        source.connection = connection;
        source.begin(None).unwrap_err().to_string()
    };
    let denied = begin(guest);
    assert!(denied.contains(&format!("topic \"{topic}\": not allowed by the broker")), "{denied}");
    let unknown = begin(stranger);
    assert!(unknown.contains("does not accept who we are") && !unknown.contains("wrong"), "{unknown}");
}

fn no_broker(broker: &Broker) {
    let mut source = kafka(broker, "topic", Start::Earliest);
    source.connection.brokers = "127.0.0.1:1".to_owned();
    source.connection.patience = std::time::Duration::from_secs(1);
    let error = source.begin(None).unwrap_err().to_string();
    assert!(error.contains("no answer within 1 s") && error.contains("127.0.0.1:1"), "{error}");
}

fn the_broker_restarts(broker: &Broker) {
    let topic = broker.topic(2);
    broker.writer().texts(&topic, 0, &[("a", "t")]);
    let mut reading = Reading::from_start(kafka(broker, &topic, Start::Earliest));
    reading.events(1);
    if !broker.kill() {
        println!("SKIPPED source::the_broker_restarts: it needs the broker of broker.sh");
        return;
    }
    broker.restart();
    broker.writer().texts(&topic, 1, &[("b", "t")]);
    broker.writer().texts(&topic, 0, &[("c", "t")]);
    reading.events(3);
    let mut events = reading.events_read();
    events.sort();
    assert_eq!(events, ["a:t", "b:t", "c:t"]);
    reading.stop().unwrap();
}
