//! Inputs and outputs of a run: where events are read, where deltas are written, and the state between runs.

mod canonical_url;
pub mod credential;
pub mod digest;
pub mod durable;
pub mod failpoint;
pub mod formats;
pub mod inputs;
pub mod instant;
pub mod intake;
pub mod kafka;
pub mod mark;
pub mod owned;
pub mod posted;
pub mod rewrite;
pub mod sinks;
pub mod state;
#[cfg(feature = "object-store")]
mod store_address;
pub mod tables;
pub mod watch;
