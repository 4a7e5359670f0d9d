//! Clients of a broker: a consumer, a producer, each with a [`Watch`].

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::BaseConsumer;
use rdkafka::producer::BaseProducer;

use super::{Connection, Failure, Watch};

/// A consumer; all of its work is done by whoever polls it.
pub type Consumer = BaseConsumer<Watch>;

/// A producer; all of its work is done by whoever polls it.
pub type Producer = BaseProducer<Watch>;

impl Connection {
    /// A consumer with these settings, the user's first: of a setting in both, `own` counts.
    ///
    /// # Errors
    /// [`Failure::Fatal`] if the library refuses a setting.
    pub fn consumer(&self, what: &str, own: &[(&str, &str)]) -> Result<Consumer, Failure> {
        self.config(own).create_with_context(Watch::new(what)).map_err(|error| Failure::of(&error, what))
    }

    /// A producer with these settings, as [`Self::consumer`].
    ///
    /// # Errors
    /// [`Failure::Fatal`] if the library refuses a setting.
    pub fn producer(&self, what: &str, own: &[(&str, &str)]) -> Result<Producer, Failure> {
        self.config(own).create_with_context(Watch::new(what)).map_err(|error| Failure::of(&error, what))
    }

    /// The settings of a client.
    pub(super) fn config(&self, own: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("client.id", "dupflow");
        // What the library says of itself below a warning says nothing of the run.
        config.set_log_level(RDKafkaLogLevel::Warning);
        // A broker that is back is found within about a second; the library would wait up to ten. May be set
        // otherwise.
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

/// Lets a client go, on a thread of its own: to close one may take long, and has been seen to hang in the
/// library.
pub fn let_go<T: Send + 'static>(client: T) {
    // Without a thread the client is dropped here.
    drop(std::thread::Builder::new().name("kafka-close".to_owned()).spawn(move || drop(client)));
}
