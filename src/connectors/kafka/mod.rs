//! Kafka: the way to a broker, and topics as source.

pub mod broker;
#[cfg(feature = "kafka")]
mod source;
mod start;

#[cfg(feature = "kafka")]
pub use source::Kafka;
pub use start::Start;
