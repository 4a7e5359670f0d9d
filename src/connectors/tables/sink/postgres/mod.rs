//! The tables on a PostgreSQL server.

mod decisions;
mod found;
mod parameters;
mod rights;
mod rows;
mod schema;
mod store;
mod take_over;

pub(super) use store::PostgresStore;
