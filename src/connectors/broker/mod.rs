//! The way to a Kafka broker: what source, sink and commands share.
//!
//! [`Connection`] says how a broker is reached, without reaching it; it exists in every build. With the
//! feature `kafka` clients are made of it, which count and log what goes wrong ([`Watch`]), and every error
//! becomes a [`Failure`]: worth another try, or the end, in one line.
//!
//! Invariants: no value of a setting is ever in a message or in a log, since any of them may be a [`Secret`];
//! a setting on which exactly-once rests cannot be set.

mod connection;
mod secret;

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
pub use secret::{Secret, from_file};

#[cfg(feature = "kafka")]
pub use admin::{Admin, KEEPS_ALL, KEEPS_MARKS, TopicFound, TopicSettings, Wanted, find, held, named};
#[cfg(feature = "kafka")]
pub use client::{Consumer, Producer, let_go};
#[cfg(feature = "kafka")]
pub use failure::{Failure, code_of};
#[cfg(feature = "kafka")]
pub use watch::Watch;
