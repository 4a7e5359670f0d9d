//! Reading an output back: the pairs or the clusters that its committed records accumulate to.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use super::output::{KafkaOutput, side_topic};
use super::read;
use crate::kafka::broker::{Admin, KEEPS_ALL, KafkaFailure};
use crate::kafka::envelope::OutputEnvelope;
use crate::mark::Standing;
use crate::sinks::book::LastDecisions;
use crate::sinks::rows::cluster_json::{ReportSums, read_present};
use crate::sinks::rows::pair_json::{ReadDelta, read_delta};
use crate::sinks::side::SideDelta;
use dupflow_core::cluster::ClusterReport;
use dupflow_core::pair::{DocPair, Evidence};

impl KafkaOutput {
    /// The pairs that the topic holds, and whether a record says if its first document is of a reference.
    ///
    /// # Errors
    /// Any error of the broker; that a record is no delta, or that the deltas do not add up to pairs.
    pub(super) fn pairs(&self) -> io::Result<(BTreeSet<DocPair>, bool)> {
        match self.envelope {
            OutputEnvelope::Delta => self.sum_of_deltas(),
            OutputEnvelope::Upsert => self.last_values(),
        }
    }

    /// The pairs of a topic in the delta envelope.
    fn sum_of_deltas(&self) -> io::Result<(BTreeSet<DocPair>, bool)> {
        let topic = &self.topic;
        // A pair is removed whatever evidence it was added with.
        let mut counts: BTreeMap<_, (i64, Evidence)> = BTreeMap::new();
        let mut have_sides = false;
        read::topic(&self.connection, topic, |_, value| {
            let ReadDelta { pair: found, diff, has_sides } = parse_delta(topic, value.unwrap_or_default())?;
            let diff = diff.ok_or_else(|| other_envelope(topic, OutputEnvelope::Upsert))?;
            have_sides |= has_sides;
            let (count, evidence) = counts.entry((found.pair, found.similarity)).or_default();
            *count += i64::from(diff);
            if diff > 0 {
                *evidence = found.evidence;
            }
            Ok(())
        })?;
        counts.retain(|_, (count, _)| *count != 0);
        match counts.iter().find(|(_, (count, _))| *count != 1) {
            Some(((pair, _), (count, _))) => Err(invalid_data(format!(
                "topic \"{topic}\": the deltas of {} and {} add up to {count}: some have expired, or were \
                 not written here",
                pair.lo(),
                pair.hi()
            ))),
            None => {
                let pair = |((pair, similarity), (_, evidence))| DocPair { pair, similarity, evidence };
                Ok((counts.into_iter().map(pair).collect(), have_sides))
            }
        }
    }

    /// The pairs of a topic in the upsert envelope.
    fn last_values(&self) -> io::Result<(BTreeSet<DocPair>, bool)> {
        let topic = &self.topic;
        let mut now: BTreeMap<Vec<u8>, DocPair> = BTreeMap::new();
        let mut have_sides = false;
        read::topic(&self.connection, topic, |key, value| {
            let key = key.unwrap_or_default();
            match value.filter(|value| !value.is_empty()) {
                Some(value) => {
                    let ReadDelta { pair, diff, has_sides } = parse_delta(topic, value)?;
                    if diff.is_some() {
                        return Err(other_envelope(topic, OutputEnvelope::Delta));
                    }
                    have_sides |= has_sides;
                    now.insert(key.to_vec(), pair);
                }
                None => drop(now.remove(key)),
            }
            Ok(())
        })?;
        Ok((now.into_values().collect(), have_sides))
    }

    /// The reports of clusters that the topic holds.
    pub(super) fn reports(&self) -> io::Result<BTreeSet<ClusterReport>> {
        let topic = &self.topic;
        let named = |error: io::Error| invalid_data(format!("topic \"{topic}\": {error}"));
        match self.envelope {
            OutputEnvelope::Delta => {
                let mut sum = ReportSums::default();
                read::topic(&self.connection, topic, |_, value| {
                    sum.add(value.unwrap_or_default()).map_err(named)
                })?;
                sum.reports().map_err(named)
            }
            OutputEnvelope::Upsert => {
                let mut now: BTreeMap<Vec<u8>, ClusterReport> = BTreeMap::new();
                read::topic(&self.connection, topic, |key, value| {
                    let key = key.unwrap_or_default();
                    match value.filter(|value| !value.is_empty()) {
                        Some(value) => {
                            drop(now.insert(key.to_vec(), read_present(key, value).map_err(named)?));
                        }
                        None => drop(now.remove(key)),
                    }
                    Ok(())
                })?;
                Ok(now.into_values().collect())
            }
        }
    }

    /// The last decision of each document in the topic.
    pub(super) fn decisions(&self) -> io::Result<LastDecisions> {
        let topic = &self.topic;
        let mut last = LastDecisions::default();
        read::topic(&self.connection, topic, |key, value| match value.filter(|value| !value.is_empty()) {
            Some(value) => {
                last.add(value).map_err(|error| invalid_data(format!("topic \"{topic}\": {error}")))
            }
            None => {
                last.end(key.unwrap_or_default());
                Ok(())
            }
        })?;
        Ok(last)
    }

    /// Passes each committed change of rows in a topic of a side output; creates the topic if it is missing.
    pub(super) fn side_rows(&self, topic: &str, each: &mut dyn FnMut(SideDelta)) -> io::Result<()> {
        let admin = Admin::new(&self.connection).map_err(io_error)?;
        admin.ensure(side_topic(topic), KEEPS_ALL).map_err(io_error)?;
        if let Some(why) = unknown_rows(&admin, topic).map_err(io_error)? {
            return Err(invalid_data(why));
        }
        read::topic(&self.connection, topic, |key, value| {
            let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
            let named = |error: io::Error| invalid_data(format!("topic \"{topic}\": {error}"));
            each(SideDelta::read(&text(key), &text(value)).map_err(named)?);
            Ok(())
        })
    }

    /// The first partition of the output whose records have partly expired, with the first offset it holds.
    pub(super) fn expired(&self) -> Result<Option<(u32, u64)>, KafkaFailure> {
        expired(&Admin::new(&self.connection)?, &self.topic)
    }

    /// Checks that no record of the output has expired. Without all of them the accumulated deltas are wrong.
    pub(super) fn check_complete(&self) -> io::Result<()> {
        match self.expired().map_err(io_error)? {
            None => Ok(()),
            Some((partition, first)) => Err(invalid_data(format!(
                "topic \"{}\": records before offset {first} of partition {partition} have expired, so what \
                 it adds up to is not known and \
                 cannot be corrected; name another output topic and another transactional id, and the result \
                 is written there from the \
                 beginning",
                self.topic
            ))),
        }
    }

    /// Whether the output holds a committed record. Waits for open transactions no longer than `bound`.
    pub(super) fn holds_records(&self, bound: Option<Duration>) -> io::Result<bool> {
        let mut holds = false;
        let read = read::topic_within(&self.connection, &self.topic, bound, |_, _| {
            holds = true;
            Err(io::ErrorKind::Interrupted.into())
        });
        if holds { Ok(true) } else { read.map(|()| false) }
    }

    /// What an output without a mark holds.
    pub(super) fn unmarked(&self, bound: Option<Duration>) -> io::Result<Standing> {
        if !self.holds_records(bound)? {
            return Ok(Standing::New);
        }
        let KafkaOutput { topic, progress_topic, transactional_id, .. } = self;
        Ok(Standing::Unmarked(format!(
            "topic \"{topic}\" holds records, and topic \"{progress_topic}\" no mark of the transactional id \
             \"{transactional_id}\": the mark is lost, or was written under another id; correct \
             sink.progress_topic and sink.transactional_id, use an empty output topic"
        )))
    }
}

/// The first partition of a topic whose records have partly expired, with the first offset it holds.
fn expired(admin: &Admin, topic: &str) -> Result<Option<(u32, u64)>, KafkaFailure> {
    let found = admin.find(topic)?;
    for partition in 0..found.map_or(0, |found| found.partitions) {
        let (first, _) = admin.offset_range(topic, partition)?;
        if first > 0 {
            return Ok(Some((partition, first)));
        }
    }
    Ok(None)
}

/// Why the rows that a topic of a side output adds up to are not known; `None` if they are.
///
/// # Errors
/// Any error of the broker. A cleanup policy that the user may not read is not one.
pub fn unknown_rows(admin: &Admin, topic: &str) -> Result<Option<String>, KafkaFailure> {
    if let Some((partition, first)) = expired(admin, topic)? {
        return Ok(Some(format!(
            "topic \"{topic}\": records before offset {first} of partition {partition} have expired, so the \
             rows that it adds up to are not known: name another topic"
        )));
    }
    let policy = admin.setting(topic, "cleanup.policy").ok().flatten().unwrap_or_default();
    Ok(policy.contains("compact").then(|| {
        format!(
            "topic \"{topic}\" is compacted (cleanup.policy={policy}), so changes of rows are lost to it: \
             name another topic"
        )
    }))
}

/// Parses a value.
fn parse_delta(topic: &str, value: &[u8]) -> io::Result<ReadDelta> {
    let line = std::str::from_utf8(value)
        .map_err(|_| invalid_data(format!("topic \"{topic}\" holds a value that is no delta")))?;
    read_delta(line)
}

/// The error for an output whose records have another envelope than the run.
fn other_envelope(topic: &str, found: OutputEnvelope) -> io::Error {
    invalid_data(format!(
        "topic \"{topic}\" holds records of sink.envelope = \"{}\": set that, or name another sink.topic",
        found.name()
    ))
}

fn invalid_data(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

pub(super) fn io_error(failure: KafkaFailure) -> io::Error {
    io::Error::other(failure)
}
