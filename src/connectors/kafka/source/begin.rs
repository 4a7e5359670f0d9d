//! Determines the offset at which each partition begins.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::Offset;

use super::topic::Kafka;
use crate::intake::{OffsetGap, SourceError};
use crate::kafka::Start;
use crate::kafka::broker::{Consumer, KafkaFailure, find_topic, index, offset_range, partitions_at};
use dupflow_core::time::{Clock, Offsets, SystemClock};

/// How long the time of a record is looked for, and how long each poll waits.
const TIME_OF: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(50);

/// Timeout of the request for the offsets of a time.
const REQUEST: Duration = Duration::from_secs(30);

/// Determines beginnings, with a client.
pub(super) struct PartitionStarts<'a> {
    pub(super) kafka: &'a Kafka,
    pub(super) client: &'a Consumer,
}

impl PartitionStarts<'_> {
    /// The offset at which every partition of the topic begins.
    pub(super) fn offsets(&self, from: Option<&Offsets>) -> Result<Offsets, SourceError> {
        let partitions = self.partitions()?;
        let named = match (from, &self.kafka.start) {
            (Some(named), _) | (None, Start::Offsets(named)) => Some(named),
            (None, _) => None,
        };
        if let Some((partition, offset)) = named.and_then(|named| named.range(partitions..).next()) {
            return Err(self.lost(*partition, *offset, 0, 0));
        }
        let times = match (from, &self.kafka.start) {
            (None, Start::Timestamp(ms)) => self.at_time(partitions, *ms)?,
            _ => Offsets::new(),
        };
        let (mut begin, mut cut) = (Offsets::new(), Vec::new());
        for partition in 0..partitions {
            let (first, end) = self.held(partition)?;
            let at = match (named.and_then(|named| named.get(&partition)), &self.kafka.start) {
                (Some(offset), _) if (first..=end).contains(offset) => *offset,
                (Some(offset), _) => return Err(self.lost(partition, *offset, first, end)),
                (None, Start::Latest) if from.is_none() => end,
                (None, Start::Timestamp(_)) if from.is_none() => {
                    times.get(&partition).copied().unwrap_or(end)
                }
                (None, _) => {
                    cut.extend((first > 0).then_some((partition, first)));
                    first
                }
            };
            begin.insert(partition, at);
        }
        if let [(partition, first), ..] = cut[..] {
            tracing::warn!(
                partitions = cut.len(),
                "{}: the first records are gone and are not read: partition {partition} begins at offset \
                 {first}",
                self.kafka.what()
            );
        }
        Ok(begin)
    }

    /// The offsets from `from` on that are still available, and the gaps.
    pub(super) fn left(&self, from: &Offsets) -> Result<(Offsets, Vec<OffsetGap>), SourceError> {
        let (mut begin, mut gaps) = (Offsets::new(), Vec::new());
        for (partition, (first, end)) in self.all_held()? {
            let wanted = from.get(&partition).copied().unwrap_or(first);
            let at = wanted.clamp(first, end);
            begin.insert(partition, at);
            if wanted < first {
                let until = self.time_of(partition, first)?;
                gaps.push(OffsetGap { partition, from: wanted, to: first, until });
            }
        }
        Ok((begin, gaps))
    }

    /// For each partition, the first available offset, and the offset after the last committed record.
    pub(super) fn all_held(&self) -> Result<BTreeMap<u32, (u64, u64)>, SourceError> {
        (0..self.partitions()?).map(|partition| Ok((partition, self.held(partition)?))).collect()
    }

    /// The time of the first record of a partition from an offset on, in milliseconds since 1970, if there is
    /// such a record.
    fn time_of(&self, partition: u32, offset: u64) -> Result<Option<u64>, SourceError> {
        let what = self.kafka.what();
        let failed = |error| self.kafka.failed(&KafkaFailure::from_error(&error, &what));
        let list = partitions_at(&self.kafka.topic, [(partition, offset)]);
        list.and_then(|list| self.client.assign(&list)).map_err(failed)?;
        let clock = SystemClock::start();
        let mut found = None;
        while found.is_none() && clock.now() < TIME_OF {
            match self.client.poll(STEP) {
                Some(Ok(record)) => found = record.timestamp().to_millis(),
                Some(Err(KafkaError::PartitionEOF(_))) => break,
                Some(Err(_)) | None => {}
            }
        }
        self.client.assign(&TopicPartitionList::new()).map_err(failed)?;
        Ok(found.and_then(|ms| u64::try_from(ms).ok()))
    }

    /// Number of partitions of the topic.
    pub(super) fn partitions(&self) -> Result<u32, SourceError> {
        let found = find_topic(self.client, &self.kafka.topic, self.kafka.connection.patience);
        let found = found.and_then(|found| found.ok_or_else(|| KafkaFailure::no_topic(&self.kafka.topic)));
        found.map(|found| found.partitions).map_err(|failure| self.kafka.failed(&failure))
    }

    /// The first available offset of a partition, and the offset after its last committed record.
    pub(super) fn held(&self, partition: u32) -> Result<(u64, u64), SourceError> {
        let held = offset_range(self.client, &self.kafka.topic, partition, self.kafka.connection.patience);
        held.map_err(|failure| self.kafka.failed(&failure))
    }

    /// The error for records of a partition that are not available.
    pub(super) fn lost(&self, partition: u32, wanted: u64, first: u64, end: u64) -> SourceError {
        let hint = if wanted < first {
            "records have expired before they were read; with --reconcile, what is left is read and the \
             output is corrected"
        } else {
            "the topic has been recreated, or is another one; with --reconcile, what it holds is read and \
             the output is corrected"
        };
        SourceError::Lost { input: self.kafka.topic.as_str().into(), partition, wanted, first, end, hint }
    }

    /// For each partition, the first record of this time or later; partitions without one are absent.
    fn at_time(&self, partitions: u32, ms: i64) -> Result<Offsets, SourceError> {
        let what = self.kafka.what();
        let failed = |error| self.kafka.failed(&KafkaFailure::from_error(&error, &what));
        let mut asked = TopicPartitionList::new();
        for partition in 0..partitions {
            let asks = asked.add_partition_offset(&self.kafka.topic, index(partition), Offset::Offset(ms));
            asks.map_err(failed)?;
        }
        let found = self
            .client
            .offsets_for_times(asked, self.kafka.connection.patience.min(REQUEST))
            .map_err(failed)?;
        let of = |at: &rdkafka::topic_partition_list::TopicPartitionListElem<'_>| match at.offset() {
            Offset::Offset(offset) => {
                Some((u32::try_from(at.partition()).ok()?, u64::try_from(offset).ok()?))
            }
            _ => None,
        };
        Ok(found.elements().iter().filter_map(of).collect())
    }
}
