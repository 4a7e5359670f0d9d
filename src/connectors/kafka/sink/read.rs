//! Reading a topic to its end: the records committed when the read begins.
//!
//! The end of a partition is the offset after its last record of any kind. A consumer of committed records
//! sees only those before the first open transaction. So the end is read by a consumer of uncommitted
//! records, and the partition is read once every transaction before that end has been committed or aborted.
//! Otherwise an open transaction, perhaps of another program, would hide the records after it.
//!
//! Where only the last record of a key is needed, the read begins at the end ([`last`]).

use std::io;
use std::time::Duration;

use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;

use crate::kafka::broker::{
    Connection, Consumer, KafkaFailure, close_in_background, find_topic, index, is_of_group, offset_range,
    partitions_at,
};
use dupflow_core::time::{Clock, SystemClock};

/// How long one poll lasts.
const STEP: Duration = Duration::from_millis(50);

/// [`last`] first reads this many offsets before the end of the partition, and then each time `GROWTH` times
/// as many.
const TAIL: u64 = 1024;
const GROWTH: u64 = 8;

/// Calls `each` with each committed record (key, value) of a topic, in order of offset within a partition.
///
/// # Errors
/// Any error of the broker or of `each`.
pub(super) fn topic(
    connection: &Connection,
    topic: &str,
    each: impl FnMut(Option<&[u8]>, Option<&[u8]>) -> io::Result<()>,
) -> io::Result<()> {
    topic_within(connection, topic, None, each)
}

/// As [`topic`], but waits for open transactions no longer than `bound`.
///
/// # Errors
/// Any error of the broker or of `each`; [`io::ErrorKind::WouldBlock`] if a transaction is still open.
pub(super) fn topic_within(
    connection: &Connection,
    topic: &str,
    bound: Option<Duration>,
    mut each: impl FnMut(Option<&[u8]>, Option<&[u8]>) -> io::Result<()>,
) -> io::Result<()> {
    let reading = TopicReader::new(connection, topic)?.within(bound);
    for partition in 0..reading.partitions()? {
        let (first, end) = reading.settled_range(partition)?;
        reading.partition(partition, first..end, &mut each)?;
    }
    Ok(())
}

/// The last committed value of a key in partition 0 of a topic, if there is one; empty for a tombstone. Reads
/// the partition backwards from its end, in growing pieces: the time depends on the number of later records,
/// not on the length of the topic.
///
/// # Errors
/// Any error of the broker.
pub(super) fn last(connection: &Connection, topic: &str, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
    last_within(connection, topic, None, key)
}

/// As [`last`], but waits for open transactions no longer than `bound`.
///
/// # Errors
/// Any error of the broker; [`io::ErrorKind::WouldBlock`] if a transaction is still open.
pub(super) fn last_within(
    connection: &Connection,
    topic: &str,
    bound: Option<Duration>,
    key: &[u8],
) -> io::Result<Option<Vec<u8>>> {
    let reading = TopicReader::new(connection, topic)?.within(bound);
    if reading.partitions()? == 0 {
        return Ok(None);
    }
    let (first, mut end) = reading.settled_range(0)?;
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
/// Any error of the broker.
pub(super) fn end(connection: &Connection, topic: &str) -> io::Result<u64> {
    let reading = TopicReader::new(connection, topic)?;
    if reading.partitions()? == 0 {
        return Ok(0);
    }
    offset_range(reading.client(), topic, 0, connection.patience)
        .map(|(_, end)| end)
        .map_err(io::Error::other)
}

/// Calls `each` with each record (key, value) of partition 0 of a topic from `offset` on, also of open and
/// aborted transactions. Returns the offset after the last one. Waits for no transaction.
///
/// # Errors
/// Any error of the broker or of `each`.
pub(super) fn since(
    connection: &Connection,
    topic: &str,
    offset: u64,
    mut each: impl FnMut(Option<&[u8]>, Option<&[u8]>) -> io::Result<()>,
) -> io::Result<u64> {
    let reading = TopicReader::new(connection, topic)?;
    if reading.partitions()? == 0 {
        return Ok(offset);
    }
    let (first, end) =
        offset_range(reading.client(), topic, 0, connection.patience).map_err(io::Error::other)?;
    let offsets = offset.max(first)..end;
    if !offsets.is_empty() {
        let every = client(connection, &reading.what, "read_uncommitted")?;
        let read = partition(&every, topic, 0, offsets, &mut each);
        close_in_background(every);
        read?;
    }
    Ok(end)
}

/// Reads partitions of a topic.
struct TopicReader<'a> {
    connection: &'a Connection,
    topic: &'a str,
    what: String,
    /// How long open transactions are waited for; `None` = without limit.
    bound: Option<Duration>,
    /// Sees uncommitted records, but reads none: it is used for offsets. Present until drop.
    all: Option<Consumer>,
}

impl<'a> TopicReader<'a> {
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
        self.all.as_ref().expect("present until drop")
    }

    /// Number of partitions; 0 if there is no such topic.
    fn partitions(&self) -> io::Result<u32> {
        let found =
            find_topic(self.client(), self.topic, self.connection.patience).map_err(io::Error::other)?;
        Ok(found.map_or(0, |found| found.partitions))
    }

    /// The first offset of a partition and the offset after its last record. Returns once every transaction
    /// before that has ended.
    fn settled_range(&self, partition: u32) -> io::Result<(u64, u64)> {
        let (first, end) = offset_range(self.client(), self.topic, partition, self.connection.patience)
            .map_err(io::Error::other)?;
        if first < end {
            let committed = client(self.connection, &self.what, "read_committed")?;
            let waited = wait_until_settled(
                &committed,
                self.topic,
                partition,
                end,
                self.connection.patience,
                self.bound,
            );
            close_in_background(committed);
            waited?;
        }
        Ok((first, end))
    }

    /// Calls `each` with the records of a partition in `offsets`, in which no transaction may be open. Uses a
    /// new consumer: one that has read before may still report the end that it reached then.
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
        close_in_background(committed);
        read
    }
}

impl Drop for TopicReader<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.all.take() {
            close_in_background(client);
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

/// Waits until every transaction with records before `end` has been committed or aborted; no longer than
/// `bound`.
fn wait_until_settled(
    client: &Consumer,
    topic: &str,
    partition: u32,
    end: u64,
    patience: Duration,
    bound: Option<Duration>,
) -> io::Result<()> {
    let clock = SystemClock::start();
    loop {
        let (_, stable) = offset_range(client, topic, partition, patience).map_err(io::Error::other)?;
        if stable >= end {
            return Ok(());
        }
        let open = format!("topic \"{topic}\": waits for a transaction that is open at offset {stable}");
        if bound.is_some_and(|bound| clock.now() >= bound) {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, open));
        }
        client.context().retries(&KafkaFailure::Retriable(open));
        drop(client.poll(STEP));
    }
}

/// Calls `each` with the records of a partition in `offsets`.
fn partition(
    client: &Consumer,
    topic: &str,
    partition: u32,
    offsets: std::ops::Range<u64>,
    each: &mut impl FnMut(Option<&[u8]>, Option<&[u8]>) -> io::Result<()>,
) -> io::Result<()> {
    let what = format!("topic \"{topic}\"");
    let failed = |error: KafkaError| io::Error::other(KafkaFailure::from_error(&error, &what));
    let (list, number) = (partitions_at(topic, [(partition, offsets.start)]), index(partition));
    list.and_then(|list| client.assign(&list)).map_err(failed)?;
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
            // All transactions before the end have ended, so an end reported now is at or after it.
            Some(Err(KafkaError::PartitionEOF(ended))) if ended == number => return Ok(()),
            Some(Err(error)) => {
                let failure = KafkaFailure::from_error(&error, &what);
                if !failure.is_retriable() && !is_of_group(&error) {
                    return Err(io::Error::other(failure));
                }
            }
            Some(Ok(_)) | None => {}
        }
    }
}
