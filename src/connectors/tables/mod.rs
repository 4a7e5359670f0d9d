//! Databases: connections, tables as source, tables as sink.

pub mod database;
mod sink;
mod source;

pub use sink::{TableOutput, TableSink};
pub use source::{DatabaseTable, Regression, Relation, RoundOverlap, TableSource};

#[cfg(all(test, feature = "postgres"))]
#[expect(
    dead_code,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "used by another test; the server starts in real time"
)]
#[path = "../../../tests/exactly_once/server.rs"]
mod test_server;
