//! The tables in a SQLite file.

mod decisions;
mod owned_database;
mod rows;
mod store;

pub(super) use store::{SqliteStore, examine};
