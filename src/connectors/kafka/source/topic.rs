//! A topic: its settings, and the clients that read it.

use std::sync::Arc;
use std::time::Duration;

use crate::formats::RecordShape;
use crate::intake::{AsOf, EpochLimits, SourceError};
use crate::kafka::Start;
use crate::kafka::broker::{Connection, Consumer, KafkaFailure, close_in_background};
use dupflow_run::backlog::Backlog;

/// A topic as source.
#[derive(Clone, Debug)]
pub struct Kafka {
    /// How its brokers are reached.
    pub connection: Connection,
    /// Its name.
    pub topic: String,
    /// Where reading begins if no position is stored.
    pub start: Start,
    /// Which partitions this process reads: `(index, count)` stands for those whose number modulo `count` is
    /// `index`.
    pub share: (u32, u32),
    /// The shape of its record values.
    pub shape: Arc<RecordShape>,
    /// Where epochs are cut.
    pub limits: EpochLimits,
    /// Interval at which new partitions are looked for.
    pub refresh: Duration,
    /// Tracks the time as of which the topic has been read; only in the process of partition 0.
    pub as_of: Arc<AsOf>,
    /// The backlog of the partitions that this process reads.
    pub backlog: Arc<Backlog>,
}

/// Maximum of fetched records in the client, beyond one fetch, in KiB: 32 MiB.
const FETCHED_KIB: &str = "32768";

impl Kafka {
    /// A client without partitions.
    pub(super) fn client(&self) -> Result<DetachedClient, SourceError> {
        self.client_with(&[])
    }

    /// The same, with further settings.
    pub(super) fn client_with(&self, more: &[(&str, &str)]) -> Result<DetachedClient, SourceError> {
        let group = format!("dupflow-{}", self.topic);
        let mut own = vec![
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("isolation.level", "read_committed"),
            ("auto.offset.reset", "error"),
            ("enable.partition.eof", "true"),
        ];
        // Defaults that the user may override.
        let defaults = [
            ("group.id", &*group),
            ("queued.max.messages.kbytes", FETCHED_KIB),
            // How long an empty fetch waits at the broker. New records end it at once, but a resumed
            // partition waits for it.
            ("fetch.wait.max.ms", "100"),
            // How long the client stops fetching after its queue was full; the library's default is a second.
            ("fetch.queue.backoff.ms", "20"),
        ];
        own.extend(defaults.iter().filter(|(name, _)| !self.connection.settings.contains_key(*name)));
        own.extend(more);
        let client = self.connection.consumer(&self.what(), &own);
        client.map(|client| DetachedClient(Some(client))).map_err(|failure| self.failed(&failure))
    }

    pub(super) fn what(&self) -> String {
        format!("topic \"{}\"", self.topic)
    }

    pub(super) fn failed(&self, failure: &KafkaFailure) -> SourceError {
        SourceError::Failed { input: self.topic.as_str().into(), what: failure.to_string() }
    }

    /// Whether this process reads a partition.
    pub(super) fn is_mine(&self, partition: u32) -> bool {
        partition % self.share.1.max(1) == self.share.0
    }
}

/// A client that is dropped on another thread, since closing it can take long.
pub(super) struct DetachedClient(Option<Consumer>);

impl DetachedClient {
    pub(super) fn get(&self) -> &Consumer {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for DetachedClient {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            close_in_background(client);
        }
    }
}
