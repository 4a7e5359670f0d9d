//! Kafka: connections to a broker, topics as source, topics as sink.

pub mod broker;
mod envelope;
#[cfg(feature = "kafka")]
mod sink;
#[cfg(feature = "kafka")]
mod source;
mod start;

pub use envelope::OutputEnvelope;
#[cfg(feature = "kafka")]
pub use sink::{KafkaOutput, KafkaSink, output_topic, side_topic, unknown_rows};
#[cfg(feature = "kafka")]
pub use source::{Kafka, watches_expire};
pub use start::Start;
