//! What readers of a topic see: its committed records.

use std::collections::BTreeMap;
use std::time::Duration;

use dupflow::core::doc::Position;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{Message as _, Offset, TopicPartitionList};

use crate::broker::{BOUND, Broker};

/// A committed record.
pub(crate) struct Committed {
    pub(crate) position: Position,
    pub(crate) key: String,
    pub(crate) value: Option<String>,
    /// Unix seconds.
    pub(crate) ts: Option<f64>,
}

/// All committed records of a topic, partition by partition, in order; none if there is no such topic.
pub(crate) fn committed(broker: &Broker, topic: &str) -> Vec<Committed> {
    let settings = [
        ("group.id", "exactly-once"),
        ("isolation.level", "read_committed"),
        ("enable.auto.commit", "false"),
        ("enable.partition.eof", "true"),
        // The end of a partition is waited for.
        ("fetch.wait.max.ms", "10"),
    ];
    let client = broker.connection().consumer("reader", &settings).unwrap();
    let metadata = client.fetch_metadata(Some(topic), BOUND).unwrap();
    let partitions = metadata.topics().first().map_or(0, |found| found.partitions().len());
    let mut records = Vec::new();
    for partition in 0..i32::try_from(partitions).unwrap() {
        let mut one = TopicPartitionList::new();
        one.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
        client.assign(&one).unwrap();
        loop {
            match client.poll(BOUND) {
                Some(Ok(record)) => {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let position = Position {
                        partition: u32::try_from(partition).unwrap(),
                        offset: u64::try_from(record.offset()).unwrap(),
                    };
                    let millis = record.timestamp().to_millis();
                    let ts = millis.map(|millis| Duration::from_millis(millis.cast_unsigned()).as_secs_f64());
                    let (key, value) =
                        (record.key().map(text).unwrap_or_default(), record.payload().map(text));
                    records.push(Committed { position, key, value, ts });
                }
                Some(Err(rdkafka::error::KafkaError::PartitionEOF(at))) if at == partition => break,
                Some(Err(error)) => println!("reading {topic}: {error}"),
                None => panic!("{topic} cannot be read"),
            }
        }
    }
    records
}

/// The offset after the last record of each partition of a topic.
pub(crate) fn ends(broker: &Broker, topic: &str) -> BTreeMap<String, u64> {
    let client: BaseConsumer<_> =
        broker.connection().consumer("reader", &[("group.id", "exactly-once")]).unwrap();
    let end = |partition| {
        let (_, high) = client.fetch_watermarks(topic, partition, BOUND).unwrap();
        (partition.to_string(), u64::try_from(high).unwrap())
    };
    let metadata = client.fetch_metadata(Some(topic), BOUND).unwrap();
    let partitions = metadata.topics().first().map_or(0, |found| found.partitions().len());
    (0..i32::try_from(partitions).unwrap()).map(end).collect()
}
