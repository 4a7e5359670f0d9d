//! Settings of an output topic.

use std::time::Duration;

use crate::kafka::broker::{Connection, KEEPS_ALL, TopicRequest, TopicSettings};
use crate::kafka::envelope::OutputEnvelope;

/// Settings of the output.
#[derive(Clone, Debug)]
pub struct KafkaOutput {
    /// Addresses and settings of the brokers.
    pub connection: Connection,
    /// Topic of the changes.
    pub topic: String,
    /// Topic of the marks: one partition, compacted. Several pipelines may share it.
    pub progress_topic: String,
    /// At most one run writes under this id at a time.
    pub transactional_id: String,
    /// Form of the values.
    pub envelope: OutputEnvelope,
    /// Topic of records that are not valid events, if they are kept.
    pub dead_letter: Option<String>,
    /// Time after which the broker aborts an open transaction. At most what the broker allows, 15 minutes by
    /// default.
    pub timeout: Duration,
    /// Interval at which the topics are looked at.
    pub refresh: Duration,
    /// Name of the run; unique.
    pub run: String,
}

/// Name and settings with which an output topic is created.
pub fn output_topic(topic: &str, envelope: OutputEnvelope) -> (TopicRequest<'_>, &'static TopicSettings) {
    let compacted = envelope == OutputEnvelope::Upsert;
    // A pair that ends is a tombstone, which compaction removes.
    let settings = if compacted { &[("cleanup.policy", "compact")][..] } else { KEEPS_ALL };
    (TopicRequest { topic, partitions: None, compacted }, settings)
}

/// Name of a topic of a side output, which is created with [`KEEPS_ALL`].
pub fn side_topic(topic: &str) -> TopicRequest<'_> {
    TopicRequest { topic, partitions: None, compacted: false }
}
