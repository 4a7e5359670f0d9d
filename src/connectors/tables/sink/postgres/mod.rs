//! The tables on a PostgreSQL server.

mod decisions;
mod parameters;
mod rights;
mod rows;
mod schema;
mod store;

pub(super) use store::PostgresStore;
