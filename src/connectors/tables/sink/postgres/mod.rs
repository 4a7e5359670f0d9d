//! The tables on a PostgreSQL server.

mod parameters;
mod rights;
mod rows;
mod schema;
mod store;

pub(super) use store::PostgresStore;
