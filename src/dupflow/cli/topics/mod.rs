//! Commands that need a broker: they read a topic, write one, or check what a deployment names.

pub(in crate::cli) mod connect;
pub mod produce;
pub mod record;
mod times;
