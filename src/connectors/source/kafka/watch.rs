//! Looks every second how far the topic reaches beyond what has been read, on a thread of its own: a reader
//! that waits for room, or for a line, polls nothing.
//!
//! Two clients ask for the end of all partitions, a request for each broker: one that sees committed
//! records is answered with the last stable offset, one that sees all with the end. The difference waits
//! for transactions of producers. One of those that is open for long holds everything behind it up, in
//! every consumer; so it is logged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::topic_partition_list::Offset;

use super::{Held, Kafka};
use crate::broker::Failure;
use crate::source::SourceError;
use dupflow_core::run::backlog::{Backlog, UnreadRecords};
use dupflow_core::time::{Clock, SystemClock};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// How long a broker may take to answer before the next look.
const REQUEST: Duration = Duration::from_secs(5);

/// How long records may wait for a transaction before the log says so, and how often it says so.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(60);

/// Ends the looking when it is dropped.
pub(super) struct Watching(#[expect(dead_code, reason = "its drop is the signal")] Sender<()>);

/// Starts to look. Without a thread nothing is known of what waits, which is logged.
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

/// Looks until the end.
fn look(kafka: &Kafka, ended: &Receiver<()>) -> Result<(), SourceError> {
    let (committed, all) =
        (kafka.client_with(&[])?, kafka.client_with(&[("isolation.level", "read_uncommitted")])?);
    let clock = SystemClock::start();
    let (mut due, mut unknown) = (Duration::ZERO, Duration::ZERO);
    loop {
        let partitions = kafka.backlog.partitions();
        // In this order: what becomes stable between the two is not taken for undecided for longer than a
        // look.
        let found = self::ends(kafka, &all, &partitions)
            .and_then(|ends| Ok((ends, self::ends(kafka, &committed, &partitions)?)));
        match found {
            Ok((ends, stable)) => {
                for (partition, last) in stable {
                    kafka.backlog.looked(partition, last, ends.get(&partition).copied().unwrap_or(last));
                }
            }
            // It is counted as well: how long ago each partition was seen.
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

/// The end of each partition, as the client sees it.
fn ends(kafka: &Kafka, client: &Held, partitions: &[u32]) -> Result<BTreeMap<u32, u64>, Failure> {
    if partitions.is_empty() {
        return Ok(BTreeMap::new());
    }
    // Serves the client, which reads nothing.
    drop(client.get().poll(Duration::ZERO));
    let failed = |error| Failure::of(&error, &kafka.what());
    let mut asked = TopicPartitionList::new();
    for partition in partitions {
        let number = i32::try_from(*partition).unwrap_or(i32::MAX);
        asked.add_partition_offset(&kafka.topic, number, Offset::End).map_err(failed)?;
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

/// Logs what has waited for long; whether it has.
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
            "{undecided} records have waited for {seconds} s for a transaction that is open at offset {position}: its producer has to commit or \
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
