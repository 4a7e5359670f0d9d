//! Clients of a broker: consumers and producers, each with a [`Watch`].

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::KafkaError;
use rdkafka::producer::BaseProducer;
use rdkafka::topic_partition_list::Offset;
use rdkafka::{ClientConfig, TopicPartitionList};

use super::connection::Connection;
use super::failure::KafkaFailure;
use super::watch::Watch;

/// A consumer; works only while it is polled.
pub type Consumer = BaseConsumer<Watch>;

/// A producer; works only while it is polled.
pub type Producer = BaseProducer<Watch>;

impl Connection {
    /// Creates a consumer with the user's settings and `own`. Where both have a setting, `own` counts.
    ///
    /// # Errors
    /// [`KafkaFailure::Fatal`] if the library rejects a setting.
    pub fn consumer(&self, what: &str, own: &[(&str, &str)]) -> Result<Consumer, KafkaFailure> {
        self.config(own)
            .create_with_context(Watch::new(what))
            .map_err(|error| KafkaFailure::from_error(&error, what))
    }

    /// Creates a producer, as [`Self::consumer`].
    ///
    /// # Errors
    /// [`KafkaFailure::Fatal`] if the library rejects a setting.
    pub fn producer(&self, what: &str, own: &[(&str, &str)]) -> Result<Producer, KafkaFailure> {
        self.config(own)
            .create_with_context(Watch::new(what))
            .map_err(|error| KafkaFailure::from_error(&error, what))
    }

    /// The settings of a client.
    pub(super) fn config(&self, own: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("client.id", "dupflow");
        // Messages of the library below this level are about itself, not about the run.
        config.set_log_level(RDKafkaLogLevel::Warning);
        // A restarted broker is found within about a second; the library's default is up to ten. The user may
        // override it.
        config.set("reconnect.backoff.max.ms", "1000");
        for (name, value) in &self.settings {
            config.set(name, value.reveal());
        }
        config.set("bootstrap.servers", &self.brokers);
        for (name, value) in own {
            config.set(*name, *value);
        }
        config
    }
}

/// A partition number in the type of the library.
pub(crate) fn index(partition: u32) -> i32 {
    i32::try_from(partition).unwrap_or(i32::MAX)
}

/// Partitions of a topic, each with an offset.
///
/// # Errors
/// If the library has no such partition or offset.
pub(crate) fn partitions_at(
    topic: &str,
    offsets: impl IntoIterator<Item = (u32, u64)>,
) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::new();
    for (partition, offset) in offsets {
        list.add_partition_offset(topic, index(partition), Offset::Offset(offset.cast_signed()))?;
    }
    Ok(list)
}

/// Drops a client on a thread of its own: closing one may take long, and has hung in the library.
pub fn close_in_background<T: Send + 'static>(client: T) {
    // If no thread can be started, the client is dropped here.
    drop(std::thread::Builder::new().name("kafka-close".to_owned()).spawn(move || drop(client)));
}
