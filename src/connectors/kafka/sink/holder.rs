//! The run that holds a topic of rows: one at a time, under whatever transactional id it writes.
//!
//! Two runs that write rows to one topic would each take the rows of the other for errors and correct them. A
//! transactional id does not prevent that, since each run has its own. So a run joins a group that is named
//! after the topic, and a run that finds another one in the group is refused. A run that has ended leaves the
//! group; after a kill the broker removes it within [`SESSION`]. Runs with the same id do not count: the
//! later one takes over.

use std::fmt;
use std::time::Duration;

use rdkafka::consumer::Consumer as _;

use super::output::KafkaOutput;
use crate::kafka::broker::{Consumer, KafkaFailure, close_in_background};
use dupflow_core::time::{Clock, SystemClock};

/// Time without a sign of life after which the broker removes a member, in milliseconds.
const SESSION: &str = "6000";

/// How long a run waits for another one to leave.
const LEAVES: Duration = Duration::from_secs(10);

/// How long a run waits to be a member.
const JOINS: Duration = Duration::from_secs(10);

/// How long one poll lasts, and the timeout of a request.
const STEP: Duration = Duration::from_millis(100);
const REQUEST: Duration = Duration::from_secs(2);

/// The client ids of members begin with this, followed by the transactional id.
const CLIENT: &str = "dupflow-rows ";

/// The membership of a run in the group of a topic.
pub(super) struct TopicHolder {
    topic: String,
    client: String,
    /// Present until drop.
    consumer: Option<Consumer>,
}

impl TopicHolder {
    /// Joins the group of a topic of rows. `None` if the role may not, which is logged.
    ///
    /// # Errors
    /// If another run is a member.
    pub(super) fn join(output: &KafkaOutput, topic: &str) -> Result<Option<Self>, KafkaFailure> {
        let group = format!("dupflow-rows-{topic}");
        let client = format!("{CLIENT}{}", output.transactional_id);
        let own = [
            ("group.id", &*group),
            ("client.id", &*client),
            ("session.timeout.ms", SESSION),
            // It is polled at the interval at which topics are looked at.
            ("max.poll.interval.ms", "86400000"),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "latest"),
            // No record is used.
            ("queued.min.messages", "1"),
            ("queued.max.messages.kbytes", "64"),
        ];
        let consumer = output.connection.consumer(&format!("topic \"{topic}\""), &own)?;
        let holder = Self { topic: topic.to_owned(), client, consumer: Some(consumer) };
        match holder.enter(&group) {
            Ok(()) => Ok(Some(holder)),
            Err(KafkaFailure::Absent(why) | KafkaFailure::Retriable(why)) => {
                tracing::warn!(
                    "whether another run writes topic \"{topic}\" is not known ({why}): two runs would \
                     correct the rows of each other; allow Read and Describe on the group \"{group}\""
                );
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    fn enter(&self, group: &str) -> Result<(), KafkaFailure> {
        let clock = SystemClock::start();
        while let Some(other) = self.others(group)?.into_iter().next() {
            if clock.now() >= LEAVES {
                return Err(self.refused(&other));
            }
            self.serve(STEP);
        }
        let failed = |error| KafkaFailure::Retriable(format!("group \"{group}\": {error}"));
        self.consumer().subscribe(&[&self.topic]).map_err(failed)?;
        let joined_by = clock.now() + JOINS;
        while !self.members(group)?.contains(&self.client) {
            if clock.now() >= joined_by {
                let last = self.consumer().context().last();
                let why = last.map_or_else(|| "no answer".to_owned(), |last| last.to_string());
                return Err(KafkaFailure::Retriable(why));
            }
            self.serve(STEP);
        }
        // Of two that joined at a time, the one with the least id stays.
        match self.others(group)?.into_iter().find(|other| *other < self.client) {
            Some(other) => Err(self.refused(&other)),
            None => Ok(()),
        }
    }

    /// Serves the client, whose records are not used.
    pub(super) fn serve(&self, time: Duration) {
        drop(self.consumer().poll(time));
    }

    fn consumer(&self) -> &Consumer {
        self.consumer.as_ref().expect("present until drop")
    }

    /// The client ids of all members.
    fn members(&self, group: &str) -> Result<Vec<String>, KafkaFailure> {
        let found = self.consumer().fetch_group_list(Some(group), REQUEST);
        let found = found.map_err(|error| KafkaFailure::Retriable(format!("group \"{group}\": {error}")))?;
        let members = found.groups().iter().flat_map(|found| found.members());
        Ok(members.map(|member| member.client_id().to_owned()).collect())
    }

    /// The client ids of other runs.
    fn others(&self, group: &str) -> Result<Vec<String>, KafkaFailure> {
        let is_other = |client: &String| client.starts_with(CLIENT) && *client != self.client;
        self.members(group).map(|all| all.into_iter().filter(is_other).collect())
    }

    fn refused(&self, other: &str) -> KafkaFailure {
        let id = other.trim_start_matches(CLIENT);
        KafkaFailure::Fatal(format!(
            "topic \"{}\" is written by another run, with the transactional id \"{id}\": stop that run, or \
             name another topic",
            self.topic
        ))
    }
}

impl fmt::Debug for TopicHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicHolder").field("topic", &self.topic).finish_non_exhaustive()
    }
}

impl Drop for TopicHolder {
    fn drop(&mut self) {
        if let Some(consumer) = self.consumer.take() {
            close_in_background(consumer);
        }
    }
}
