//! Measures the backlog of a topic every second, on a thread of its own: a reader that waits for room or for
//! a line does not poll.
//!
//! Two clients request the ends of all partitions, with one request for each broker. The client that reads
//! committed records gets the last stable offset; the one that reads all records gets the end. The difference
//! are records that wait for transactions of producers. A transaction that stays open delays everything after
//! it in every consumer, so it is logged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::topic_partition_list::Offset;

use super::topic::{DetachedClient, Kafka};
use crate::intake::SourceError;
use crate::kafka::broker::{KafkaFailure, index};
use dupflow_core::time::{Clock, SystemClock};
use dupflow_run::backlog::{Backlog, UnreadRecords};

/// Interval of the measurements.
const EVERY: Duration = Duration::from_secs(1);

/// Timeout of the requests of one measurement.
const REQUEST: Duration = Duration::from_secs(5);

/// How long records may wait for a transaction before that is logged, and the interval at which it is logged
/// again.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(60);

/// Ends the thread when it is dropped.
pub(super) struct Watching(#[expect(dead_code, reason = "its drop is the signal")] Sender<()>);

/// Starts the thread. If that fails, the backlog is unknown, which is logged.
pub(super) fn start(kafka: &Kafka) -> Watching {
    let (end, ended) = channel();
    let own = kafka.clone();
    let looks = move || {
        if let Err(error) = look(&own, &ended) {
            tracing::warn!(%error, "how much of the input waits is not known");
        }
    };
    if let Err(error) = thread::Builder::new().name("backlog".to_owned()).spawn(looks) {
        tracing::warn!(%error, "how much of the input waits is not known");
    }
    Watching(end)
}

/// The body of the thread.
fn look(kafka: &Kafka, ended: &Receiver<()>) -> Result<(), SourceError> {
    let (committed, all) =
        (kafka.client_with(&[])?, kafka.client_with(&[("isolation.level", "read_uncommitted")])?);
    let clock = SystemClock::start();
    let (mut due, mut unknown) = (Duration::ZERO, Duration::ZERO);
    loop {
        let partitions = kafka.backlog.partitions();
        // In this order: offsets that become stable between the two requests then count as undecided for at
        // most one interval.
        let found = self::ends(kafka, &all, &partitions)
            .and_then(|ends| Ok((ends, self::ends(kafka, &committed, &partitions)?)));
        match found {
            Ok((ends, stable)) => {
                for (partition, last) in stable {
                    kafka.backlog.looked(partition, last, ends.get(&partition).copied().unwrap_or(last));
                }
            }
            // There is a metric too: the time since each partition was measured.
            Err(failure) if clock.now() >= unknown => {
                unknown = clock.now() + AGAIN;
                tracing::warn!(topic = kafka.topic, "how much of the input waits is not known: {failure}");
            }
            Err(_) => {}
        }
        if clock.now() >= due && report(kafka, &kafka.backlog) {
            due = clock.now() + AGAIN;
        }
        match ended.recv_timeout(EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// The end of each partition, as this client sees it.
fn ends(
    kafka: &Kafka,
    client: &DetachedClient,
    partitions: &[u32],
) -> Result<BTreeMap<u32, u64>, KafkaFailure> {
    if partitions.is_empty() {
        return Ok(BTreeMap::new());
    }
    // Serves the client, which reads nothing.
    drop(client.get().poll(Duration::ZERO));
    let failed = |error| KafkaFailure::from_error(&error, &kafka.what());
    let mut asked = TopicPartitionList::new();
    for partition in partitions {
        asked.add_partition_offset(&kafka.topic, index(*partition), Offset::End).map_err(failed)?;
    }
    let found = client.get().offsets_for_times(asked, REQUEST).map_err(failed)?;
    let end = |at: &rdkafka::topic_partition_list::TopicPartitionListElem<'_>| match at.offset() {
        Offset::Offset(end) if at.error().is_ok() => {
            Some((u32::try_from(at.partition()).ok()?, u64::try_from(end).ok()?))
        }
        _ => None,
    };
    Ok(found.elements().iter().filter_map(end).collect())
}

/// Logs records that have waited for long; returns whether there are any.
fn report(kafka: &Kafka, backlog: &Arc<Backlog>) -> bool {
    let Some((partition, UnreadRecords { position, behind, undecided, oldest, .. })) = backlog.oldest()
    else {
        return false;
    };
    if oldest < PATIENCE {
        return false;
    }
    let (topic, seconds) = (&kafka.topic, oldest.as_secs());
    if behind == 0 {
        tracing::warn!(
            topic,
            partition,
            "{undecided} records have waited for {seconds} s for a transaction that is open at offset \
             {position}: its producer has to commit or \
             abort it (kafka-transactions.sh find-hanging)"
        );
    } else {
        tracing::info!(
            topic,
            partition,
            undecided,
            "the input is {behind} records behind, the oldest has waited for {seconds} s"
        );
    }
    true
}
