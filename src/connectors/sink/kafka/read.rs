//! A topic, read to its end: what has been committed when the reading begins.
//!
//! The end of a partition is the offset after its last record of any kind, and committed records are seen
//! only up to the first transaction that is open. So the end is asked of a client that sees uncommitted
//! records too, and the partition is read once all before it is decided: an earlier answer of "the end" would
//! be that of an open transaction, maybe of another program.
//!
//! Where only the last record of a key is wanted, the reading begins at the end ([`last`]).

use std::io;
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::Offset;

use crate::broker::{Connection, Consumer, Failure, find, held, let_go};
use dupflow_core::time::{Clock, SystemClock};

/// How long a step waits before it looks again.
const STEP: Duration = Duration::from_millis(50);

/// How many offsets before its end a partition is looked through first for the last record of a key, and
/// how many times as many next.
const TAIL: u64 = 1024;
const GROWTH: u64 = 8;

/// Hands each committed record (key, value) of a topic to `each`, in order of offset within a partition.
///
/// # Errors
/// Those of the broker, and of `each`.
pub(super) fn topic(
    connection: &Connection,
    topic: &str,
    each: impl FnMut(Option<&[u8]>, Option<&[u8]>) -> io::Result<()>,
) -> io::Result<()> {
    topic_within(connection, topic, None, each)
}

/// The same, where transactions that are open are waited for no longer than this.
///
/// # Errors
/// Those of the broker, and of `each`; [`io::ErrorKind::WouldBlock`] if a transaction is still open.
pub(super) fn topic_within(
    connection: &Connection,
    topic: &str,
    bound: Option<Duration>,
    mut each: impl FnMut(Option<&[u8]>, Option<&[u8]>) -> io::Result<()>,
) -> io::Result<()> {
    let reading = Reading::new(connection, topic)?.within(bound);
    for partition in 0..reading.partitions()? {
        let (first, end) = reading.decided(partition)?;
        reading.partition(partition, first..end, &mut each)?;
    }
    Ok(())
}

/// The last committed value of a key in partition 0 of a topic, if there is one; it is empty where the
/// record has none. The partition is read from its end backwards, in growing pieces: so it takes about as
/// long as there are records behind the one that is found, however old the topic is.
///
/// # Errors
/// Those of the broker.
pub(super) fn last(connection: &Connection, topic: &str, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
    last_within(connection, topic, None, key)
}

/// The same, where transactions that are open are waited for no longer than this.
///
/// # Errors
/// Those of the broker; [`io::ErrorKind::WouldBlock`] if a transaction is still open.
pub(super) fn last_within(
    connection: &Connection,
    topic: &str,
    bound: Option<Duration>,
    key: &[u8],
) -> io::Result<Option<Vec<u8>>> {
    let reading = Reading::new(connection, topic)?.within(bound);
    if reading.partitions()? == 0 {
        return Ok(None);
    }
    let (first, mut end) = reading.decided(0)?;
    let mut length = TAIL;
    while first < end {
        let start = end.saturating_sub(length).max(first);
        let mut last = None;
        reading.partition(0, start..end, &mut |found, value| {
            if found == Some(key) {
                last = Some(value.unwrap_or_default().to_vec());
            }
            Ok(())
        })?;
        if last.is_some() {
            return Ok(last);
        }
        (end, length) = (start, length.saturating_mul(GROWTH));
    }
    Ok(None)
}

/// The offset after the last record of any kind in partition 0 of a topic; 0 if there is no such topic.
///
/// # Errors
/// Those of the broker.
pub(super) fn end(connection: &Connection, topic: &str) -> io::Result<u64> {
    let reading = Reading::new(connection, topic)?;
    if reading.partitions()? == 0 {
        return Ok(0);
    }
    held(reading.client(), topic, 0, connection.patience).map(|(_, end)| end).map_err(io::Error::other)
}

/// Hands each record (key, value) of partition 0 of a topic to `each`, from an offset on, whatever becomes
/// of its transaction; the offset at which that ends. Waits for no transaction.
///
/// # Errors
/// Those of the broker, and of `each`.
pub(super) fn since(
    connection: &Connection,
    topic: &str,
    offset: u64,
    mut each: impl FnMut(Option<&[u8]>, Option<&[u8]>) -> io::Result<()>,
) -> io::Result<u64> {
    let reading = Reading::new(connection, topic)?;
    if reading.partitions()? == 0 {
        return Ok(offset);
    }
    let (first, end) = held(reading.client(), topic, 0, connection.patience).map_err(io::Error::other)?;
    let offsets = offset.max(first)..end;
    if !offsets.is_empty() {
        let every = client(connection, &reading.what, "read_uncommitted")?;
        let read = partition(&every, topic, 0, offsets, &mut each);
        let_go(every);
        read?;
    }
    Ok(end)
}

/// Reads partitions of a topic.
struct Reading<'a> {
    connection: &'a Connection,
    topic: &'a str,
    what: String,
    /// How long open transactions are waited for; without end if there is none.
    bound: Option<Duration>,
    /// Sees records of open transactions too; it reads none. There until it is dropped.
    all: Option<Consumer>,
}

impl<'a> Reading<'a> {
    fn new(connection: &'a Connection, topic: &'a str) -> io::Result<Self> {
        let what = format!("topic \"{topic}\"");
        let all = client(connection, &what, "read_uncommitted")?;
        Ok(Self { connection, topic, what, bound: None, all: Some(all) })
    }

    fn within(mut self, bound: Option<Duration>) -> Self {
        self.bound = bound;
        self
    }

    fn client(&self) -> &Consumer {
        self.all.as_ref().expect("it is there until it is dropped")
    }

    /// How many partitions the topic has; 0 if there is no such topic.
    fn partitions(&self) -> io::Result<u32> {
        let found = find(self.client(), self.topic, self.connection.patience).map_err(io::Error::other)?;
        Ok(found.map_or(0, |found| found.partitions))
    }

    /// The first offset of a partition and the one after its last record, once every transaction before it
    /// has ended.
    fn decided(&self, partition: u32) -> io::Result<(u64, u64)> {
        let (first, end) =
            held(self.client(), self.topic, partition, self.connection.patience).map_err(io::Error::other)?;
        if first < end {
            let committed = client(self.connection, &self.what, "read_committed")?;
            let waited =
                decided(&committed, self.topic, partition, end, self.connection.patience, self.bound);
            let_go(committed);
            waited?;
        }
        Ok((first, end))
    }

    /// Hands over what a partition holds of these offsets, all of them decided. By a client of its own: one
    /// that has read before may still report the end that it reached then.
    fn partition(
        &self,
        partition: u32,
        offsets: std::ops::Range<u64>,
        each: &mut impl FnMut(Option<&[u8]>, Option<&[u8]>) -> io::Result<()>,
    ) -> io::Result<()> {
        if offsets.is_empty() {
            return Ok(());
        }
        let committed = client(self.connection, &self.what, "read_committed")?;
        let read = self::partition(&committed, self.topic, partition, offsets, each);
        let_go(committed);
        read
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.all.take() {
            let_go(client);
        }
    }
}

fn client(connection: &Connection, what: &str, isolation: &str) -> io::Result<Consumer> {
    let own = [
        ("group.id", "dupflow-read"),
        ("enable.auto.commit", "false"),
        ("auto.offset.reset", "error"),
        ("enable.partition.eof", "true"),
        ("fetch.wait.max.ms", "50"),
        ("isolation.level", isolation),
    ];
    connection.consumer(what, &own).map_err(io::Error::other)
}

/// Waits until every transaction that has records before this offset has been committed or aborted; no longer
/// than this, if there is a bound.
fn decided(
    client: &Consumer,
    topic: &str,
    partition: u32,
    end: u64,
    patience: Duration,
    bound: Option<Duration>,
) -> io::Result<()> {
    let clock = SystemClock::start();
    loop {
        let (_, stable) = held(client, topic, partition, patience).map_err(io::Error::other)?;
        if stable >= end {
            return Ok(());
        }
        let open = format!("topic \"{topic}\": waits for a transaction that is open at offset {stable}");
        if bound.is_some_and(|bound| clock.now() >= bound) {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, open));
        }
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
