//! Databases: the way to one, and tables as source.

pub mod database;
mod source;

pub use source::{Relation, RoundOverlap, TableSource};
