//! Compares the last records that an earlier run has read with those that the topic holds now.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;

use super::begin::PartitionStarts;
use super::reader::seconds;
use super::topic::Kafka;
use crate::formats::KeyedRecord;
use crate::intake::{ChangedRecord, SourceError};
use crate::kafka::broker::{KafkaFailure, is_of_group, partitions_at};
use dupflow_core::time::{Clock, LastRecord, SystemClock};

/// How long each poll waits.
const STEP: Duration = Duration::from_millis(50);

/// Longest time without a record after which the comparison fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// One record of each partition is read.
const SETTINGS: [(&str, &str); 3] =
    [("queued.min.messages", "1"), ("max.partition.fetch.bytes", "65536"), ("fetch.wait.max.ms", "10")];

/// The first of these records in whose place the topic holds another one; see
/// [`Source::changed`](crate::intake::Source::changed).
pub(super) fn changed(
    kafka: &Kafka,
    last: &BTreeMap<u32, LastRecord>,
    may_lack: bool,
) -> Result<Option<ChangedRecord>, SourceError> {
    let client = kafka.client_with(&SETTINGS)?;
    let held = PartitionStarts { kafka, client: client.get() }.all_held()?;
    let is_held = |(partition, record): &(&u32, &LastRecord)| {
        held.get(*partition).is_some_and(|(first, end)| (*first..*end).contains(&record.offset))
    };
    let mut open: BTreeMap<u32, LastRecord> =
        last.iter().filter(is_held).map(|(partition, last)| (*partition, *last)).collect();
    let failed = |error: &KafkaError| kafka.failed(&KafkaFailure::from_error(error, &kafka.what()));
    let list = partitions_at(&kafka.topic, open.iter().map(|(number, record)| (*number, record.offset)));
    list.and_then(|list| client.get().assign(&list)).map_err(|error| failed(&error))?;
    let (clock, mut patience) = (SystemClock::start(), PATIENCE);
    while !open.is_empty() {
        // The first record from the offset on, or the end.
        let (partition, found) = match client.get().poll(STEP) {
            Some(Ok(message)) => {
                let ts = message.timestamp().to_millis().map(seconds);
                let offset = u64::try_from(message.offset()).unwrap_or_default();
                let (key, value) = (message.key(), message.payload());
                (message.partition(), Some(KeyedRecord { offset, ts, key, value }.remembered()))
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => (partition, None),
            Some(Err(error)) => {
                let failure = KafkaFailure::from_error(&error, &kafka.what());
                if (failure.is_retriable() || is_of_group(&error)) && clock.now() < patience {
                    continue;
                }
                return Err(kafka.failed(&failure));
            }
            None if clock.now() < patience => continue,
            None => {
                let what = format!("{}: no broker gives the last record that was read", kafka.what());
                return Err(kafka.failed(&KafkaFailure::Fatal(what)));
            }
        };
        patience = clock.now() + PATIENCE;
        let Ok(partition) = u32::try_from(partition) else { continue };
        let Some(record) = open.remove(&partition) else { continue };
        if is_another(record, found, may_lack) {
            return Ok(Some(ChangedRecord { partition, offset: record.offset }));
        }
    }
    Ok(None)
}

/// Whether another record is in the place of `last`. `found`: the first record from its offset on.
fn is_another(last: LastRecord, found: Option<LastRecord>, may_lack: bool) -> bool {
    match found.filter(|found| found.offset == last.offset) {
        Some(found) => found != last,
        // A marker of a transaction, or a record that was compacted away.
        None => !may_lack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_compared_where_it_is() {
        let record = |offset, digest| LastRecord { offset, digest };
        let last = record(7, 1);
        for (found, may_lack, is_other) in [
            (Some(record(7, 1)), false, false),
            (Some(record(7, 2)), false, true),
            (Some(record(7, 2)), true, true),
            (Some(record(8, 1)), false, true),
            (Some(record(8, 1)), true, false),
            (None, false, true),
            (None, true, false),
        ] {
            assert_eq!(is_another(last, found, may_lack), is_other, "{found:?} {may_lack}");
        }
    }
}
