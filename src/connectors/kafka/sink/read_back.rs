//! What an output holds: whether all of it is there, and the rows of side outputs.

use std::io;
use std::time::Duration;

use super::output::{KafkaOutput, side_topic};
use super::read;
use crate::kafka::broker::{Admin, KEEPS_ALL, KafkaFailure};
use crate::mark::Standing;
use crate::sinks::side::SideDelta;

impl KafkaOutput {
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

fn invalid_data(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

pub(super) fn io_error(failure: KafkaFailure) -> io::Error {
    io::Error::other(failure)
}
