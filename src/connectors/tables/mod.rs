//! Databases: connections, tables as source, tables as sink.

pub mod database;
mod sink;
mod source;

pub use sink::{TableOutput, TableSink};
pub use source::{DatabaseTable, Relation, RoundOverlap};
