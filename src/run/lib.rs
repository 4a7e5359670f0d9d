//! What the parts of a run share: the dataflow, inputs, outputs and the monitor write it or read it.
//!
//! | module | holds | written by | read by |
//! |---|---|---|---|
//! | [`metrics`] | counters | all parts | summary, monitor |
//! | [`status`] | phase, epochs, times | the run | monitor, log |
//! | [`backlog`] | records not yet read, by partition | inputs | monitor, log |
//! | [`posted`] | what clients post | monitor | inputs |
//! | [`origins`] | the input file of an offset | inputs | dataflow |
//! | [`reading`] | how far the input is read, in event time | the run | monitor |
//! | [`query`] | queries and their answers | monitor | dataflow |
//! | [`histogram`] | durations by range | the run | monitor |
//! | [`view_tables`] | rows of views | the run | monitor |
//! | [`watch`] | watch lists and their notices | inputs, monitor, dataflow | dataflow, outputs, monitor |
//!
//! [`missing_feature`] is the message for what a build lacks.

pub mod backlog;
mod feature;
pub mod histogram;
pub mod metrics;
pub mod origins;
pub mod posted;
pub mod query;
pub mod reading;
pub mod status;
pub mod view_tables;
pub mod watch;

pub use feature::missing_feature;
