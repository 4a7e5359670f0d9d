//! Connections to Kafka brokers, shared by the source, the sink and the commands.
//!
//! [`Connection`] holds the settings and connects to nothing; it exists in every build. The feature `kafka`
//! adds the clients, which count and log their errors ([`Watch`]), and converts every error to a
//! [`KafkaFailure`] of one line: retriable or not.
//!
//! Invariants: no message and no log contains the value of a setting, since any may be a
//! [`Credential`](crate::credential::Credential); settings on which exactly-once depends cannot be set by the
//! user.

mod connection;

#[cfg(feature = "kafka")]
mod admin;
#[cfg(feature = "kafka")]
mod built;
#[cfg(feature = "kafka")]
mod client;
#[cfg(feature = "kafka")]
mod failure;
#[cfg(feature = "kafka")]
mod topic_id;
#[cfg(feature = "kafka")]
mod watch;

pub use connection::Connection;

#[cfg(feature = "kafka")]
pub use admin::{
    Admin, KEEPS_ALL, KEEPS_MARKS, TopicInfo, TopicRequest, TopicSettings, find_topic, offset_range,
    topic_by_name,
};
#[cfg(feature = "kafka")]
pub use client::{Consumer, Producer, close_in_background};
#[cfg(feature = "kafka")]
pub(crate) use client::{index, partitions_at};
#[cfg(feature = "kafka")]
pub use failure::{KafkaFailure, code_of, is_of_group};
#[cfg(feature = "kafka")]
pub use watch::Watch;
