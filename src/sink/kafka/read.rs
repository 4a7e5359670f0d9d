//! A topic, read to its end: what has been committed when the reading begins.
//!
//! The end of a partition is the offset after its last record of any kind, and committed records are seen only up to the first
//! transaction that is open. So the end is asked of a client that sees uncommitted records too, and the partition is read once all
//! before it is decided: an earlier answer of "the end" would be that of an open transaction, maybe of another program.

use std::io;
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::Offset;

use crate::broker::{Connection, Consumer, Failure, find, held, let_go};

/// How long a step waits before it looks again.
const STEP: Duration = Duration::from_millis(50);

/// Hands each committed record (key, value) of a topic to `each`, in order of offset within a partition.
///
/// # Errors
/// Those of the broker, and of `each`.
pub(super) fn topic(
    connection: &Connection,
    topic: &str,
    mut each: impl FnMut(Option<&[u8]>, Option<&[u8]>) -> io::Result<()>,
) -> io::Result<()> {
    let what = format!("topic \"{topic}\"");
    let client = |isolation| {
        let own = [
            ("group.id", "dupflow-read"),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "error"),
            ("enable.partition.eof", "true"),
            ("fetch.wait.max.ms", "50"),
            ("isolation.level", isolation),
        ];
        connection.consumer(&what, &own).map_err(io::Error::other)
    };
    let (all, committed) = (client("read_uncommitted")?, client("read_committed")?);
    let read = || {
        let found = find(&all, topic, connection.patience).map_err(io::Error::other)?;
        for partition in 0..found.map_or(0, |found| found.partitions) {
            let (first, end) = held(&all, topic, partition, connection.patience).map_err(io::Error::other)?;
            if first < end {
                decided(&committed, topic, partition, end, connection.patience)?;
                self::partition(&committed, topic, partition, first..end, &mut each)?;
            }
        }
        Ok(())
    };
    let done = { read }();
    let_go((all, committed));
    done
}

/// Waits until every transaction that has records before this offset has been committed or aborted.
fn decided(client: &Consumer, topic: &str, partition: u32, end: u64, patience: Duration) -> io::Result<()> {
    loop {
        let (_, stable) = held(client, topic, partition, patience).map_err(io::Error::other)?;
        if stable >= end {
            return Ok(());
        }
        let open = format!("topic \"{topic}\": waits for a transaction that is open at offset {stable}");
        client.context().retries(&Failure::Retriable(open));
        drop(client.poll(STEP));
    }
}

/// Hands over what a partition holds of these offsets.
fn partition(
    client: &Consumer,
    topic: &str,
    partition: u32,
    offsets: std::ops::Range<u64>,
    each: &mut impl FnMut(Option<&[u8]>, Option<&[u8]>) -> io::Result<()>,
) -> io::Result<()> {
    let what = format!("topic \"{topic}\"");
    let failed = |error: KafkaError| io::Error::other(Failure::of(&error, &what));
    let mut list = TopicPartitionList::new();
    let number = i32::try_from(partition).unwrap_or(i32::MAX);
    let first = Offset::Offset(offsets.start.cast_signed());
    list.add_partition_offset(topic, number, first).map_err(failed)?;
    client.assign(&list).map_err(failed)?;
    loop {
        match client.poll(STEP) {
            Some(Ok(message)) if message.partition() == number => {
                let offset = u64::try_from(message.offset()).unwrap_or_default();
                if offset >= offsets.end {
                    return Ok(());
                }
                each(message.key(), message.payload())?;
                if offset + 1 == offsets.end {
                    return Ok(());
                }
            }
            // All before the end is decided: an end that is reached now is there, or behind it.
            Some(Err(KafkaError::PartitionEOF(ended))) if ended == number => return Ok(()),
            Some(Err(error)) => {
                let failure = Failure::of(&error, &what);
                if !failure.is_retriable() {
                    return Err(io::Error::other(failure));
                }
            }
            Some(Ok(_)) | None => {}
        }
    }
}
