//! The tables in a SQLite file.

mod decisions;
mod found;
mod owned_database;
mod rows;
mod store;
mod take_over;

pub(super) use found::examine;
pub(super) use store::SqliteStore;
