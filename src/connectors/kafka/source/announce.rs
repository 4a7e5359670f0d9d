//! Commits offsets to the broker under the client's `group.id`, for tools that show the lag of a group. The
//! offsets say how far the output covers the topic.
//!
//! They are never read back: the mark in the output decides where a run begins. So an offset that cannot be
//! committed is logged once and has no other effect. A thread commits the latest offsets, at most once a
//! second, and at the end of the run.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rdkafka::consumer::{CommitMode, Consumer as _};
use rdkafka::error::KafkaError;

use super::topic::{DetachedClient, Kafka};
use crate::kafka::broker::{KafkaFailure, partitions_at};
use dupflow_core::time::{Clock, Offsets, SystemClock};

/// Minimum time between two commits.
const APART: Duration = Duration::from_secs(1);

/// How long the end of a run waits for the last commit.
const LAST: Duration = Duration::from_secs(2);

/// Sends offsets to the thread that commits them.
pub(super) struct Announcer {
    offsets: Option<Sender<Offsets>>,
    /// Closed by the thread when it ends.
    ended: Receiver<()>,
}

impl Announcer {
    /// Starts the thread. If that fails, nothing is committed, which is logged.
    pub(super) fn start(kafka: &Kafka) -> Self {
        let (offsets, given) = channel();
        let (end, ended) = channel();
        let own = kafka.clone();
        let commits = move || {
            commit_all(&own, &given);
            drop(end);
        };
        if let Err(error) = thread::Builder::new().name("announce".to_owned()).spawn(commits) {
            tracing::warn!(%error, "no offsets are committed to the group");
        }
        Self { offsets: Some(offsets), ended }
    }

    /// Sends the offsets before which the output covers all records.
    pub(super) fn announce(&self, next: &Offsets) {
        if let Some(offsets) = &self.offsets {
            // Fails if the thread has given up.
            drop(offsets.send(next.clone()));
        }
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.offsets = None;
        // The thread ends by closing this channel.
        self.ended.recv_timeout(LAST).unwrap_or_default();
    }
}

/// Commits the offsets that are sent, until the channel closes or the broker refuses.
fn commit_all(kafka: &Kafka, given: &Receiver<Offsets>) {
    let refused = |failure: &dyn std::fmt::Display| {
        tracing::warn!(
            "the offsets of topic \"{}\" are not committed to the client's group, so tools that show its lag \
             show nothing of this run: {failure}",
            kafka.topic
        );
    };
    let client = match kafka.client() {
        Ok(client) => client,
        Err(error) => return refused(&error),
    };
    let (mut has_failed, mut is_last) = (false, false);
    while !is_last {
        let Ok(mut next) = given.recv() else { return };
        let clock = SystemClock::start();
        // Offsets that arrive in this time are committed together.
        while let Some(left) = APART.checked_sub(clock.now()) {
            match given.recv_timeout(left) {
                Ok(later) => next = later,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    is_last = true;
                    break;
                }
            }
        }
        match commit(kafka, &client, &next) {
            Err(failure @ KafkaFailure::Fatal(_)) => return refused(&failure),
            Err(failure) if !std::mem::replace(&mut has_failed, true) => refused(&failure),
            Ok(()) | Err(_) => {}
        }
    }
}

fn commit(kafka: &Kafka, client: &DetachedClient, next: &Offsets) -> Result<(), KafkaFailure> {
    let failed = |error: KafkaError| KafkaFailure::from_error(&error, &kafka.what());
    let list = partitions_at(&kafka.topic, next.iter().map(|(number, at)| (*number, *at))).map_err(failed)?;
    // Serves the client, which reads nothing.
    drop(client.get().poll(Duration::ZERO));
    if list.count() == 0 { Ok(()) } else { client.get().commit(&list, CommitMode::Sync).map_err(failed) }
}
