//! Inputs and outputs of a run: where events are read, where deltas are written, and the state between runs.

pub mod broker;
pub mod database;
pub mod failpoint;
pub mod feed;
pub mod instant;
pub mod mark;
pub mod sink;
pub mod source;
pub mod state;
